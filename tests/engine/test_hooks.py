"""Being told when a module has finished executing, and leaving no trace of it."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.resources
import importlib.util
import inspect
import pkgutil
import runpy
import sys
import zipfile
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from ascend_shims.engine.hooks import Hooks
from ascend_shims.states import State

from .world import P, World

MODULES = {
    "init": "order = []\norder.append('package')\n",
    "a": "import UP\nUP.order.append('a')\ndef f(): return 1\n",
}


class Told(list[str]):
    """What a callback heard."""


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def hooks(told: Told) -> Any:
    made = Hooks(told.append)
    yield made
    made.watch(frozenset())


def test_the_module_itself_is_waited_for(world: World, hooks: Hooks) -> None:
    """Not its parent, and not the moment before its body is done."""
    world.upstream(**MODULES)
    name = f"{world.up}.a"
    state: list[Any] = []
    hooks._callback = lambda module: state.append(
        (module, list(world.import_("").order), "f" in vars(sys.modules[module]))
    )
    hooks.watch(frozenset({name}))
    world.import_("")
    assert state == []
    world.import_("a")
    assert state == [(name, ["package", "a"], True)]


def test_a_withdrawn_hook_is_gone(world: World, hooks: Hooks, told: Told) -> None:
    world.upstream(**MODULES)
    before = list(sys.meta_path)
    hooks.watch(frozenset({f"{world.up}.a"}))
    assert sys.meta_path[1:] == before
    hooks.watch(frozenset())
    assert sys.meta_path == before
    world.import_("a")
    assert told == []


def test_the_hook_survives_reload_and_second_import(
    world: World, hooks: Hooks, told: Told
) -> None:
    world.upstream(**MODULES)
    name = f"{world.up}.a"
    hooks.watch(frozenset({name}))
    a = world.import_("a")
    importlib.reload(a)
    del sys.modules[name]
    importlib.import_module(name)
    assert told == [name] * 3


def test_the_hook_survives_an_import_that_fails(
    world: World, hooks: Hooks, told: Told
) -> None:
    world.upstream("raise LookupError\n")
    name = f"{world.up}.a"
    hooks.watch(frozenset({name}))
    with pytest.raises(LookupError):
        world.import_()
    assert told == []
    assert name not in sys.modules
    world.upstream("def f(): return 1\n")
    world.import_()
    assert told == [name]


def test_a_callback_that_raises_fails_the_import_and_stays(
    world: World, hooks: Hooks
) -> None:
    world.upstream(**MODULES)
    name = f"{world.up}.a"

    def refuse(module: str) -> None:
        raise RuntimeError(module)

    hooks._callback = refuse
    hooks.watch(frozenset({name}))
    for _ in range(2):
        with pytest.raises(RuntimeError, match=name):
            world.import_()
        assert name not in sys.modules


def test_a_module_that_is_half_way_tells_when_it_is_done(
    world: World, hooks: Hooks, told: Told
) -> None:
    name = f"{world.up}.a"
    user = world.user("def now(): pass\n")
    world.upstream(f"import {user.__name__}\n{user.__name__}.now()\nend = True\n")
    user.now = lambda: hooks.watch(frozenset({name}))
    a = world.import_()
    assert told == [name]
    assert type(a.__spec__) is importlib.machinery.ModuleSpec
    assert "_tell" not in vars(a.__spec__)
    assert vars(a.__spec__)["_initializing"] is False


def test_a_module_that_is_half_way_and_fails_tells_nothing(
    world: World, hooks: Hooks, told: Told
) -> None:
    user = world.user("def now(): pass\n")
    world.upstream(
        f"import {user.__name__}\n{user.__name__}.now()\nraise LookupError\n"
    )
    user.now = lambda: hooks.watch(frozenset({f"{world.up}.a"}))
    with pytest.raises(LookupError):
        world.import_()
    assert told == []


def test_a_watch_withdrawn_while_half_way_tells_nothing(
    world: World, hooks: Hooks, told: Told
) -> None:
    user = world.user("def now(): pass\n")
    world.upstream(f"import {user.__name__}\n{user.__name__}.now()\n")

    def now() -> None:
        hooks.watch(frozenset({f"{world.up}.a"}))
        hooks.watch(frozenset())

    user.now = now
    a = world.import_()
    assert told == []
    assert type(a.__spec__) is importlib.machinery.ModuleSpec


def loaders(module: ModuleType) -> tuple[Any, ...]:
    """What a module says about how it was loaded, as far as it can be compared."""
    spec = module.__spec__
    assert spec is not None
    return (
        type(module.__loader__),
        type(spec.loader),
        type(spec),
        module.__loader__ is spec.loader,
        sorted(vars(module)),
        spec.origin,
        spec.cached,
        spec.submodule_search_locations and list(spec.submodule_search_locations),
        getattr(module, "__file__", None),
        getattr(module, "__cached__", None),
    )


def zipped(world: World) -> str:
    with zipfile.ZipFile(world.root / "z.zip", "w") as archive:
        archive.writestr("zipped/__init__.py", "")
        archive.writestr("zipped/a.py", "def f(): return 1\n")
        archive.writestr("zipped/data.txt", "data\n")
    sys.path.insert(0, str(world.root / "z.zip"))
    importlib.invalidate_caches()
    return "zipped"


def spaced(world: World) -> str:
    world.write("UPspace/a.py", "def f(): return 1\n")
    return f"{world.up}space"


def plain(world: World) -> str:
    world.upstream(**MODULES)
    world.write("UP/data.txt", "data\n")
    return world.up


@pytest.fixture(params=[plain, zipped, spaced])
def package(
    request: pytest.FixtureRequest, world: World, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """A package with a module `a`, loaded in some way, by name."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    make: Callable[[World], str] = request.param
    name = make(world)
    yield name
    forget(name)


