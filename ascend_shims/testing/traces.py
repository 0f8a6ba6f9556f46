"""What a test has left behind: patches, hooks, variables and threads.

A test may import whatever it likes, and upstream may change what is its own: its
state, and what it puts in place as it is imported. Anything else that is not the very
object that was there before is a trace, whoever left it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..engine.hooks import Hooks
from ..engine.slot import ABSENT, is_module, namespace
from .definitions import defined_in, is_definition, is_ours
from .insides import Altered
from .spaces import Loaded, Space, carried
from .things import Thing, differing, things

__all__ = ["State", "Traces", "Watch"]

Traces = dict[tuple[str, Any], str]
"""What has changed, by where it is and how it is called there: one line each."""


@dataclass(frozen=True, eq=False)
class State:
    """What there is at one moment."""

    loaded: Mapping[str, Loaded]
    """Upstream's modules with their definitions, and the project's with what in them
    is ours."""
    things: Mapping[Thing, Any]
    modules: frozenset[str]
    """All that were loaded."""

    def carried(self, before: State, after: State) -> State:
        """This with what changed from `before` to `after`: that is known."""
        loaded = dict(self.loaded)
        for name in before.loaded.keys() - after.loaded.keys():
            loaded.pop(name, None)
        for name, one in after.loaded.items():
            was, own = before.loaded.get(name), loaded.get(name)
            if was is not one:
                known = was is not None and own is not None
                loaded[name] = own.carried(was, one) if known else one  # type: ignore
        changed = carried(self.things, before.things, after.things)
        come = after.modules - before.modules
        return State(loaded, changed, self.modules | come)


class _Below(frozenset[str]):
    """Some packages, and every module in them."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(str(name).partition(".")[0])


class Watch:
    """Looks at the process now and again; finds what has changed in between."""

    def __init__(self, packages: Iterable[str], project: Path) -> None:
        self._packages = _Below(packages)
        self._project = project
        """Where the tests live: what comes from here is never upstream's own."""
        self._of_project: dict[str, bool] = {}
        self._seen: dict[str, Loaded] = {}
        self._firsts: dict[str, Loaded] = {}
        """Upstream's modules as they were when they had just executed."""
        self._hooks = Hooks(self._executed)

    def start(self) -> None:
        """See what is imported from now on before anybody can have changed it."""
        self._hooks.watch(self._packages)

    def stop(self) -> None:
        self._hooks.watch(frozenset())

    def look(self) -> State:
        """What there is now."""
        loaded: dict[str, Loaded] = {}
        for name, module in list(sys.modules.items()):
            if is_module(module) and (name in self._packages or self._is_own(name)):
                one = self._seen.get(name)
                if one is None or one.module is not module or not one.is_current():
                    counts = is_definition if name in self._packages else is_ours
                    one = Loaded.of(name, module, counts)
                loaded[name] = one
        self._seen = loaded
        return State(loaded, things(), frozenset(sys.modules))

    def _executed(self, name: str) -> None:
        module = sys.modules[name]
        if is_module(module):
            self._firsts[name] = Loaded.of(name, module, is_definition)

    def _is_own(self, module: str) -> bool:
        """Whether a module is the project's own."""
        known = self._of_project.get(module)
        if known is None:
            file = getattr(sys.modules.get(module), "__file__", None)
            path = Path(file) if type(file) is str else Path()
            known = path.is_relative_to(self._project) and (
                "site-packages" not in path.relative_to(self._project).parts
            )
            self._of_project[module] = known
        return known

    # What has changed

    def differences(self, before: State, now: State) -> Traces:
        """What is not as it was."""
        imported = now.modules - before.modules
        found: Traces = {}
        altered: list[tuple[str, Altered]] = []
        for name, one in now.loaded.items():
            was = before.loaded.get(name)
            if was is one:
                continue
            if name not in self._packages:
                found.update(_still_ours(was, one))
            elif was is not None and was.module is not one.module:
                found[name, ""] = f"{name}: is another module"
            else:
                found.update(self._in_module(name, was, now, imported))
                altered += self._in_place(name, was, one)
        gone = before.loaded.keys() - now.loaded.keys()
        for name in filter(self._packages.__contains__, gone):
            found[name, ""] = f"{name}: is gone from sys.modules"
        found.update(_told_once(altered))
        found.update(differing(before.things, now.things, imported))
        return found

    def _in_module(
        self, name: str, was: Loaded | None, now: State, imported: frozenset[str]
    ) -> Traces:
        one = now.loaded[name]
        found: Traces = {}
        if was is None:
            # Imported meanwhile. What it took from a patch that was there, it keeps.
            for path, space in one.spaces.items():
                for entry, value in space.held.items():
                    if self._is_foreign(value):
                        at = _joined(path, entry)
                        found[path, entry] = f"{at}: is {_told(value)}"
        first = self._first(name, was, one)
        for path, old, space in _both(first, one):
            for entry, before, after in _changed(old, space):
                # Of what has just been imported, both was told above.
                told = was is None and (is_ours(before) or self._is_foreign(after))
                if told or self._is_own_doing(
                    (path, entry), before, after, now, imported
                ):
                    continue
                at = _joined(path, entry)
                found[path, entry] = f"{at}: {_became(before, after, space, entry)}"
            if old.entries == space.entries and list(old.held) != list(space.held):
                found[path, ""] = f"{path}: its names stand in another order"
        return found

    def _first(self, name: str, was: Loaded | None, now: Loaded) -> Loaded | None:
        """What a module is to be compared with."""
        first = was or self._firsts.get(name)
        return first if first is not None and first.module is now.module else None

    def _in_place(
        self, name: str, was: Loaded | None, one: Loaded
    ) -> Iterator[tuple[str, Altered]]:
        """What has been altered of the definitions of a module, and where.

        Whoever did it: upstream does not do so to itself.
        """
        for path, old, space in _both(self._first(name, was, one), one):
            for altered in space.insides.altered(old.insides):
                yield path, altered

    def _is_foreign(self, value: Any) -> bool:
        """Whether upstream cannot have put this in place itself."""
        made_in = defined_in(value)
        return is_ours(value) or (
            made_in not in self._packages and self._is_own(made_in)
        )

    def _is_own_doing(
        self,
        at: tuple[str, str],
        old: Any,
        new: Any,
        now: State,
        imported: frozenset[str],
    ) -> bool:
        """Whether upstream itself has put `new` where `old` was."""
        if new is ABSENT:
            return old is None or old is ABSENT
        if self._is_foreign(new):
            return False
        if old is None:
            return True
        # A module of upstream may do so as it is imported: with what is its own, or
        # with what a function elsewhere has just made.
        made_in = defined_in(new)
        if made_in not in self._packages or not any(
            map(self._packages.__contains__, imported)
        ):
            return False
        if made_in in imported and made_in != at[0].partition(":")[0]:
            return True
        home = now.loaded.get(made_in)
        return home is not None and not home.holds(new, besides=at)


