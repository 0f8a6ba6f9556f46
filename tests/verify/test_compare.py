"""Descriptions of two interpreters: what is the same, and what is told."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascend_shims.verify.compare import compared
from ascend_shims.verify.inventory.child import _Child
from ascend_shims.verify.inventory.held import differences
from ascend_shims.verify.inventory.parts import Derived

SOURCE = """
    def f(x): return x
    def g(x): return x
    same = f
    TABLE = [f, g]
    NAMES = {"f": f, "g": g}
    class Base:
        def m(self): pass
    class Sub(Base): pass
    one = Base()
    one.call = f
    LIMIT = 3
"""
NONE = Derived("process", [], [])


class Described:
    """A made-up module, and what one says of it."""

    def __init__(self, folder: Path, module: ModuleType) -> None:
        self.module, self._folder = module, folder

    def child(self, name: str) -> tuple[_Child, Path]:
        folder = self._folder / name
        folder.mkdir()
        job = {"roots": ["compared"], "varying": [], "folder": str(folder)}
        return _Child(job), folder / f"{name}.graph"

    def take(self, name: str) -> tuple[str, Path]:
        from ascend_shims.verify.inventory.graph import Walk

        child, file = self.child(name)
        child.describe(name, Walk(("compared",), NONE))
        return child.answer["graphs"][name]["digest"], file


@pytest.fixture
def described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Described]:
    (tmp_path / "compared.py").write_text(dedent(SOURCE))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    import compared as module  # type: ignore[import-not-found]

    yield Described(tmp_path, module)
    del sys.modules["compared"]


def _alias(module: Any) -> None:
    module.same = type(module.f)(module.f.__code__, module.f.__globals__)


CHANGES: dict[str, tuple[Callable[[Any], object], list[tuple[str, str]]]] = {
    "nothing": (lambda m: None, []),
    "a value": (lambda m: setattr(m, "LIMIT", 4), [("compared:LIMIT", "other-value")]),
    "a name": (lambda m: setattr(m, "extra", 1), [("compared:extra", "new")]),
    "no name": (lambda m: delattr(m, "LIMIT"), [("compared:LIMIT", "gone")]),
    "order": (
        lambda m: m.__dict__.update(LIMIT=m.__dict__.pop("LIMIT"), last=None),
        [("compared:last", "new")],
    ),
    "another order": (
        lambda m: m.__dict__.update(f=m.__dict__.pop("f")),
        [("compared", "order")],
    ),
    "an alias that is a copy": (_alias, [("compared:same", "alias")]),
    "an alias that was none": (
        lambda m: setattr(m, "g", m.f),
        [("compared:g", "alias")],
    ),
    "code": (
        lambda m: setattr(m.Base.m, "__code__", m.f.__code__),
        [("compared:Base.m.__code__", "alias")],
    ),
    "a longer list": (
        lambda m: m.TABLE.append(1),
        [("compared:TABLE", "other-value")],
    ),
    "an attribute": (
        lambda m: setattr(m.one, "call", None),
        [("compared:one.call", "other-kind")],
    ),
    "a class's base": (
        lambda m: setattr(m, "Sub", type("Sub", (), {"__module__": "compared"})),
        [("compared:Sub<mro>", "other-value")],
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_differs_is_told_by_path_and_kind(described: Described, what: str) -> None:
    change, expected = CHANGES[what]
    before, one = described.take("one")
    change(described.module)
    after, two = described.take("two")
    found = [(d.path, d.kind) for d in compared(one, two)]
    assert set(expected) <= set(found)
    assert bool(found) is bool(expected)
    assert (before == after) is not expected


def test_the_description_is_the_same_in_every_process(described: Described) -> None:
    script = (
        "import sys, pathlib; import compared\n"
        "from ascend_shims.verify.inventory.child import _Child\n"
        "from ascend_shims.verify.inventory.graph import Walk\n"
        "from ascend_shims.verify.inventory.parts import Derived\n"
        "c = _Child({'roots': ['compared'], 'varying': [], 'folder': sys.argv[1]})\n"
        "c.describe('x', Walk(('compared',), Derived('process', [], [])))\n"
        "print(c.answer['graphs']['x']['digest'])\n"
    )
    folder = Path(described.module.__file__ or "").parent
    digests = {
        subprocess.run(
            [sys.executable, "-B", "-c", script, str(folder)],
            env={"PYTHONPATH": str(folder), "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert digests == {described.take("here")[0] + "\n"}


def test_a_class_is_not_asked_for_its_hash(described: Described) -> None:
    """Nor whether it is equal to another one."""
    from ascend_shims.verify.inventory.graph import Walk

    class Meta(type):
        def __hash__(cls) -> int:
            raise AssertionError

        def __eq__(cls, other: object) -> bool:
            raise AssertionError

    module = described.module
    module.Hashed = Meta("Hashed", (), {"__module__": "compared"})
    module.hashed = module.Hashed()
    walk = Walk(("compared",), NONE)
    nodes = walk.describe()
    assert (
        sum(text.startswith("class compared:Hashed of ") for text, _, _ in nodes) == 1
    )
    module.hashed = 1
    assert [one.path for one in differences(walk, NONE)] == ["compared:hashed"]


@given(st.data())
def test_what_is_put_back_is_no_difference(data: st.DataObject) -> None:
    """Any change of any namespace is seen, and none once the same is back in place."""
    from ascend_shims.verify.inventory.graph import Walk

    module = ModuleType("compared")
    exec(dedent(SOURCE), vars(module))
    sys.modules["compared"] = module
    try:
        walk = Walk(("compared",), NONE)
        held = data.draw(
            st.sampled_from([vars(module), module.NAMES, module.one.__dict__])
        )
        kept = dict(held)
        name = data.draw(st.sampled_from(sorted(n for n in held if n[0] != "_")))
        held[name] = data.draw(st.sampled_from([None, 7, "x", print, ModuleType]))
        seen = differences(walk, NONE)
        assert [one.path.endswith(name) for one in seen] == [True]
        held.clear()
        held.update(kept)
        assert differences(walk, NONE) == []
        if len(kept) > 1 and next(reversed(kept)) != name:
            held[name] = held.pop(name)
            assert [one.kind for one in differences(walk, NONE)] == ["order"]
    finally:
        del sys.modules["compared"]
