"""Which gaps an installed plugin closes by itself.

A plugin closes a gap where a class of its own overrides upstream's, or where it puts
a function of its own in upstream's place. That is told twice:

- by the plugin's source text, before anything of it is imported. So all processes,
  those that never import it as well, come to the same plan;
- by its classes, once they are there: what Python made of the text, with conditions
  decided and overrides deleted, outweighs the text.

Where the plugin's module is not loaded, and somebody else's class has taken the place
of its class, the plugin runs nothing and closes nothing. Nothing is imported here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Literal

import msgspec

from .modules import find_module

__all__ = ["Claim", "Closing", "Providers", "read_providers"]


class Claim(msgspec.Struct, frozen=True):
    """A place in a plugin that closes a gap, if there is such a place."""

    symbol: str
    """`package.module:Qual.name` of a function, class, method or class attribute."""
    reads: str | None = None
    """A name that its body has to load, where it may be there for other reasons."""

    @property
    def module(self) -> str:
        return self.symbol.partition(":")[0]

    @property
    def package(self) -> str:
        return self.module.partition(".")[0]


class Closing(msgspec.Struct, frozen=True):
    """What answers to a claim."""

    symbol: str
    """Where it is defined, which may be a base of the class that was claimed."""
    told_by: Literal["source", "class"]


class Providers(msgspec.Struct, frozen=True):
    """What the installed plugins do in the place of patches."""

    closing: Mapping[Claim, Closing] = msgspec.field(default_factory=dict)
    """Of the claims, those that hold."""
    before: Mapping[str, str] = msgspec.field(default_factory=dict)
    """By upstream's method, `package.module:Class.name`: an override that never calls
    it, so that a patch of the method would not run."""
    watched: frozenset[str] = frozenset()
    """Modules after whose import this may be another."""
    bases: frozenset[str] = frozenset()
    """Upstream's classes of which the plugin's are not loaded yet: a subclass that
    somebody else defines would be in their place."""


def read_providers(
    claims: Iterable[Claim],
    targets: Collection[str] = (),
    *,
    upstreams: Collection[str],
    executed: Collection[str] = (),
) -> Providers:
    """Look for what the claims say in the plugins that are installed here.

    Args:
        claims: what to look for.
        targets: upstream's methods, `package.module:Class.name`, for `before`.
        upstreams: packages whose own classes override nothing.
        executed: modules that have finished although the import system does not say
            so yet.
    """
    by_package: dict[str, list[Claim]] = {}
    for claim in dict.fromkeys(claims):
        by_package.setdefault(claim.package, []).append(claim)
    closing: dict[Claim, Closing] = {}
    before: dict[str, str] = {}
    watched: set[str] = set()
    bases: set[str] = set()
    for package, wanted in by_package.items():
        if find_module(package) is None:
            continue
        # Most machines have none, and do without what it takes to read one.
        from .plugin import Plugin

        plugin = Plugin(package, wanted, upstreams, executed)
        watched |= plugin.watched
        bases |= plugin.waiting
        if not plugin.is_displaced:
            closing |= plugin.closing(wanted)
            before |= plugin.before(targets)
    return Providers(closing, before, frozenset(watched), frozenset(bases))
