"""Saying something to a person, in the language that is spoken."""

from __future__ import annotations

import shutil
import sys
from typing import Any

import click

from ..errors import USAGE
from ..words import is_english, said

__all__ = ["Context", "ended", "say", "show_error", "tell"]


def say(text: str = "", *, err: bool = False, nl: bool = True, **style: Any) -> None:
    """Print a text; what is for machines goes by `click.echo` instead."""
    # Without a style click would still write what ends one.
    spelled = click.style(said(text), **style) if style else said(text)
    click.echo(spelled, err=err, nl=nl)


def tell(text: str) -> None:
    """Print what is wrong, for the person: folded in a terminal, whole elsewhere."""
    if sys.stderr is None:
        return
    lines = said(text).splitlines()
    if sys.stderr.isatty():
        from ..words.folding import filled

        width = shutil.get_terminal_size().columns
        lines = [part for line in lines for part in filled(line, width) or [""]]
    click.echo("\n".join(lines), err=True)


def ended(text: str) -> str:
    """A sentence with the mark that ends it, where it has none."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


class Context(click.Context):
    """Help and usage in the language that is spoken."""

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool | None:
        # Of an option without its value click's parser does not say whose it is.
        if isinstance(error, click.UsageError) and error.ctx is None:
            error.ctx = self
        return super().__exit__(kind, error, trace)

    def make_formatter(self) -> click.HelpFormatter:
        if is_english():
            return super().make_formatter()
        from .helping import Formatter

        return Formatter(width=self.terminal_width, max_width=self.max_content_width)


def show_error(error: click.ClickException) -> None:
    """What click's own `show()` does, in the language that is spoken, and folded."""
    context = getattr(error, "ctx", None)
    if context is not None and error.format_message() == context.get_help():
        # Called without a word: the help is the answer, and no mistake was made.
        click.echo(error.format_message(), err=True)
        return
    if context is not None:
        click.echo(context.get_usage(), err=True)
        if context.command.get_help_option(context) is not None:
            asked = f"{context.command_path} {context.help_option_names[0]}"
            say(f"Try '{asked}' for help.\n", err=True)
    told = said(f"Error: {error.format_message()}")
    tell(f"{told} [{USAGE}]" if isinstance(error, click.UsageError) else told)
