"""`gap_registry.lock`: the facts of the baseline releases, to compare against.

For each baseline release and each thing relied on: what it is, where it is
defined, how it can be called, hashes of its body, and which modules call or
import it. Those modules are what a later check needs to read of another release;
each has the hash of its text, which tells whether a text is the one that was locked.
The file is JSON with sorted keys, so that a change of a fact is one line of diff.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from packaging.version import Version

from ..environment.versions import parse
from ..errors import ConfigurationError
from ..files import write_whole
from ..own_files import text_of
from .calls import is_reached
from .compare import judge
from .contract import How
from .facts.record import Reached, Record
from .facts.recording import record_of
from .facts.symbol import Symbol, find, split
from .judges.sites import keywords_passed
from .lookups import is_looked_up, users
from .parsed import digest_of
from .probes import answer
from .source import Source
from .sources.parts import Part, part_of
from .texts import Texts
from .tree import Module, Tree, module_name
from .watched import Watched

__all__ = [
    "Baseline",
    "Lock",
    "LockError",
    "load_lock",
    "make_baseline",
    "save_lock",
    "tree_hash",
]

SCHEMA = 2

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
_MOST_OF_A_MEMBER = 20
"""Modules that are kept as callers, wherever they lie. A method whose name more modules
call shares it with others, and those nearby are its own."""


class LockError(ConfigurationError):
    """The lock file cannot be used."""


@dataclass(frozen=True)
class Baseline:
    """One release that we compare with."""

    symbols: Mapping[str, Record]
    """Facts by symbol."""
    modules: Mapping[str, str]
    """Everything that a check reads of it, with the hash of its text: what to fetch,
    of another release too."""
    tree: str
    """Hash of all its files together."""
    probes: Mapping[str, str] = field(default_factory=dict)
    """What the removal probe of each gap says of it: yes, no, unknown."""
    part: Part | None = field(default=None, compare=False)
    """Where a released wheel has what a check reads: where it was locked from, and no
    fact of the release."""

    def is_other(self, texts: Texts, module: str) -> bool:
        """Whether a release has another text of a module than was locked."""
        return short(texts.digest(module)) != self.modules[module]

    def holds(self, texts: Texts) -> bool:
        """Whether a release has, of all that is read, the text that was locked."""
        return not any(self.is_other(texts, module) for module in self.modules)


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

    def record(self, baseline: str, symbol: str) -> Record | None:
        """The facts of a symbol in a baseline."""
        known = self.baselines.get(baseline)
        return known.symbols.get(symbol) if known else None


def short(digest: str) -> str:
    """As a lock writes it: enough to tell two texts apart."""
    return digest[:16]


def tree_hash(texts: Texts) -> str:
    """Names all files of a release together."""
    lines = [f"{path} {texts.digest(name)}" for name, path in texts.paths.items()]
    return digest_of("\n".join(sorted(lines)).encode())


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
    """The facts of one release about everything that is relied on.

    Raises `LockError` where a file could not be read: facts would be missing.
    """
    mine = list(watched)
    texts = Texts(source)
    symbols = _symbols(mine, Tree(texts))
    for problem in texts.problems.values():
        raise LockError(
            f"{source.label} cannot be locked: {problem.path} could not be read "
            f"({problem.reason}); lock it where all of it can be"
        )
    # Judged against itself, a release shows which of its files a check reads.
    recording = _Recording(source)
    tree = Tree(recording)
    probes = {}
    for one in mine:
        if one.probe:
            probes[one.gap] = answer(one.probe, tree).truth
        for reliance in one.reliances():
            facts = symbols.get(reliance.symbol)
            if facts is None:
                continue
            if facts.reached == "no" and reliance.how == "wraps_function":
                # No check looks all over a release for who reaches it.
                find(tree, reliance.symbol)
            else:
                judge(reliance, tree, tree, hints=facts.callers)
    read = sorted(map(module_name, recording.seen))
    modules = {name: short(texts.digest(name)) for name in read}
    sought = {split(one)[0] for watch in mine for one in watch.candidates}
    part = part_of(source, recording.seen, sought)
    return Baseline(symbols, modules, tree_hash(texts), probes, part)


def _symbols(watched: Iterable[Watched], tree: Tree) -> dict[str, Record]:
    symbols: dict[str, Record] = {}
    for one in watched:
        for reliance in one.reliances():
            symbol = find(tree, reliance.symbol)
            if symbol is None:
                continue
            known = symbols.get(reliance.symbol) or record_of(symbol)
            how = tuple(sorted({*known.how, reliance.how}))
            known = msgspec.structs.replace(known, how=how)
            if reliance.how in _SOUGHT and known.callers is None:
                known = _used(known, tree, symbol)
            if reliance.how == "subclass_init_signature":
                passed = tuple(sorted(keywords_passed(tree, symbol)))
                known = msgspec.structs.replace(known, passed=passed)
            symbols[reliance.symbol] = known
            break
    return symbols


def _used(record: Record, tree: Tree, symbol: Symbol) -> Record:
    """The facts with who calls it, imports it and looks it up."""
    callers = _callers(tree, symbol)
    module, _, qualname = symbol.name.partition(":")
    imported: tuple[str, ...] = ()
    reached: Reached = "no"
    if "." in qualname:
        if is_reached(tree, symbol, callers, certainly=True):
            reached = "yes"
        elif is_reached(tree, symbol, callers):
            reached = "perhaps"
    else:
        parsed = tree.module(module)
        if is_looked_up(tree, module, qualname, callers):
            reached = "yes"
        if parsed is not None and symbol.module != module:
            imported = tuple(sorted(set(users(parsed, qualname))))
    return msgspec.structs.replace(
        record, callers=tuple(callers), reached=reached, users=imported
    )


def _callers(tree: Tree, symbol: Symbol) -> list[str]:
    # A module has no name of its own but that of its file.
    named = symbol.qualname or symbol.module.rpartition(".")[2]
    *outer, name = named.split(".")
    if name.startswith("__") and outer:
        # A constructor is called by the name of its class.
        name, outer = outer[-1], []
    found = []
    for mentioning in tree.mentions(name):
        module = tree.module(mentioning)
        if module is None:
            continue
        if name in module.index.calls or _has_name(module, name):
            found.append(mentioning)
    if len(found) > (_MOST_OF_A_MEMBER if outer else _MOST_CALLERS):
        near = symbol.module.rpartition(".")[0]
        found = [m for m in found if m.startswith(near)]
    return sorted(found)[:_MOST_CALLERS]


def _has_name(module: Module, name: str) -> bool:
    """Whether it binds the name, or imports it by another."""
    nested = (binding for binding, _ in module.index.imports)
    here = (b for several in module.scope.names.values() for b in several)
    return name in module.scope.names or any(
        binding.original == name for binding in (*here, *nested)
    )


def load_lock(path: Path) -> Lock:
    """The lock at `path`; an empty one where there is no such file.

    Raises `LockError` where it cannot be read or is of another kind.
    """
    folder = shlex.quote(str(path.parent))
    anew = f"write it anew, as in `shims lock vllm==0.32.0 --registry {folder}`"
    try:
        data = json.loads(text_of(path))
    except FileNotFoundError:
        return Lock()
    except (OSError, ValueError) as error:
        why: object = error
        if isinstance(error, json.JSONDecodeError):
            why = f"line {error.lineno} is not JSON"
        raise LockError(f"{path} is no lock file: {why}; {anew}") from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise LockError(f"{path} is of another schema; {anew}")
    try:
        baselines = msgspec.convert(data["baselines"], dict[str, Baseline])
    except (KeyError, msgspec.ValidationError) as error:
        raise LockError(f"{path} is damaged: {error}; {anew}") from error
    return Lock(baselines)


def save_lock(lock: Lock, path: Path) -> None:
    """Write the lock, whole or not at all."""
    baselines = msgspec.to_builtins(dict(lock.baselines), order="sorted")
    data = {"schema": SCHEMA, "baselines": baselines}
    text = json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    write_whole(path, text)
