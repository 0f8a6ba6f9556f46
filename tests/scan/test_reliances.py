"""What is relied on without being patched."""

from __future__ import annotations

from typing import Any

import pytest

Row = tuple[str, str, str | None]


def _relied(scanned: Any) -> set[Row]:
    return {(f.form, f.how, f.target) for f in scanned.found if not f.is_patch}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (
            "from vllm.a.b import _hidden",
            {("private-import", "imports_name", "vllm.a.b:_hidden")},
        ),
        (
            "import vllm.a.b as m\nm._hidden(1)",
            {("private-call", "calls", "vllm.a.b:_hidden")},
        ),
        (
            "import vllm.a.b as m\nx = m._hidden",
            {("private-read", "reads_attribute", "vllm.a.b:_hidden")},
        ),
        (
            "from vllm.a.b import Engine\nx = Engine._table",
            {("private-read", "reads_attribute", "vllm.a.b:Engine._table")},
        ),
        ("import torch\ntorch._C.f()", set()),
        ("import vllm.a.b as m\nm.open(1)", set()),
        ("import vllm.a.b as m\nm.__name__", set()),
        (
            "import inspect\nimport vllm.a.b as m\ninspect.getsource(m.f)",
            {("source-read", "replaces_function", "vllm.a.b:f")},
        ),
        (
            "from vllm.a.b import Engine\nclass Ours(Engine):\n    def step(self): ...",
            {
                ("subclass", "imports_name", "vllm.a.b:Engine"),
                ("override", "overrides_method", "vllm.a.b:Engine.step"),
            },
        ),
        (
            "from vllm.a.b import Engine\n"
            "class Ours(Engine[int]):\n    def __init__(self): ...",
            {("subclass", "subclass_init_signature", "vllm.a.b:Engine")},
        ),
        (
            "from vllm.a.b import Engine\n"
            "class Ours(Engine):\n"
            "    def go(self):\n        self._mine = 1\n"
            "        return self._mine + self._theirs + self._call(1)",
            {
                ("subclass", "imports_name", "vllm.a.b:Engine"),
                ("override", "overrides_method", "vllm.a.b:Engine.go"),
                ("private-member", "reads_attribute", "vllm.a.b:Engine._theirs"),
                ("private-member", "calls", "vllm.a.b:Engine._call"),
            },
        ),
    ],
)
def test_what_is_relied_on(scanned: Any, code: str, expected: set[Row]) -> None:
    assert _relied(scanned(code)) == expected


def test_through_a_class_of_the_code_in_another_file(scanned: Any) -> None:
    files = {
        "plug/base.py": (
            "from vllm.a.b import Engine\n"
            "class Base(Engine):\n    def _ours(self): ...\n"
        ),
        "plug/m.py": (
            "from plug.base import Base\n"
            "class Ours(Base):\n"
            "    def step(self):\n        return self._ours() + self._theirs()\n"
        ),
    }
    relied = _relied(scanned(files))
    assert ("override", "overrides_method", "vllm.a.b:Engine.step") in relied
    assert ("private-member", "calls", "vllm.a.b:Engine._theirs") in relied
    assert not any("Engine._ours" in str(t) for f, _, t in relied if f != "override")


def test_a_private_name_is_told_once_a_file(scanned: Any) -> None:
    code = "import vllm.a.b as m\nm._f()\nm._f()\nm._f"
    assert [f.line for f in scanned(code).found] == [2]


def test_a_circle_of_bases_ends(scanned: Any) -> None:
    code = "from plug.m import B\nclass A(B): ...\nclass B(A):\n    def f(self): ..."
    assert scanned(code).found == ()
