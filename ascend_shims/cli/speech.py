"""Saying something to a person, in the language that is spoken."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import click

from ..errors import USAGE, ShimsError, code_of
from ..words import is_english, said

__all__ = ["Context", "ended", "say", "show_error", "tell"]


_EXAMPLE = re.compile(r"^ *(shims .*?)(?:  .*)?$", re.MULTILINE)
"""The first call in a command's help, without what is said about it."""


_UNREACHABLE = "index-unreachable"
"""The code of an index that does not answer."""


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


def _for_example(error: click.MissingParameter, context: click.Context) -> str:
    """How the command is called, where nothing else says what is missing."""
    parameter = error.param
    if parameter is None or parameter.type.get_missing_message(parameter, context):
        return ""
    found = _EXAMPLE.search(context.command.help or "")
    return f" For example: {found[1]}" if found else ""


def _elsewhere(command: click.Command) -> Iterator[str]:
    """From where else this command can read a release, if it reads any."""
    known = [option for one in command.params for option in one.opts]
    if "--index-url" not in known:
        return
    named = next((one for one in ("--against", "--to") if one in known), None)
    yield (
        "try another index with --index-url, the cache with --offline, or a wheel or "
        f"a folder with {named}"
        if named
        else "try another index with --index-url, or the cache with --offline"
    )


class Context(click.Context):
    """Help and usage in the language that is spoken."""

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool | None:
        # Of an option without its value click's parser does not say whose it is.
        if isinstance(error, click.UsageError) and error.ctx is None:
            error.ctx = self
        is_far = isinstance(error, ShimsError) and code_of(error) == _UNREACHABLE
        # A context is left more than once, by click's own doing.
        if is_far and not hasattr(error, "__notes__"):
            # By hand: Python 3.10 has no `add_note`.
            error.__notes__ = list(_elsewhere(self.command))
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
    message = error.format_message()
    if type(error) is click.MissingParameter and context is not None:
        message += _for_example(error, context)
    told = said(f"Error: {message}")
    tell(f"{told} [{USAGE}]" if isinstance(error, click.UsageError) else told)
