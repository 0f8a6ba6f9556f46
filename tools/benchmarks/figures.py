"""Middles, spreads, ratios of pairs, and how sure they are."""

from __future__ import annotations

import random
from collections.abc import Sequence
from statistics import median, quantiles

from .model import Ratio, Spread

__all__ = ["in_turns", "overhead", "ratio_of", "ratio_of_groups", "spread"]

_RESAMPLES = 4000

Pair = tuple[float, float]


def _round(value: float) -> float:
    """To five digits that count."""
    return float(f"{value:.5g}")


def spread(samples: Sequence[float]) -> Spread:
    """Raises `ValueError` where there is nothing."""
    if not samples:
        raise ValueError("no samples; a benchmark gives at least one")
    low = high = samples[0]
    if len(samples) > 1:
        low, _, high = quantiles(samples, n=4, method="inclusive")
    return Spread(
        median=_round(median(samples)),
        low=_round(low),
        high=_round(high),
        least=_round(min(samples)),
        count=len(samples),
    )


def ratio_of(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """Of samples taken in pairs, the first with the first."""
    return ratio_of_groups([list(zip(ours, theirs, strict=True))])


def ratio_of_groups(groups: Sequence[Sequence[Pair]]) -> Ratio:
    """Of pairs that belong together in groups, as those of one process do.

    Groups are drawn first and pairs within them, so that what all pairs of a group
    have in common is not taken for certainty. Raises `ValueError` where there is
    nothing.
    """
    ratios = [[a / b for a, b in group] for group in groups if group]
    if not ratios:
        raise ValueError("no pairs; a benchmark gives at least one")
    draw = random.Random(20)
    middles = []
    for _ in range(_RESAMPLES):
        drawn = draw.choices(ratios, k=len(ratios)) if len(ratios) > 1 else ratios
        middles.append(
            median(x for one in drawn for x in draw.choices(one, k=len(one)))
        )
    middles.sort()
    edge = _RESAMPLES // 40
    value = median(x for one in ratios for x in one)
    return Ratio(_round(value), _round(middles[edge]), _round(middles[-edge - 1]))


def overhead(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The middle of what ours take more, pair by pair."""
    return median(a - b for a, b in zip(ours, theirs, strict=True))


def in_turns(names: Sequence[str], rounds: int) -> list[list[str]]:
    """The order of each round: everybody is first and last equally often."""
    orders = []
    for number in range(rounds):
        at = number // 2 % len(names)
        order = [*names[at:], *names[:at]]
        orders.append(order[::-1] if number % 2 else order)
    return orders
