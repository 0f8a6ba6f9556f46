"""What one file says, before it is put together with the others."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..registry.model import How
from ..upstream.facts.signature import Signature
from .files import Source
from .found import Form, Gate
from .values import NOTHING, Param, Values

__all__ = ["Asked", "Call", "ClassInfo", "FileFacts", "Place", "Raw", "Setting"]


@dataclass(frozen=True)
class Setting:
    """What every file is read with."""

    own: frozenset[str]
    """Top-level names of the code that is scanned."""
    upstreams: tuple[str, ...]
    """Packages whose private names and classes are looked for."""
    only: bool
    """Patches of other packages are of no interest."""

    def is_foreign(self, names: tuple[str, ...]) -> bool:
        """Whether a dotted name leads out of the code, to where patches count."""
        top = names[0] if names else ""
        if self.only:
            return top in self.upstreams
        return bool(top) and top not in self.own

    def is_upstream(self, names: tuple[str, ...]) -> bool:
        return bool(names) and names[0] in self.upstreams


@dataclass(frozen=True)
class Place:
    """Where in a file a statement stands."""

    qualname: str = ""
    function: str = ""
    """Qualified name of the innermost function."""
    manager: str = ""
    """The context manager whose code it is."""
    leaving: bool = False
    """It runs when that is left: after `yield`, or in `__exit__`."""
    cleaning: bool = False
    """In a `finally`, an `except`, or an `__exit__`."""


@dataclass(frozen=True)
class Raw:
    """One statement, its target not yet told apart into module and name."""

    line: int
    form: Form
    how: How
    names: tuple[str, ...]
    place: Place
    gates: tuple[Gate, ...] = ()
    unresolved: str = ""
    replacement: str = ""
    ours: Signature | None = None
    comment: str = ""
    adds: bool = False
    restores: bool = False
    """It puts back what was there."""
    undone_at: int = 0
    restores_nothing: str = ""
    """What is wrong with the context manager around."""
    own: bool = False
    """The name leads through the scanned code."""
    template: Param | None = None
    """The target as it depends on a parameter of the function around."""
    puts_code: bool = False
    """What is put there is a function or class of the scanned code."""


@dataclass(frozen=True)
class Call:
    """A call of a function of the scanned code, with arguments that may be targets."""

    callee: tuple[str, ...]
    """Its dotted name."""
    line: int
    positional: tuple[Values, ...]
    """What the arguments stand for; functions and classes by their dotted names."""
    keywords: tuple[tuple[str, Values], ...]
    place: Place
    gates: tuple[Gate, ...]
    comment: str = ""
    inner: Values = NOTHING
    """What the function that it gives is called with at once, as decorators are."""
    of: Param | None = None
    """The object whose method it is, where nothing tells its class; then `callee`
    is the method's name alone."""


@dataclass(frozen=True)
class Asked:
    """A member that a class reads of itself and does not define."""

    name: str
    line: int
    is_call: bool


@dataclass(frozen=True)
class ClassInfo:
    """A class of the scanned code."""

    names: tuple[str, ...]
    """Its dotted name."""
    line: int
    bases: tuple[tuple[str, ...], ...]
    methods: tuple[tuple[str, int, Signature], ...]
    """Name, line and parameters."""
    defines: frozenset[str]
    asks: tuple[Asked, ...]
    gates: tuple[Gate, ...]
    values: tuple[tuple[str, int], ...] = ()
    """Name and line of what is set in its body."""
    texts: tuple[tuple[str, Values], ...] = ()
    """Of what is set in its body: what is a text."""


@dataclass
class FileFacts:
    """Everything that is kept of one file."""

    source: Source
    raws: list[Raw] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    classes: list[ClassInfo] = field(default_factory=list)
    parameters: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Of functions that are templates: their parameters, in order."""
    modules: set[str] = field(default_factory=set)
    """What is a module, as import statements show."""
    exports: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Module-level names that lead somewhere else."""
    imports: list[tuple[tuple[str, ...], int]] = field(default_factory=list)
    """Upstream names imported by name at module level."""
    wanted: list[tuple[str, tuple[Gate, ...]]] = field(default_factory=list)
    """Own modules that are imported, and under which conditions."""
    either: list[tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)
    """Names that one name stands for: of a `try`, and of its `except`."""
    executes: set[str] = field(default_factory=set)
    """Functions that run or compile text."""
    rewritten: set[int] = field(default_factory=set)
    """Lines that read a text of which something is run."""
    read_by: list[tuple[int, str]] = field(default_factory=list)
    """Lines that read a text, and functions that get it."""
    stars: list[tuple[str, ...]] = field(default_factory=list)
    """Modules all of whose names are imported."""
    objects: set[str] = field(default_factory=set)
    """Parameters that are annotated as objects, and not as classes or modules."""
    named: dict[str, Values] = field(default_factory=dict)
    """Variables called like classes, anywhere in the file: what they stand for."""
    bound: frozenset[str] = frozenset()
    """With `stars`: names that the module itself binds."""
    spelled: set[tuple[str, ...]] = field(default_factory=set)
    """Functions of the scanned code whose calls spell their targets."""
    restoring: list[tuple[int, Place]] = field(default_factory=list)
    """Lines that set something unknown while things are put back."""
