"""What outlives its revert: wrappers that somebody keeps, and objects made meanwhile.

A wrapper of ours that nobody keeps is gone once it has been taken out, so each one that
still lives is somewhere. Where is not always to be told.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, FunctionType
from typing import Any

from ..engine.slot import ABSENT, is_class, is_module, namespace, resolve
from ..engine.stale import holders_of
from ..engine.wrappers import Mark
from ..errors import ShimsError
from ..registry.model import Companion, Gap, Registry
from ..report import Report
from ..states import State

__all__ = ["is_slot", "leads_to", "outliving", "targets_of"]

_IN_FORCE = (State.APPLIED, State.PARTIAL, State.PENDING, State.BURIED)
_WIDTH = 2000


def outliving(registry: Registry, report: Report) -> tuple[str, ...]:
    """What only a new process is rid of, in words."""
    with _thawed():
        return (*_left_wrappers(registry, report), *_instances(registry, report))


def targets_of(registry: Registry, gap: Gap) -> Iterator[str]:
    owners: list[Gap | Companion] = [gap, *registry.companions_of(gap)]
    for owner in owners:
        for patch in owner.patches:
            yield from patch.candidates


def is_slot(target: str) -> bool:
    """Whether there is something under that name."""
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


def _left_wrappers(registry: Registry, report: Report) -> Iterator[str]:
    """Wrappers of ours that live although they are not in force."""
    skip = tuple({one.partition(".")[0] for one in registry.packages})
    on = {gap.id for gap in report.gaps if gap.state in _IN_FORCE}
    left: list[tuple[Mark, Any, bool]] = []
    for mark in _marks():
        wrapper = mark.wears()
        if wrapper is None:
            continue
        is_reached = leads_to(mark.target, wrapper)
        if not (is_reached and mark.gap in on):
            left.append((mark, wrapper, is_reached))
    for mark, wrapper, is_reached in left:
        if is_reached:
            places = [f"what stands in {mark.target}"]
        else:
            places = _held_by(wrapper, skip)
        for place in places:
            yield f"our wrapper of {mark.target} ({mark.gap}) is held by {place}"


def _held_by(wrapper: Any, skip: tuple[str, ...]) -> list[str]:
    (found,) = holders_of([wrapper], skip)
    return found or [*_in_notes(wrapper), *_in_frames(wrapper)] or [_SOMEWHERE]


def _in_notes(wrapper: Any) -> Iterator[str]:
    """What others note beside a function that they have put before ours."""
    for notes in gc.get_referrers(wrapper):
        if type(notes) is dict and notes.get("__wrapped__") is wrapper:
            for one in gc.get_referrers(notes):
                if type(one) is FunctionType and one.__dict__ is notes:
                    yield f"{one.__module__}:{one.__qualname__}.__wrapped__"


def _marks() -> list[Mark]:
    """All that live, those of another copy of the toolkit as well."""
    objects = gc.get_objects()
    kinds = {id(kind): kind for kind in map(type, objects)}
    wanted = {number for number, kind in kinds.items() if _is_mark(kind)}
    return [one for one in objects if id(type(one)) in wanted]


def _is_mark(kind: type) -> bool:
    module = namespace(kind).get("__module__")
    name = type.__dict__["__name__"].__get__(kind)
    return name == "Mark" and str(module).endswith(".engine.wrappers")


_SOMEWHERE = "what cannot be named: a generator, a context variable, C code"


def _in_frames(wrapper: Any) -> Iterator[str]:
    """Local variables, in all threads, that lead to the wrapper."""
    for top in sys._current_frames().values():
        frame: FrameType | None = top
        while frame is not None:
            if frame.f_globals.get("__name__") != __name__:
                for name, value in list(frame.f_locals.items()):
                    if value is wrapper or getattr(value, "__func__", None) is wrapper:
                        yield f"local variable {name} of {_named(frame)}"
            frame = frame.f_back


def _named(frame: FrameType) -> str:
    return f"{frame.f_globals.get('__name__')}:{frame.f_code.co_name}"


def leads_to(target: str, wrapper: Any) -> bool:
    """Whether the slot holds this wrapper, or one that stands before it."""
    if not is_slot(target):
        return False
    queue, seen = [resolve(target).read()], set[int]()
    for one in queue:
        if one is wrapper:
            return True
        for part in gc.get_referents(one):
            if id(part) not in seen and _is_part(part):
                seen.add(id(part))
                queue.append(part)
        if len(seen) > _WIDTH:
            break
    return False


def _is_part(part: Any) -> bool:
    kind = type(part)
    if kind is dict:
        # Where functions look names up is no part of them.
        return "__builtins__" not in part
    if is_module(part) or is_class(part):
        return False
    # Through a mark one comes to the engine, and from there to everything.
    return not str(namespace(kind).get("__module__")).startswith("ascend_shims.")


def _instances(registry: Registry, report: Report) -> Iterator[str]:
    """Live objects of classes that a gap has patched which is not in force now.

    A gap's module is imported when it is applied, and never else: where it is loaded,
    the gap was in force, or was to be.
    """
    owners: dict[type, list[str]] = {}
    for gap in registry.gaps:
        on = report[gap.id].state in _IN_FORCE
        if on or f"{registry.package_of(gap)}.{gap.module}" not in sys.modules:
            continue
        for target in targets_of(registry, gap):
            if is_slot(target) and is_class(owner := resolve(target).owner):
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
