"""What goes wrong with versions and registries, one test a way."""

from __future__ import annotations

import pytest

from ascend_shims.registry import RegistryError, load
from ascend_shims.states import State

from .world import P, World

F = "def f(x): return x\n"


@pytest.mark.parametrize(
    ("version", "state"),
    [
        ("0.28.0", State.APPLIED),
        ("0.28.0+empty", State.APPLIED),
        ("v0.28.0", State.APPLIED),
        ("0.28.0.post1", State.APPLIED),
        ("0.28.0rc1", State.VERSION_SKIPPED),
        ("0.29.0.dev5", State.VERSION_SKIPPED),
        ("0.9.0", State.VERSION_SKIPPED),
        ("0.100.0", State.VERSION_SKIPPED),
        ("dev", State.APPLIED),
        ("0.1.dev1+g5e40263c3", State.APPLIED),
    ],
)
def test_a_version_opens_its_gate_and_none_is_an_error(
    world: World, version: str, state: State
) -> None:
    """`0.28.0+empty`, `0.28.0.post1`, `0.28.0rc1` fall out of an equality; `dev` or
    `0.1.dev1+g...` raises; strings are compared as text; behaviour changes with the
    release of `packaging`. The whole table is in the tests of the versions."""
    world.upstream(F).gap("one", P("a:f"), versions={world.up: ">=0.28,<0.29"})
    world.version = version
    a = world.import_()
    world.apply()
    assert world.state() is state
    assert a.f(1) == (10 if state is State.APPLIED else 1)
    assert version in world.reason()


def test_a_registry_that_has_rotted_does_not_load(world: World) -> None:
    """A registry kept in comments rots: entries for files that are gone, files
    without entries, a gate under which a patch can never apply."""
    world.upstream(F)
    world.gap("one", P("a:f"), P("a:g", "no_such_name"))
    world.gap("two", P("a:f", versions={"UP": ">=0.29"}), versions={world.up: "<0.28"})
    world.gap("three", P("a:h"))
    (world.root / world.package / "three.py").unlink()
    with pytest.raises(RegistryError) as caught:
        load(world.registry_file())
    said = str(caught.value)
    for fault in (
        "`no_such_name` is not defined",
        "lies outside",
        "three` does not exist",
    ):
        assert fault in said
    assert len(caught.value.problems) == 3


def test_a_patch_does_not_outlive_its_reason(world: World) -> None:
    """A patch outlives its reason: upstream fixed it two releases ago."""
    world.upstream(F).gap("one", P("a:f"), versions={world.up: ">=0.20,<0.27"})
    world.gap("two", status="landed", unpatched="upstream does it since 0.27")
    world.gap("three", status="retired", unpatched="it was a mistake")
    a = world.import_()
    world.apply()
    assert world.states() == {
        "one": State.VERSION_SKIPPED,
        "two": State.LANDED,
        "three": State.OBSOLETE,
    }
    assert (
        world.reason("one") == f"{world.up} 0.28.0 is outside {world.up} >=0.20,<0.27"
    )
    assert world.reason("two") == "upstream does it since 0.27"
    assert a.f(1) == 1


def test_an_old_signature_is_refused_at_apply_time(world: World) -> None:
    """A replacement written against an old signature raises `TypeError` on the first
    call instead of at apply time. More of it in the tests of the contract."""
    world.upstream("def f(x, new=None): return x\n")
    world.gap("one", P("a:f", "old"), code="def old(call, x): return call(x)\n")
    a = world.import_()
    world.apply()
    assert world.state() is State.BROKEN_CONTRACT
    assert "does not take parameter `new`" in world.reason()
    assert a.f(1, new=2) == 1
