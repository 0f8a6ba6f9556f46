"""`replaces_function`, `wraps_function`: something of ours under upstream's name."""

from __future__ import annotations

from ascend_shims.upstream.judges.bodies import body_review
from ascend_shims.upstream.judges.changes import kind_change, return_change
from ascend_shims.upstream.judges.sites import (
    no_longer_called,
    unbound_site,
    unseen_caller,
)
from ascend_shims.upstream.judging import Case, Finding
from ascend_shims.upstream.lookups import is_looked_up, users
from ascend_shims.upstream.moves import moved_binding, unused
from ascend_shims.upstream.tree import Tree

__all__ = ["judge_replaced", "judge_wrapped", "lookup_gone"]


def judge_wrapped(case: Case) -> Finding | None:
    finding = _still_reached(case)
    if finding is None and case.reliance.replacement is not None:
        finding = unbound_site(case)
    if finding is not None:
        return finding
    change = return_change(case.before, case.there)
    if change is not None:
        return Finding(
            "review", "returns-changed", f"the wrapped `{case.symbol}`: {change[1]}"
        )
    return None


def judge_replaced(case: Case) -> Finding | None:
    finding = _still_reached(case) or unbound_site(case) or unseen_caller(case)
    if finding is not None:
        return finding
    change = return_change(case.before, case.there)
    if change is not None and change[0]:
        return Finding(
            "broken",
            "returns-changed",
            f"callers of `{case.symbol}` expect another result: {change[1]}",
        )
    return body_review(case)


def _still_reached(case: Case) -> Finding | None:
    return kind_change(case) or (
        no_longer_called(case) if case.is_member else lookup_gone(case)
    )


def lookup_gone(case: Case) -> Finding | None:
    """The name is there and what looked it up through that module does no longer."""
    name = case.qualname
    if case.is_member or case.was_reached == "no":
        return None
    if _is_looked_up(case.new, case) and not _callers_left(case):
        return None
    if case.record is None and not _is_looked_up(case.old, case):
        return None
    move = unused(case.before, case.there, case.new)
    to = f"; `{move.symbol}` is used instead" if move else ""
    return Finding(
        "broken",
        "not-looked-up",
        f"`{name}` is still in `{case.module}`, but what used it in {case.old.label} "
        f"no longer looks it up there in {case.new.label}{to}",
        move.symbol if move else None,
        move.confidence if move else 0.0,
    )


def _is_looked_up(tree: Tree, case: Case) -> bool:
    # Known callers are looked at first; only if none of them is left does the
    # question go to the whole release.
    known = case.modules is not None and is_looked_up(
        tree, case.module, case.qualname, case.modules
    )
    return known or is_looked_up(tree, case.module, case.qualname)


def _callers_left(case: Case) -> bool:
    """Whether all that looked an imported name up in that module did so no longer,
    and reaches the same thing through another module."""
    if case.before.module == case.module:
        return False
    old, new = case.old.module(case.module), case.new.module(case.module)
    if old is None or new is None:
        return False
    before = set(users(old, case.qualname))
    if not before or before & set(users(new, case.qualname)):
        return False
    return moved_binding(case.before, case.there, case.new) is not None
