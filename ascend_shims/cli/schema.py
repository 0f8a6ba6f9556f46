"""`shims schema`: the form of what a command prints with `--json`."""

from __future__ import annotations

import difflib

import click
from click.shell_completion import CompletionItem

from ..schemas import names, schema_text

__all__ = ["command"]


def _names(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names() if name.startswith(incomplete)]


@click.command("schema")
@click.argument("name", metavar="[COMMAND]", required=False, shell_complete=_names)
def command(name: str | None) -> int:
    """Print the JSON Schema of what COMMAND prints with --json.

    Also of the lines of JSON that processes write: guard-report, log-line. Without
    COMMAND: what there is. Within one version of a form (its "schema", 1) keys are
    neither renamed nor taken away.

    \b
    Examples:
      shims schema                       what there are schemas of
      shims schema drift > drift.json    for a validator
    """
    known = names()
    if name is None:
        click.echo("\n".join(known))
    elif name in known:
        click.echo(schema_text(name), nl=False)
    else:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise click.BadParameter(f"there is no schema of {name!r}; {hint}")
    return 0
