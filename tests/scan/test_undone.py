"""Whether a patch is ever taken back, and what a context manager leaves behind."""

from __future__ import annotations

from typing import Any

import pytest

HEAD = "import vllm.a.b as m\nimport contextlib\ndef new(): ...\n"

UNDONE: list[tuple[str, int, str]] = [
    # What is written, the line that undoes it, what is wrong.
    ("m.f = new", 0, ""),
    ("kept = m.f\nm.f = new\nm.f = kept", 6, ""),
    ("kept = getattr(m, 'f')\nm.f = new\nsetattr(m, 'f', kept)", 6, ""),
    ("m.f = new\ndef undo():\n    del m.f", 0, ""),
    (
        "@contextlib.contextmanager\ndef on():\n    kept = m.f\n    m.f = new\n"
        "    try:\n        yield\n    finally:\n        m.f = kept",
        11,
        "",
    ),
    (
        "@contextlib.contextmanager\ndef on():\n    m.f = new\n    try:\n"
        "        yield\n    finally:\n        pass",
        0,
        "`on` never puts it back",
    ),
    (
        "@contextlib.contextmanager\ndef on():\n    m.f = new\n    yield",
        0,
        "`on` never puts it back",
    ),
    (
        "@contextlib.contextmanager\ndef on():\n    kept = m.f\n    m.f = new\n"
        "    yield\n    m.f = kept",
        9,
        "`on` puts it back only where nothing is raised",
    ),
    (
        "@contextlib.contextmanager\ndef on():\n    kept = m.f\n    m.f = new\n"
        "    try:\n        yield\n    except Exception:\n        m.f = kept\n"
        "        raise",
        11,
        "`on` puts it back only where something is raised",
    ),
    (
        "@contextlib.contextmanager\ndef on():\n    kept = m.f\n    m.f = new\n"
        "    try:\n        yield\n    except Exception:\n        m.f = kept\n"
        "        raise\n    m.f = kept",
        11,
        "",
    ),
    (
        "@contextlib.contextmanager\ndef on():\n    kept = m.f\n    try:\n"
        "        m.f = new\n        yield\n    except ImportError:\n        raise\n"
        "    finally:\n        m.f = kept",
        13,
        "",
    ),
    (
        "class On:\n    def __enter__(self):\n        self.kept = m.f\n"
        "        m.f = new\n    def __exit__(self, *_):\n        m.f = self.kept",
        9,
        "",
    ),
    (
        "class On:\n    def __enter__(self):\n        m.f = new\n"
        "    def __exit__(self, *_):\n        pass",
        0,
        "`On` never puts it back",
    ),
    (
        "class On:\n    def __enter__(self):\n"
        "        self.kept = [(m, 'f', m.f)]\n        m.f = new\n"
        "    def __exit__(self, *_):\n        for a, b, c in self.read():\n"
        "            setattr(a, b, c)",
        10,
        "",
    ),
    (
        "kept = []\ndef on():\n    kept.append(m.f)\n    m.f = new\n"
        "def undo():\n    m.f = kept.pop()",
        0,
        "",
    ),
]


@pytest.mark.parametrize(("code", "line", "wrong"), UNDONE)
def test_what_undoes_a_patch(scanned: Any, code: str, line: int, wrong: str) -> None:
    one = scanned(HEAD + code).patches[0]
    assert (one.target, one.undone_at, one.restores_nothing) == (
        "vllm.a.b:f",
        line,
        wrong,
    )


def test_what_puts_back_is_no_patch_of_its_own(scanned: Any) -> None:
    code = HEAD + "kept = m.f\nm.f = new\nm.f = kept"
    assert [one.line for one in scanned(code).patches] == [5]


def test_something_else_is_left_there(scanned: Any) -> None:
    code = HEAD + (
        "@contextlib.contextmanager\ndef on():\n    try:\n        m.f = new\n"
        "        yield\n    finally:\n        m.f = m.g"
    )
    first, second = scanned(code).patches
    assert first.restores_nothing == "`on` leaves something else there, line 10"
    assert (second.line, second.restores_nothing) == (10, "")


@pytest.mark.parametrize(
    "code",
    [
        "from unittest.mock import patch\ndef t():\n"
        "    with patch('vllm.a.b.f', new):\n        pass",
        "from unittest.mock import patch\n@patch('vllm.a.b.f', new)\ndef t(f): ...",
        "from unittest import mock\ndef t():\n"
        "    with contextlib.ExitStack() as s:\n"
        "        s.enter_context(mock.patch.object(m, 'f', new))",
        "def test(monkeypatch):\n    monkeypatch.setattr(m, 'f', new)",
        "def test(monkeypatch):\n    monkeypatch.setattr('vllm.a.b.f', new)",
    ],
)
def test_contexts_and_fixtures_undo(scanned: Any, code: str) -> None:
    (one,) = scanned(HEAD + code).patches
    assert (one.target, one.undone_at) == ("vllm.a.b:f", -1)
