"""The proof inside a running process, against the source on disk.

There is no stock interpreter to compare with here, and no moment before. What can be
proved is that each definition has the code of its file and that nothing of ours stands
in any namespace. What cannot be taken back are objects that were made meanwhile, and
references that others keep: they are listed, and then a restart is due.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from ..engine.slot import ABSENT, is_class, is_module, namespace, resolve, split
from ..engine.stale import holders_of
from ..engine.wrappers import mark_of
from ..errors import ShimsError
from ..registry.model import Companion, Gap, Registry
from ..report import Report
from ..states import State
from .inventory.graph import modules_of
from .inventory.names import code_mark
from .live import Upstream, examine, ours
from .result import SCHEMA, Difference
from .source import UnreadableSourceError, read_source

__all__ = ["Patched", "Verification", "verify_process"]


@dataclass(frozen=True, slots=True)
class Patched:
    """A name that is not upstream's because a gap is in force."""

    path: str
    what: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What a running process holds of upstream, compared with the files on disk."""

    modules: int
    """Loaded modules of upstream with a file."""
    definitions: int
    """Functions and methods whose code was compared."""
    compiled: int
    """Modules of these whose text was compiled anew."""
    gaps: Mapping[str, str]
    """State of each gap."""
    patched: tuple[Patched, ...]
    """What gaps that are in force account for."""
    differences: tuple[Difference, ...]
    """What nothing accounts for."""
    held: tuple[str, ...]
    """What was not reached: references to what a patch stands before, references to
    what was taken back, and objects that were made meanwhile."""
    restart: tuple[str, ...]
    """Those of `held` for which only a new process is stock; empty: this one is."""
    unread: Mapping[str, str]
    """Modules whose file could not be read, and why."""
    digest: str
    """Of all code that was compared, as it is in the files."""

    @property
    def is_stock(self) -> bool:
        """Whether upstream is byte-identical here and now."""
        return not self.differences and not self.patched

    @property
    def restart_needed(self) -> bool:
        return bool(self.restart)

    @property
    def ok(self) -> bool:
        """Whether everything is either upstream's or accounted for."""
        return not self.differences and not self.restart

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "schema": SCHEMA,
            "ok": self.ok,
            "is_stock": self.is_stock,
            "restart_needed": self.restart_needed,
            "digest": self.digest,
            "compared": {
                "modules": self.modules,
                "definitions": self.definitions,
                "compiled": self.compiled,
            },
            "gaps": dict(self.gaps),
            "patched": [asdict(one) for one in self.patched],
            "differences": [asdict(one) for one in self.differences],
            "held": list(self.held),
            "restart": list(self.restart),
            "unread": dict(self.unread),
        }


def verify_process(registry: Registry, report: Report) -> Verification:
    """Look at this process. `report` tells which gaps are in force."""
    skip = ("ascend_shims", registry.package)
    modules = modules_of(registry.upstreams)
    upstream = Upstream(
        skip=skip,
        folders=tuple(_folders(registry.upstreams)),
        targets=frozenset(t for g in registry.gaps for t in _targets(registry, g)),
    )
    patched_modules = {split(target)[0] for target in upstream.targets}
    state = blake2b(digest_size=16)
    found: list[Difference] = []
    unread: dict[str, str] = {}
    count = compiled = read = 0
    for name, module in modules.items():
        file = _file_of(module)
        if file is None:
            continue
        try:
            body = read_source(file, compiled=name in patched_modules)
        except UnreadableSourceError as error:
            unread[name] = str(error)
            continue
        read += 1
        compiled += name in patched_modules
        for one in examine(module, body, upstream):
            count += 1
            state.update(f"{one.path} {code_mark(one.code)}\n".encode())
            if one.difference is not None:
                found.append(one.difference)
    found += _strangers(modules, skip)
    patched, differences = _accounted(found, report)
    with _thawed():
        restart = (*_left_wrappers(registry), *_instances(registry, report))
    return Verification(
        modules=read,
        definitions=count,
        compiled=compiled,
        gaps={gap.id: str(gap.state) for gap in report.gaps},
        patched=patched,
        differences=differences,
        held=(*report.stale, *restart),
        restart=restart,
        unread=unread,
        digest=state.hexdigest(),
    )


def _targets(registry: Registry, gap: Gap) -> Iterator[str]:
    owners: list[Gap | Companion] = [gap, *registry.companions_of(gap)]
    for owner in owners:
        for patch in owner.patches:
            yield from patch.candidates


def _folders(packages: tuple[str, ...]) -> Iterator[str]:
    for package in packages:
        path = getattr(sys.modules.get(package), "__path__", ())
        yield from (f"{folder}/" for folder in path)


def _file_of(module: ModuleType) -> Path | None:
    file = namespace(module).get("__file__")
    return Path(file) if type(file) is str and file.endswith(".py") else None


