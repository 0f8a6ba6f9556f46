"""A plugin of pytest's for tools/mutation: tests collected once, a child a mutant.

To collect takes longer than the first test that notices a change. So the tests are
collected in one process, which forks a child for each mutant; the child runs those that
execute the changed lines until one fails. What noticed a change in the same function
before comes first, then the quickest. All run twice with nothing changed before: that
tells how long each takes, and which lines it executes.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import pytest

TASKS = "MUTATION_TASKS"
"""Variable that names a file: by mutant the file and the lines that it changes, or null
where they are not known; by function its tests; and how many seconds a mutant's tests
may take in all, or null."""
TOLD = "MUTATION_TOLD"
"""Variable with the descriptor that results are written to, a line of JSON a mutant."""
JOBS = "MUTATION_JOBS"
"""Variable with the number of children at a time."""

NOTHING = "nothing"
"""Stands for a mutant where nothing is changed."""
_TRACED = "traced"
"""The same, when lines are noted."""

_ROOM = 4
"""So many times what a mutant's tests took may they take with it."""
_SPARE = 30.0
"""And so many seconds more."""
_CLEAN = 1800.0
"""Seconds for all tests with nothing changed, of which it is not known."""

Task = tuple[str, Sequence[str]]
"""A mutant and its tests."""
Lines = tuple[str, int, int]
"""A file, relative to the root, and the first and last of some lines."""


@dataclass
class Order:
    """In which order a mutant meets its tests."""

    tests: Mapping[str, Sequence[str]]
    """By function."""
    most: float | None = None
    """Seconds after which the rest, which is the slowest, is left out."""
    seconds: dict[str, float] = field(default_factory=dict)
    """What each test takes, with what it needs set up."""
    noticed: dict[str, list[str]] = field(default_factory=dict)
    """By function, tests that failed with one of its mutants, the latest first."""
    changed: Mapping[str, Lines | None] = field(default_factory=dict)
    """By mutant."""
    executed: dict[str, dict[str, set[int]]] = field(default_factory=dict)
    """By file and test."""

    def unchanged(self, name: str, parts: int) -> Iterator[Task]:
        """All tests, in as many parts."""
        every = sorted(set().union(*self.tests.values()))
        return ((name, every[part::parts]) for part in range(parts))

    def reaching(self, mutant: str) -> set[str]:
        """The tests that execute what the mutant changes, or may do so."""
        tests = set(self.tests[function_of(mutant)])
        lines = self.changed.get(mutant)
        if lines is None or not self.executed:
            return tests
        path, first, last = lines
        wanted = set(range(first, last + 1))
        by_test = self.executed.get(path, {})
        every = self.executed.get("", {})
        return {
            test
            for test in tests
            if test not in every or not wanted.isdisjoint(by_test.get(test, ()))
        }

    def of(self, mutant: str) -> Task:
        known = self.reaching(mutant)
        first = [t for t in self.noticed.get(function_of(mutant), []) if t in known]
        rest = sorted(known - set(first), key=lambda t: (self.seconds.get(t, 0.0), t))
        if self.most is not None:
            sums = accumulate(self.seconds.get(test, 0.0) for test in rest)
            rest = [
                test
                for number, (test, sum_) in enumerate(zip(rest, sums, strict=True))
                if sum_ <= self.most or not (number or first)
            ]
        return mutant, [*first, *rest]

    def learn(self, mutant: str, test: str) -> None:
        """A test has failed with that mutant."""
        known = self.noticed.setdefault(function_of(mutant), [])
        if test in known:
            known.remove(test)
        known.insert(0, test)

    def limit(self, tests: Sequence[str]) -> float:
        """Seconds after which a mutant is not going to end any more."""
        if not self.seconds:
            return _CLEAN
        return _ROOM * sum(self.seconds.get(test, 0.0) for test in tests) + _SPARE


def function_of(mutant: str) -> str:
    return mutant.rpartition("__mutmut_")[0]


@dataclass(frozen=True)
class Child:
    """A process that meets tests with a mutant."""

    mutant: str
    folder: Path
    """Where it writes, and all its temporary files are."""
    until: float


@dataclass(frozen=True)
class Result:
    mutant: str
    code: int
    """Exit code of the child: 0 if all tests passed, 1 if one failed."""
    test: str | None
    """The one that failed."""
    seconds: dict[str, float]
    """What each test took."""
    lines: dict[str, dict[str, list[int]]]
    """By file and test, where lines were noted; the file "" has all such tests."""


def pytest_runtestloop(session: pytest.Session) -> bool:
    given = json.loads(Path(os.environ[TASKS]).read_text(encoding="utf-8"))
    jobs = int(os.environ.get(JOBS, "1"))
    changed = {
        mutant: lines and tuple(lines) for mutant, lines in given["mutants"].items()
    }
    order = Order(given["tests"], given["most"], changed=changed)
    items = {item.nodeid: item for item in session.items}
    gc.collect()
    # A child that collects what it was born with would copy all of it.
    gc.freeze()
    with os.fdopen(int(os.environ[TOLD]), "w", buffering=1) as told:
        for one in _results(given["mutants"], items, order, jobs):
            print(json.dumps([one.mutant, one.code, one.test]), file=told)
    return True


