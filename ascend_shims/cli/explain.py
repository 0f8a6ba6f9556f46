"""`shims explain [CODE]`: what a state, a verdict, an error or a finding means."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from ..words import language
from ..words.folding import filled
from .completion import codes

if TYPE_CHECKING:
    from ..explain import Group, Page
    from .render import ShimsConsole

__all__ = ["command"]

_WIDTH = 80
"""Columns at most: longer lines are hard to read."""
_NO_BREAK = "\ue000"
"""Stands for a space at which no line ends: within what is typed as it stands."""


@click.command("explain")
@click.argument("code", metavar="[CODE]", required=False, shell_complete=codes)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, schema 1.")
def command(code: str | None, as_json: bool) -> int:
    """What a state, verdict, error or finding means, and what to do about it.

    CODE is what tables show, what `shims doctor` prints above a finding, and what
    stands in brackets at the end of an error. Without CODE: all of them.

    \b
    Examples:
      shims explain                   every code, with one sentence
      shims explain version-skipped   a state, from a table
      shims explain no-such-release   an error that ended with [no-such-release]
    """
    from ..explain import all_pages

    # What a program reads is the same in all languages.
    groups = all_pages() if as_json else all_pages(language())
    pages = {page.code: page for group in groups for page in group.pages}
    chosen = list(pages.values()) if code is None else [_found(code, pages)]
    if as_json:
        from .here import print_json

        print_json({"schema": 1, "codes": [asdict(page) for page in chosen]})
    elif code is None:
        _list(groups)
    else:
        title = next(g.title for g in groups if g.name == chosen[0].group)
        _print(chosen[0], title)
    return 0


def _found(code: str, pages: dict[str, Page]) -> Page:
    """The page of a code, or of the name of an exception's class."""
    from ..errors import code_of
    from .near import nearest

    bare = code.strip().strip("[]")
    for spelled in (bare, code_of(bare.rpartition(".")[2])):
        if spelled in pages:
            return pages[spelled]
    if bare in _gaps():
        raise click.BadParameter(f"{bare} is a gap; see it with: shims show {bare}")
    near = nearest(bare, pages)
    hint = f"did you mean {near}?" if near else "see them all with: shims explain"
    raise click.BadParameter(f"no code is called {code!r}; {hint}")


def _gaps() -> set[str]:
    """The ids of all gaps; none where the registry cannot be used."""
    from ..errors import ConfigurationError
    from .here import own_switches
    from .upstream import registry_of

    try:
        own_switches()
        known, _ = registry_of(None)
    except ConfigurationError:
        return set()
    return {gap.id for gap in known.gaps}


def _list(groups: tuple[Group, ...]) -> None:
    from rich.text import Text

    from .render import console

    out = console()
    width = max(len(page.code) for group in groups for page in group.pages)
    for group in groups:
        out.print(Text(group.title, "bold"))
        for page in group.pages:
            first, *rest = _wrapped(page.first_sentence, _columns(out) - width - 4)
            out.print(
                Text.assemble("  ", (f"{page.code:<{width}}", "cyan"), "  ", first)
            )
            for line in rest:
                out.print(Text(f"{'':<{width + 4}}{line}"))
        out.print()
    out.print(Text("Next: shims explain CODE", "dim"))


def _print(page: Page, group: str) -> None:
    from rich.text import Text

    from .render import console

    out = console()
    out.print(Text.assemble((page.code, "bold"), (f"  {group}", "dim")))
    out.print()
    for line in _wrapped(page.meaning, _columns(out) - 2):
        out.print(Text(f"  {line}"))
    for title, text in (("How one comes to it", page.how), ("What to do", page.do)):
        out.print("", Text(title, "bold"), sep="\n")
        for line in _wrapped(text, _columns(out) - 2):
            out.print(Text(f"  {line}"))
    out.print("", Text("Example", "bold"), sep="\n")
    for line in page.example.splitlines():
        # Copied from here, and so not broken.
        out.print(
            Text(f"  {line}", "cyan" if line.startswith("$ ") else ""), soft_wrap=True
        )


def _columns(out: ShimsConsole) -> int:
    return max(40, min(out.width, _WIDTH)) if out.folds else out.width


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of a text, in which what is between backticks is not broken."""
    kept = re.sub(r"`[^`]*`", lambda m: m[0].replace(" ", _NO_BREAK), text)
    lines = filled(kept, max(width, 20))
    return [line.replace(_NO_BREAK, " ") for line in lines]
