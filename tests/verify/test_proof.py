"""What `shims verify` proves, says, and refuses."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import Town


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Town:
    town = Town(tmp_path_factory.mktemp("sound"), "sound")
    town.gap("one", "")
    town.gap("two", "", needs={"gaps": ["one"]})
    return town


@pytest.fixture(scope="module")
def told(sound: Town) -> Any:
    ended = sound.verify("--json")
    assert ended.code == 0, ended.err
    return ended.told


def test_what_leaves_no_trace_is_proved(told: Any) -> None:
    assert (told["schema"], told["ok"], told["proved"]) == (1, True, True)
    stages = {one["name"]: one for one in told["stages"]}
    assert list(stages) == [
        "off",
        "one",
        "two",
        "all",
        "after all that",
        "before upstream",
    ]
    assert {one["ok"] for one in stages.values()} == {True}
    assert [one["differences"] for one in stages.values()] == [[]] * 6


def test_each_patch_was_seen_to_be_in_force(told: Any) -> None:
    seen = {
        one["name"]: [(g["id"], g["applied"], g["changed"]) for g in one["gaps"]]
        for one in told["stages"]
    }
    both = [("one", 1, 1), ("two", 1, 1)]
    assert seen == {
        "off": [],
        "one": [("one", 1, 1)],
        "two": both,
        "all": both,
        "after all that": [],
        "before upstream": both,
    }


def test_the_digest_is_that_of_every_interpreter(told: Any) -> None:
    assert set(told["digests"]) == {"stock", "off", "reverted", "applied first"}
    assert set(told["digests"].values()) == {told["digest"]}
    assert re.fullmatch(r"[0-9a-f]{32}", told["digest"])


def test_what_was_compared_is_counted(sound: Town, told: Any) -> None:
    compared = told["compared"]
    assert compared["modules"] == 8
    assert set(compared["by_root"]) == {sound.up, "process", "typing"}
    assert compared["entries"] == sum(compared["by_root"].values())
    assert compared["by_root"][sound.up] > 1500
    assert told["device"] == {"kind": "sim", "assumed": True}


def test_a_person_reads_it_in_eighty_columns(sound: Town) -> None:
    ended = sound.verify(env={"COLUMNS": "80"})
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[-1] == "Upstream is byte-identical, off and reverted."
    row = re.compile(r"one +1 of 1 patch +the same objects +nothing")
    assert any(map(row.match, lines))


def test_one_gap_can_be_asked_for(sound: Town) -> None:
    told = sound.verify("--json", "one").told
    assert [one["name"] for one in told["stages"]][1:3] == ["one", "all"]
    assert [one["id"] for one in told["left_out"]] == ["two"]
    assert told["ok"]


def test_a_difference_is_told_with_its_path(town: Town) -> None:
    town.gap("leaky", "a.Sub.method = a.Base.method")
    ended = town.verify(env={"COLUMNS": "80"})
    assert ended.code == 1
    out = ended.out
    assert "leaky: up_small.a:Sub.method" in out
    assert "an own copy of what it inherits from up_small.a:Base" in out
    # Against the interpreter that never heard of us, too, and however it was applied.
    assert "after all that: up_small.a:Sub.method" in out
    assert "before upstream: up_small.a:Sub.method" in out
    assert out.splitlines()[-1] == "Upstream is not byte-identical."


def test_a_gap_that_is_not_in_force_is_no_proof(town: Town) -> None:
    town.gap("sound", "")
    town.gap("gone", "")
    town.gaps[1]["patches"][0]["target"] = "up_small.a:nowhere"
    ended = town.verify("--json")
    assert ended.code == 1
    stage = next(one for one in ended.told["stages"] if one["name"] == "gone")
    assert stage["gaps"][0]["state"] == "missing-target"
    assert "does not exist" in stage["gaps"][0]["reason"]
    assert not stage["gaps"][0]["in_force"]
    assert ended.told["proved"]
    assert not ended.told["ok"]


def test_nothing_in_force_proves_nothing_but_off(town: Town) -> None:
    town.gap("one", "")
    ended = town.verify(env={"ASCEND_SHIMS": "off"})
    assert ended.code == 1
    assert "one was not tried: off: switched off by ASCEND_SHIMS=off" in ended.out
    said = " ".join(ended.out.split())
    assert "No gap was in force, so it is only proved that the toolkit," in said


def test_a_patch_that_raises_is_told(town: Town) -> None:
    town.gap("raising", "raise RuntimeError('not today')")
    ended = town.verify()
    assert ended.code == 1
    assert "raising was not in force: failed" in ended.out
    assert "not today" in ended.out


def test_a_patch_that_raises_counts_among_those_that_belong_here(town: Town) -> None:
    town.gap("raising", "raise RuntimeError('not today')")
    town.gap("interrupting", "raise KeyboardInterrupt")
    ended = town.verify("--json")
    assert ended.code == 1
    stages = {one["name"]: one for one in ended.told["stages"]}
    (gap,) = stages["raising"]["gaps"]
    assert (gap["patches"], gap["applied"], gap["changed"]) == (1, 0, 0)
    assert (gap["state"], gap["in_force"]) == ("failed", False)
    (gap,) = stages["interrupting"]["gaps"]
    assert (gap["patches"], gap["changed"], gap["in_force"]) == (1, 0, False)
    assert stages["interrupting"]["errors"] == ["apply(): KeyboardInterrupt: "]
    assert "0 of 1 patch" in town.verify("raising").out


def test_what_is_imported_is_one_line_after_the_rest(town: Town) -> None:
    names = [f"extra{n}" for n in range(30)]
    for name in names:
        town.write(f"up_small/{name}.py", "def f(): pass\n")
    imports = "; ".join(f"import up_small.{name}" for name in names)
    town.gap("leaky", f"{imports}; a.LIMIT = 4")
    ended = town.verify(env={"COLUMNS": "200"})
    lines = [line for line in ended.out.splitlines() if line.startswith("leaky:")]
    assert lines == [
        "leaky: up_small.a:LIMIT",
        "leaky: 30 modules of upstream imported meanwhile: up_small.extra0, "
        "up_small.extra1, up_small.extra10, …",
    ]
    told = town.verify("--json").told
    stage = next(one for one in told["stages"] if one["name"] == "leaky")
    kinds = [one["kind"] for one in stage["differences"]]
    assert kinds == ["other-value"] + ["imported"] * 60


def test_the_digest_is_upstreams_alone(town: Town, tmp_path: Path) -> None:
    """Not that of the gaps, nor of where it is, or is called, nor by whom."""
    moved = Town(tmp_path / "moved", "small")
    paths = "import os; HERE = os.getcwd() + '/a'; HOME = os.path.expanduser('~/b')\n"
    for one in (town, moved):
        one.write("up_small/listed.py", f"import logging\nlog = 2\n{paths}")
        one.gap("one", "")
    town.gap("two", "a.LIMIT = 9")
    moved.gap("other", "")
    digests = [
        town.verify("--json").told["digest"],
        town.verify("--json", "one").told["digest"],
        town.verify("--json", env={"LEFT": "1", "HOME": "/some/where"}).told["digest"],
        moved.verify("--json").told["digest"],
    ]
    assert len(set(digests)) == 1
    moved.write("up_small/listed.py", f"import logging\nlog = 3\n{paths}")
    assert moved.verify("--json").told["digest"] != digests[0]


def test_a_version_may_be_assumed_of_what_is_there(town: Town) -> None:
    town.gap("one", "")
    ended = town.verify("--json", env={"ASCEND_SHIMS_ASSUME": "up_small=5"})
    assert ended.code == 0, ended.err
    assert ended.told["upstream"]["up_small"].startswith("up_small 5")


@pytest.mark.parametrize(
    ("words", "environ", "says"),
    [
        (["nothing-like-it"], {}, "no gap is called 'nothing-like-it'; there are one"),
        (["--what"], {}, "No such option"),
        ([], {"ASCEND_SHIMS_DEVICE": "abacus"}, "abacus is not understood"),
        ([], {"ASCEND_SHIMS_DISABLE": "tow"}, "'tow', which is not in the registry"),
    ],
)
def test_misuse_is_told_without_a_traceback(
    town: Town, words: list[str], environ: dict[str, str], says: str
) -> None:
    town.gap("one", "")
    ended = town.verify(*words, env=environ)
    assert (ended.code, ended.out) == (2, "")
    assert says in ended.err
    assert "Traceback" not in ended.err


def test_an_upstream_that_is_not_there_is_misuse(town: Town) -> None:
    town.up = "elsewhere"
    town.gap("one", "")
    ended = town.verify()
    assert (ended.code, ended.out) == (2, "")
    assert "elsewhere is not installed for" in ended.err


def test_a_stock_interpreter_with_the_toolkit_is_refused(town: Town) -> None:
    town.gap("one", "")
    town.write("sitecustomize.py", "import ascend_shims\n")
    ended = town.verify()
    assert ended.code == 2
    assert "the stock interpreter has ascend_shims loaded" in ended.err
    assert "Traceback" not in ended.err


def test_shims_run_does_not_reach_the_stock_interpreter(sound: Town) -> None:
    import ascend_shims

    bootstrap = f"{ascend_shims.__path__[0]}/bootstrap"
    path = f"{bootstrap}:{sound.root}"
    assert sound.verify("one", env={"PYTHONPATH": path}).code == 0


def test_what_varies_is_said_to(town: Town) -> None:
    town.write("up_small/evicted.py", "import time; NOW = time.time_ns()\n")
    town.gap("one", "")
    told = town.verify("--json").told
    assert told["ok"]
    known = {"typing:_overload_registry"}
    assert set(told["varying"]) - known == {"up_small.evicted:NOW"}
    assert "two stock interpreters differ" in told["varying"]["up_small.evicted:NOW"]


def test_an_upstream_module_that_does_not_import_is_told(town: Town) -> None:
    town.gap("one", "")
    town.write("up_small/broken.py", "raise RuntimeError('not here')\n")
    town.gaps[0]["patches"][0]["relies_on"] = [
        {"symbol": "up_small.broken:x", "how": "imports_name"}
    ]
    told = town.verify("--json").told
    assert told["not_importable"] == {"up_small.broken": "RuntimeError: not here"}


def test_nothing_of_upstream_is_asked_for_anything(town: Town) -> None:
    """No descriptor, metaclass, `__getattr__`, `__eq__`, `__hash__` or `__repr__`."""
    town.write(
        "up_small/touchy.py",
        """
