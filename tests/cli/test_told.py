"""What the environment says and nothing can be done with is told by commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .test_drift import drift, index

__all__ = ["drift", "index"]

_DRIFT = ("drift", "--against", "madeup==1.4", "--package", "madeup", "--json")


def test_a_cache_that_cannot_be_written(drift: Any, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    fine = drift(*_DRIFT)
    assert "kept" not in fine.stderr
    done = drift(*_DRIFT, extra={"ASCEND_SHIMS_CACHE": str(file)})
    told = [line for line in done.stderr.splitlines() if "cache" in line.lower()]
    assert told == [
        f"nothing of what is read is kept: {file} cannot be written (Not a directory); "
        "name another folder with ASCEND_SHIMS_CACHE [cache-unwritable]"
    ]
    assert done.returncode == fine.returncode
    assert json.loads(done.stdout)["findings"] == json.loads(fine.stdout)["findings"]
    off = drift(*_DRIFT, extra={"ASCEND_SHIMS_CACHE": "off"})
    assert "kept" not in off.stderr


# The guard's settings ------------------------------------------------------------


_OURS = {"ASCEND_SHIMS_REGISTRY": None, "ASCEND_SHIMS_DEVICE": "sim"}
_ASSUMED = ("status", "--assume", "vllm=0.32.0")


@pytest.mark.parametrize(
    ("text", "why"),
    [(None, ": No such file or directory"), ("detectors: {no: {}}", ": ")],
)
def test_settings_of_the_guard_that_cannot_be_used(
    shims: Any, tmp_path: Path, text: str | None, why: str
) -> None:
    file = tmp_path / "guard.yaml"
    if text is not None:
        file.write_text(text)
    done = shims(*_ASSUMED, extra={**_OURS, "ASCEND_SHIMS_GUARD": str(file)})
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert line.startswith(f"shims: the runtime guard cannot use {file}{why}")
    assert line.endswith(
        "; correct it, or unset ASCEND_SHIMS_GUARD [guard-configuration]"
    )


@pytest.mark.parametrize(
    "extra",
    [
        {"ASCEND_SHIMS_DISABLE": "runtime-guard"},
        {"ASCEND_SHIMS_DEVICE": "none"},
        {"ASCEND_SHIMS_GUARD": "acme.guard:Guard"},
        {"ASCEND_SHIMS_GUARD": ""},
    ],
)
def test_nothing_is_told_where_nobody_reads_them(
    shims: Any, extra: dict[str, str]
) -> None:
    done = shims(
        *_ASSUMED, extra={**_OURS, "ASCEND_SHIMS_GUARD": "/nope.yaml", **extra}
    )
    assert (done.returncode, done.stderr) == (0, "")
