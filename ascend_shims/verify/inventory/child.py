"""What runs in an interpreter that `shims verify` starts.

    python -c BOOT job.json

`BOOT` loads this package by its path. A job without a toolkit describes upstream as it
is; one with a toolkit also has it applied and reverted, and looks after each time
whether the very same objects are back.
"""

from __future__ import annotations

import gc
import marshal
import os
import sys
import time
from collections.abc import Callable
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any

from .elsewhere import Elsewhere
from .graph import Walk
from .held import differences
from .limits import follow_forks
from .raw import is_class, is_module, mro, namespace
from .surroundings import surroundings

__all__ = ["main"]

_ABSENT = object()

# By reference, as all that is written with when a gap has left its traces: it may have
# put something of its own in the place of any function of Python.
_OPEN, _WRITE, _CLOSE, _EXIT = os.open, os.write, os.close, os._exit
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
_DUMPS, _LOADS, _CLOCK = marshal.dumps, marshal.loads, time.monotonic


def _save(path: str, data: bytes) -> None:
    file = _OPEN(path, _NEW, 0o600)
    try:
        while data:
            data = data[_WRITE(file, data) :]
    finally:
        _CLOSE(file)


class _Child:
    def __init__(self, job: dict[str, Any]) -> None:
        self._job = job
        self._roots: tuple[str, ...] = tuple(job["roots"])
        self._answers: dict[str, str] = {}
        self.answer: dict[str, Any] = {
            "stages": [],
            "graphs": {},
            "failed": {},
            "absent": [],
        }

    # Upstream

    def import_upstream(self) -> None:
        for name in self._job["modules"]:
            self.turn(f"upstream is imported: {name}", "")
            try:
                import_module(name)
            except BaseException as error:  # noqa: BLE001 - kept and reported
                if _is_absent(name, error):
                    self.answer["absent"].append(name)
                    continue
                self.answer["failed"][name] = _said(error)

    def turn(self, what: str, gap: str) -> None:
        """Note what comes now, for whoever waits, or finds this process dead."""
        _save(self._job["progress"], f"{gap}\n{what}".encode())

    def ask(self) -> None:
        """Note what upstream answers, nothing being applied."""
        self._answers = _answers()

    def walk(self) -> Walk:
        self._elsewhere = Elsewhere(self._roots, tuple(self._job["strangers"]))
        more = {"elsewhere": self._elsewhere.described()}
        walk = Walk(self._roots, self._surroundings(), self._job["varying"], more)
        # All of this stays: whoever looks through the heap passes it by.
        gc.freeze()
        return walk

    def _surroundings(self) -> Any:
        return surroundings(self._roots, self._answers)

    def look(self) -> Walk:
        """Describe upstream as it is after the start."""
        self.turn("upstream is described", "")
        self.ask()
        walk, mode = self.walk(), self._job["mode"]
        self.describe("off" if mode == "in place" else mode, walk)
        return walk

    def describe(self, name: str, walk: Walk) -> None:
        """Write what `walk` has seen, for the comparison with other interpreters."""
        nodes = walk.describe()
        # Version 2 writes equal values as equal bytes, whoever else refers to them.
        upstream = _DUMPS(nodes[: walk.upstream], 2)
        process = _DUMPS(nodes[walk.upstream :], 2)
        file = f"{self._job['folder']}/{name}.graph"
        _save(file, _DUMPS((walk.upstream, upstream, process)))
        self.answer["graphs"][name] = {
            "file": file,
            "digest": blake2b(upstream, digest_size=16).hexdigest(),
            "process": blake2b(process, digest_size=16).hexdigest(),
            "varying": sorted(walk.varying),
            "extent": walk.extent._asdict(),
        }

    # The toolkit

    def load_toolkit(self) -> Any:
        return import_module(self._job["toolkit"])

    def start_switched_off(self) -> None:
        """Do what vLLM does with our plugin, everything being switched off."""
        found = os.environ.get("ASCEND_SHIMS")
        os.environ["ASCEND_SHIMS"] = "off"
        try:
            import_module(f"{self._job['toolkit']}.plugin").register()
        finally:
            del os.environ["ASCEND_SHIMS"]
            if found is not None:
                os.environ["ASCEND_SHIMS"] = found

    def stage(self, name: str, gaps: list[dict[str, Any]], walk: Walk) -> Walk | None:
        """Apply `gaps`, revert, and look. Returns the walk for the next stage; None
        where nothing can be looked at any more."""
        started = _CLOCK()
        stage: dict[str, Any] = {
            "name": name,
            "gaps": [],
            "errors": [],
            "differences": [],
        }
        self.answer["stages"].append(stage)
        try:
            found = self._applied_and_reverted(stage, gaps, walk)
            stage["differences"] = [one._asdict() for one in found]
            stage["seconds"] = round(_CLOCK() - started, 2)
            return self.walk() if found else walk
        # Python itself may be broken by what was left.
        except BaseException as error:  # noqa: BLE001 - kept and reported
            said = "after it, nothing could be looked at any more, nor tried: "
            stage["errors"].append(said + _said(error))
            return None

    def prove_gaps(self, walk: Walk | None) -> None:
        """Each gap alone, with what it needs, and then all."""
        gaps = self._job["gaps"]
        for gap in gaps:
            needed = [one for one in gaps if one["id"] in gap["with"]]
            walk = walk and self.stage(gap["id"], needed, walk)
        walk = walk and self.stage("all", gaps, walk)
        if walk is not None:
            self.turn("upstream is described again", "")
            self.ask()
            self.describe("reverted", self.walk())

    def _applied_and_reverted(
        self, stage: dict[str, Any], gaps: list[dict[str, Any]], walk: Walk
    ) -> list[Any]:
        toolkit = self.load_toolkit()
        only = [one["id"] for one in gaps]
        before = {gap["id"]: _targets(gap) for gap in gaps}
        turn = "all gaps" if stage["name"] == "all" else stage["name"]
        gap = "" if stage["name"] == "all" else stage["name"]
        self.turn(f"{turn}: applied", gap)
        errors = stage["errors"]
        _tried("apply()", lambda: toolkit.apply(only=only), errors)
        report = _tried("status()", toolkit.status, errors)
        stage["gaps"] = [_standing(report, gap, before[gap["id"]]) for gap in gaps]
        self.turn(f"{turn}: reverted", gap)
        _tried("revert()", toolkit.revert, errors)
        self.turn(f"{turn}: reverted, and now looked for", gap)
        return differences(walk, self._surroundings(), self._elsewhere)

    def apply_first(self) -> list[str]:
        """Apply everything before upstream is imported. Returns what went wrong."""
        errors: list[str] = []
        self.turn("all gaps are applied", "")
        toolkit, only = self.load_toolkit(), [one["id"] for one in self._job["gaps"]]
        _tried("apply()", lambda: toolkit.apply(only=only), errors)
        return errors

    def revert_first(self, errors: list[str]) -> None:
        """See what has been applied since, and revert."""
        started = _CLOCK()
        toolkit = self.load_toolkit()
        stage: dict[str, Any] = {"name": "before upstream"}
        applied = {gap["id"]: _targets(gap) for gap in self._job["gaps"]}
        report = _tried("status()", toolkit.status, errors)
        self.turn("all gaps are reverted", "")
        _tried("revert()", toolkit.revert, errors)
        stage["gaps"] = [
            _standing(report, gap, applied[gap["id"]]) for gap in self._job["gaps"]
        ]
        stage["errors"] = errors
        stage["differences"] = []
        stage["seconds"] = round(_CLOCK() - started, 2)
        self.answer["stages"].append(stage)


