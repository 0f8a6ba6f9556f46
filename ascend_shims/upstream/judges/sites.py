"""Upstream's call sites against the parameters that our replacement has."""

from __future__ import annotations

from functools import partial

from ascend_shims.upstream.calls import is_reached
from ascend_shims.upstream.facts.classes import Class, class_at
from ascend_shims.upstream.facts.signature import Shape, Signature
from ascend_shims.upstream.facts.symbol import Symbol
from ascend_shims.upstream.judges.changes import misplaced, parameter_breakage
from ascend_shims.upstream.judging import Case, Finding
from ascend_shims.upstream.lookups import attribute_is_loaded
from ascend_shims.upstream.snippets import call_shapes
from ascend_shims.upstream.tree import Tree

__all__ = [
    "first_passed",
    "keywords_passed",
    "no_longer_called",
    "unbound_site",
    "unseen_caller",
]

_SHOWN = 5

_SPELLED = {"overrides_method": 11, "replaces_function": 24}
"""Longest lists of parameters that one expects to find spelled out downstream.

Beyond these an override hands `*args, **kwargs` to `super()` and a replacement to
the original. It only weakens a finding about optional parameters to `review`.
"""


def unbound_site(case: Case) -> Finding | None:
    """A call in the new release that what stands in its place does not take."""
    old, new = case.ours, case.there.signature
    if old.binds_like(new) or old.is_open:
        return None
    wanted = partial(_failure, old, new)
    failing = [
        (site, why)
        for site in case.new_sites(lambda shape: wanted(shape) is not None)
        if not (site.is_super and case.reliance.how == "overrides_method")
        and (why := wanted(site.shape))
    ]
    doubtful = {site.module for site, _ in failing if not site.certain}
    if doubtful:
        # The same call on an unknown receiver was there before: it is another's.
        known = {site.key for site in case.old_sites(doubtful)}
        # Where the old calls cannot be read, it is taken for another's.
        failing = [
            (site, why)
            for site, why in failing
            if site.certain or not (case.old.is_stub or site.key in known)
        ]
    if not failing:
        return None
    failing.sort(key=lambda pair: not pair[0].certain)
    site, why = failing[0]
    breakage, words = parameter_breakage(old, new)
    forwarded = _is_forwarded(case)
    return Finding(
        "review" if forwarded else "broken",
        breakage,
        f"upstream's call of `{site.callee}` at {site.place} does not fit the "
        f"parameters of what stands in for `{case.symbol}`: {why}; {words}",
        evidence=tuple(s.place for s, _ in failing[:_SHOWN]),
    )


def unseen_caller(case: Case) -> Finding | None:
    """Parameters that no longer fit, and no call by which to tell whether it matters.

    Whatever is handed on as a value, or called by a library, is called unseen.
    """
    old, new = case.ours, case.there.signature
    if _failure(old, new, new.least_call()) is None:
        return None
    if case.new_sites(lambda _: True):
        return None
    breakage, words = parameter_breakage(old, new)
    return Finding(
        "review",
        breakage,
        f"what stands in for `{case.symbol}` has other parameters, and no call of it "
        f"shows whether they are passed: {words}",
    )


def _failure(old: Signature, new: Signature, shape: Shape) -> str | None:
    # A call that does not fit upstream's own parameters is of something else.
    if new.refusal(shape) is not None:
        return None
    refusal = old.refusal(shape)
    if refusal is not None:
        return refusal
    missed = misplaced(old, new, shape.positional)
    return f"`{missed}` gets another parameter's value" if missed else None


def _is_forwarded(case: Case) -> bool:
    """Whether so many parameters are more likely forwarded than spelled out."""
    old, new = case.before.signature, case.there.signature
    longest = _SPELLED.get(case.reliance.how)
    if (
        case.reliance.replacement is not None
        or longest is None
        or len(old.parameters) <= longest
    ):
        return False
    changed = set(old.parameters) ^ set(new.parameters)
    renamed = any(
        one.name not in new.named and other.name not in old.named
        for one, other in zip(old.parameters, new.parameters, strict=False)
    )
    return not renamed and all(p.default is not None for p in changed)


def first_passed(case: Case) -> Finding | None:
    """An optional parameter, known before, that gets its first caller.

    Whoever left it out because nobody passed it breaks now.
    """
    old, new = case.before.signature, case.there.signature
    known = {
        name
        for name, parameter in old.named.items()
        if parameter.default is not None and name in new.named
    }
    name = case.symbol.removesuffix(".__init__").replace(":", ".").split(".")[-1]
    if case.record is not None:
        passed_before = set(case.record.passed)
    else:
        passed_before = keywords_passed(case.old, case.before)
    fresh = (_passed(case.new, name, case.modules) - passed_before) & known
    if not fresh:
        return None
    sites = case.new_sites(lambda shape: bool(fresh & set(shape.keywords)))
    for site in sites:
        passed = sorted(fresh & set(site.shape.keywords))
        if site.certain and passed:
            return Finding(
                "broken",
                "optional-parameter-passed",
                f"upstream's call of `{site.callee}` at {site.place} is the first to "
                f"pass `{passed[0]}`: a subclass that leaves it out breaks now",
                evidence=(site.place,),
            )
    return None


def keywords_passed(tree: Tree, symbol: Symbol) -> set[str]:
    """Keywords that are passed where the class, or one of its family, is made."""
    name = symbol.qualname.removesuffix(".__init__").split(".")[-1]
    return {
        keyword
        for relative in _relatives(symbol.cls, name)
        for keyword in _passed(tree, relative, None)
    }


def _relatives(cls: Class | None, name: str) -> set[str]:
    """Names of the class, and of those next to it that have a base with it.

    Whoever subclasses one of such a family knows what is passed to the others. What
    is passed to its own subclasses is passed to these alone.
    """
    found = {name}
    bases = {one.key for one in cls.mro[1:]} if cls is not None else set()
    for other in cls.module.scope.names if cls is not None and bases else ():
        assert cls is not None
        one = class_at(cls.tree, cls.module.name, other)
        if one is None or one.inherits(cls.key):
            continue
        if any(base.key in bases for base in one.mro):
            found.add(other)
    return found


def _passed(tree: Tree, name: str, within: list[str] | None) -> set[str]:
    """Keywords that calls of that name pass, as far as their text shows."""
    return {
        keyword
        for module in tree.mentions(name, within=within)
        for shape in call_shapes(tree.text(module), name)
        if shape is not None
        for keyword in shape.keywords
    }


def no_longer_called(case: Case) -> Finding | None:
    """Nothing in the new release calls or reads it, and something used to."""
    name = case.qualname.split(".")[-1]
    if name.startswith("__"):
        return None
    if case.was_reached == "no":
        # It was called through a string: nothing that could be missed, and no reason to
        # read a whole release.
        return None
    # Its own modules are looked at first, then known callers; only if none of them
    # is left does the question go to the whole release.
    stages = () if case.modules is None else (case.own_modules, case.modules)
    if any(is_reached(case.new, case.there, within) for within in (*stages, None)):
        return None
    # Where others of that name are read still, ours has to have been read for sure.
    others = attribute_is_loaded(case.new, name)
    if case.was_reached is not None:
        was_reached = case.was_reached in (("yes",) if others else ("yes", "perhaps"))
    else:
        was_reached = is_reached(case.old, case.before, case.within, certainly=others)
    if not was_reached:
        return None
    return Finding(
        "broken",
        "not-called",
        f"nothing in {case.new.label} calls `{case.symbol}` any more, so what "
        "stands in its place never runs",
    )
