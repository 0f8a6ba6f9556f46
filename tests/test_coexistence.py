"""Beside a plugin that closes gaps by itself: told by its source, then by its class."""

from __future__ import annotations

import importlib
import itertools
import os
import sys
import threading
from collections.abc import Iterator
from textwrap import dedent
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ascend_shims
from ascend_shims import process
from ascend_shims.environment import Claim, Providers, read_providers
from ascend_shims.registry import Needs, Provider
from ascend_shims.states import State

from .engine.conftest import world  # noqa: F401
from .engine.world import P, World

UP = """\
class Runner:
    def step(self, x): return x
    def other(self, x): return x
"""
PASSES_ON = "def step(self, x): return 1000 + super().step(x)"
ALONE = "def step(self, x): return 1000 + x"


class Plugged:
    """A made-up upstream, a gap of it, and maybe a plugin that closes it."""

    def __init__(self, world: World) -> None:  # noqa: F811
        self.world = world
        self.plugin = f"{world.prefix}_plugin"
        world.upstream(UP)

    def gap(self, *, device: bool = False, **provider: Any) -> None:
        closed = (Provider(symbol=self.symbol, **provider),)
        self.world.gap("one", P("a:Runner.step"), device=device, provided_by=closed)

    def write(self, body: str, end: str = "", head: str = "", **modules: str) -> None:
        """The plugin, whose runner has `body`."""
        lines = dedent(body).strip().splitlines() or ["pass"]
        text = f"from UP.a import Runner\n{dedent(head)}\n"
        text += "class PlugRunner(Runner):\n" + "".join(f"    {n}\n" for n in lines)
        files = {"__init__": "", "runner": text + dedent(end), **modules}
        for name, code in files.items():
            self.world.write(f"{self.plugin}/{name}.py", dedent(code))

    def apply(self, monkeypatch: pytest.MonkeyPatch, **environ: str) -> State:
        registry = str(self.world.registry_file())
        monkeypatch.setenv("ASCEND_SHIMS_REGISTRY", registry)
        monkeypatch.setenv("ASCEND_SHIMS_ALLOW", self.world.package)
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        return ascend_shims.apply().state("one")

    def load(self) -> Any:
        """The plugin's runner, as its worker would make one."""
        return importlib.import_module(f"{self.plugin}.runner").PlugRunner()

    @property
    def symbol(self) -> str:
        return f"{self.plugin}.runner:PlugRunner.step"


def state(gap_id: str = "one") -> State:
    return ascend_shims.status().state(gap_id)


def reason(gap_id: str = "one") -> str:
    return ascend_shims.status()[gap_id].reason


@pytest.fixture
def plugged(
    world: World,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Plugged]:
    for name in [n for n in os.environ if n.startswith(("ASCEND_SHIMS", "VLLM_RAY"))]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(process, "_process", None)
    yield Plugged(world)
    ascend_shims.revert()


Environ = pytest.MonkeyPatch
SHIMS = {"ASCEND_SHIMS_PREFER": "shims"}


def test_what_the_plugin_closes_is_not_patched(
    plugged: Plugged, monkeypatch: Environ
) -> None:
    plugged.gap()
    plugged.write(PASSES_ON)
    up = plugged.world.import_()
    before = plugged.world.snapshot()
    assert plugged.apply(monkeypatch) is State.PROVIDED
    assert reason() == (
        f"{plugged.plugin} of unknown version closes it, by its source: "
        f"{plugged.symbol}"
    )
    assert f"{plugged.plugin}.runner" not in sys.modules
    assert plugged.load().step(1) == 1001
    assert (state(), up.Runner().step(1)) == (State.PROVIDED, 1)
    assert "closes it, as loaded: " in reason()
    found = before.differences(plugged.world.snapshot())
    ours = [f for f in found if plugged.world.up in f]
    assert ours == []


