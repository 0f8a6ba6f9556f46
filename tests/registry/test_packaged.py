"""The registry that ships: what it lists, and that reading it costs little."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ascend_shims.registry import Registry, RegistryError, load, packaged
from ascend_shims.registry.prepared import COMMITTED, made, registry_of

from ..fresh import python

GAPS = [
    ("runtime-guard", "open", "adaptation"),
    ("cos-sin", "open", "workaround"),
    ("kv-cache", "open", "workaround"),
    ("npu-graph", "open", "workaround"),
    ("graph-manager", "open", "adaptation"),
    ("speculator-graph-manager", "open", "adaptation"),
    ("speculator-dispatch", "open", "adaptation"),
    ("extract-hidden-states", "landed", "adaptation"),
    ("input-buffers", "open", "adaptation"),
    ("profile-run-mc2", "open", "adaptation"),
    ("fine-grained-tp", "open", "adaptation"),
    ("shared-kv-backing", "landed", "adaptation"),
]

MR = "vllm.v1.worker.gpu.model_runner:GPUModelRunner"


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load()


def test_the_twelve_gaps_in_order(registry: Registry) -> None:
    assert [(gap.id, gap.status, gap.kind) for gap in registry.gaps] == GAPS


def test_every_gap_says_what_a_person_wants_to_know(registry: Registry) -> None:
    for gap in registry.gaps:
        assert gap.downstream, gap.id
        assert gap.references, gap.id
        assert len(gap.why) > 80, gap.id
        assert len(gap.remove_when) > 20, gap.id
        assert bool(gap.patches) != bool(gap.unpatched), gap.id
        assert gap.needs.device, gap.id


def test_patches_of_the_runtime_guard(registry: Registry) -> None:
    assert [
        (patch.target, patch.kind, patch.replacement)
        for patch in registry["runtime-guard"].patches
    ] == [
        (f"{MR}.__init__", "wrap", "bind_guard"),
        (f"{MR}.execute_model", "decorate", "guard_step"),
        (f"{MR}.sample_tokens", "decorate", "guard_sample"),
        (f"{MR}.postprocess_sampled", "wrap", "observe_sampled"),
        (
            "vllm.v1.worker.gpu.async_utils:AsyncOutput.get_output",
            "wrap",
            "observe_output",
        ),
        (
            "vllm.v1.worker.gpu_worker:Worker.execute_dummy_batch",
            "wrap",
            "guard_idle",
        ),
    ]


def test_cos_sin_lies_on_the_runtime_guard(registry: Registry) -> None:
    gap = registry["cos-sin"]
    assert gap.after == ("runtime-guard",)
    assert [(patch.target, patch.replacement) for patch in gap.patches][:3] == [
        (f"{MR}.__init__", "set_tables"),
        (f"{MR}.prepare_inputs", "update_for_step"),
        (
            "vllm.v1.worker.gpu.input_batch:InputBatch.make_dummy",
            "update_for_dummy",
        ),
    ]


def test_kv_cache_covers_both_shapes_of_upstream(registry: Registry) -> None:
    found = {
        (patch.versions.get("vllm"), patch.scope, patch.candidates[0])
        for patch in registry["kv-cache"].patches
    }
    home = "vllm.v1.worker.gpu.attn_utils"
    assert {
        ("<0.29", "everywhere", f"{home}:_allocate_kv_cache"),
        (">=0.29", "binding", f"{home}:allocate_kv_cache"),
    } <= found


def test_every_gap_has_a_probe_or_says_why_not(registry: Registry) -> None:
    without = [gap.id for gap in registry.gaps if not gap.removal_probe]
    assert without == ["fine-grained-tp"]
    assert "no source text" in registry["fine-grained-tp"].remove_when


def _copy(registry_text: str, tmp_path: Path) -> Path:
    path = tmp_path / "gap_registry.yaml"
    path.write_text(registry_text, encoding="utf-8")
    return path


def test_a_copy_elsewhere_is_the_same_registry(
    registry: Registry, tmp_path: Path
) -> None:
    text = packaged().read_text(encoding="utf-8")
    assert load(_copy(text, tmp_path)) == registry
    assert load(str(_copy(text, tmp_path))) == registry


def test_a_file_without_entry_is_an_error_of_the_packaged_registry_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A registry of someone's own may list a part; ours lists everything."""
    text = packaged().read_text(encoding="utf-8")
    # A gap that no other one refers to, not even by an anchor.
    head, separator, rest = text.partition("  - id: shared-kv-backing\n")
    assert separator
    without = head + rest[rest.index("\n# What") :]
    path = _copy(without, tmp_path)
    assert "shared-kv-backing" not in load(path)
    monkeypatch.setattr("ascend_shims.registry.loading.packaged", lambda: path)
    with pytest.raises(RegistryError) as caught:
        load()
    (problem,) = caught.value.problems
    file = "`shared_kv_backing.py`"
    assert problem.message == f"{file} in `ascend_shims.patches` has no entry"
    assert problem.fix == "add a gap `shared-kv-backing`, or remove the file"
    assert problem.line == text[: text.index("\ngaps:")].count("\n") + 2


