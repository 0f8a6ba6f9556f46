"""`npu-graph` on upstream's own names: what stood there before comes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

RunReal = Callable[..., Any]

NAMES = (
    "Event", "Stream", "CUDAGraph", "graph", "stream", "default_stream",
    "current_stream", "set_stream", "synchronize", "current_device", "mem_get_info",
    "graph_pool_handle", "is_current_stream_capturing",
)  # fmt: skip
ENV = {"ASCEND_SHIMS_DEVICE": "sim", "ASCEND_SHIMS_ONLY": "npu-graph"}


def names(early: bool) -> dict[str, Any]:
    import torch

    import ascend_shims

    at_first = ascend_shims.apply().state("npu-graph").value if early else None
    import vllm.v1.worker.cpu_worker

    before = {name: vars(torch.cuda)[name] for name in NAMES}
    event = torch.Event
    order = list(vars(torch.cuda))
    import vllm.v1.worker.gpu.model_runner  # noqa: F401

    if early:
        # The placeholders came after apply() and before the runner.
        ascend_shims.revert()
        before = {name: vars(torch.cuda)[name] for name in NAMES}
        event = torch.Event
    report = ascend_shims.apply()
    state = report.state("npu-graph").value
    applied = {name: vars(torch.cuda)[name] for name in NAMES}
    compiled = torch.compile(lambda x: x * 2, backend="eager")
    during = compiled(torch.ones(2)).tolist()
    ascend_shims.revert()
    return {
        "at first": at_first,
        "state": state,
        "changed": [name for name in NAMES if applied[name] is not before[name]],
        "objects": len({id(one) for one in applied.values()}),
        "back": [name for name in NAMES if vars(torch.cuda)[name] is before[name]],
        "event": torch.Event is event,
        "order": list(vars(torch.cuda)) == order,
        "compiled": [during, compiled(torch.ones(2)).tolist()],
    }


def check(told: dict[str, Any]) -> None:
    assert told["state"] == "applied"
    assert told["changed"] == told["back"] == list(NAMES)
    assert told["objects"] == len(NAMES)
    assert told["event"]
    assert told["order"]
    assert told["compiled"] == [[2.0, 2.0]] * 2


def test_names_are_served_and_given_back(run_real: RunReal) -> None:
    env = {**ENV, "TORCHDYNAMO_DISABLE": None}
    check(run_real(names, False, env=env))


def test_placeholders_that_come_after_apply_stay_beneath(run_real: RunReal) -> None:
    env = {**ENV, "TORCHDYNAMO_DISABLE": None}
    told = run_real(names, True, env=env)
    assert told["at first"] == "pending"
    check(told)


def shared_workspace(begun: bool) -> dict[str, Any]:
    """What may be had of the layers' workspace before and after a capture."""
    import torch
    from vllm.v1.worker import workspace

    from ascend_shims.patches import npu_graph

    # A CPU has no cache to empty.
    torch.accelerator.empty_cache = lambda: None
    if begun:
        workspace.init_workspace_manager(torch.device("cpu"))

    def had(rows: int) -> list[int] | None:
        try:
            manager = workspace.current_workspace_manager()
            (one,) = manager.get_simultaneous(((rows, 1024), torch.float32))
        except AssertionError:
            return None
        return list(one.shape)

    def capture_model(runner: str) -> tuple[str, list[int] | None]:
        return runner, had(256)

    told = {"captured": npu_graph.lock_workspace(capture_model, "runner")}
    return {**told, "same": had(256), "larger": had(512)}


def test_what_graphs_were_captured_with_is_not_grown_later(run_real: RunReal) -> None:
    """D08 of the public reports."""
    told = run_real(shared_workspace, True, env=ENV)
    assert told == {
        "captured": ["runner", [256, 1024]],
        "same": [256, 1024],
        "larger": None,
    }
    told = run_real(shared_workspace, False, env=ENV)
    assert told == {"captured": ["runner", None], "same": None, "larger": None}
