"""`shims run`: every Python process of a command carries the shims."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

_ASK = "from madeup.user import answer; print(answer('tea'))"


def test_a_python_process_carries_them(shims) -> None:
    done = shims("run", "--", sys.executable, "-c", _ASK)
    assert (done.returncode, done.stdout) == (0, "TEA, please\n")


def test_switches_reach_it(shims) -> None:
    done = shims("run", "--disable", "polite", "--", sys.executable, "-c", _ASK)
    assert done.stdout == "TEA\n"
    done = shims("run", "--only", "polite", "--", sys.executable, "-c", _ASK)
    assert done.stdout == "tea, please\n"


def test_processes_of_its_processes_carry_them(shims, tmp_path: Path) -> None:
    script = tmp_path / "spawning.py"
    script.write_text(
        "import multiprocessing, sys\n"
        "def ask(_):\n"
        "    from madeup.core import answer\n"
        "    return answer('tea')\n"
        "if __name__ == '__main__':\n"
        "    for method in ('spawn', 'fork', 'forkserver'):\n"
        "        with multiprocessing.get_context(method).Pool(1) as pool:\n"
        "            print(pool.map(ask, [0])[0])\n"
    )
    done = shims("run", "--", sys.executable, str(script))
    assert done.stdout == "TEA, please\n" * 3, done.stderr


def test_exit_code_and_arguments_pass_through_without_a_shell(shims) -> None:
    script = "import sys; print(sys.argv[1:]); sys.exit(7)"
    done = shims("run", "--", sys.executable, "-c", script, "a b", "$HOME", "--json")
    assert done.returncode == 7
    assert done.stdout == "['a b', '$HOME', '--json']\n"


def test_the_environments_own_sitecustomize_still_runs(shims, project: Path) -> None:
    (project / "sitecustomize.py").write_text("import sys; sys.own = 1\n")
    script = f"import sys; print(sys.own); {_ASK}"
    done = shims("run", "--", sys.executable, "-c", script)
    assert done.stdout == "1\nTEA, please\n"


def test_an_interpreter_without_the_toolkit_says_so(shims) -> None:
    done = shims("run", "--", sys.executable, "-S", "-c", "print('bare')")
    assert done.stdout == "bare\n"
    done = shims("run", "--", sys.executable, "-I", "-c", "print('isolated')")
    assert done.stdout == "isolated\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--only", "polite", "--disable", "polite"), True),
        (("--only", "polite"), False),
        (("--disable", "polite"), False),
        ((), False),
    ],
)
def test_that_nothing_is_left_to_apply_is_told(shims, words, told: bool) -> None:
    done = shims("run", *words, "--", sys.executable, "-c", _ASK)
    assert done.returncode == 0
    said = (
        "shims: nothing is left to apply: --only, --disable and the variables switch "
        "every gap off\n"
    )
    assert done.stderr == (said if told else "")


@pytest.mark.parametrize("option", ["--only", "--disable"])
def test_a_gap_that_there_is_not_is_named_by_its_option(shims, option: str) -> None:
    done = shims("run", option, "typo", "--", "true")
    assert done.returncode == 2
    assert done.stderr.startswith(f"shims: {option} names the gap 'typo', which ")
