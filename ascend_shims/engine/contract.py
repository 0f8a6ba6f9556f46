"""Whether a replacement can take every call that its target can take.

Decided on signatures, before anything is written, so that a replacement written
against an older release is refused at apply time and not at its first call.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from inspect import Parameter
from types import FunctionType
from typing import Any

import msgspec

from ..errors import ShimsError
from .nature import nature

__all__ = ["BrokenContractError", "check_calls", "check_nature"]

_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)

_DEEP = 64
"""Wrappers around a function that are looked through; a circle ends here."""


class BrokenContractError(ShimsError):
    """Upstream is not what a patch relies on; nothing was written."""


class _Taken(msgspec.Struct, frozen=True):
    """A parameter, as far as calls depend on it."""

    name: str
    kind: Any
    """One of `inspect.Parameter`'s."""
    optional: bool = False


_SAYS_ITSELF = ("__signature__", "_partialmethod", "__partialmethod__")
"""Attributes by which a function has another signature than its code tells."""


def _parameters(function: Any) -> list[_Taken] | None:
    """As `inspect.signature` has them. None where they are unknowable."""
    plain = _plain(function)
    if plain is not None:
        return _in_code(plain)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        # Some built-ins have no signature; then there is nothing to compare.
        return None
    return [_Taken(p.name, p.kind, p.default is not p.empty) for p in parameters]


def _plain(function: Any) -> FunctionType | None:
    """The function whose code tells the signature, where it is that easy."""
    for _ in range(_DEEP):
        if type(function) is not FunctionType:
            return None
        said = function.__dict__
        if any(name in said for name in _SAYS_ITSELF):
            return None
        if "__wrapped__" not in said:
            return function
        function = said["__wrapped__"]
    return None


def _in_code(function: FunctionType) -> list[_Taken]:
    """Read from the code: a sixth of what `inspect.signature` takes, which makes
    more of it than is asked here, and two are read for every patch."""
    code = function.__code__
    count, named = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    required = count - len(function.__defaults__ or ())
    defaults = function.__kwdefaults__ or {}
    found = [
        _Taken(name, _POSITIONAL[at >= code.co_posonlyargcount], at >= required)
        for at, name in enumerate(names[:count])
    ]
    rest = names[count + named :]
    if code.co_flags & inspect.CO_VARARGS:
        found.append(_Taken(rest[0], Parameter.VAR_POSITIONAL))
        rest = rest[1:]
    found += [
        _Taken(name, Parameter.KEYWORD_ONLY, name in defaults)
        for name in names[count : count + named]
    ]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        found.append(_Taken(rest[0], Parameter.VAR_KEYWORD))
    return found


def _filled(parameters: list[_Taken], count: int) -> list[_Taken]:
    """The leading parameters, at most `count`, that take a position."""
    leading = parameters[:count]
    return list(itertools.takewhile(lambda one: one.kind in _POSITIONAL, leading))


class _Taker:
    """What the replacement accepts, position by position and name by name."""

    def __init__(self, parameters: list[_Taken], target: list[_Taken]) -> None:
        self.spoken_for = {p.name for p in target if p.kind in _NAMED}
        self.positions = [p for p in parameters if p.kind in _POSITIONAL]
        self.names = {p.name: p for p in parameters if p.kind in _NAMED}
        self.rest = any(p.kind is Parameter.VAR_POSITIONAL for p in parameters)
        self.others = any(p.kind is Parameter.VAR_KEYWORD for p in parameters)

    def at(self, position: int, name: str, keyword_too: bool) -> str | None:
        """What is wrong with passing `name` at `position`, if anything."""
        if position >= len(self.positions):
            if not self.rest or (keyword_too and name in self.names):
                return f"does not take parameter `{name}` by position"
            if keyword_too and not self.others:
                return f"does not take parameter `{name}` by keyword"
            return None
        mine = self.positions[position]
        if not keyword_too:
            clash = mine.name != name and mine.name in self.spoken_for
            if clash and mine.kind is not Parameter.POSITIONAL_ONLY:
                return (
                    f"takes `{name}` for parameter `{mine.name}`, "
                    "which callers may pass, too"
                )
            return None
        if mine.kind is Parameter.POSITIONAL_ONLY:
            # It might go to `**kwargs`, where nobody looks for it.
            return f"does not take parameter `{name}` by keyword"
        if mine.name == name:
            return None
        if name in self.names:
            return (
                f"takes parameter `{name}` at another position: "
                f"`{mine.name}` stands in its place"
            )
        return f"does not take parameter `{name}`: `{mine.name}` stands in its place"

    def beyond(self, position: int, name: str) -> str | None:
        """What is wrong with any number of positions from `position` on."""
        if not self.rest:
            return f"does not take further positions (`*{name}`)"
        if position < len(self.positions):
            mine = self.positions[position].name
            return f"takes one of `*{name}` for parameter `{mine}`"
        return None

    def named(self, name: str) -> str | None:
        if name in self.names or self.others:
            return None
        return f"does not take parameter `{name}`"


