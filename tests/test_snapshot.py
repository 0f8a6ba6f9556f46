"""A snapshot tells every way in which a namespace can come back wrong."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ascend_shims.verify.snapshot import take

_UPSTREAM = """
    LIMIT = 3
    WORDS = ("a", frozenset({"x", "y", "z"}))

    def plain(a, b=1):
        return a + b in {"one", "two", "three"}

    class Base:
        def method(self): return 1
        @staticmethod
        def static(): return 2
        @classmethod
        def named(cls): return cls.__name__
        @property
        def size(self): return 3
        class Inner:
            def deep(self): return 4

    class Heir(Base):
        pass
"""


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "snapped.py").write_text(textwrap.dedent(_UPSTREAM))
    monkeypatch.syspath_prepend(str(tmp_path))
    import snapped  # type: ignore[import-not-found]

    yield snapped
    del sys.modules["snapped"]


def test_every_definition_is_covered(upstream: ModuleType) -> None:
    paths = list(take(["snapped"]).objects)
    assert paths == [
        "snapped:plain",
        "snapped:Base",
        "snapped:Base.method",
        "snapped:Base.static",
        "snapped:Base.named",
        "snapped:Base.size",
        "snapped:Base.Inner",
        "snapped:Base.Inner.deep",
        "snapped:Heir",
    ]


def test_nothing_changed_nothing_said(upstream: ModuleType) -> None:
    before = take(["snapped"])
    upstream.LIMIT = 4  # a program may change what is not a definition
    after = take(["snapped"], before.modules)
    assert before.differences(after) == []
    assert before.digest == after.digest


def _same_code(function: Any) -> Any:
    return type(function)(
        function.__code__, function.__globals__, function.__name__, (1,)
    )


LEAKS: dict[str, tuple[Callable[[Any], None], str]] = {
    "a wrapper left behind": (
        lambda m: setattr(m, "plain", lambda *a: 0),
        "snapped:plain: another object",
    ),
    "a copy put back": (
        lambda m: setattr(m, "plain", _same_code(m.plain)),
        "snapped:plain: another object of the same code",
    ),
    "a method left on a subclass": (
        lambda m: setattr(m.Heir, "method", m.Base.method),
        "snapped:Heir.method: is new",
    ),
    "a static method as a function": (
        lambda m: setattr(m.Base, "static", m.Base.static),
        "snapped:Base.static: another object",
    ),
    "a name deleted": (lambda m: delattr(m, "plain"), "snapped:plain: is gone"),
    "a name added": (lambda m: setattr(m, "extra", print), "snapped:extra: is new"),
    "another order": (
        lambda m: m.__dict__.update(plain=m.__dict__.pop("plain")),
        "order: names stand in another order",
    ),
    "a property rebuilt": (
        lambda m: setattr(m.Base, "size", property(m.Base.size.fget)),
        "snapped:Base.size: another object of the same code",
    ),
    "deep inside": (
        lambda m: setattr(m.Base.Inner, "deep", len),
        "snapped:Base.Inner.deep: another object",
    ),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_every_leak_is_named(upstream: ModuleType, leak: str) -> None:
    make, said = LEAKS[leak]
    before = take(["snapped"])
    make(upstream)
    found = before.differences(take(["snapped"], before.modules))
    assert [str(one) for one in found] == [said]


def test_the_digest_is_the_same_in_every_process(
    upstream: ModuleType, tmp_path: Path
) -> None:
    script = (
        "import snapped; from ascend_shims.verify.snapshot import take;"
        "print(take(['snapped']).digest)"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONPATH": str(tmp_path), "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("0", "1", "2")
    }
    assert digests == {take(["snapped"]).digest}
