"""From what a person asks for to checked releases: opens, prefetches, judges."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import Version

from ..environment.versions import parse
from ..errors import ConfigurationError
from .check import Checked, Finding, check, paths_needed
from .lock import Lock
from .tree import Tree
from .watched import Watched

if TYPE_CHECKING:
    from .sources import OpenedSource, Sources

__all__ = ["NoBaselineError", "Run", "beside", "distribution_of", "package_of"]

_DISTRIBUTIONS = {"vllm_ascend": "vllm-ascend"}


class NoBaselineError(ConfigurationError):
    """There is no baseline to compare a release with."""


def distribution_of(package: str) -> str:
    """The distribution that brings an import package."""
    return _DISTRIBUTIONS.get(package, package)


def package_of(spec: str) -> str:
    """The import package that a source is about: `torch_npu==2.14.0`'s is torch_npu.

    Whatever does not name a distribution is about vLLM.
    """
    match = re.match(r"([A-Za-z][\w.-]*?)\s*(?:[=<>!~]=|[<>@])", spec)
    return match[1].replace("-", "_") if match else "vllm"


@dataclass
class Run:
    """One command's sources, lock and reliances."""

    sources: Sources
    lock: Lock
    watched: Sequence[Watched]
    baseline: str | None = None
    """A source to compare with, in place of the lock's own choice."""

    def check(self, spec: str, package: str = "vllm") -> Checked:
        """Check the release that `spec` names against the baseline.

        Raises `SourceUnavailable` or `NoBaselineError`.
        """
        begun = time.monotonic()
        before = self.sources.stats
        new = self._open(spec)
        groups = self._groups(package, new.version)
        self.prefetch(spec, package)
        new_tree = Tree(new)
        findings: list[Finding] = []
        for baseline, watched in groups.items():
            findings += self._checked(baseline, watched, new_tree, new.version)
        after = self.sources.stats
        problems = [f"{p.path}: {p.reason}" for p in new_tree.problems]
        problems += [f"{path}: {reason}" for path, reason in new.problems.items()]
        return Checked(
            baseline=" and ".join(self._open(b).label for b in groups) or "nothing",
            release=new.label,
            findings=tuple(findings),
            problems=tuple(problems),
            costs={
                "bytes": after.bytes - before.bytes,
                "requests": after.requests - before.requests,
                "seconds": round(time.monotonic() - begun, 3),
            },
        )

    def _checked(
        self, baseline: str, watched: list[Watched], new: Tree, version: str | None
    ) -> tuple[Finding, ...]:
        old = self._open(baseline)
        if baseline not in self._trees:
            self._trees[baseline] = Tree(old)
        facts = f"{watched[0].package}=={old.version}"

        def hints(symbol: str) -> Sequence[str] | None:
            return self.lock.callers(facts, symbol)

        return check(watched, self._trees[baseline], new, version=version, hints=hints)

    def _groups(self, package: str, version: str | None) -> dict[str, list[Watched]]:
        """What is relied on of a release, by the source to compare it with."""
        groups: dict[str, list[Watched]] = {}
        for one in self.watched:
            if one.package == package and one.is_for(version):
                spec = self.baseline or self._locked(one, version)
                groups.setdefault(spec, []).append(one)
        return groups

    def _locked(self, watched: Watched, version: str | None) -> str:
        distribution = distribution_of(watched.package)
        locked = self.lock.baseline_for(watched, version)
        if locked is None:
            raise NoBaselineError(
                f"the lock has no baseline for {watched.candidates[-1]}; write one "
                f"with `shims lock {distribution}==VERSION`, or name a release with "
                "--baseline"
            )
        return f"{distribution}=={locked.partition('==')[2]}"

    def prefetch(self, spec: str, package: str = "vllm") -> None:
        """Bring here, with few requests, what `check` of the same release reads."""
        new = self._open(spec)
        for baseline, watched in self._groups(package, new.version).items():
            old = self._open(baseline)
            needed = paths_needed(watched, self.lock, f"{package}=={old.version}")
            self._fetch(new, needed)
            self._fetch(old, needed)

    @cached_property
    def _trees(self) -> dict[str, Tree]:
        return {}

    @cached_property
    def _opened(self) -> dict[str, OpenedSource]:
        return {}

    def pairs(self, spec: str, package: str) -> list[tuple[Watched, Tree, Tree]]:
        """Each thing relied on, with the baseline's tree and the release's."""
        new = self._open(spec)
        self.prefetch(spec, package)
        tree = Tree(new)
        found = []
        for baseline, watched in self._groups(package, new.version).items():
            old = Tree(self._open(baseline))
            found += [(one, old, tree) for one in watched]
        return found

    def _open(self, spec: str) -> OpenedSource:
        if spec not in self._opened:
            self._opened[spec] = self.sources.open(spec)
        return self._opened[spec]

    @staticmethod
    def _fetch(source: OpenedSource, needed: Iterable[str]) -> None:
        there = set(source.paths())
        source.prefetch([path for path in needed if path in there])

    def releases(self, package: str, first: str, *, prereleases: bool) -> list[str]:
        """Every release of a package from `first` on, oldest first."""
        distribution = distribution_of(package)
        found = []
        for raw in self.sources.releases(distribution):
            version = parse(raw)
            if version is None or version < Version(first):
                continue
            if version.is_prerelease and not prereleases:
                continue
            found.append(raw)
        return found


def beside(registry: Path) -> Path:
    """Where the lock of a registry lies."""
    return registry.resolve().with_suffix(".lock")
