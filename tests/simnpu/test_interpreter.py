"""Triton's interpreter, quickened: the same bits, and the language left as it was."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("triton", reason="Triton is not installed")

import torch
import triton.language as tl
from hypothesis import given, settings
from hypothesis import strategies as st
from triton.runtime import interpreter
from triton.runtime.interpreter import InterpretedFunction

from ascend_shims.simnpu import interpreter as quick
from ascend_shims.simnpu import plugin, triton_cpu, vllm_name

BUILDER = interpreter.interpreter_builder
LANGUAGE = (tl, tl.core, tl.math, tl.tensor, tl.core.tensor_descriptor_base, tl.dtype)


@contextmanager
def restored() -> Iterator[None]:
    """What the interpreter is now comes back."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_patch_lang", "_get_np_dtype"):
            patch.setattr(interpreter, name, getattr(interpreter, name))
        patch.setattr(BUILDER, "options", BUILDER.options)
        yield


@contextmanager
def quickened() -> Iterator[None]:
    with restored():
        assert quick.quicken() is True
        yield


def looks() -> list[dict[str, Any]]:
    return [dict(vars(owner)) for owner in LANGUAGE]


def _twice(value):  # type: ignore[no-untyped-def]
    return value + value


twice: Any = InterpretedFunction(_twice)


