"""What took the place of a symbol that is gone."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from typing import TypeAlias

from ascend_shims.upstream.facts.annotations import normal
from ascend_shims.upstream.facts.body import tokens
from ascend_shims.upstream.facts.classes import Class, class_at
from ascend_shims.upstream.facts.resolve import in_module
from ascend_shims.upstream.facts.scope import function_types
from ascend_shims.upstream.facts.signature import signature_of
from ascend_shims.upstream.facts.symbol import Symbol, find, split
from ascend_shims.upstream.tree import Tree

__all__ = ["Move", "successor"]

_Named: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

_ABSORBED = 0.6
_CLOSER = 0.1
_TWIN = 0.7
"""Something that was there already counts as what the lost one was merged into if
it is a twin of it, or alike and more so than before."""

_TELLING = 12
"""Words below which a body is like any other."""

_RARE = 6
"""Words in at most this many files of the old release tell where a body went."""

_SAME_NAME = 0.3
_OTHER_NAME = 0.5
"""How alike a candidate has to be."""


@dataclass(frozen=True)
class Move:
    symbol: str
    """`module:Qual.name`, where the successor is to be found."""
    confidence: float
    renamed: bool


def successor(symbol: Symbol, new: Tree, *, binding: bool) -> Move | None:
    """The likeliest successor in `new` of a symbol that is gone there.

    With `binding` the place wanted is where the name is now looked up, which may be
    an import in the old module; without it, where the successor is defined.
    """
    module, parts = split(symbol.name)
    if len(parts) > 1:
        return _member(symbol, new, module, parts)
    imported = (symbol.module, symbol.qualname) != (module, parts[0])
    if imported:
        still = find(new, f"{symbol.module}:{symbol.qualname}")
        if still is not None and not binding:
            return Move(still.place, 0.95, still.qualname != parts[0])
    move = _definition(symbol, new, module)
    if not binding or move is None:
        return move
    return _bound(symbol, new, module, move) or move


def _bound(symbol: Symbol, new: Tree, module: str, move: Move) -> Move | None:
    """The successor under a name of the old module, or of the one it became."""
    target_module, _, target_name = move.symbol.partition(":")
    for place in (module, *_relocated(symbol, module, target_module)):
        parsed = new.module(place)
        if parsed is None or target_name not in parsed.scope.names:
            continue
        found = in_module(new, place, target_name)
        if found is not None and found.place == move.symbol:
            return Move(f"{place}:{target_name}", move.confidence, move.renamed)
    return None


def _relocated(symbol: Symbol, module: str, target: str) -> list[str]:
    """Where `module` is now, if the definition's module moved along with it."""
    if symbol.module == module:
        return []
    old, new = symbol.module.split("."), target.split(".")
    while old and new and old[-1] == new[-1]:
        old.pop()
        new.pop()
    before, after = ".".join(old), ".".join(new)
    if module == before or module.startswith(f"{before}."):
        return [after + module[len(before) :]]
    return []


# Definitions ---------------------------------------------------------------------


def _definition(symbol: Symbol, new: Tree, module: str) -> Move | None:
    node = symbol.node
    if not isinstance(node, (*function_types, ast.ClassDef)):
        return _same_name_only(symbol, new)
    words = tokens(node)
    old_name = symbol.qualname
    best: Move | None = None
    for candidate, other, known in _candidates(symbol, new, module, words):
        same = other.name == old_name
        alike = isinstance(other, ast.ClassDef) == isinstance(node, ast.ClassDef)
        if not same and not alike:
            continue
        score = _score(node, other, old_name, other.name)
        if known is not None and not _absorbed(node, known, score, old_name):
            continue
        if score < (_SAME_NAME if same else _OTHER_NAME):
            continue
        if best is None or score > best.confidence:
            best = Move(candidate, round(min(score, 0.99), 3), not same)
    return best


def _candidates(
    symbol: Symbol, new: Tree, module: str, words: Counter[str]
) -> Iterator[tuple[str, _Named, _Named | None]]:
    """Definitions of the new release, each with what it was before, if anything."""
    old = symbol.tree
    places = dict.fromkeys([symbol.module, module])
    places |= dict.fromkeys(_defining(new, symbol.qualname))
    rare = (word for word in _distinctive(words) if len(old.mentions(word)) <= _RARE)
    hits: Counter[str] = Counter()
    for word in islice(rare, 10):
        hits.update(new.mentions(word))
    places |= dict.fromkeys(name for name, _ in hits.most_common(12))
    for place in places:
        parsed = new.module(place)
        if parsed is None:
            continue
        before = old.module(place)
        for name in parsed.scope.names:
            found = parsed.scope.best(name)
            if found is None or not isinstance(
                found.node, (*function_types, ast.ClassDef)
            ):
                continue
            if f"{place}:{name}" == symbol.place:
                continue
            known = before.scope.best(name) if before is not None else None
            previous = known.node if known is not None else None
            if not isinstance(previous, (*function_types, ast.ClassDef)):
                previous = None
            yield f"{place}:{name}", found.node, previous


def _defining(new: Tree, name: str) -> list[str]:
    pattern = re.compile(
        rb"^\s*(?:async\s+)?(?:def|class)\s+" + name.encode() + rb"\b", re.M
    )
    return [m for m in new.mentions(name) if pattern.search(new.text(m))]


