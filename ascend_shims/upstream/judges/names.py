"""Whether the name is still there, and still means what it meant."""

from __future__ import annotations

import ast

from ascend_shims.upstream.facts.annotations import normal
from ascend_shims.upstream.facts.symbol import Symbol, find
from ascend_shims.upstream.judges.changes import is_wider
from ascend_shims.upstream.judging import Case, Finding
from ascend_shims.upstream.moves import successor
from ascend_shims.upstream.verdict import Breakage

__all__ = ["judge_attribute", "judge_import", "judge_presence"]

_BINDING_HOWS = ("replaces_function", "replaces_class_binding", "wraps_function")


def judge_presence(case: Case) -> Finding | None:
    """Broken where the symbol is gone; nothing to say where it is there."""
    after = case.after
    if after is not None and not (after.typing_only and not case.before.typing_only):
        return None
    if case.module in case.new and case.new.module(case.module) is None:
        return Finding(
            "review",
            "unreadable",
            f"`{case.module}` of {case.new.label} cannot be read, so nothing can be "
            f"said of `{case.symbol}`{_why_unreadable(case)}",
        )
    binding = case.reliance.how in _BINDING_HOWS
    move = successor(case.before, case.new, binding=binding)
    if move is None:
        breakage: Breakage = "removed"
        if case.reliance.how == "reads_attribute":
            breakage = "attribute-removed"
        return Finding("broken", breakage, f"{_gone(case)}, without a successor")
    old_name = case.qualname.split(".")[-1]
    new_name = move.symbol.partition(":")[2].split(".")[-1]
    same_place = move.symbol.partition(":")[0] == case.module
    moved: Breakage = "moved"
    if move.renamed and (same_place or old_name != new_name):
        moved = "renamed"
    return Finding(
        "broken",
        moved,
        f"{_gone(case)}; it is most likely `{move.symbol}` now ({move.confidence:.0%})",
        move.symbol,
        move.confidence,
    )


def _why_unreadable(case: Case) -> str:
    path = case.new.path(case.module)
    said = [one for one in case.new.problems if one.path == path]
    return f": {said[0].path}: {said[0].reason}" if said else ""


def _gone(case: Case) -> str:
    if case.module not in case.new:
        return f"{case.new.label} has no module `{case.module}`"
    if case.is_member:
        owner = case.qualname.rpartition(".")[0]
        if find(case.new, f"{case.module}:{owner}") is None:
            return f"{case.new.label} has no `{owner}` in `{case.module}`"
    return f"{case.new.label} has no `{case.qualname}` in `{case.module}`"


def judge_import(case: Case) -> Finding | None:
    """Importing asks for no more than the name."""
    before, after = case.before, case.there
    if before.kind == "class" and after.kind == "function":
        return Finding(
            "review",
            "kind-changed",
            f"`{case.symbol}` was a class and is a function now: calling it works, "
            "subclassing and `isinstance` do not",
        )
    return None


def judge_attribute(case: Case) -> Finding | None:
    before, after = case.before, case.there
    data = ("value", "set", "property")
    functions = ("function", "async", "static", "classmethod")
    if before.kind in data and after.kind in functions:
        return Finding(
            "broken",
            "kind-changed",
            f"`{case.symbol}` is a method now: reading it gives the method, "
            "not the value",
        )
    if before.kind in functions and after.kind in data:
        return Finding(
            "review",
            "kind-changed",
            f"`{case.symbol}` was a method and is a value now",
        )
    retyped = _retyped(case)
    if retyped is not None:
        return retyped
    late = _no_longer_from_constructor(case)
    if late is not None:
        return Finding(
            "review",
            "body-changed",
            f"`{case.symbol}` is no longer set by the constructor but by `{late}`: "
            "reading it earlier fails",
        )
    return None


def _retyped(case: Case) -> Finding | None:
    """What is read is of another type, as far as both releases say so."""
    old, new = (_type(symbol) for symbol in (case.before, case.there))
    if old is None or new is None or old == new:
        return None
    return Finding(
        "review" if is_wider(old, new) else "broken",
        "returns-changed",
        f"`{case.symbol}` is of type `{new}` now, where it was `{old}`",
    )


def _type(symbol: Symbol) -> str | None:
    if isinstance(symbol.node, ast.AnnAssign):
        return normal(symbol.node.annotation)
    return symbol.return_annotation if symbol.kind == "property" else None


def _no_longer_from_constructor(case: Case) -> str | None:
    before, after = case.before.member, case.there.member
    if before is None or after is None or before.kind != "set" or after.kind != "set":
        return None
    if "__init__" in before.setters and "__init__" not in after.setters:
        return after.setters[0]
    return None