def forget(package: str) -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] == package]:
        del sys.modules[name]


def test_modules_look_as_if_nobody_had_waited(
    package: str, hooks: Hooks, told: Told
) -> None:
    """A namespace package and a zip file included; C24 of the public reports."""
    names = [package, f"{package}.a"]
    stock = [loaders(importlib.import_module(name)) for name in names]
    forget(package)
    hooks.watch(frozenset(names))
    assert [loaders(importlib.import_module(name)) for name in names] == stock
    # A namespace package has no body that could be done.
    assert told == (names[1:] if "space" in package else names)
    hooks.watch(frozenset())
    forget(package)
    assert [loaders(importlib.import_module(name)) for name in names] == stock


@pytest.mark.parametrize("when", ["before", "after"])
def test_source_and_data_are_found_as_ever(
    package: str, hooks: Hooks, when: str
) -> None:
    name = f"{package}.a"
    hooks.watch(frozenset({package, name}))
    if when == "after":
        importlib.import_module(name)
    spec = importlib.util.find_spec(name)
    assert spec is not None
    loader: Any = spec.loader
    assert "def f()" in loader.get_source(name)
    assert loader.is_package(name) is False
    assert loader.get_code(name) is not None
    module = importlib.import_module(name)
    assert "def f()" in inspect.getsource(module.f)
    assert inspect.getsourcefile(module.f) is not None or "zip" in package
    found = {info.name for info in pkgutil.iter_modules(sys.modules[package].__path__)}
    assert "a" in found
    if "space" in package:
        return
    assert pkgutil.get_data(package, "data.txt") == b"data\n"
    data = importlib.resources.files(package).joinpath("data.txt")
    assert data.read_text() == "data\n"


def test_a_module_can_be_run_as_a_program(
    package: str, hooks: Hooks, told: Told
) -> None:
    hooks.watch(frozenset({f"{package}.a"}))
    ran = runpy.run_module(f"{package}.a", run_name="__main__")
    assert ran["f"]() == 1
    assert type(ran["__spec__"]) is importlib.machinery.ModuleSpec
    assert told == []


def test_a_spec_asked_for_in_advance_can_be_loaded_by_hand(
    world: World, hooks: Hooks, told: Told
) -> None:
    """`importlib.util.find_spec`, `module_from_spec` and `exec_module` by hand."""
    world.upstream(**MODULES)
    name = f"{world.up}.a"
    hooks.watch(frozenset({name}))
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    assert told == [name]
    assert type(module.__loader__) is importlib.machinery.SourceFileLoader
    assert type(spec.loader) is importlib.machinery.SourceFileLoader


def test_a_spec_asked_for_while_watched_loads_after_the_withdrawal(
    world: World, hooks: Hooks, told: Told
) -> None:
    world.upstream(**MODULES)
    name = f"{world.up}.a"
    hooks.watch(frozenset({name}))
    spec = importlib.util.find_spec(name)
    hooks.watch(frozenset())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    assert module.f() == 1
    assert told == []
    assert type(module.__loader__) is importlib.machinery.SourceFileLoader


def test_two_sets_of_hooks_do_not_disturb_each_other(
    world: World, hooks: Hooks, told: Told
) -> None:
    world.upstream(**MODULES)
    name = f"{world.up}.a"
    stock = loaders(world.import_())
    forget(world.up)
    other: list[str] = []
    second = Hooks(other.append)
    before = list(sys.meta_path)
    hooks.watch(frozenset({name}))
    second.watch(frozenset({name}))
    assert loaders(world.import_()) == stock
    assert (told, other) == ([name], [name])
    hooks.watch(frozenset())
    second.watch(frozenset())
    assert sys.meta_path == before


