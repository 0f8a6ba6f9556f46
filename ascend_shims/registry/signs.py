"""Rules about removal probes: each can be asked, and each can be answered."""

from __future__ import annotations

from collections.abc import Iterator

from .model import Condition
from .outline import Finding, Outline, OutlinedCondition, OutlinedSign
from .problems import nearest, quoted, shown

__all__ = ["findings"]

_KEYS = tuple(name for name in Condition.__struct_fields__ if name != "symbol")
_OF_FUNCTIONS = ("takes", "takes_no")


def findings(outline: Outline) -> Iterator[Finding]:
    for gap in outline.gaps:
        if gap.signs and gap.status == "retired":
            yield Finding(
                (*gap.place, "removal_probe"),
                f"gap `{gap.name}` is retired and still has a removal probe",
                "remove `removal_probe`, or set another `status`",
                on_key=True,
            )
        for sign in gap.signs:
            for condition in sign.conditions:
                yield from _condition(condition)
            yield from _packages(outline, sign)


def _condition(condition: OutlinedCondition) -> Iterator[Finding]:
    if len(condition.keys) != 1:
        said = quoted(condition.keys, "and") or "nothing"
        yield Finding(
            condition.place,
            f"a condition asks one thing, this one {said}",
            f"give it one of {quoted(_KEYS)}",
        )
    for symbol in condition.symbols:
        if ":" not in symbol.value and set(condition.keys) & set(_OF_FUNCTIONS):
            yield Finding(
                symbol.place,
                f"`{shown(symbol.value)}` is a file, which has no parameters",
                "write a function or class, `package.module:Qual.name`",
            )


def _packages(outline: Outline, sign: OutlinedSign) -> Iterator[Finding]:
    """A release has one package: a sign about two could never be seen."""
    known = (*outline.upstreams, *outline.watched)
    first: str | None = None
    for condition in sign.conditions:
        for symbol in condition.symbols:
            package = symbol.value.partition(":")[0].partition(".")[0]
            if first is not None and package != first:
                yield Finding(
                    symbol.place,
                    f"`{shown(symbol.value)}` is not in `{shown(first)}`, which the "
                    "sign began with",
                    "give each package a sign of its own",
                )
                continue
            first = package
            if outline.upstreams and package not in known:
                meant = nearest(package, known)
                yield Finding(
                    symbol.place,
                    f"`{shown(symbol.value)}` is neither in the upstreams nor watched",
                    f"did you mean `{meant}`?"
                    if meant
                    else f"a probe asks about {quoted(dict.fromkeys(known))}",
                )
