"""Two descriptions, made in two interpreters, side by side.

They are walked in parallel, from the modules on, along the names. An object of one
belongs to the one of the other that the same name leads to first; from then on every
name that leads to one has to lead to the other.
"""

from __future__ import annotations

import gc
import marshal
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .inventory.graph import Node, joined
from .inventory.held import Difference

__all__ = ["compared"]


def compared(before: Path, after: Path) -> list[Difference]:
    """What is not the same in the descriptions that two files hold."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        found = [*_Comparison(_read(before), _read(after)).differences()]
        return sorted(found, key=lambda one: one.kind == "imported")
    finally:
        if enabled:
            gc.enable()


class _Description(NamedTuple):
    nodes: list[Node]
    process: int
    """The number of the process; the objects before it are upstream's."""


def _read(file: Path) -> _Description:
    process, *parts = marshal.loads(file.read_bytes())
    return _Description([n for part in parts for n in marshal.loads(part)], process)


class _Comparison:
    def __init__(self, before: _Description, after: _Description) -> None:
        self._before, self._after = before.nodes, after.nodes
        self._partner = {0: 0, before.process: after.process}
        self._taken = {0: 0, after.process: before.process}
        self._origins = {before.process: (0, "process")}
        self._queue = [0, before.process]

    def differences(self) -> Iterator[Difference]:
        for number in self._queue:
            yield from self._compare(number, self._partner[number])

    def _path(self, number: int, *more: str) -> str:
        labels = [*reversed(more)]
        while number:
            number, label = self._origins[number]
            labels.append(label)
        return joined([*reversed(labels)]) if labels else "all"

    def _compare(self, number: int, partner: int) -> Iterator[Difference]:
        text, labels, values = self._before[number]
        other, others, counterparts = self._after[partner]
        if text != other:
            yield Difference(
                self._path(number), "other-kind", f"was {text} and is {other}"
            )
            return
        if labels == others:
            pairs = zip(labels, values, counterparts, strict=True)
        elif text in ("list", "tuple"):
            what = f"has {len(others)} elements instead of {len(labels)}"
            yield Difference(self._path(number), "other-value", what)
            return
        else:
            after = dict(zip(others, counterparts, strict=True))
            yield from self._names(
                number, dict(zip(labels, values, strict=True)), after
            )
            known = [label in after for label in labels]
            pairs = zip(
                [label for label, here in zip(labels, known, strict=True) if here],
                [value for value, here in zip(values, known, strict=True) if here],
                [after[label] for label in labels if label in after],
                strict=True,
            )
        for label, value, counterpart in pairs:
            if isinstance(value, str) or isinstance(counterpart, str):
                if value != counterpart:
                    yield self._value(number, label, value, counterpart)
                continue
            met = self._partner.get(value)
            if met is None and counterpart not in self._taken:
                self._partner[value] = counterpart
                self._taken[counterpart] = value
                self._origins[value] = (number, label)
                self._queue.append(value)
            elif met != counterpart:
                yield self._alias(number, label, value, counterpart)

    def _names(
        self, number: int, before: dict[str, int | str], after: dict[str, int | str]
    ) -> Iterator[Difference]:
        text = self._before[number][0]
        for label, value in before.items():
            # Which modules there are is compared with `sys.modules`.
            if label not in after and text != "elsewhere":
                said = _text(self._before, value)
                yield Difference(
                    self._path(number, label), "gone", f"is gone; it was {said}"
                )
        # What the toolkit itself is made of is imported there and not here.
        new = {} if text in ("modules", "elsewhere") else after
        for label, value in new.items():
            if label not in before:
                said = _text(self._after, value)
                is_module = said.startswith("module ")
                kind = "imported" if is_module and said.endswith(label) else "new"
                what = "is imported there" if kind != "new" else f"is new: {said}"
                yield Difference(self._path(number, label), kind, what)
        old = [label for label in before if label in after]
        now = [label for label in after if label in before]
        if old != now:
            first = next(o for o, n in zip(old, now, strict=True) if o != n)
            what = f"names stand in another order, from {first!r} on"
            yield Difference(self._path(number), "order", what)

    def _value(
        self, number: int, label: str, value: int | str, counterpart: int | str
    ) -> Difference:
        was, now = _text(self._before, value), _text(self._after, counterpart)
        kind = "other-value" if type(value) is type(counterpart) else "other-kind"
        return Difference(self._path(number, label), kind, f"was {was} and is {now}")

    def _alias(
        self, number: int, label: str, value: int, counterpart: int
    ) -> Difference:
        path = self._path(number, label)
        if value in self._partner:
            what = f"is no longer the very object of {self._path(value)}"
        else:
            same = self._path(self._taken[counterpart])
            what = f"is the very object of {same}, and was not"
        return Difference(path, "alias", what)


def _text(nodes: list[Node], value: int | str) -> str:
    return value if isinstance(value, str) else nodes[value][0]