class Nested(importlib.abc.MetaPathFinder):
    """A finder that imports something itself in order to answer."""

    def __init__(self, own: str, needs: str) -> None:
        self.own, self.needs = own, needs

    def find_spec(self, fullname: str, *_: Any) -> Any:
        if fullname == self.own:
            importlib.import_module(self.needs)
        return None


def test_a_finder_that_imports_does_not_hide_what_it_imports(
    world: World, hooks: Hooks, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.upstream(b="", **MODULES)
    names = [f"{world.up}.a", f"{world.up}.b"]
    nested = Nested(*reversed(names))
    with monkeypatch.context() as context:
        context.setattr(sys, "meta_path", [nested, *sys.meta_path])
        hooks.watch(frozenset(names))
        world.import_("b")
    assert told == names


class Withdrawing(importlib.abc.MetaPathFinder):
    """A finder that stands for another thread: it withdraws the hooks just then."""

    def __init__(self, hooks: Hooks, watched: str) -> None:
        self.hooks, self.watched = hooks, watched

    def find_spec(self, *_: Any) -> Any:
        self.hooks.watch(frozenset())
        self.hooks.watch(frozenset({self.watched}))
        self.hooks.watch(frozenset())
        return None


@pytest.mark.parametrize("position", [0, 1, 2])
def test_an_import_under_way_misses_no_finder(
    world: World, hooks: Hooks, monkeypatch: pytest.MonkeyPatch, position: int
) -> None:
    """It goes through `sys.meta_path` while that changes."""
    world.upstream(**MODULES)
    with monkeypatch.context() as context:
        finders = list(sys.meta_path)
        finders.insert(position, Withdrawing(hooks, f"{world.up}.b"))
        context.setattr(sys, "meta_path", finders)
        hooks.watch(frozenset({f"{world.up}.b"}))
        assert world.import_().f() == 1
        assert sys.meta_path is finders


def test_what_no_finder_finds_is_not_found(world: World, hooks: Hooks) -> None:
    hooks.watch(frozenset({f"{world.up}none"}))
    assert importlib.util.find_spec(f"{world.up}none") is None
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"{world.up}none")


def test_a_loader_of_the_old_kind_is_left_alone(
    world: World, hooks: Hooks, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One without `exec_module`: the module loads, nothing is told, and nothing is
    broken."""
    name = f"{world.up}old"

    class Old:
        def load_module(self, fullname: str) -> ModuleType:
            module = sys.modules[fullname] = ModuleType(fullname)
            return module

    class Finder(importlib.abc.MetaPathFinder):
        def find_spec(self, fullname: str, *_: Any) -> Any:
            if fullname != name:
                return None
            return importlib.machinery.ModuleSpec(fullname, Old())  # type: ignore[arg-type]

    with monkeypatch.context() as context:
        context.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
        hooks.watch(frozenset({name}))
        if sys.version_info < (3, 12):
            with pytest.warns(ImportWarning):
                importlib.import_module(name)
    assert told == []


def test_a_module_that_puts_another_in_its_place_is_told_of(
    world: World, hooks: Hooks, told: Told
) -> None:
    """vLLM and transformers replace `sys.modules[__name__]` in a module's body."""
    world.upstream(
        """
        import sys, types
        class Kind(types.ModuleType): pass
        new = Kind(__name__)
        new.__dict__.update({k: v for k, v in globals().items() if k != "new"})
        def f(): return 1
        new.f = f
        sys.modules[__name__] = new
        """
    )
    name = f"{world.up}.a"
    hooks.watch(frozenset({name}))
    a = world.import_()
    assert type(a).__name__ == "Kind"
    assert told == [name]


LATE = "import UP.a\nSTOCK = UP.a.f\nUP.a.f = lambda x: x + 0.5\n"
"""A module that puts something of its own in a target's place when imported."""


def test_a_patch_may_wait_for_another_module_than_its_own(world: World) -> None:
    """Whoever is imported later and replaces the target is beneath our layer."""
    world.upstream("def f(x): return x\n", late=LATE)
    world.gap("one", P("a:f", "times_ten", scope="binding", waits_for="late"))
    a = world.import_()
    world.apply()
    assert (world.state(), a.f(1)) == (State.PENDING, 1)
    assert world.reason() == f"{world.up}.late is not imported yet"
    world.import_("late")
    assert (world.state(), a.f(1)) == (State.APPLIED, 15)
    theirs = world.import_("late")
    world.revert()
    assert a.f(1) == 1.5
    assert a.f is not theirs.STOCK


def test_a_module_that_is_there_is_not_waited_for(world: World) -> None:
    world.upstream("def f(x): return x\n", late=LATE)
    world.gap("one", P("a:f", "times_ten", scope="binding", waits_for="late"))
    world.import_("late")
    before = world.snapshot()
    world.apply()
    assert (world.state(), world.import_().f(1)) == (State.APPLIED, 15)
    world.revert()
    assert before.differences(world.snapshot()) == []
