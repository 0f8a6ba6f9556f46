"""A release as a tree of modules, each parsed at most once and only when asked for.

A tree notes what it was asked and what it answered (`asked`). Whoever judged by it
gets the same result from every other tree that answers the same.
"""

from __future__ import annotations

import ast
import contextlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ascend_shims.upstream.facts.record import Record
from ascend_shims.upstream.facts.scope import Scope
from ascend_shims.upstream.index import Index, Place
from ascend_shims.upstream.parsed import Parsed, Shelf, digest_of
from ascend_shims.upstream.source import Source
from ascend_shims.upstream.texts import Problem, Texts, module_name

__all__ = ["Module", "Problem", "Tree", "module_name"]

_KEPT = 2 << 20
"""Bytes of source whose modules a tree holds on to."""

_HOPS = 3
"""Imports followed in a row to where a name may be now."""


class View(Protocol):
    """Of a class: its bases and members, looked up when they are asked for."""

    def forget(self) -> None:
        """Look them up again if they are asked for again."""


@dataclass(eq=False, repr=False)
class Module:
    """One file, as a module of one tree."""

    name: str
    path: str
    parsed: Parsed = field(repr=False)
    classes: dict[str, View] = field(default_factory=dict)
    """Views of its classes, kept by `facts.classes`."""

    def forget(self) -> None:
        """Let go of the views, which refer to each other and to the syntax tree."""
        for view in self.classes.values():
            view.forget()
        self.classes.clear()

    @property
    def text(self) -> bytes:
        return self.parsed.text

    @property
    def tree(self) -> ast.Module:
        return self.parsed.tree

    @property
    def scope(self) -> Scope:
        return self.parsed.scope

    @property
    def index(self) -> Index:
        """Calls, look-ups and assignments of the whole file."""
        return self.parsed.index

    @property
    def lines(self) -> list[bytes]:
        return self.parsed.lines

    @property
    def is_package(self) -> bool:
        return self.path.endswith("__init__.py")

    def held(self, name: str) -> list[tuple[ast.expr, Place]]:
        """Targets that are assigned the thing called `name`, and where."""
        return self.parsed.held.get(name, [])

    def absolute(self, module: str | None, level: int) -> str:
        """The absolute name behind `from ..module import x` written in here."""
        if not level:
            return module or ""
        parts = self.name.split(".")
        drop = level - 1 if self.is_package else level
        base = parts[: len(parts) - drop] if drop else parts
        return ".".join([*base, module] if module else base)


