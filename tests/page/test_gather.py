"""What the page is told: verdicts, changes, patches, processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ascend_shims.page.model import Entry, Page, Standing

from .conftest import BREAKOUT


def _entry(page: Page, name: str) -> Entry:
    (found,) = [one for one in page.entries if one.id == name]
    return found


def test_rows_are_the_registrys_and_what_else_is_relied_on(page: Page) -> None:
    assert [(one.id, one.sort, one.status) for one in page.entries] == [
        ("loud", "gap", "open"),
        ("copied", "gap", "open"),
        ("gone", "gap", "landed"),
        ("along", "companion", "companion"),
        ("watch", "watch", "watched"),
    ]
    assert [one.version for one in page.releases] == ["1.0", "1.1", "1.2", "1.3"]
    assert page.schema == 1


@pytest.mark.parametrize(
    ("name", "verdicts", "changed"),
    [
        # A probe that moved out of sight says `review`; the target itself is gone.
        ("loud", ["identical", "cosmetic", "compatible", "broken"], [1, 2, 3]),
        ("copied", ["identical", "identical", "identical", "review"], [3]),
        ("gone", [None, None, None, None], []),
        ("along", ["identical", "identical", "identical", "compatible"], [3]),
        ("watch", ["identical", "identical", "identical", "broken"], [3]),
    ],
)
def test_cells(
    page: Page, name: str, verdicts: list[str | None], changed: list[int]
) -> None:
    cells = _entry(page, name).cells
    assert [cell.verdict for cell in cells] == verdicts
    assert [i for i, cell in enumerate(cells) if cell.changed] == changed


def test_each_cell_says_why(page: Page, upstream: Path) -> None:
    baseline = f"madeup in {upstream}/1.0"
    loud = _entry(page, "loud").cells
    assert loud[0].sentence == f"All 2 things it relies on are as in {baseline}."
    assert loud[1].sentence.startswith(f"Against {baseline} nothing differs but")
    assert loud[2].sentence == (
        "`madeup.core:answer` changed, and what we rely on did not."
    )
    assert loud[3].counts == {"broken": 1, "review": 1}
    assert [f.verdict for f in loud[3].findings] == ["broken", "review"]
    assert loud[3].sentence == loud[3].findings[0].sentence
    watch = _entry(page, "watch").cells
    assert watch[0].sentence == f"The one thing it relies on is as in {baseline}."
    assert _entry(page, "gone").cells[0].sentence.endswith("relies on nothing there.")


@pytest.mark.parametrize(
    ("name", "marks"),
    [
        ("loud", ["first", "changed", "changed", "gone"]),
        ("copied", ["first", "same", "same", "changed"]),
        ("along", ["first", "same", "same", "changed"]),
        ("watch", ["first", "same", "same", "gone"]),
    ],
)
def test_timelines(page: Page, name: str, marks: list[str]) -> None:
    (thing,) = _entry(page, name).things
    assert [spot and spot.mark for spot in thing.spots] == marks
    assert thing.is_target == (name != "watch")
    for spot in thing.spots:
        assert spot is not None
        assert (spot.change is not None) == (spot.mark in ("changed", "gone"))
        assert (spot.place is None) == (spot.mark == "gone")


def test_the_candidate_that_is_meant_at_each_release(page: Page) -> None:
    (thing,) = _entry(page, "copied").things
    assert [spot and spot.symbol for spot in thing.spots] == [
        *["madeup.core:greet"] * 3,
        "madeup.voice:greet",
    ]


def test_what_is_only_moved_and_what_comes(
    page_of: Callable[..., Page], upstream: Path
) -> None:
    (upstream / "1.1/madeup/core.py").write_text("def ask():\n    return 1\n")
    moved = "def greet(name):\n    said = 'hello'\n    return said + name\n"
    (upstream / "1.2/madeup/core.py").write_text(moved)
    (upstream / "1.3/madeup/core.py").write_text("")
    (upstream / "1.3/madeup/voice.py").write_text(moved)
    (thing,) = _entry(page_of(), "copied").things
    marks = [spot and spot.mark for spot in thing.spots]
    assert marks == ["first", "gone", "new", "moved"]
    (absent,) = _entry(page_of("1.1"), "copied").things
    assert [spot and spot.mark for spot in absent.spots] == ["absent"]


def test_upstreams_change_is_what_diff_shows(page: Page) -> None:
    (thing,) = _entry(page, "loud").things
    spot = thing.spots[2]
    assert spot is not None
    assert spot.change is not None
    change = page.changes[spot.change]
    assert (change.added, change.removed, change.ours) == (1, 1, None)
    assert "-def answer(word):" in change.diff
    assert "+def answer(word, tone=None):" in change.diff
    assert change.diff[0].endswith("1.1: madeup/core.py:5")


def test_a_copied_body_is_seen_from_ours(page: Page) -> None:
    (thing,) = _entry(page, "copied").things
    spot = thing.spots[3]
    assert spot is not None
    assert spot.change is not None
    change = page.changes[spot.change]
    # The folder it lies in is nobody's business.
    assert change.ours == "copied.py:1"
    (hunk,) = change.hunks
    assert (hunk.standing, hunk.old, hunk.new) == (
        "to-port",
        ('    said = "hello"',),
        ('    said = "hallo"',),
    )
    assert hunk.line == 1
    assert hunk.ours[1] == '    said = "hello"'


def test_what_gaps_have_in_common_is_there_once(
    page_of: Callable[..., Page], upstream: Path
) -> None:
    before = len(page_of().changes)
    registry = upstream / "registry.yaml"
    text = registry.read_text()
    twice = "watch:\n  - {symbol: 'madeup.core:answer', how: calls}\n"
    registry.write_text(text.replace("watch:\n", twice))
    page = page_of()
    assert len(page.changes) == before
    assert len(_entry(page, "watch").things) == 2


def test_facts_are_the_registrys(page: Page) -> None:
    loud, copied = _entry(page, "loud"), _entry(page, "copied")
    assert dict(loud.facts) == {
        "Gate": ("madeup >=1",),
        "Takes along": ("along",),
        "References": ("first", "second"),
    }
    assert dict(copied.facts) == {
        "Gate": ("every release",),
        "Default": ("off",),
        "Needs": ("loud",),
        "Takes along": ("along",),
    }
    assert loud.why == f"Callers are hard of hearing. {BREAKOUT}"
    (sign,) = loud.probe
    assert sign.conditions == ("madeup.core:answer: takes volume or loud*",)
    assert dict(_entry(page, "gone").facts)["No patches"] == (
        "upstream answers by itself",
    )


def test_patches_say_what_was_chosen_and_where_they_stand(page: Page) -> None:
    (loud,), (copied,) = _entry(page, "loud").patches, _entry(page, "copied").patches
    # Of a single candidate nothing is chosen, and what is told of it may not be there.
    assert (loud.chosen, loud.gate, loud.notes) == (
        None,
        "",
        ("where upstream imports it",),
    )
    assert (copied.chosen, copied.gate) == ("madeup.core:greet", "madeup >=1,<3")
    assert loud.here == Standing("pending", "waits", False)
    (along,) = _entry(page, "along").patches
    assert along.here is None


def test_processes(page: Page) -> None:
    spoke, silent = page.processes
    assert (spoke.pid, spoke.role, spoke.plan, spoke.problem) == (
        41,
        "worker TP1",
        "abc",
        "",
    )
    assert spoke.states["loud"] == Standing("applied", "yes", False)
    assert spoke.states["copied"].fault
    assert (silent.problem, silent.states) == (
        "no answer within 2 s: busy or stopped",
        {},
    )


def test_without_a_plan_there_are_verdicts_all_the_same(
    page_of: Callable[..., Page],
) -> None:
    page = page_of(report=None, answers=(), notes=["not allowed"])
    assert {one.here for one in page.entries} == {None}
    assert page.processes == ()
    assert page.notes == ("not allowed",)
    assert _entry(page, "loud").cells[3].verdict == "broken"


def test_files_that_cannot_be_read_are_named(
    page_of: Callable[..., Page], upstream: Path
) -> None:
    (upstream / "1.1/madeup/core.py").write_text("def answer(:\n")
    notes = [one.notes for one in page_of().releases]
    assert [bool(one) for one in notes] == [False, True, False, False]
    assert "madeup/core.py: cannot be parsed" in notes[1][0]


def test_the_same_input_gives_the_same_page(page_of: Callable[..., Page]) -> None:
    assert page_of() == page_of()
