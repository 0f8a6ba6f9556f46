"""Judges one reliance against one release."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ascend_shims.upstream.contract import How, Reliance
from ascend_shims.upstream.facts.record import Reached
from ascend_shims.upstream.facts.symbol import Symbol, find
from ascend_shims.upstream.judges import callers, classes, names, overrides, replaced
from ascend_shims.upstream.judging import Case, Finding
from ascend_shims.upstream.near import nearest_symbol
from ascend_shims.upstream.tree import Tree
from ascend_shims.upstream.verdict import Location, Verdict

__all__ = ["judge"]

_JUDGES: dict[How, Callable[[Case], Finding | None]] = {
    "wraps_function": replaced.judge_wrapped,
    "replaces_function": replaced.judge_replaced,
    "overrides_method": overrides.judge_override,
    "calls": callers.judge_calls,
    "imports_name": names.judge_import,
    "subclass_init_signature": overrides.judge_constructor,
    "reads_attribute": names.judge_attribute,
    "dataclass_fields": classes.judge_fields,
    "replaces_class_binding": classes.judge_class_binding,
}


def judge(
    reliance: Reliance,
    old: Tree,
    new: Tree,
    *,
    hints: Iterable[str] | None = None,
    reached: Reached | None = None,
    still_needed: Callable[[Tree], bool] | None = None,
) -> Verdict:
    """What `new` does to a reliance that held in `old`.

    `hints`: names of the modules that call or import the symbol. Only these are
    searched for call sites in `new`, besides the module that defines it.
    `reached`: whether `old` calls or looks up the symbol, where that is known.
    `still_needed`: the removal probe of a gap, asked about `new`.
    """
    before = find(old, reliance.symbol)
    after = find(new, reliance.symbol)
    if still_needed is not None and not still_needed(new):
        fixed = f"{new.label} does itself what `{reliance.symbol}` is relied on for"
        return _verdict(reliance, Finding("fixed-upstream", None, fixed), before, after)
    if before is None:
        return _verdict(reliance, _baseless(reliance, old, new, after), None, after)
    within = None if hints is None else tuple(dict.fromkeys(hints))
    case = Case(reliance, old, new, before, after, within, reached)
    finding = names.judge_presence(case) or _JUDGES[reliance.how](case)
    return _verdict(reliance, finding or _unbroken(case), before, after)


def _baseless(
    reliance: Reliance, old: Tree, new: Tree, after: Symbol | None
) -> Finding:
    """There is no baseline to compare with."""
    if after is None:
        near = nearest_symbol(new, reliance.symbol)
        hint = f"; did you mean `{near}`?" if near else ""
        missing = f"neither {old.label} nor {new.label} has `{reliance.symbol}`{hint}"
        if old.label == new.label:
            missing = f"{new.label} has no `{reliance.symbol}`{hint}"
        return Finding("broken", "removed", missing)
    return Finding(
        "review",
        "unreadable",
        f"{old.label} has no `{reliance.symbol}`, so there is nothing to compare",
    )


def _unbroken(case: Case) -> Finding:
    before, after = case.before, case.there
    if before.written == after.written and before.place == after.place:
        return Finding("identical", None, f"`{case.symbol}` did not change")
    if before.node is None or after.node is None:
        return Finding("compatible", None, f"`{case.symbol}` is still there")
    same = (
        before.place == after.place
        and before.kind == after.kind
        and before.signature == after.signature
        and before.decorators == after.decorators
        and before.base_names == after.base_names
        and before.body == after.body
    )
    if same:
        return Finding(
            "cosmetic", None, f"only the way `{case.symbol}` is written changed"
        )
    if before.place != after.place:
        return Finding(
            "compatible",
            None,
            f"`{case.symbol}` is now defined in `{after.place}` and still found "
            "under its old name",
        )
    return Finding(
        "compatible", None, f"`{case.symbol}` changed, and what we rely on did not"
    )


def _verdict(
    reliance: Reliance, finding: Finding, before: Symbol | None, after: Symbol | None
) -> Verdict:
    return Verdict(
        finding.kind,
        reliance.symbol,
        reliance.how,
        finding.breakage,
        finding.sentence,
        _location(before),
        _location(after),
        finding.moved_to,
        finding.confidence,
        finding.evidence,
    )


def _location(symbol: Symbol | None) -> Location | None:
    if symbol is None:
        return None
    return Location(symbol.tree.label, symbol.place, symbol.path, symbol.line)
