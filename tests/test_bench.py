"""`tools/bench`: what it makes of what was measured. Nothing is timed here."""

from __future__ import annotations

import os
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TOP = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def tool() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TOP / "tools"))
        loader = SourceFileLoader("tools_bench", str(TOP / "tools" / "bench"))
        spec = spec_from_loader(loader.name, loader)
        assert spec is not None
        module = module_from_spec(spec)
        loader.exec_module(module)
        from benchmarks import figures, model, wording
        from benchmarks.jobs import applying, loaded

        parts = (figures, model, wording, applying, loaded)
        for part in parts:
            setattr(module, part.__name__.rpartition(".")[2], part)
        yield module


@pytest.fixture
def made(tool: Any) -> Any:
    """A row, and results with rows, from the few things that a test is about."""
    model = tool.model

    def row(name: str, value: float | None, **more: Any) -> Any:
        spread = model.Spread(10.0, 9.0, 11.0, 8.0, 5)
        between = model.Ratio(value, value * 0.99, value * 1.01) if value else None
        plain = {"what": "this", "against": "that", "unit": "ms", "theirs": spread}
        given = {**plain, "ours": spread, "ratio": between, **more}
        return model.Row(name=name, **given)

    def results(*rows: Any, quick: bool = False, benchmark: str = "import") -> Any:
        machine = model.Machine("a processor", 2, "3.11", {"wrapt": "2.0"})
        words = (benchmark, "Importing", "2026-01-02", quick, 3.0, machine)
        return model.Results((model.Entry(*words, tuple(rows)),))

    namespace = type("Made", (), {"row": staticmethod(row)})
    namespace.results = staticmethod(results)
    return namespace


# Figures


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([5.0], (5.0, 5.0, 5.0, 5.0, 1)),
        ([1.0, 3.0], (2.0, 1.5, 2.5, 1.0, 2)),
        ([4.0, 1.0, 2.0, 3.0, 100.0], (3.0, 2.0, 4.0, 1.0, 5)),
        ([1.23456789] * 3, (1.2346, 1.2346, 1.2346, 1.2346, 3)),
    ],
)
def test_a_spread(tool: Any, samples: list[float], expected: Any) -> None:
    found = tool.figures.spread(samples)
    assert (found.median, found.low, found.high, found.least, found.count) == expected


def test_the_ratio_is_that_of_the_pairs_and_not_of_the_middles(tool: Any) -> None:
    ours, theirs = [2.0, 20.0, 200.0], [1.0, 10.0, 100.0]
    found = tool.figures.ratio_of(ours, theirs)
    assert (found.value, found.low, found.high) == (2.0, 2.0, 2.0)


@pytest.mark.parametrize(
    ("pairs", "value", "low", "high"),
    [
        ([(3.0, 2.0)], 1.5, 1.5, 1.5),
        ([(x, 100.0) for x in range(90, 111)], 1.0, 0.95, 1.05),
        ([(1.0, 1.0)] * 20 + [(100.0, 1.0)], 1.0, 1.0, 1.0),
    ],
)
def test_an_interval(
    tool: Any, pairs: list[Any], value: float, low: float, high: float
) -> None:
    found = tool.figures.ratio_of_groups([pairs])
    assert found.value == value
    assert found.low == pytest.approx(low, abs=0.02)
    assert found.high == pytest.approx(high, abs=0.02)
    assert found == tool.figures.ratio_of_groups([pairs])


def test_what_a_group_has_in_common_makes_the_interval_wider(tool: Any) -> None:
    groups = [[(1.0 + lean, 1.0)] * 10 for lean in (0.0, 0.1, 0.2, 0.3)]
    apart = tool.figures.ratio_of_groups(groups)
    together = tool.figures.ratio_of_groups(
        [[one for group in groups for one in group]]
    )
    assert apart.high - apart.low > together.high - together.low > 0


