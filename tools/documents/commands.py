"""The page about the command line, from click's own description of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc

import click

from ascend_shims.cli import app

from .markdown import code, console, note, paragraph, table

__all__ = ["page"]

_REMARK = re.compile(r" {2,}")
"""Before what an example is for."""


def page() -> str:
    context = click.Context(app.shims, info_name="shims")
    parts = [
        "# Commands",
        note("ascend_shims/cli/"),
        paragraph(
            "Exit codes: 0 all is well, 1 findings, 2 misuse or bad configuration, "
            "130 interrupted. An error ends with its `[code]`, which `shims explain` "
            "takes. `shims COMMAND --help` says what is here, in the terminal."
        ),
    ]
    for title, names in app._GROUPS.items():
        parts.append(f"## {title}")
        for name in names:
            command = app.shims.get_command(context, name)
            assert command is not None, name
            parts += _command(click.Context(command, context, name))
    return "\n\n".join(parts) + "\n"


def _command(context: click.Context) -> Iterator[str]:
    command = context.command
    yield f"### shims {context.info_name}"
    usage = " ".join(
        ["shims", context.info_name or "", *command.collect_usage_pieces(context)]
    )
    yield f"`{usage}`"
    yield from _told(command.help or "")
    options = [
        _option(one, context)
        for one in command.params
        if isinstance(one, click.Option) and not one.hidden
    ]
    if options:
        yield table(("option", "meaning"), options)


def _told(text: str) -> Iterator[str]:
    """The help: paragraphs as such, examples as what one types."""
    for part in cleandoc(text).replace("\b", "").split("\n\n"):
        lines = part.strip("\n").splitlines()
        if lines and lines[0].strip() == "Examples:":
            yield console(_example(line) for line in lines[1:])
        elif lines:
            yield paragraph(part)


def _example(line: str) -> str:
    typed, *remark = _REMARK.split(line.strip(), maxsplit=1)
    return f"{typed}  # {remark[0]}" if remark else typed


def _option(option: click.Option, context: click.Context) -> tuple[str, str]:
    names = [*option.opts, *option.secondary_opts]
    value = "" if option.is_flag else f" {option.make_metavar(context)}"
    told = [option.help or ""]
    if option.multiple:
        told.append("Repeatable.")
    if option.show_default and not callable(option.default):
        told.append(f"Default: {code(str(option.default))}.")
    return code(f"{', '.join(names)}{value}"), " ".join(filter(None, told))
