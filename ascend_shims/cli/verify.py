"""`shims verify`: proof that what was applied leaves nothing behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ..environment.distributions import module_file
from ..errors import code_of
from ..switches import SwitchError
from ..words.counting import counted
from .completion import gap_ids
from .here import own_plan, own_switches, print_json
from .named import RegistryPath, Seconds, gaps_named
from .speech import say

if TYPE_CHECKING:
    from ..plan import Plan
    from ..switches import Switches
    from ..verify.interpreters import InterpreterError
    from ..verify.result import Difference, Proof, Stage

__all__ = ["command"]

_CHOSEN = "the command line"
"""Who left out the gaps that were not named."""

_SHOWN = 20
"""Differences of one stage; `--json` has all."""


@click.command("verify")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, schema 1.")
@click.option("--registry", type=RegistryPath(path_type=Path), help="Another registry.")
@click.option(
    "--timeout",
    type=Seconds(min=0, min_open=True),
    metavar="SECONDS",
    default=900.0,
    show_default=True,
    help="How long each interpreter may take.",
)
@click.argument("gaps", metavar="[GAP]…", nargs=-1, shell_complete=gap_ids)
def command(
    as_json: bool, registry: Path | None, timeout: float, gaps: tuple[str, ...]
) -> int:
    """Proof that upstream is byte-identical when shims are off or reverted.

    Starts interpreters side by side: one that never hears of the toolkit, and others
    in which each gap, and all together, are applied and reverted. Compares all that
    upstream's modules hold, and what belongs to the process: objects, code, order,
    hooks, environment, logging, operators. GAP limits it to some gaps.

    Where there is no NPU, one is assumed, so that patches really go in.

    \b
    Examples:
      shims verify
      shims verify kv-cache cos-sin
    """
    switches, plan = _plan(registry, gaps)
    from ..verify.interpreters import InterpreterError
    from ..verify.proof import prove

    try:
        with _ending_in_order():
            proof = prove(plan, switches, _say, timeout)
    except InterpreterError as error:
        if as_json:
            print_json(_as_dict(error))
        raise _NoAnswerError(_text(error)) from error
    except _Ended as ended:
        # What was started is stopped, and its files are gone; now as it was asked for.
        signal.signal(ended.number, signal.SIG_DFL)
        os.kill(os.getpid(), ended.number)
        return 128 + ended.number
    if as_json:
        print_json(proof.as_dict())
    else:
        _print(proof)
    return 0 if proof.ok else 1


class _Ended(BaseException):
    """Somebody wants the command to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """Meanwhile SIGTERM and SIGHUP unwind, as SIGINT does."""

    def end(number: int, _frame: object) -> None:
        # Once: a second one is not to interrupt what the first has begun.
        for one in kept:
            signal.signal(one, signal.SIG_IGN)
        raise _Ended(number)

    kept = {}
    for one in (signal.SIGTERM, signal.SIGHUP):
        # Who runs this under `nohup` has it ignored, and wants it so.
        if signal.getsignal(one) == signal.SIG_DFL:
            kept[one] = signal.signal(one, end)
    try:
        yield
    finally:
        for one, handler in kept.items():
            signal.signal(one, handler)


class _NoAnswerError(click.ClickException):
    """Neither a proof nor a finding."""

    exit_code = 2


def _text(error: InterpreterError) -> str:
    return f"{error.gap}: {error}" if error.gap else str(error)


def _as_dict(error: InterpreterError) -> dict[str, Any]:
    return {
        "schema": 1,
        "ok": False,
        "proved": False,
        "error": _text(error),
        "code": code_of(error),
        "gap": error.gap or None,
        "interpreter": error.interpreter,
    }


def _say(what: str) -> None:
    say(f"{what} …", err=True)


def _plan(registry: Path | None, gaps: tuple[str, ...]) -> tuple[Switches, Plan]:
    """What the interpreters start with, and what they are to try."""
    from ..process import the_process

    switches = own_switches(registry=registry.absolute() if registry else None)
    plan = own_plan(switches)
    absent = [p for p in plan.registry.upstreams if not _is_here(plan, p)]
    if absent:
        raise SwitchError(
            f"{absent[0]} is not installed for {plan.environment.python}; run "
            "`shims verify` with the interpreter that has it: PYTHON -m ascend_shims "
            "verify"
        )
    if plan.environment.device.kind == "none":
        switches = msgspec.structs.replace(switches, device="sim")
    known = [gap.id for gap in plan.registry.gaps]
    gaps_named(gaps, known, where="GAP")
    wanted = switches.narrowed(only=gaps or known, said_by=_CHOSEN)
    return switches, the_process().plan(wanted)


