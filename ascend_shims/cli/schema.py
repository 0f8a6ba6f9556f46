"""`shims schema`: the form of what a command prints with `--json`."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from ..schemas import names, schema_text
from .near import nearest

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
        near = nearest(name, known)
        hint = f"did you mean {near}?" if near else f"there are {', '.join(known)}"
        raise click.BadParameter(f"there is no schema of {name!r}; {hint}")
    return 0
