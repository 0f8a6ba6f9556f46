"""What goes wrong when patches are applied, one test a way."""

from __future__ import annotations

import importlib
import logging
import sys

import pytest

from ascend_shims.engine.slot import Slot
from ascend_shims.states import State

from .failing import Failure
from .world import P, World

THREE = "def f(x): return x\ndef g(x): return x\ndef h(x): return x\n"


@pytest.mark.parametrize("failing", ["f", "g", "h"])
def test_half_a_gap_is_never_applied(
    world: World, failure: Failure, failing: str
) -> None:
    """Half of a group is applied when an error comes; the group is listed as fine."""
    world.upstream(THREE)
    world.gap("one", P("a:f"), P("a:g"), P("a:h")).gap("two", P("a:f", "plus_one"))
    a = world.import_()
    before = world.snapshot()
    failure.names = {failing}
    world.apply(only=["one"])
    assert world.state("one") is State.FAILED
    assert f"no write to {failing}" in world.reason("one")
    assert before.held == world.snapshot().held
    failure.names = set()
    world.apply()
    assert (a.f(1), a.g(1), a.h(1)) == (11, 10, 10)


def test_a_gap_that_fails_later_leaves_altogether(world: World) -> None:
    """The same where the first half was applied before the second was imported."""
    world.upstream("def f(x): return x\n", b="def other(x): return x\n")
    world.gap("one", P("a:f"), P("b:g")).gap("two", P("a:f", "plus_one"))
    a = world.import_("a")
    world.apply()
    assert world.state("one") is State.PARTIAL
    assert world.reason("one").startswith("1 of 2; ")
    assert a.f(1) == 11
    world.import_("b")
    assert world.state("one") is State.MISSING_TARGET
    assert a.f(1) == 2
    assert world.state("two") is State.APPLIED


def test_what_failed_is_no_entry_to_undo(world: World, failure: Failure) -> None:
    """The journal has an entry for a write that failed."""
    world.upstream(THREE).gap("one", P("a:f"), P("a:g"))
    world.import_()
    failure.names = {"g"}
    world.apply()
    failure.names = set()
    failure.writes.clear()
    world.revert()
    assert failure.writes == []


def test_applying_twice_is_applying_once(world: World, failure: Failure) -> None:
    """A second apply stacks a second wrapper; the flag was set only at the end."""
    world.upstream(THREE).gap("one", P("a:f"), P("a:g"))
    a = world.import_()
    user = world.user("from UP.a import f\n")
    world.apply()
    values, count = dict(vars(a)), len(failure.writes)
    world.apply()
    importlib.import_module(world.up)
    assert len(failure.writes) == count
    assert dict(vars(a)) == values
    assert (a.f(1), user.f(1)) == (10, 10)


def test_applying_inside_a_patch_is_applying_once(world: World) -> None:
    """The same when the patches' own import applies again, half-way through."""
    world.upstream(THREE)
    world.gap("one", P("a:f"), P("a:g"), code="import UPhook\n".replace("UP", world.up))
    world.write("UPhook.py", "hook()\n")
    (world.root / f"{world.up}hook.py").write_text(
        "import builtins\nbuiltins._again()\n"
    )
    import builtins

    a = world.import_()
    builtins._again = world.apply  # type: ignore[attr-defined]
    try:
        world.apply()
    finally:
        del builtins._again  # type: ignore[attr-defined]
    assert (a.f(1), a.g(1)) == (10, 10)
    world.revert()
    assert (a.f(1), a.g(1)) == (1, 1)


