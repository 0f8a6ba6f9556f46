"""Registry, environment and switches make a plan, and nothing is touched."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_shims import plan as planning
from ascend_shims.environment import Device, Distribution, Environment
from ascend_shims.plan import REVERT, NotAllowedError, Plan, check_allowed, make_plan
from ascend_shims.registry.model import Gap, Needs, Patch, Registry
from ascend_shims.states import State
from ascend_shims.switches import Switches, read_switches


def patch(target: str = "up.a:f", **fields: Any) -> Patch:
    return Patch(**{"target": target, "kind": "wrap", "replacement": "f", **fields})


def gap(gap_id: str, *patches: Patch, **fields: Any) -> Gap:
    made: dict[str, Any] = {
        "title": "a test",
        "status": "open",
        "kind": "workaround",
        "why": "a test",
        "remove_when": "it has passed",
        "needs": Needs(device=False),
        "patches": patches,
    }
    if not patches:
        made["unpatched"] = "it comes later"
    return Gap(id=gap_id, **{**made, **fields})


def environment(device: str = "sim", **versions: str | None) -> Environment:
    versions = {"up": "0.28.0", **versions}
    return Environment(
        "python",
        {
            name: Distribution(name, version, origin="assumed")
            if version != "absent"
            else Distribution(name, None)
            for name, version in versions.items()
        },
        Device(device, f"there is {device}"),  # type: ignore[arg-type]
    )


def plan(
    *gaps: Gap,
    here: Environment | None = None,
    environ: Mapping[str, str] | None = None,
    switches: Switches | None = None,
) -> Plan:
    registry = Registry(schema=1, upstreams=("up",), package="pp", gaps=gaps)
    chosen = switches or read_switches(environ or {})
    return make_plan(registry, here or environment(), chosen)


def decided(made: Plan, gap_id: str = "one") -> tuple[State | None, str]:
    return made[gap_id].state, made[gap_id].reason


def test_what_nothing_keeps_out_is_wanted() -> None:
    made = plan(gap("one", patch(), versions={"up": ">=0.28,<0.29"}))
    assert made["one"].wanted
    assert decided(made) == (None, "up 0.28.0")
    assert [p.gate for p in made["one"].patches] == ["open"]


@pytest.mark.parametrize(
    ("fields", "here", "environ", "state", "reason"),
    [
        (
            {"status": "landed", "unpatched": "from 0.29"},
            {},
            {},
            State.LANDED,
            "from 0.29",
        ),
        ({"status": "retired", "unpatched": None}, {}, {}, State.OBSOLETE, "retired"),
        ({}, {}, {"ASCEND_SHIMS": "0"}, State.OFF, "switched off by ASCEND_SHIMS=off"),
        (
            {},
            {},
            {"ASCEND_SHIMS_DISABLE": "one"},
            State.OFF,
            "switched off by ASCEND_SHIMS_DISABLE",
        ),
        (
            {},
            {},
            {"ASCEND_SHIMS_ONLY": "two"},
            State.OFF,
            "switched off by ASCEND_SHIMS_ONLY",
        ),
        (
            {"default": "off"},
            {},
            {},
            State.OFF,
            "off by default; ASCEND_SHIMS_ONLY or ASCEND_SHIMS=on applies",
        ),
        ({"default": "off"}, {}, {"ASCEND_SHIMS": "on"}, None, "up 0.28.0"),
        ({"default": "off"}, {}, {"ASCEND_SHIMS_ONLY": "one"}, None, "up 0.28.0"),
        (
            {"needs": Needs(device=True)},
            {"device": "none"},
            {},
            State.NOT_APPLICABLE,
            "no NPU: there is none",
        ),
        ({"needs": Needs(device=True)}, {"device": "npu"}, {}, None, "up 0.28.0"),
        ({"needs": Needs(device=False)}, {"device": "none"}, {}, None, "up 0.28.0"),
        (
            {},
            {"up": "absent"},
            {},
            State.NOT_APPLICABLE,
            "up is not installed",
        ),
        (
            {},
            {"up": "0.30.0"},
            {},
            State.VERSION_SKIPPED,
            "up 0.30.0 is outside up >=0.28,<0.29",
        ),
        (
            {},
            {"up": "dev"},
            {},
            None,
            "up dev: the version tells nothing, the target decides",
        ),
        (
            {},
            {"up": None},
            {},
            None,
            "up of unknown version: the version tells nothing, the target decides",
        ),
    ],
)
def test_why_a_gap_is_in_or_out(
    fields: dict[str, Any],
    here: dict[str, Any],
    environ: dict[str, str],
    state: State | None,
    reason: str,
) -> None:
    patches = () if fields.get("status") else (patch(versions={"up": ">=0.28,<0.29"}),)
    made = plan(
        gap("one", *patches, **fields),
        gap("two", patch("up.b:f")),
        here=environment(**here),
        environ=environ,
    )
    assert decided(made) == (state, reason)


def test_a_gap_for_every_release_says_so() -> None:
    assert decided(plan(gap("one", patch()))) == (None, "for every release")


def test_a_gap_without_patches_says_so() -> None:
    assert decided(plan(gap("one"))) == (
        State.NOT_APPLICABLE,
        "no patch yet: it comes later",
    )


def test_ranges_of_gap_and_patch_both_count() -> None:
    old = patch("up.a:f", versions={"up": "<0.28"})
    new = patch("up.a:g", versions={"up": ">=0.28"})
    other = patch("up.a:h", versions={"other": ">=2"})
    one = gap("one", old, new, other, versions={"up": ">=0.20,<0.40"})
    made = plan(one, here=environment(other="1.0"))
    assert [p.gate for p in made["one"].patches] == ["closed", "open", "closed"]
    assert [p.position for p in made["one"].passing] == [1]
    assert made["one"].patches[0].reason == "up 0.28.0 is outside up <0.28"
    made = plan(one, here=environment(up="0.10", other="3"))
    assert made["one"].state is State.VERSION_SKIPPED
    assert made["one"].reason == "up 0.10 is outside up >=0.20,<0.40"
    made = plan(one, here=environment(up="dev", other="dev"))
    assert [p.gate for p in made["one"].patches] == ["by-contract"] * 3
    made = plan(one, here=environment(up="dev", other="1.0"))
    assert [p.gate for p in made["one"].patches] == ["by-contract"] * 2 + ["closed"]


def test_what_needs_another_gap_goes_with_it() -> None:
    gaps = (
        gap("one", patch("up.a:f")),
        gap("two", patch("up.a:g"), needs=Needs(device=False, gaps=("one",))),
        gap("three", patch("up.a:h"), needs=Needs(device=False, gaps=("two",))),
        gap("four", patch("up.a:i")),
    )
    assert len(plan(*gaps).wanted) == 4
    made = plan(*gaps, environ={"ASCEND_SHIMS_DISABLE": "one"})
    assert decided(made, "two") == (State.NOT_APPLICABLE, "needs one, which is off")
    assert decided(made, "three") == (
        State.NOT_APPLICABLE,
        "needs two, which is not-applicable",
    )
    assert [p.gap.id for p in made.wanted] == ["four"]
    reordered = plan(*reversed(gaps), environ={"ASCEND_SHIMS_DISABLE": "one"})
    assert [p.gap.id for p in reordered.wanted] == ["four"]


def test_what_needs_a_gap_that_has_landed_is_fine() -> None:
    made = plan(
        gap("one", status="landed"),
        gap("two", patch(), needs=Needs(device=False, gaps=("one",))),
    )
    assert made["two"].wanted


def test_what_was_taken_back_says_so() -> None:
    switches = Switches().narrowed(disable=["one"], said_by=REVERT)
    made = plan(gap("one", patch()), switches=switches)
    assert decided(made) == (State.REVERTED, "taken back by revert()")


def test_the_digest_is_of_what_is_decided() -> None:
    one, two = gap("one", patch()), gap("two", patch("up.b:f"))
    same = [
        plan(one, two),
        plan(one, two, here=environment(up="0.28.0+empty")),
        plan(
            one,
            two,
            gap("three", patch("up.c:f")),
            environ={"ASCEND_SHIMS_DISABLE": "three"},
        ),
    ]
    assert len({made.digest for made in same}) == 1
    others = [
        plan(one),
        plan(two),
        plan(one, two, environ={"ASCEND_SHIMS": "off"}),
        plan(gap("one", patch(), patch("up.a:g")), two),
    ]
    digests = {made.digest for made in (*same, *others)}
    assert len(digests) == 5
    assert all(len(digest) == 12 for digest in digests)


def test_an_unknown_gap_is_no_key() -> None:
    with pytest.raises(KeyError):
        plan(gap("one", patch()))["two"]


def test_a_plan_touches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It needs no vLLM and reads no file: `--assume vllm=0.29.0` works anywhere."""
    gaps = [gap("one", patch()), gap("two", patch("vllm.nowhere:f"))]

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a plan is a value of values")

    modules = set(sys.modules)
    with monkeypatch.context() as context:
        context.setattr(builtins, "open", refuse)
        context.setattr(builtins, "__import__", refuse)
        made = plan(*gaps)
    assert set(sys.modules) == modules
    assert len(made.wanted) == 2


