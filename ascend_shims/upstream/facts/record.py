"""The facts of one symbol as plain data: what a lock keeps of it."""

from __future__ import annotations

from typing import Literal

import msgspec

from ascend_shims.registry.model import How
from ascend_shims.upstream.facts.body import Returns

__all__ = ["Reached", "Record", "SymbolKind"]

SymbolKind = Literal[
    "function",
    "async",
    "static",
    "classmethod",
    "property",
    "class",
    "value",
    "set",
    "module",
    "external",
]

Reached = Literal["no", "perhaps", "yes"]
"""`perhaps`: by a receiver whose class the source does not show."""


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a release has under one name. Hashes are of 16 hexadecimal digits."""

    kind: SymbolKind
    defined: str
    """`module:Qual.name` where it is defined."""
    text: str = ""
    """Hash of the definition as written."""
    body: str = ""
    """Hash of what it means, whatever its spelling."""
    quiet: str = ""
    """The same without logging, assertions and names of local variables."""
    signature: str = ""
    """Parameters as a caller sees them, with kinds, defaults and annotations."""
    takes: str = ""
    """Of a bound method, its first parameter, which callers do not see."""
    annotation: str | None = None
    """What it is said to return, or of a value to be."""
    returns: Returns | None = None
    """What its `return` statements show, if anything."""
    decorators: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    """Of a class, all it derives from, at any depth, the nearest first."""
    written_bases: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    """Of a dataclass or its like, the declarations in constructor order."""
    methods: tuple[str, ...] = ()
    """Of a class that is subclassed, those that it defines itself."""
    setters: tuple[str, ...] = ()
    """Of an attribute, the methods that set it on `self`."""
    value: str = ""
    users: tuple[str, ...] = ()
    """Of an imported name, what in its module looks it up."""
    reached: Reached = "no"
    """Whether upstream calls it, or looks it up there."""
    passed: tuple[str, ...] = ()
    """Of a constructor, the keywords that upstream's calls pass."""
    callers: tuple[str, ...] | None = None
    """Modules that call or import it, if that was looked up."""
    how: tuple[How, ...] = ()
    """The ways in which it is relied on."""
