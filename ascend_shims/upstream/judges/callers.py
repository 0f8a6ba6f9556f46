"""`calls`: we are a caller, and upstream's parameters and results bind us."""

from __future__ import annotations

from ascend_shims.upstream.facts.signature import Shape
from ascend_shims.upstream.facts.symbol import SymbolKind
from ascend_shims.upstream.judges.changes import (
    kind_change,
    lost_bases,
    misplaced,
    parameter_breakage,
    return_change,
)
from ascend_shims.upstream.judging import Case, Finding
from ascend_shims.upstream.snippets import call_shapes

__all__ = ["judge_calls"]


def judge_calls(case: Case) -> Finding | None:
    before, after = case.before, case.there
    if not _is_called_alike(before.kind, after.kind):
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


def _is_called_alike(old: SymbolKind, new: SymbolKind) -> bool:
    """A class and a factory; a method and one that does without an instance."""
    if {old, new} == {"class", "function"}:
        return True
    return old == "function" and new in ("static", "classmethod")


def _refused(case: Case) -> Finding | None:
    old, new = case.before.signature, case.there.signature
    shape = old.usual_call()
    refusal = new.refusal(shape)
    breakage, words = parameter_breakage(old, new)
    if refusal is not None:
        return Finding(
            "broken", breakage, f"a call of `{case.symbol}` no longer binds: {words}"
        )
    renamed = _renamed(case, words)
    if renamed is not None:
        return renamed
    asked = shape.positional if case.reliance.by_keyword else len(old.positional)
    missed = misplaced(old, new, asked)
    if missed is None:
        return None
    certain = misplaced(old, new, shape.positional) or not _is_spelled_out(case)
    return Finding(
        "broken" if certain else "review",
        "parameters-reordered",
        f"a positional argument for `{missed}` of `{case.symbol}` binds to "
        f"another parameter now: {words}",
    )


def _renamed(case: Case, words: str) -> Finding | None:
    """A required parameter has another name, for callers that pass it by keyword."""
    old, new = case.before.signature, case.there.signature
    gone = {p.name for p in old.positional if p.is_required} - new.named.keys()
    if not gone or new.takes_any_keyword:
        return None

    def names_it(shape: Shape) -> bool:
        return not gone.isdisjoint(shape.keywords)

    usual = any(names_it(s.shape) for s in case.old_sites(case.modules, names_it))
    return Finding(
        "broken" if usual else "review",
        "parameter-renamed",
        f"a call of `{case.symbol}` by keyword no longer binds: {words}",
    )


def _is_spelled_out(case: Case) -> bool:
    """Whether upstream's own calls all pass by keyword what would be misplaced, as
    one does that has a long list of options: others are likely to do so as well."""
    old, new = case.before.signature, case.there.signature

    def misses(shape: Shape) -> bool:
        return misplaced(old, new, shape.positional) is not None

    if any(misses(s.shape) for s in case.old_sites(case.modules, misses)):
        return False
    name = case.before.qualname.removesuffix(".__init__").split(".")[-1]
    return any(
        shape is not None
        for module in case.old.mentions(name, within=case.modules)
        for shape in call_shapes(case.old.text(module), name)
    )