@pytest.mark.parametrize("name", ["spread", "ratio_of_groups"])
def test_of_nothing_there_is_no_figure(tool: Any, name: str) -> None:
    with pytest.raises(ValueError, match="at least one"):
        getattr(tool.figures, name)([])


def test_what_ours_take_more_is_told_by_pairs(tool: Any) -> None:
    assert tool.figures.overhead([11.0, 103.0, 52.0], [10.0, 100.0, 50.0]) == 2.0


def test_everybody_is_first_and_last_equally_often(tool: Any) -> None:
    orders = tool.figures.in_turns(["a", "b", "c"], 12)
    assert len(orders) == 12
    assert all(sorted(order) == ["a", "b", "c"] for order in orders)
    assert Counter(order[0] for order in orders) == {"a": 4, "b": 4, "c": 4}
    assert Counter(order[-1] for order in orders) == {"a": 4, "b": 4, "c": 4}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0"),
        (0.00123, "0.0012"),
        (0.0512, "0.051"),
        (0.9876, "0.988"),
        (1.5, "1.50"),
        (99.99, "99.99"),
        (123.4, "123"),
        (12345.6, "12,346"),
        (-2.5, "-2.50"),
    ],
)
def test_numbers(tool: Any, value: float, expected: str) -> None:
    assert tool.wording.number(value) == expected


# What got worse


@pytest.mark.parametrize(
    ("better", "before", "now", "named"),
    [
        ("less", 1.0, 1.11, True),
        ("less", 1.0, 1.09, False),
        ("less", 0.05, 0.0556, True),
        ("less", 0.05, 0.0545, False),
        ("less", 2.0, 1.0, False),
        ("more", 1.0, 0.90, True),
        ("more", 1.0, 0.92, False),
        ("more", 1.0, 1.5, False),
        ("less", None, 5.0, False),
        ("less", 5.0, None, False),
    ],
)
def test_a_regression_is_named(
    tool: Any, made: Any, better: str, before: Any, now: Any, named: bool
) -> None:
    old = made.results(made.row("a", before, better=better))
    new = made.results(made.row("a", now, better=better))
    assert [one.name for one in tool.regressions(new, old)] == ["a"] * named


def test_a_regression_says_how_much_and_how_sure(tool: Any, made: Any) -> None:
    ratio = tool.model.Ratio
    old = made.results(made.row("a", 1.0), made.row("b", 1.0), made.row("c", 1.0))
    new = made.results(
        made.row("a", 1.11),
        made.row("b", None, ratio=ratio(1.5, 0.9, 2.1)),
        made.row("c", 1.0),
        made.row("d", 9.0),
    )
    assert [one.text for one in tool.regressions(new, old)] == [
        "b: 50 % worse; 1.50 x (0.900 to 2.10), was 1.00 x; "
        "not sure: what it was is inside the interval",
        "a: 11 % worse; 1.11 x (1.10 to 1.12), was 1.00 x",
    ]


def test_what_is_not_measured_any_more_is_missed(tool: Any, made: Any) -> None:
    old = made.results(made.row("a", 1.0), made.row("b", 1.0))
    new = made.results(made.row("a", 1.0))
    assert tool.unmeasured(new, old) == ["b"]
    assert tool.unmeasured(made.results(made.row("a", 1.0), quick=True), old) == []
    assert tool.unmeasured(made.results(benchmark="scan"), old) == []


# The table


def _long(made: Any) -> Any:
    what = "a process with the engine and the registry, " * 3
    return made.row("apply-steady-monkeypatch", 1234.5, what=what, against=what)


@pytest.mark.parametrize(("columns", "width"), [(20, 80), (80, 80), (200, 200)])
def test_the_table_fits(tool: Any, made: Any, columns: int, width: int) -> None:
    limit = tool.model.Limit("at most 20 ms", 31.4, False)
    rows = [made.row("import-wrapt", 0.125, limits=(limit,)), _long(made)]
    found = tool.lines(made.results(*rows), columns)
    assert len(found) > 8
    assert max(map(len, found)) <= width
    assert not any("\x1b" in line for line in found)


