"""What a judge is given and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from ascend_shims.upstream.calls import Site, call_sites
from ascend_shims.upstream.contract import Reliance
from ascend_shims.upstream.facts.record import Reached, Record
from ascend_shims.upstream.facts.signature import Shape, Signature
from ascend_shims.upstream.facts.symbol import Symbol
from ascend_shims.upstream.tree import Tree
from ascend_shims.upstream.verdict import Breakage, VerdictKind

__all__ = ["Case", "Finding"]


@dataclass(frozen=True)
class Finding:
    kind: VerdictKind
    breakage: Breakage | None
    sentence: str
    moved_to: str | None = None
    confidence: float = 0.0
    evidence: tuple[str, ...] = ()


@dataclass(eq=False, repr=False)
class Case:
    """One reliance between two releases."""

    reliance: Reliance
    old: Tree
    new: Tree
    before: Symbol
    after: Symbol | None
    within: tuple[str, ...] | None
    """Modules to search for call sites; `None`: all."""
    told_reached: Reached | None = None
    """Whether the old release reaches it, where a lock says so."""

    @property
    def symbol(self) -> str:
        return self.reliance.symbol

    @property
    def module(self) -> str:
        return self.symbol.partition(":")[0]

    @property
    def qualname(self) -> str:
        return self.symbol.partition(":")[2]

    @property
    def is_member(self) -> bool:
        return "." in self.qualname

    @property
    def there(self) -> Symbol:
        """The symbol in the new release; only after its presence was judged."""
        if self.after is None:
            raise LookupError(f"{self.symbol} is gone in {self.new.label}")
        return self.after

    @property
    def ours(self) -> Signature:
        """Parameters of what stands in the symbol's place."""
        return self.reliance.replacement or self.before.signature

    @cached_property
    def own_modules(self) -> list[str]:
        """Where it is, and where its class and the bases of that are."""
        own = [self.module, self.before.module, self.there.module]
        own += [c.module.name for c in (self.there.cls.mro if self.there.cls else ())]
        return list(dict.fromkeys(own))

    @cached_property
    def modules(self) -> list[str] | None:
        if self.within is None:
            return None
        return list(dict.fromkeys([*self.own_modules, *self.within]))

    @property
    def record(self) -> Record | None:
        """What a lock says of the symbol, where there is no text of the baseline."""
        return self.old.records.get(self.symbol)

    @property
    def was_reached(self) -> Reached | None:
        """Whether the old release calls it or looks it up; None: nobody says so."""
        record = self.record
        return self.told_reached if record is None else record.reached

    def new_sites(self, wanted: Callable[[Shape], bool]) -> list[Site]:
        """Calls in the new release, of a wanted shape at least."""
        return call_sites(self.new, self.there, self.modules, wanted)

    def old_sites(
        self,
        within: Iterable[str] | None,
        wanted: Callable[[Shape], bool] | None = None,
    ) -> list[Site]:
        """Calls in those modules of the old release, or in all of it."""
        return call_sites(self.old, self.before, within, wanted)
