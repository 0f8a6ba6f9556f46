"""One process: the public functions, its environment, its children, its answers."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

import ascend_shims
from ascend_shims import plugin, process
from ascend_shims.engine.table import RestoreError
from ascend_shims.processes import responder as responders
from ascend_shims.processes.address import address, listening
from ascend_shims.processes.client import Answer, ask_all
from ascend_shims.registry import RegistryError
from ascend_shims.report import UnappliedError
from ascend_shims.states import State
from ascend_shims.switches import SwitchError

from .engine.conftest import failure, own_process, world  # noqa: F401
from .engine.failing import Failure
from .engine.world import P, World
from .fresh import LONG, python

UP = "def f(x): return x\ndef g(x): return x\n"
RAY = "VLLM_RAY_EXTRA_ENV_VAR_PREFIXES_TO_COPY"


@pytest.fixture
def up(own_process: World) -> World:  # noqa: F811
    """Gaps of a made-up upstream as this process's registry; nothing applied."""
    own_process.upstream(UP)
    own_process.gap("one", P("a:f")).gap("two", P("a:g"), needs=("one",))
    own_process.gap("three", P("a:f", "plus_one"), default="off", after=("one",))
    own_process.registry_file()
    return own_process


def states() -> dict[str, State]:
    return {gap.id: gap.state for gap in ascend_shims.status().gaps}


def values(up: World) -> tuple[int, int]:
    a = up.import_()
    return a.f(1), a.g(1)


# The public functions


def test_apply_status_and_revert(up: World) -> None:
    before = up.snapshot()
    report = ascend_shims.apply()
    assert report.state("one") is State.PENDING
    assert values(up) == (10, 10)
    assert states() == {"one": State.APPLIED, "two": State.APPLIED, "three": State.OFF}
    assert ascend_shims.status()["one"].patches[0].target == f"{up.up}.a:f"
    report = ascend_shims.revert("one")
    assert values(up) == (1, 1)
    assert report.state("one") is State.REVERTED
    assert report["two"].reason == "needs one, which is reverted"
    assert ascend_shims.apply().state("two") is State.APPLIED
    assert values(up) == (10, 10)
    report = ascend_shims.revert()
    assert {gap.state for gap in report.gaps} == {State.REVERTED, State.OFF}
    assert values(up) == (1, 1)
    assert sys.meta_path == before.meta_path
    assert dict(os.environ) == before.environ


def test_what_was_never_applied_can_be_reverted(up: World) -> None:
    before = up.snapshot()
    report = ascend_shims.revert()
    assert report.state("one") is State.PENDING
    assert "when upstream is imported" in report["one"].reason
    ascend_shims.revert("one")
    assert before.differences(up.snapshot()) == []


def test_calling_apply_again_moves_to_what_it_says(up: World) -> None:
    ascend_shims.apply()
    ascend_shims.apply()
    assert values(up) == (10, 10)
    ascend_shims.apply(disable=["two"])
    assert values(up) == (10, 1)
    ascend_shims.apply(only="three")
    assert values(up) == (2, 1)
    ascend_shims.apply(only=[])
    assert values(up) == (1, 1)
    ascend_shims.apply(only=("one", "three"))
    assert values(up) == (11, 1)
    ascend_shims.apply(disable="one")
    assert values(up) == (1, 1)


