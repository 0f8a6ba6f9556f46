"""Several registries as one: the base, and those that installed plugins bring.

Whoever reads a `Registry` reads this one; an entry of a plugin's registry has its
namespace before its id, and its code in a package of its own.
"""

from __future__ import annotations

import msgspec

from .model import Companion, Gap, Registry

__all__ = ["Found", "Joined", "Unusable", "join", "namespace_of", "within"]


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A registry that an installed distribution brings."""

    namespace: str
    distribution: str
    """Name and version."""

    path: str
    registry: Registry
    """With ids as everybody else knows them."""


class Unusable(msgspec.Struct, frozen=True, kw_only=True):
    """One that was named, or brought, and that cannot be used."""

    namespace: str
    distribution: str | None
    """Name and version; None where nobody brings it."""

    path: str | None
    """The registry; None where there is none to be found."""

    reason: str
    """With what to do about it."""

    def __str__(self) -> str:
        by = f" of {self.distribution}" if self.distribution else ""
        return f"the registry {self.namespace!r}{by} is left out: {self.reason}"


class Joined(Registry, frozen=True, kw_only=True):
    """The base's gaps, then those of each found registry in the order of namespaces."""

    base: Registry
    found: tuple[Found, ...] = ()
    unusable: tuple[Unusable, ...] = ()

    def package_of(self, entry: Gap | Companion, /) -> str:
        namespace = namespace_of(entry.id)
        of = {one.namespace: one.registry.package for one in self.found}
        return of.get(namespace, self.package)

    @property
    def packages(self) -> tuple[str, ...]:
        found = (one.registry.package for one in self.found)
        return tuple(dict.fromkeys([self.package, *found]))

    def companions_of(self, gap: Gap) -> tuple[Companion, ...]:
        """The base's go with all gaps, so that what keeps compiled code and ranks
        apart knows of these, too; a found registry's with its own."""
        known = ("", namespace_of(gap.id))
        brought = super().companions_of(gap)
        return tuple(one for one in brought if namespace_of(one.id) in known)


def namespace_of(entry_id: str) -> str:
    """Of a gap or companion; nothing for those of the base."""
    return entry_id.rpartition("/")[0]


def join(
    base: Registry, found: tuple[Found, ...], unusable: tuple[Unusable, ...]
) -> Registry:
    """The base itself where there is nothing besides it."""
    if not (found or unusable):
        return base
    all_ = [base, *(one.registry for one in found)]
    return Joined(
        schema=base.schema,
        upstreams=tuple(dict.fromkeys(u for one in all_ for u in one.upstreams)),
        package=base.package,
        watch=tuple(w for one in all_ for w in one.watch),
        companions=tuple(c for one in all_ for c in one.companions),
        gaps=tuple(g for one in all_ for g in one.gaps),
        base=base,
        found=found,
        unusable=unusable,
    )


def within(registry: Registry, namespace: str) -> Registry:
    """A registry as it is known beside others: with its namespace before its ids.

    What it names of its own gets the namespace, too, and the rest is the base's.
    """
    own = {gap.id for gap in registry.gaps}
    replace = msgspec.structs.replace

    def named(ids: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(f"{namespace}/{one}" if one in own else one for one in ids)

    def placed(gap: Gap) -> Gap:
        needs = replace(
            gap.needs, gaps=named(gap.needs.gaps), patched=named(gap.needs.patched)
        )
        after = named(gap.after)
        return replace(gap, id=f"{namespace}/{gap.id}", needs=needs, after=after)

    companions = tuple(
        replace(one, id=f"{namespace}/{one.id}") for one in registry.companions
    )
    gaps = tuple(placed(gap) for gap in registry.gaps)
    return replace(registry, companions=companions, gaps=gaps)