def _distinctive(words: Counter[str]) -> list[str]:
    found = []
    for word in words:
        plain = word.removeprefix("def ").removeprefix("(").removesuffix("=")
        if plain.isidentifier() and len(plain) > 7:
            found.append(plain)
    return sorted(dict.fromkeys(found), key=len, reverse=True)[:30]


def _same_name_only(symbol: Symbol, new: Tree) -> Move | None:
    """Constants have no body: only the name can tell."""
    name = symbol.qualname
    pattern = re.compile(rb"^" + name.encode() + rb"\s*[:=]", re.M)
    found = [
        module
        for module in new.mentions(name)
        if pattern.search(new.text(module)) and module not in symbol.tree.mentions(name)
    ]
    if len(found) != 1:
        return None
    return Move(f"{found[0]}:{name}", 0.6, False)


def _alike(one: Counter[str], other: Counter[str]) -> float:
    """Weighted overlap, from 0 to 1."""
    shared = sum((one & other).values())
    total = sum((one | other).values())
    return shared / total if total else 0.0


def _score(old: _Named, new: _Named, name: str, other: str) -> float:
    """How likely `new` is what `old` became, from 0 to 1.

    Bodies are rewritten more often than parameters get other names, so for
    functions these count apart.
    """
    body = _alike(tokens(old), tokens(new))
    names = _names_alike(name, other)
    plain = body * 0.8 + names * 0.2
    if isinstance(old, ast.ClassDef) or isinstance(new, ast.ClassDef):
        return plain
    one, two = (set(signature_of(f).named) - {"self", "cls"} for f in (old, new))
    if len(one) < 2 or not one & two:
        return plain
    shared = len(one & two) / len(one | two)
    return max(plain, body * 0.45 + shared * 0.25 + names * 0.3)


def _absorbed(gone: _Named, known: _Named, score: float, name: str) -> bool:
    """Whether something that existed before has taken the lost one in."""
    if score < _ABSORBED or sum(tokens(gone).values()) < _TELLING:
        return False
    if score >= _TWIN:
        return True
    return score >= _score(gone, known, name, known.name) + _CLOSER


def _names_alike(one: str, other: str) -> float:
    return SequenceMatcher(None, one.lower(), other.lower()).ratio()


# Members -------------------------------------------------------------------------


def _member(symbol: Symbol, new: Tree, module: str, parts: list[str]) -> Move | None:
    owner, name = ".".join(parts[:-1]), parts[-1]
    cls = class_at(new, module, owner)
    if cls is not None:
        return _in_class(symbol, cls, name, f"{module}:{owner}")
    old_owner = find(symbol.tree, f"{module}:{owner}")
    if old_owner is None:
        return None
    moved = successor(old_owner, new, binding=False)
    if moved is None:
        return None
    target_module, _, target = moved.symbol.partition(":")
    cls = class_at(new, target_module, target)
    if cls is None:
        return None
    if cls.member(name) is not None:
        return Move(f"{moved.symbol}.{name}", moved.confidence, False)
    return _in_class(symbol, cls, name, moved.symbol)


def _in_class(symbol: Symbol, cls: Class, name: str, place: str) -> Move | None:
    """A member that is new in the class and like the one that is gone."""
    old_owner = symbol.cls
    if old_owner is None:
        return None
    best: Move | None = None
    for other in _member_names(cls):
        member = cls.member(other)
        if member is None:
            continue
        score = _members_alike(symbol, member.node, name, other, cls)
        known = old_owner.member(other)
        if known is not None:
            gone, was = symbol.function, known.function
            if gone is None or was is None or not _absorbed(gone, was, score, name):
                continue
        if score >= _OTHER_NAME and (best is None or score > best.confidence):
            best = Move(f"{place}.{other}", round(min(score, 0.99), 3), True)
    return best


def _member_names(cls: Class) -> set[str]:
    found: set[str] = set()
    for one in cls.mro:
        found |= one.scope.names.keys() | one.set_on_self.keys()
    return found


def _members_alike(
    symbol: Symbol, node: ast.AST, name: str, other: str, cls: Class
) -> float:
    names = _names_alike(name, other)
    old = symbol.node
    if isinstance(old, function_types) and isinstance(node, function_types):
        return _score(old, node, name, other)
    if isinstance(old, ast.AnnAssign) and isinstance(node, ast.AnnAssign):
        same = normal(old.annotation) == normal(node.annotation)
        default = _text(old.value) == _text(node.value)
        place = _neighbours(symbol.cls, old) & _neighbours(cls, node)
        return 0.25 * same + 0.2 * default + 0.25 * bool(place) + 0.3 * names
    return 0.0


def _neighbours(cls: Class | None, node: ast.AnnAssign) -> set[str]:
    if cls is None:
        return set()
    for one in cls.mro:
        body = [s for s in one.node.body if isinstance(s, ast.AnnAssign)]
        if node in body:
            at = body.index(node)
            near = [*body[max(0, at - 1) : at], *body[at + 1 : at + 2]]
            return {ast.unparse(s.target) for s in near}
    return set()


def _text(node: ast.expr | None) -> str | None:
    return None if node is None else ast.unparse(node)