class Tree:
    """All modules of one release.

    Args:
        shelf: where parsed files are shared with other trees.
        label: how the release is called; its own name by default.
    """

    def __init__(
        self,
        source: Source | Texts,
        shelf: Shelf | None = None,
        label: str | None = None,
    ) -> None:
        self._texts = source if isinstance(source, Texts) else Texts(source)
        self._shelf = shelf or Shelf()
        self.label = label or self._texts.label
        self._modules: OrderedDict[str, Module] = OrderedDict()
        self._kept = 0
        self._broken: dict[str, Problem] = {}
        self._reach: tuple[str, ...] | None = None
        self._known: tuple[str, ...] = ()
        self._asked: dict[tuple[str, str], None] = {}
        self.memo: dict[object, object] = {}
        """Answers about this tree that readers of it keep, by their own keys."""

    @property
    def records(self) -> Mapping[str, Record]:
        """Facts by symbol, of a release that is known by a lock's facts alone."""
        return self._texts.records

    @property
    def is_stub(self) -> bool:
        """Whether it shows what a lock knows of a release, and no more."""
        return bool(self._texts.records)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What was met so far; a file that nobody asked for is not among it."""
        return tuple({**self._texts.problems, **self._broken}.values())

    @property
    def broken(self) -> tuple[Problem, ...]:
        """Those of the problems that lie in a file's text."""
        return tuple(self._broken.values())

    @property
    def modules(self) -> Iterable[str]:
        self._ask("names")
        return self._texts.paths.keys()

    # What it was asked -----------------------------------------------------------

    def _ask(self, question: str, about: str = "") -> None:
        self._asked[question, about] = None

    def asked(self) -> dict[str, str] | None:
        """Everything that was asked, and the answers.

        None where an answer may be another one next time: a file could not be
        read, or all files were searched and nothing tells which these are.
        """
        found = {}
        for question, about in self._asked:
            answer = self.answer(f"{question} {about}")
            if answer is None:
                return None
            found[f"{question} {about}"] = answer
        return found

    def answer(self, question: str) -> str | None:
        """The answer to a question as `asked` gives them; None: not repeatable."""
        kind, _, about = question.partition(" ")
        texts = self._texts
        if kind == "text":
            path = texts.paths.get(about)
            if path is None:
                return ""
            digest = texts.digest(about)
            return f"{path} {digest}" if digest else None
        if kind == "path":
            return texts.paths.get(about, "")
        if kind == "package":
            return "yes" if about in texts.packages else ""
        if kind == "names":
            return texts.names
        if kind == "holding":
            return digest_of("\n".join(texts.holding(about)).encode())
        return texts.identity

    # Modules ---------------------------------------------------------------------

    def __contains__(self, module: object) -> bool:
        self._ask("path", str(module))
        return module in self._texts.paths

    def path(self, module: str) -> str | None:
        self._ask("path", module)
        return self._texts.paths.get(module)

    def is_package(self, module: str) -> bool:
        self._ask("package", module)
        return module in self._texts.packages

    def text(self, module: str) -> bytes:
        """The bytes of a module; empty where there is none or it is unreadable."""
        self._ask("text", module)
        return self._texts.text(module)

    def module(self, name: str) -> Module | None:
        """The parsed module, or `None` where it is absent or cannot be parsed."""
        known = self._modules.get(name)
        if known is not None:
            self._modules.move_to_end(name)
            return known
        self._ask("text", name)
        path = self._texts.paths.get(name)
        if path is None or path in self._texts.problems or path in self._broken:
            return None
        text = self._texts.text(name)
        if path in self._texts.problems:
            return None
        try:
            parsed = self._shelf.parsed(self._texts.digest(name), text, path)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            self._broken[path] = Problem(path, f"cannot be parsed: {error}")
            return None
        module = Module(name, path, parsed)
        self._modules[name] = module
        self._kept += len(text)
        while self._kept > _KEPT and len(self._modules) > 1:
            _, dropped = self._modules.popitem(last=False)
            self._kept -= len(dropped.text)
            dropped.forget()
            # Its answers hold the dropped module's nodes.
            self.memo.clear()
        return module

    def forget(self) -> None:
        """Let go of what was parsed, though not of what was asked.

        Classes and modules refer to each other, so that syntax trees would stay
        until Python looks for cycles.
        """
        for module in self._modules.values():
            module.forget()
        self._modules.clear()
        self._kept = 0
        self.memo.clear()

    def parsed(self, names: Iterable[str]) -> Iterator[Module]:
        """Those of the named modules that can be parsed."""
        for name in names:
            module = self.module(name)
            if module is not None:
                yield module

    # Searching -------------------------------------------------------------------

    def mentions(self, word: str, within: Iterable[str] | None = None) -> list[str]:
        """Modules whose text has `word` as a whole word.

        A search of text, not of syntax: it tells what is worth parsing.
        """
        if within is not None:
            names = list(within)
            for name in names:
                self._ask("text", name)
            return self._texts.holding_among(word, names)
        if self._reach is None and self._texts.is_indexed:
            self._ask("holding", word)
        else:
            self._ask("whole")
        if self._reach is None:
            return list(self._texts.holding(word))
        names = [*self._reach, *self._importable(word)]
        return self._texts.holding_among(word, dict.fromkeys(names))

    @contextlib.contextmanager
    def reaching(self, reach: Sequence[str], known: Sequence[str]) -> Iterator[None]:
        """For a while, "all modules" are the modules `reach`.

        And those from which the modules `known` import what is looked for: who used
        something knows best where it is now.
        """
        self._reach, self._known = tuple(reach), tuple(known)
        try:
            yield
        finally:
            self._reach, self._known = None, ()

    def _importable(self, word: str) -> list[str]:
        """Modules from which the known ones import something called `word`."""
        found: dict[str, None] = {}
        here = [name for name in self._known if name in self._texts.paths]
        for _ in range(_HOPS):
            importing = self._texts.holding_among(word, here)
            here = []
            for module in self.parsed(importing):
                bindings = [b for b, _ in module.index.imports if b.original == word]
                for several in module.scope.names.values():
                    bindings += [b for b in several if b.original == word]
                for binding in bindings:
                    name = module.absolute(binding.module, binding.level)
                    if name in self._texts.paths and name not in found:
                        here.append(name)
            found |= dict.fromkeys(here)
        return [*self._known, *found]
