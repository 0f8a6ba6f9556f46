"""The command line's entry: names, order and one line about each command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from .. import __version__
from ..words import said
from . import completion as _completion  # noqa: F401 - tells click of our bash
from .near import nearest
from .speech import Context

__all__ = ["shims"]

_GROUPS = {
    "See what is": {
        "status": "What is open, and what is applied in which process.",
        "show": "Everything about one gap.",
        "apply-check": "Would apply() succeed here? Exit 1 and the reasons if not.",
        "doctor": "Is everything here as shims need it, and what to do if not.",
    },
    "Run": {
        "run": "A command with shims in every Python process it starts.",
        "demo": "Tokens on real vLLM: stock, with shims, and stock again.",
    },
    "Follow upstream": {
        "drift": "Which gaps a release breaks, from source text alone.",
        "matrix": "Gaps x releases, and where each verdict changes.",
        "report": "One page to look at: releases, gaps, diffs, processes.",
        "diff": "Upstream's own change of what a gap relies on.",
        "scan": "Every patch and private dependence in a code base, checked.",
        "bisect": "The upstream commit at which a verdict changes.",
        "lock": "Write the facts of baseline releases, to compare against.",
    },
    "Write": {
        "new-gap": "Begin a gap: its entry, its patch module and its test.",
    },
    "Prove and look into": {
        "verify": "Proof that upstream is byte-identical, off and reverted.",
        "audit": "What is patched in an interpreter, and by whom.",
    },
    "Help": {
        "explain": "What a state, a verdict or an error means, and what to do.",
        "schema": "The form of what a command prints with --json.",
        "completion": "Complete commands, options, gaps and codes in your shell.",
    },
}
_COMMANDS = {name: about for group in _GROUPS.values() for name, about in group.items()}


@contextmanager
def _unnumbered() -> Iterator[None]:
    """By its number click knows a reader who has gone, and ends with 1: findings."""
    try:
        yield
    except BrokenPipeError:
        raise BrokenPipeError from None


class _Lazy(click.Group):
    """A group whose commands are imported when they are called."""

    context_class = Context

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with _unnumbered():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        with _unnumbered():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"{__package__}.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        # What a command says of itself is put into words here, for all of them.
        command.context_class = Context
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        near = nearest(name, _COMMANDS)
        if name not in _COMMANDS and near:
            ctx.fail(f"No such command {name!r}. Did you mean {near!r}?")
        return super().resolve_command(ctx, args)

    def shell_complete(
        self, ctx: click.Context, incomplete: str
    ) -> list[CompletionItem]:
        # What click does would import every command.
        return [
            *(
                CompletionItem(name, help=said(about))
                for name, about in _COMMANDS.items()
                if name.startswith(incomplete)
            ),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        # Commands first: they are what one looks for.
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        widest = max(map(len, _COMMANDS))
        for title, commands in _GROUPS.items():
            with formatter.section(title):
                # All groups have their second column at the same place.
                formatter.write_dl([(f"{n:<{widest}}", a) for n, a in commands.items()])


@click.group(
    cls=_Lazy,
    epilog="Exit codes: 0 all is well, 1 findings, 2 misuse or bad configuration. "
    "An error ends with a [code]: shims explain CODE. More: shims COMMAND --help.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="ascend-shims")
def shims() -> None:
    """Shims that run upstream vLLM's Model Runner V2 on Ascend NPUs.

    \b
    Examples:
      shims status                       what is open, and applied where
      shims show kv-cache                all about one gap
      shims doctor                       is everything here as it must be
      shims run --disable cos-sin -- vllm serve MODEL
      shims drift --against vllm@latest  what the newest release breaks
      shims explain version-skipped      what that means, and what to do
    """
