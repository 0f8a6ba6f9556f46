"""What took the place of a symbol that is gone."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from ascend_shims.upstream.facts.annotations import normal
from ascend_shims.upstream.facts.body import tokens
from ascend_shims.upstream.facts.classes import Class, class_at
from ascend_shims.upstream.facts.resolve import in_module
from ascend_shims.upstream.facts.scope import function_types
from ascend_shims.upstream.facts.symbol import Symbol, find, split
from ascend_shims.upstream.likeness import Named, is_absorbed, likeness, names_alike
from ascend_shims.upstream.rebound import new_binding
from ascend_shims.upstream.tree import Tree

__all__ = ["Move", "moved_binding", "successor", "unused"]


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
    if symbol.kind == "module":
        return _module(symbol, new)
    if symbol.kind == "external":
        return None
    if len(parts) > 1:
        return _member(symbol, new, module, parts)
    imported = (symbol.module, symbol.qualname) != (module, parts[0])
    still = find(new, f"{symbol.module}:{symbol.qualname}") if imported else None
    if still is None:
        move = _definition(symbol, new, module)
        if move is None or not binding:
            return move
        bound = _bound(symbol, new, module, move)
        return bound or _followed(symbol, new, move) or move
    move = Move(still.place, 0.95, still.qualname != parts[0])
    if not binding:
        return move
    followed = _followed(symbol, new, move)
    if followed is not None:
        return followed
    # Its users stayed and may use something else that is like it.
    other = _definition(symbol, new, module)
    return (other and _bound(symbol, new, module, other)) or move


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


def _followed(symbol: Symbol, new: Tree, move: Move) -> Move | None:
    """The binding that the code uses by now which used an imported name."""
    if symbol.module == split(symbol.name)[0]:
        return None

    def follow(gone: Symbol) -> str | None:
        to = successor(gone, new, binding=False)
        return None if to is None else to.symbol

    place = new_binding(symbol, new, move.symbol, follow)
    return None if place is None else Move(place, move.confidence, move.renamed)


def moved_binding(symbol: Symbol, after: Symbol, new: Tree) -> Move | None:
    """Where that code is which used a name that is still in its module."""
    left = Move(after.place, 0.99, after.qualname != symbol.name.partition(":")[2])
    return _followed(symbol, new, left)


def unused(symbol: Symbol, after: Symbol, new: Tree) -> Move | None:
    """What is used instead of a name that is there and that nobody looks up."""
    module, _, name = symbol.name.partition(":")
    if after.place == symbol.name:
        return _definition(symbol, new, module)
    # An alias or an import was left behind.
    found = moved_binding(symbol, after, new)
    return found or Move(after.place, 0.99, after.qualname != name)


def _module(symbol: Symbol, new: Tree) -> Move | None:
    """Where a module went: one that is new, called so and binds the same names."""
    parsed = symbol.tree.module(symbol.module)
    if parsed is None:
        return None
    name, names = symbol.module.rpartition(".")[2], parsed.scope.names.keys()
    best: Move | None = None
    for place in new.modules:
        if place.rpartition(".")[2] != name or place in symbol.tree:
            continue
        other = new.module(place)
        shared = len(names & other.scope.names.keys()) if other is not None else 0
        score = shared / max(1, len(names))
        if score >= _OTHER_NAME and (best is None or score > best.confidence):
            home = place.rpartition(".")[0]
            best = Move(f"{home}:{name}", round(min(score, 0.99), 3), False)
    return best


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
        return _value(symbol, new, module) if symbol.member is None else None
    words = tokens(node)
    old_name = symbol.qualname.split(".")[-1]
    best: Move | None = None
    for candidate, other, known in _candidates(symbol, new, module, words):
        same = other.name.strip("_") == old_name.strip("_")
        alike = isinstance(other, ast.ClassDef) == isinstance(node, ast.ClassDef)
        if not same and not alike:
            continue
        score = likeness(node, other, old_name, other.name)
        if known is not None and not is_absorbed(node, known, score, old_name):
            continue
        if score < (_SAME_NAME if same else _OTHER_NAME):
            continue
        if best is None or score > best.confidence:
            renamed = other.name != old_name
            best = Move(candidate, round(min(score, 0.99), 3), renamed)
    return best or _other_owner(symbol, new)


def _candidates(
    symbol: Symbol, new: Tree, module: str, words: Counter[str]
) -> Iterator[tuple[str, Named, Named | None]]:
    """Definitions of the new release, each with what it was before, if anything."""
    old = symbol.tree
    places = dict.fromkeys([symbol.module, module])
    places |= dict.fromkeys(_defining(new, symbol.qualname.split(".")[-1]))
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
    """Modules that define the name, or the same without or with an underscore."""
    bare = name.strip("_")
    pattern = re.compile(
        rb"^\s*(?:async\s+)?(?:def|class)\s+_?" + bare.encode() + rb"\b", re.M
    )
    asked = dict.fromkeys([name, bare, f"_{bare}"])
    mentioning = dict.fromkeys(m for one in asked for m in new.mentions(one))
    return [m for m in mentioning if pattern.search(new.text(m))]


def _distinctive(words: Counter[str]) -> list[str]:
    found = []
    for word in words:
        plain = word.removeprefix("def ").removeprefix("(").removesuffix("=")
        if plain.isidentifier() and len(plain) > 7:
            found.append(plain)
    return sorted(dict.fromkeys(found), key=len, reverse=True)[:30]


def _value(symbol: Symbol, new: Tree, module: str) -> Move | None:
    """Constants have no body: their name and what is assigned to it can tell."""
    name, said = symbol.qualname, _assigned(symbol.node)
    pattern = re.compile(rb"^" + name.encode() + rb"\s*[:=]", re.M)
    fresh = [
        place
        for place in new.mentions(name)
        if pattern.search(new.text(place))
        and not pattern.search(symbol.tree.text(place))
    ]
    same = [p for p in fresh if said and _assigned(_bound_node(new, p, name)) == said]
    for found in (same, fresh):
        if len(found) == 1:
            return Move(f"{found[0]}:{name}", 0.9 if found is same else 0.6, False)
    return _renamed_value(symbol, new, module) if said else None


def _renamed_value(symbol: Symbol, new: Tree, module: str) -> Move | None:
    """The same value under another name that is new in the same module."""
    before, parsed = symbol.tree.module(module), new.module(module)
    if before is None or parsed is None:
        return None
    said = _assigned(symbol.node)
    best: Move | None = None
    for other in parsed.scope.names.keys() - before.scope.names.keys():
        score = names_alike(symbol.qualname, other)
        same = _assigned(_bound_node(new, module, other)) == said
        if same and score >= _OTHER_NAME and (best is None or score > best.confidence):
            best = Move(f"{module}:{other}", round(min(score, 0.99), 3), True)
    return best


def _bound_node(tree: Tree, module: str, name: str) -> ast.AST | None:
    parsed = tree.module(module)
    found = parsed.scope.best(name) if parsed is not None else None
    return found.node if found is not None else None


def _assigned(node: ast.AST | None) -> str | None:
    """The text of what a statement assigns."""
    return _text(node.value) if isinstance(node, ast.Assign | ast.AnnAssign) else None


def _other_owner(symbol: Symbol, new: Tree) -> Move | None:
    """A function of that name that is new elsewhere: a method that became a plain
    function, a function that became a method, or a method of another class."""
    gone, name = symbol.function, symbol.qualname.split(".")[-1]
    if gone is None or name.startswith("__"):
        return None
    best: Move | None = None
    for place in _defining(new, name):
        parsed = new.module(place)
        if parsed is None:
            continue
        for qualname, node in _functions(parsed.tree.body, name):
            if find(symbol.tree, f"{place}:{qualname}") is not None:
                continue
            score = likeness(gone, node, name, name)
            if score >= _SAME_NAME and (best is None or score > best.confidence):
                best = Move(f"{place}:{qualname}", round(min(score, 0.9), 3), False)
    return best


def _functions(
    body: list[ast.stmt], name: str
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Functions of that name in a module, and methods of its classes."""
    for node in body:
        if isinstance(node, function_types) and node.name == name:
            yield name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, function_types) and inner.name == name:
                    yield f"{node.name}.{name}", inner


