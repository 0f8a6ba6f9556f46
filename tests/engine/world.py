"""A made-up upstream, patches for it, a registry of them, and an engine.

Everything lives in files under a directory of the test, with names that no other
test has, so that nothing is left in this process for the next one.
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import msgspec

from ascend_shims.engine.engine import Engine
from ascend_shims.engine.standing import Standing
from ascend_shims.environment import Device, Distribution, Environment
from ascend_shims.plan import Plan, make_plan
from ascend_shims.registry.model import (
    Companion,
    Gap,
    Needs,
    Patch,
    Registry,
    Reliance,
)
from ascend_shims.states import State
from ascend_shims.switches import Switches

from ..fresh import python

PRELUDE = """\
def times_ten(call, *args, **kwargs):
    return 10 * call(*args, **kwargs)

def plus_one(call, *args, **kwargs):
    return 1 + call(*args, **kwargs)

def noted(call, *args, **kwargs):
    return "noted", call(*args, **kwargs)

def through(call, *args, **kwargs):
    return call(*args, **kwargs)

"""
"""What every patches module of a test starts with."""

_numbers = itertools.count()


@dataclass(frozen=True)
class P:
    """One patch of a test: a target without the upstream's name, and the rest."""

    target: str | tuple[str, ...]
    replacement: str = "times_ten"
    kind: str = "wrap"
    scope: str = "everywhere"
    versions: dict[str, str] = field(default_factory=dict)
    swap_is_safe: str | None = None
    waits_for: str | None = None
    relies_on: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Snapshot:
    """Namespaces as (name, object) pairs, in order; the objects are kept alive."""

    held: dict[str, list[tuple[str, Any]]]
    meta_path: list[Any]
    environ: dict[str, str]

    def differences(self, other: Snapshot) -> list[str]:
        """What is not the very same in `other`, by name."""
        found = []
        for owner in {*self.held, *other.held}:
            mine, theirs = self.held.get(owner), other.held.get(owner)
            if mine is None or theirs is None:
                found.append(f"{owner}: only in one")
                continue
            names, others = [n for n, _ in mine], [n for n, _ in theirs]
            if names != others:
                found.append(f"{owner}: {names} became {others}")
                continue
            found += [
                f"{owner}.{name}: {old!r} became {new!r}"
                for (name, old), (_, new) in zip(mine, theirs, strict=True)
                if old is not new
            ]
        if [id(f) for f in self.meta_path] != [id(f) for f in other.meta_path]:
            found.append("sys.meta_path")
        if self.environ != other.environ:
            found.append("os.environ")
        return sorted(found)


