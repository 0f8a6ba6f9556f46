"""The proof: a stock interpreter beside one with the toolkit.

Three interpreters import the same modules. One never hears of the toolkit. In the
second, upstream is imported first; each gap is applied and reverted alone, then all
together, and each time the very same objects have to be back. In the third, all gaps
are applied before upstream is imported. What the last two hold in the end is compared
with what the first holds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..plan import Plan
from ..switches import Switches
from ..words.counting import counted
from .compare import compared
from .interpreters import TIMEOUT, Interpreter, InterpreterError, work_folder
from .jobs import Order, order_for
from .known import VARYING
from .result import Difference, Extent, InForce, Proof, Stage

__all__ = ["prove"]

_DOUBTS = 3
"""So many more stock interpreters are asked, at most, whether a difference is ours."""

_OBJECTS = "the same objects"
_STOCK = "the stock interpreter"


def prove(
    plan: Plan,
    switches: Switches,
    say: Callable[[str], None],
    timeout: float = TIMEOUT,
) -> Proof:
    """What applying and reverting the gaps of `plan` leaves behind.

    `switches` are what the interpreters start with; `say` is told of what is being
    done. Raises `InterpreterError` for an interpreter that comes to no answer, or to
    none within `timeout` seconds.
    """
    started = time.monotonic()
    order = order_for(plan, switches)
    with work_folder() as folder:
        stages = _Interpreters(order, folder, say, timeout).stages()
        return Proof(
            upstream={
                package: str(plan.environment.distributions[package])
                for package in plan.registry.upstreams
            },
            device=plan.environment.device.kind,
            device_assumed=switches.device == "sim",
            left_out=tuple(
                (planned.gap.id, str(planned.state), planned.reason)
                for planned in plan.gaps
                if not planned.wanted
            ),
            seconds=round(time.monotonic() - started, 1),
            **stages,
        )


class _Interpreters:
    def __init__(
        self, order: Order, folder: Path, say: Callable[[str], None], timeout: float
    ) -> None:
        self._order, self._folder = order, folder
        self._say, self._timeout = say, timeout
        self._running: list[Interpreter] = []
        self._varying: dict[str, str] = {}
        self._stock: dict[str, Any] = {}
        self._doubts = 0

    def stages(self) -> dict[str, Any]:
        """What a `Proof` is made of, besides the plan's."""
        try:
            return self._stages()
        finally:
            for one in self._running:
                one.stop()

    def _start(self, name: str, mode: str) -> Interpreter:
        folder = self._folder / str(len(self._running))
        one = Interpreter(self._order, folder, name, mode, self._timeout)
        self._running.append(one)
        return one

    def _stages(self) -> dict[str, Any]:
        self._say("Importing upstream, stock, and with each gap applied and reverted")
        stock = self._start("stock", "stock")
        in_place = self._start("in place", "in place")
        self._stock = stock.answer(self._say)
        if self._stock["toolkit"]:
            loaded = ", ".join(self._stock["toolkit"][:3])
            raise InterpreterError(
                f"the stock interpreter has {loaded} loaded, so it is none: something "
                "imports the toolkit when Python starts (a .pth file, a "
                "sitecustomize, PYTHONSTARTUP); take that away",
                "stock",
            )
        self._say("Importing upstream with all gaps applied, and reverting")
        applied_first = self._start("applied first", "first")
        # This one first: where a gap kills both, it knows which one it was.
        second = in_place.answer(self._say)
        first = applied_first.answer(self._say)
        own = self._stock["graphs"]["stock"]
        stages = [
            Stage("off", _STOCK, (), self._against(second, "off"), ()),
            *(_stage(one, _OBJECTS) for one in second["stages"]),
            self._in_the_end(second),
            self._applied_first(first),
        ]
        for path in own["varying"]:
            self._varying.setdefault(path, VARYING[path])
        return {
            "extent": Extent(**own["extent"]),
            "stages": tuple(stages),
            "absent": tuple(self._stock["absent"]),
            "not_importable": self._stock["failed"],
            "varying": self._varying,
            "digests": {
                name: graphs[mode]["digest"]
                for name, graphs, mode in (
                    ("stock", self._stock["graphs"], "stock"),
                    ("off", second["graphs"], "off"),
                    ("reverted", second["graphs"], "reverted"),
                    ("applied first", first["graphs"], "first"),
                )
                if mode in graphs
            },
        }

    def _in_the_end(self, answer: dict[str, Any]) -> Stage:
        is_there = "reverted" in answer["graphs"]
        errors = () if is_there else ("it did not come to that",)
        found = self._against(answer, "reverted")
        return Stage("after all that", _STOCK, (), found, errors)

    def _applied_first(self, answer: dict[str, Any]) -> Stage:
        told = answer["stages"][0]
        told["errors"] += [
            f"import of {name}: {why}"
            for name, why in answer["failed"].items()
            if name not in self._stock["failed"]
        ]
        return _stage(told, _STOCK, self._against(answer, "first"))

    def _against(self, answer: dict[str, Any], name: str) -> tuple[Difference, ...]:
        """What a description has otherwise than the stock one; nothing if there is
        none, which the stage's errors say."""
        if name not in answer["graphs"]:
            return ()
        stock, other = self._stock["graphs"]["stock"], answer["graphs"][name]
        if all(stock[part] == other[part] for part in ("digest", "process")):
            return ()
        found = compared(Path(stock["file"]), Path(other["file"]))
        while True:
            found = [one for one in found if one.path not in self._varying]
            if not found or self._doubts == _DOUBTS:
                return tuple(Difference(*one) for one in found)
            self._doubt(len(found))

    def _doubt(self, count: int) -> None:
        """Ask another stock interpreter what it has otherwise than the first."""
        self._doubts += 1
        self._say(
            counted(
                count,
                "1 difference: asking another stock interpreter",
                "{number} differences: asking another stock interpreter",
            )
        )
        again = self._start("stock again", "stock").answer(self._say)
        stock, other = self._stock["graphs"]["stock"], again["graphs"]["stock"]
        for one in compared(Path(stock["file"]), Path(other["file"])):
            said = f"two stock interpreters differ: {one.what}"
            self._varying.setdefault(one.path, said)


def _stage(
    told: dict[str, Any], against: str, found: tuple[Difference, ...] | None = None
) -> Stage:
    if found is None:
        found = tuple(Difference(**one) for one in told["differences"])
    return Stage(
        told["name"],
        against,
        tuple(
            InForce(
                gap["id"],
                gap["state"],
                gap["reason"],
                gap["patches"],
                gap["applied"],
                gap["changed"],
            )
            for gap in told["gaps"]
        ),
        found,
        tuple(told["errors"]),
    )