def _is_here(plan: Plan, package: str) -> bool:
    found = plan.environment.distributions[package]
    if found.origin == "assumed":
        # A version may be assumed of what is there, as of a build of one's own.
        return module_file(package) is not None
    return found.present


def _print(proof: Proof) -> None:
    from .render import console, table

    out = console()
    device = "device assumed" if proof.device_assumed else f"device {proof.device}"
    out.print(" · ".join([*proof.upstream.values(), device]))
    extent = proof.extent
    out.print(
        counted(
            extent.modules,
            f"{extent.entries:,} entries of {extent.objects:,} objects in 1 module "
            "were compared",
            f"{extent.entries:,} entries of {extent.objects:,} objects in "
            f"{extent.modules:,} modules were compared",
        )
    )
    parts = [f"{root} {count:,}" for root, count in extent.by_root.items()]
    out.print(f"({' · '.join(parts)})\n", style="dim")
    rows = table("STAGE", "IN FORCE", "COMPARED WITH", "DIFFERENT")
    for stage in proof.stages:
        count = len(stage.differences) + len(stage.errors)
        style = "bold red" if count else "green"
        said = f"[{style}]{count or 'nothing'}[/{style}]"
        rows.add_row(stage.name, _in_force(stage), stage.against, said)
    out.print(rows)
    out.print()
    for stage in proof.stages:
        _print_stage(out, stage)
    for gap, state, reason in proof.left_out:
        if reason == f"switched off by {_CHOSEN}":
            # Others than these were named.
            continue
        out.print(f"{gap} was not tried: {state}: {reason}", style="dim", markup=False)
    for module, why in proof.not_importable.items():
        said = f"{module} could not be imported, in no interpreter: {why}"
        out.print(said, style="yellow", markup=False)
    if proof.varying:
        said = (
            f"Left out between interpreters, where it varies: {len(proof.varying)} "
            "(--json lists them)"
        )
        out.print(said, style="dim")
    out.print(f"Digest {proof.digest} · {proof.seconds:.0f} s\n")
    _print_verdict(out, proof)


def _in_force(stage: Stage) -> str:
    if not stage.gaps:
        return "-"
    changed = sum(gap.changed for gap in stage.gaps)
    patches = sum(gap.patches for gap in stage.gaps)
    return counted(patches, f"{changed} of 1 patch", f"{changed} of {patches} patches")


def _print_stage(out: Any, stage: Stage) -> None:
    for gap in stage.gaps:
        if not gap.holds:
            why = gap.reason
            if gap.state == "applied":
                why = "it says applied, but its targets are what they were"
            said = f"{stage.name}: {gap.gap} was not in force: {gap.state}: {why}"
            out.print(said, style="yellow", markup=False)
    for error in stage.errors:
        out.print(f"{stage.name}: {error}", style="red", markup=False)
    imported = [one for one in stage.differences if one.kind == "imported"]
    found = [one for one in stage.differences if one.kind != "imported"]
    for one in found[:_SHOWN]:
        _print_difference(out, stage, one)
    rest = len(found) - _SHOWN
    if imported:
        names = sorted({one.path.replace(":", ".") for one in imported})
        count = counted(
            len(names), "1 module of upstream", f"{len(names):,} modules of upstream"
        )
        some = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
        said = f"{stage.name}: {count} imported meanwhile: {some}"
        out.print(said, style="red", markup=False)
    if rest > 0:
        out.print(f"{stage.name}: {rest:,} more (--json lists them)", style="red")
    if stage.differences:
        out.print()


def _print_difference(out: Any, stage: Stage, one: Difference) -> None:
    out.print(f"{stage.name}: {one.path}", style="red", markup=False)
    out.print(f"  {one.what} ({one.kind})", markup=False)


def _print_verdict(out: Any, proof: Proof) -> None:
    if proof.ok:
        out.print("Upstream is byte-identical, off and reverted.", style="green")
    elif not proof.proved:
        out.print(
            "No gap was in force, so it is only proved that the toolkit, switched "
            "off, changes nothing.",
            style="yellow",
        )
    elif not proof.differences:
        out.print(
            "Nothing is different, but not every gap was in force.", style="yellow"
        )
    else:
        out.print("Upstream is not byte-identical.", style="bold red")