def test_the_table_says(tool: Any, made: Any) -> None:
    limit = tool.model.Limit("at most 20 ms", 31.4, False)
    alone = made.row("verify", None, theirs=None, against="", unit="s")
    rows = [made.row("import-wrapt", 0.125, limits=(limit,)), alone]
    said = [" ".join(line.split()) for line in tool.lines(made.results(*rows), 80)]
    assert said == [
        "Importing (3 s)",
        "OURS THEIRS RATIO 95 %",
        "import-wrapt 10.00 ms 10.00 ms 0.125 x 0.124 to 0.126",
        "this, against that",
        "at most 20 ms: NOT MET, 31.40",
        "verify 10.00 s",
        "this",
        "",
        "0 of 1 limits met",
    ]


# The page and the picture


def test_the_page_says(tool: Any, made: Any) -> None:
    limit = tool.model.Limit("at most 20 ms", 31.4, False)
    rows = [made.row("a", 0.125, what="a | b", limits=(limit,), note="as noted")]
    text = tool.page(made.results(*rows, quick=True), "")
    assert "| a \\| b, against that | at most 20 ms | 31.40 | NOT MET |" in text
    assert (
        "| a \\| b | that | 10.00 (9.00 to 11.00) ms | 10.00 (9.00 to 11.00) "
        "| 0.125 x | 0.124 to 0.126 |"
    ) in text
    assert "- a: as noted" in text
    assert "A quick run" in text
    assert (
        "- import: 2026-01-02, 2 cores of a processor, Python 3.11, wrapt 2.0" in text
    )


def test_what_is_written_by_hand_stays(tool: Any, made: Any) -> None:
    first = tool.page(made.results(made.row("a", 2.0)), "")
    assert first.count("## Profiles") == 1
    by_hand = first + "\nA thing was slow, and is not any more.\n"
    second = tool.page(made.results(made.row("a", 3.0)), by_hand)
    assert second.endswith("A thing was slow, and is not any more.\n")
    assert "| 3.00 x |" in second
    assert "| 2.00 x |" not in second
    assert tool.page(made.results(made.row("a", 3.0)), second) == second


def _shapes(text: str) -> Counter[str]:
    root = ElementTree.fromstring(text)
    return Counter(one.tag.rpartition("}")[2] for one in root.iter())


def test_the_picture(tool: Any, made: Any) -> None:
    speed = made.row("c", 0.5, better="more", what="speed")
    rows = [made.row("a", 0.5, what="<this> & that"), made.row("b", 2.0), speed]
    text = tool.draw(made.results(*rows, made.row("d", None)))
    shapes = _shapes(text)
    # Half of the speed costs twice the time: less is better on one side only.
    assert (shapes["circle"], shapes["polygon"]) == (1, 2)
    assert "prefers-color-scheme: dark" in text
    assert "&lt;this&gt; &amp; that" in text
    assert ElementTree.fromstring(text).find("{*}title") is not None


def test_there_is_no_picture_of_nothing(tool: Any, made: Any) -> None:
    with pytest.raises(ValueError, match="no ratios"):
        tool.draw(made.results(made.row("a", None)))


def test_results_survive_their_json(tool: Any, made: Any, tmp_path: Path) -> None:
    limit = tool.model.Limit("at most 20 ms", 31.4, False)
    results = made.results(made.row("a", 0.5, limits=(limit,)), made.row("b", None))
    file = tmp_path / "results.json"
    file.write_text(results.to_json())
    assert tool.Results.read(file) == results
    assert tool.Results.read(tmp_path / "none.json") == tool.Results()
    file.write_text('{"entries": 3}')
    with pytest.raises(SystemExit, match="tools/bench --json FILE"):
        tool.Results.read(file)


