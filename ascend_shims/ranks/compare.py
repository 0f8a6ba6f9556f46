"""Whether what the ranks have told is one and the same, and in words why not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ..errors import ShimsError
from .told import GapTold, RankTold

__all__ = ["Difference", "Ranks", "RanksDifferError", "compared", "numbers"]

_CURE = (
    "Give every rank the same switches and the same installation: set ASCEND_SHIMS "
    "variables where all of them are started, or call ascend_shims.apply() before the "
    "engine is made. A list in VLLM_PLUGINS has to have `ascend_shims` in it. With "
    "ASCEND_SHIMS=off on all of them they run without patches"
)


class Ranks(msgspec.Struct, frozen=True):
    """Ranks that agree."""

    ranks: tuple[RankTold, ...]

    @property
    def plan(self) -> str | None:
        """The digest that all of them share; None where none carries a patch."""
        return self.ranks[0].plan

    @property
    def digests(self) -> tuple[str | None, ...]:
        """The digest of each, in the order of ranks."""
        return tuple(one.plan for one in self.ranks)


class Difference(msgspec.Struct, frozen=True):
    """One thing in which ranks differ."""

    gap: str | None
    """None where it is not about one gap."""
    sides: tuple[tuple[str, tuple[int, ...]], ...]
    """What is so on which ranks."""

    def __str__(self) -> str:
        sides = (f"{said} on {numbers(ranks)}" for said, ranks in self.sides)
        return f"{self.gap or 'the plan'} is {', and '.join(sides)}"


class RanksDifferError(ShimsError):
    """Ranks of one engine do not carry the same patches."""

    def __init__(
        self, differences: Sequence[Difference], silent: Sequence[int], why: str
    ) -> None:
        said = [str(one) for one in differences]
        if silent:
            said.append(f"{numbers(silent)} {why}")
        super().__init__(
            f"the ranks do not carry the same patches: {'; '.join(said)}. {_CURE}"
        )
        self._made_of = (tuple(differences), tuple(silent), why)
        self.differences = tuple(differences)
        self.silent = tuple(silent)
        """Ranks of which nothing is known, for nothing of ours runs there."""

    def __reduce__(self) -> Any:
        # Executors send what a worker raised to whoever started it.
        return type(self), self._made_of

    @property
    def gaps(self) -> tuple[str, ...]:
        """The gaps that differ."""
        return tuple(one.gap for one in self.differences if one.gap)


def compared(told: Sequence[RankTold], *, silent: str, expected: bool = False) -> Ranks:
    """The ranks, where they agree.

    `silent` says of ranks that have told nothing why that may be. Raises
    `RanksDifferError`; where none of them has anything to tell only if that was
    `expected`.
    """
    telling = [one for one in told if one.plan is not None]
    quiet = [one.rank for one in told if one.plan is None]
    found = _differences(telling)
    if found or (quiet and (telling or expected)):
        raise RanksDifferError(found, quiet, silent)
    return Ranks(tuple(told))


def _differences(told: Sequence[RankTold]) -> list[Difference]:
    by_rank = {one.rank: {gap.id: gap for gap in one.gaps} for one in told}
    ids = dict.fromkeys(gap for gaps in by_rank.values() for gap in gaps)
    found = []
    for gap in ids:
        sides = {rank: _side(gaps.get(gap)) for rank, gaps in by_rank.items()}
        if len({standing for standing, _ in sides.values()}) > 1:
            found.append(Difference(gap, _grouped(sides.items())))
    if not found and len({one.plan for one in told}) > 1:
        plans = ((one.rank, (str(one.plan), "")) for one in told)
        found.append(Difference(None, _grouped(plans)))
    return found


def _side(gap: GapTold | None) -> tuple[str, str]:
    """What is compared, and what is said besides."""
    if gap is None:
        return "not in the registry", ""
    return gap.standing, "" if gap.standing.startswith("in force") else gap.reason


def _grouped(
    sides: Iterable[tuple[int, tuple[str, str]]],
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    groups: dict[str, list[int]] = {}
    for rank, (standing, reason) in sides:
        said = f"{standing} ({reason})" if reason else standing
        groups.setdefault(said, []).append(rank)
    return tuple((said, tuple(ranks)) for said, ranks in groups.items())


def numbers(ranks: Sequence[int]) -> str:
    """Ranks in words: `rank 1`, `ranks 0-3 and 7`."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    spelled = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    *most, last = spelled
    listed = f"{', '.join(most)} and {last}" if most else last
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {listed}"