@pytest.mark.parametrize("written", [False, True])
def test_without_it_ours_is_on(
    plugged: Plugged, monkeypatch: Environ, written: bool
) -> None:
    """No plugin, and one that has dropped its override."""
    plugged.gap()
    if written:
        plugged.write("")
    assert plugged.apply(monkeypatch) is State.PENDING
    assert plugged.world.import_().Runner().step(1) == 10
    if written:
        assert plugged.load().step(1) == 10
    assert state() is State.APPLIED


def expected(body: str, prefer: str) -> tuple[State, int]:
    """What the combination comes to: the state, and what the plugin's runner gives."""
    plugin = 1000 if "step" in body else 0
    if not plugin:
        return State.APPLIED, 10
    if prefer == "shims" and "super" in body:
        return State.APPLIED, plugin + 10
    return State.PROVIDED, plugin + 1


@pytest.mark.parametrize("prefer", ["plugin", "shims"])
@pytest.mark.parametrize("source", ["", PASSES_ON, ALONE])
@pytest.mark.parametrize("made", ["", PASSES_ON, ALONE])
def test_the_class_outweighs_the_source(
    plugged: Plugged, monkeypatch: Environ, source: str, made: str, prefer: str
) -> None:
    """Whatever the text says and the class is, and whichever is preferred: at once,
    before the first runner is made."""
    plugged.gap()
    differs = made != source
    end = "del PlugRunner.step\n" if source and differs else ""
    elsewhere = made.replace("super().step(", "Runner.step(self, ")
    if made and differs:
        end += "from . import made\nPlugRunner.step = made.step\n"
    plugged.write(source, end, made=f"from UP.a import Runner\n{elsewhere}\n")
    plugged.world.import_()
    by_source, _ = expected(source, prefer)
    assert plugged.apply(monkeypatch, ASCEND_SHIMS_PREFER=prefer) is by_source
    runner = plugged.load()
    assert (state(), runner.step(1)) == expected(made, prefer)


# How a plugin may be written

WRITTEN: dict[str, dict[str, str]] = {
    "beneath a condition": {"body": f"if True:\n    {ALONE}"},
    "beneath a try": {"body": f"try:\n    {ALONE}\nexcept ImportError:\n    pass"},
    "decorated": {
        "body": f"@functools.wraps(Runner.step)\n{ALONE}",
        "head": "import functools",
    },
    "an attribute": {"body": "step = staticmethod(int)"},
    "a static method": {"body": "@staticmethod\ndef step(x): return x"},
}


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("how", WRITTEN)
def test_an_override_is_found_however_it_is_written(
    plugged: Plugged, how: str, loaded: bool
) -> None:
    plugged.write(**WRITTEN[how])
    if loaded:
        plugged.load()
    claim = Claim(plugged.symbol)
    found = read_providers([claim], upstreams=[plugged.world.up]).closing
    assert list(found) == [claim]
    assert found[claim].told_by == ("class" if loaded else "source")
    assert loaded is (f"{plugged.plugin}.runner" in sys.modules)


BASES = {
    "from . import": ("from .deep.mixins import Steps as S", "S"),
    "module": ("from .deep import mixins as m", "m.Steps"),
    "absolute": ("import PLUGIN.deep.mixins", "PLUGIN.deep.mixins.Steps"),
    "re-exported": ("from .deep import Again", "Again"),
    "generic": ("from .deep import Again", "Again[int]"),
}


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("how", BASES)
def test_a_base_of_the_plugin_may_override(
    plugged: Plugged, how: str, loaded: bool
) -> None:
    imported, base = (text.replace("PLUGIN", plugged.plugin) for text in BASES[how])
    mixins = "import typing\nT = typing.TypeVar('T')\n"
    mixins += f"class Steps(typing.Generic[T]):\n    {ALONE}\n"
    again = "from .mixins import Steps as Again\n"
    runner = f"from UP.a import Runner\n{imported}\nclass PlugRunner({base}, Runner):"
    files = {"runner": f"{runner}\n    pass\n", "deep/mixins": mixins}
    plugged.write("", **{**files, "deep/__init__": again})
    if loaded:
        assert plugged.load().step(1) == 1001
    claim = Claim(plugged.symbol)
    found = read_providers([claim], upstreams=[plugged.world.up]).closing[claim]
    told_by = "class" if loaded else "source"
    symbol = f"{plugged.plugin}.deep.mixins:Steps.step"
    assert (found.symbol, found.told_by) == (symbol, told_by)


