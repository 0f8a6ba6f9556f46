"""`shims status`: what is open, and what is applied in which process."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..processes.client import Answer, ask_all
from ..states import State
from ..switches import meant
from .completion import gap_ids
from .foreseen import foresee
from .here import (
    NPU_LACKS,
    assumed,
    lacks_npu,
    own_plan,
    own_switches,
    print_json,
)
from .named import OneOf, RegistryPath, Seconds, gaps_named

if TYPE_CHECKING:
    from ..plan import Plan

__all__ = ["command"]

_SORTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "registry": lambda _: 0,
    "gap": lambda gap: gap["id"],
    # What needs somebody comes first, what nobody waits for last.
    "state": lambda gap: (not State(gap["state"]).is_fault, gap["state"]),
}


@dataclass(frozen=True)
class _Choice:
    """Which gaps are shown, and in which order."""

    everything: bool
    states: tuple[str, ...]
    gaps: tuple[str, ...]
    sort: str

    @property
    def narrows(self) -> bool:
        return bool(self.states or self.gaps)

    def as_options(self) -> str:
        """What of it another call has to be given to show the same gaps."""
        words = ["--all"] if self.everything else []
        words += [f"--gap {shlex.quote(gap)}" for gap in self.gaps]
        return "".join(f" {word}" for word in words)

    def of(
        self, gaps: list[dict[str, Any]], *, closed_too: bool = False
    ) -> list[dict[str, Any]]:
        named = self.everything or self.gaps or self.states or closed_too
        shown = [
            gap
            for gap in gaps
            if (not self.gaps or meant(self.gaps, [gap["id"]]))
            and (not self.states or gap["state"] in self.states)
            and (named or gap["status"] == "open")
        ]
        return sorted(shown, key=_SORTS[self.sort])


@dataclass(frozen=True)
class _Look:
    """What is seen at one moment."""

    report: dict[str, Any]
    hidden: int
    """Gaps of the registry that it leaves out."""
    others: frozenset[int] = frozenset()
    """Processes that carry gaps of another registry."""
    closed: int = 0
    """Gaps left out although they are patched here: upstream has closed them, and
    something of them stays ours."""


@click.command("status")
@click.option("--all", "everything", is_flag=True, help="Landed and retired gaps too.")
@click.option(
    "--gap",
    "gaps",
    metavar="GAP",
    multiple=True,
    shell_complete=gap_ids,
    help="Only these gaps.",
)
@click.option(
    "--state",
    "states",
    type=OneOf([str(state) for state in State]),
    metavar="STATE",
    multiple=True,
    help="Only gaps in these states, in a new process or a running one.",
)
@click.option(
    "--sort",
    type=OneOf(list(_SORTS)),
    default="registry",
    show_default=True,
    help="By state: what needs somebody comes first.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, schema 1.")
@click.option("--markdown", is_flag=True, help="For a ticket, in English.")
@click.option(
    "--watch",
    type=Seconds(min=0.2),
    metavar="SECONDS",
    help="Look again that often, until Ctrl-C.",
)
@click.option(
    "--assume",
    multiple=True,
    metavar="PACKAGE=VERSION",
    callback=assumed,
    help="Plan for that version; nothing needs to be installed.",
)
@click.option("--registry", type=RegistryPath(path_type=Path), help="Another registry.")
def command(
    everything: bool,
    gaps: tuple[str, ...],
    states: tuple[str, ...],
    sort: str,
    as_json: bool,
    markdown: bool,
    watch: float | None,
    assume: dict[str, str],
    registry: Path | None,
) -> int:
    """What is open, and what is applied in which process.

    The first table is the plan for a new process in this environment; the
    second asks each running process that carries shims for its live bindings.

    \b
    Examples:
      shims status --gap kv-cache --gap cos-sin
      shims status --assume vllm=0.28.0           as if that release were here
      shims status --all --sort state --markdown  for a ticket
    """
    if as_json and markdown:
        raise click.UsageError("--json and --markdown are two forms: name one of them")
    choice = _Choice(everything, states, gaps, sort)

    def look() -> _Look:
        plan = own_plan(own_switches(assume, registry))
        gaps_named(gaps, [gap.id for gap in plan.registry.gaps])
        answers = [] if assume else ask_all()
        report = _report(plan, answers, choice)
        if not assume:
            foresee(report, plan)
        hidden = len(plan.registry.gaps) - len(report["gaps"])
        closed = 0 if choice.narrows else _closed(plan, report)
        return _Look(report, hidden, _others(plan, answers), closed)

    def print_(now: _Look) -> None:
        report = now.report
        if as_json:
            print_json(report)
            return
        from .status_page import as_markdown, show

        if markdown:
            click.echo(as_markdown(report, now.others), nl=False)
        else:
            show(report, _next(now, choice), now.others, now.closed)

    seen = look()
    if watch is None:
        print_(seen)
    else:
        _keep_looking(look, print_, seen, watch)
    return 1 if _has_fault(seen.report) else 0


def _keep_looking(
    look: Callable[[], _Look],
    print_: Callable[[_Look], None],
    seen: _Look,
    seconds: float,
) -> None:
    """Prints what is `seen` now and later; Ctrl-C ends it as the user's own wish."""
    try:
        while True:
            # Nothing where the output is no terminal.
            click.clear()
            print_(seen)
            time.sleep(seconds)
            seen = look()
    except KeyboardInterrupt:
        click.echo()


