"""Workflow commands of GitHub Actions, and the step's summary.

A step shows at most ten errors and ten warnings; what is beyond is in the summary.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import markdown
from .shared import LEVELS, relative, serious

if TYPE_CHECKING:
    from ...upstream.check import Checked

__all__ = ["write"]

_MOST = 10


def write(checked: Checked, *, everything: bool) -> None:
    left = dict.fromkeys(("error", "warning"), _MOST)
    for one in serious(checked):
        level = LEVELS[one.verdict.kind]
        if not left[level]:
            continue
        left[level] -= 1
        where = f"file={_property(relative(one.watched.file))},line={one.watched.line}"
        title = _property(f"{one.watched.gap}: {one.verdict.kind}")
        text = _data(one.verdict.sentence)
        click.echo(f"::{level} {where},title={title}::{text}")
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(markdown.text(checked, everything=everything))


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