def test_an_entry_whose_file_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patches = tmp_path / "rotten"
    shutil.copytree(packaged().resolve().parent / "patches", patches)
    (patches / "cos_sin.py").unlink()
    monkeypatch.syspath_prepend(str(tmp_path))
    text = packaged().read_text(encoding="utf-8")
    with pytest.raises(RegistryError) as caught:
        load(_copy(text.replace("\ngaps:", "\npackage: rotten\ngaps:"), tmp_path))
    (problem,) = caught.value.problems
    assert problem.message == "the module `rotten.cos_sin` does not exist"


CHILD = """
import sys
from collections import Counter
import msgspec, packaging.specifiers, yaml
from ascend_shims.registry import load
done = Counter()
def count(frame, event, argument):
    done[event] += 1
sys.setprofile(count)
registry = load(anew=True)
sys.setprofile(None)
heavy = {"vllm", "torch", "pydantic", "jsonschema", "difflib", "numpy"}
print(done["call"] + done["c_call"], len(registry.gaps), heavy & set(sys.modules))
print([name for name in sys.modules if name.startswith("ascend_shims.patches")])
"""


def test_loading_is_light() -> None:
    """A few thousand calls a gap, which are a few milliseconds, and nothing heavy."""
    first, patches = python(CHILD).splitlines()
    calls, rest = first.split(" ", 1)
    assert (rest, patches) == ("12 set()", "[]")
    assert 10_000 < int(calls) < 100_000


def test_what_is_kept_of_ours_is_what_it_says() -> None:
    assert COMMITTED.read_bytes() == made(), (
        "run `python -m ascend_shims.registry.prepared --write`"
    )
    assert load() == load(anew=True)


def test_what_is_kept_says_nothing_of_another_text() -> None:
    text = packaged().read_text("utf-8")
    assert registry_of(text) == load(anew=True)
    assert registry_of(text + "\n") is None


@pytest.mark.parametrize("content", [None, b"", b"{", b'{"digest": ""}', b"[]"])
def test_ours_is_read_where_nothing_usable_is_kept(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept.json"
    if content is not None:
        kept.write_bytes(content)
    expected = load()
    monkeypatch.setattr("ascend_shims.registry.prepared.COMMITTED", kept)
    assert registry_of(packaged().read_text("utf-8")) is None
    assert load() == expected


def test_ours_needs_no_yaml() -> None:
    code = (
        "import sys; from ascend_shims.registry import load; load(); "
        "print({'yaml', 'ascend_shims.registry.check'} & set(sys.modules))"
    )
    assert python(code) == "set()\n"


def test_importing_the_package_loads_no_library() -> None:
    code = (
        "import sys; import ascend_shims.registry as r; "
        "print({'yaml', 'msgspec', 'packaging'} & set(sys.modules)); "
        "from ascend_shims.registry import load; "
        "import ascend_shims.registry.loading; "
        "print(load is r.load, sorted(r.__all__) == sorted(r._HOMES))"
    )
    assert python(code) == "set()\nTrue True\n"
