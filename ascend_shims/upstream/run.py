"""From what a person asks for to checked releases: opens, fetches, judges."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import Version

from ..environment.versions import parse
from ..errors import ConfigurationError
from .baselines import Locked, distribution_of
from .check import Checked, Finding, paths_needed
from .facts.record import Record
from .fetching import Releases
from .judgement import Baseline, judged
from .lock import Lock
from .parsed import Shelf
from .partial import texts_of
from .texts import Texts
from .traces import Traces
from .tree import Tree
from .unlocked import without_baseline
from .watched import Watched

if TYPE_CHECKING:
    from .sources import Sources
    from .sources.meter import Stats

__all__ = ["NoBaselineError", "Run", "beside", "named_package", "package_of"]


class NoBaselineError(ConfigurationError):
    """There is no baseline to compare a release with."""


def package_of(spec: str) -> str:
    """The import package that a source is about: `torch_npu==2.14.0`'s is torch_npu.

    Whatever does not name a distribution is about vLLM.
    """
    return named_package(spec) or "vllm"


def named_package(spec: str) -> str | None:
    """The import package that a source names itself, as `torch_npu==2.14.0` does."""
    match = re.match(r"([A-Za-z][\w.-]*?)\s*(?:[=<>!~]=|[<>@])", spec)
    return match[1].replace("-", "_") if match else None


def _exact(spec: str) -> str | None:
    """The version that a source is bound to have, as far as its name tells."""
    match = re.fullmatch(r"[A-Za-z][\w.-]*\s*==\s*([\w.+!-]+)", spec.strip())
    return match[1] if match else None


@dataclass
class Run:
    """One command's releases, lock and reliances."""

    releases: Releases
    lock: Lock
    watched: Sequence[Watched]
    baseline: str | None = None
    """A source to compare with, in place of the lock's own choice."""
    search_all: bool = False
    """Look for what is gone in the whole package, even if that has to be fetched."""
    again: str = ""
    """Options that a command to be run next needs too, with a space before each."""
    _locked: Locked = field(init=False)
    _texts: dict[str, Texts] = field(default_factory=dict, init=False)
    _shelf: Shelf = field(default_factory=Shelf, init=False)
    _baselines: dict[str, Baseline] = field(default_factory=dict, init=False)
    _traces: dict[str, Traces] = field(default_factory=dict, init=False)
    """By baseline; one that is the same as a locked release shares those of it."""
    _told: Stats | None = field(default=None, init=False)
    _begun: float = field(default_factory=time.monotonic, init=False)

    def __post_init__(self) -> None:
        self._locked = Locked(self.lock, self.releases)

    @property
    def sources(self) -> Sources:
        return self.releases.sources

    def check(self, spec: str, package: str = "vllm") -> Checked:
        """Check the release that `spec` names against the baseline.

        Raises `SourceUnavailable` or `NoBaselineError`.
        """
        self.prefetch([spec], package)
        new, texts = self.releases[spec], self._texts_of(spec)
        findings: list[Finding] = []
        problems: dict[str, str] = {}
        labels, notes = [], []
        for name, watched in self._groups(package, new.version).items():
            baseline = self._opened_baseline(name, watched, spec)
            fetch = self._fetch(name, spec) if self._is_limited(texts) else None
            done = judged(watched, baseline, texts, new.version, fetch)
            findings += done.findings
            problems |= {problem.path: problem.reason for problem in done.problems}
            labels.append(self._label(name))
            if name in self._locked.notes:
                notes.append(self._locked.notes[name])
        findings += self._alone(package, spec)
        if not findings:
            notes += self._not_for(package, new.label, new.version)
        problems |= {p.path: p.reason for p in texts.problems.values()}
        problems |= new.problems
        return Checked(
            baseline=" and ".join(labels) or "nothing",
            release=new.label,
            findings=tuple(findings),
            problems=tuple(f"{path}: {reason}" for path, reason in problems.items()),
            notes=tuple(notes),
            costs=self._costs(),
        )

    def check_all(self, specs: Sequence[str], package: str = "vllm") -> list[Checked]:
        """Check several releases, and keep what was found out.

        The network is what takes time: fetched side by side, judged one by one.
        Raises `SourceUnavailable` or `NoBaselineError`.
        """
        progress = self.sources.progress
        progress.count("fetching", 0, len(specs))
        self.prefetch(specs, package)
        checked = []
        for done, spec in enumerate(specs, start=1):
            checked.append(self.check(spec, package))
            progress.count(f"checked {spec}", done, len(specs))
        self.save()
        return checked

    def save(self) -> None:
        """Keep what was found out, for the next command."""
        for traces in self._traces.values():
            traces.save()

    def _is_limited(self, texts: Texts) -> bool:
        return texts.is_far and not self.search_all

    def _label(self, name: str) -> str:
        """What people call a baseline."""
        if self.baseline is not None:
            return self.releases[self.baseline].label
        package, _, version = name.partition("==")
        return f"{distribution_of(package).replace('_', '-')} {version}"

    def _fetch(self, name: str, spec: str) -> Callable[[Sequence[str]], None]:
        far = [one for one in (self._origin(name), spec) if one is not None]

        def fetch(modules: Sequence[str]) -> None:
            paths = _files(modules)
            self.releases.fetch(dict.fromkeys(far, paths))

        return fetch

    def _origin(self, name: str) -> str | None:
        """The source that a baseline's text is fetched from, if any."""
        return self.baseline or self._locked.readable(name)

    def _texts_of(self, spec: str) -> Texts:
        if spec not in self._texts:
            self._texts[spec] = texts_of(self.releases[spec])
        return self._texts[spec]

    def _is_baseline(self, name: str, spec: str) -> bool:
        """Whether the release that is checked holds what was locked, as far as that
        can be told without fetching anything."""
        if self.baseline is not None:
            return False
        texts = self._texts_of(spec)
        return not texts.is_far and self.lock.baselines[name].holds(texts)

    def _costs(self) -> dict[str, float]:
        """What was spent since this was asked last."""
        now, stats, told = time.monotonic(), self.sources.stats, self._told
        self._told, begun, self._begun = stats, self._begun, now
        return {
            "bytes": stats.bytes - (told.bytes if told else 0),
            "requests": stats.requests - (told.requests if told else 0),
            "cached": stats.cached - (told.cached if told else 0),
            "seconds": round(now - begun, 3),
        }

    def _traces_of(self, name: str) -> Traces:
        if name not in self._traces:
            self._traces[name] = Traces(self.sources.cache, name)
        return self._traces[name]

    def _opened_baseline(
        self, name: str, watched: Sequence[Watched], spec: str
    ) -> Baseline:
        same = self._is_baseline(name, spec)
        key = spec if same else name
        if key not in self._baselines:
            if same:
                texts = self._texts_of(spec)
            elif self.baseline is not None:
                texts = self._texts_of(self.baseline)
                name = self._named(name, watched[0].package)
            else:
                paths = paths_needed(watched, self.lock, name)
                texts = texts_of(self._locked.source(name, paths))

            def recorded(symbol: str) -> Record | None:
                return self.lock.record(name, symbol)

            locked = self.lock.baselines.get(name)
            self._baselines[key] = Baseline.of(
                texts,
                self._shelf,
                self._traces_of(name),
                recorded,
                tuple(locked.modules) if locked else (),
                locked.probes if locked else {},
            )
        return self._baselines[key]

    def _groups(self, package: str, version: str | None) -> dict[str, list[Watched]]:
        """What is relied on of a release, by the source to compare it with."""
        groups: dict[str, list[Watched]] = {}
        specs: dict[str, str | None] = {}
        for one in self.watched:
            if one.package == package and one.is_for(version):
                # Most have the same ranges, and choosing means reading versions.
                alike = repr((one.ranges, one.claims))
                if self.baseline is None and alike not in specs:
                    specs[alike] = self._chosen(one, version)
                name = self.baseline or specs[alike]
                if name is not None:
                    groups.setdefault(name, []).append(one)
        return groups

    def _chosen(self, watched: Watched, version: str | None) -> str | None:
        """Its baseline; `None` where no locked release is one that it is for.

        Raises `NoBaselineError` where no release is locked at all.
        """
        locked = self.lock.baseline_for(watched, version)
        if locked is None and not self._is_locked(watched.package):
            raise NoBaselineError(
                f"the lock has no baseline for {watched.candidates[-1]}; name a "
                f"release with --baseline {distribution_of(watched.package)}==VERSION, "
                "or in a registry of your own write one with `shims lock "
                f"{distribution_of(watched.package)}==VERSION{self.again}`"
            )
        return locked

    def _is_locked(self, package: str) -> bool:
        names = self.lock.baselines
        return any(name.partition("==")[0] == package for name in names)

    def _unlocked(self, package: str, version: str | None) -> list[Watched]:
        """What is relied on of a release, and no locked release is for."""
        if self.baseline is not None:
            return []
        mine = [w for w in self.watched if w.package == package and w.is_for(version)]
        return [one for one in mine if self._chosen(one, version) is None]

    def _alone(self, package: str, spec: str) -> Iterator[Finding]:
        release = self.releases[spec]
        unlocked = self._unlocked(package, release.version)
        tree = Tree(self._texts_of(spec), self._shelf)
        for one in unlocked:
            yield without_baseline(one, tree, release.version)

    def _not_for(self, package: str, label: str, version: str | None) -> Iterator[str]:
        """Why nothing was checked: no gap is meant for that release."""
        gaps: dict[str, list[Watched]] = {}
        for one in self.watched:
            if one.package == package:
                gaps.setdefault(one.gap, []).append(one)
        left_out = False
        for gap, mine in gaps.items():
            if not any(one.is_for(version) for one in mine):
                said = " and ".join(sorted({one.said_ranges for one in mine}))
                yield f"{gap} is not for {label}: it is for {said}"
                left_out = True
        if left_out:
            yield "to have a gap checked there, widen `versions` in its entry"

    def prefetch(self, specs: Iterable[str], package: str = "vllm") -> None:
        """Bring here, with few requests, what `check` of these releases reads.

        Raises `SourceUnavailable` or `NoBaselineError`.
        """
        named = list(specs)
        for spec in named:
            self.releases.begin(spec)
        needed: list[tuple[str, str, list[str]]] = []
        for spec in named:
            # Where the name tells the version, nothing has to be waited for.
            version = _exact(spec) or self.releases[spec].version
            for name, watched in self._groups(package, version).items():
                if _exact(spec) is None and self._is_baseline(name, spec):
                    continue
                self._begin(name)
                paths = paths_needed(watched, self.lock, self._named(name, package))
                needed.append((spec, name, paths))
        wanted: dict[str, dict[str, None]] = {}
        for spec in named:
            version = _exact(spec) or self.releases[spec].version
            alone = self._unlocked(package, version)
            if alone:
                paths = paths_needed(alone, Lock(), "")
                wanted.setdefault(spec, {}).update(dict.fromkeys(paths))
        for spec, name, paths in needed:
            for one in (self._origin(name), spec):
                if one is not None:
                    wanted.setdefault(one, {}).update(dict.fromkeys(paths))
        self.releases.fetch(wanted)

    def _begin(self, name: str) -> None:
        if self.baseline is not None:
            self.releases.begin(self.baseline)
        else:
            self._locked.begin(name)

    def _named(self, name: str, package: str) -> str:
        """What the lock calls a baseline."""
        if self.baseline is None:
            return name
        return f"{package}=={self.releases[self.baseline].version}"

    def pairs(self, spec: str, package: str) -> list[tuple[Watched, Tree, Tree]]:
        """Each thing relied on, with the baseline's tree and the release's.

        Raises `NoBaselineError` where there is no text of the baseline.
        """
        self.prefetch([spec], package)
        tree = Tree(self._texts_of(spec), self._shelf)
        found = []
        groups = self._groups(package, self.releases[spec].version)
        unlocked = self._unlocked(package, self.releases[spec].version)
        if unlocked and not groups:
            raise NoBaselineError(
                f"no locked release is one that {unlocked[0].candidates[-1]} is "
                "relied on in; name one with --from"
            )
        for name, watched in groups.items():
            baseline = self._opened_baseline(name, watched, spec)
            if baseline.tree.is_stub:
                raise NoBaselineError(
                    f"the text of {name} as it was locked is not at hand; name "
                    "another source of it with --from"
                )
            old = Tree(baseline.texts, self._shelf)
            found += [(one, old, tree) for one in watched]
        return found

    def versions(self, package: str, first: str, *, prereleases: bool) -> list[str]:
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


def _files(modules: Iterable[str]) -> list[str]:
    """Where these modules may lie."""
    stems = [name.replace(".", "/") for name in modules]
    return [f"{stem}{end}" for stem in stems for end in (".py", "/__init__.py")]


def beside(registry: Path) -> Path:
    """Where the lock of a registry lies."""
    return registry.resolve().with_suffix(".lock")
