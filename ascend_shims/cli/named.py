"""Gaps that are named on a command line."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable

import click

from ..switches import meant, namespaces

__all__ = ["gap_named", "gaps_named"]


def _unknown(name: str) -> str:
    return f"no gap is called {name!r}"


def gap_named(
    name: str, known: Iterable[str], *, unknown: Callable[[str], str] = _unknown
) -> None:
    """Raise `click.BadParameter` where `known` has no gap of that name.

    Args:
        unknown: what is said of the name then.
    """
    ids = list(known)
    if name in ids:
        return
    # Who knows the gap by its own registry leaves out the namespace.
    spaced = [one for one in ids if one.rpartition("/")[2] == name]
    near = spaced or difflib.get_close_matches(name.lower(), ids, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(ids)}"
    raise click.BadParameter(f"{unknown(name)}; {hint}")


def gaps_named(
    names: Iterable[str],
    known: Iterable[str],
    *,
    unknown: Callable[[str], str] = _unknown,
) -> frozenset[str]:
    """Of `known` those that `names` mean: each one gap, or all of `acme/*`.

    Raises `click.BadParameter` for a name that means none.
    """
    ids = list(known)
    spaces = namespaces(ids)
    for name in names:
        if name not in spaces:
            gap_named(name, ids, unknown=unknown)
    return meant(names, ids)
