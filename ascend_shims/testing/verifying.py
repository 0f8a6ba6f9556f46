"""`--shims-verify`: a test that leaves a trace fails, naming what it left.

A fixture of each scope is set up before, and taken down after, all others of that
scope. What is left when a test's own fixtures are gone is the test's; what a fixture
of its module leaves is told at the end of the module.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ..registry import RegistryError, load
from ..switches import read_switches
from .traces import State, Watch

_SCOPES = ("session", "package", "module", "class", "function")

_KEY = pytest.StashKey["_Levels"]()


class _Levels:
    """What there was when the fixture of ours of each scope was set up."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self._states: dict[str, State] = {}
        self._firsts: dict[str, State] = {}
        """The same, without what was told or done in between."""
        self._ended: State | None = None
        """What there was when the last test had ended, where none is under way."""
        self._is_stale = True
        """Whether a fixture of a wider scope has come or gone since."""

    @contextmanager
    def level(self, scope: str) -> Iterator[None]:
        """Fails at its end where something is not as it was at its beginning."""
        fresh = None if self._is_stale else self._ended
        self._states[scope] = self._firsts[scope] = fresh or self.watch.look()
        if scope == "function":
            self._ended = None
        yield
        first = self._firsts.pop(scope)
        before, now = self._states.pop(scope), self.watch.look()
        if scope == "function":
            self._ended, self._is_stale = now, False
        found = self.watch.differences(before, now)
        if found:
            # Told once: it is no surprise any more.
            self._carry(self._states, before, now)
        if found and first is not before:
            # What is back where it was in the beginning is no trace of anybody.
            still = self.watch.differences(first, now)
            found = {at: line for at, line in found.items() if at in still}
        if found:
            left = "\n".join(f"  {line}" for line in sorted(found.values()))
            whose = "this test" if scope == "function" else f"this {scope}"
            pytest.fail(f"--shims-verify: {whose} has left\n{left}", pytrace=False)

    @contextmanager
    def fixture(self, scope: str) -> Iterator[None]:
        """While a fixture of that scope is set up: what it does is no trace of the
        narrower scopes that are under way."""
        inner = _SCOPES[_SCOPES.index(scope) + 1 :]
        under_way = [one for one in inner if one in self._states]
        if under_way:
            # With other parameters, it has been taken down since the last test.
            before = self._ended or self.watch.look()
            yield
            self._carry(under_way, before, self.watch.look())
        else:
            yield
        self.fixture_gone(scope)

    def fixture_gone(self, scope: str) -> None:
        if scope != "function":
            self._is_stale = True

    def _carry(self, scopes: Iterable[str], before: State, now: State) -> None:
        for scope in list(scopes):
            self._states[scope] = self._states[scope].carried(before, now)


def pytest_sessionstart(session: pytest.Session) -> None:
    config = session.config
    paths = [read_switches(os.environ).registry, *config.getini("shims_registry")]
    try:
        packages = {name for path in paths for name in load(path).upstreams}
    except RegistryError as error:
        raise pytest.UsageError(str(error)) from None
    watch = Watch(packages, config.rootpath)
    watch.start()
    config.stash[_KEY] = _Levels(watch)


def pytest_sessionfinish(session: pytest.Session) -> None:
    levels = session.config.stash.get(_KEY, None)
    if levels is not None:
        levels.watch.stop()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, Any, Any]:
    if fixturedef.func.__module__ == __name__:
        return (yield)
    with request.config.stash[_KEY].fixture(fixturedef.scope):
        return (yield)


def pytest_fixture_post_finalizer(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> None:
    if fixturedef.func.__module__ != __name__:
        request.config.stash[_KEY].fixture_gone(fixturedef.scope)


def _fixture(scope: Any) -> Any:
    def verify(request: pytest.FixtureRequest) -> Iterator[None]:
        with request.config.stash[_KEY].level(scope):
            yield

    name = f"_shims_verify_{scope}"
    return pytest.fixture(verify, scope=scope, autouse=True, name=name)


of_session = _fixture("session")
of_module = _fixture("module")
of_class = _fixture("class")
of_function = _fixture("function")
