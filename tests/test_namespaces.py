"""Switches that name gaps of other registries, by id or by namespace."""

from __future__ import annotations

import pytest

from ascend_shims.switches import Switches, meant, read_switches

GAPS = ["kv-cache", "acme/fast-rope", "acme/slow-rope", "beta/fast-rope"]


def _on(**environ: str) -> list[str]:
    switches = read_switches({f"ASCEND_SHIMS_{k}": v for k, v in environ.items()})
    assert switches.complaints == ()
    return [gap for gap in GAPS if switches.choice(gap).on is not False]


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"DISABLE": "acme/fast-rope"}, [GAPS[0], GAPS[2], GAPS[3]]),
        ({"DISABLE": "acme/*"}, [GAPS[0], GAPS[3]]),
        ({"DISABLE": "acme/*, kv-cache"}, [GAPS[3]]),
        ({"DISABLE": "fast-rope"}, GAPS),
        ({"DISABLE": "/*"}, GAPS),
        ({"ONLY": "acme/*"}, GAPS[1:3]),
        ({"ONLY": "acme/*,kv-cache", "DISABLE": "acme/slow-rope"}, GAPS[:2]),
    ],
)
def test_what_is_off(environ: dict[str, str], expected: list[str]) -> None:
    assert _on(**environ) == expected


def test_who_said_so() -> None:
    switches = read_switches({"ASCEND_SHIMS_DISABLE": "acme/*"})
    assert switches.choice("acme/fast-rope").said_by == "ASCEND_SHIMS_DISABLE"


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        (["acme/*"], ["acme/fast-rope"], {"acme/fast-rope"}),
        (["acme/fast-rope"], ["acme/*"], {"acme/fast-rope"}),
        (["acme/*"], ["acme/*", "kv-cache"], {"acme/*"}),
        (["acme/*"], ["beta/*"], set()),
        (["kv-cache"], ["kv-cache", "acme/*"], {"kv-cache"}),
    ],
)
def test_neither_switches_on_what_the_other_left_out(
    mine: list[str], theirs: list[str], expected: set[str]
) -> None:
    first = Switches().narrowed(only=mine, said_by="one")
    assert first.narrowed(only=theirs, said_by="two").only == expected


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("acme/fast-rop", "did you mean 'acme/fast-rope'?"),
        ("acmee/*", "did you mean 'acme/*'?"),
    ],
)
def test_unknown_ones_are_told_with_the_nearest(name: str, hint: str) -> None:
    switches = read_switches({"ASCEND_SHIMS_DISABLE": f"{name},acme/*,kv-cache"})
    (complaint,) = switches.unknown(GAPS)
    assert complaint.startswith(f"ASCEND_SHIMS_DISABLE names the gap {name!r}")
    assert complaint.endswith(hint)


@pytest.mark.parametrize(
    ("said", "expected", "again"),
    [
        (None, None, None),
        ("", None, None),
        ("all", None, None),
        ("none", frozenset(), "none"),
        (" acme , beta", frozenset({"acme", "beta"}), "acme,beta"),
    ],
)
def test_registries_to_take(
    said: str | None, expected: frozenset[str] | None, again: str | None
) -> None:
    environ = {} if said is None else {"ASCEND_SHIMS_REGISTRIES": said}
    switches = read_switches(environ)
    assert (switches.namespaces, switches.complaints) == (expected, ())
    assert switches.as_environment().get("ASCEND_SHIMS_REGISTRIES") == again
    assert read_switches(switches.as_environment()).namespaces == expected


def test_which_gaps_are_meant() -> None:
    assert meant(["acme/*", "kv-cache", "x"], GAPS) == set(GAPS[:3])
    assert meant([], GAPS) == set()
