"""Threads that import, and threads that apply and revert, all at once, for a while.

    python -m tests.engine.storm SECONDS FOLDER

Prints what was done as one line of JSON. Ends with 3, and the stacks of all threads,
where one of them does not come to its end.
"""

from __future__ import annotations

import faulthandler
import importlib
import importlib.abc
import importlib.util
import itertools
import json
import os
import random
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from ascend_shims.engine.wrappers import mark_of, peel
from ascend_shims.processes.address import listening
from ascend_shims.states import State

from .quick import QuickProcess
from .world import P, World

IMPORTING, REACHING = 8, 4
PATIENCE = 120
"""Seconds in which every thread comes to its end after it was told to stop."""
LEAST = 20
"""Imports, or rounds of applying and reverting, that each thread makes."""
KEPT = 40
"""Modules of the latest that stay loaded, of those that many threads import."""

CORE = """
    def f(x): return x
    class C:
        def m(self, x): return x
"""
PACKAGE = """
    from UP.a import f
    from . import inner, other
    def __getattr__(name):
        if name == "lazy":
            import importlib
            return importlib.import_module(__name__ + ".lazy")
        raise AttributeError(name)
"""
INNER = """
    import time
    from UP.a import C, f
    time.sleep(0)
    from UP.m{n} import other
    bound = C().m
    class Kept:
        kept = f
    def g(x): return f(x) + {n}
"""
OTHER = """
    from UP.a import f as h
    from UP.m{n} import inner
"""
FRESH = """
from UP.a import C, f
import time
time.sleep(0)
bound = C().m
"""