NOT_ITS_OWN = {
    "nothing": "",
    "another name": "def stepp(self, x): return x",
    "an annotation": "step: object",
    "does not parse": "def step(self, x: return x",
}


@pytest.mark.parametrize("what", NOT_ITS_OWN)
def test_what_is_no_override_closes_nothing(plugged: Plugged, what: str) -> None:
    plugged.write(NOT_ITS_OWN[what])
    found = read_providers([Claim(plugged.symbol)], upstreams=[plugged.world.up])
    assert found.closing == {}


def test_a_plugin_without_source_is_told_by_its_class(
    plugged: Plugged, monkeypatch: Environ
) -> None:
    """Until then ours is on; it goes when the class turns out to override."""
    plugged.gap()
    plugged.write("", head=f"exec('class PlugRunner(Runner):\\n    {ALONE}')")
    file = plugged.world.root / plugged.plugin / "runner.py"
    file.write_text(file.read_text().partition("class PlugRunner(Runner):\n    p")[0])
    assert plugged.apply(monkeypatch) is State.PENDING
    up = plugged.world.import_()
    assert up.Runner().step(1) == 10
    assert plugged.load().step(1) == 1001
    assert (state(), up.Runner().step(1)) == (State.PROVIDED, 1)


READS = {
    "a call": "def step(self, x): return close(x)",
    "an attribute": "def step(self, x): return tools.close(x)",
    "inside": "def step(self, x):\n    def inner(): return close(x)\n    return inner",
    "an import": "def step(self, x):\n    from .tools import close as c\n    return c",
}


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("how", [*READS, "not at all", "in a decorator"])
def test_an_override_for_another_reason_closes_nothing(
    plugged: Plugged, how: str, loaded: bool
) -> None:
    decorated = f"@close\n{ALONE}" if how == "in a decorator" else ALONE
    head = "from . import tools\nfrom .tools import close"
    plugged.write(
        READS.get(how, decorated), head=head, tools="def close(x): return x\n"
    )
    if loaded:
        plugged.load()
    claim = Claim(plugged.symbol, "close")
    found = read_providers([claim], upstreams=[plugged.world.up]).closing
    assert list(found) == ([claim] if how in READS else [])


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    members=st.lists(st.sampled_from(["step", "other", "third"]), unique=True),
    asks=st.sampled_from(["super().{}(x)", "Runner.{}(self, x)", "x", "self.other(x)"]),
    mixed_in=st.booleans(),
)
def test_source_and_class_say_the_same(
    plugged: Plugged, members: list[str], asks: str, mixed_in: bool
) -> None:
    """Of what is written down without conditions."""
    number = next(_numbers)
    # Upstream's runner, one for each example: that of another would be in its place.
    plugged.world.write(f"UP/b{number}.py", UP)
    up, name = f"{plugged.world.up}.b{number}", f"{plugged.plugin}_{number}"
    body = "\n".join(
        f"    def {m}(self, x): return {asks.format(m)}" for m in members
    )  # fmt: skip
    code = f"from {up} import Runner\n"
    if mixed_in:
        code += f"class Mixin:\n    pass\n{body}\n"
        code += "class PlugRunner(Mixin, Runner): pass\n"
    else:
        code += f"class PlugRunner(Runner):\n    pass\n{body}\n"
    plugged.world.write(f"{name}.py", code)
    claims = [
        Claim(f"{name}:PlugRunner.{member}", reads)
        for member in ("step", "other", "third")
        for reads in (None, "Runner", "super", "other")
    ]
    targets = [f"{up}:Runner.{member}" for member in ("step", "other")]

    def read() -> Providers:
        return read_providers(claims, targets, upstreams=[plugged.world.up])

    by_source = read()
    importlib.import_module(name)
    by_class = read()
    assert {c: f.symbol for c, f in by_source.closing.items()} == {
        c: f.symbol for c, f in by_class.closing.items()
    }
    assert {f.told_by for f in by_source.closing.values()} <= {"source"}
    assert {f.told_by for f in by_class.closing.values()} <= {"class"}
    # `self.other` in `other` cannot be told from `super().other` by its code.
    if asks != "self.other(x)":
        assert by_source.before == by_class.before
    assert {c.symbol.rpartition(".")[2] for c in by_source.closing} == set(members)


