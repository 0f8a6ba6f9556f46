"""What is called through a string.

Nobody is seen to reach it, so that no release can be missed to do so: its being there
and its parameters are judged, and a release is not searched all over.
"""

from __future__ import annotations

import pytest

from ascend_shims.upstream.compare import judge
from ascend_shims.upstream.contract import Reliance
from ascend_shims.upstream.stubs import StubSource
from ascend_shims.upstream.tree import Tree

from .conftest import Texts
from .test_lock_facts import lock_of

FILES = {
    "up/work.py": """
        class Worker:
            def update(self, envs): ...
        def meet(world): ...
        """,
    "up/rpc.py": "def start(call): call('update', [{}])\n",
    "up/far.py": "import up.work\ndef go(): vars(up.work)['meet'](2)\n",
}


class Reading(Texts):
    """Remembers what was read."""

    def __init__(self, files: dict[str, str], label: str) -> None:
        super().__init__(files, label)
        self.seen: set[str] = set()

    def read(self, path: str) -> bytes:
        self.seen.add(path)
        return super().read(path)


@pytest.mark.parametrize("text_at_hand", [True, False])
@pytest.mark.parametrize("symbol", ["up.work:Worker.update", "up.work:meet"])
@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (("", ""), "identical"),
        (("envs", "envs, force=False"), "compatible"),
        (("world", "world, force=False"), "compatible"),
        (("def update", "def renew"), "broken"),
        (("def meet", "def join"), "broken"),
    ],
)
def test_it_is_judged_by_its_own_file(
    symbol: str, change: tuple[str, str], verdict: str, text_at_hand: bool
) -> None:
    reliance = Reliance(symbol, "wraps_function")
    locked = lock_of(FILES, reliance)
    record = locked.symbols[symbol]
    assert record.reached == "no"
    assert "up.work" in locked.modules
    assert not {"up.rpc", "up.far"} & {*locked.modules}
    files = {**FILES, "up/work.py": FILES["up/work.py"].replace(*change)}
    release = Reading(files, "up 2")
    baseline: Reading | StubSource = Reading(FILES, "up 1")
    if not text_at_hand:
        baseline = StubSource("up 1", "1", tuple(locked.modules), locked.symbols)
    found = judge(
        reliance,
        Tree(baseline),
        Tree(release),
        hints=record.callers,
        reached=record.reached,
    )
    touched = change[0] and change[0] in ("envs", "def update")
    mine = touched == (symbol == "up.work:Worker.update") or not change[0]
    assert found.kind == (verdict if mine else "identical")
    if verdict != "broken":
        assert "up/far.py" not in release.seen
        assert "up/far.py" not in getattr(baseline, "seen", set())


PASSED_ON = {
    "up/work.py": "def meet(world): ...\n",
    "up/__init__.py": "from .kinds import *\n",
    "up/kinds.py": "from .work import *\n",
    "up/user.py": "def go():\n    from up import meet as joined\n    joined(2)\n",
    "up/other.py": "from up import *\n\ndef go(): meet(3)\n",
    "up/far.py": "def go(): 'where all meet'\n",
}
"""`meet` is used by the name that packages pass on with a star."""


@pytest.mark.parametrize(
    ("used_by", "kind"),
    [
        ({"up/user.py", "up/other.py"}, "identical"),
        ({"up/user.py"}, "identical"),
        ({"up/other.py"}, "identical"),
        (set(), "broken"),
    ],
)
def test_a_name_passed_on_by_a_star_is_looked_up_there(
    used_by: set[str], kind: str
) -> None:
    reliance = Reliance("up.work:meet", "wraps_function")
    locked = lock_of(PASSED_ON, reliance)
    record = locked.symbols["up.work:meet"]
    assert record.reached == "yes"
    # Who defines the name anew uses another.
    changed = {
        name: text if name in used_by else "from up import *\ndef meet(): ...\nmeet()\n"
        for name, text in PASSED_ON.items()
        if name in ("up/user.py", "up/other.py")
    }
    release = Reading(PASSED_ON | changed, "up 2")
    found = judge(
        reliance,
        Tree(Reading(PASSED_ON, "up 1")),
        Tree(release),
        hints=record.callers,
        reached=record.reached,
    )
    assert found.kind == kind
    assert found.breakage == (None if used_by else "not-looked-up")
    # The first user that is left settles it: nothing else has to be read.
    assert ("up/far.py" in release.seen) == (not used_by)
