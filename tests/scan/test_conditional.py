"""Conditions within expressions, and patches that are put back later on."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import only

HEAD = "import vllm.a.b as m\nimport contextlib\nfrom unittest import mock\n"
HEAD += "from plug.u import vllm_version_ge as ge\n"


@pytest.mark.parametrize(
    ("code", "ranges"),
    [
        ("ge('0.30') and setattr(m, 'f', new)", [{"vllm": ">=0.30"}]),
        ("ge('0.30') or setattr(m, 'f', new)", [{"vllm": "<0.30"}]),
        ("x and ge('0.30') and setattr(m, 'f', new)", [{"vllm": ">=0.30"}]),
        ("setattr(m, 'f', new) if ge('0.30') else None", [{"vllm": ">=0.30"}]),
        ("None if ge('0.30') else setattr(m, 'f', new)", [{"vllm": "<0.30"}]),
        ("m.f = new if ge('0.30') else m.f", [{"vllm": ">=0.30"}]),
        ("m.f = m.f if ge('0.30') else new", [{"vllm": "<0.30"}]),
        # It is changed in either case.
        ("m.f = new if ge('0.30') else other", [{}]),
        ("assert ge('0.30')\nm.f = new", [{"vllm": ">=0.30"}]),
        ("def f():\n    assert ge('0.30'), 'no'\nm.f = new", [{}]),
        ("def f(x):\n    assert isinstance(x, int)\n    m.f = new", [{}]),
    ],
)
def test_conditions_within_expressions(
    scanned: Any, code: str, ranges: list[dict[str, str]]
) -> None:
    found = scanned(HEAD + code).patches
    assert [dict(one.ranges) for one in found] == ranges
    assert [one.target for one in found] == ["vllm.a.b:f"]


def test_conditions_and_constants_of_other_modules(scanned: Any) -> None:
    files = {
        "plug/compat.py": """
            import vllm
            from packaging.version import Version
            NOW = Version(vllm.__version__)
            IS_OLD = NOW < Version("0.28")
            FIRST = "0.29"
        """,
        "plug/m.py": """
            import vllm.a.b as m
            from plug import compat
            from plug.compat import FIRST, IS_OLD as old, NOW
            from plug.u import vllm_version_is
            if old:
                m.f = 1
            if not compat.IS_OLD:
                m.g = 1
            if NOW >= Version(FIRST):
                m.h = 1
            if vllm_version_is(compat.FIRST):
                m.i = 1
            if compat.UNKNOWN:
                m.j = 1
        """,
    }
    ranges = {one.names[-1]: dict(one.ranges) for one in scanned(files).patches}
    assert ranges == {
        "f": {"vllm": "<0.28"},
        "g": {"vllm": ">=0.28"},
        "h": {"vllm": ">=0.29"},
        "i": {"vllm": "==0.29"},
        "j": {},
    }


def test_an_assertion_about_something_else_is_no_condition(scanned: Any) -> None:
    code = "def f(x):\n    assert isinstance(x, int)\n    m.f = new"
    assert only(scanned(HEAD + code)).gates == ()


@pytest.mark.parametrize(
    ("code", "line", "wrong"),
    [
        (
            "@contextlib.contextmanager\ndef on():\n"
            "    with contextlib.ExitStack() as s:\n"
            "        s.callback(setattr, m, 'f', m.f)\n        m.f = new\n"
            "        yield",
            8,
            "",
        ),
        (
            "@contextlib.contextmanager\ndef on():\n"
            "    with contextlib.ExitStack() as s:\n"
            "        s.callback(print, m, 'f', m.f)\n        m.f = new\n"
            "        yield",
            0,
            "`on` never puts it back",
        ),
        (
            "p = mock.patch.object(m, 'f', new)\np.start()\ndef end():\n    p.stop()",
            8,
            "",
        ),
        ("p = mock.patch.object(m, 'f', new)\np.start()", 0, ""),
        ("p = mock.patch('vllm.a.b.f')\nq = None\nq.stop()", 0, ""),
        ("p = mock.patch('vllm.a.b.f')\np.start()\nmock.patch.stopall()", 7, ""),
        (
            "class T:\n    def setUp(self):\n"
            "        self.p = mock.patch('vllm.a.b.f')\n        self.p.start()\n"
            "        self.addCleanup(self.p.stop)",
            9,
            "",
        ),
    ],
)
def test_what_is_put_back_later(scanned: Any, code: str, line: int, wrong: str) -> None:
    one = only(scanned(HEAD + code))
    assert (one.target, one.undone_at, one.restores_nothing) == (
        "vllm.a.b:f",
        line,
        wrong,
    )