_numbers = itertools.count()


# What runs here


def test_somebody_elses_runner_gets_ours_at_once(
    plugged: Plugged, monkeypatch: Environ
) -> None:
    """The plugin is installed, and its class is not the one that runs."""
    plugged.gap()
    plugged.write(PASSES_ON)
    assert plugged.apply(monkeypatch) is State.PROVIDED
    runner = plugged.world.user("from UP.a import Runner\nclass Mine(Runner): pass")
    assert (state(), runner.Mine().step(1)) == (State.APPLIED, 10)
    # And should the plugin's come after all, it closes the gap again.
    assert plugged.load().step(1) == 1001
    assert state() is State.PROVIDED


@pytest.mark.parametrize("before", [False, True])
def test_it_does_not_matter_when_upstream_came(
    plugged: Plugged, monkeypatch: Environ, before: bool
) -> None:
    """Nor that another module of the plugin is loaded, or one of somebody else."""
    plugged.gap()
    provider = Provider(symbol=f"{plugged.plugin}.tools:put")
    plugged.world.gap("two", P("a:Runner.other"), provided_by=(provider,))
    plugged.write(PASSES_ON, tools="def put(): ...")
    if before:
        plugged.world.import_()
    assert plugged.apply(monkeypatch) is State.PROVIDED
    importlib.import_module(f"{plugged.plugin}.tools")
    plugged.world.import_()
    plugged.world.user("from UP.a import Runner")
    assert (state(), state("two")) == (State.PROVIDED, State.PROVIDED)
    runner = plugged.world.user("from UP.a import Runner\nclass Mine(Runner): pass")
    assert (state(), runner.Mine().step(1)) == (State.APPLIED, 10)
    assert (state("two"), runner.Mine().other(1)) == (State.APPLIED, 10)


def test_where_it_is_seen_too_late_it_is_said(
    plugged: Plugged, monkeypatch: Environ
) -> None:
    """A class that no module's body defines."""
    plugged.gap()
    plugged.write(PASSES_ON)
    up = plugged.world.import_()
    assert plugged.apply(monkeypatch) is State.PROVIDED
    mine = type("Mine", (up.Runner,), {})
    assert state() is State.LOST
    assert reason().endswith("call apply() again")
    assert ascend_shims.apply().state("one") is State.APPLIED
    assert mine().step(1) == 10


def test_a_subclass_of_the_plugins_runner_is_the_plugins(
    plugged: Plugged, monkeypatch: Environ
) -> None:
    plugged.gap()
    plugged.write(PASSES_ON)
    plugged.apply(monkeypatch)
    mine = plugged.world.user(
        f"from {plugged.plugin}.runner import PlugRunner\nclass Mine(PlugRunner): pass"
    )
    assert (state(), mine.Mine().step(1)) == (State.PROVIDED, 1001)