class Touched(BaseException): pass

def touch(*a, **k): raise Touched

class Meta(type):
    armed = False
    def __getattribute__(cls, name):
        if Meta.armed: raise Touched
        return type.__getattribute__(cls, name)

class Descriptor:
    def __get__(self, one, owner): raise Touched

class Touchy(metaclass=Meta):
    held = Descriptor()
    __eq__ = __repr__ = __str__ = __len__ = __iter__ = __bool__ = touch
    __getattr__ = __dir__ = touch
    def __hash__(self): return id(self)
    def __getattribute__(self, name): raise Touched

class Items(dict):
    items = keys = values = __iter__ = __getitem__ = touch

class Sequence(list):
    __iter__ = __getitem__ = __len__ = touch

one = Touchy()
keyed = {one: 1}
grouped = {one}
items = Items(a=1)
sequence = Sequence([1])
Meta.armed = True

def __getattr__(name): raise Touched
""",
    )
    town.write("up_small/evicted.py", "from . import touchy\n")
    town.gap("one", "")
    ended = town.verify("--json", env={"PYTHONDONTWRITEBYTECODE": "1"})
    assert ended.code == 0, ended.err
    assert ended.told["compared"]["modules"] == 9


def test_the_stock_interpreter_never_hears_of_the_toolkit() -> None:
    """What describes is loaded by its path, and needs the standard library only."""
    from ascend_shims.verify import inventory

    from ..fresh import python

    init = inventory.__file__
    said = python(
        "import importlib.util as u, sys\n"
        "init = sys.argv[1]\n"
        "spec = u.spec_from_file_location('inv', init,"
        " submodule_search_locations=[init.rpartition('/')[0]])\n"
        "sys.modules['inv'] = m = u.module_from_spec(spec)\n"
        "spec.loader.exec_module(m)\n"
        "import inv.child\n"
        "tops = {n.partition('.')[0] for n in sys.modules}\n"
        "print(*sorted(tops - set(sys.stdlib_module_names) - {'inv', '__main__'}))\n",
        init,
        env={"PYTHONPATH": ""},
    )
    started = python("import sys; print(*{n.partition('.')[0] for n in sys.modules})")
    assert set(said.split()) <= set(started.split()), sys.path
    assert "ascend_shims" not in said.split()