def _complaint(target: list[_Taken], replacement: list[_Taken]) -> str | None:
    taker = _Taker(replacement, target)
    served: set[str] = set()
    position = 0
    for parameter in target:
        wrong: str | None = None
        mine: _Taken | None = None
        if parameter.kind in _POSITIONAL:
            # Nobody passes `self` by keyword, so its name is free.
            keyword_too = parameter.kind is Parameter.POSITIONAL_OR_KEYWORD and not (
                position == 0 and parameter.name in ("self", "cls")
            )
            wrong = taker.at(position, parameter.name, keyword_too)
            if position < len(taker.positions):
                mine = taker.positions[position]
            position += 1
        elif parameter.kind is Parameter.KEYWORD_ONLY:
            wrong = taker.named(parameter.name)
            mine = taker.names.get(parameter.name)
        elif parameter.kind is Parameter.VAR_POSITIONAL:
            wrong = taker.beyond(position, parameter.name)
        elif parameter.kind is Parameter.VAR_KEYWORD and not taker.others:
            wrong = f"does not take further keywords (`**{parameter.name}`)"
        if wrong:
            return wrong
        if mine is None:
            continue
        served.add(mine.name)
        if parameter.optional and not mine.optional:
            return f"requires parameter `{mine.name}`, which callers may leave out"
    for extra in [*taker.positions, *taker.names.values()]:
        if extra.name not in served and not extra.optional:
            return f"requires parameter `{extra.name}`, which no caller passes"
    return None


def check_calls(
    replacement: Callable[..., Any], target: Callable[..., Any], *, skip: int, said: str
) -> None:
    """Raise `BrokenContractError` if a call that `target` allows cannot be bound.

    `skip` leading parameters of `replacement` are filled by the engine (the
    `call` of a wrapper). `said` names both in the message.
    """
    wanted, offered = _parameters(target), _parameters(replacement)
    if wanted is None or offered is None:
        return
    filled = _filled(offered, skip)
    complaint = _clash(filled, wanted) or _complaint(wanted, offered[len(filled) :])
    if complaint:
        allowed = _spell(target)
        raise BrokenContractError(f"{said} {complaint}; upstream allows {allowed}")


def _clash(filled: list[_Taken], wanted: list[_Taken]) -> str | None:
    """A name by which callers may pass something and which the engine fills."""
    names = {p.name for p in wanted if p.kind in _NAMED}
    for mine in filled:
        if mine.kind is Parameter.POSITIONAL_OR_KEYWORD and mine.name in names:
            return (
                f"takes parameter `{mine.name}` for what it stands in front of; "
                f"write `{mine.name}, /`"
            )
    return None


def _spell(function: Callable[..., Any]) -> str:
    parameters = inspect.signature(function).parameters.values()
    bare = [p.replace(annotation=Parameter.empty) for p in parameters]
    return str(inspect.Signature(bare))


def check_nature(replacement: Any, target: Any, *, said: str) -> None:
    """Raise `BrokenContractError` if one returns at once and the other is awaited."""
    mine, upstream = nature(replacement), nature(target)
    if mine is not upstream:
        raise BrokenContractError(
            f"{said} is {mine.value}, upstream's is {upstream.value}"
        )