def _said(error: BaseException) -> str:
    lines = f"{type(error).__name__}: {error}".splitlines()
    return lines[0] if lines else type(error).__name__


def _tried(what: str, call: Callable[[], Any], errors: list[str]) -> Any:
    try:
        return call()
    except BaseException as error:  # noqa: BLE001 - kept and reported
        errors.append(f"{what}: {_said(error)}")
        return None


def _is_absent(name: str, error: BaseException) -> bool:
    """Whether this release does not have the module, and that is all."""
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    return missing is not None and f"{name}.".startswith(f"{missing}.")


def _targets(gap: dict[str, Any]) -> dict[str, Any]:
    """What the targets of a gap hold now, by target."""
    return {target: _raw(target) for target in gap["targets"]}


def _raw(target: str) -> Any:
    module, _, qualname = target.partition(":")
    one: Any = sys.modules.get(module, _ABSENT)
    for name in qualname.split("."):
        if is_class(one):
            owners = [namespace(base) for base in mro(one)]
        elif is_module(one):
            owners = [namespace(one)]
        else:
            return _ABSENT
        one = next((held[name] for held in owners if name in held), _ABSENT)
    return one


def _standing(report: Any, gap: dict[str, Any], others: dict[str, Any]) -> Any:
    """Where a gap stands by its report, and how many of its targets hold something
    else now than in `others`."""
    if report is None:
        reason = "the toolkit did not come to say where it stands"
        return {
            "id": gap["id"],
            "state": "unknown",
            "reason": reason,
            "patches": gap["patches"],
            "applied": 0,
            "changed": 0,
        }
    found = report[gap["id"]]
    applied = [patch.target for patch in found.patches if str(patch.state) == "applied"]
    changed = [
        target
        for target, other in others.items()
        if target in applied and _raw(target) is not other
    ]
    return {
        "id": gap["id"],
        "state": str(found.state),
        "reason": found.reason,
        "patches": gap["patches"],
        "applied": len(applied),
        "changed": len(changed),
    }


def _answers() -> dict[str, str]:
    """What upstream says when it is asked, which may not depend on us."""
    module = sys.modules.get("vllm.config")
    if module is None:
        return {}
    try:
        said = module.VllmConfig().compute_hash()
    except Exception as error:  # noqa: BLE001 - kept, and compared like an answer
        said = f"{type(error).__name__}: {error}"
    return {"vllm.config:VllmConfig().compute_hash()": said}


def main(path: str) -> None:
    started = _CLOCK()
    job = _LOADS(Path(path).read_bytes())
    sys.path[:] = job["path"]
    child = _Child(job)
    # Before anybody else registers there.
    follow_forks()
    mode, errors = job["mode"], list[str]()
    if mode == "in place":
        child.load_toolkit()
        child.start_switched_off()
    elif mode == "first":
        errors = child.apply_first()
    # From one place for all: upstream notes the call stack now and then.
    child.import_upstream()
    if mode == "first":
        child.revert_first(errors)
        _tried("after that, upstream cannot be looked at", child.look, errors)
    else:
        walk = child.look()
        if mode == "in place":
            child.prove_gaps(walk)
    child.answer["toolkit"] = sorted(
        name for name in sys.modules if name.partition(".")[0] in job["strangers"]
    )
    child.answer["seconds"] = round(_CLOCK() - started, 2)
    _save(job["answer"], _DUMPS(child.answer, 2))
    # Upstream may have started threads that keep an interpreter from ending.
    _EXIT(0)
