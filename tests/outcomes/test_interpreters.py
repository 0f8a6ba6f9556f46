"""Python's own switches: what still works under each, and what cannot."""

from __future__ import annotations

import sys

import pytest

from ..engine.world import P, World
from ..fresh import run

PROGRAM = """
import sys
sys.path.insert(0, {root!r})
import ascend_shims
ascend_shims.apply()
import UP.a
def values():
    return UP.a.f(), UP.a.C().m(), UP.a.C.s(), UP.a.documented.__doc__
def states(report):
    return [str(gap.state) for gap in report.gaps]
print(values(), states(ascend_shims.status()))
import UP.late
print(UP.late.f(), states(ascend_shims.status()))
print(states(ascend_shims.revert()), values())
"""
REFUSING = "def refusing(call, x, *, missing): return call(x)\n"


def program(up: World, *flags: str) -> list[str]:
    """What a program prints under `flags`: a gap that applies, and one whose contract
    upstream does not keep."""
    late = "from UP.a import f\ndef g(x): return x\ndef documented():\n    'a word'\n"
    up.write("UP/late.py", late)
    path = up.root / up.up / "a.py"
    path.write_text(path.read_text() + "def documented():\n    'a word'\n")
    up.gap("two", P("late:g", "refusing"), code=REFUSING)
    up.gap("three", P("a:documented", "through"))
    up.registry_file()
    code = up.spelled(PROGRAM.format(root=str(up.root)))
    return run(sys.executable, *flags, "-c", code, cwd=up.root).splitlines()


FLAGS = {
    "none": (),
    "-O": ("-O",),
    "-OO": ("-OO",),
    "-B": ("-B",),
    "-E": ("-E",),
    "-s": ("-s",),
    "-I": ("-I",),
    "-I -OO": ("-I", "-OO"),
    "-b -X dev": ("-b", "-X", "dev", "-W", "error::BytesWarning"),
}


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_a_program_that_applies_has_the_same_gaps_under_all(
    up: World, flags: tuple[str, ...]
) -> None:
    """Contracts go by signatures, which no switch takes away; docstrings do go."""
    doc = None if "-OO" in flags else "a word"
    assert program(up, *flags) == [
        f"(10, 10, 10, {doc!r}) ['applied', 'pending', 'applied']",
        "10 ['applied', 'broken-contract', 'applied']",
        f"['reverted', 'reverted', 'reverted'] (1, 1, 1, {doc!r})",
    ]


@pytest.mark.parametrize("flags", [("-S",), ("-I", "-S")], ids=["-S", "-I -S"])
def test_without_site_there_is_no_toolkit_and_python_says_so(
    up: World, flags: tuple[str, ...]
) -> None:
    code = "try: import ascend_shims\nexcept ImportError as error: print(error)\n"
    said = run(sys.executable, *flags, "-c", code, cwd=up.root)
    assert said == "No module named 'ascend_shims'\n"


def test_without_site_it_works_from_a_path(up: World) -> None:
    """`-S` reads PYTHONPATH; nothing of ours needs what `site` sets up."""
    import ascend_shims

    home = ascend_shims.__path__[0].rpartition("/")[0]
    path = [home, *(entry for entry in sys.path if entry.endswith("-packages"))]
    code = (
        f"import sys; sys.path += {path!r}\nimport ascend_shims\nascend_shims.apply()\n"
        "import UP.a\nprint(UP.a.f())\nascend_shims.revert()\nprint(UP.a.f())\n"
    )
    words = (sys.executable, "-B", "-S", "-c", up.spelled(code))
    env = {"PYTHONPATH": str(up.root)}
    assert run(*words, cwd=up.root, env=env) == "10\n1\n"