def test_success_is_what_the_live_binding_says(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ "Success" is logged unconditionally; the patch never took."""
    world.upstream(THREE).gap("one", P("a:f"))
    a = world.import_()
    with monkeypatch.context() as context:
        context.setattr(Slot, "write", lambda *_: None)
        world.apply()
    assert a.f(1) == 1
    assert world.state() is State.FAILED
    assert "does not hold what was written" in world.reason()
    world.apply()
    assert world.state() is State.APPLIED
    del a.f
    assert world.state() is not State.APPLIED


def test_an_owner_that_changes_what_it_is_given_is_told_of(world: World) -> None:
    """The same where the class's own metaclass swallows the assignment."""
    world.upstream(
        """
        class Meta(type):
            @property
            def m(cls): return None
            @m.setter
            def m(cls, value): pass
        class C(metaclass=Meta):
            def m(self): return 1
        """
    )
    world.gap("one", P("a:C.m"))
    a = world.import_()
    world.apply()
    assert world.state() is State.FAILED
    assert "a:C.m" in world.reason()
    assert a.C().m() == 1


def test_a_patch_that_raises_in_the_hook_does_not_break_the_import(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """A post-import hook raises: the import fails, all hooks are gone, and the next
    import runs unpatched without a word."""
    world.upstream(THREE, b="def f(x): return x\n")
    world.gap(
        "one",
        P("a:f", "broken", kind="decorate"),
        code="def broken(function): raise LookupError('of the patch')\n",
    )
    world.gap("two", P("a:g")).gap("three", P("b:f"))
    world.apply()
    with caplog.at_level(logging.WARNING, "ascend_shims"):
        a = world.import_()
    assert (a.f(1), a.g(1)) == (1, 10)
    assert world.state("one") is State.FAILED
    assert "LookupError: of the patch" in world.reason("one")
    assert [r.getMessage().partition(":")[0] for r in caplog.records] == ["one"]
    assert world.import_("b").f(1) == 10, "the hooks are still there"


def test_strict_makes_the_import_fail_every_time(world: World) -> None:
    """The same with strict set: the import fails, and so does the next one."""
    world.upstream(THREE, b="def f(x): return x\n")
    world.gap("one", P("a:f", "no_such_name")).gap("two", P("b:f"))
    world.current = world.plan(strict=True)
    world.engine.reach(world.current)
    for _ in range(2):
        with pytest.raises(Exception, match="no_such_name"):
            world.import_()
        assert f"{world.up}.a" not in sys.modules
    assert world.import_("b").f(1) == 10


def test_a_broken_patches_module_concerns_its_own_gap_only(world: World) -> None:
    """The same where the patches module cannot even be imported."""
    world.upstream(THREE)
    world.gap("one", P("a:f"), code="import no_such_module_at_all\n")
    world.gap("two", P("a:g"))
    world.apply()
    a = world.import_()
    assert world.state("one") is State.FAILED
    assert "no_such_module_at_all" in world.reason("one")
    assert a.g(1) == 10


def test_what_is_deferred_can_be_cancelled(world: World) -> None:
    """Deferred patches return no handle and cannot be cancelled ..."""
    world.upstream(THREE).gap("one", P("a:f"))
    before = list(sys.meta_path)
    world.apply()
    assert world.state() is State.PENDING
    assert sys.meta_path != before
    world.revert()
    assert sys.meta_path == before
    assert world.import_().f(1) == 1


def test_waiting_for_a_submodule_imports_nothing(world: World) -> None:
    """... a package-level key forces the import of a heavy submodule."""
    world.upstream(THREE, heavy="def f(x): return x\n", init="from UP import a\n")
    world.gap("one", P("heavy:f"))
    world.apply()
    world.import_("")
    assert f"{world.up}.heavy" not in sys.modules
    assert world.state() is State.PENDING
    assert f"{world.up}.heavy is not imported yet" in world.reason()
    assert world.import_("heavy").f(1) == 10


CYCLE = """
    import CALLBACK
    CALLBACK.now()
    def f(x): return x
    def g(x): return x
"""


@pytest.mark.parametrize("hooked", [True, False], ids=["hooked", "not hooked"])
def test_a_module_that_is_half_built_is_patched_when_it_is_done(
    world: World, hooked: bool
) -> None:
    """Patches fire in the middle of an import: the target module is half built, the
    `ImportError` is swallowed, and it never happens again."""
    callback = f"{world.prefix}_callback"
    world.upstream(CYCLE.replace("CALLBACK", callback))
    world.write(f"{callback}.py", "seen = []\ndef now(): seen.append(act())\n")
    world.gap("one", P("a:f"), P("a:g"))
    module = importlib.import_module(callback)

    def act() -> tuple[State, str]:
        world.apply()
        return world.state(), world.reason()

    module.act = act  # type: ignore[attr-defined]
    if hooked:
        world.apply()
    a = world.import_()
    assert module.seen == [
        (State.PENDING, f"{world.up}.a is still being imported"),
    ]
    assert (a.f(1), a.g(1)) == (10, 10)
    assert world.state() is State.APPLIED
    assert type(a.__spec__) is importlib.machinery.ModuleSpec
    assert "_tell" not in vars(a.__spec__)


def test_a_circular_import_is_patched_when_the_target_is_done(world: World) -> None:
    """The same where `b` needs `a` and `a` needs `b`."""
    world.upstream(
        "from UP import b\ndef f(x): return x\n",
        b="import UP.a\ndef g(x): return UP.a.f(x)\n",
    )
    world.gap("one", P("a:f"), P("b:g", "plus_one"))
    world.apply()
    b = world.import_("b")
    assert b.g(1) == 11
    assert world.state() is State.APPLIED


def test_an_import_that_fails_is_patched_when_it_succeeds(world: World) -> None:
    """The same where the first import of the target raises."""
    world.upstream("import MISSING_PART\n" + THREE)
    world.gap("one", P("a:f"))
    world.apply()
    with pytest.raises(ModuleNotFoundError):
        world.import_()
    assert world.state() is State.PENDING
    world.upstream(THREE)
    assert world.import_().f(1) == 10


def test_status_follows_the_target_from_before_its_import_to_after_its_undo(
    world: World,
) -> None:
    """Status says "patched" before the target was imported, and still after its
    undo."""
    world.upstream(THREE).gap("one", P("a:f"))
    assert world.state() is State.PENDING
    world.apply()
    assert world.state() is State.PENDING
    a = world.import_()
    assert world.state() is State.APPLIED
    wrapper, a.f = a.f, len
    assert world.state() is State.BURIED
    a.f = wrapper
    assert world.state() is State.APPLIED
    world.revert()
    assert world.state() is State.OFF


@pytest.mark.parametrize("target", ["a:f", "a:C.m", "a:C.inherited", "b:f"])
def test_a_reload_is_patched_anew_or_told(world: World, target: str) -> None:
    """Reload drops patches; the tool still says "applied"."""
    source = """
    class Base:
        def inherited(self): return 1
    class C(Base):
        def m(self): return 1
    def f(): return 1
    """
    world.upstream(source, b="from UP.a import f\n")
    world.gap("one", P(target))
    a, b = world.import_("a"), world.import_("b")
    world.apply()
    old = a.C

    def calls() -> list[int]:
        return [a.f(), b.f(), a.C().m(), a.C().inherited()]

    patched = calls()
    assert sorted(patched) == ([1, 1, 10, 10] if "f" in target else [1, 1, 1, 10])
    importlib.reload(a)
    assert world.state() is State.APPLIED
    importlib.reload(b)
    assert calls() == patched
    assert (old().m(), old().inherited()) == (patched[2], patched[3])
    fresh = {name: value for name, value in vars(a).items() if name in ("C", "Base")}
    world.revert()
    assert calls() == [1, 1, 1, 1]
    assert (old().m(), old().inherited()) == (1, 1)
    assert a.C is fresh["C"]
    assert "inherited" not in vars(a.C)
    assert b.f is a.f


def test_a_reload_past_the_hook_is_told_and_undo_puts_nothing_old_back(
    world: World,
) -> None:
    """The same where the toolkit never hears of the reload."""
    world.upstream(THREE).gap("one", P("a:f"))
    a = world.import_()
    world.apply()
    finders, sys.meta_path[:] = list(sys.meta_path), sys.meta_path[1:]
    importlib.reload(a)
    fresh = a.f
    sys.meta_path[:] = finders
    assert world.state() is State.LOST
    assert "reloaded" in world.reason()
    world.revert()
    assert vars(a)["f"] is fresh


def test_what_was_lost_in_a_reload_comes_back_with_apply(world: World) -> None:
    """The same, and the reason told the truth: call `apply()` again."""
    world.upstream(THREE).gap("one", P("a:f"))
    a = world.import_()
    world.apply()
    finders, sys.meta_path[:] = list(sys.meta_path), sys.meta_path[1:]
    importlib.reload(a)
    sys.meta_path[:] = finders
    fresh = a.f
    world.apply()
    assert (a.f(1), world.state()) == (10, State.APPLIED)
    world.revert()
    assert vars(a)["f"] is fresh


def test_a_second_import_of_the_module_is_patched_too(world: World) -> None:
    """The same for a module that is taken out of `sys.modules` and imported again."""
    world.upstream(THREE).gap("one", P("a:f"))
    first = world.import_()
    stock = vars(first)["f"]
    world.apply()
    del sys.modules[first.__name__]
    second = world.import_()
    assert second is not first
    assert (first.f(1), second.f(1), world.state()) == (10, 10, State.APPLIED)
    world.revert()
    assert vars(first)["f"] is stock
    assert (first.f(1), second.f(1)) == (1, 1)
