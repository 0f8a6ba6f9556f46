"""Differences between two callables, named once for all judges."""

from __future__ import annotations

from ascend_shims.upstream.facts.annotations import (
    arguments,
    split_union,
    tuple_arity,
)
from ascend_shims.upstream.facts.signature import Signature
from ascend_shims.upstream.facts.symbol import Symbol
from ascend_shims.upstream.judging import Case, Finding
from ascend_shims.upstream.verdict import Breakage

__all__ = [
    "is_wider",
    "kind_change",
    "lost_bases",
    "misplaced",
    "parameter_breakage",
    "return_change",
]

_NATURES = {
    "function": "a plain function",
    "async": "a coroutine function",
    "static": "a static method",
    "classmethod": "a class method",
    "property": "a property",
    "class": "a class",
    "value": "a value",
    "set": "an attribute set by a method",
    "module": "a module",
}


_SINGLE = frozenset(
    {"Tensor", "int", "float", "bool", "str", "bytes", "list", "dict", "set"}
)
"""Types of one value, whatever else the source defines."""


def kind_change(case: Case) -> Finding | None:
    """A function that became something that cannot be called or replaced as before."""
    before, after = case.before, case.there
    if before.kind == after.kind or "external" in (before.kind, after.kind):
        return None
    if {before.kind, after.kind} <= {"value", "set"}:
        return None
    old, new = _NATURES[before.kind], _NATURES[after.kind]
    return Finding(
        "broken", "kind-changed", f"`{case.symbol}` was {old} and is {new} now"
    )


def parameter_breakage(old: Signature, new: Signature) -> tuple[Breakage, str]:
    """The name of a change of parameters, and its words."""
    added = [p for p in new.parameters if not p.is_variadic and p.name not in old.named]
    removed = [p.name for p in old.parameters if not p.is_variadic]
    removed = [name for name in removed if name not in new.named]
    required = [p.name for p in added if p.is_required]
    if removed and added:
        words = f"{_list(removed)} became {_list([p.name for p in added])}"
        return "parameter-renamed", words
    if removed:
        return "parameter-removed", f"{_list(removed)} is gone"
    if required:
        return "required-parameter-added", f"{_list(required)} is required now"
    if added:
        names = _list([p.name for p in added])
        return "optional-parameter-passed", f"{names} was added"
    return "parameters-reordered", f"the parameters are {new} now, not {old}"


def _list(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def misplaced(old: Signature, new: Signature, count: int) -> str | None:
    """A parameter among the first `count` that a positional argument now misses.

    A pure change of name at the same place is not a misplacement unless the
    annotation says that something else is meant.
    """
    olds, news = old.positional, new.positional
    for index in range(min(count, len(olds), len(news))):
        one, other = olds[index], news[index]
        if one.name == other.name:
            continue
        if one.name not in new.named and other.name not in old.named:
            known = one.annotation and other.annotation
            if not known or one.annotation == other.annotation:
                continue
        return one.name
    return None


def return_change(before: Symbol, after: Symbol) -> tuple[bool, str] | None:
    """Whether what comes back changed: certainly, and in which words."""
    if before.function is None or after.function is None:
        return None
    if before.written == after.written:
        return None
    old, new = before.returns, after.returns
    old_said, new_said = before.return_annotation, after.return_annotation
    if old.settled and before.quiet_body == after.quiet_body:
        # Only the annotation was put right.
        return None
    if old.yields != new.yields:
        return True, "it is a generator now" if new.yields else "it yields no longer"
    lengths = (_arity(before), _arity(after))
    if lengths[0] and lengths[1] and not lengths[0] & lengths[1]:
        return True, f"it returns {_count(lengths[1])} instead of {_count(lengths[0])}"
    if old.gives_value and not new.gives_value and new_said in (None, "None"):
        return True, "it returns nothing any more"
    if old_said == "None" and new_said not in (None, "None") and new.gives_value:
        return True, f"it returns `{new_said}` where it returned nothing"
    if old_said and new_said and old_said != new_said:
        certain = not (is_wider(old_said, new_said) or _overlap(old_said, new_said))
        return certain, f"it returns `{new_said}` where it returned `{old_said}`"
    return None


def _arity(symbol: Symbol) -> frozenset[int]:
    """How many values come back; nothing where that is not known."""
    said = symbol.return_annotation
    if symbol.returns.arities:
        alone = not symbol.returns.only_tuples and _is_single(said)
        return symbol.returns.arities | ({1} if alone else set())
    count = tuple_arity(said)
    if count is not None:
        return frozenset({count})
    return frozenset({1} if _is_single(said) and symbol.returns.gives_value else ())


def _is_single(said: str | None) -> bool:
    """Whether an annotation says that one value comes back which is no tuple."""
    return said is not None and "|" not in said and said.split("[")[0] in _SINGLE


def _count(lengths: frozenset[int]) -> str:
    words = " or ".join(str(length) for length in sorted(lengths))
    return "one value" if words == "1" else f"{words} values"


def is_wider(old: str, new: str) -> bool:
    """A union with more or fewer members, or a type that says more of the same."""
    return _covers(old, new) or _covers(new, old)


def _overlap(old: str, new: str) -> bool:
    """Whether some value is of both types, `None` apart."""
    shared = set(split_union(old)) & set(split_union(new))
    return bool(shared - {"None"})


def _covers(wide: str, narrow: str) -> bool:
    """Whether every member of one union is one of the other, as far as it says."""
    members = split_union(wide)
    return all(
        any(one == other or _says_more(one, other) for one in members)
        for other in split_union(narrow)
    )


def _says_more(wide: str, narrow: str) -> bool:
    (head, inner), (other, its) = arguments(wide), arguments(narrow)
    if head != other or bool(inner) != bool(its):
        return head == other
    return len(inner) == len(its) and all(map(_covers, inner, its))


def lost_bases(before: Symbol, after: Symbol) -> list[str]:
    """Bases, at any depth, that the class no longer has."""
    if before.cls is None or after.cls is None:
        return []
    old = {c.qualname for c in before.cls.mro[1:]} | before.cls.outside
    new = {c.qualname for c in after.cls.mro} | after.cls.outside
    return sorted(old - new - {"object", "Generic", "Protocol"})
