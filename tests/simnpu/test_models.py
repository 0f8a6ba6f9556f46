"""Models as files: readable, the same everywhere, and of the size they claim."""

from __future__ import annotations

import json
import math
import statistics
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascend_shims.simnpu import models
from ascend_shims.simnpu.weights import Weight, write

MODELS = {
    "gqa": (models.gqa, "LlamaForCausalLM", "float32", 2),
    "moe": (models.moe, "MixtralForCausalLM", "float32", 2),
    "mla": (models.mla, "DeepseekV2ForCausalLM", "bfloat16", 2),
    "eagle": (models.eagle, "EagleLlamaForCausalLM", "float32", 1),
}


def read(path: Path) -> dict[str, tuple[list[int], array[float]]]:
    """Every tensor of a safetensors file: shape and values."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header: dict[str, Any] = json.loads(data[8 : 8 + size])
    assert size % 8 == 0
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            assert entry["dtype"] == "F32"
            begin, end = (8 + size + at for at in entry["data_offsets"])
            tensors[name] = entry["shape"], array("f", data[begin:end])
    return tensors


@pytest.mark.parametrize(
    ("make", "architecture", "dtype", "layers"), MODELS.values(), ids=list(MODELS)
)
def test_a_model_directory(
    tmp_path: Path,
    make: Callable[[Path], Path],
    architecture: str,
    dtype: str,
    layers: int,
) -> None:
    model = make(tmp_path / "a" / "model")
    assert sorted(p.name for p in model.iterdir()) == [
        "config.json",
        "model.safetensors",
    ]
    config = json.loads((model / "config.json").read_text())
    assert config["architectures"] == [architecture]
    assert config["torch_dtype"] == dtype
    assert config["num_hidden_layers"] == layers
    assert config["vocab_size"] == models.VOCABULARY

    tensors = read(model / "model.safetensors")
    assert len(tensors) > 5 * layers
    for name, (shape, values) in tensors.items():
        assert len(values) == math.prod(shape), name
        expected = 1.0 if "norm" in name else 0.0
        assert abs(statistics.fmean(values) - expected) < 0.05, name
        assert max(map(abs, values)) > 0, name

    again = make(tmp_path / "again")
    for file in model.iterdir():
        assert file.read_bytes() == (again / file.name).read_bytes()


def test_layers_differ(tmp_path: Path) -> None:
    tensors = read(models.gqa(tmp_path) / "model.safetensors")
    first, second = (
        tensors[f"model.layers.{index}.self_attn.q_proj.weight"][1] for index in (0, 1)
    )
    assert first != second


@given(
    st.lists(
        st.builds(
            Weight,
            name=st.text("abc.", min_size=1, max_size=6),
            shape=st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple),
            spread=st.sampled_from([0.0, 0.5, 2.0]),
            centre=st.sampled_from([0.0, 1.0]),
        ),
        unique_by=lambda weight: weight.name,
    )
)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, weights: list[Weight]
) -> None:
    path = tmp_path_factory.mktemp("weights") / "model.safetensors"
    write(path, weights)
    assert read(path) == {w.name: (list(w.shape), w.values()) for w in weights}


@pytest.mark.parametrize("gain", [1.0, 3.0])
def test_a_projection_has_the_spread_it_says(gain: float) -> None:
    weight = Weight.linear("projection", 64, 128, gain=gain)
    measured = statistics.pstdev(weight.values())
    assert measured == pytest.approx(gain / math.sqrt(128), rel=0.03)