def _both(first: Loaded | None, now: Loaded) -> Iterator[tuple[str, Space, Space]]:
    """The namespaces of a module that are not as they were, with what they were."""
    for path, space in now.spaces.items() if first is not None else ():
        old = first.spaces.get(path)  # type: ignore[union-attr]
        # A class that is another one is told as the name of it.
        if old is not None and old is not space and old.owner is space.owner:
            yield path, old, space


def _changed(old: Space, new: Space) -> Iterator[tuple[str, Any, Any]]:
    """Names whose entry is another one, with what counts of both: None stands for
    what does not."""
    was, now = old.entries, new.entries
    for name in {**was, **now}:
        if new.has_stepped_aside(old, name):
            yield name, old.held[name], new.held[name]
        elif was.get(name) != now.get(name) and not new.does_as(old, name):
            before = old.held.get(name, None if name in was else ABSENT)
            after = new.held.get(name, ABSENT)
            if before is not after:
                yield name, before, after


def _still_ours(was: Loaded | None, now: Loaded) -> Traces:
    """References in modules of the project to wrappers of ours."""
    found: Traces = {}
    for path, space in now.spaces.items():
        old = was.spaces.get(path) if was is not None else None
        for name, value in space.held.items():
            known = old is not None and (
                old.held.get(name) is value or space.does_as(old, name)
            )
            if not known:
                said = f"{_joined(path, name)}: refers to {_told(value)}"
                found[path, name] = said
    return found


def _told_once(altered: Iterable[tuple[str, Altered]]) -> Traces:
    """What was altered in place, each by one of the names that it has."""
    found: dict[tuple[int | str, str], str] = {}
    for path, one in altered:
        key = id(one.function) if one.function else path, one.what
        at_home = path.partition(":")[0] == getattr(one.function, "__module__", None)
        if key not in found or at_home:
            found[key] = _joined(path, one.name) if one.name else path
    return {(at, what): f"{at}: has other {what}" for (_, what), at in found.items()}


def _joined(path: str, name: str) -> str:
    return f"{path}{'.' if ':' in path else ':'}{name}"


def _became(old: Any, new: Any, now: Space, name: str) -> str:
    if old is ABSENT:
        return f"is new, {_told(new)}"
    if name not in now.names:
        return "is gone"
    if new is ABSENT:
        new = namespace(now.owner).get(name)
    if is_ours(old) and is_ours(new):
        if old is new:
            return f"is {_told(new)}, which has stepped aside"
        return f"is another {_OURS} {_beneath(new)}"
    if getattr(new, "__code__", 0) == getattr(old, "__code__", 1):
        return "is another object of the same code"
    return f"is another object, {_told(new)}"


_OURS = "wrapper of shims before"


def _beneath(wrapper: Any) -> str:
    return _told(getattr(wrapper, "__wrapped__", None))


def _told(value: Any) -> str:
    """A definition in words."""
    if is_ours(value):
        return f"a {_OURS} {_beneath(value)}"
    name = getattr(value, "__qualname__", None) or f"a {type(value).__qualname__}"
    return f"{name} of {defined_in(value)}"
