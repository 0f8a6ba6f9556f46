"""What drift says of one gap and of the upstream that is installed here.

Without the network, and so at once: an answer that needs it is a problem that is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..environment.modules import find_module
from ..errors import ConfigurationError

__all__ = ["drifted"]


def drifted(gap: str, registry: Path | None) -> list[dict[str, Any]]:
    """One row for each installed upstream that the gap relies on, for `show`.

    `verdicts` counts them, worst first; `says` has the sentences of those that somebody
    should read. `problem` is why there are none.
    """
    from .upstream import run_of

    try:
        run, _ = run_of(
            registry,
            (),
            None,
            index_url=None,
            extra_index_urls=(),
            allow_hosts=(),
            offline=True,
        )
    except ConfigurationError as error:
        return [_row("vllm", problem=str(error))]
    run.watched = [one for one in run.watched if one.gap == gap]
    installed = dict.fromkeys(one.package for one in run.watched)
    here = [package for package in installed if find_module(package) is not None]
    return [row for package in here for row in _of(run, package)]


def _of(run: Any, package: str) -> Iterator[dict[str, Any]]:
    from ..upstream.check import ORDER
    from ..upstream.run import NoBaselineError
    from ..upstream.sources import SourceUnavailable
    from .upstream import installed_source

    try:
        checked = run.check(installed_source("installed", package), package)
    except (NoBaselineError, SourceUnavailable) as error:
        yield _row(package, problem=str(error))
        return
    counts = Counter(one.verdict.kind for one in checked.findings)
    if not counts:
        return
    loud = ("broken", "review", "fixed-upstream")
    yield {
        **_row(package),
        "release": checked.release,
        "baseline": checked.baseline,
        "verdicts": {kind: counts[kind] for kind in ORDER if counts[kind]},
        "says": [
            one.verdict.sentence for one in checked.findings if one.verdict.kind in loud
        ],
    }


def _row(package: str, *, problem: str | None = None) -> dict[str, Any]:
    return {
        "package": package,
        "release": None,
        "baseline": None,
        "verdicts": {},
        "says": [],
        "problem": problem,
    }