class World:
    """One test's upstream, patches and engine."""

    def __init__(self, root: Path) -> None:
        number = next(_numbers)
        self.root = root
        self.up = f"up{number}"
        self.package = f"pp{number}"
        self.prefix = f"user{number}"
        self.version = "0.28.0"
        self.device = Device("sim", "a test")
        self.gaps: list[Gap] = []
        self.companions: list[Companion] = []
        self.engine = Engine("the toolkit of a test")
        self.current: Plan | None = None
        self._users = itertools.count()

    # What there is

    def spelled(self, code: str) -> str:
        """`code` with `UP` and `PP` replaced by this world's names."""
        return dedent(code).replace("UP", self.up).replace("PP", self.package)

    def write(self, file: str, code: str) -> Path:
        path = self.root / self.spelled(file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.spelled(code))
        importlib.invalidate_caches()
        return path

    def upstream(self, a: str = "", **modules: str) -> World:
        """Write modules of the upstream package; `init` is its `__init__`."""
        sources = {"init": "", "a": a, **modules}
        for name, code in sources.items():
            file = "__init__" if name == "init" else name.replace("__", "/")
            self.write(f"UP/{file}.py", code)
            if "/" in file:
                (self.root / self.up / file).parent.joinpath("__init__.py").touch()
        return self

    def user(self, code: str) -> Any:
        """A module of somebody who uses upstream, imported."""
        name = f"{self.prefix}_{next(self._users)}"
        self.write(f"{name}.py", code)
        return importlib.import_module(name)

    def target(self, short: str) -> str:
        return f"{self.up}:{short}" if ":" not in short else f"{self.up}.{short}"

    def gap(
        self,
        gap_id: str,
        *patches: P,
        code: str = "",
        needs: tuple[str, ...] = (),
        device: bool = False,
        **fields: Any,
    ) -> World:
        """Add a gap to the registry, and its module to the patches package."""
        self.write("PP/__init__.py", "")
        self.write(f"PP/{gap_id.replace('-', '_')}.py", PRELUDE + dedent(code))
        made: dict[str, Any] = {
            "title": f"Gap {gap_id}",
            "status": "open",
            "kind": "workaround",
            "why": "a test",
            "remove_when": "it has passed",
        }
        if not patches:
            made["unpatched"] = "a test without one"
        made.update(fields)
        self.gaps.append(
            Gap(
                id=gap_id,
                needs=Needs(device=device, gaps=needs),
                patches=tuple(map(self._patch, patches)),
                **made,
            )
        )
        return self

    def companion(
        self, companion_id: str, *patches: P, code: str, **fields: Any
    ) -> World:
        """Add what gaps take along, all of them if nothing else is said."""
        self.write("PP/__init__.py", "")
        self.write(f"PP/{companion_id.replace('-', '_')}.py", code)
        made = {"why": "a test", "goes_with": "every-gap", **fields}
        self.companions.append(
            Companion(id=companion_id, patches=tuple(map(self._patch, patches)), **made)
        )
        return self

    def _patch(self, patch: P) -> Patch:
        target = (
            self.target(patch.target)
            if isinstance(patch.target, str)
            else tuple(map(self.target, patch.target))
        )
        return Patch(
            target=target,
            kind=patch.kind,  # type: ignore[arg-type]
            replacement=patch.replacement,
            scope=patch.scope,  # type: ignore[arg-type]
            versions={self.spelled(p): r for p, r in patch.versions.items()},
            swap_is_safe=patch.swap_is_safe,
            waits_for=patch.waits_for and f"{self.up}.{patch.waits_for}",
            relies_on=tuple(
                Reliance(symbol=self.target(symbol), how=how)  # type: ignore[arg-type]
                for symbol, how in patch.relies_on
            ),
        )

    @property
    def registry(self) -> Registry:
        return Registry(
            schema=1,
            upstreams=(self.up,),
            package=self.package,
            companions=tuple(self.companions),
            gaps=tuple(self.gaps),
        )

    def registry_file(self, name: str = "registry.yaml") -> Path:
        """The registry as a file; JSON is YAML."""
        data = msgspec.to_builtins(self.registry)
        path = self.root / name
        path.write_text(json.dumps(_without_defaults(data)))
        return path

    def import_(self, name: str = "a") -> Any:
        """A module of the upstream package; "" for the package itself."""
        return importlib.import_module(f"{self.up}.{name}" if name else self.up)

    # What is done

    def plan(self, **switches: Any) -> Plan:
        environment = Environment(
            sys.executable,
            {self.up: Distribution(self.up, self.version, origin="assumed")},
            self.device,
        )
        return make_plan(
            self.registry, environment, Switches(said_by=_SAID_BY, **switches)
        )

    def apply(
        self, *, only: Iterable[str] | None = None, off: Iterable[str] = ()
    ) -> None:
        self.current = self.plan(
            only=None if only is None else frozenset(only), disable=frozenset(off)
        )
        self.engine.reach(self.current)

    def revert(self) -> None:
        self.apply(only=())

    def standing(self, gap_id: str) -> Standing:
        plan = self.current or self.plan()
        return self.engine.standing(plan[gap_id])

    def state(self, gap_id: str = "one") -> State:
        return self.standing(gap_id).state

    def reason(self, gap_id: str = "one") -> str:
        return self.standing(gap_id).reason

    def states(self) -> dict[str, State]:
        return {gap.id: self.state(gap.id) for gap in self.gaps}

    def stale(self) -> list[str]:
        """Stale references, with this world's names spelled `UP`, `PP`, `USER`."""
        lines = [self.unspelled(line) for line in self.engine.stale()]
        return [line for line in lines if "world.Snapshot" not in line]

    def rebound(self) -> list[str]:
        return [self.unspelled(line) for line in self.engine.rebound]

    def unspelled(self, text: str) -> str:
        named = text.replace(self.up, "UP").replace(self.package, "PP")
        return named.replace(self.prefix, "USER")

    # What can be seen

    def modules(self) -> dict[str, ModuleType]:
        """Loaded modules of upstream and of its users."""
        mine = (self.up, self.prefix)
        return {
            name: module
            for name, module in sorted(sys.modules.items())
            if name.startswith(mine)
        }

    def snapshot(self) -> Snapshot:
        """Every namespace of upstream and of its users, as it is now."""
        held: dict[str, list[tuple[str, Any]]] = {}
        for name, module in self.modules().items():
            values = list(vars(module).items())
            # A reload gives the module a new spec, and nobody minds.
            ignored = ("__spec__", "__loader__", "__cached__")
            held[name] = [pair for pair in values if pair[0] not in ignored]
            for key, value in values:
                if isinstance(value, type) and value.__module__ == name:
                    held[f"{name}:{key}"] = _of_class(value)
        return Snapshot(held, list(sys.meta_path), dict(os.environ))

    def run(self, code: str, **environ: str) -> str:
        """What a fresh interpreter prints that runs `code`. It must exit with 0."""
        env = {"PYTHONPATH": str(self.root), **environ}
        return python(self.spelled(code), cwd=self.root, env=env)

    def close(self) -> None:
        if self.current is not None:
            self.revert()
        mine = (self.up, self.package, self.prefix)
        for name in [n for n in sys.modules if n.startswith(mine)]:
            del sys.modules[name]


class _SaidBy(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "a test"


_SAID_BY = _SaidBy()


def _of_class(cls: type) -> list[tuple[str, Any]]:
    # These two are made anew whenever they are asked for.
    made = ("__dict__", "__weakref__")
    return [(name, value) for name, value in vars(cls).items() if name not in made]


def _without_defaults(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_defaults(v) for k, v in value.items() if v is not None}
    if isinstance(value, (list, tuple)):
        return [_without_defaults(item) for item in value]
    return value
