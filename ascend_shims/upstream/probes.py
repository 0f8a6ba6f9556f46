"""Removal probes: whether a release still needs a gap, from its source alone.

Answers have three values. A symbol that was moved or a file that cannot be read must
never look like a need that is gone: what cannot be seen is `unknown`, and with it
every answer that hangs on it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

from ascend_shims.registry.model import Condition, Sign
from ascend_shims.upstream.facts.signature import ANYTHING
from ascend_shims.upstream.facts.symbol import Symbol, find
from ascend_shims.upstream.tree import Tree
from ascend_shims.upstream.verdict import Location

__all__ = ["Answer", "Seen", "Told", "Truth", "answer", "ask"]

Truth = Literal["yes", "no", "unknown"]


@dataclass(frozen=True)
class Told:
    """What a release says to one condition."""

    condition: Condition
    truth: Truth
    words: str
    """What was found, half a sentence."""
    at: Location | None = None


@dataclass(frozen=True)
class Seen:
    """Whether a sign is seen, and what each of its conditions said."""

    sign: Sign
    truth: Truth
    told: tuple[Told, ...]

    @property
    def deciding(self) -> Told:
        """The condition that the truth hangs on."""
        return next((t for t in self.told if t.truth == self.truth), self.told[0])


@dataclass(frozen=True)
class Answer:
    """`yes`: the release does itself what the gap is for."""

    truth: Truth
    seen: tuple[Seen, ...]

    @property
    def deciding(self) -> Seen:
        return next((s for s in self.seen if s.truth == self.truth), self.seen[0])


def answer(signs: Sequence[Sign], tree: Tree) -> Answer:
    """What a release says to signs of its package; one that is seen is enough."""
    seen = tuple(ask(sign, tree) for sign in signs)
    return Answer(_first({s.truth for s in seen}, ("yes", "unknown", "no")), seen)


def ask(sign: Sign, tree: Tree) -> Seen:
    """Whether a release shows a sign: all conditions have to hold."""
    told = tuple(_told(one, tree) for one in sign.all)
    return Seen(sign, _first({t.truth for t in told}, ("no", "unknown", "yes")), told)


def _first(truths: set[Truth], order: tuple[Truth, ...]) -> Truth:
    return next(one for one in order if one in truths)


@dataclass(frozen=True)
class _Place:
    """A symbol or a whole file of a release."""

    tree: Tree
    name: str
    symbol: Symbol | None
    """None of a file."""

    @property
    def module(self) -> str:
        return self.symbol.module if self.symbol else self.name

    @property
    def at(self) -> Location:
        if self.symbol is None:
            path = self.tree.path(self.name) or ""
            return Location(self.tree.label, self.name, path, 1)
        s = self.symbol
        return Location(self.tree.label, s.place, s.path, s.line)


def _told(condition: Condition, tree: Tree) -> Told:
    place = _place(condition, tree)
    if condition.exists is not None:
        return _existence(condition, tree, place)
    if place is None:
        words = f"`{condition.candidates[-1]}` is not there"
        return Told(condition, "unknown", words)
    verb, wanted, patterns = _asked(condition)
    found = _LOOKS[verb](place, patterns)
    if found is None:
        words = f"what `{place.name}` {verb} is not known"
        return Told(condition, "unknown", words, place.at)
    match = next((n for n in found.names if _matches(n.name, patterns)), None)
    if match is not None:
        words = f"`{place.name}` {verb} `{match.name}`"
        truth: Truth = "yes" if wanted else "no"
        at = replace(place.at, line=match.line) if match.line else place.at
        return Told(condition, truth, words, at)
    if not found.is_complete:
        words = f"not all that `{place.name}` {verb} is known"
        return Told(condition, "unknown", words, place.at)
    words = f"`{place.name}` {verb} no `{'`, `'.join(patterns)}`"
    return Told(condition, "no" if wanted else "yes", words, place.at)


def _asked(condition: Condition) -> tuple[str, bool, tuple[str, ...]]:
    """The verb, whether it should hold, and the patterns."""
    for verb in _LOOKS:
        for key, wanted in ((verb, True), (f"{verb}_no", False)):
            patterns = getattr(condition, key)
            if patterns is not None:
                each = (patterns,) if isinstance(patterns, str) else patterns
                return verb, wanted, each
    raise ValueError(f"{condition} asks nothing; give it one of {', '.join(_LOOKS)}")


def _existence(condition: Condition, tree: Tree, place: _Place | None) -> Told:
    name = place.name if place else condition.candidates[-1]
    if place is None:
        for one in condition.candidates:
            module = one.partition(":")[0]
            if module in tree and tree.module(module) is None:
                words = f"the file of `{one}` cannot be read"
                return Told(condition, "unknown", words)
    is_there = place is not None
    words = f"`{name}` is there" if is_there else f"`{name}` is not there"
    truth: Truth = "yes" if is_there is condition.exists else "no"
    return Told(condition, truth, words, place.at if place else None)


def _place(condition: Condition, tree: Tree) -> _Place | None:
    """The first of the candidates that exists at run time."""
    for name in condition.candidates:
        if ":" not in name:
            if name in tree and tree.module(name) is not None:
                return _Place(tree, name, None)
            continue
        symbol = find(tree, name)
        if symbol is not None and not symbol.typing_only:
            return _Place(tree, name, symbol)
    return None


class _Name(NamedTuple):
    name: str
    line: int = 0
    """Where it is read; 0 for where its owner is defined."""


@dataclass(frozen=True)
class _Found:
    names: Iterable[_Name]
    is_complete: bool = True
    """Whether there can be no others."""


def _parameters(place: _Place, _patterns: Sequence[str]) -> _Found | None:
    symbol = place.symbol
    if symbol is None or not symbol.is_callable or symbol.signature == ANYTHING:
        return None
    signature = symbol.signature
    return _Found(map(_Name, signature.named), not signature.takes_any_keyword)


def _members(place: _Place, _patterns: Sequence[str]) -> _Found | None:
    symbol = place.symbol
    if symbol is None:
        parsed = place.tree.module(place.name)
        if parsed is None:
            return None
        prefix = f"{place.name}."
        within = (m for m in place.tree.modules if m.startswith(prefix))
        inside = [m.removeprefix(prefix).partition(".")[0] for m in within]
        names = [*parsed.scope.names, *inside]
        return _Found(map(_Name, names), not parsed.scope.stars)
    cls = symbol.cls if symbol.member is None else None
    if cls is None:
        return None
    names = [n for one in cls.mro for n in (*one.scope.names, *one.set_on_self)]
    return _Found(map(_Name, names), cls.is_closed)


def _reads(place: _Place, patterns: Sequence[str]) -> _Found | None:
    if place.symbol is None:
        parsed = place.tree.module(place.name)
        node: ast.AST | None = parsed.tree if parsed else None
    else:
        node = place.symbol.node
    body = getattr(node, "body", None)
    if not isinstance(body, list):
        return None
    text = place.tree.text(place.module)
    if not any(_longest_word(pattern).encode() in text for pattern in patterns):
        # A file without the word reads no such name; walking it would cost more.
        return _Found(())
    return _Found(_loaded(body))


_LOOKS: Mapping[str, Callable[[_Place, Sequence[str]], _Found | None]] = {
    "takes": _parameters,
    "has": _members,
    "reads": _reads,
}


def _longest_word(pattern: str) -> str:
    return max(pattern.replace("*", ".").split("."), key=len)


def _loaded(body: Sequence[ast.AST]) -> Iterator[_Name]:
    """Every name and dotted name that is loaded, called or imported."""
    stack = list(reversed(body))
    while stack:
        node = stack.pop()
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Name | ast.Attribute):
            if isinstance(node.ctx, ast.Load):
                yield _Name(_dotted(node), line)
        elif isinstance(node, ast.Import):
            yield from (_Name(alias.name, line) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            yield _Name(module, line)
            yield from (_Name(f"{module}.{a.name}", line) for a in node.names)
        elif isinstance(node, ast.Call):
            text = _by_text(node)
            if text:
                yield _Name(text, line)
        stack.extend(reversed(list(ast.iter_child_nodes(node))))


def _by_text(node: ast.Call) -> str | None:
    """The attribute that `getattr(x, "name")` and `hasattr` read."""
    if isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr"):
        for one in node.args[1:2]:
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                return one.value
    return None


def _dotted(node: ast.expr) -> str:
    """`a.b.c`; what is no name becomes nothing: `f().b` is `.b`."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "")
    return ".".join(reversed(parts))


def _matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a dotted name ends as some pattern says."""
    parts = name.split(".")
    for pattern in patterns:
        wanted = pattern.split(".")
        last = parts[-len(wanted) :]
        if len(last) == len(wanted) and all(map(fnmatchcase, last, wanted)):
            return True
    return False
