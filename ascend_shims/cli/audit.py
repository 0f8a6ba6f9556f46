"""`shims audit`: what is patched in an interpreter, by whom."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..words.counting import counted
from .named import RegistryPath
from .speech import say

if TYPE_CHECKING:
    from ..verify.audit import Audit, Row

__all__ = ["command"]

_STYLES = {"stale": "yellow", "missing": "red"}


@click.command("audit")
@click.argument("modules", metavar="MODULE…", nargs=-1, required=True)
@click.option(
    "--python",
    metavar="PATH",
    default=sys.executable,
    help="The interpreter to look at; default: this one.",
)
@click.option(
    "--first",
    metavar="MODULE",
    multiple=True,
    help="Import this before: what patches, for example.",
)
@click.option("--plugins", is_flag=True, help="Load vLLM's plugins first, as it does.")
@click.option(
    "--everything",
    is_flag=True,
    help="All modules of these top-level packages that got loaded.",
)
@click.option("--registry", type=RegistryPath(path_type=Path), help="Another registry.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, schema 1.")
def command(
    modules: tuple[str, ...],
    python: str,
    first: tuple[str, ...],
    plugins: bool,
    everything: bool,
    registry: Path | None,
    as_json: bool,
) -> int:
    """What of MODULE, and of all beneath it, is not what its source defines.

    A new interpreter imports the modules and compares every function and class they
    hold with their source files: what was replaced, wrapped, added or is missing, and
    by whom. Exit 1 if anything is that is not ours.

    \b
    Examples:
      shims audit vllm.v1.worker.gpu --plugins
      shims audit vllm.v1.core --first my_plugin.patches
    """
    from ..verify.audit import audit
    from .upstream import registry_of

    _refuse_paths((*modules, *first))
    known, _ = registry_of(registry)
    found = audit(
        python,
        modules,
        known,
        first=first,
        plugins=plugins,
        everything=everything,
    )
    if found.problems and not found.modules:
        told = "; ".join(f"{name}: {why}" for name, why in found.problems.items())
        raise click.BadParameter(
            f"nothing could be imported: {told}; name a module that is installed "
            "there, or another interpreter with --python"
        )
    if as_json:
        from .here import print_json

        rows = [asdict(row) for row in found.rows]
        print_json({"schema": 1, **asdict(found), "rows": rows})
    else:
        _print(found)
    return 1 if found.foreign or found.problems else 0


def _refuse_paths(names: tuple[str, ...]) -> None:
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            raise click.BadParameter(
                f"{name!r} is no module; write it as in an import, vllm.v1.worker.gpu"
            )


def _print(found: Audit) -> None:
    for row in found.rows:
        _row(row)
    for name, why in found.problems.items():
        say(f"{name} cannot be imported: {why}", fg="red")
    foreign = len(found.foreign)
    looked = counted(len(found.modules), "1 module", "{number} modules")
    other = counted(
        foreign,
        "1 name is not what its source defines",
        "{number} names are not what their source defines",
    )
    ours = counted(len(found.rows) - foreign, "1 is ours", "{number} are ours")
    bare = counted(
        len(found.without_source),
        "1 module has no source",
        "{number} modules have no source",
    )
    say(f"Python {found.version}, {looked}: {other}, {ours}; {bare}")


def _row(row: Row) -> None:
    whose = f"ours, {row.gap}" if row.gap else row.by or row.about
    say(f"{row.what:<9}", fg="green" if row.gap else _STYLES.get(row.what), nl=False)
    say(f"{row.path}  {whose}", nl=False)
    say(f"  {row.where}" if row.where else "", dim=True)
