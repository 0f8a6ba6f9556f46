"""Apply and revert with upstream loaded, in turns with the same edits by other means.

Arguments: rounds, rounds with made-up modules, how many times a thousand of these.
"""

from __future__ import annotations

import gc
import importlib
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

import ascend_shims
from ascend_shims.engine.aliases import Move, find
from ascend_shims.engine.slot import ABSENT

from ..figures import in_turns
from .answering import answer, arguments
from .loaded import Place, load_upstream, namespaces, places, synthetic

_THOUSAND = 1000


def _by_setattr(places: list[Place], new: object) -> Callable[[], None]:
    old = [(one, one.read()) for one in places]
    for one in places:
        setattr(one.owner, one.name, new)

    def back() -> None:
        for one, value in reversed(old):
            if value is ABSENT:
                delattr(one.owner, one.name)
            else:
                setattr(one.owner, one.name, value)

    return back


def _by_monkeypatch(places: list[Place], new: object) -> Callable[[], None]:
    patcher = pytest.MonkeyPatch()
    for one in places:
        patcher.setattr(one.owner, one.name, new, raising=False)
    return patcher.undo


def _by_mock(places: list[Place], new: object) -> Callable[[], None]:
    patchers = []
    for one in places:
        patcher = mock.patch.object(one.owner, one.name, new, create=True)
        patcher.start()
        patchers.append(patcher)

    def back() -> None:
        for patcher in reversed(patchers):
            patcher.stop()

    return back


_OTHERS = {"mock": _by_mock, "monkeypatch": _by_monkeypatch, "setattr": _by_setattr}


def _timed(do: Callable[[], Any]) -> tuple[float, Any]:
    """Milliseconds of processor time: others on the machine do not count."""
    start = time.process_time()
    result = do()
    return 1000 * (time.process_time() - start), result


def _looked_through(spaces: list[dict[str, Any]], wanted: set[int]) -> int:
    """The floor: is it one of these? asked once of each value."""
    found = 0
    for values in spaces:
        for value in values.values():
            if id(value) in wanted:
                found += 1
    return found


class _Turns:
    """The things that are done in turns, and what each took."""

    def __init__(self, places: list[Place]) -> None:
        self.took: dict[str, list[float]] = defaultdict(list)
        self._places = places
        self._stock = [id(one.read()) for one in places]

    def do(self, name: str) -> None:
        if name == "shims":
            self._shims()
        elif name in ("find", "floor"):
            self.took[name].append(self._looked_for(name))
        else:
            self._by_others(name)
        if [id(one.read()) for one in self._places] != self._stock:
            raise RuntimeError(f"{name} has not put back what was there")

    def _looked_for(self, name: str) -> float:
        held = [one.read() for one in self._places]
        moves = [Move(value, None, value) for value in held if value is not ABSENT]
        if name == "find":
            return _timed(lambda: find(moves, skip=("ascend_shims",)))[0]
        spaces, wanted = namespaces(), {id(move.old) for move in moves}
        return _timed(lambda: _looked_through(spaces, wanted))[0]

    def _by_others(self, name: str) -> None:
        new = object()
        forth, back = _timed(lambda: _OTHERS[name](self._places, new))
        if any(one.read() is not new for one in self._places):
            raise RuntimeError(f"{name} has not changed every place")
        after, _ = _timed(back)
        self.took[name].append(forth + after)

    def _shims(self) -> None:
        forth, _ = _timed(ascend_shims.apply)
        back, _ = _timed(ascend_shims.revert)
        self.took["apply"].append(forth)
        self.took["shims"].append(forth + back)


def _grown(turns: _Turns, rounds: int, scales: list[int]) -> dict[str, Any]:
    """What `apply()` takes with so many thousand made-up modules more."""
    modules = list(synthetic(max(scales) * _THOUSAND))
    names = {str(scale): 0 for scale in scales}
    took: dict[str, list[float]] = {name: [] for name in names}
    for order in in_turns(list(names), rounds):
        for name in order:
            added = modules[: int(name) * _THOUSAND]
            sys.modules.update({module.__name__: module for module in added})
            names[name] = sum(map(len, namespaces()))
            turns.do("shims")
            took[name].append(turns.took["apply"][-1])
            for module in added:
                del sys.modules[module.__name__]
    return {"names": names, "took": took}


def main(rounds: int, grown_rounds: int, scales: list[int]) -> dict[str, Any]:
    load_upstream()
    # What stands in for torch_npu, which is loaded with vLLM where there is a device.
    importlib.import_module("ascend_shims.simnpu.npu")
    gc.collect()
    forth, report = _timed(ascend_shims.apply)
    changed = places(report)
    gaps = sum(gap.state.value == "applied" for gap in report.gaps)
    back, _ = _timed(ascend_shims.revert)
    told: dict[str, Any] = {
        "modules": len(sys.modules),
        "names": sum(map(len, namespaces())),
        "places": len(changed),
        "gaps": gaps,
    }
    turns = _Turns(changed)
    for name in (*_OTHERS, "floor", "find"):
        turns.do(name)
    told["first"] = {name: took[0] for name, took in turns.took.items()}
    told["first"] |= {"apply": forth, "shims": forth + back}
    turns = _Turns(changed)
    for order in in_turns(["shims", "floor", "find", *_OTHERS], rounds):
        for name in order:
            turns.do(name)
    told["steady"] = dict(turns.took)
    if scales:
        told["grown"] = _grown(_Turns(changed), grown_rounds, scales)
    return told


if __name__ == "__main__":
    answer(main(*arguments()))
