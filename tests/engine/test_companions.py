"""Patches that gaps take along: one layer a gap, there with it and gone with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ascend_shims
from ascend_shims import process
from ascend_shims.engine.versions import version_of
from ascend_shims.report import make_report
from ascend_shims.states import State

from .failing import Failure
from .world import P, World

KEY = """
def fold(gap, version, call, /, *args, **kwargs):
    return [*call(*args, **kwargs), gap]

def versions(gap, version, call, /, *args, **kwargs):
    return {**call(*args, **kwargs), gap: version}
"""
KEEPER = """
class Config:
    def key(self):
        return []
def versions():
    return {}
"""


def company(world: World, *targets: P) -> World:
    """Three gaps on `up.a`, of which two are traced, and a companion of those."""
    world.upstream("def f(x): return x\ndef g(x): return x\n", keep=KEEPER)
    world.companion(
        "key",
        *(targets or [P("keep:Config.key", "fold"), P("keep:versions", "versions")]),
        code=KEY,
        goes_with="traced-gaps",
    )
    world.gap("one", P("a:f"), traced="f").gap("two", P("a:g"))
    return world.gap("three", P("a:f", "plus_one"), traced="f", after=("one",))


def test_each_gap_that_has_it_lays_its_own_layer(world: World) -> None:
    company(world)
    keep, _ = world.import_("keep"), world.import_("a")
    before = world.snapshot()
    world.apply()
    assert keep.Config().key() == ["one", "three"]
    world.apply(off=["one"])
    assert keep.Config().key() == ["three"]
    world.apply(only=["two"])
    keeper = f"{world.up}.keep"
    assert before.held[keeper] == world.snapshot().held[keeper]
    world.revert()
    assert before.differences(world.snapshot()) == []
    assert keep.Config().key() == []


def test_it_says_nothing_of_how_far_a_gap_has_got(world: World) -> None:
    company(world)
    world.import_("keep")
    world.apply()
    assert world.states() == dict.fromkeys(("one", "two", "three"), State.PENDING)
    assert world.import_("keep").Config().key() == ["one", "three"]
    world.import_("a")
    assert world.states() == dict.fromkeys(("one", "two", "three"), State.APPLIED)


def test_it_comes_with_the_module_it_waits_for(world: World) -> None:
    company(world)
    world.apply()
    world.import_("a")
    assert world.states() == dict.fromkeys(("one", "two", "three"), State.APPLIED)
    assert world.import_("keep").Config().key() == ["one", "three"]


def test_a_gap_that_fails_takes_it_along(world: World, failure: Failure) -> None:
    company(world)
    keep = world.import_("keep")
    world.apply()
    failure.names = {"f"}
    world.import_("a")
    assert world.states() == {
        "one": State.FAILED,
        "two": State.APPLIED,
        "three": State.FAILED,
    }
    assert keep.Config().key() == []


def test_a_gap_without_it_is_not_applied(world: World) -> None:
    """Nothing may be compiled under a patch that the key does not know."""
    company(world, P("keep:Config.gone", "fold"))
    a, _ = world.import_("a"), world.import_("keep")
    world.apply()
    assert world.states() == {
        "one": State.MISSING_TARGET,
        "two": State.APPLIED,
        "three": State.MISSING_TARGET,
    }
    assert a.f(1) == 1


@pytest.mark.parametrize(
    ("own", "brought", "state"),
    [
        ("a:f", "keep:versions", State.APPLIED),
        ("a:f", "keep:gone", State.APPLIED),
        ("a:gone", "keep:versions", State.MISSING_TARGET),
    ],
)
def test_where_the_target_decides_its_own_patches_do(
    world: World, own: str, brought: str, state: State
) -> None:
    world.version = "dev"
    world.upstream("def f(x): return x\n", keep=KEEPER)
    world.companion("key", P(brought, "versions"), code=KEY)
    world.gap("one", P(own), versions={world.up: ">=0.28,<0.29"})
    world.import_("a")
    keep = world.import_("keep")
    world.apply()
    assert world.state() is state
    applied = state is State.APPLIED and brought == "keep:versions"
    assert [*keep.versions()] == ["one"] * applied


def test_it_is_reported_and_no_part_of_the_plan(world: World) -> None:
    company(world)
    plan = world.plan()
    alone = world.plan(disable=frozenset())
    assert [p.patch.replacement for p in plan["one"].passing] == [
        "times_ten",
        "fold",
        "versions",
    ]
    world.companions.clear()
    assert world.plan().digest == plan.digest == alone.digest
    standings = [world.engine.standing(planned) for planned in plan.gaps]
    report = make_report(plan, standings, process={}, rebound=[], stale=[])
    brought = [(p.replacement, p.companion) for p in report["one"].patches]
    assert brought == [("times_ten", None), ("fold", "key"), ("versions", "key")]
    assert [p.replacement for p in report["two"].patches] == ["times_ten"]


gaps = st.sets(st.sampled_from(["one", "two", "three"]))


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=st.lists(gaps, min_size=1, max_size=5), late=st.booleans())
def test_what_is_folded_in_is_what_is_in_force(
    world: World, steps: list[set[str]], late: bool
) -> None:
    """Whatever was applied before, and whichever was imported first."""
    if not world.gaps:
        company(world)
    keep = None if late and world.current is None else world.import_("keep")
    for wanted in steps:
        world.apply(only=wanted)
        keep = keep or world.import_("keep")
        world.import_("a")
        traced = [gap for gap in ("one", "three") if gap in wanted]
        assert keep.Config().key() == traced
        assert [*keep.versions()] == traced


ROOMS = {
    "shared/tool.py": "deep = 1\n",
    "other/tool.py": "deep = 1\n",
    "patches/base.py": "import own.deeper\n",
    "deeper.py": "x = 1\n",
    "patches/one.py": "from own.shared import tool\nfrom own.patches.base import x\n",
    "patches/two.py": "import math\n",
}


@pytest.mark.parametrize(
    ("file", "moves"),
    [
        ("patches/one.py", True),
        ("shared/tool.py", True),
        ("shared/new.py", True),
        ("patches/base.py", True),
        ("deeper.py", True),
        ("other/tool.py", False),
        ("patches/two.py", False),
        ("shared/notes.txt", False),
    ],
)
def test_a_version_is_of_the_code_that_runs(
    file: str, moves: bool, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version() -> str:
        from ascend_shims.engine import versions

        versions._code.cache_clear()
        versions._room.cache_clear()
        return version_of(gap, f"{root}.patches")

    root = f"{world.prefix}_own"
    for name, text in ROOMS.items():
        path = world.write(f"{root}/{name}", text.replace("own.", f"{root}."))
        (path.parent / "__init__.py").touch()
    gap = world.gap("one", P("a:f")).gaps[0]
    before = version()
    assert len(before) == 12
    assert version() == before
    with (world.root / root / file).open("a") as out:
        out.write("# edited\n")
    assert (version() != before) is moves


@pytest.mark.parametrize(
    "fields", [{"after": ("two",)}, {"traced": "now"}, {"versions": {"up": ">=1"}}]
)
def test_a_version_is_of_the_entry(world: World, fields: dict[str, Any]) -> None:
    plain = world.gap("one", P("a:f")).gap("one", P("a:f"), **fields).gaps
    assert version_of(plain[0], world.package) != version_of(plain[1], world.package)
    again = world.gap("one", P("a:f")).gaps[-1]
    assert version_of(plain[0], world.package) == version_of(again, world.package)


def test_an_edit_is_not_what_runs_here(world: World, tmp_path: Path) -> None:
    gap = world.gap("one", P("a:f")).gaps[0]
    before = version_of(gap, world.package)
    world.write("PP/one.py", "edited = True\n")
    assert version_of(gap, world.package) == before


def test_another_companion_is_another_form_of_the_gap(world: World) -> None:
    company(world, P("keep:Config.key", "fold"))
    keep, _ = world.import_("keep"), world.import_("a")
    world.apply()
    world.companions.clear()
    world.companion("key", P("keep:versions", "versions"), code=KEY)
    world.apply()
    assert keep.Config().key() == []
    assert [*keep.versions()] == ["one", "two", "three"]


def test_a_process_knows_whether_it_wants_any(own_process: World) -> None:
    world = company(own_process)
    world.registry_file()
    assert not process.the_process().wants_some
    report = ascend_shims.apply()
    assert report.state("one") is State.PENDING
    assert process.the_process().wants_some
    ascend_shims.revert()
    assert not process.the_process().wants_some