ids = st.sampled_from(["one", "two", "three", "four"])


@st.composite
def registries(draw: st.DrawFn) -> tuple[Gap, ...]:
    gaps: list[Gap] = []
    for gap_id in draw(st.lists(ids, min_size=1, max_size=4, unique=True)):
        known = tuple(g.id for g in gaps)
        needs = draw(st.lists(st.sampled_from(known), max_size=2)) if known else []
        status = draw(st.sampled_from(["open", "open", "landed", "retired"]))
        patches = [patch(f"up.{gap_id}:f", versions=draw(ranges))] * (status == "open")
        gaps.append(
            gap(
                gap_id,
                *patches,
                status=status,
                needs=Needs(device=draw(st.booleans()), gaps=tuple(needs)),
                default=draw(st.sampled_from(["on", "off"])),
            )
        )
    return tuple(gaps)


ranges = st.sampled_from([{}, {"up": ">=0.28"}, {"up": "<0.28"}])


@settings(deadline=None)
@given(
    registries(),
    st.sampled_from(["none", "sim", "npu"]),
    st.sampled_from(["0.28.0", "0.27.0", "dev", None, "absent"]),
    st.lists(ids, max_size=3),
    st.none() | st.lists(ids, max_size=3),
)
def test_every_gap_is_decided_with_a_reason(
    gaps: tuple[Gap, ...],
    device: str,
    version: str | None,
    off: list[str],
    only: list[str] | None,
) -> None:
    switches = Switches().narrowed(disable=off, only=only, said_by="a test")
    made = plan(*gaps, here=environment(device, up=version), switches=switches)
    assert [p.gap.id for p in made.gaps] == [g.id for g in gaps]
    assert all(p.reason for p in made.gaps)
    for planned in made.wanted:
        assert planned.gap.id not in off
        assert only is None or planned.gap.id in only
        assert planned.gap.status == "open"
        assert not (planned.gap.needs.device and device == "none")
        assert planned.passing
        assert version != "absent"
        for needed in planned.gap.needs.gaps:
            assert made[needed].wanted or made[needed].state is State.LANDED


