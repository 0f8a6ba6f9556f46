"""What runs in an interpreter that `shims verify` starts.

    python -c BOOT job.json

`BOOT` loads this package by its path. A job without a toolkit describes upstream as it
is; one with a toolkit also has it applied and reverted, and looks after each time
whether the very same objects are back.
"""

from __future__ import annotations

import gc
import json
import marshal
import os
import sys
import time
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any

from .graph import Walk
from .held import differences
from .raw import is_class, is_module, mro, namespace
from .surroundings import surroundings

__all__ = ["main"]

_ABSENT = object()


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
            try:
                import_module(name)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - kept, reported
                if _is_absent(name, error):
                    self.answer["absent"].append(name)
                    continue
                said = f"{type(error).__name__}: {error}".splitlines()[0]
                self.answer["failed"][name] = said

    def ask(self) -> None:
        """Note what upstream answers, nothing being applied."""
        self._answers = _answers()

    def walk(self) -> Walk:
        walk = Walk(self._roots, self._surroundings(), self._job["varying"])
        # All of this stays: whoever looks through the heap passes it by.
        gc.freeze()
        return walk

    def _surroundings(self) -> Any:
        return surroundings(self._roots, self._answers)

    def describe(self, name: str, walk: Walk) -> None:
        """Write what `walk` has seen, for the comparison with other interpreters."""
        nodes = walk.describe()
        # Version 2 writes equal values as equal bytes, whoever else refers to them.
        upstream = marshal.dumps(nodes[: walk.upstream], 2)
        process = marshal.dumps(nodes[walk.upstream :], 2)
        file = Path(self._job["folder"], f"{name}.graph")
        file.write_bytes(marshal.dumps((walk.upstream, upstream, process)))
        self.answer["graphs"][name] = {
            "file": str(file),
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

    def stage(self, name: str, gaps: list[dict[str, Any]], walk: Walk) -> Walk:
        """Apply `gaps`, revert, and look. Returns the walk for the next stage."""
        started = time.monotonic()
        toolkit = self.load_toolkit()
        only = [one["id"] for one in gaps]
        stage: dict[str, Any] = {"name": name, "gaps": [], "errors": []}
        before = {gap["id"]: _targets(gap) for gap in gaps}
        stage["gaps"] = self._applied(toolkit, only, gaps, before, stage["errors"])
        _revert(toolkit, stage["errors"])
        found = differences(walk, self._surroundings())
        stage["differences"] = [one._asdict() for one in found]
        stage["seconds"] = round(time.monotonic() - started, 2)
        self.answer["stages"].append(stage)
        return self.walk() if found else walk

    def _applied(
        self,
        toolkit: Any,
        only: list[str],
        gaps: list[dict[str, Any]],
        before: dict[str, dict[str, Any]],
        errors: list[str],
    ) -> list[dict[str, Any]]:
        try:
            toolkit.apply(only=only)
            report = toolkit.status()
        except Exception as error:  # noqa: BLE001 - kept and reported
            errors.append(f"apply(): {type(error).__name__}: {error}")
            return []
        return [_standing(report, gap, before[gap["id"]]) for gap in gaps]

    def apply_first(self) -> list[str]:
        """Apply everything before upstream is imported. Returns what went wrong."""
        try:
            self.load_toolkit().apply(only=[one["id"] for one in self._job["gaps"]])
        except Exception as error:  # noqa: BLE001 - kept and reported
            return [f"apply(): {type(error).__name__}: {error}"]
        return []

    def revert_first(self, errors: list[str]) -> None:
        """See what has been applied since, and revert."""
        started = time.monotonic()
        toolkit = self.load_toolkit()
        stage: dict[str, Any] = {"name": "before upstream"}
        applied = {gap["id"]: _targets(gap) for gap in self._job["gaps"]}
        report = toolkit.status()
        _revert(toolkit, errors)
        stage["gaps"] = [
            _standing(report, gap, applied[gap["id"]]) for gap in self._job["gaps"]
        ]
        stage["errors"] = errors
        stage["differences"] = []
        stage["seconds"] = round(time.monotonic() - started, 2)
        self.answer["stages"].append(stage)


def _is_absent(name: str, error: BaseException) -> bool:
    """Whether this release does not have the module, and that is all."""
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    return missing is not None and f"{name}.".startswith(f"{missing}.")


def _revert(toolkit: Any, errors: list[str]) -> None:
    try:
        toolkit.revert()
    except Exception as error:  # noqa: BLE001 - kept and reported
        errors.append(f"revert(): {type(error).__name__}: {error}")


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
    started = time.monotonic()
    job = json.loads(Path(path).read_text(encoding="utf-8"))
    sys.path[:] = job["path"]
    child = _Child(job)
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
    child.ask()
    walk = child.walk()
    child.describe("off" if mode == "in place" else mode, walk)
    if mode == "in place":
        for gap in job["gaps"]:
            needed = [one for one in job["gaps"] if one["id"] in gap["with"]]
            walk = child.stage(gap["id"], needed, walk)
        child.stage("all", job["gaps"], walk)
        child.ask()
        child.describe("reverted", child.walk())
    child.answer["toolkit"] = sorted(
        name for name in sys.modules if name.partition(".")[0] in job["strangers"]
    )
    child.answer["seconds"] = round(time.monotonic() - started, 2)
    Path(job["answer"]).write_text(json.dumps(child.answer), encoding="utf-8")
    # Upstream may have started threads that keep an interpreter from ending.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
