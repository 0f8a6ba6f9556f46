"""The command line's entry: names, order and one line about each command."""

from __future__ import annotations

from importlib import import_module

import click

from .. import __version__

__all__ = ["shims"]

_COMMANDS = {
    "status": "What is open, and what is applied in which process.",
    "show": "Everything about one gap.",
    "doctor": "Is everything here as shims need it, and what to do where not.",
    "apply-check": "Would apply() succeed here? Exit 1 and the reasons if not.",
    "run": "Run a command with shims in every Python process it starts.",
    "drift": "Which gaps an upstream release breaks, from source text alone.",
    "matrix": "Gaps x releases, and where each verdict changes.",
    "report": "One page to look at: releases, gaps, diffs, processes.",
    "diff": "Upstream's own change of what a gap relies on.",
    "scan": "Every patch and private dependence in a code base, checked.",
    "audit": "What is patched in an interpreter, and by whom.",
    "bisect": "The upstream commit at which a verdict changes.",
    "lock": "Write the facts of baseline releases, to compare against.",
    "verify": "Proof that upstream is byte-identical, off and reverted.",
    "demo": "Generate tokens on real vLLM: stock, with shims, and stock again.",
}


class _Lazy(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"{__package__}.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(
    cls=_Lazy,
    epilog="Exit codes: 0 all is well, 1 findings, 2 misuse or bad configuration.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="ascend-shims")
def shims() -> None:
    """Shims that run upstream vLLM's Model Runner V2 on Ascend NPUs.

    \b
    Examples:
      shims status                          what is open here
      shims status --assume vllm=0.28.0     what would be, on another release
      shims show kv-cache                   all about one gap
      shims run --disable cos-sin -- vllm serve MODEL
      shims drift --against vllm@latest     what the newest release breaks
    """
