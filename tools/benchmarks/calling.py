"""What a call through a wrapped method takes."""

from __future__ import annotations

from pathlib import Path

from .children import ChildError, ask
from .figures import overhead, ratio_of
from .making import Benchmark, Effort, at_most, row
from .model import Limit, Row

__all__ = ["CALLING"]

_MOST_CLOSURES = 1.1
_MOST_GUARD_NS = 1000.0
_MADEUP = Path(__file__).parent / "madeup"


def measure(effort: Effort) -> list[Row]:
    """Raises `ChildError` where a gap that is off is not upstream's very object."""
    told = ask("calling", effort.times(200, 10), 20_000, above=(_MADEUP,))
    if not told["counted"]:
        raise ChildError("the guard has not seen the steps that were timed")
    took, same = told["took"], told["same"]
    guard = overhead(took["guarded"], took["unguarded"])
    off = Limit("the very same object", float(same), same)

    def at_most_a_closure(name: str) -> Limit:
        found = ratio_of(took[name], took["closure"]).value
        return at_most(_MOST_CLOSURES, "x", found)

    def called(
        name: str,
        ours: str,
        what: str,
        theirs: str,
        other: str,
        *limits: Limit,
        note: str = "",
    ) -> Row:
        said = f"least {min(took[ours]):.0f} against {min(took[theirs]):.0f} ns"
        return row(
            name,
            what,
            other,
            "ns a call",
            took,
            ours,
            theirs,
            *limits,
            note="; ".join(filter(None, [said, note])),
        )

    wrap, decorate = (
        "a call through a `wrap` patch",
        "a call through a `decorate` patch",
    )
    by_hand, exact = "a closure by hand, any arguments", "a closure by hand, exact ones"
    return [
        called(
            "call-wrap-closure",
            "wrap",
            wrap,
            "closure",
            by_hand,
            at_most_a_closure("wrap"),
        ),
        called(
            "call-decorate-closure",
            "decorate",
            decorate,
            "closure",
            by_hand,
            at_most_a_closure("decorate"),
        ),
        called("call-wrap-exact", "wrap", wrap, "exact", exact),
        called("call-wrap-bare", "wrap", wrap, "bare", "the bare method"),
        called("call-wrap-wrapt", "wrap", wrap, "wrapt", "wrapt.FunctionWrapper"),
        called(
            "call-guard",
            "guarded",
            "half a step, guard on, no detector",
            "unguarded",
            "the bare methods",
            at_most(_MOST_GUARD_NS, "ns more", guard),
            note="an empty runner",
        ),
        called(
            "call-off",
            "off",
            "a call with the gap, or the guard, off",
            "bare",
            "the bare method",
            off,
        ),
    ]


CALLING = Benchmark("call", "Calls", measure)
