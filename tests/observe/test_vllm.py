"""vLLM's own page of metrics, as its API server mounts it, in both of its modes."""

from __future__ import annotations

import json
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ..fresh import run

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(
        find_spec("vllm") is None,
        reason=f"vLLM is not installed for {sys.executable}: see tools/env",
    ),
]

SERVER = """
import json, multiprocessing, os, sys

import ascend_shims
from ascend_shims.observe import family


def log_as_vllm_does():
    from vllm import logger

    # Older releases do it on import.
    if hasattr(logger, "configure_logging"):
        from vllm.config.logging import LoggingConfig

        logger.configure_logging(LoggingConfig())


def core(ready, ended):
    # As vLLM's engine core: brought shims by the plugin, one of its modules loaded.
    import vllm.v1.worker.gpu.attn_utils
    from ascend_shims.plugin import register

    log_as_vllm_does()
    register()
    ready.set()
    ended.wait()


def page(shared):
    from fastapi import FastAPI
    from fastapi.testclient import TestClient
    from vllm.entrypoints.serve.instrumentator.metrics import attach_router

    if shared:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = shared
    app = FastAPI()
    attach_router(app)

    def scrape():
        os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)
        if shared:
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = shared
        answer = TestClient(app).get("/metrics")
        assert answer.status_code == 200
        return answer.text

    return scrape


def main():
    from vllm.plugins import load_general_plugins

    log_as_vllm_does()
    family._PATIENCE = 60
    context = multiprocessing.get_context("spawn")
    ready, ended = context.Event(), context.Event()
    child = context.Process(target=core, args=(ready, ended), name="EngineCore_0")
    child.start()
    pages = {"one process": page(""), "several processes": page(sys.argv[2])}
    told = {name: {} for name in pages}

    def scrape(when):
        for name, scrape in pages.items():
            told[name][when] = scrape()

    scrape("before")
    load_general_plugins()
    assert ready.wait(600)
    scrape("applied")
    ended.set()
    child.join()
    scrape("alone")
    ascend_shims.revert()
    scrape("after")
    told["pids"] = {"front end": os.getpid(), "core": child.pid}
    with open(sys.argv[1], "w") as file:
        json.dump(told, file)


if __name__ == "__main__":
    main()
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("server")
    script, result, shared = folder / "server.py", folder / "told.json", folder / "all"
    script.write_text(SERVER)
    shared.mkdir()
    env = {"ASCEND_SHIMS_DEVICE": "sim", "VLLM_PLUGINS": "ascend_shims"}
    said = run(sys.executable, script, result, shared, env=env)
    return {**json.loads(Path(result).read_text()), "log": said}


@pytest.fixture(params=["one process", "several processes"])
def told(request: Any, served: Any) -> Any:
    return {**served[request.param], **served["pids"]}


def ours(page: str) -> list[str]:
    return [one for one in page.splitlines() if one.startswith("ascend_shims")]


def gaps(page: str, pid: int) -> dict[str, float]:
    """By state, of one process."""
    found = {}
    for one in ours(page):
        labels = dict(re.findall(r'(\w+)="([^"]*)"', one))
        if one.startswith("ascend_shims_gaps{") and labels["pid"] == str(pid):
            found[labels["state"]] = float(one.rpartition(" ")[2])
    return {state: count for state, count in found.items() if count}


def test_the_page_tells_of_both_processes(told: Any) -> None:
    assert ours(told["before"]) == []
    front, core = (gaps(told["applied"], told[who]) for who in ("front end", "core"))
    assert front["pending"] > 8
    # Some module of the runner is there, and with it what is patched in it.
    assert sum(core.values()) == sum(front.values())
    assert core["pending"] < front["pending"]
    assert 'process="front-end"' in told["applied"]
    assert 'process="engine-core 0"' in told["applied"]
    assert "ascend_shims_silent 0.0" in ours(told["applied"])


def test_both_have_one_plan_and_the_release(told: Any) -> None:
    info = [o for o in ours(told["applied"]) if o.startswith("ascend_shims_info{")]
    assert len(info) == 2
    assert len({re.findall(r'plan="(\w+)"', one)[0] for one in info}) == 1
    assert all('device="sim"' in one and 'vllm="' in one for one in info)


def test_what_has_ended_is_not_told(told: Any) -> None:
    assert gaps(told["alone"], told["core"]) == {}
    assert gaps(told["alone"], told["front end"])["pending"] > 8


def test_after_a_revert_the_page_is_vllms_alone(told: Any) -> None:
    assert ours(told["after"]) == []
    assert _names(told["after"]) == _names(told["before"])


def _names(page: str) -> set[str]:
    return {one.split()[2] for one in page.splitlines() if one.startswith("# TYPE ")}


def test_the_log_line_is_in_vllms_log(served: Any) -> None:
    lines = [one for one in served["log"].splitlines() if "ascend_shims.apply {" in one]
    said = [json.loads(one[one.index("{") :]) for one in lines]
    assert sorted((one["process"], one["pid"]) for one in said) == [
        ("engine-core 0", served["pids"]["core"]),
        ("front-end", served["pids"]["front end"]),
    ]
    assert all(re.search(r"\bINFO\b", one.partition("{")[0]) for one in lines)
