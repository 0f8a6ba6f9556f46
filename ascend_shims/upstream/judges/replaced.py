"""`replaces_function`, `wraps_function`: something of ours under upstream's name."""

from __future__ import annotations

from ascend_shims.upstream.judges.bodies import body_review
from ascend_shims.upstream.judges.changes import kind_change, return_change
from ascend_shims.upstream.judges.sites import no_longer_called, unbound_site
from ascend_shims.upstream.judging import Case, Finding
from ascend_shims.upstream.lookups import is_looked_up
from ascend_shims.upstream.moves import Move, successor

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
    finding = _still_reached(case) or unbound_site(case)
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
    """The name is there and nobody looks it up through that module any more."""
    name = case.qualname
    if case.is_member or case.within is not None:
        return None
    if is_looked_up(case.new, case.module, name):
        return None
    if not is_looked_up(case.old, case.module, name):
        return None
    after = case.there
    move: Move | None = None
    if after.qualname != name or after.module != case.module:
        move = Move(after.place, 0.99, after.qualname != name)
    else:
        move = successor(case.before, case.new, binding=True)
    to = f"; `{move.symbol}` is used instead" if move else ""
    return Finding(
        "broken",
        "not-looked-up",
        f"`{name}` is still in `{case.module}`, but nothing in {case.new.label} looks "
        f"it up there{to}",
        move.symbol if move else None,
        move.confidence if move else 0.0,
    )
