"""What the plugins beside us close by themselves, as a process comes to know it.

What they do is read before they are imported, and once more when their classes are
there; the plan is drawn up anew where that makes a difference.
"""

from __future__ import annotations

import sys
from collections.abc import Collection

from .engine.hooks import Hooks
from .engine.slot import is_initialising, is_module
from .environment import Providers, read_providers
from .plan import Plan, claim_of
from .registry.model import Registry

__all__ = ["PluginHooks", "providers_of"]


def providers_of(registry: Registry, executed: Collection[str]) -> Providers:
    """What the installed plugins do of what a registry says they might.

    `executed` names modules that are known to have finished although the import
    system does not say so yet.
    """
    patches = [patch for gap in registry.gaps for patch in gap.patches]
    return read_providers(
        [claim_of(one) for gap in registry.gaps for one in gap.provided_by],
        [target for patch in patches for target in patch.candidates],
        upstreams=registry.upstreams,
        executed=executed,
    )


class PluginHooks(Hooks):
    """Tells of modules after whose import a plugin may turn out to do something else.

    These are the plugin's own, and those of the upstream classes that it derives from.
    Between the two, while upstream's class is there and the plugin's is not, it is any
    module in which somebody else has derived from it, for that one may be what runs.
    """

    _plan: Plan | None = None
    _heirs: frozenset[str] = frozenset()
    _own: frozenset[str] = frozenset()
    """Top-level packages in which nobody else derives from upstream."""

    def follow(self, plan: Plan) -> None:
        """Watch for what may change `plan`: nothing where that cannot be."""
        telling = plan.environment.providers.watched
        if not telling or not any(p.wanted or p.left_to_a_plugin for p in plan.gaps):
            self.withdraw()
            return
        self._plan, self._heirs = plan, _heirs(plan)
        self._own = sys.stdlib_module_names | {*plan.registry.upstreams}
        half_way = {
            name
            for name, module in list(sys.modules.items())
            if is_module(module) and is_initialising(module)
        }
        # To be told of upstream's is the engine's: only one can follow a module.
        theirs = {n for n in half_way if _root(n) in plan.registry.upstreams}
        deriving = half_way if self._is_open else set()
        self.watch(frozenset((telling | deriving) - theirs))

    def withdraw(self) -> None:
        self._plan = None
        self.watch(frozenset())

    @property
    def _is_open(self) -> bool:
        """Whether a subclass that anybody defines now would be of interest."""
        if self._plan is None:
            return False
        bases = self._plan.environment.providers.bases
        return any(base.partition(":")[0] in sys.modules for base in bases)

    def watches(self, module: str) -> bool:
        return super().watches(module) or (
            self._is_open and _root(module) not in self._own
        )

    def finished(self, name: str) -> None:
        plan = self._plan
        if super().watches(name) or (plan and _heirs(plan) != self._heirs):
            super().finished(name)


def _heirs(plan: Plan) -> frozenset[str]:
    bases = plan.environment.providers.bases
    if not bases:
        return frozenset()
    from .environment.plugin import heirs_of

    return frozenset(f"{c.__module__}:{c.__qualname__}" for c in heirs_of(bases))


def _root(module: str) -> str:
    return module.partition(".")[0]