def _report(plan: Plan, answers: list[Answer], choice: _Choice) -> dict[str, Any]:
    from ..process import the_process

    report = the_process().report_on(plan).as_dict()
    report["gaps"] = choice.of(report["gaps"])
    report["processes"] = [_process(answer, choice) for answer in answers]
    return report


def _closed(plan: Plan, report: dict[str, Any]) -> int:
    shown = {gap["id"] for gap in report["gaps"]}
    return sum(one.gap.id not in shown for one in plan.wanted)


def _others(plan: Plan, answers: list[Answer]) -> frozenset[int]:
    """Who carries other gaps than the registry here has. What of a gap is written
    otherwise, as its patches, no answer tells."""
    own = {(gap.id, gap.title, gap.status, gap.kind) for gap in plan.registry.gaps}
    return frozenset(
        # As it says of itself, which is what is shown.
        one.report["process"]["pid"]
        for one in answers
        if one.report is not None and set(map(_identity, one.report["gaps"])) != own
    )


def _identity(gap: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(gap.get(key) for key in ("id", "title", "status", "kind"))


def _process(answer: Answer, choice: _Choice) -> dict[str, Any]:
    if answer.report is None:
        return {"pid": answer.pid, "problem": answer.problem}
    gaps = choice.of(answer.report["gaps"], closed_too=True)
    shown = {**answer.report, "gaps": gaps}
    return {**answer.report["process"], **shown}


def _has_fault(report: dict[str, Any]) -> bool:
    own = [gap["state"] for gap in report["gaps"]]
    others = [gap["state"] for p in report["processes"] for gap in p.get("gaps", ())]
    left_out = any(one["problem"] for one in report["registries"])
    return left_out or any(State(state).is_fault for state in [*own, *others])


def _next(look: _Look, choice: _Choice) -> str:
    """What one would want to do now."""
    from .upstream import again

    report = look.report
    running = [
        gap
        for p in report["processes"]
        # What another registry has cannot be shown by this one.
        if p["pid"] not in look.others
        for gap in p.get("gaps", ())
    ]
    same = again()
    for gap in [*report["gaps"], *running]:
        if State(gap["state"]).is_fault:
            return f"Next: shims show {gap['id']}{same}"
    if any(one["problem"] for one in report["registries"]):
        return "Next: shims doctor"
    device = report["environment"]["device"]
    if lacks_npu(device["kind"], device["reason"]):
        return NPU_LACKS
    kept_out = any(gap["reason"].startswith("no NPU") for gap in report["gaps"])
    if kept_out:
        words = f"ASCEND_SHIMS_DEVICE=sim shims status{same}{choice.as_options()}"
        return f"Next: {words}   (what an NPU would get)"
    if any(gap["state"] == State.PENDING for gap in report["gaps"]):
        return f"Next: shims apply-check{same}   (would it succeed here?)"
    shown = report["gaps"]
    if shown and (choice.narrows or not look.hidden):
        return f"Next: shims show {shown[0]['id']}{same}"
    all_asked = choice.everything or not look.hidden
    return "Next: shims doctor" if all_asked else f"Next: shims status --all{same}"
