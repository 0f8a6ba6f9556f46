"""What an expression of the scanned code may stand for, as far as a scan cares."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, Union

from .found import Gate

if TYPE_CHECKING:
    from .scopes import Scope

__all__ = [
    "EVERY_MODULE",
    "NOTHING",
    "Instance",
    "Local",
    "Modules",
    "OwnClass",
    "Param",
    "Partial",
    "Ref",
    "Returned",
    "Seq",
    "SourceOf",
    "Space",
    "Table",
    "Test",
    "UNTOLD",
    "Text",
    "Value",
    "Values",
    "VersionOf",
    "merged",
]


@dataclass(frozen=True)
class Ref:
    """A dotted name that an import leads to: `vllm.v1.outputs.ModelRunnerOutput`."""

    parts: tuple[str, ...]


@dataclass(frozen=True)
class Text:
    value: str


@dataclass(frozen=True)
class Seq:
    """A list, tuple or set that is written out."""

    items: tuple[Values, ...]


@dataclass(frozen=True)
class Table:
    """A mapping that is written out."""

    items: tuple[tuple[Values, Values], ...]


@dataclass(frozen=True)
class Space:
    """The namespace of something: its `__dict__`."""

    of: Ref


@dataclass(frozen=True)
class Modules:
    """`sys.modules`."""


@dataclass(frozen=True)
class VersionOf:
    """The version of a package, however it was asked for."""

    package: str


@dataclass(frozen=True)
class Test:
    """What a condition says, kept in a name."""

    true: tuple[Gate, ...]
    false: tuple[Gate, ...]


@dataclass(frozen=True)
class Param:
    """A parameter of a function that is being read, and what is taken of it.

    `cut`: the part before (`head`) or after (`tail`) the last dot of its text; of a
    list `each` of what is in it, of a mapping each `key` or `value`.
    """

    name: str
    """With the function that it is of, `module@plug.helpers:set_attribute`; empty:
    `path` begins with a name that is known."""
    path: tuple[Param | str, ...] = ()
    cut: str = ""
    is_module: bool = False
    """It names a module, or is one."""

    def at(self, name: Param | str) -> Param:
        """An attribute of it."""
        return Param(self.name, (*self.path, name), self.cut, self.is_module)


@dataclass(frozen=True, eq=False)
class Local:
    """A function of the scanned file."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    qualname: str
    scope: Scope | None = field(default=None, repr=False)
    """What is around it."""


@dataclass(eq=False)
class OwnClass:
    """A class of the scanned file, or an instance of it."""

    qualname: str
    names: dict[str, Values] = field(default_factory=dict)
    """What is defined in it, and set of its instances."""
    asks: dict[str, tuple[int, bool]] = field(default_factory=dict)
    """Private members that its methods read of it: line, and whether to call."""
    module: tuple[str, ...] = ()
    """Of the file that it is in."""
    bases: Values = ()


@dataclass(frozen=True)
class Instance:
    """An object of a class of upstream, as an annotation says."""

    of: Ref


@dataclass(frozen=True, eq=False)
class Partial:
    """`setattr`, by another name and perhaps with its first arguments."""

    name: str
    given: tuple[ast.expr, ...] = ()


@dataclass(frozen=True)
class SourceOf:
    """The text of something, however it was changed since."""

    line: int
    """Where it was read."""


@dataclass(frozen=True)
class Returned:
    """What a function of the scanned code gives for some arguments.

    It is read when something is done to it, which is rarely: until then nobody needs
    to know.
    """

    function: Local | Ref | OwnClass
    """Of an `OwnClass`: its method `method`, or that of one of its bases."""
    arguments: tuple[Values, ...]
    keywords: tuple[tuple[str, Values], ...] = ()
    me: OwnClass | None = None
    """The object whose method it is."""
    method: str = ""
    path: tuple[str, ...] = ()
    """What is taken of it: attributes, and items by their numbers."""


Value: TypeAlias = Union[  # noqa: UP007 - recursive with the classes above
    Ref,
    Text,
    Seq,
    Table,
    Space,
    Modules,
    VersionOf,
    Test,
    Param,
    Local,
    OwnClass,
    Instance,
    Partial,
    SourceOf,
    Returned,
]
Values: TypeAlias = tuple[Value, ...]
"""Alternatives, of which the code's conditions choose one."""

NOTHING: Values = ()

EVERY_MODULE = Param("*", is_module=True)
"""Each of the modules that are loaded, one after the other."""

UNTOLD = "__untold__"
"""Stands for an attribute whose name nothing tells."""

_MOST = 8


def merged(*several: Values) -> Values:
    """All alternatives, each once."""
    if len(several) == 1 and len(several[0]) < 2:
        return several[0]
    return tuple(dict.fromkeys(v for values in several for v in values))[:_MOST]
