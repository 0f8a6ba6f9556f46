"""What is patched in real upstream travels by name, and nothing is left of it."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

SIM = {"ASCEND_SHIMS_DEVICE": "sim"}
RunReal = Callable[..., Any]


def test_everything_patched_travels_by_name_and_leaves_no_trace(
    run_real: RunReal,
) -> None:
    told = run_real(travelled, env=SIM)
    assert {"cos-sin", "kv-cache"} <= set(told["applied"])
    assert len(told["travelled"]) >= 10
    assert told["otherwise"] == []
    # Only patches of one binding, where that is not the place of the stock function.
    assert told["refused"]
    assert set(told["refused"]) <= set(told["bindings"])
    assert told["looked_at"] > 50_000
    assert told["left"] == {}


# In processes that run vLLM


def travelled() -> dict[str, Any]:
    import cloudpickle  # type: ignore[import-untyped]
    import vllm.v1.worker.gpu.model_runner  # noqa: F401

    import ascend_shims
    from ascend_shims.engine.slot import resolve
    from ascend_shims.registry import load
    from ascend_shims.testing.spaces import is_ours
    from ascend_shims.testing.traces import Watch

    watch = Watch(["vllm", "torch"], Path("/nowhere"))
    # Once before: patches import what upstream had not imported yet.
    ascend_shims.apply()
    ascend_shims.revert()
    before = watch.look()
    report = ascend_shims.apply()
    patches = [patch for gap in load().gaps for patch in gap.patches]
    binding = {t for one in patches if one.scope == "binding" for t in one.candidates}
    went, otherwise, refused, bindings = [], [], [], []
    for gap in report.gaps:
        for patch in gap.patches:
            if patch.state != "applied":
                continue
            slot = resolve(patch.target)
            value = getattr(slot.owner, slot.name)
            # A class of ours in upstream's place travels as what it is.
            if not callable(value) or not is_ours(slot.read()):
                continue
            # cloudpickle sends every class method by value, patched or not.
            is_class_method = isinstance(slot.read(), classmethod)
            ways = (pickle,) if is_class_method else (pickle, cloudpickle)
            bindings += [patch.target] if patch.target in binding else []
            try:
                sent = [how.dumps(value) for how in ways]
            except pickle.PicklingError:
                refused.append(patch.target)
                continue
            if any(b"ascend" in one or pickle.loads(one) != value for one in sent):
                otherwise.append(patch.target)
            went.append(patch.target)
    ascend_shims.revert()
    names = (
        len(s.names) for one in before.loaded.values() for s in one.spaces.values()
    )
    return {
        "applied": [gap.id for gap in report.gaps if gap.state == "applied"],
        "travelled": went,
        "otherwise": otherwise,
        "refused": refused,
        "bindings": bindings,
        "looked_at": sum(names),
        "left": watch.differences(before, watch.look()),
    }