# Whose code may run


@pytest.mark.parametrize(
    ("package", "allow", "path", "brought", "allowed"),
    [
        ("ascend_shims.patches", [], None, False, True),
        ("ascend_shims.patches", [], "/r.yaml", False, True),
        ("acme.shims", [], "/r.yaml", False, False),
        ("acme.shims", ["acme"], "/r.yaml", False, False),
        ("acme.shims", ["acme.shims"], "/r.yaml", False, True),
        ("acme.shims", [], "/r.yaml", True, True),
        ("acme.shims", [], None, True, False),
    ],
)
def test_whose_code_may_run(
    package: str,
    allow: list[str],
    path: str | None,
    brought: bool,
    allowed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def is_brought(asked: Path, whose: str) -> bool:
        assert (asked, whose) == (Path("/r.yaml"), package)
        return brought

    monkeypatch.setattr(planning, "is_brought", is_brought)
    registry = Registry(schema=1, upstreams=("up",), package=package, gaps=())
    switches = Switches(registry=Path(path) if path else None, allow=frozenset(allow))
    if allowed:
        check_allowed(registry, switches)
        return
    with pytest.raises(NotAllowedError) as caught:
        check_allowed(registry, switches)
    assert str(caught.value) == (
        f"{path} takes its patches from the package '{package}', which is not allowed; "
        f"if you trust it, say ASCEND_SHIMS_ALLOW={package}, or "
        f"apply(registry=…, allow=['{package}'])"
    )