def test_what_never_runs_is_a_conflict_and_not_applied(
    plugged: Plugged, monkeypatch: Environ
) -> None:
    """The plugin overrides for another reason, and ours would lie beneath unseen."""
    plugged.gap(reads="close")
    plugged.write(ALONE)
    up = plugged.world.import_()
    assert plugged.apply(monkeypatch) is State.CONFLICT
    assert reason() == (
        f"our patch would never run: {plugged.symbol} overrides "
        f"{plugged.world.up}.a:Runner.step and never calls it"
    )
    assert up.Runner().step(1) == 1
    with pytest.raises(ascend_shims.report.UnappliedError):
        ascend_shims.apply(strict=True)


def test_preferring_ours_is_told_where_it_cannot_be(
    plugged: Plugged, monkeypatch: Environ
) -> None:
    plugged.gap()
    plugged.write(ALONE)
    assert plugged.apply(monkeypatch, **SHIMS) is State.PROVIDED
    assert "ours cannot be preferred: " in reason()
    plugged.write(PASSES_ON)
    # The plugin's file has changed; a later one would not be seen.
    os.utime(plugged.world.root / plugged.plugin / "runner.py", (1, 1))
    assert ascend_shims.apply().state("one") is State.PENDING
    assert plugged.load().step(1) == 1010
    assert "ASCEND_SHIMS_PREFER=shims" in reason()


def test_a_gap_without_patches_is_provided_too(
    plugged: Plugged, monkeypatch: Environ
) -> None:
    provider = Provider(symbol=plugged.symbol)
    plugged.world.gap("one", provided_by=(provider,))
    assert plugged.apply(monkeypatch) is State.NOT_APPLICABLE
    plugged.write(PASSES_ON)
    assert ascend_shims.apply().state("one") is State.PROVIDED
    monkeypatch.setenv("ASCEND_SHIMS_PREFER", "shims")
    assert ascend_shims.apply().state("one") is State.PROVIDED
    assert reason().endswith("there is no patch of ours to prefer")


@pytest.mark.parametrize(("range_", "closed"), [(">=0.29", False), ("<0.29", True)])
def test_a_provider_may_be_for_some_releases(
    plugged: Plugged, monkeypatch: Environ, range_: str, closed: bool
) -> None:
    plugged.world.upstream(UP, init="__version__ = '0.28.0'")
    plugged.gap(versions={plugged.world.up: range_})
    plugged.write(PASSES_ON)
    found = plugged.apply(monkeypatch)
    assert found is (State.PROVIDED if closed else State.PENDING)


def test_a_need_that_is_provided_is_met_unless_it_must_be_ours(
    plugged: Plugged, monkeypatch: Environ
) -> None:
    plugged.gap()
    plugged.world.gap("two", P("a:Runner.other"), needs=("one",))
    plugged.world.gap("three", P("a:Runner.other", "plus_one"), after=("two",))
    needs = Needs(device=False, patched=("one",))
    plugged.world.gaps[-1] = msgspec.structs.replace(
        plugged.world.gaps[-1], needs=needs
    )
    plugged.write(PASSES_ON)
    plugged.apply(monkeypatch)
    plugged.load()
    assert (state(), state("two")) == (State.PROVIDED, State.APPLIED)
    assert state("three") is State.NOT_APPLICABLE
    assert reason("three").startswith("builds on our patches of one, which is provided")
    monkeypatch.setenv("ASCEND_SHIMS_PREFER", "shims")
    ascend_shims.apply()
    assert {state(g) for g in ("one", "two", "three")} == {State.APPLIED}
    ascend_shims.apply(disable=["one"])
    assert reason("three") == "needs one, which is off"


# Off is off


