"""Gaps and registries that are named on a command line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from ..switches import meant, namespaces
from .near import nearest

if TYPE_CHECKING:
    from ..upstream.watched import Role

__all__ = [
    "GapName",
    "OneOf",
    "RegistryPath",
    "Seconds",
    "gap_named",
    "gaps_named",
]


def _unknown(name: str) -> str:
    return f"no gap is called {name!r}"


class OneOf(click.Choice):  # type: ignore[type-arg]  # generic from click 8.4 on
    """One of some words; of a misspelled one the nearest is told alone."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            near = nearest(str(value), map(str, self.choices))
            if not near:
                raise
            self.fail(f"{value!r} is none of these; did you mean {near}?", param, ctx)


class Seconds(click.FloatRange):
    """A number of seconds; of what is none, how one is written."""

    name = "seconds"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        try:
            float(value)
        except ValueError:
            self.fail(
                f"{value!r} is no number of seconds; write one, as 2.5", param, ctx
            )
        return super().convert(value, param, ctx)


class GapName(click.types.StringParamType):
    """The id of a gap; where it is left out, what tells which there are."""

    def get_missing_message(
        self,
        param: click.Parameter,  # noqa: ARG002
        ctx: click.Context | None,  # noqa: ARG002
    ) -> str:
        return "shims status --all lists the gaps"


class RegistryPath(click.Path):
    """The path of a registry; of an installed plugin's namespace it is told."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        if not os.path.lexists(value):
            path = _brought(os.fspath(value))
            if path is not None:
                self.fail(
                    f"{value} is the namespace of an installed plugin, and no file; "
                    f"name its registry: --registry {path}",
                    param,
                    ctx,
                )
        return super().convert(value, param, ctx)


def _brought(namespace: str) -> str | None:
    """Where the registry is that an installed plugin brings under a namespace."""
    from ..registry.found import load_all
    from ..registry.joined import Joined

    loaded = load_all(None, namespaces={namespace})
    if not isinstance(loaded, Joined):
        return None
    paths: list[str | None] = [one.path for one in loaded.found]
    return next(iter([*paths, *(one.path for one in loaded.unusable)]), None)


def gap_named(
    name: str,
    known: Iterable[str],
    *,
    where: str = "GAP",
    unknown: Callable[[str], str] = _unknown,
    besides: Mapping[str, Role] | None = None,
) -> None:
    """Raise `click.BadParameter` where `known` has no gap of that name.

    Args:
        where: the option or argument that names it.
        unknown: what is said of the name then.
        besides: those of `known` that are no gaps.
    """
    ids = list(known)
    if name in ids:
        return
    # Who knows the gap by its own registry leaves out the namespace.
    spaced = [one for one in ids if one.rpartition("/")[2] == name]
    near = spaced[0] if spaced else nearest(name, ids)
    hint = f"did you mean {near}?" if near else _there_are(ids, besides or {})
    raise click.BadParameter(f"{unknown(name)}; {hint}", param_hint=repr(where))


def _there_are(ids: Iterable[str], besides: Mapping[str, Role]) -> str:
    """Gaps first; of what else can be named, what it is."""
    listed: dict[Role, list[str]] = {}
    for name in ids:
        listed.setdefault(besides.get(name, "gap"), []).append(name)
    said = {role: ", ".join(names) for role, names in listed.items()}
    parts = []
    if "gap" in said:
        parts.append(f"there are {said['gap']}")
    if "companion" in said:
        parts.append(f"companions of gaps: {said['companion']}")
    if "watch" in said:
        parts.append(f"watched without a patch: {said['watch']}")
    return "; ".join(parts)


def gaps_named(
    names: Iterable[str],
    known: Iterable[str],
    *,
    where: str = "--gap",
    unknown: Callable[[str], str] = _unknown,
    besides: Mapping[str, Role] | None = None,
) -> frozenset[str]:
    """Of `known` those that `names` mean: each one gap, or all of `acme/*`.

    The options are those of `gap_named`. Raises `click.BadParameter` for a name that
    means none.
    """
    ids = list(known)
    spaces = namespaces(ids)
    for name in names:
        if name not in spaces:
            gap_named(name, ids, where=where, unknown=unknown, besides=besides)
    return meant(names, ids)
