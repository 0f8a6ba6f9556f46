"""`dataclass_fields`, `replaces_class_binding`."""

from __future__ import annotations

from ascend_shims.upstream.facts.fields import Field, fields_of, has_fields
from ascend_shims.upstream.facts.signature import Shape
from ascend_shims.upstream.facts.symbol import find
from ascend_shims.upstream.judges.changes import kind_change
from ascend_shims.upstream.judges.replaced import lookup_gone
from ascend_shims.upstream.judges.sites import unbound_site
from ascend_shims.upstream.judging import Case, Finding

__all__ = ["judge_class_binding", "judge_fields"]


def judge_fields(case: Case) -> Finding | None:
    before, after = case.before.cls, case.there.cls
    if before is None or after is None:
        return kind_change(case)
    if not (has_fields(before) and has_fields(after)):
        return _by_constructor(case)
    old, new = fields_of(before), fields_of(after)
    olds = {f.name: f for f in old if f.in_init}
    news = {f.name: f for f in new if f.in_init}
    gone = [name for name in olds if name not in news]
    if gone:
        return _finding(case, f"`{'`, `'.join(gone)}` cannot be passed any more")
    required = [
        f.name
        for f in news.values()
        if f.default is None and (f.name not in olds or olds[f.name].default)
    ]
    if required:
        return _finding(case, f"`{'`, `'.join(required)}` has to be passed now")
    if _ends_defaulted(new) and not _ends_defaulted(old):
        name = next(f.name for f in new if f.default is not None and not f.keyword_only)
        return _finding(
            case,
            f"`{name}` has a default, so a subclass whose own fields have none "
            "raises TypeError when it is defined",
        )
    return None


def _by_constructor(case: Case) -> Finding | None:
    """A constructor that is written out takes the place of the fields."""
    old, new = case.before.signature, case.there.signature
    refusal = new.refusal(Shape(0, tuple(old.named)))
    return None if refusal is None else _finding(case, refusal)


def _ends_defaulted(fields: tuple[Field, ...]) -> bool:
    return any(
        f.default is not None and f.in_init and not f.keyword_only for f in fields
    )


def _finding(case: Case, words: str) -> Finding:
    return Finding(
        "broken", "fields-changed", f"the fields of `{case.symbol}` changed: {words}"
    )


def judge_class_binding(case: Case) -> Finding | None:
    if case.is_member:
        owner = case.qualname.rpartition(".")[0]
        symbol = f"{case.module}:{owner}"
        before, after = find(case.old, symbol), find(case.new, symbol)
        if before is not None and after is not None:
            case = Case(case.reliance, case.old, case.new, before, after, case.within)
    finding = kind_change(case)
    if finding is not None:
        return finding
    return lookup_gone(case) or unbound_site(case)
