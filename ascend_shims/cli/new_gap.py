"""`shims new-gap ID`: entry, module and test of a new gap."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..words import said
from ..words.folding import filled
from .here import print_json
from .named import RegistryPath
from .speech import say

if TYPE_CHECKING:
    from ..scaffold.make import Made

__all__ = ["command"]


@click.command("new-gap")
@click.argument("gap_id", metavar="ID")
@click.option(
    "--registry",
    type=RegistryPath(exists=True, path_type=Path),
    help="Add to this registry, or to that of the project around a folder.",
)
@click.option(
    "--package",
    metavar="PACKAGE",
    help="Of a first registry: the package that is to hold it and the patches.",
)
@click.option(
    "--target",
    metavar="PLACE",
    help="What to patch, package.module:Qual.name. Default: an example.",
)
@click.option(
    "--dir",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    help="The project's folder. Default: here.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, schema 1.")
def command(
    gap_id: str,
    registry: Path | None,
    package: str | None,
    target: str | None,
    folder: Path,
    as_json: bool,
) -> int:
    """Begin a gap: its entry in the project's registry, a patch module, a test.

    What is made works as it is: the patch passes through what upstream answers. The
    target's form is read from the installed source, and nothing is overwritten.

    \b
    Examples:
      shims new-gap two-pools --target vllm.v1.core.block_pool:BlockPool.touch
      shims new-gap fast-rope --package acme_npu.shims    an example to begin with
    """
    from ..registry.discovery import discover_or_none, in_folder
    from ..scaffold.make import make_gap

    folder = folder.resolve()
    if registry is None:
        found = discover_or_none(folder)
    else:
        found = in_folder(registry) if registry.is_dir() else registry.absolute()
    made = make_gap(
        gap_id, registry=found, package=package, target=target, folder=folder
    )
    environ, steps = _environ(made), _steps(made)
    if as_json:
        print_json(
            {
                "schema": 1,
                "gap": made.gap,
                "registry": str(made.place.registry),
                "package": made.place.package,
                "target": made.target.name,
                "signature": made.target.signature,
                "release": made.target.release,
                "made": [str(path) for path in made.files],
                "changed": [str(path) for path in made.changed],
                "environment": environ,
                "next": steps,
            }
        )
    else:
        _print(made, environ, steps, is_example=target is None)
    return 0


def _print(
    made: Made, environ: dict[str, str], steps: list[str], *, is_example: bool
) -> None:
    for path in made.files:
        say(f"made     {_short(path)}")
    for path in made.changed:
        say(f"changed  {_short(path)}")
    read = f", as in {made.target.release}" if made.target.release else ""
    say()
    _tell(f"{made.gap} stands before {made.target.name}{read}.")
    if is_example:
        _tell("That is an example, as no --target was given.")
    if made.target.release is None:
        _tell("Its source is not installed here, so that its form is a guess.")
    _tell("Say in the entry why, and put your code into the module. Next:")
    say()
    if environ:
        variables = " ".join(f"{k}={shlex.quote(v)}" for k, v in environ.items())
        say(f"  export {variables}")
    for step in steps:
        say(f"  {step}")
    if made.place.registry in made.files:
        _print_entry_point(made)


def _print_entry_point(made: Made) -> None:
    """What has the registry found wherever the project is installed."""
    package = made.place.package
    say()
    _tell(
        "To have it found where the project is installed, write into setup.cfg, or the "
        "like into pyproject.toml, and list the registry as package data:"
    )
    say()
    click.echo("  [options.entry_points]")
    click.echo("  ascend_shims.registries =")
    name = package.partition(".")[0].partition("_")[0].lower()
    click.echo(f"      {name} = {package}")


def _tell(text: str) -> None:
    """Print sentences, folded in a terminal; what is copied is printed whole."""
    from .render import console

    out, words = console(), said(text)
    for line in filled(words, out.width) if out.folds else [words]:
        click.echo(line)


def _environ(made: Made) -> dict[str, str]:
    """What commands need where no installed distribution brings the registry."""
    from ..environment.modules import find_module
    from ..registry.found import namespace_at

    if namespace_at(made.place.registry) is not None:
        return {}
    needed = {"ASCEND_SHIMS_ALLOW": made.place.package}
    try:
        spec = find_module(f"{made.place.package}.{made.place.module(made.gap).stem}")
    except (KeyError, ImportError):
        spec = None
    if spec is None:
        needed["PYTHONPATH"] = str(made.place.root)
    return needed


def _steps(made: Made) -> list[str]:
    from ..registry.found import namespace_at
    from ..upstream.baselines import distribution_of

    is_found = namespace_at(made.place.registry) is not None
    registry = f" --registry {shlex.quote(_short(made.place.registry))}"
    name = distribution_of(made.target.package)
    release = f"{name}=={made.target.version or 'VERSION'}"
    return [
        f"shims apply-check{'' if is_found else registry}",
        f"pytest {shlex.quote(_short(made.place.test(made.gap)))}",
        f"shims lock {release}{registry}",
        f"shims drift --against {name}@latest{registry}",
    ]


def _short(path: Path) -> str:
    """A path as it is named from here."""
    near = os.path.relpath(path)
    return str(path) if near.startswith("..") else near
