"""What an expression of the scanned code may stand for, as far as a scan cares."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TypeAlias, Union

from .found import Gate

__all__ = [
    "EVERY_MODULE",
    "NOTHING",
    "Local",
    "Modules",
    "OwnClass",
    "Param",
    "Ref",
    "Seq",
    "Space",
    "Table",
    "Test",
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

    `cut`: the part before (`head`) or after (`tail`) the last dot of its text.
    """

    name: str
    """With the function that it is of, `module@set_attribute`; empty: `path` begins
    with a name that is known."""
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


@dataclass(eq=False)
class OwnClass:
    """A class of the scanned file, or an instance of it."""

    qualname: str
    names: dict[str, Values] = field(default_factory=dict)
    """What is defined in it, and set of its instances."""
    asks: dict[str, tuple[int, bool]] = field(default_factory=dict)
    """Private members that its methods read of it: line, and whether to call."""


Value: TypeAlias = Union[  # noqa: UP007 - recursive with the classes above
    Ref, Text, Seq, Table, Space, Modules, VersionOf, Test, Param, Local, OwnClass
]
Values: TypeAlias = tuple[Value, ...]
"""Alternatives, of which the code's conditions choose one."""

NOTHING: Values = ()

EVERY_MODULE = Param("*", is_module=True)
"""Each of the modules that are loaded, one after the other."""

_MOST = 8


def merged(*several: Values) -> Values:
    """All alternatives, each once."""
    return tuple(dict.fromkeys(v for values in several for v in values))[:_MOST]