def _strangers(
    modules: Mapping[str, Any], skip: tuple[str, ...]
) -> Iterator[Difference]:
    """Names of upstream's modules and classes that hold something of ours.

    Also those that no file defines: an imported name, or one that was left behind.
    """
    seen: set[int] = set()
    for name, module in modules.items():
        queue: list[tuple[str, Any]] = [(f"{name}:", module)]
        for prefix, owner in queue:
            if id(owner) in seen:
                continue
            seen.add(id(owner))
            for key, value in list(namespace(owner).items()):
                said = ours(value, skip)
                if said:
                    path = f"{prefix}{key}"
                    yield Difference(path, "other-object", f"holds {said}")
                elif is_class(value) and namespace(value).get("__module__") == name:
                    queue.append((f"{prefix}{key}.", value))


def _accounted(
    found: list[Difference], report: Report
) -> tuple[tuple[Patched, ...], tuple[Difference, ...]]:
    """Apart: what gaps in force are known to have changed, and the rest."""
    known = {
        patch.target: gap.id
        for gap in report.gaps
        for patch in gap.patches
        if patch.state is State.APPLIED
    }
    known.update((name, "a reference that moved along") for name in report.rebound)
    homes = {id(resolve(t).read()): gap for t, gap in known.items() if _is_slot(t)}
    patched: dict[str, Patched] = {}
    rest: dict[str, Difference] = {}
    for one in found:
        if one.path in known:
            patched[one.path] = Patched(one.path, known[one.path])
        elif _is_slot(one.path) and id(resolve(one.path).read()) in homes:
            value = homes[id(resolve(one.path).read())]
            patched[one.path] = Patched(one.path, value)
        else:
            rest.setdefault(one.path, one)
    return tuple(patched.values()), tuple(rest.values())


def _is_slot(target: str) -> bool:
    try:
        return resolve(target).read() is not ABSENT
    except ShimsError:
        return False


@contextmanager
def _thawed() -> Iterator[None]:
    """Meanwhile the garbage collector knows all objects again.

    vLLM hides what lives when an engine has started from it, and it is the collector
    that knows what objects there are.
    """
    frozen = gc.get_freeze_count()
    gc.collect()
    gc.unfreeze()
    try:
        yield
    finally:
        if frozen:
            gc.freeze()


def _left_wrappers(registry: Registry) -> Iterator[str]:
    """Wrappers of ours that somebody keeps although they have left their slots."""
    skip = (registry.package.partition(".")[0],)
    left = []
    for one in gc.get_objects():
        if type(one) is not FunctionType or "__ascend_shims__" not in one.__dict__:
            continue
        mark = mark_of(one)
        if mark is not None and not _leads_to(mark.target, one):
            left.append((mark, one))
    for (mark, _), places in zip(
        left, holders_of([w for _, w in left], skip), strict=True
    ):
        for place in places:
            yield f"our wrapper of {mark.target} ({mark.gap}) is held by {place}"


def _leads_to(target: str, wrapper: Any) -> bool:
    """Whether the slot holds this wrapper, or one that stands before it."""
    if not _is_slot(target):
        return False
    queue, seen = [resolve(target).read()], set[int]()
    for one in queue:
        if one is wrapper:
            return True
        for part in gc.get_referents(one):
            if id(part) not in seen and not is_module(part) and type(part) is not dict:
                seen.add(id(part))
                queue.append(part)
        if len(seen) > 200:
            break
    return False


_IN_FORCE = (State.APPLIED, State.PARTIAL, State.PENDING, State.BURIED)


def _instances(registry: Registry, report: Report) -> Iterator[str]:
    """Live objects of classes that a gap has patched which is not in force now.

    A gap's module is imported when it is applied, and never else: where it is loaded,
    the gap was in force, or was to be.
    """
    owners: dict[type, list[str]] = {}
    for gap in registry.gaps:
        on = report[gap.id].state in _IN_FORCE
        if on or f"{registry.package}.{gap.module}" not in sys.modules:
            continue
        for target in _targets(registry, gap):
            if _is_slot(target) and is_class(owner := resolve(target).owner):
                for cls in _heirs(owner):
                    gaps = owners.setdefault(cls, [])
                    gaps += [] if gap.id in gaps else [gap.id]
    counts = Counter(kind for one in gc.get_objects() if (kind := type(one)) in owners)
    for cls, count in counts.items():
        objects = "1 live object" if count == 1 else f"{count} live objects"
        while_on = ", ".join(owners[cls])
        name = f"{namespace(cls)['__module__']}:{cls.__qualname__}"
        yield f"{objects} of {name} may have been made while {while_on} was on"


def _heirs(cls: type) -> list[type]:
    found = [cls]
    for one in found:
        heirs: list[type] = type.__subclasses__(one)
        found += [heir for heir in heirs if heir not in found]
    return found
