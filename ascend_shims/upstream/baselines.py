"""Where the text of a locked release comes from, and what stands in for it.

In this order: the release that is checked, where it holds what was locked; the texts
kept by `shims lock` on this machine; the index; the lock's own facts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from .fetching import Releases
from .keeping import KeptSource, kept
from .lock import Baseline as Facts
from .lock import Lock
from .partial import texts_of
from .stubs import StubSource
from .texts import Texts

if TYPE_CHECKING:
    from .sources import OpenedSource

__all__ = ["Locked", "distribution_of"]

Text: TypeAlias = "OpenedSource | KeptSource | StubSource"

_DISTRIBUTIONS = {"vllm_ascend": "vllm-ascend"}


def distribution_of(package: str) -> str:
    """The distribution that brings an import package."""
    return _DISTRIBUTIONS.get(package, package)


@dataclass
class Locked:
    """The baselines of a lock, by their names there, `vllm==0.32.0`."""

    lock: Lock
    releases: Releases
    notes: dict[str, str] = field(default_factory=dict, init=False)
    """By baseline: why it is known by the lock's facts alone."""
    _found: dict[str, Text] = field(default_factory=dict, init=False)

    def spec(self, name: str) -> str | None:
        """Where an index has the text; None where there is no need to ask."""
        if name in self._found or self._kept(name) is not None:
            return None
        package, _, version = name.partition("==")
        return f"{distribution_of(package)}=={version}"

    def begin(self, name: str) -> None:
        """Start to open what is asked for later."""
        spec = self.spec(name)
        if spec is not None:
            self.releases.begin(spec, self.lock.baselines[name].part)

    def readable(self, name: str) -> str | None:
        """The source that an index has of it, opened; None where there is none.

        Raises `SourceUnavailable` where a server refuses.
        """
        from .sources.errors import IndexUnreachable, NoSuchRelease, NotCached

        spec = self.spec(name)
        if spec is None:
            return None
        try:
            self.releases.begin(spec, self.lock.baselines[name].part)
            self.releases[spec]
        except (IndexUnreachable, NoSuchRelease, NotCached) as error:
            self._stand_in(name, str(error))
            return None
        return spec

    def source(self, name: str, needed: Iterable[str]) -> Text:
        """The text of a baseline, or its facts as text.

        Args:
            needed: paths that a check reads of it.
        """
        spec = self.readable(name)
        if spec is not None:
            facts, source = self.lock.baselines[name], self.releases[spec]
            self.releases.fetch({spec: needed})
            changed = _differing(facts, texts_of(source))
            if changed:
                what = f"{changed} of {len(facts.modules)} files"
                self._stand_in(name, f"{source.label} differs from it in {what}")
            else:
                self._found[name] = source
        return self._found[name]

    def _kept(self, name: str) -> KeptSource | None:
        facts = self.lock.baselines[name]
        package, _, version = name.partition("==")
        cache = self.releases.sources.cache
        label = f"{distribution_of(package)} {version}"
        found = kept(cache, facts.tree, label, version)
        if found is not None:
            self._found[name] = found
        return found

    def _stand_in(self, name: str, why: str) -> None:
        facts = self.lock.baselines[name]
        package, _, version = name.partition("==")
        self._found[name] = StubSource(
            f"{package} {version} (lock)", version, tuple(facts.modules), facts.symbols
        )
        self.notes[name] = (
            f"compared with the facts in the lock, the text of {name} as it was locked "
            f"is not at hand: {why}"
        )


def _differing(facts: Facts, texts: Texts) -> int:
    return sum(facts.is_other(texts, name) for name in facts.modules)
