"""The proof inside a running process, against the source on disk.

There is no stock interpreter to compare with here, and no moment before. What can be
proved is that each definition has the code of its file and that nothing of ours stands
in any namespace. What cannot be taken back are objects that were made meanwhile, and
references that others keep: they are listed, and then a restart is due.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from ..engine.slot import is_class, is_module, namespace, resolve, split
from ..engine.wrappers import mark_of
from ..registry.model import Registry
from ..report import Report
from ..states import State
from .bytecode import packages_of
from .inventory.graph import modules_of
from .inventory.names import code_mark
from .left import is_slot, leads_to, outliving, targets_of
from .live import Examined, examine, ours
from .origin import Upstream
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
    def proved(self) -> bool:
        """Whether there was anything of upstream to look at."""
        return self.modules > 0

    @property
    def is_stock(self) -> bool:
        """Whether upstream's definitions are its own here and now: proved so."""
        return self.proved and not self.differences and not self.patched

    @property
    def restart_needed(self) -> bool:
        return bool(self.restart)

    @property
    def ok(self) -> bool:
        """Whether everything is either upstream's or accounted for."""
        return self.proved and not self.differences and not self.restart

    def __str__(self) -> str:
        """A line for a person."""
        if not self.proved:
            return "Nothing of upstream is loaded here, so nothing was proved."
        said = f"{self.definitions:,} definitions in {self.modules:,} modules: "
        counts = {
            "different": len(self.differences),
            "patched by gaps in force": len(self.patched),
            "to be restarted for": len(self.restart),
        }
        found = [f"{count} {what}" for what, count in counts.items() if count]
        return said + (", ".join(found) or "all of them upstream's own")

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "schema": SCHEMA,
            "ok": self.ok,
            "proved": self.proved,
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
    skip = ("ascend_shims", *registry.packages)
    modules = modules_of(registry.upstreams)
    upstream = Upstream(
        skip=skip,
        folders=tuple(_folders(registry.upstreams)),
        targets=frozenset(t for g in registry.gaps for t in targets_of(registry, g)),
        roots=registry.upstreams,
    )
    patched_modules = {split(target)[0] for target in upstream.targets}
    bodies, unread = _read(modules, patched_modules)
    used = {name: packages_of(body) for name, body in bodies.items()}
    state = blake2b(digest_size=16)
    found: list[Examined] = []
    count = 0
    for name, body in bodies.items():
        for one in examine(modules[name], body, upstream, used):
            if one.code is not None:
                count += 1
                state.update(f"{one.path} {code_mark(one.code)}\n".encode())
            if one.difference is not None:
                found.append(one)
    # What is ours is said to be, and not only to be of some stranger.
    found = [*_strangers(modules, skip), *_replaced(modules), *found]
    patched, differences = _accounted(found, report)
    restart = outliving(registry, report)
    return Verification(
        modules=len(bodies),
        definitions=count,
        compiled=len(patched_modules & set(bodies)),
        gaps={gap.id: str(gap.state) for gap in report.gaps},
        patched=patched,
        differences=differences,
        held=(*report.stale, *restart),
        restart=restart,
        unread=unread,
        digest=state.hexdigest(),
    )


def _read(
    modules: Mapping[str, Any], patched: set[str]
) -> tuple[dict[str, CodeType], dict[str, str]]:
    """The code in the modules' files, and why a file could not be read."""
    bodies: dict[str, CodeType] = {}
    unread: dict[str, str] = {}
    for name, module in modules.items():
        file = _file_of(module)
        if file is None:
            continue
        try:
            bodies[name] = read_source(file, compiled=name in patched)
        except UnreadableSourceError as error:
            unread[name] = str(error)
    return bodies, unread


def _folders(packages: tuple[str, ...]) -> Iterator[str]:
    for package in packages:
        path = getattr(sys.modules.get(package), "__path__", ())
        yield from (f"{folder}/" for folder in path)


def _file_of(module: ModuleType) -> Path | None:
    file = namespace(module).get("__file__")
    return Path(file) if type(file) is str and file.endswith(".py") else None


def _strangers(modules: Mapping[str, Any], skip: tuple[str, ...]) -> Iterator[Examined]:
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
                    what = f"holds {said}"
                    difference = Difference(path, "other-object", what)
                    yield Examined(path, None, difference)
                elif is_class(value) and namespace(value).get("__module__") == name:
                    queue.append((f"{prefix}{key}.", value))


def _replaced(modules: Mapping[str, Any]) -> Iterator[Examined]:
    """Modules that are others in `sys.modules` than in the package they are in."""
    for name, module in modules.items():
        parent, _, child = name.rpartition(".")
        held = namespace(modules[parent]).get(child) if parent in modules else None
        is_other = is_module(held) and held is not module
        if is_other and namespace(held).get("__name__") == name:
            what = f"is another module in sys.modules than in {parent}"
            yield Examined(name, None, Difference(name, "other-object", what))


def _accounted(
    found: list[Examined], report: Report
) -> tuple[tuple[Patched, ...], tuple[Difference, ...]]:
    """Apart: what gaps in force are known to have changed, and the rest."""
    known = {
        patch.target: gap.id
        for gap in report.gaps
        for patch in gap.patches
        if patch.state is State.APPLIED
    }
    known.update((name, "a reference that moved along") for name in report.rebound)
    homes = {id(resolve(t).read()): gap for t, gap in known.items() if is_slot(t)}
    patched: dict[str, Patched] = {}
    rest: dict[str, Difference] = {}
    for one in found:
        if one.path in known:
            patched[one.path] = Patched(one.path, known[one.path])
        elif is_slot(one.path) and id(resolve(one.path).read()) in homes:
            value = homes[id(resolve(one.path).read())]
            patched[one.path] = Patched(one.path, value)
        elif (gap := _in_force(one.wrapper, known)) is not None:
            patched[one.path] = Patched(one.path, f"a reference to {gap}'s wrapper")
        elif one.difference is not None:
            rest.setdefault(one.path, one.difference)
    return tuple(patched.values()), tuple(rest.values())


def _in_force(wrapper: Any, known: Mapping[str, str]) -> str | None:
    """The gap of a wrapper that stands where it belongs."""
    mark = mark_of(wrapper) if wrapper is not None else None
    if mark is None or mark.target not in known or not leads_to(mark.target, wrapper):
        return None
    return mark.gap
