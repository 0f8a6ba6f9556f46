"""What `apply()` and `revert()` take with upstream loaded."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from .children import ask, rig
from .figures import ratio_of
from .making import Benchmark, Effort, at_most, row
from .model import Row

__all__ = ["APPLYING"]

_MOST_MS, _MOST_FLOORS, _MOST_CURVE = 60.0, 2.0, 1.1
_SCALES = (0, 1, 4, 16)

_OTHERS = {
    "mock": "unittest.mock.patch",
    "monkeypatch": "pytest's monkeypatch",
    "setattr": "plain setattr",
}

_FLOOR = "the floor: a plain pass over all names"


def _first(told: list[Any]) -> dict[str, list[float]]:
    return {name: [one["first"][name] for one in told] for name in told[0]["first"]}


def _steady(told: list[Any]) -> dict[str, list[float]]:
    names = told[0]["steady"]
    return {name: [x for one in told for x in one["steady"][name]] for name in names}


def _against_others(when: str, samples: Mapping[str, list[float]]) -> list[Row]:
    limit = at_most(_MOST_MS, "ms", median(samples["apply"]))
    floors = ratio_of(samples["apply"], samples["floor"])
    both, alone = f"apply() and revert(), {when}", f"apply(), {when}"
    found = [
        row(
            f"apply-{when}-floor",
            alone,
            _FLOOR,
            "ms",
            samples,
            "apply",
            "floor",
            limit,
            at_most(_MOST_FLOORS, "x", floors.value),
        )
    ]
    for name, other in _OTHERS.items():
        note = "the others are told the places beforehand, aliases too"
        key = f"apply-{when}-{name}"
        found.append(row(key, both, other, "ms", samples, "shims", name, note=note))
    return found


def _linear(grown: Mapping[str, Any]) -> Row:
    """Whether a name costs the same, however many there are."""
    names, took = grown["names"], grown["took"]
    samples = {x: [1e6 * one / names[x] for one in took[x]] for x in took}
    listed = ", ".join(f"{x}x: {median(took[x]):.0f} ms" for x in took)
    one, sixteen = str(_SCALES[1]), str(_SCALES[-1])
    curve = ratio_of(samples[sixteen], samples[one]).value
    return row(
        "apply-linear",
        f"apply(), a name, {names[sixteen]:,} loaded",
        f"{names[one]:,} loaded",
        "ns a name",
        samples,
        sixteen,
        one,
        at_most(_MOST_CURVE, "x", curve),
        note=f"with so many thousand made-up modules more, {listed}",
    )


def measure(effort: Effort) -> list[Row]:
    env = {**rig(), "ASCEND_SHIMS_DEVICE": "sim"}
    rounds, grown = effort.times(20, 2), effort.times(9, 1)
    told = [ask("applying", rounds, grown, _SCALES, env=env)]
    for _ in range(effort.times(9, 0)):
        told.append(ask("applying", rounds, 0, [], env=env))
    one, steady = told[0], _steady(told)
    said = (
        f"{one['gaps']} gaps, {one['places']} bindings, {one['modules']:,} modules, "
        f"{one['names']:,} names"
    )
    rows = [*_against_others("first", _first(told)), *_against_others("steady", steady)]
    return [
        *rows,
        row(
            "aliases",
            "finding aliases",
            _FLOOR,
            "ms",
            steady,
            "find",
            "floor",
            note=said,
        ),
        _linear(one["grown"]),
    ]


APPLYING = Benchmark("apply", "Applying and reverting, vLLM loaded", measure)
