"""A made-up upstream, applied in this process, and a summary."""

from __future__ import annotations

import pytest

from ascend_shims.observe import Summary
from ascend_shims.states import State

from ..engine.conftest import own_process, world  # noqa: F401
from ..engine.world import P, World

UP = "def f(x): return x\ndef g(x): return x\n"


@pytest.fixture
def up(own_process: World) -> World:  # noqa: F811
    """Gaps of a made-up upstream as this process's registry; nothing applied."""
    own_process.upstream(UP)
    own_process.gap("one", P("a:f")).gap("two", P("a:g"))
    own_process.gap("three", P("a:f", "plus_one"), default="off", after=("one",))
    own_process.registry_file()
    return own_process


@pytest.fixture
def summary() -> Summary:
    return Summary(
        schema=1,
        version="1.2.3",
        process="engine-core",
        pid=42,
        vllm="0.32.0",
        device="sim",
        plan="abc",
        gaps={State.APPLIED: 2, State.OFF: 1},
    )
