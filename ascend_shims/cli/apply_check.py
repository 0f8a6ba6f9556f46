"""`shims apply-check`: would `apply()` succeed here?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ..report import registries_of
from ..states import State
from .foreseen import nearest_here
from .here import (
    NPU_LACKS,
    lacks_npu,
    own_plan,
    own_switches,
    print_json,
    registry_option,
)
from .speech import say
from .upstream import again

if TYPE_CHECKING:
    from ..plan import Plan

__all__ = ["command"]

_GOOD = (State.APPLIED, State.PROVIDED)
_TIMEOUT = 300
"""Seconds. Importing all of upstream takes ten on a small machine."""


@click.command("apply-check")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, schema 1.")
@registry_option
def command(as_json: bool, registry: Path | None) -> int:
    """Would apply() succeed here? Exit 1 and the reasons if not.

    Finds out by doing it: another interpreter with this environment applies,
    imports the patched upstream modules and reads its bindings back.

    \b
    Examples:
      shims apply-check
      shims apply-check --json
    """
    switches = own_switches(registry=registry)
    plan = own_plan(switches)
    named = None if switches.registry_is_inherited else switches.registry
    wanted = [planned.gap.id for planned in plan.wanted]
    report = _probe(named) if wanted else {"gaps": [], "not_importable": {}}
    gaps = [gap for gap in report["gaps"] if gap["id"] in wanted]
    # What is asked for by name and cannot be had is a reason, too.
    gaps += [
        {"id": p.gap.id, "state": str(p.state), "reason": p.reason}
        for p in plan.gaps
        if not p.wanted and p.gap.id in (plan.switches.only or ())
    ]
    bad = [gap for gap in gaps if gap["state"] not in _GOOD]
    registries = msgspec.to_builtins(registries_of(plan.registry))
    left_out = [one for one in registries if one["problem"]]
    answer = {
        "schema": 1,
        "ok": not (bad or left_out),
        "wanted": wanted,
        "gaps": gaps,
        "not_importable": report["not_importable"],
        "near": _near(bad),
        "registries": registries,
    }
    if as_json:
        print_json(answer)
    else:
        _print(answer, plan)
    return 0 if answer["ok"] else 1


def _near(gaps: list[dict[str, Any]]) -> dict[str, str]:
    """What the installed release has instead of each target that it has not."""
    missing = [
        patch["target"].rpartition(" or ")[2]
        for gap in gaps
        for patch in gap.get("patches", ())
        if patch["state"] == State.MISSING_TARGET
    ]
    return nearest_here(missing)


def _probe(registry: Path | None) -> dict[str, Any]:
    say("Importing upstream in another interpreter …", err=True)
    done = subprocess.run(
        # What a person names is taken at its word, there as here.
        [sys.executable, "-m", "ascend_shims.probe", *filter(None, [registry])],
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        env={**os.environ, "VLLM_LOGGING_LEVEL": "ERROR"},
        check=False,
    )
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        from ..verify.interpreters import InterpreterError

        why = f"the probe ended with {done.returncode}:\n{done.stderr[-2000:]}"
        raise click.ClickException(why) from InterpreterError(why)
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer


def _print(answer: dict[str, Any], plan: Plan) -> None:
    from .render import console, state_text, table

    out = console()
    for one in answer["registries"]:
        if one["problem"]:
            said = f"The registry {one['namespace']} is left out: {one['problem']}\n"
            out.print(said, style="red", markup=False)
    if not answer["gaps"] and not answer["ok"]:
        out.print("Next: shims doctor", style="dim")
        return
    if not answer["gaps"]:
        rows = table("GAP", "STATE", "WHY")
        for planned in plan.gaps:
            if planned.gap.status == "open":
                state = state_text(str(planned.state))
                rows.add_row(planned.gap.id, state, planned.reason)
        out.print(rows)
        out.print("\nNothing would be applied here, so nothing can fail.")
        if any(one.reason.startswith("no NPU") for one in plan.gaps):
            words = f"ASCEND_SHIMS_DEVICE=sim shims apply-check{again()}"
            out.print(f"Next: {words}   (what an NPU would get)", style="dim")
        else:
            out.print(f"Next: shims status{again()}", style="dim")
        return
    rows = table("GAP", "STATE", "WHY")
    for gap in answer["gaps"]:
        rows.add_row(gap["id"], state_text(gap["state"]), gap["reason"])
    out.print(rows)
    for module, why in answer["not_importable"].items():
        out.print(f"{module} cannot be imported: {why}", style="red", markup=False)
    for target, near in answer["near"].items():
        out.print(f"\n{target}: did you mean {near}?", style="yellow", markup=False)
    if answer["ok"]:
        out.print("\napply() succeeds here.", style="green")
        return
    device = plan.environment.device
    if lacks_npu(device.kind, device.reason):
        out.print(f"\n{NPU_LACKS}", style="dim")
        return
    names = ",".join(g["id"] for g in answer["gaps"] if g["state"] not in _GOOD)
    if not names:
        out.print("\nThe gaps of the others can be applied here.", style="dim")
        return
    out.print(f"\nWithout them: ASCEND_SHIMS_DISABLE={names}", style="dim")
