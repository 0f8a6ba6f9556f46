"""JUnit XML: one suite a release, one case a thing relied on."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

import click

if TYPE_CHECKING:
    from ...upstream.check import Checked

__all__ = ["write"]


def write(checked: Checked, *, everything: bool) -> None:
    failed = [f for f in checked.findings if f.verdict.kind in ("broken", "review")]
    suite = ElementTree.Element(
        "testsuite",
        name=f"{checked.release} against {checked.baseline}",
        tests=str(len(checked.findings)),
        failures=str(len(failed)),
    )
    for one in checked.findings:
        verdict = one.verdict
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=one.watched.gap,
            name=f"{verdict.how} {verdict.symbol}",
        )
        if verdict.kind in ("broken", "review"):
            failure = ElementTree.SubElement(
                case, "failure", type=verdict.kind, message=verdict.sentence
            )
            failure.text = "\n".join(verdict.evidence)
    ElementTree.indent(suite)
    click.echo(ElementTree.tostring(suite, encoding="unicode", xml_declaration=True))