# The command


@pytest.fixture
def docs(tool: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, place in (
        ("DATA", "performance.json"),
        ("PAGE", "performance.md"),
        ("PICTURE", "images/performance.svg"),
    ):
        monkeypatch.setattr(tool, name, tmp_path / place)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def _written(folder: Path, name: str, results: Any) -> str:
    file = folder / name
    file.write_text(results.to_json())
    return str(file)


@pytest.mark.parametrize(("ratio", "code"), [(1.11, 1), (1.09, 0)])
def test_a_check_names_what_is_worse(
    tool: Any, made: Any, docs: Path, capsys: Any, ratio: float, code: int
) -> None:
    _written(docs, "performance.json", made.results(made.row("a", 1.0)))
    new = _written(docs, "new.json", made.results(made.row("a", ratio)))
    assert tool.main(["--from", new, "--check"]) == code
    said = capsys.readouterr()
    assert ("worse: a: 11 % worse" in said.err) == bool(code)
    assert ("nothing is worse by more than 10 %" in said.err) != bool(code)
    assert "limits met" in said.out


def test_without_a_baseline_nothing_can_be_said(
    tool: Any, made: Any, docs: Path, capsys: Any
) -> None:
    new = _written(docs, "new.json", made.results(made.row("a", 1.0)))
    assert tool.main(["--from", new, "--check"]) == 1
    assert "tools/bench --write makes it" in capsys.readouterr().err


def test_writing_keeps_what_was_not_measured_now(
    tool: Any, made: Any, docs: Path, capsys: Any
) -> None:
    old = made.results(made.row("s", 4.0), benchmark="scan")
    _written(docs, "performance.json", old)
    new = _written(docs, "new.json", made.results(made.row("a", 2.0)))
    assert tool.main(["--from", new, "--write", "--json", "-"]) == 0
    printed = capsys.readouterr().out
    assert printed == Path(new).read_text()
    kept = tool.Results.read(docs / "performance.json")
    assert [entry.benchmark for entry in kept.entries] == ["import", "scan"]
    text = (docs / "performance.md").read_text()
    assert "2.00 x" in text
    assert "4.00 x" in text
    assert _shapes((docs / "images" / "performance.svg").read_text())["polygon"] == 2


def test_one_that_fails_does_not_keep_the_others(
    tool: Any, made: Any, docs: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Any) -> Any:
        raise tool.ChildError("it said: no")

    machine = made.results().entries[0].machine
    monkeypatch.setattr(tool.rooms, "rivals", lambda: docs)
    monkeypatch.setattr(tool.rooms, "machine", lambda: machine)
    bad = tool.Benchmark("bad", "Bad", fails)
    good = tool.Benchmark("good", "Good", lambda effort: [made.row("g", 1.0)])
    monkeypatch.setattr(tool, "BENCHMARKS", {"bad": bad, "good": good})
    file = docs / "out.json"
    assert tool.main(["--quick", "--json", str(file)]) == 1
    assert "bad failed: it said: no" in capsys.readouterr().err
    (entry,) = tool.Results.read(file).entries
    assert (entry.benchmark, entry.quick, len(entry.rows)) == ("good", True, 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "nonsense"], "invalid choice: 'nonsense'"),
        (["--from", "/nowhere.json"], "tools/bench --json FILE writes one"),
    ],
)
def test_misuse(tool: Any, capsys: Any, words: list[str], said: str) -> None:
    with pytest.raises(SystemExit) as ended:
        tool.main(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


# What is measured with


def test_a_process_that_fails_says_why(tool: Any) -> None:
    from benchmarks.children import run

    assert run(sys.executable, "-c", "print(1); print([2])").answer() == [2]
    code = "import sys; sys.exit('because')"
    with pytest.raises(tool.ChildError, match=r"(?s)ended with 1.*because"):
        run(sys.executable, "-c", code)
    with pytest.raises(tool.ChildError, match="no answer in"):
        run(sys.executable, "-c", "print('word')").answer()


class _Place:
    @staticmethod
    def static() -> str:
        return "stock"

    def method(self) -> str:
        return "stock"


@pytest.mark.parametrize("name", ["mock", "monkeypatch", "setattr"])
def test_others_make_the_same_edits_and_take_them_back(tool: Any, name: str) -> None:
    stock = dict(vars(_Place))
    names, new = ("static", "method", "fresh"), object()
    places = [tool.loaded.Place(_Place, key) for key in names]
    back = tool.applying._OTHERS[name](places, new)
    assert [vars(_Place)[key] for key in names] == [new] * 3
    back()
    assert dict(vars(_Place)) == stock


def test_the_floor_meets_every_name(tool: Any, monkeypatch: Any) -> None:
    module = ModuleType("made_up_for_a_test")
    module.Outer = type("Outer", (), {"Inner": type("Inner", (), {"value": len})})
    module.again, module.held = module, len
    monkeypatch.setitem(sys.modules, module.__name__, module)
    spaces = tool.loaded.namespaces()
    inner = vars(module.Outer.Inner)
    assert sum(one is vars(module) for one in spaces) == 1
    mine = [one for one in spaces if one.get("__module__") == __name__ or one is inner]
    assert sum(one.get("value") is len for one in mine) == 1
    assert tool.applying._looked_through([vars(module), inner], {id(len)}) == 2


def test_made_up_modules_have_a_hundred_names(tool: Any) -> None:
    made_up = list(tool.loaded.synthetic(3))
    assert [module.__name__ for module in made_up] == [f"made_up_{n}" for n in range(3)]
    own = [name for name in vars(made_up[0]) if not name.startswith("__")]
    assert len(own) == 100
    functions = sum(callable(vars(made_up[0])[name]) for name in own)
    assert functions == 50


_APPLYING = """
import importlib, json
from benchmarks.jobs import applying
applying.load_upstream = lambda: importlib.import_module("bench_upstream.methods")
print(json.dumps(applying.main(2, 2, [0, 1])))
"""


def test_applying_is_measured_in_turns(tool: Any) -> None:
    """With the made-up upstream: each edit is seen in place, and gone after it."""
    from benchmarks.children import run

    tools = TOP / "tools"
    madeup = tools / "benchmarks" / "madeup"
    env = {
        "PYTHONPATH": os.pathsep.join(map(str, (tools, madeup))),
        "ASCEND_SHIMS_REGISTRY": str(madeup / "registry.yaml"),
        "ASCEND_SHIMS_ALLOW": "bench_patches",
        "ASCEND_SHIMS_ONLY": "wrapped,decorated",
    }
    told = run(sys.executable, "-c", _APPLYING, env=env).answer()
    assert (told["gaps"], told["places"]) == (2, 2)
    assert told["names"] > told["modules"] > 100
    names = {"shims", "apply", "find", "floor", "mock", "monkeypatch", "setattr"}
    assert set(told["first"]) == set(told["steady"]) == names
    assert all(len(took) == 2 for took in told["steady"].values())
    grown = told["grown"]
    assert all(len(took) == 2 for took in grown["took"].values())
    # Of each module a hundred names, and those that every module has.
    assert 100_000 <= grown["names"]["1"] - grown["names"]["0"] < 120_000


# What is in the repository


def test_the_page_goes_with_its_data(tool: Any) -> None:
    results = tool.Results.read(tool.DATA)
    assert {entry.benchmark for entry in results.entries} <= set(tool.BENCHMARKS)
    names = [row.name for entry in results.entries for row in entry.rows]
    assert len(names) == len(set(names)) > 0
    before = tool.PAGE.read_text("utf-8")
    assert tool.page(results, before) == before
    assert tool.draw(results) == tool.PICTURE.read_text("utf-8")
