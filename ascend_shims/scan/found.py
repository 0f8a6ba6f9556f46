"""What a scan finds, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ..registry.model import How
from ..upstream.facts.signature import Signature

__all__ = [
    "PATCHES",
    "Form",
    "Found",
    "Gate",
    "Question",
    "QuestionKind",
    "Scanned",
    "Skipped",
]

Form = Literal[
    "assignment",
    "setattr",
    "delete",
    "namespace",
    "sys-modules",
    "patch-call",
    "wrapt",
    "helper",
    "patch-class",
    "table",
    "source-text",
    "override",
    "subclass",
    "private-import",
    "private-read",
    "private-call",
    "private-member",
    "source-read",
]
"""How something is written.

`assignment`: `module.attr = …`, `Class.method = …`. `setattr`: by a call of `setattr`,
`object.__setattr__` or pytest's. `delete`: `del module.attr`, `delattr`. `namespace`:
through a `__dict__`, `vars()` or `globals()`. `sys-modules`: a whole module is put
into `sys.modules` or taken out. `patch-call`: `mock.patch` and its kin. `wrapt`: its
functions. `helper`: through a function of the code's own. `patch-class`: a class whose
body is laid over another. `table`: entries of a list or mapping. `source-text`: the
text or code object is rewritten. The others patch nothing: `override`, `subclass`,
the uses of private names, and `source-read` of a text that is only looked at.
"""

PATCHES: frozenset[Form] = frozenset(
    {
        "assignment",
        "setattr",
        "delete",
        "namespace",
        "sys-modules",
        "patch-call",
        "wrapt",
        "helper",
        "patch-class",
        "table",
        "source-text",
    }
)
"""Forms that change upstream; the others rely on it."""

Names: TypeAlias = tuple[str, ...]
"""A dotted name in its parts."""


@dataclass(frozen=True)
class Gate:
    """One condition under which a statement runs."""

    text: str
    """As written, shortened."""
    kind: Literal["version", "try", "suppress", "exists", "never", "other"]
    package: str = ""
    """Of `version`: the package whose version is asked for."""
    range: str = ""
    """Of `version`: as a PEP 440 range."""


@dataclass(frozen=True)
class Found:
    """One statement that patches something, or relies on something private."""

    path: str
    """Of the file, as it was reached from what was named."""
    line: int
    form: Form
    how: How
    names: Names
    """The dotted name that is meant, module and all; empty where it is not known."""
    target: str | None
    """`module:Qual.name`, as far as can be told without upstream's text."""
    unresolved: str = ""
    """Why there is no target."""
    candidates: tuple[str, ...] = ()
    """Further targets, where the code has one for each of several releases."""
    gates: tuple[Gate, ...] = ()
    undone_at: int = 0
    """The line that puts it back; 0 where nothing does; -1: a context manager does."""
    within: str = ""
    """Qualified name of the function around; empty at module level."""
    replacement: str = ""
    """What is put there, as written."""
    ours: Signature | None = None
    """Parameters of the replacement, where its definition is at hand."""
    comment: str = ""
    """The comment nearest to it."""
    sure: bool = True
    """False: whether upstream has such a member at all, only its text tells."""
    adds: bool = False
    """It is a name that upstream is not expected to have: a mark, or guarded by
    `not hasattr`."""
    restores_nothing: str = ""
    """The context manager around that does not put it back, and what is wrong."""

    @property
    def is_patch(self) -> bool:
        return self.form in PATCHES

    @property
    def package(self) -> str:
        return self.names[0] if self.names else ""

    @property
    def ranges(self) -> Mapping[str, str]:
        """The gates as version ranges, by package."""
        found: dict[str, list[str]] = {}
        for gate in self.gates:
            if gate.range:
                found.setdefault(gate.package, []).append(gate.range)
        return {name: ",".join(dict.fromkeys(all_)) for name, all_ in found.items()}


@dataclass(frozen=True)
class Skipped:
    """A file that was not scanned, and why."""

    path: str
    reason: str


QuestionKind = Literal[
    "exists-nowhere",
    "gate-never-true",
    "reason-gone",
    "contested",
    "never-restored",
    "bound-by-name",
]
"""What nobody asks of a patch; `questions` says when each is raised."""


@dataclass(frozen=True)
class Question:
    kind: QuestionKind
    found: Found
    sentence: str
    places: tuple[str, ...] = ()
    """Other places that have to do with it, `path:line`."""


@dataclass(frozen=True)
class Scanned:
    """Everything that was found in some code."""

    found: tuple[Found, ...]
    skipped: tuple[Skipped, ...]
    files: int
    """How many were scanned."""
    tests: int = 0
    """Files of tests that were left out."""
    imports: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Upstream names that are imported by name, `module:name`, and where."""

    @property
    def patches(self) -> tuple[Found, ...]:
        return tuple(one for one in self.found if one.is_patch)
