"""Releases of a made-up upstream against what was found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ascend_shims.scan.questions import ask
from ascend_shims.scan.releases import Compared, compare, gap_ids
from ascend_shims.upstream.fetching import Releases
from ascend_shims.upstream.sources import Sources

OLD = {
    "up/__init__.py": "",
    "up/core.py": """
        import os
        from up.helpers import rate
        LIMIT = 3
        def answer(word): return word
        def gone(): return 1
        class Engine:
            name = "x"
            def __init__(self, size): self.size = size
            def step(self, x): return x
            def _inner(self): return self._table
            def stays(self): return 2
        class Platform:
            kind = "cpu"
        def make(): return Platform()
        current = make()
        def ask(): return answer("tea")
    """,
    "up/helpers.py": "def rate(): return 1\n",
    "up/user.py": "from up.core import answer\ndef use(): return answer('tea')\n",
}
NEW = {
    **OLD,
    "up/core.py": """
        import os
        from up.helpers import rate
        LIMIT = 3
        def answer(word, tone): return word
        class Engine:
            name = "x"
            def __init__(self, size): self.size = size
            def step(self, x, y): return self.helper(x, y)
            def _inner(self): return self._table
            def stays(self): return 2
        class Platform:
            kind = "cpu"
        def make(): return Platform()
        current = make()
        def ask(): return answer("tea", "soft")
        def go(engine: Engine): return engine.step(1, 2)
    """,
}


@pytest.fixture
def against(
    scanned: Any, write: Callable[..., Path], tmp_path: Path
) -> Callable[..., Compared]:
    """Compare the code with releases; without any with the old one and the new one."""

    def run(code: Any, *releases: Mapping[str, str], judge: bool = True) -> Compared:
        several = releases or (OLD, NEW)
        folders = [
            str(write(files, folder=f"release-{number}"))
            for number, files in enumerate(several)
        ]
        result = scanned(code, "up")
        opened = Releases(Sources(offline=True))
        newer, first = folders[1:] or folders, folders[0]
        return compare(result, opened, newer, first, "up", judge=judge)

    return run


def _verdicts(compared: Compared) -> dict[str, tuple[str | None, str | None]]:
    return {
        str(found.target): (verdicts[-1].kind, verdicts[-1].breakage)
        if verdicts[-1]
        else (None, None)
        for found, verdicts in compared.verdicts.items()
    }


def test_patches_are_judged_as_drift_judges_them(against: Any) -> None:
    code = """
        import up.core as c
        def answer(word): ...
        c.answer = answer
        c.gone = lambda: 1
        c.Engine.step = lambda self, x: x
        c.Engine.stays = lambda self: 2
        c.LIMIT = 4
    """
    assert _verdicts(against(code)) == {
        "up.core:answer": ("broken", "required-parameter-added"),
        "up.core:gone": ("broken", "removed"),
        "up.core:Engine.step": ("broken", "required-parameter-added"),
        "up.core:Engine.stays": ("identical", None),
        "up.core:LIMIT": ("identical", None),
    }


def test_the_parameters_of_the_replacement_count(against: Any) -> None:
    code = "import up.core as c\nc.answer = lambda word, tone=None: word"
    assert _verdicts(against(code)) == {"up.core:answer": ("compatible", None)}


def test_only_what_upstream_has_is_overridden(against: Any) -> None:
    code = """
        from up.core import Engine
        class Ours(Engine):
            def __init__(self, size): ...
            def step(self, x): return self._inner() + self._ours()
            def mine(self): ...
        class More(Ours):
            def stays(self): return self._inner()
    """
    compared = against(code)
    relied = {(f.form, f.target) for f in compared.scanned.found}
    assert relied == {
        ("subclass", "up.core:Engine"),
        ("override", "up.core:Engine.step"),
        ("override", "up.core:Engine.stays"),
        ("private-member", "up.core:Engine._inner"),
    }
    assert _verdicts(compared)["up.core:Engine.step"] == (
        "broken",
        "required-parameter-added",
    )


def test_files_tell_modules_from_objects(against: Any) -> None:
    code = """
        from up.core import current
        from up import core
        current.kind = "npu"
        core.LIMIT = 1
    """
    targets = {f.target for f in against(code, OLD).scanned.found}
    assert targets == {"up.core:current.kind", "up.core:LIMIT"}


def test_either_of_two_places_is_enough(against: Any) -> None:
    code = """
        try:
            from up.newer import Engine
        except ImportError:
            from up.core import Engine
        Engine.stays = lambda self: 2
    """
    compared = against(code)
    assert compared.nowhere == frozenset()
    assert list(_verdicts(compared).values()) == [("identical", None)]


def test_what_is_nowhere_is_asked_and_not_judged(against: Any) -> None:
    code = """
        import up.core as c, up.lost as lost
        c.answr = len
        lost.f = len
        c.Engine.stepp = len
        c.Engine._marked = True
        c.current.anything = 1
        c.answer.cache = 1
        c.Engine.__hash__ = len
        c.os.path = 1
    """
    compared = against(code)
    asked = [q for q in ask(compared.scanned, compared) if q.kind == "exists-nowhere"]
    assert [q.found.target for q in asked] == [
        "up.core:answr",
        "up.lost:f",
        "up.core:Engine.stepp",
        "up.core:answer.cache",
    ]
    assert "up.core:answr" not in _verdicts(compared)


def test_what_is_new_is_compared_with_itself(against: Any) -> None:
    code = "import up.core as c\nc.go = lambda engine: 1"
    assert _verdicts(against(code)) == {"up.core:go": ("identical", None)}


def test_gone_for_good_is_a_reason_that_is_gone(against: Any) -> None:
    code = "import up.core as c\nc.gone = lambda: 1\nc.answer = lambda *a: 1"
    compared = against(code, OLD, OLD, NEW, NEW)
    asked = [q for q in ask(compared.scanned, compared) if q.kind == "reason-gone"]
    assert [q.found.target for q in asked] == ["up.core:gone"]
    assert "is gone since" in asked[0].sentence


def test_who_else_holds_a_name_upstream(against: Any) -> None:
    code = "import up.core as c\nc.answer = len\nc.rate = len"
    compared = against(code, OLD)
    asked = ask(compared.scanned, compared, upstream=True)
    assert [(q.kind, q.found.target, q.places) for q in asked] == [
        ("bound-by-name", "up.core:answer", ("up.user:answer",))
    ]
    assert ask(compared.scanned, compared) == ()


def test_an_unreadable_module_says_nothing_of_what_is_in_it(against: Any) -> None:
    broken = {**OLD, "up/core.py": "def (\n"}
    compared = against("import up.core as c\nc.anything = len", broken)
    assert compared.nowhere == frozenset()


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["p/patch_a.py"], ["patch-a"]),
        (["p/__init__.py"], ["p"]),
        (["p/x.py", "q/x.py"], ["x", "q-x"]),
        (["p/310.py"], ["file-310"]),
        (["../p/A_B.py"], ["a-b"]),
        (["ä.py", "ö.py"], ["file", "file-2"]),
    ],
)
def test_the_names_of_gaps(paths: list[str], names: list[str]) -> None:
    assert list(gap_ids(paths).values()) == names


def test_what_is_relied_on_and_in_no_release_is_broken(against: Any) -> None:
    """Nobody means to add a name by importing it."""
    code = """
        from up.core import _lost
        from up.nowhere import Engine
        import up.core as c
        class Ours(Engine):
            def step(self): ...
        c._call_me()
        c.Engine._absent()
        c.answr = len
    """
    compared = against(code)
    assert _verdicts(compared) == {
        "up.core:_lost": ("broken", "removed"),
        "up.nowhere:Engine": ("broken", "removed"),
        "up.core:_call_me": ("broken", "removed"),
        "up.core:Engine._absent": ("broken", "removed"),
    }
    assert [f.target for f in compared.nowhere] == ["up.core:answr"]


def test_what_the_code_only_tries_is_asked(against: Any) -> None:
    code = """
        try:
            from up.newer import _lost
        except ImportError:
            from up.core import _inner
    """
    compared = against(code)
    asked = ask(compared.scanned, compared)
    assert [(q.kind, q.found.target) for q in asked] == [
        ("exists-nowhere", "up.newer:_lost"),
        ("exists-nowhere", "up.core:_inner"),
    ]
    assert "what is tried here always fails" in asked[0].sentence
    assert _verdicts(compared) == {}


def test_an_inventory_asks_of_what_is_not_there(against: Any) -> None:
    compared = against("from up.core import _lost, answer", OLD, judge=False)
    (question,) = ask(compared.scanned, compared)
    assert (question.kind, question.found.target) == ("exists-nowhere", "up.core:_lost")
    assert question.sentence.endswith(": what relies on it fails there")


def test_modules_that_a_build_makes_may_be_there(against: Any) -> None:
    code = "from up import _C, _moe_C\nfrom up._version import _tuple"
    assert {v for v, _ in _verdicts(against(code)).values()} <= {None}


def test_what_comes_and_goes_within_a_range(against: Any) -> None:
    without = {**OLD, "up/core.py": "def answer(word): return word\n"}
    compared = against("from up.core import gone as _x, _c", OLD, OLD, without, OLD)
    code = "import up.helpers as h\nh._late()"
    late = {**OLD, "up/helpers.py": "def _late(): return 1\n"}
    compared = against(code, OLD, OLD, late, OLD)
    ((verdicts),) = compared.verdicts.values()
    assert [v and v.kind for v in verdicts] == ["broken", "identical", "broken"]


def test_methods_that_no_release_has_are_counted(against: Any) -> None:
    code = """
        from up.core import Engine
        class Ours(Engine):
            def step(self, x): ...
            def _gone_long_ago(self): ...
    """
    compared = against(code)
    assert [f.target for f in compared.unplaced] == ["up.core:Engine._gone_long_ago"]


def test_a_class_is_the_same_wherever_it_is_imported_from(against: Any) -> None:
    again = {**OLD, "up/door.py": "from up.core import Engine\n"}
    files = {
        "plug/one.py": "from up.core import Engine\nEngine.step = len\n",
        "plug/two.py": "import up.door as d\nd.Engine.step = len\n",
        "plug/three.py": "import up.door as d\nd.Engine = len\n",
    }
    compared = against(files, again)
    asked = [q for q in ask(compared.scanned, compared) if q.kind == "contested"]
    assert [(q.found.path, q.places) for q in asked] == [
        ("plug/two.py", ("plug/one.py:2",))
    ]


@pytest.mark.parametrize(
    ("gate", "kind"),
    [
        ("up.__version__ < '0.9'", "reason-gone"),
        ("up.__version__ == '9.9.9'", "gate-never-true"),
        ("up.__version__ >= '4'", "gate-never-true"),
        ("up.__version__ == '1.0'", ""),
        ("up.__version__ == '2.0'", ""),
    ],
)
def test_a_single_release_asks_of_gates(against: Any, gate: str, kind: str) -> None:
    """As many releases do: those compared are the baseline and the one named."""
    code = f"import up\nimport up.core as c\nif {gate}:\n    c.answer = len"
    old = {**OLD, "up/version.py": "__version__ = '1.0'\n"}
    new = {**OLD, "up/version.py": "__version__ = '2.0'\n"}
    compared = against(code, old, new)
    assert (compared.baseline, compared.versions) == ("1.0", ("2.0",))
    assert [q.kind for q in ask(compared.scanned, compared)] == ([kind] if kind else [])
    unasked = replace(compared, is_judged=False)
    assert ask(unasked.scanned, unasked) == ()


def test_files_meet_only_in_a_release_that_is_compared(against: Any) -> None:
    gate = "import up\nif up.__version__ < '0.9':\n    "
    files = {
        "plug/one.py": "import up.core as c\n" + gate + "c.answer = len",
        "plug/two.py": "import up.core as c\n" + "c.answer = len",
    }
    old = {**OLD, "up/version.py": "__version__ = '1.0'\n"}
    compared = against(files, old, old)
    asked = ask(compared.scanned, compared)
    assert [q.kind for q in asked] == ["reason-gone"]