class Fresh(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Any number of modules of a package, without a file for each."""

    def __init__(self, package: str, code: str) -> None:
        self._package, self._code = package, code

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.rpartition(".")[0] != self._package:
            return None
        return importlib.util.spec_from_loader(name, self)

    def exec_module(self, module: ModuleType) -> None:
        exec(self._code, vars(module))


class Storm:
    """What the threads share."""

    def __init__(self, world: World, seconds: float) -> None:
        self.world, self.seconds = world, seconds
        packages = {}
        for n in range(IMPORTING):
            packages[f"m{n}/__init__"] = PACKAGE
            packages[f"m{n}/inner"] = INNER.format(n=n)
            packages[f"m{n}/other"] = OTHER.format(n=n)
            packages[f"m{n}/lazy"] = "from UP.a import f\n"
        world.upstream(CORE)
        for file, code in packages.items():
            world.write(f"UP/{file}.py", code)
        world.write("UP/fresh/__init__.py", "")
        inner = [P(f"m{n}.inner:g", "through") for n in range(IMPORTING)]
        world.gap("one", P("a:f"), P("a:C.m"), *inner[: IMPORTING // 2])
        world.gap("two", P("a:f", "plus_one"), *inner)
        world.gap("three", P("m1.other:h", "plus_one", scope="binding"))
        self.finder = Fresh(f"{world.up}.fresh", world.spelled(FRESH))
        sys.meta_path.append(self.finder)
        self.process = QuickProcess(world)
        world.import_("fresh")
        self.a = world.import_("a")
        self.before = world.snapshot()
        self.turn = threading.Lock()
        self.numbers = itertools.count()
        self.done = Counter[str]()
        self.faults: list[str] = []
        self.stop = False

    # The threads

    def importing(self, n: int) -> None:
        up = self.world.up
        names = [f"{up}.m{n}{rest}" for rest in ("", ".inner", ".other", ".lazy")]
        chance = random.Random(n)
        while not self.stop:
            inner = importlib.import_module(chance.choice(names[:2]))
            inner = sys.modules[names[1]]
            self.expect(inner.g(1) - n, f"{names[1]}.g")
            self.expect(inner.Kept.kept(1), f"{names[1]}.Kept.kept")
            self.expect(sys.modules[names[0]].lazy.f(1), f"{names[3]}.f")
            number = next(self.numbers) // 4
            fresh = importlib.import_module(f"{up}.fresh.n{number}")
            self.expect(fresh.f(1), f"{fresh.__name__}.f")
            if fresh.bound(1) not in (1, 10):
                self.faults.append(f"{fresh.__name__}.bound gives {fresh.bound(1)}")
            self.done[f"importing {n}"] += 1
            with self.turn:
                for name in names:
                    sys.modules.pop(name, None)
                sys.modules.pop(f"{up}.fresh.n{number - KEPT}", None)
                vars(sys.modules[f"{up}.fresh"]).pop(f"n{number - KEPT}", None)

    def expect(self, got: int, what: str) -> None:
        """The value of 1 with some of the layers, each of them once at most."""
        if got not in (1, 2, 10, 11):
            self.faults.append(f"{what} gives {got}")

    def reaching(self, n: int) -> None:
        chance = random.Random(n)
        acts: list[Callable[[], Any]] = [
            self.apply,
            lambda: self.apply(only=["one"]),
            lambda: self.apply(disable=["one"]),
            lambda: self.process.revert(()),
            lambda: self.process.revert(("two",)),
            lambda: self.process.switch_off(("one", "three"))(),
            self.process.status,
        ]
        while not self.stop:
            chance.choice(acts)()
            self.done[f"reaching {n}"] += 1

    def apply(self, **options: Any) -> None:
        call: dict[str, Any] = {"only": None, "disable": (), "strict": None}
        self.process.apply(**{**call, **options}, registry=None)

    def guarded(self, work: Callable[[int], None], n: int) -> threading.Thread:
        def run() -> None:
            try:
                work(n)
            except BaseException:
                self.faults.append(traceback.format_exc())
                raise

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    # The whole

    def run(self) -> dict[str, Any]:
        threads = [self.guarded(self.importing, n) for n in range(IMPORTING)]
        threads += [self.guarded(self.reaching, n) for n in range(REACHING)]
        start = time.monotonic()
        while time.monotonic() < start + PATIENCE and not self.faults:
            time.sleep(0.05)
            if time.monotonic() > start + self.seconds and self.is_enough():
                break
        self.stop = True
        end = time.monotonic() + PATIENCE
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        if any(thread.is_alive() for thread in threads):
            faulthandler.dump_traceback(all_threads=True)
            os._exit(3)
        if not self.faults:
            self.check_applied()
            self.check_reverted()
        return {"done": dict(self.done), "faults": self.faults}

    def is_enough(self) -> bool:
        """Whether every thread has had its share: a busy machine takes longer."""
        each = [self.done[f"importing {n}"] for n in range(IMPORTING)]
        each += [self.done[f"reaching {n}"] for n in range(REACHING)]
        return min(each) >= LEAST

    def check_applied(self) -> None:
        """Every layer is there, once; every reference follows."""
        for n in range(IMPORTING):
            importlib.import_module(f"{self.world.up}.m{n}")
        self.apply()
        states = {gap.id: gap.state for gap in self.process.status().gaps}
        assert set(states.values()) == {State.APPLIED}, states
        assert laid(self.a.f) == ["one", "two"]
        assert laid(vars(self.a.C)["m"]) == ["one"]
        assert self.a.f(1) == 11
        for name, module in self.world.modules().items():
            for held in (vars(module).get("f"), getattr(module, "Kept", self).kept):
                assert held in (None, self.a.f), name
            bound = vars(module).get("bound")
            assert bound is None or bound.__func__ is vars(self.a.C)["m"], name
        for n in range(IMPORTING):
            inner = sys.modules[f"{self.world.up}.m{n}.inner"]
            both = ["one", "two"] if n < IMPORTING // 2 else ["two"]
            assert laid(inner.g) == both, n
        h = vars(sys.modules[f"{self.world.up}.m1.other"])["h"]
        assert laid(h) == ["one", "two", "three"]

    kept = None

    def check_reverted(self) -> None:
        self.process.revert(())
        stock = dict(self.before.held[f"{self.world.up}.a"])["f"]
        method = dict(self.before.held[f"{self.world.up}.a:C"])["m"]
        for name, module in self.world.modules().items():
            for held in (vars(module).get("f"), getattr(module, "Kept", self).kept):
                assert held in (None, stock), name
            bound = vars(module).get("bound")
            assert bound is None or bound.__func__ is method, name
            for value in vars(module).values():
                assert mark_of(value) is None, name
        now = self.world.snapshot()
        for owner in (f"{self.world.up}.a", f"{self.world.up}.a:C"):
            old, new = self.before.held[owner], now.held[owner]
            assert [(k, id(v)) for k, v in old] == [(k, id(v)) for k, v in new]
        assert self.process._engine.rebound == []
        assert now.meta_path == self.before.meta_path
        assert now.environ == self.before.environ
        assert os.getpid() not in listening()


def laid(raw: Any) -> list[str]:
    """The gaps whose wrappers lie on each other here, from the bottom up."""
    found: list[str] = []
    value = peel(raw)
    while (mark := mark_of(value)) is not None:
        found.insert(0, mark.gap)
        value = value.__wrapped__
    return found


def main(seconds: str, folder: str) -> None:
    faulthandler.dump_traceback_later(float(seconds) + 2 * PATIENCE, exit=True)
    # Threads take turns at places where they otherwise hardly ever would.
    sys.setswitchinterval(1e-4)
    sys.dont_write_bytecode = True
    sys.path.insert(0, folder)
    for name in [n for n in os.environ if n.startswith(("ASCEND_SHIMS", "VLLM_"))]:
        del os.environ[name]
    print(json.dumps(Storm(World(Path(folder)), float(seconds)).run()), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
