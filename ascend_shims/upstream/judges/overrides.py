"""`overrides_method`, `subclass_init_signature`: upstream calls what is ours."""

from __future__ import annotations

from dataclasses import replace

from ascend_shims.upstream.facts.symbol import Symbol, find
from ascend_shims.upstream.judges.bodies import constructor_review, copy_review
from ascend_shims.upstream.judges.changes import (
    kind_change,
    lost_bases,
    parameter_breakage,
    return_change,
)
from ascend_shims.upstream.judges.sites import (
    first_passed,
    no_longer_called,
    unbound_site,
)
from ascend_shims.upstream.judging import Case, Finding

__all__ = ["judge_constructor", "judge_override"]


def judge_override(case: Case) -> Finding | None:
    if case.before.kind == "class":
        return _class_overridden(case)
    finding = kind_change(case) or unbound_site(case) or _super_call(case)
    if finding is not None:
        return finding
    change = return_change(case.before, case.there)
    if change is not None and change[0]:
        return Finding(
            "broken",
            "returns-changed",
            f"callers of `{case.symbol}` expect another result: {change[1]}",
        )
    return no_longer_called(case) or copy_review(case)


def _class_overridden(case: Case) -> Finding | None:
    """A subclass of the whole class, its members unnamed."""
    before, after = case.before, case.there
    if after.kind != "class":
        return kind_change(case)
    if lost_bases(before, after) or _gave_up_members(before, after):
        old, new = _base_names(before), _base_names(after)
        return Finding(
            "broken",
            "base-changed",
            f"`{case.symbol}` derives from {_say(new)} now, not from {_say(old)}",
        )
    constructed = unbound_site(case)
    # A subclass that leaves the constructor alone inherits the new one.
    return replace(constructed, kind="review") if constructed else None


def _gave_up_members(before: Symbol, after: Symbol) -> bool:
    """Whether methods that the class had itself are those of a base it got since."""
    assert before.cls is not None
    assert after.cls is not None
    known = {one.qualname for one in before.cls.mro} | before.cls.outside
    for method in before.cls.methods():
        now = after.cls.member(method.name)
        if now is not None and now.owner.qualname not in known:
            return True
    return False


def _base_names(symbol: Symbol) -> list[str]:
    assert symbol.cls is not None
    plain = ("object", "Generic", "Protocol", "ABC")
    names = [b if isinstance(b, str) else b.qualname for b in symbol.cls.bases]
    return [name for name in names if name not in plain]


def _say(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "nothing"


def _super_call(case: Case) -> Finding | None:
    """Whether `super()` can still be called with the baseline's parameters."""
    old, new = case.before.signature, case.there.signature
    if new.refusal(old.usual_call()) is None:
        return None
    breakage, words = parameter_breakage(old, new)
    return Finding(
        "broken",
        breakage,
        f"`super()` of `{case.symbol}` no longer takes what it took: {words}",
    )


def judge_constructor(case: Case) -> Finding | None:
    init = _constructor_case(case)
    finding = unbound_site(init) or _super_call(init) or first_passed(init)
    return finding or _lost_base(case) or constructor_review(init)


def _lost_base(case: Case) -> Finding | None:
    """A subclass of ours is no longer what `isinstance` and `super()` need."""
    lost = lost_bases(case.before, case.there)
    if not lost:
        return None
    return Finding(
        "broken",
        "base-changed",
        f"`{case.symbol}` is no longer a `{lost[0]}`, nor is a subclass of it",
    )


def _constructor_case(case: Case) -> Case:
    """The same case on `Class.__init__` where only the class was named."""
    if case.before.kind != "class" or case.there.kind != "class":
        return case
    symbol = f"{case.symbol}.__init__"
    before, after = find(case.old, symbol), find(case.new, symbol)
    if before is None or after is None:
        return case
    return Case(case.reliance, case.old, case.new, before, after, case.within)
