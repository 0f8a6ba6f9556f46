"""All that is reachable from upstream's modules, walked once, by what comes first.

A graph of objects: each stands there once, with its text and its named parts, so that
which name is the very same object as which other is part of what is described.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from .parts import Derived, Kinds
from .plain import CALL_STACK, SCALARS, note_homes, note_memory, scalar
from .raw import is_class, is_module, namespace
from .watch import Watch

__all__ = ["VARIES", "Node", "Walk", "joined", "modules_of", "quiet"]

HERE_ONLY = ("at-fork callbacks", "torch seed")
"""Surroundings that are compared inside one process only. The first is added to by
libraries, also by some that the toolkit imports; the other is random."""

VARIES = "varies from process to process"

Node = tuple[str, list[str], list["int | str"]]
"""Text, names of the parts, and for each part its number, or its text if plain."""

_APART = sys.maxsize


@contextmanager
def quiet() -> Iterator[None]:
    """No garbage collection meanwhile: what is made here stays, and there is much."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def modules_of(roots: tuple[str, ...]) -> dict[str, Any]:
    """The loaded modules of some top-level packages, by name."""
    wanted = frozenset(roots)
    return {
        name: module
        for name, module in sorted(sys.modules.items())
        if is_module(module) and name.partition(".")[0] in wanted
    }


def _homes(modules: Mapping[str, Any], roots: tuple[str, ...]) -> Iterator[str]:
    """The folders that these packages are in."""
    for root in roots:
        file = namespace(modules[root]).get("__file__") if root in modules else None
        if type(file) is str and file.endswith("/__init__.py"):
            yield file.removesuffix(f"/{root}/__init__.py")


def joined(labels: list[str]) -> str:
    """The path that leads along `labels`: `module:Qual.name.__defaults__[0]`."""
    for start in ("process", "elsewhere", "classes"):
        if labels[0] == start:
            labels = labels[1:] or labels
    path, *rest = labels
    for position, label in enumerate(rest):
        if position == 0 and ":" not in path:
            path += f":{label}"
        elif label.startswith(("[", "<", ".")):
            path += label
        elif label.isidentifier():
            path += f".{label}"
        else:
            path += f"[{label}]"
    return path


def _at(path: str) -> Any:
    """What a path leads to in the raw namespaces, or None."""
    module, _, qualname = path.partition(":")
    one: Any = sys.modules.get(module)
    for name in qualname.split("."):
        if not (is_module(one) or is_class(one)):
            return None
        one = namespace(one).get(name)
    return None if id(type(one)) in SCALARS else one


class Extent(NamedTuple):
    """How much was looked at."""

    modules: int
    objects: int
    entries: int
    by_root: dict[str, int]


class Walk:
    """The objects, numbered in the order in which they were met."""

    def __init__(
        self,
        roots: tuple[str, ...],
        surroundings: Derived,
        varying: Mapping[str, str] | None = None,
        more: Mapping[str, Derived] | None = None,
    ) -> None:
        """`more` is described with the surroundings, and looked at by others.

        `varying` names what is known to differ between two processes anyway, as
        `module:name`: it is looked at here, and left out of what is described."""
        self.kinds = Kinds(roots)
        modules = modules_of(roots)
        self.modules = list(modules)
        self.surroundings = surroundings
        start = Derived("upstream", [*modules], [*modules.values()])
        self.objects: list[Any] = [start]
        self.labels: list[list[str]] = []
        self.values: list[list[Any]] = []
        self.origins: list[tuple[int, str]] = [(-1, "")]
        """By number: the object through which it was met first, and the name there."""
        self._numbers = {id(self.objects[0]): 0}
        apart = {path: _at(path) for path in varying or ()}
        self.varying = {p: one for p, one in apart.items() if one is not None}
        """What is left out of the description, by path."""
        # In nobody's order yet, so that the walk passes by.
        self._numbers.update((id(one), _APART) for one in self.varying.values())
        note_memory()
        note_homes(_homes(modules, roots))
        with quiet():
            self._walk()
            self.upstream = len(self.objects)
            """So many belong to upstream; the next one is the process."""
            parts = dict(zip(surroundings.labels, surroundings.values, strict=True))
            parts = {k: v for k, v in parts.items() if k not in HERE_ONLY}
            parts.update(more or {})
            process = Derived("process", [*parts], [*parts.values()])
            self._start(process, "process")
            self._walk()
            self.described = len(self.objects)
            """So many of the objects are described; the others vary."""
            for path, one in self.varying.items():
                self._start(one, path)
            self._walk()
            self.watch = Watch(self.objects, self.labels, self.values, self.kinds)

    def _start(self, one: Any, label: str) -> None:
        self._numbers[id(one)] = len(self.objects)
        self.objects.append(one)
        self.origins.append((0, label))

    def _walk(self) -> None:
        parts = self.kinds.parts
        objects, origins, numbers = self.objects, self.origins, self._numbers
        for current in range(len(self.labels), sys.maxsize):
            if current == len(objects):
                break
            labels, values = parts(objects[current])
            self.labels.append(labels)
            self.values.append(values)
            for label, value in zip(labels, values, strict=True):
                if id(type(value)) not in SCALARS and id(value) not in numbers:
                    numbers[id(value)] = len(objects)
                    objects.append(value)
                    origins.append((current, label))

    @property
    def extent(self) -> Extent:
        by_root: dict[str, int] = {}
        roots: list[str] = [""]
        for number, (origin, label) in enumerate(self.origins):
            if number:
                root = roots[origin] or label.partition(":")[0].partition(".")[0]
                roots.append(root)
                by_root[root] = by_root.get(root, 0) + len(self.labels[number])
        total = sum(by_root.values())
        return Extent(len(self.modules), len(self.objects), total, by_root)

    def number(self, value: Any) -> int:
        return self._numbers[id(value)]

    def path(self, number: int, *more: str) -> str:
        labels = [*reversed(more)]
        while number > 0:
            number, label = self.origins[number]
            labels.append(label)
        return joined([*reversed(labels)])

    def describe(self) -> list[Node]:
        """Every object in words and numbers that are the same in each process that
        holds the same."""
        with quiet():
            return [self._node(number) for number in range(self.described)]

    def _node(self, number: int) -> Node:
        text = self.kinds.text(self.objects[number])
        numbers, end = self._numbers, self.described
        parts: list[int | str] = [
            scalar(v)
            if id(type(v)) in SCALARS
            else n
            if (n := numbers[id(v)]) < end
            else VARIES
            for v in self.values[number]
        ]
        if parts and text in ("list", "tuple") and set(parts) == {CALL_STACK}:
            return CALL_STACK, [], []
        return text, self.labels[number], parts
