"""`calls`: we are a caller, and upstream's parameters and results bind us."""

from __future__ import annotations

from ascend_shims.upstream.judges.changes import (
    kind_change,
    lost_bases,
    misplaced,
    parameter_breakage,
    return_change,
)
from ascend_shims.upstream.judging import Case, Finding

__all__ = ["judge_calls"]


def judge_calls(case: Case) -> Finding | None:
    before, after = case.before, case.there
    if {before.kind, after.kind} != {"class", "function"}:
        changed = kind_change(case)
        if changed is not None:
            return changed
    refused = _refused(case)
    if refused is not None:
        return refused
    lost = lost_bases(before, after)
    if lost and before.kind == "class":
        return Finding(
            "broken",
            "base-changed",
            f"`{case.symbol}` is no longer a `{lost[0]}`: `isinstance` and `except` "
            "with that base stop matching",
        )
    change = return_change(before, after)
    if change is not None:
        certain, words = change
        return Finding(
            "broken" if certain else "review",
            "returns-changed",
            f"`{case.symbol}`: {words}",
        )
    return None


def _refused(case: Case) -> Finding | None:
    old, new = case.before.signature, case.there.signature
    shape = old.usual_call()
    refusal = new.refusal(shape)
    breakage, words = parameter_breakage(old, new)
    if refusal is not None:
        return Finding(
            "broken", breakage, f"a call of `{case.symbol}` no longer binds: {words}"
        )
    count = shape.positional if case.reliance.by_keyword else len(old.positional)
    missed = misplaced(old, new, count)
    if missed is not None:
        return Finding(
            "broken",
            "parameters-reordered",
            f"a positional argument for `{missed}` of `{case.symbol}` binds to "
            f"another parameter now: {words}",
        )
    return None
