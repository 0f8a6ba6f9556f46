"""Gaps that are named on a command line."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import Any

import click

from ..switches import meant, namespaces

__all__ = ["OneOf", "gap_named", "gaps_named"]


def _unknown(name: str) -> str:
    return f"no gap is called {name!r}"


class OneOf(click.Choice):  # type: ignore[type-arg]  # generic from click 8.4 on
    """One of some words; of a misspelled one the nearest is told first."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            near = difflib.get_close_matches(str(value), map(str, self.choices), n=1)
            if not near:
                raise
            self.fail(f"did you mean {near[0]}? {error.message}", param, ctx)


def gap_named(
    name: str,
    known: Iterable[str],
    *,
    where: str = "GAP",
    unknown: Callable[[str], str] = _unknown,
) -> None:
    """Raise `click.BadParameter` where `known` has no gap of that name.

    Args:
        where: the option or argument that names it.
        unknown: what is said of the name then.
    """
    ids = list(known)
    if name in ids:
        return
    # Who knows the gap by its own registry leaves out the namespace.
    spaced = [one for one in ids if one.rpartition("/")[2] == name]
    near = spaced or difflib.get_close_matches(name.lower(), ids, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(ids)}"
    raise click.BadParameter(f"{unknown(name)}; {hint}", param_hint=repr(where))


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
            gap_named(name, ids, where="--gap", unknown=unknown)
    return meant(names, ids)
