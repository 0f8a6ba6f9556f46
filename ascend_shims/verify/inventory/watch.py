"""A quick look at many objects: which of them may have changed?

Half a million objects are looked at after each gap. Most are of a few kinds, for which
a comparison in C tells that nothing has changed; what fails it is looked at closely by
others. What cannot change (tuples, code, kinds of hints) is not looked at.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from operator import is_
from typing import Any

from .parts import FUNCTION, Derived, Kinds, of_function
from .raw import is_class, is_module, mro, namespace

__all__ = ["Watch"]

_FIXED = frozenset(
    map(
        id,
        (
            tuple,
            frozenset,
            types.CodeType,
            types.BuiltinFunctionType,
            types.MethodType,
            types.MethodWrapperType,
            types.WrapperDescriptorType,
            types.MethodDescriptorType,
            types.ClassMethodDescriptorType,
            types.GetSetDescriptorType,
            types.MemberDescriptorType,
            types.GenericAlias,
            types.UnionType,
            types.MappingProxyType,
            Derived,
        ),
    )
)
"""Exactly these. What a `Derived` was made from is looked at instead."""

_ABSENT = object()
_DICTIONARIES = [
    place
    for place, name in enumerate(FUNCTION)
    if name in ("__dict__", "__annotations__")
]
"""Where a function has dictionaries, which may have been empty."""

Parts = tuple[list[str], list[Any]]


class Watch:
    """Objects with what they consisted of, sorted by how they are compared."""

    def __init__(
        self,
        objects: list[Any],
        labels: list[list[str]],
        values: list[list[Any]],
        kinds: Kinds,
    ) -> None:
        self._objects, self._labels, self._values = objects, labels, values
        self._types = [*map(type, objects)]
        self._dicts: list[tuple[int, Any, list[Any]]] = []
        self._lists: list[tuple[int, Any]] = []
        self._cells: list[tuple[int, Any, Any]] = []
        self._functions: list[tuple[int, Any, tuple[Any, ...]]] = []
        self._classes: list[tuple[int, Any, list[Any]]] = []
        self._others: list[int] = []
        for number, kind in enumerate(self._types):
            if id(kind) not in _FIXED and not kinds.is_empty(kind):
                self._sort(number, kind)

    def _sort(self, number: int, kind: type) -> None:
        one = self._objects[number]
        if kind is dict:
            self._dicts.append((number, one, [*one]))
        elif kind is list:
            self._lists.append((number, one))
        elif kind is types.FunctionType:
            self._functions.append((number, one, of_function(one)))
        elif kind is types.CellType:
            self._cells.append((number, one, _contents(one)))
        elif (is_class(one) or is_module(one)) and not self._labels[number]:
            return  # none of upstream's
        elif is_class(one) and "<registered>" not in self._labels[number]:
            self._classes.append((number, one, [*namespace(one)]))
        else:
            self._others.append(number)

    def kind(self, number: int) -> type:
        """The class that an object was of."""
        return self._types[number]

    def suspects(self, parts: Callable[[Any], Parts]) -> Iterator[int]:
        """The numbers of the objects that may have changed."""
        if not all(map(is_, map(type, self._objects), self._types)):
            for number, (one, kind) in enumerate(
                zip(self._objects, self._types, strict=True)
            ):
                if type(one) is not kind:
                    yield number
        yield from self._containers()
        yield from self._code()
        for number, cls, keys in self._classes:
            held, before = namespace(cls), self._values[number]
            if (
                len(held) != len(keys)
                or not all(map(is_, held, keys))
                or not all(map(is_, held.values(), before))
                or mro(cls) is not before[-1]
            ):
                yield number
        for number in self._others:
            one = self._objects[number]
            if type(one) is not self._types[number]:
                continue
            labels, values = parts(one)
            before = self._values[number]
            if (
                len(values) != len(before)
                or not all(map(is_, values, before))
                or labels != self._labels[number]
            ):
                yield number

    def _containers(self) -> Iterator[int]:
        values = self._values
        for number, one, keys in self._dicts:
            if (
                len(one) != len(keys)
                or not all(map(is_, one, keys))
                or not all(map(is_, one.values(), values[number]))
            ):
                yield number
        for number, one in self._lists:
            before = values[number]
            if len(one) != len(before) or not all(map(is_, one, before)):
                yield number

    def _code(self) -> Iterator[int]:
        for number, one, before in self._functions:
            now = of_function(one)
            if not all(map(is_, now, before)) or any(
                bool(now[place]) is (self._values[number][place] is None)
                for place in _DICTIONARIES
            ):
                yield number
        for number, one, contents in self._cells:
            if _contents(one) is not contents:
                yield number


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _ABSENT
