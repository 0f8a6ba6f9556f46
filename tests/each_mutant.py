"""A plugin of pytest's for tools/mutation: tests collected once, a child a mutant.

To collect takes longer than the first test that notices a change. So the tests are
collected in one process, which forks a child for each mutant; the child runs those that
reach the mutant until one fails. What noticed a change in the same function before
comes first, then the quickest. All run once with nothing changed before, which also
tells how long each takes.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import NoReturn

import pytest

TASKS = "MUTATION_TASKS"
"""Variable that names a file: a list of mutants, the tests of each function, and how
many seconds a mutant's tests may take in all (null: no limit)."""
TOLD = "MUTATION_TOLD"
"""Variable with the descriptor that results are written to, a line of JSON a mutant."""
JOBS = "MUTATION_JOBS"
"""Variable with the number of children at a time."""

NOTHING = "nothing"
"""Stands for a mutant where nothing is changed."""

_ROOM = 4
"""So many times what a mutant's tests took may they take with it."""
_SPARE = 30.0
"""And so many seconds more."""
_CLEAN = 1800.0
"""Seconds for all tests with nothing changed, of which it is not known."""

Task = tuple[str, Sequence[str]]
"""A mutant and its tests."""


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

    def unchanged(self, parts: int) -> Iterator[Task]:
        """All tests, in as many parts."""
        every = sorted(set().union(*self.tests.values()))
        return ((NOTHING, every[part::parts]) for part in range(parts))

    def of(self, mutant: str) -> Task:
        known = set(self.tests[function_of(mutant)])
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


def pytest_runtestloop(session: pytest.Session) -> bool:
    given = json.loads(Path(os.environ[TASKS]).read_text(encoding="utf-8"))
    jobs = int(os.environ.get(JOBS, "1"))
    order = Order(given["tests"], given["most"])
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
    for one in _met(order.unchanged(jobs), items, order, jobs):
        seconds |= one.seconds
        sound &= one.code == 0
        yield one
    if not sound:
        # What fails anyway says nothing of a change.
        return
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
        shutil.rmtree(child.folder, ignore_errors=True)
        yield Result(child.mutant, os.waitstatus_to_exitcode(status), test, seconds)
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
    seconds = {}
    for item, after in zip(items, [*items[1:], None], strict=True):
        start = time.perf_counter()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        seconds[item.nodeid] = time.perf_counter() - start
        if item.session.testsfailed:
            (folder / "noticed").write_text(item.nodeid)
            os._exit(1)
    if mutant == NOTHING:
        (folder / "seconds.json").write_text(json.dumps(seconds))
    os._exit(0)
