"""Several registries checked as one, each against the baselines of its own lock.

Who locks a release has seen his patches work on it; of somebody else's patches that
says nothing. Releases are opened, read and parsed once for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..registry.joined import Joined, namespace_of
from .baselines import distribution_of
from .check import Checked
from .lock import Lock, LockError, load_lock
from .run import Run, beside
from .watched import Watched, from_registry

if TYPE_CHECKING:
    from .tree import Tree

__all__ = ["Together", "found_locks", "found_watched"]


def found_watched(registry: Joined) -> list[Watched]:
    """What found registries rely on."""
    return [
        one
        for found in registry.found
        for one in from_registry(found.registry, Path(found.path))
    ]


def found_locks(registry: Joined) -> tuple[dict[str, Lock], list[str]]:
    """The lock of each found registry, by the registry's path.

    A lock that cannot be used counts as empty, and is told of.
    """
    locks, notes = {}, [str(one) for one in registry.unusable]
    for one in registry.found:
        try:
            lock = load_lock(beside(Path(one.path)))
        except LockError as error:
            lock = Lock()
            notes.append(f"the lock of {one.namespace} is left out: {error}")
        locks[one.path] = _within(lock, one.namespace)
    return locks, notes


def _within(lock: Lock, namespace: str) -> Lock:
    """A lock calls gaps as its registry does, and here they have a namespace."""
    baselines = {
        name: replace(
            one, probes={f"{namespace}/{gap}": said for gap, said in one.probes.items()}
        )
        for name, one in lock.baselines.items()
    }
    return Lock(baselines)


@dataclass
class Together(Run):
    """A run whose `lock` is the base's, and that has others for what is found."""

    locks: Mapping[str, Lock] = field(default_factory=dict)
    """By the path of a registry."""
    notes: tuple[str, ...] = ()
    """What a person should know, whatever is checked."""
    _runs: dict[str, Run] = field(default_factory=dict, init=False)

    def check(self, spec: str, package: str = "vllm") -> Checked:
        done = [run.check(spec, package) for run in self._ready(package)]
        labels = dict.fromkeys(
            label for one in done for label in one.baseline.split(" and ")
        )
        if len(labels) > 1:
            labels.pop("nothing", None)
        return Checked(
            baseline=" and ".join(labels),
            release=done[0].release,
            findings=tuple(f for one in done for f in one.findings),
            problems=tuple(dict.fromkeys(p for one in done for p in one.problems)),
            notes=(
                *dict.fromkeys(note for one in done for note in one.notes),
                *self.notes,
                *self._left_out(package),
            ),
            costs=self._costs(),
        )

    def save(self) -> None:
        for run in self._runs.values():
            run.save()

    def prefetch(self, specs: Iterable[str], package: str = "vllm") -> None:
        named = list(specs)
        for run in self._ready(package):
            run.prefetch(named, package)

    def pairs(self, spec: str, package: str) -> list[tuple[Watched, Tree, Tree]]:
        return [p for run in self._ready(package) for p in run.pairs(spec, package)]

    def _ready(self, package: str) -> list[Run]:
        """Those with something to check; one that has no baseline is left out, unless
        there is nothing else, and then says so itself."""
        mine = [run for run in self._parts() if _relies_on(run, package)]
        able = [run for run in mine if not self._lacks_baseline(run, package)]
        return able or mine or [self._part("")]

    def _left_out(self, package: str) -> list[str]:
        release = f"{distribution_of(package)}==VERSION"
        left_out = [
            run.watched[0]
            for run in self._parts()
            if _relies_on(run, package) and self._lacks_baseline(run, package)
        ]
        return [
            f"{namespace_of(one.gap)} is not checked: it has no baseline; `shims lock "
            f"{release} --registry {one.file}` writes one"
            for one in left_out
        ]

    def _lacks_baseline(self, run: Run, package: str) -> bool:
        found = run is not self._runs.get("")
        return found and self.baseline is None and not run._is_locked(package)

    def _parts(self) -> list[Run]:
        return [self._part(file) for file in ("", *self.locks)]

    def _part(self, file: str) -> Run:
        """The run of one found registry; without a path that of all else."""
        if file not in self._runs:
            lock = self.locks[file] if file else self.lock
            self._runs[file] = Run(self.releases, lock, [], self.baseline)
        run = self._runs[file]
        run.watched = [
            one
            for one in self.watched
            if (one.file if one.file in self.locks else "") == file
        ]
        run.search_all = self.search_all
        run._texts, run._shelf = self._texts, self._shelf
        return run


def _relies_on(run: Run, package: str) -> bool:
    return any(one.package == package for one in run.watched)