def test_what_the_environment_switches_off_stays_off(
    up: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASCEND_SHIMS_DISABLE", "two")
    report = ascend_shims.apply(only=["one", "two"])
    assert values(up) == (10, 1)
    assert report["two"].reason == "switched off by ASCEND_SHIMS_DISABLE"
    assert report["three"].reason == "switched off by apply()"


@pytest.mark.usefixtures("up")
def test_a_gap_that_does_not_exist_is_an_error_and_changes_nothing() -> None:
    ascend_shims.apply()
    before = states()
    for call in (
        lambda: ascend_shims.apply(only=["on"]),
        lambda: ascend_shims.apply(disable=["on"]),
        lambda: ascend_shims.revert("on"),
        lambda: ascend_shims.disabled("on").__enter__(),
    ):
        with pytest.raises(SwitchError, match=r"names the gap 'on'.*mean 'one'"):
            call()
    assert states() == before


def test_a_gap_that_does_not_exist_is_an_error_before_apply_too(up: World) -> None:
    with pytest.raises(SwitchError, match="did you mean 'one'"):
        ascend_shims.revert("on")
    with pytest.raises(SwitchError), ascend_shims.disabled("on"):
        pass
    assert up.gaps


def test_what_the_environment_says_wrongly_is_a_warning(
    up: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASCEND_SHIMS_DISABLE", "tow")
    monkeypatch.setenv("ASCEND_SHIMS_DEVISE", "npu")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ascend_shims.apply()
    said = [str(one.message) for one in caught]
    assert len(said) == 2
    assert "ASCEND_SHIMS_DEVISE is not a variable" in said[0]
    assert "did you mean 'two'?" in said[1]
    assert caught[0].filename == __file__
    assert values(up) == (10, 10)


def test_strict_raises_with_the_whole_report(up: World) -> None:
    up.gap("bad", P("a:gone"))
    up.registry_file()
    up.import_()
    with pytest.raises(UnappliedError) as caught:
        ascend_shims.apply(strict=True)
    assert caught.value.report.state("bad") is State.MISSING_TARGET
    assert caught.value.report.state("one") is State.APPLIED
    assert "ASCEND_SHIMS_DISABLE=bad" in str(caught.value)
    assert ascend_shims.apply(strict=True, disable=["bad"]).faults == ()


def test_a_registry_that_cannot_be_used_changes_nothing(
    up: World, tmp_path: Path
) -> None:
    ascend_shims.apply()
    values(up)
    before, environ = states(), dict(os.environ)
    (tmp_path / "bad.yaml").write_text("schema: 1\n")
    for path in ("bad.yaml", "nowhere.yaml"):
        with pytest.raises(RegistryError):
            ascend_shims.apply(registry=tmp_path / path)
    assert (states(), dict(os.environ)) == (before, environ)


def test_another_registry_replaces_the_first(up: World) -> None:
    ascend_shims.apply()
    assert values(up) == (10, 10)
    up.gaps.clear()
    up.gap("one", P("a:g", "plus_one"))
    other = up.registry_file("other.yaml")
    ascend_shims.apply(registry=other)
    assert values(up) == (1, 2)
    assert os.environ["ASCEND_SHIMS_REGISTRY"] == str(other)
    ascend_shims.apply(registry=str(other))
    assert values(up) == (1, 2)


def test_what_cannot_be_put_back_is_an_error_after_all_the_rest(
    up: World,
    failure: Failure,  # noqa: F811
) -> None:
    ascend_shims.apply()
    values(up)
    failure.names = {"f"}
    with pytest.raises(RestoreError, match=f"{up.up}.a:f could not be put back"):
        ascend_shims.revert()
    assert values(up) == (1, 1)
    failure.names = set()
    assert ascend_shims.revert().state("one") is State.REVERTED


# Switching off for a while


def test_disabled_is_off_inside_and_as_before_after(up: World) -> None:
    ascend_shims.apply()
    values(up)
    with ascend_shims.disabled("one"):
        assert values(up) == (1, 1)
        assert ascend_shims.status()["one"].reason == "switched off by disabled()"
        assert os.environ["ASCEND_SHIMS_DISABLE"] == "one"
    assert values(up) == (10, 10)
    assert "ASCEND_SHIMS_DISABLE" not in os.environ
    with pytest.raises(LookupError), ascend_shims.disabled("two"):
        raise LookupError
    assert values(up) == (10, 10)


def test_disabled_does_not_switch_on_what_was_off(up: World) -> None:
    with ascend_shims.disabled("one"):
        pass
    assert values(up) == (1, 1)
    ascend_shims.apply(disable=["two"])
    with ascend_shims.disabled("two", "three"):
        assert values(up) == (10, 1)
    assert values(up) == (10, 1)


def test_disabled_can_be_nested(up: World) -> None:
    ascend_shims.apply()
    values(up)
    with ascend_shims.disabled("two"):
        with ascend_shims.disabled("one", "two"):
            assert values(up) == (1, 1)
        assert values(up) == (10, 1)
    assert values(up) == (10, 10)


def test_disabled_blocks_that_overlap_keep_the_gap_off(up: World) -> None:
    """Two threads, or two generators, each with a block of its own."""
    ascend_shims.apply()
    values(up)
    first, second = ascend_shims.disabled("two"), ascend_shims.disabled("two")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert values(up) == (10, 1)
    second.__exit__(None, None, None)
    assert values(up) == (10, 10)


@pytest.mark.parametrize("gaps", [(), ("two",)])
def test_a_revert_inside_disabled_stands(up: World, gaps: tuple[str, ...]) -> None:
    ascend_shims.apply()
    values(up)
    with ascend_shims.disabled("two"):
        ascend_shims.revert(*gaps)
    assert values(up)[1] == 1
    assert ascend_shims.status().state("two") is not State.APPLIED


def test_an_apply_inside_disabled_stands(up: World) -> None:
    ascend_shims.apply()
    values(up)
    with ascend_shims.disabled("two"):
        ascend_shims.apply(disable=["one"])
        assert values(up) == (1, 1)
    assert values(up) == (1, 1)


# What children read


def exported() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if k.startswith(("ASCEND_S", "VLLM_"))}


@pytest.mark.usefixtures("up")
def test_the_choice_reaches_the_children() -> None:
    before = exported()
    named = {k: v for k, v in before.items() if k.startswith("ASCEND_SHIMS")}
    ascend_shims.apply(only=["one", "two"], disable=["two"], strict=True)
    assert exported() == {
        **named,
        "ASCEND_SHIMS_ONLY": "one,two",
        "ASCEND_SHIMS_DISABLE": "two",
        "ASCEND_SHIMS_STRICT": "1",
        RAY: "ASCEND_SHIMS",
    }
    ascend_shims.apply()
    assert exported() == {**named, RAY: "ASCEND_SHIMS"}
    ascend_shims.revert()
    assert exported() == before


@pytest.mark.parametrize("call", ["only", "disable", "disabled"])
def test_that_nothing_is_wanted_reaches_the_children_too(up: World, call: str) -> None:
    before = exported()
    ascend_shims.apply()
    values(up)
    code = "import UP.a, ascend_shims\nascend_shims.apply()\nprint(UP.a.f(1))\n"
    block = ascend_shims.disabled("one", "two")
    if call == "only":
        ascend_shims.apply(only=[])
    elif call == "disable":
        ascend_shims.apply(disable=["one", "two"])
    else:
        block.__enter__()
    assert values(up) == (1, 1)
    assert up.run(code) == "1\n"
    if call == "disabled":
        block.__exit__(None, None, None)
        assert up.run(code) == "10\n"
    ascend_shims.revert()
    assert exported() == before
    ascend_shims.apply()
    assert up.run(code) == "10\n"
    ascend_shims.revert()
    assert exported() == before


def test_nothing_is_said_twice_or_lost(
    up: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RAY, "MINE_, ASCEND_SHIMS")
    monkeypatch.setenv("ASCEND_SHIMS_STRICT", "1")
    before = exported()
    ascend_shims.apply(strict=False)
    assert os.environ[RAY] == "MINE_, ASCEND_SHIMS"
    assert "ASCEND_SHIMS_STRICT" not in os.environ
    ascend_shims.revert()
    assert exported() == before
    monkeypatch.setenv(RAY, "MINE_")
    ascend_shims.apply()
    assert os.environ[RAY] == "MINE_,ASCEND_SHIMS"
    ascend_shims.revert()
    assert os.environ[RAY] == "MINE_"
    assert up.gaps


def test_what_somebody_sets_meanwhile_is_theirs(up: World) -> None:
    ascend_shims.apply(disable=["two"])
    assert os.environ["ASCEND_SHIMS_DISABLE"] == "two"
    os.environ["ASCEND_SHIMS_DISABLE"] = "one"
    os.environ[RAY] = "OTHER_"
    ascend_shims.apply()
    assert values(up) == (1, 1)
    ascend_shims.revert()
    assert os.environ["ASCEND_SHIMS_DISABLE"] == "one"
    assert os.environ[RAY] == "OTHER_"


# The plugin


def test_the_plugin_applies_what_the_environment_says(
    up: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASCEND_SHIMS_DISABLE", "two")
    plugin.register()
    plugin.register()
    assert values(up) == (10, 1)


def test_the_plugin_leaves_alone_what_the_program_has_decided(up: World) -> None:
    ascend_shims.apply(only=["one"])
    plugin.register()
    assert values(up) == (10, 1)
    ascend_shims.revert()
    plugin.register()
    assert values(up) == (1, 1)


@pytest.mark.parametrize("registry", ["bad.yaml", "nowhere.yaml"])
def test_the_plugin_never_raises(
    up: World,
    registry: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (up.root / "bad.yaml").write_text("schema: 1\n")
    monkeypatch.setenv("ASCEND_SHIMS_REGISTRY", str(up.root / registry))
    with caplog.at_level(logging.WARNING, "ascend_shims"):
        plugin.register()
    assert len(caplog.records) == 1
    assert "no shims in this process" in caplog.text
    assert "Traceback" not in caplog.text
    monkeypatch.setattr(process.Process, "start", lambda _: 1 / 0)
    plugin.register()
    assert "ZeroDivisionError" in caplog.text


def test_the_plugin_raises_where_strict_is_set_and_does_so_every_time(
    up: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    up.gap("bad", P("a:gone"))
    up.registry_file()
    up.import_()
    monkeypatch.setenv("ASCEND_SHIMS_STRICT", "1")
    for _ in range(2):
        with pytest.raises(UnappliedError, match="bad"):
            plugin.register()


NO_UPSTREAM = """
import importlib.abc, importlib.machinery, sys

class Refuse(importlib.abc.Loader, importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in ("UP", "vllm", "torch", "pydantic"):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None:
            spec.loader = self
        return spec
    def exec_module(self, module):
        raise AssertionError(f"{module.__name__} was imported")

sys.meta_path.insert(0, Refuse())
"""
"""Finds upstream as ever, and fails every import of it."""

SLOW_TO_IMPORT = {
    "asyncio", "click", "concurrent", "griffe", "http", "numpy", "rich", "urllib3"
}  # fmt: skip


def test_importing_the_toolkit_changes_nothing(up: World) -> None:
    """Public report C03, and with nothing but the standard library."""
    code = """
import sys, os
{torch}
def seen():
    return {{
        name: [(key, id(value)) for key, value in vars(sys.modules[name]).items()]
        for name in sorted(sys.modules)
        if name.partition(".")[0] in ("torch", "builtins")
    }}
before, path, environ = seen(), list(sys.meta_path), dict(os.environ)
loaded = set(sys.modules)
import ascend_shims
assert seen() == before
assert sys.meta_path == path and dict(os.environ) == environ
new = {{m for m in set(sys.modules) - loaded if "." not in m}}
print(sorted(new - sys.stdlib_module_names), len(new) < 12)
"""
    for torch in ("", "import torch"):
        assert up.run(code.format(torch=torch)) == "['ascend_shims'] True\n"


def test_registering_imports_no_upstream_and_little_else(up: World) -> None:
    """A08 and A15 of the public reports: vLLM is half initialised at that moment."""
    code = f"""{NO_UPSTREAM}
import logging
from ascend_shims.plugin import register
import ascend_shims
loaded = set(sys.modules)
logging.raiseExceptions = True
register()
new = set(sys.modules) - loaded
print([str(gap.state) for gap in ascend_shims.status().gaps])
print(sorted({{name.partition(".")[0] for name in new}} & {SLOW_TO_IMPORT}))
print(len(new))
try:
    import UP
except AssertionError as error:
    print(error)
"""
    states, slow, count, refused = up.run(code).splitlines()
    assert states == "['pending', 'pending', 'off']"
    assert slow == "[]"
    # What a start costs, apart from how busy the machine is: 151 of them now.
    assert 50 < int(count) < 200
    assert refused == up.spelled("UP was imported")


# Threads


def test_threads_may_apply_and_revert_at_once(up: World) -> None:
    values(up)
    stop = time.monotonic() + 1
    faults: list[BaseException] = []

    def work(number: int) -> None:
        try:
            while time.monotonic() < stop:
                if number % 2:
                    ascend_shims.apply()
                    with ascend_shims.disabled("two"):
                        ascend_shims.status()
                else:
                    ascend_shims.revert("two")
        except BaseException as error:
            faults.append(error)
            raise

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    assert not any(thread.is_alive() for thread in threads)
    assert faults == []
    ascend_shims.apply()
    assert values(up) == (10, 10)
    ascend_shims.revert()
    assert values(up) == (1, 1)


def test_a_thread_that_imports_may_wait_for_us_while_we_import(up: World) -> None:
    """One thread applies, and the patches need a module that another is importing,
    whose body calls us."""
    shared = f"{up.prefix}_shared"
    up.write(
        f"{shared}.py",
        """
        import time
        started = True
        time.sleep(0.3)
        import ascend_shims
        ascend_shims.apply()
        """,
    )
    up.gap("four", P("a:g", "plus_one"), after=("two",), code=f"import {shared}\n")
    up.registry_file()
    up.import_()
    threads = [
        threading.Thread(target=__import__, args=(shared,), daemon=True),
        threading.Thread(target=ascend_shims.apply, daemon=True),
    ]
    for thread in threads:
        thread.start()
        time.sleep(0.1)
    for thread in threads:
        thread.join(LONG)
    assert not any(thread.is_alive() for thread in threads)
    assert values(up) == (10, 11)


# Forks and answers


def answers(patience: float = 10) -> dict[int, Answer]:
    """What other processes say, asked from a process of its own.

    `patience` is how many seconds each may take.
    """
    code = (
        "import json\n"
        "from ascend_shims.processes.client import ask_all\n"
        f"found = ask_all({patience})\n"
        "print(json.dumps([[a.pid, a.report, a.problem] for a in found]))\n"
    )
    return {pid: Answer(pid, *rest) for pid, *rest in json.loads(python(code))}


def test_a_process_answers_while_it_carries_shims(up: World) -> None:
    assert os.getpid() not in listening()
    ascend_shims.apply()
    values(up)
    mine = answers()[os.getpid()]
    assert mine.report is not None
    assert mine.report == json.loads(json.dumps(ascend_shims.status().as_dict()))
    assert mine.report["process"]["pid"] == os.getpid()
    by_id = {gap["id"]: gap["state"] for gap in mine.report["gaps"]}
    assert by_id == {"one": "applied", "two": "applied", "three": "off"}
    with ascend_shims.disabled("two"):
        report = answers()[os.getpid()].report
        assert report is not None
        assert report["gaps"][1]["state"] == "off"
    ascend_shims.revert()
    assert os.getpid() not in answers()
    assert os.getpid() not in listening()


def forked(body: Any) -> int:
    """A child that runs `body`, reports 0 where it returns True, and ends."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        status = 0 if body() else 2
    finally:
        os._exit(status)


def test_a_forked_child_answers_for_itself(up: World) -> None:
    ascend_shims.apply()
    values(up)
    read, write = os.pipe()

    def child() -> bool:
        ascend_shims.revert("two")
        done = (
            values(up) == (10, 1)
            and ascend_shims.status().process["pid"] == os.getpid()
        )
        os.write(write, b"ready")
        time.sleep(LONG)
        return done

    pid = forked(child)
    try:
        assert os.read(read, 5) == b"ready"
        said = answers()
        for who, expected in ((os.getpid(), "applied"), (pid, "reverted")):
            report = said[who].report
            assert report is not None
            assert report["process"]["pid"] == who
            assert report["gaps"][1]["state"] == expected
        assert values(up) == (10, 10)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert pid not in listening()
    assert os.getpid() in answers()


def test_a_fork_in_the_middle_of_anything_works(up: World) -> None:
    """Other threads hold our locks at that moment; the child has none of them."""
    values(up)
    ascend_shims.apply()
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            ascend_shims.apply()
            ascend_shims.revert("two")

    threads = [threading.Thread(target=busy, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):

            def child() -> bool:
                signal.alarm(LONG)
                ascend_shims.apply()
                on = values(up) == (10, 10)
                ascend_shims.revert()
                return on and values(up) == (1, 1)

            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = forked(child)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join(LONG)


CHILD = """
import sys, time
import ascend_shims
ascend_shims.apply()
import UP.a
print(UP.a.f(1), UP.a.g(1), flush=True)
{rest}
"""


def test_a_child_started_with_our_environment_decides_alike(up: World) -> None:
    report = ascend_shims.apply(disable=["two"])
    values(up)
    code = CHILD.format(rest="print(ascend_shims.status().plan)")
    assert up.run(code) == f"10 1\n{report.plan}\n"


def test_a_process_that_was_killed_is_not_shown(up: World) -> None:
    code = up.spelled(CHILD.format(rest="time.sleep(600)"))
    child = subprocess.Popen(
        [sys.executable, "-B", "-c", code],
        env={**os.environ, "PYTHONPATH": str(up.root)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "10 10\n"
        assert child.pid in answers()
    finally:
        child.kill()
        child.wait()
    assert child.pid not in answers()
    assert child.pid not in listening()


class Fake:
    """Something that listens where a process with shims would."""

    def __init__(self, says: bytes | None) -> None:
        self._says = says
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(address(os.getpid()))
        self._listener.listen(1)
        self._held: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            if self._says is None:
                self._held.append(connection)
                continue
            connection.sendall(self._says)
            connection.close()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(LONG)
        for connection in self._held:
            connection.close()


@pytest.mark.parametrize(
    ("says", "problem"),
    [
        (b'{"error": "it broke"}', "it broke"),
        (b'{"schema": 1, "gaps": [', "cannot be read"),
        (None, "busy or stopped"),
    ],
)
def test_a_process_that_cannot_answer_is_told(says: bytes | None, problem: str) -> None:
    fake = Fake(says)
    try:
        answer = answers(1 if says is None else 10)[os.getpid()]
    finally:
        fake.close()
    assert answer.report is None
    assert problem in answer.problem


def test_a_process_does_not_ask_itself(up: World) -> None:
    ascend_shims.apply()
    assert os.getpid() in listening()
    assert os.getpid() not in {answer.pid for answer in ask_all(0.5)}
    assert up.gaps


_FINE = {"schema": 1, "plan": "x", "process": {"pid": 1, "role": "r"}, "gaps": []}


def test_an_answer_that_fails_says_so_and_the_next_is_given() -> None:
    reports: list[Any] = [ValueError("not now"), _FINE]

    def report() -> dict[str, Any]:
        one = reports.pop(0)
        if isinstance(one, Exception):
            raise one
        return dict(one)

    responder = responders.Responder(report)
    responder.start()
    responder.start()
    try:
        assert answers()[os.getpid()].problem == "ValueError: not now"
        assert answers()[os.getpid()].report == _FINE
    finally:
        responder.stop()
        responder.stop()
    assert os.getpid() not in listening()


def test_a_process_that_cannot_answer_is_patched_all_the_same(
    up: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """There may be no more threads to be had."""

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as context:
        context.setattr(threading.Thread, "start", refused)
        assert ascend_shims.apply().state("one") is State.PENDING
    assert "cannot answer `shims status`: can't start new thread" in caplog.text
    assert os.getpid() not in listening()
    assert values(up) == (10, 10)
    # The next time there may be one.
    ascend_shims.apply()
    assert os.getpid() in answers()


def test_the_report_is_plain_data(up: World) -> None:
    ascend_shims.apply()
    data = json.loads(json.dumps(ascend_shims.status().as_dict()))
    assert data["schema"] == 1
    assert re.fullmatch("[0-9a-f]{12}", data["plan"])
    assert data["process"]["pid"] == os.getpid()
    assert data["environment"]["python"] == sys.executable
    shown = data["environment"]["distributions"][up.up]
    assert shown["file"] == str(up.root / up.up / "__init__.py")
    report = ascend_shims.status()
    first = report.gaps[0].id
    with pytest.raises(KeyError, match=f"did you mean {first!r}"):
        report.state(first + "s")
    with pytest.raises(KeyError, match=f"there are {first}"):
        report["xyz-123"]