def _results(
    mutants: Iterable[str], items: Mapping[str, pytest.Item], order: Order, jobs: int
) -> Iterator[Result]:
    seconds: dict[str, float] = {}
    sound = True
    for one in _met(order.unchanged(NOTHING, jobs), items, order, jobs):
        seconds |= one.seconds
        sound &= one.code == 0
        yield one
    if not sound:
        # What fails anyway says nothing of a change.
        return
    for one in _met(order.unchanged(_TRACED, jobs), items, order, jobs):
        for path, tests in one.lines.items():
            noted = order.executed.setdefault(path, {})
            noted |= {test: set(lines) for test, lines in tests.items()}
    order.seconds = seconds
    for one in _met(map(order.of, mutants), items, order, jobs):
        if one.test is not None:
            order.learn(one.mutant, one.test)
        yield one


def _met(
    tasks: Iterator[Task], items: Mapping[str, pytest.Item], order: Order, jobs: int
) -> Iterator[Result]:
    """Each task when it is done. The next is asked for when there is room for it."""
    children: dict[int, Child] = {}
    try:
        while True:
            while len(children) < jobs and (task := next(tasks, None)) is not None:
                mutant, tests = task
                folder = Path(tempfile.mkdtemp(prefix="mutant-"))
                until = time.monotonic() + order.limit(tests)
                pid = _born(mutant, [items[t] for t in tests if t in items], folder)
                children[pid] = Child(mutant, folder, until)
            if not children:
                return
            yield from _ended(children)
    finally:
        for pid in children:
            _kill(pid)


def _ended(children: dict[int, Child]) -> Iterator[Result]:
    """Those that are done, whom it takes out; waits a little where none is."""
    pid, status = os.waitpid(-1, os.WNOHANG)
    if pid in children:
        child = children.pop(pid)
        noticed, took = child.folder / "noticed", child.folder / "seconds.json"
        test = noticed.read_text() if noticed.exists() else None
        seconds = json.loads(took.read_text()) if took.exists() else {}
        noted = child.folder / "lines.json"
        lines = json.loads(noted.read_text()) if noted.exists() else {}
        shutil.rmtree(child.folder, ignore_errors=True)
        code = os.waitstatus_to_exitcode(status)
        yield Result(child.mutant, code, test, seconds, lines)
        return
    for late, child in children.items():
        if time.monotonic() > child.until:
            _kill(late)
    time.sleep(0.002)


def _kill(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _born(mutant: str, items: Sequence[pytest.Item], folder: Path) -> int:
    pid = os.fork()
    if pid:
        return pid
    os.setsid()
    try:
        _run(mutant, items, folder)
    finally:
        # Whatever a change has raised here, the child never goes on as its parent.
        os._exit(3)


def _run(mutant: str, items: Sequence[pytest.Item], folder: Path) -> NoReturn:
    # Here, for the tests of this module run without mutmut.
    from mutmut.mutation.trampoline import set_mutant_under_test

    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(folder)
    set_mutant_under_test(mutant)
    if mutant == _TRACED:
        (folder / "lines.json").write_text(json.dumps(_traced(items)))
        os._exit(0)
    seconds = {}
    for item, after in zip(items, [*items[1:], None], strict=False):
        start = time.perf_counter()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        seconds[item.nodeid] = time.perf_counter() - start
        if item.session.testsfailed:
            (folder / "noticed").write_text(item.nodeid)
            os._exit(1)
    if mutant == NOTHING:
        (folder / "seconds.json").write_text(json.dumps(seconds))
    os._exit(0)


class _Trace:
    """Which lines of the mutated files are executed."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, int]] = set()
        self._root = os.path.realpath(".")
        self._paths: dict[str, str | None] = {}

    def _path(self, file: str) -> str | None:
        """Relative to the root; None for what no mutant is in."""
        if file not in self._paths:
            path = os.path.relpath(os.path.realpath(file), self._root)
            is_mutated = os.path.exists(f"{path}.meta")  # noqa: PTH110 - called often
            self._paths[file] = path if is_mutated else None
        return self._paths[file]

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        path = self._path(frame.f_code.co_filename)
        if path is None:
            return None
        self.seen.add((path, frame.f_lineno))
        return self


def _traced(items: Sequence[pytest.Item]) -> dict[str, dict[str, list[int]]]:
    """Lines by file and test. A test that does not bear to be traced has none."""
    found: dict[str, dict[str, list[int]]] = {"": {}}
    for item, after in zip(items, [*items[1:], None], strict=False):
        trace, before = _Trace(), item.session.testsfailed
        threading.settrace(trace)
        sys.settrace(trace)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        if item.session.testsfailed > before:
            continue
        found[""][item.nodeid] = []
        for path, line in sorted(trace.seen):
            found.setdefault(path, {}).setdefault(item.nodeid, []).append(line)
    return found
