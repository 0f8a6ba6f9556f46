"""SARIF 2.1.0 for code scanning: locations are lines of the registry."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from ... import __version__
from .shared import LEVELS, relative, serious

if TYPE_CHECKING:
    from ...upstream.check import Checked, Finding

__all__ = ["write"]

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def write(checked: Checked, *, everything: bool) -> None:
    findings = list(checked.findings) if everything else serious(checked)
    rules = sorted({_rule(one) for one in findings})
    log = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "ascend-shims",
                        "version": __version__,
                        "rules": [
                            {"id": rule, "shortDescription": {"text": _spelled(rule)}}
                            for rule in rules
                        ],
                    }
                },
                "results": [_result(one, rules) for one in findings],
            }
        ],
    }
    click.echo(json.dumps(log, indent=2))


def _rule(one: Finding) -> str:
    return f"{one.verdict.kind}/{one.verdict.breakage or 'none'}"


def _spelled(rule: str) -> str:
    kind, _, breakage = rule.partition("/")
    return f"{kind}: {breakage.replace('-', ' ')}"


def _result(one: Finding, rules: list[str]) -> dict[str, Any]:
    verdict = one.verdict
    places = [str(verdict.new)] if verdict.new else []
    places += [*verdict.evidence[:3]]
    # Upstream's files are not in the repository, so they are named in the text.
    seen = f" ({', '.join(places)})" if places else ""
    rule = _rule(one)
    return {
        "ruleId": rule,
        "ruleIndex": rules.index(rule),
        "level": LEVELS.get(verdict.kind, "note"),
        "message": {"text": f"{one.watched.gap}: {verdict.sentence}{seen}"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(relative(one.watched.file))},
                    "region": {"startLine": max(1, one.watched.line)},
                }
            }
        ],
        "partialFingerprints": {"ascendShims/v1": one.fingerprint},
    }
