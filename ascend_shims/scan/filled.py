"""What a target that depends on parameters is, once something is handed over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from .raw import Call
from .values import (
    NOTHING,
    Param,
    Ref,
    Seq,
    Table,
    Text,
    Value,
    Values,
    merged,
)
from .views import dotted, member

__all__ = ["Given", "fill", "handed_over", "of_object"]

Given = Mapping[str, Values]
"""By parameter, as `Param` names it: what is handed over."""


def handed_over(
    call: Call, callee: str, names: tuple[str, ...], nested: Mapping[str, str]
) -> Given:
    """What a call hands over.

    Args:
        callee: `module:function`.
        names: its parameters.
        nested: of the functions in it: the first parameter of each.
    """
    plain = [name for name in names if not name.startswith("*")]
    ordered = [name for name in names if not name.startswith("**")]
    found: dict[str, Values] = {}
    rest: list[Values] = []
    for index, values in enumerate(call.positional):
        if index < len(ordered) and not ordered[index].startswith("*") and not rest:
            found[ordered[index]] = values
        else:
            rest.append(values)
    more: list[tuple[Values, Values]] = []
    for name, values in call.keywords:
        if name in plain:
            found[name] = values
        else:
            more.append(((Text(name),), values))
    for name in names:
        if name.startswith("**"):
            found[name] = (Table(tuple(more)),)
        elif name.startswith("*"):
            found[name] = (Seq(tuple(rest)),)
    given = {f"{name}@{callee}": values for name, values in found.items()}
    if call.inner:
        given |= {f"{first}@{of}": call.inner for of, first in nested.items()}
    return given


def of_object(
    call: Call,
    callee: str,
    names: tuple[str, ...],
    attribute: Callable[[str], Values],
) -> Given:
    """The same of a method, where the arguments are attributes of its object."""
    found: dict[str, Values] = {}
    assert call.of is not None
    size = len(call.of.path)
    for name, values in zip(names, call.positional, strict=False):
        for value in values:
            if isinstance(value, Param) and value.name == call.of.name:
                first, *more = value.path[size:] or ("",)
                known = attribute(first) if isinstance(first, str) else NOTHING
                for part in more:
                    known = _taken(known, part, {})
                found[f"{name}@{callee}"] = known
    return found


def fill(param: Param, given: Given) -> Values:
    """What a parameter, and what is taken of it, stands for."""
    values: Values
    if not param.name:
        known: list[str] = []
        path = list(param.path)
        while path and isinstance(path[0], str):
            known.append(str(path.pop(0)))
        values = (Ref(tuple(known)),)
    elif param.name in given:
        path = list(param.path)
        values = _cut(given[param.name], param.cut)
    else:
        path = list(param.path)
        values = (replace(param, path=()),)
    for part in path:
        values = _taken(values, part, given)
    if param.is_module:
        values = tuple(
            replace(v, is_module=True) if isinstance(v, Param) else v for v in values
        )
    return values


def _taken(values: Values, part: Param | str, given: Given) -> Values:
    found: list[Value] = []
    names: Values = (Text(part),) if isinstance(part, str) else fill(part, given)
    for owner in values:
        if isinstance(owner, Text) and dotted(owner.value):
            owner = Ref(dotted(owner.value))
        for name in names:
            if isinstance(name, Ref):
                # A dotted name that was handed over is what it spells.
                name = Text(".".join(name.parts))
            if isinstance(name, Text) and dotted(name.value):
                taken: Values = (owner,)
                for one in dotted(name.value):
                    taken = member(taken, one)
                found += taken
            elif isinstance(name, Param) and isinstance(owner, Param):
                found.append(owner.at(name))
            elif isinstance(name, Param) and isinstance(owner, Ref):
                found.append(Param("", (*owner.parts, name)))
    return merged(tuple(found))


def _cut(values: Values, cut: str) -> Values:
    if not cut:
        return values
    found: list[Value] = []
    for value in values:
        if isinstance(value, Param) and not value.cut:
            found.append(replace(value, cut=cut))
        elif cut in ("head", "tail"):
            found += _half(value, cut)
        elif isinstance(value, Seq) and cut == "each":
            found += [v for item in value.items for v in item]
        elif isinstance(value, Table):
            at = 1 if cut == "value" else 0
            found += [v for pair in value.items for v in pair[at]]
    return tuple(dict.fromkeys(found))


def _half(value: Value, cut: str) -> Values:
    parts = value.parts if isinstance(value, Ref) else ()
    if isinstance(value, Text):
        parts = dotted(value.value)
    if not parts:
        return NOTHING
    return (Text(".".join(parts[:-1] if cut == "head" else parts[-1:])),)
