"""`shims run -- COMMAND…`: shims in every Python process a command starts."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import click

from ..registry.writers import check_own
from ..states import State
from ..switches import SwitchError, read_switches
from .completion import gap_lists
from .here import own_plan, own_switches, registry_option
from .speech import tell

__all__ = ["command"]

_BOOTSTRAP = Path(__file__).parents[1] / "bootstrap"


@click.command(
    "run",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option(
    "--disable",
    metavar="GAP,…",
    default="",
    shell_complete=gap_lists,
    help="Leave these gaps off.",
)
@click.option(
    "--only",
    metavar="GAP,…",
    default="",
    shell_complete=gap_lists,
    help="Apply these and no others.",
)
@click.option("--strict", is_flag=True, help="Fail where a wanted gap is not applied.")
@registry_option
@click.argument("words", metavar="COMMAND…", nargs=-1, required=True)
def command(
    disable: str,
    only: str,
    strict: bool,
    registry: Path | None,
    words: tuple[str, ...],
) -> int:
    """Run COMMAND with shims in every Python process it starts.

    Works through the environment: the switches, and a start-up module that
    every Python finds first. COMMAND replaces this process; no shell is
    involved, and its exit code is the result.

    \b
    Examples:
      shims run -- vllm serve MODEL
      shims run --disable cos-sin -- python serve.py         all but one
      shims run --only kv-cache --strict -- python serve.py
    """
    own = own_switches(registry=registry)
    if own.registry is not None:
        # The processes find it named by a variable, and read what others cannot change.
        check_own(own.registry)
    said = read_switches({"ASCEND_SHIMS_DISABLE": disable, "ASCEND_SHIMS_ONLY": only})
    # Each option by its own name: that is what a complaint about a gap begins with.
    switches = own.narrowed(disable=said.disable, said_by="--disable").narrowed(
        only=said.only, strict=strict or own.strict, said_by="--only"
    )
    plan = own_plan(switches)
    states = {planned.state for planned in plan.gaps}
    # What is left out for any other reason stays so whatever is switched.
    if State.OFF in states and states <= {State.OFF, State.LANDED, State.OBSOLETE}:
        tell(
            "shims: nothing is left to apply: --only, --disable and the variables "
            "switch every gap off"
        )
    program = shutil.which(words[0])
    if program is None:
        raise SwitchError(
            f"there is no command {words[0]!r} on PATH; correct it, or write its path"
        )
    environ = {k: v for k, v in os.environ.items() if k not in own.as_environment()}
    environ.update(switches.as_environment())
    path = [str(_BOOTSTRAP), *filter(None, [environ.get("PYTHONPATH")])]
    environ["PYTHONPATH"] = os.pathsep.join(path)
    os.execve(program, words, environ)