# Members -------------------------------------------------------------------------


def _member(symbol: Symbol, new: Tree, module: str, parts: list[str]) -> Move | None:
    owner, name = ".".join(parts[:-1]), parts[-1]
    cls = class_at(new, module, owner)
    if cls is not None:
        found = _in_class(symbol, cls, name, f"{module}:{owner}")
        return found or _definition(symbol, new, module)
    old_owner = find(symbol.tree, f"{module}:{owner}")
    if old_owner is None:
        return None
    moved = successor(old_owner, new, binding=False)
    target_module, _, target = moved.symbol.partition(":") if moved else ("", "", "")
    cls = class_at(new, target_module, target)
    if moved is None or cls is None:
        return _definition(symbol, new, module)
    if cls.member(name) is not None:
        return Move(f"{moved.symbol}.{name}", moved.confidence, False)
    found = _in_class(symbol, cls, name, moved.symbol)
    return found or _definition(symbol, new, module)


def _in_class(symbol: Symbol, cls: Class, name: str, place: str) -> Move | None:
    """A member that is new in the class and like the one that is gone."""
    old_owner = symbol.cls
    if old_owner is None:
        return None
    best: Move | None = None
    for other in cls.names():
        member = cls.member(other)
        if member is None:
            continue
        score = _members_alike(symbol, member.node, name, other, cls)
        known = old_owner.member(other)
        if known is not None:
            gone, was = symbol.function, known.function
            if gone is None or was is None or not is_absorbed(gone, was, score, name):
                continue
        if score >= _OTHER_NAME and (best is None or score > best.confidence):
            best = Move(f"{place}.{other}", round(min(score, 0.99), 3), True)
    return best


def _members_alike(
    symbol: Symbol, node: ast.AST, name: str, other: str, cls: Class
) -> float:
    names = names_alike(name, other)
    old = symbol.node
    if isinstance(old, function_types) and isinstance(node, function_types):
        return likeness(old, node, name, other)
    if isinstance(old, ast.Assign) and isinstance(node, ast.Assign):
        return 0.5 * (_text(old.value) == _text(node.value)) + 0.4 * names
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
