"""`shims completion`: what a shell needs to complete our words, and their sources.

The shell asks `shims` itself at every key, so what is completed is read fast, and
neither vLLM nor torch is imported. What cannot be read completes to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    get_completion_class,
)

if TYPE_CHECKING:
    from ..registry import Gap

__all__ = ["codes", "command", "gap_ids", "gap_lists"]

_SHELLS = ("bash", "zsh", "fish")


@add_completion_class
class _Bash(BashComplete):
    """Bash breaks words at `=`, so that `--gap=kv` comes as three of them."""

    def get_completion_args(self) -> tuple[list[str], str]:
        args, incomplete = super().get_completion_args()
        if args and incomplete == "=":
            return args[:-1], f"{args[-1]}="
        if len(args) > 1 and args[-1] == "=":
            return args[:-2], f"{args[-2]}={incomplete}"
        return args, incomplete


@click.command("completion")
@click.argument("shell", type=click.Choice(_SHELLS), metavar="bash|zsh|fish")
def command(shell: str) -> int:
    """Print a script by which your shell completes commands, options, gap ids,
    states, formats and codes.

    Write it to a file that the shell reads, once, then start a new shell:

    \b
      bash  ~/.local/share/bash-completion/completions/shims
      zsh   _shims, in a folder of your $fpath
      fish  ~/.config/fish/completions/shims.fish

    Without such folders, add a line to ~/.bashrc or, after compinit, to ~/.zshrc:

    \b
      eval "$(shims completion bash)"
      eval "$(shims completion zsh)"

    \b
    Example:
      shims completion fish > ~/.config/fish/completions/shims.fish
    """
    made = get_completion_class(shell)
    root = click.get_current_context().find_root()
    assert made is not None
    click.echo(made(root.command, {}, "shims", "_SHIMS_COMPLETE").source())
    return 0


def gap_ids(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The gaps of the registry in force."""
    return _items(_gaps(context), incomplete)


def gap_lists(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The last of several gaps, separated by commas."""
    before, comma, last = incomplete.rpartition(",")
    named = set(before.split(","))
    gaps = (gap for gap in _gaps(context) if gap.id not in named)
    return _items(gaps, last, before + comma)


def codes(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """What `shims explain` has a page about."""
    from ..explain import all_pages

    return [
        CompletionItem(page.code, help=page.first_sentence)
        for group in all_pages()
        for page in group.pages
        if page.code.startswith(incomplete)
    ]


def _items(
    gaps: Iterable[Gap], incomplete: str, before: str = ""
) -> list[CompletionItem]:
    return [
        CompletionItem(before + gap.id, help=gap.title)
        for gap in gaps
        if gap.id.startswith(incomplete)
    ]


def _gaps(context: click.Context) -> tuple[Gap, ...]:
    from ..errors import ConfigurationError
    from .upstream import registry_of

    named = context.params.get("registry")
    try:
        return registry_of(Path(named) if named else None)[0].gaps
    except (ConfigurationError, OSError):
        # A message in the middle of a line that is being typed helps nobody.
        return ()
