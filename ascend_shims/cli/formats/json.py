"""Plain data, schema 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .shared import relative

if TYPE_CHECKING:
    from ...upstream.check import Checked
    from ...upstream.verdict import Location

__all__ = ["write"]


def write(checked: Checked, *, everything: bool) -> None:
    from ..here import print_json

    print_json(
        {
            "schema": 1,
            "baseline": checked.baseline,
            "release": checked.release,
            "findings": [
                {
                    "gap": one.watched.gap,
                    "how": one.verdict.how,
                    "symbol": one.verdict.symbol,
                    "verdict": one.verdict.kind,
                    "breakage": one.verdict.breakage,
                    "sentence": one.verdict.sentence,
                    "old": _location(one.verdict.old),
                    "new": _location(one.verdict.new),
                    "moved_to": one.verdict.moved_to,
                    "confidence": round(one.verdict.confidence, 3),
                    "evidence": list(one.verdict.evidence),
                    "file": relative(one.watched.file),
                    "line": one.watched.line,
                    "fingerprint": one.fingerprint,
                }
                for one in checked.findings
            ],
            "problems": list(checked.problems),
            "notes": list(checked.notes),
            "costs": checked.costs,
        }
    )


def _location(location: Location | None) -> dict[str, Any] | None:
    if location is None:
        return None
    return {
        "release": location.release,
        "symbol": location.symbol,
        "path": location.path,
        "line": location.line,
    }