def _arithmetic(  # type: ignore[no-untyped-def]
    left, right, floats, out, real, count, number, BLOCK: tl.constexpr
):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    a = tl.load(left + at, mask=mask, other=1)
    b = tl.load(right + at, mask=mask, other=1)
    total = twice(a) + b * number - (a ^ b)
    total += (a // b) * (a % b) + tl.where(a < b, tl.minimum(a, 9), b >> 1)
    tl.store(out + at, total, mask=mask)
    value = tl.load(floats + at, mask=mask, other=0.5)
    for power in tl.static_range(3):
        value = twice(value) / (tl.abs(value) + 1.0) + power
    tl.store(real + at, value + a, mask=mask)


arithmetic: Any = InterpretedFunction(_arithmetic)


def _broken(out, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(out + tl.arange(0, BLOCK), "no number")


broken: Any = InterpretedFunction(_broken)


def compute(
    a: list[int], b: list[int], c: list[float], number: int, dtype: torch.dtype
) -> list[torch.Tensor]:
    ints = [torch.tensor(one, dtype=dtype) for one in (a, b)]
    out, real = torch.zeros_like(ints[0]), torch.zeros(len(c))
    grid = (-(-len(c) // 4),)
    floats = torch.tensor(c)
    arithmetic[grid](*ints, floats, out, real, len(c), number, BLOCK=4)
    return [out, real.view(torch.int32)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(-(2**31), 2**31 - 1),
            st.integers(-(2**31), 2**31 - 1).filter(bool),
            st.floats(width=32),
        ),
        min_size=1,
        max_size=9,
    ),
    st.integers(-(2**31), 2**31 - 1),
    st.sampled_from([torch.int32, torch.int64]),
)
def test_results_are_the_same_to_the_bit(
    rows: list[tuple[int, int, float]], number: int, dtype: torch.dtype
) -> None:
    """Integers that overflow and floats that are none among them."""
    a, b, c = (list(column) for column in zip(*rows, strict=True))
    before = compute(a, b, c, number, dtype)
    with quickened():
        after = compute(a, b, c, number, dtype)
    assert all(map(torch.equal, after, before))


def test_what_kernels_of_upstream_use_gives_the_same_bits() -> None:
    script = Path(__file__).with_name("interpreted.py")
    upstream, quickly = (
        json.loads(
            subprocess.run(
                [sys.executable, str(script), how],
                env={**os.environ, "TRITON_INTERPRET": "1"},
                capture_output=True,
                check=True,
            ).stdout
        )
        for how in ("upstream", "quick")
    )
    assert len(upstream) == 6
    assert all(any(any(output) for output in one) for one in upstream.values())
    assert quickly == upstream


DTYPES = [value for value in vars(tl).values() if isinstance(value, tl.dtype)]
SIZED = [dtype for dtype in DTYPES if dtype.name != "void"]


@pytest.mark.parametrize("dtype", SIZED, ids=str)
def test_types_are_those_of_upstream(dtype: Any) -> None:
    asked = [dtype, tl.pointer_type(dtype), tl.block_type(dtype, [2, 4])]
    asked.append(tl.block_type(tl.pointer_type(dtype), [8]))
    expected = [interpreter._get_np_dtype(one) for one in asked]
    with quickened():
        for _ in range(2):
            assert [interpreter._get_np_dtype(one) for one in asked] == expected


def test_the_language_is_as_it_was_after_each_launch() -> None:
    before = looks()
    with quickened():
        for _ in range(2):
            compute([1], [2], [3.0], 4, torch.int32)
            assert looks() == before
        with pytest.raises(interpreter.InterpreterError):
            broken[(1,)](torch.zeros(4), BLOCK=4)
        assert looks() == before


def test_the_language_is_searched_once_and_again_when_it_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searches = []
    search = interpreter._patch_lang

    def counted(kernel: Any) -> Any:
        searches.append(kernel)
        return search(kernel)

    monkeypatch.setattr(interpreter, "_patch_lang", counted)
    with quickened():
        for _ in range(3):
            compute([1, 2, 3, 4, 5], [2] * 5, [3.0] * 5, 4, torch.int32)
        assert len(searches) == 1

        # One more builtin, which no kernel could call without the interpreter's own
        # `_semantic`.
        def answer(x: Any, _semantic: Any = None) -> Any:
            return _semantic.add(x, x, False)

        monkeypatch.setattr(tl, "answer", tl.core.builtin(answer), raising=False)
        out = torch.ones(4)
        asking[(1,)](out, BLOCK=4)
        assert out.tolist() == [2.0] * 4
        assert len(searches) == 2


def _asking(out, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = out + tl.arange(0, BLOCK)
    tl.store(at, tl.answer(tl.load(at)))


asking: Any = InterpretedFunction(_asking)


def test_checks_of_overflow_stay_where_they_are_heeded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert BUILDER.options.sanitize_overflow
    debug = dataclasses.replace(BUILDER.options, debug=True)
    monkeypatch.setattr(BUILDER, "options", debug)
    with quickened():
        assert BUILDER.options == debug
        with pytest.raises(interpreter.InterpreterError, match="overflow detected"):
            compute([2**31 - 1], [1], [0.0], 0, torch.int32)
    monkeypatch.undo()
    with quickened():
        assert not BUILDER.options.sanitize_overflow


def test_it_is_done_once() -> None:
    with quickened():
        first = interpreter._patch_lang, interpreter._get_np_dtype, BUILDER.options
        assert quick.quicken() is True
        assert (
            interpreter._patch_lang,
            interpreter._get_np_dtype,
            BUILDER.options,
        ) == first


@pytest.mark.parametrize("name", quick._NEEDED)
def test_an_interpreter_built_another_way_is_left_alone(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with restored():
        monkeypatch.delattr(interpreter, name)
        before = dict(vars(interpreter)), BUILDER.options
        assert quick.quicken() is False
        assert (dict(vars(interpreter)), BUILDER.options) == before


def test_without_triton_there_is_nothing_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "triton.runtime", None)
    assert quick.quicken() is False


@pytest.mark.parametrize(
    ("device", "asked", "usable", "done"),
    [
        ("sim", None, True, True),
        ("sim", "0", True, False),
        ("sim", None, False, False),
        ("none", None, True, False),
        ("none", "1", True, True),
        ("none", "1", False, False),
    ],
)
def test_the_platform_plugin_quickens_where_it_is_asked(
    device: str,
    asked: str | None,
    usable: bool,
    done: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str] = []
    monkeypatch.setenv("ASCEND_SHIMS_DEVICE", device)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.delenv("ASCEND_SHIMS_SIM_QUICK", raising=False)
    if asked is not None:
        monkeypatch.setenv("ASCEND_SHIMS_SIM_QUICK", asked)
    monkeypatch.setattr(triton_cpu, "register", lambda: usable)
    monkeypatch.setattr(vllm_name, "answer", lambda: False)
    monkeypatch.setattr(quick, "quicken", lambda: calls.append("quick"))
    plugin.platform()
    assert calls == ["quick"] * done