def test_revert_holds_whatever_the_plugin_does(
    plugged: Plugged, monkeypatch: Environ
) -> None:
    plugged.gap()
    plugged.write(PASSES_ON, "del PlugRunner.step")
    meta_path, environ = sys.meta_path, dict(os.environ)
    assert plugged.apply(monkeypatch) is State.PROVIDED
    assert sys.meta_path is not meta_path
    assert ascend_shims.revert().state("one") is State.REVERTED
    assert sys.meta_path is meta_path
    assert plugged.load().step(1) == 1
    assert state() is State.REVERTED
    monkeypatch.delenv("ASCEND_SHIMS_REGISTRY")
    monkeypatch.delenv("ASCEND_SHIMS_ALLOW")
    assert dict(os.environ) == environ


def test_disabled_holds_inside_its_block(
    plugged: Plugged, monkeypatch: Environ
) -> None:
    plugged.gap()
    plugged.write(PASSES_ON, "del PlugRunner.step")
    plugged.apply(monkeypatch)
    with ascend_shims.disabled("one"):
        assert (plugged.load().step(1), state()) == (1, State.OFF)
    assert (plugged.load().step(1), state()) == (10, State.APPLIED)


OFF = {
    ("ASCEND_SHIMS", "off"): State.OFF,
    ("ASCEND_SHIMS_DISABLE", "one"): State.OFF,
    ("ASCEND_SHIMS_DEVICE", "none"): State.NOT_APPLICABLE,
}


@pytest.mark.parametrize("switch", OFF)
def test_nothing_is_watched_for_what_is_off(
    plugged: Plugged, monkeypatch: Environ, switch: tuple[str, str]
) -> None:
    plugged.gap(device=True)
    plugged.write(PASSES_ON, "del PlugRunner.step")
    meta_path = sys.meta_path
    name, value = switch
    assert plugged.apply(monkeypatch, **{name: value}) is OFF[switch]
    assert sys.meta_path is meta_path
    assert (plugged.load().step(1), state()) == (1, OFF[switch])


def test_without_a_plugin_one_look_is_all(
    plugged: Plugged, monkeypatch: Environ
) -> None:
    """One search for the top-level package; no file is opened, nothing watched."""
    plugged.gap()
    plugged.world.gap("two", P("a:Runner.other"))
    asked: list[str] = []

    def find(name: str) -> None:
        asked.append(name)

    with monkeypatch.context() as here:
        here.setattr("ascend_shims.environment.providers.find_module", find)
        here.delitem(sys.modules, "ascend_shims.environment.plugin", raising=False)
        claims = [Claim(f"no_plugin.m:C.{n}") for n in "abc"]
        assert read_providers(claims, upstreams=["up"]) == Providers()
        assert "ascend_shims.environment.plugin" not in sys.modules
    assert asked == ["no_plugin"]
    plugged.apply(monkeypatch)
    assert len(sys.meta_path) == len(process.the_process()._engine._hooks._found) + 1


def test_plugins_may_be_imported_while_plans_change(
    plugged: Plugged, monkeypatch: Environ
) -> None:
    plugged.gap()
    plugged.write(PASSES_ON, "del PlugRunner.step\nimport time; time.sleep(0.05)")
    plugged.apply(monkeypatch)
    made: list[Any] = []
    importer = threading.Thread(target=lambda: made.append(plugged.load()))
    importer.start()
    for _ in range(6):
        ascend_shims.revert()
        ascend_shims.apply()
    importer.join()
    assert (state(), made[0].step(1)) == (State.APPLIED, 10)


def test_children_come_to_the_same_plan(plugged: Plugged, monkeypatch: Environ) -> None:
    plugged.gap()
    plugged.write(PASSES_ON, "del PlugRunner.step")
    report = ascend_shims.status()
    plugged.apply(monkeypatch)
    report = ascend_shims.status()
    code = f"""
        import ascend_shims, importlib
        ascend_shims.apply()
        print(ascend_shims.status().plan, ascend_shims.status().state("one"))
        importlib.import_module("{plugged.plugin}.runner")
        print(ascend_shims.status().state("one"))
    """
    said = plugged.world.run(dedent(code)).split()
    assert said == [report.plan, "provided", "applied"]
