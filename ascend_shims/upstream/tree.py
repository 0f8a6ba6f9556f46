"""A source as a tree of modules, each parsed at most once and only when asked for.

What cannot be read or parsed is a `Problem` of the tree, never an exception: one
bad file must not hide the verdicts on all others.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from ascend_shims.upstream.corpus import Corpus
from ascend_shims.upstream.facts.scope import Scope, scope_of
from ascend_shims.upstream.index import Index, Place, index_of
from ascend_shims.upstream.source import Source, SourceError

__all__ = ["Module", "Problem", "Tree", "module_name"]

_LARGEST = 4 << 20
"""Bytes. Larger files are generated tables or an attack, and are not parsed."""

_KEPT = 2 << 20
"""Bytes of source whose syntax trees are kept; a tree takes about 15 times that."""


@dataclass(frozen=True)
class Problem:
    """A file that could not be used, and why."""

    path: str
    reason: str


@dataclass(eq=False, repr=False)
class Module:
    """One parsed file."""

    name: str
    path: str
    text: bytes = field(repr=False)
    tree: ast.Module = field(repr=False)
    scope: Scope = field(init=False)
    classes: dict[str, object] = field(default_factory=dict)
    """Views of its classes, kept by `facts.classes`."""

    def __post_init__(self) -> None:
        self.scope = scope_of(self.tree.body)

    @property
    def is_package(self) -> bool:
        return self.path.endswith("__init__.py")

    @cached_property
    def index(self) -> Index:
        """Calls, look-ups and assignments of the whole file."""
        return index_of(self.tree)

    def held(self, name: str) -> list[tuple[ast.expr, Place]]:
        """Targets that are assigned the thing called `name`, and where."""
        return self._held.get(name, [])

    @cached_property
    def _held(self) -> dict[str, list[tuple[ast.expr, Place]]]:
        found: dict[str, list[tuple[ast.expr, Place]]] = {}
        for entries in self.index.assigned.values():
            for target, value, place in entries:
                choices = [value]
                if isinstance(value, ast.IfExp):
                    choices = [value.body, value.orelse]
                for choice in choices:
                    if isinstance(choice, ast.Name):
                        found.setdefault(choice.id, []).append((target, place))
        return found

    @cached_property
    def lines(self) -> list[bytes]:
        return self.text.splitlines()

    def absolute(self, module: str | None, level: int) -> str:
        """The absolute name behind `from ..module import x` written in here."""
        if not level:
            return module or ""
        parts = self.name.split(".")
        drop = level - 1 if self.is_package else level
        base = parts[: len(parts) - drop] if drop else parts
        return ".".join([*base, module] if module else base)


def module_name(path: str) -> str:
    """`vllm/v1/__init__.py` -> `vllm.v1`."""
    parts = path.removesuffix(".py").split("/")
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts)


class Tree:
    """All modules of one release."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.label = source.label
        self._paths = {module_name(path): path for path in source.paths()}
        self._texts: dict[str, bytes] = {}
        self._modules: OrderedDict[str, Module] = OrderedDict()
        self._kept = 0
        self._problems: dict[str, Problem] = {}
        self._mentions: dict[str, tuple[str, ...]] = {}
        self.memo: dict[object, object] = {}
        """Answers about this tree that readers of it keep, by their own keys."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What was met so far; a file that nobody asked for is not among it."""
        return tuple(self._problems.values())

    @property
    def modules(self) -> Iterable[str]:
        return self._paths.keys()

    def __contains__(self, module: object) -> bool:
        return module in self._paths

    def path(self, module: str) -> str | None:
        return self._paths.get(module)

    def is_package(self, module: str) -> bool:
        return module in self._paths or any(
            name.startswith(f"{module}.") for name in self._paths
        )

    def text(self, module: str) -> bytes:
        """The bytes of a module; empty where there is none or it is unreadable."""
        if "_corpus" in self.__dict__:
            return self._corpus.text(module)
        if module not in self._texts:
            self._texts[module] = self._read(module)
        return self._texts[module]

    def _read(self, module: str) -> bytes:
        path = self._paths.get(module)
        if path is None:
            return b""
        if module in self._texts:
            return self._texts.pop(module)
        try:
            text = self._source.read(path)
        except SourceError as error:
            self._problems[path] = Problem(path, str(error))
            return b""
        if len(text) > _LARGEST:
            reason = f"{len(text)} bytes are more than are read of one file"
            self._problems[path] = Problem(path, reason)
            return b""
        return text

    def module(self, name: str) -> Module | None:
        """The parsed module, or `None` where it is absent or cannot be parsed."""
        known = self._modules.get(name)
        if known is not None:
            self._modules.move_to_end(name)
            return known
        path = self._paths.get(name)
        if path is None or path in self._problems:
            return None
        text = self.text(name)
        if path in self._problems:
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                module = Module(name, path, text, ast.parse(text, path))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            reason = f"cannot be parsed: {error}"
            self._problems.setdefault(path, Problem(path, reason))
            return None
        self._modules[name] = module
        self._kept += len(text)
        while self._kept > _KEPT and len(self._modules) > 1:
            _, dropped = self._modules.popitem(last=False)
            self._kept -= len(dropped.text)
            # Its answers hold the dropped module's nodes.
            self.memo.clear()
        return module

    def mentions(self, word: str, within: Iterable[str] | None = None) -> list[str]:
        """Modules whose text has `word` as a whole word.

        A search of text, not of syntax: it tells what is worth parsing.
        """
        if within is not None:
            needle = word.encode()
            pattern = re.compile(rb"(?<!\w)" + re.escape(needle) + rb"(?!\w)")
            texts = ((name, self.text(name)) for name in within)
            return [n for n, text in texts if needle in text and pattern.search(text)]
        if word not in self._mentions:
            self._mentions[word] = tuple(self._corpus.holding(word.encode()))
        return list(self._mentions[word])

    @cached_property
    def _corpus(self) -> Corpus:
        # A remote source reads all of it in a few requests, or each file in one.
        prefetch = getattr(self._source, "prefetch", None)
        if prefetch is not None:
            prefetch(list(self._paths.values()))
        return Corpus([(name, self._read(name)) for name in self._paths])

    def parsed(self, names: Iterable[str]) -> Iterator[Module]:
        """Those of the named modules that can be parsed."""
        for name in names:
            module = self.module(name)
            if module is not None:
                yield module
