"""What can be altered in a definition that stays the very same object.

The code and the defaults of a function, and the bases of a class. Attributes of
functions are not looked at: upstream keeps state in them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from ..engine.slot import is_class
from .definitions import functions_of

__all__ = ["Altered", "Insides"]

_CODE = operator.attrgetter("__code__")
_DEFAULTS = operator.attrgetter("__defaults__")
_KEYWORDS = operator.attrgetter("__kwdefaults__")
_BASES: Callable[[Any], tuple[type, ...]] = type.__dict__["__bases__"].__get__


class Altered(NamedTuple):
    """Something of a definition that is another one than it was."""

    name: str
    """The definition's; empty where it is the class itself."""
    what: str
    function: Any
    """None where it is a class."""


class _Made(NamedTuple):
    """What one function was made of."""

    name: str
    """By which it was found first."""
    function: Any
    code: CodeType
    given: tuple[Any, ...] | None
    """Its defaults."""
    keywords: dict[str, Any]
    """A copy: it may be changed in place."""

    @classmethod
    def of(cls, name: str, function: FunctionType) -> _Made:
        return cls(
            name,
            function,
            function.__code__,
            function.__defaults__,
            dict(function.__kwdefaults__ or ()),
        )

    def altered(self, since: _Made) -> Iterator[Altered]:
        code = self.code
        if code is not since.code and code != since.code:
            yield Altered(self.name, "code", self.function)
        if not _same(self.given or (), since.given or ()):
            yield Altered(self.name, "defaults", self.function)
        now, then = self.keywords, since.keywords
        # Their order makes no difference to anybody.
        if now.keys() != then.keys() or any(now[k] is not then[k] for k in then):
            yield Altered(self.name, "keyword defaults", self.function)


@dataclass(frozen=True, slots=True, eq=False)
class Insides:
    """What the definitions of one module or class are made of."""

    made: dict[int, _Made]
    """By the identity of the function."""
    bases: tuple[type, ...]
    found: tuple[list[Any], ...]
    """The same again, as it is compared at C speed."""

    @classmethod
    def of(cls, owner: ModuleType | type, held: Mapping[str, Any]) -> Insides:
        made: dict[int, _Made] = {}
        for name, value in held.items():
            for function in functions_of(value):
                if id(function) not in made:
                    made[id(function)] = _Made.of(name, function)
        return cls._from(made, _BASES(owner) if is_class(owner) else ())

    @classmethod
    def _from(cls, made: dict[int, _Made], bases: tuple[type, ...]) -> Insides:
        functions = [one.function for one in made.values()]
        keywords = [one.keywords for one in made.values() if one.keywords]
        found = (
            functions,
            [one.code for one in made.values()],
            [one.given for one in made.values()],
            list(chain.from_iterable(keywords)),
            list(chain.from_iterable(map(dict.values, keywords))),
        )
        return cls(made, bases, found)

    def is_current(self, owner: ModuleType | type) -> bool:
        """Whether all is still what it was."""
        functions, codes, defaults, names, values = self.found
        if not (
            _are(map(_CODE, functions), codes)
            and _are(map(_DEFAULTS, functions), defaults)
        ):
            return False
        keywords = list(filter(None, map(_KEYWORDS, functions)))
        return (
            list(chain.from_iterable(keywords)) == names
            and _are(chain.from_iterable(map(dict.values, keywords)), values)
            and (not self.bases or _BASES(owner) is self.bases)
        )

    def altered(self, since: Insides) -> Iterator[Altered]:
        """What is another one than it was."""
        for key, made in self.made.items():
            was = since.made.get(key)
            if was is not None:
                yield from made.altered(was)
        if not _same(self.bases, since.bases):
            yield Altered("", "bases", None)

    def carried(self, before: Insides, after: Insides) -> Insides:
        """This with what became of `before` in `after`."""
        if before is after:
            return self
        made = dict(self.made)
        for key, one in after.made.items():
            was = before.made.get(key)
            if was is None or any(one.altered(was)):
                made[key] = one
        same_bases = _same(before.bases, after.bases)
        return self._from(made, self.bases if same_bases else after.bases)


def _are(found: Iterable[Any], known: Iterable[Any]) -> bool:
    """Whether these are, one by one, the very same objects."""
    return all(map(operator.is_, found, known))


def _same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return len(one) == len(other) and _are(one, other)
