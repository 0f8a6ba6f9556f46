"""`gap_registry.lock`: the facts of the baseline releases, to compare against.

For each baseline release and each thing relied on: what it is, where it is
defined, how it can be called, a hash of its body, and which modules call or
import it. Those modules are what a later check needs to read of another release.
The file is JSON with sorted keys, so that a change of a fact is one line of diff.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from packaging.version import Version

from ..environment.versions import parse
from ..errors import ConfigurationError
from .compare import judge
from .contract import How
from .facts.symbol import Symbol, find
from .source import Source
from .tree import Tree, module_name
from .watched import Watched

__all__ = [
    "Baseline",
    "Lock",
    "LockError",
    "facts_of",
    "load_lock",
    "make_baseline",
    "save_lock",
]

SCHEMA = 1

_SOUGHT: frozenset[How] = frozenset(
    {
        "wraps_function",
        "replaces_function",
        "overrides_method",
        "subclass_init_signature",
        "replaces_class_binding",
        "calls",
    }
)
"""Ways of relying that are judged by upstream's own calls."""

_MOST_CALLERS = 40


class LockError(ConfigurationError):
    """The lock file cannot be used."""


@dataclass(frozen=True)
class Baseline:
    """One release that we compare with."""

    symbols: Mapping[str, Any]
    """Facts by symbol, plain data."""
    modules: tuple[str, ...]
    """Everything that a check reads of it: what to fetch, of another release too."""


@dataclass(frozen=True)
class Lock:
    """Baselines by distribution and version, `vllm==0.32.0`."""

    baselines: Mapping[str, Baseline] = field(default_factory=dict)

    def baseline_for(self, watched: Watched, version: str | None) -> str | None:
        """The baseline to compare a release with.

        Among those that the patch is for, the newest that is not newer than the
        release, else the oldest.
        """
        split = {name: name.partition("==")[::2] for name in self.baselines}
        known = {
            name: Version(number)
            for name, (package, number) in split.items()
            if package == watched.package and watched.is_claimed(number)
        }
        if not known:
            return None
        wanted = parse(version)
        older = [n for n, v in known.items() if wanted is None or v <= wanted]
        return (
            max(older, key=known.__getitem__)
            if older
            else min(known, key=known.__getitem__)
        )

    def callers(self, baseline: str, symbol: str) -> tuple[str, ...] | None:
        """Modules that called or imported the symbol then, if that was looked up."""
        known = self.baselines.get(baseline)
        found = known.symbols.get(symbol, {}).get("callers") if known else None
        return None if found is None else tuple(found)


def facts_of(symbol: Symbol) -> dict[str, Any]:
    """What the lock says of a symbol, plain data."""
    facts: dict[str, Any] = {
        "kind": symbol.kind,
        "defined": symbol.place,
        "body": symbol.body[:16],
    }
    if symbol.is_callable:
        facts["signature"] = str(symbol.signature)
        facts["decorators"] = list(symbol.decorators)
        facts["returns"] = symbol.return_annotation
    if symbol.cls is not None and symbol.member is None:
        facts["bases"] = [base.qualname for base in symbol.cls.mro[1:]]
    return facts


class _Recording:
    """A source that remembers which files were read."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.label = source.label
        self.seen: set[str] = set()

    def paths(self) -> Sequence[str]:
        return self._source.paths()

    def read(self, path: str) -> bytes:
        self.seen.add(path)
        return self._source.read(path)


def make_baseline(watched: Iterable[Watched], source: Source) -> Baseline:
    """The facts of one release about everything that is relied on."""
    mine = list(watched)
    symbols = _symbols(mine, Tree(source))
    # Judged against itself, a release shows which of its files a check reads.
    recording = _Recording(source)
    tree = Tree(recording)
    for one in mine:
        for reliance in one.reliances():
            facts = symbols.get(reliance.symbol)
            if facts is not None:
                judge(reliance, tree, tree, hints=facts.get("callers"))
    return Baseline(symbols, tuple(sorted(map(module_name, recording.seen))))


def _symbols(watched: Iterable[Watched], tree: Tree) -> dict[str, Any]:
    symbols: dict[str, Any] = {}
    for one in watched:
        for reliance in one.reliances():
            symbol = find(tree, reliance.symbol)
            if symbol is None:
                continue
            facts = symbols.setdefault(reliance.symbol, facts_of(symbol))
            facts.setdefault("how", [])
            if reliance.how not in facts["how"]:
                facts["how"] = sorted([*facts["how"], reliance.how])
            if reliance.how in _SOUGHT and "callers" not in facts:
                facts["callers"] = _callers(tree, symbol)
            break
    return symbols


def _callers(tree: Tree, symbol: Symbol) -> list[str]:
    *outer, name = symbol.qualname.split(".")
    if name.startswith("__") and outer:
        # A constructor is called by the name of its class.
        name = outer[-1]
    found = []
    for mentioning in tree.mentions(name):
        module = tree.module(mentioning)
        if module is None:
            continue
        if name in module.index.calls or name in module.scope.names:
            found.append(mentioning)
    if len(found) > _MOST_CALLERS:
        near = symbol.module.rpartition(".")[0]
        found = [m for m in found if m.startswith(near)]
    return sorted(found)[:_MOST_CALLERS]


def load_lock(path: Path) -> Lock:
    """The lock at `path`; an empty one where there is no such file.

    Raises `LockError` where it cannot be read or is of another kind.
    """
    try:
        data = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return Lock()
    except (OSError, ValueError) as error:
        raise LockError(
            f"{path} is no lock file: {error}; write it anew with `shims lock`"
        ) from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise LockError(f"{path} is of another schema; write it anew with `shims lock`")
    baselines = {
        name: Baseline(one["symbols"], tuple(one["modules"]))
        for name, one in data["baselines"].items()
    }
    return Lock(baselines)


def save_lock(lock: Lock, path: Path) -> None:
    """Write the lock, whole or not at all."""
    baselines = {name: asdict(one) for name, one in lock.baselines.items()}
    data = {"schema": SCHEMA, "baselines": baselines}
    text = json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    with tempfile.NamedTemporaryFile(
        "w", dir=path.parent, prefix=".lock-", delete=False, encoding="utf-8"
    ) as file:
        file.write(text)
    # A temporary file is for its owner alone; a lock is for everybody.
    Path(file.name).chmod(0o644)
    Path(file.name).replace(path)
