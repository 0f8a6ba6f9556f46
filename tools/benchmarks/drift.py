"""What a check of a release takes, and of ten of them."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from . import rooms
from .children import ask, run
from .figures import ratio_of
from .making import Benchmark, Effort, at_least, at_most, row
from .model import Row
from .releases import COUNT, RELEASE, drift_words, matrix_words, newest
from .rivals import Checked, Compared, installed, installed_alone

__all__ = ["DRIFT", "FETCHING", "MATRIX"]

_LEAST_FASTER, _MOST_BYTES = 20.0, 1.5

_COLD = f"shims drift, {RELEASE}, nothing cached"

Samples = dict[str, list[float]]


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        yield Path(name)


def _shims(words: list[str], cache: Path) -> tuple[float, dict[str, Any]]:
    """Seconds, and what it says of its costs."""
    env = {"ASCEND_SHIMS_CACHE": str(cache)}
    done = run(rooms.environment(), "-m", "ascend_shims", *words, env=env, ends=(0, 1))
    return done.seconds, json.loads(done.printed)["costs"]


def drift(effort: Effort) -> list[Row]:
    took: Samples = defaultdict(list)
    with _folder() as home:
        python = _another(effort, home, took)
        for name in ("mpat", "griffe"):
            (home / name).mkdir()
        checked = Checked(home / "mpat")
        compared = Compared(home / "griffe", python)
        checked.check(python)
        for _ in range(effort.times(9, 1)):
            with _folder() as cache:
                took["cold"].append(_shims(drift_words(), cache)[0])
                took["warm"].append(_shims(drift_words(), cache)[0])
            took["mpat"].append(checked.check(python))
        for _ in range(effort.times(3, 1)):
            took["griffe"].append(compared.check())
    return _drift_rows(took, checked.count, quick=effort.quick)


def fetching(effort: Effort) -> list[Row]:
    """A check with nothing cached against the bytes that it needs, fetched alone."""
    took: Samples = defaultdict(list)
    for _ in range(effort.times(9, 1)):
        with _folder() as cache:
            took["cold"].append(_shims(drift_words(), cache)[0])
        with _folder() as cache:
            env = {"ASCEND_SHIMS_CACHE": str(cache)}
            told = ask("reading", drift_words(), 1, env=env)
        took["floor"] += told["seconds"]
        took["bytes"].append(told["costs"]["bytes"] / 1e6)
        took["needed"].append(told["bytes"] / 1e6)
    bytes_ratio = ratio_of(took["bytes"], took["needed"]).value
    return [
        row(
            "drift-floor",
            _COLD,
            "the floor: needed bytes, fetched",
            "s",
            took,
            "cold",
            "floor",
            note=f"{told['members']} members of two wheels",
        ),
        row(
            "drift-bytes",
            _COLD,
            "the floor: needed bytes",
            "MB",
            took,
            "bytes",
            "needed",
            at_most(_MOST_BYTES, "x", bytes_ratio),
        ),
    ]


def _another(effort: Effort, home: Path, took: Samples) -> Path:
    """An interpreter with the release; in a quick run one with another release."""
    took["alone"].append(installed_alone(home / "alone"))
    if effort.quick:
        return rooms.environment()
    python, seconds = installed(home / "fresh")
    took["installed"].append(seconds)
    return python


def _drift_rows(took: Samples, symbols: int, *, quick: bool) -> list[Row]:
    cold, warm = _COLD, "the same again"
    griffe = took["griffe"]
    some = {**took, "some": took["cold"][: len(griffe)]}
    stand_in = "checked in another release, already installed" if quick else ""
    rows = [
        row(
            "drift-mpat",
            cold,
            "mpat check, installed",
            "s",
            took,
            "cold",
            "mpat",
            note="; ".join(filter(None, [f"mpat watches {symbols} symbols", stand_in])),
        ),
        row(
            "drift-warm-mpat",
            warm,
            "mpat check, installed",
            "s",
            took,
            "warm",
            "mpat",
        ),
        row(
            "drift-griffe",
            cold,
            "griffe check, trees at hand",
            "s",
            some,
            "some",
            "griffe",
            note="griffe compares all of vLLM, and no bodies",
        ),
    ]
    ways = {
        "alone": "install it alone, mpat check",
        "installed": "new environment, mpat check",
    }
    for name, what in ways.items():
        if not took[name]:
            continue
        whole = {
            "cold": took["cold"],
            name: [took[name][0] + seconds for seconds in took["mpat"]],
        }
        faster = median(whole[name]) / median(whole["cold"])
        limits = (at_least(_LEAST_FASTER, "x faster", faster),)
        rows.append(
            row(
                f"drift-{name}",
                cold,
                what,
                "s",
                whole,
                "cold",
                name,
                *(limits if name == "installed" else ()),
                note=f"the installation alone took {took[name][0]:.0f} s, once",
            )
        )
    return rows


def matrix(effort: Effort) -> list[Row]:
    took: Samples = defaultdict(list)
    releases = newest()
    for _ in range(effort.times(5, 1)):
        with _folder() as cache:
            seconds, costs = _shims(matrix_words(), cache)
            took["cold"].append(seconds)
            took["bytes"].append(costs["bytes"] / 1e6)
            took["warm"].append(_shims(matrix_words(), cache)[0])
        each = []
        for release in releases:
            with _folder() as cache:
                each.append(_shims(drift_words(release), cache))
        took["each"].append(sum(seconds for seconds, _ in each))
        took["each-bytes"].append(sum(c["bytes"] for _, c in each) / 1e6)
    what, ten = (
        f"shims matrix of {COUNT}, nothing cached",
        f"{COUNT} x shims drift",
    )
    return [
        row("matrix-each", what, ten, "s", took, "cold", "each"),
        row(
            "matrix-bytes",
            what,
            ten,
            "MB",
            took,
            "bytes",
            "each-bytes",
        ),
        row(
            "matrix-warm",
            f"shims matrix of {COUNT} again",
            "the first time",
            "s",
            took,
            "warm",
            "cold",
        ),
    ]


DRIFT = Benchmark("drift", "Checking a release", drift)
FETCHING = Benchmark("fetch", "Fetching a release", fetching)
MATRIX = Benchmark("matrix", "Checking ten releases", matrix)
