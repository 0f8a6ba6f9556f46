"""What is called through a string, or a name that a package passes on.

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
    "up/__init__.py": "from up.work import *\n",
    "up/far.py": "from up import meet\ndef go(): meet(2)\n",
}


class Reading(Texts):
    """Remembers what was read."""

    def __init__(self, files: dict[str, str], label: str) -> None:
        super().__init__(files, label)
        self.seen: set[str] = set()

    def read(self, path: str) -> bytes:
        self.seen.add(path)
        return super().read(path)


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
    symbol: str, change: tuple[str, str], verdict: str
) -> None:
    reliance = Reliance(symbol, "wraps_function")
    locked = lock_of(FILES, reliance)
    assert locked.symbols[symbol].reached == "no"
    assert "up.work" in locked.modules
    assert not {"up.rpc", "up.far"} & {*locked.modules}
    files = {**FILES, "up/work.py": FILES["up/work.py"].replace(*change)}
    release = Reading(files, "up 2")
    stub = StubSource("up 1", "1", tuple(locked.modules), locked.symbols)
    found = judge(
        reliance, Tree(stub), Tree(release), hints=locked.symbols[symbol].callers
    )
    touched = change[0] and change[0] in ("envs", "def update")
    mine = touched == (symbol == "up.work:Worker.update") or not change[0]
    assert found.kind == (verdict if mine else "identical")
    if verdict != "broken":
        assert "up/far.py" not in release.seen
