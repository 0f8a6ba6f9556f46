"""Removal probes: what a condition finds in source, and what follows for a gap."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ascend_shims.registry import Condition, Registry, Sign, load
from ascend_shims.registry.loading import packaged
from ascend_shims.upstream.check import Finding, check, worst
from ascend_shims.upstream.probes import Truth, answer, ask
from ascend_shims.upstream.tree import Tree
from ascend_shims.upstream.watched import from_registry

TreeOf = Callable[..., Tree]

UP: Mapping[str, str] = {
    "up/m.py": """
        import os
        from torch.cuda import Event
        from up.other import moved
        from elsewhere import outside

        LIMIT = 3

        class Base:
            kept: int = 0

        class Runner(Base):
            size: int
            def __init__(self, config, device="cpu", *, deep=False):
                self.buffers = make(config)
            def step(self, batch):
                '''Reads hidden_word in no way.'''
                stream = torch.cuda.current_stream()
                note = "torch.npu"
                return self.model.compute(batch), getattr(self, "marker", None)
            def forward(self, *args, **kwargs):
                return self.step(*args, **kwargs)

        class Foreign(outside):
            pass

        def open_(a, **rest): ...
    """,
    "up/other.py": "def moved(a, b): return a",
    "up/bad.py": "def broken(:",
    "up/typed.py": """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from up.other import moved
    """,
    "up/pkg/__init__.py": "",
    "up/pkg/late.py": "",
}


CASES: list[tuple[dict[str, Any], Truth]] = [
    ({"symbol": "up.m:Runner", "exists": True}, "yes"),
    ({"symbol": "up.m:Runner", "exists": False}, "no"),
    ({"symbol": "up.m:Runner.buffers", "exists": True}, "yes"),
    ({"symbol": "up.m:Runner.gone", "exists": True}, "no"),
    ({"symbol": "up.m:Runner.gone", "exists": False}, "yes"),
    ({"symbol": "up.gone:f", "exists": False}, "yes"),
    ({"symbol": ["up.gone:f", "up.m:moved"], "exists": True}, "yes"),
    ({"symbol": "up.m", "exists": True}, "yes"),
    ({"symbol": "up.gone", "exists": False}, "yes"),
    # What only a type checker sees is not there.
    ({"symbol": "up.typed:moved", "exists": True}, "no"),
    # A file that cannot be read may well have it.
    ({"symbol": "up.bad:broken", "exists": True}, "unknown"),
    ({"symbol": "up.bad:broken", "exists": False}, "unknown"),
    ({"symbol": "up.bad", "exists": False}, "unknown"),
    ({"symbol": "up.m:Runner", "has": "buffers"}, "yes"),
    ({"symbol": "up.m:Runner", "has": "size"}, "yes"),
    ({"symbol": "up.m:Runner", "has": "kept"}, "yes"),
    ({"symbol": "up.m:Runner", "has": ["x", "bu*"]}, "yes"),
    ({"symbol": "up.m:Runner", "has": "buf"}, "no"),
    ({"symbol": "up.m:Runner", "has_no": "buf"}, "yes"),
    ({"symbol": "up.m:Runner", "has_no": "*buf*"}, "no"),
    ({"symbol": "up.m", "has": "LIMIT"}, "yes"),
    ({"symbol": "up.m", "has": "limit"}, "no"),
    ({"symbol": "up.pkg", "has": "late"}, "yes"),
    # Bases outside the source may have anything.
    ({"symbol": "up.m:Foreign", "has": "anything"}, "unknown"),
    ({"symbol": "up.m:Foreign", "has_no": "anything"}, "unknown"),
    ({"symbol": "up.m:moved", "has": "anything"}, "unknown"),
    ({"symbol": "up.m:Runner", "takes": "config"}, "yes"),
    ({"symbol": "up.m:Runner", "takes": "deep"}, "yes"),
    ({"symbol": "up.m:Runner", "takes": "self"}, "no"),
    ({"symbol": "up.m:Runner.step", "takes": ["batch*"]}, "yes"),
    ({"symbol": "up.m:Runner.step", "takes": "positions"}, "no"),
    ({"symbol": "up.m:Runner.step", "takes_no": "positions"}, "yes"),
    ({"symbol": "up.m:moved", "takes": "b"}, "yes"),
    ({"symbol": "up.m:open_", "takes": "a"}, "yes"),
    ({"symbol": "up.m:open_", "takes": "b"}, "unknown"),
    ({"symbol": "up.m:open_", "takes_no": "b"}, "unknown"),
    ({"symbol": "up.m:Runner.forward", "takes": "x"}, "unknown"),
    ({"symbol": "up.m:LIMIT", "takes": "x"}, "unknown"),
    ({"symbol": "up.m:Runner.step", "reads": "torch.cuda"}, "yes"),
    ({"symbol": "up.m:Runner.step", "reads": "cuda"}, "yes"),
    ({"symbol": "up.m:Runner.step", "reads": "torch.cuda.current_stream"}, "yes"),
    ({"symbol": "up.m:Runner.step", "reads": "cuda.current_*"}, "yes"),
    ({"symbol": "up.m:Runner.step", "reads": "torch.current_*"}, "no"),
    ({"symbol": "up.m:Runner.step", "reads": "model.compute"}, "yes"),
    ({"symbol": "up.m:Runner.step", "reads": "marker"}, "yes"),
    # Neither docstrings nor other text, nor what is assigned.
    ({"symbol": "up.m:Runner.step", "reads": "hidden_word"}, "no"),
    ({"symbol": "up.m:Runner.step", "reads": "torch.npu"}, "no"),
    ({"symbol": "up.m:Runner.step", "reads": "stream"}, "no"),
    ({"symbol": "up.m:Runner.step", "reads_no": "torch.cuda"}, "no"),
    ({"symbol": "up.m:Runner.step", "reads_no": "torch.npu"}, "yes"),
    ({"symbol": "up.m:Runner.__init__", "reads_no": "torch.cuda"}, "yes"),
    ({"symbol": "up.m:Runner", "reads": "torch.cuda"}, "yes"),
    ({"symbol": "up.m", "reads": "cuda.Event"}, "yes"),
    ({"symbol": "up.other", "reads_no": "torch.cuda"}, "yes"),
    # A symbol that went elsewhere must not look like a need that is gone.
    ({"symbol": "up.m:Runner.moved", "reads_no": "torch.cuda"}, "unknown"),
    ({"symbol": "up.gone", "reads_no": "torch.cuda"}, "unknown"),
    ({"symbol": "up.bad", "reads_no": "torch.cuda"}, "unknown"),
    ({"symbol": "up.m:outside", "reads_no": "torch.cuda"}, "unknown"),
    ({"symbol": "up.m:LIMIT", "reads_no": "torch.cuda"}, "unknown"),
    ({"symbol": "up.gone:C", "has_no": "x"}, "unknown"),
    ({"symbol": "up.gone:C", "takes_no": "x"}, "unknown"),
    ({"symbol": ["up.gone", "up.other"], "reads_no": "torch.cuda"}, "yes"),
]


def condition(**keys: Any) -> Condition:
    return msgspec.convert(keys, Condition)


@pytest.mark.parametrize(
    ("keys", "truth"), CASES, ids=[str(keys)[1:-1] for keys, _ in CASES]
)
def test_condition(keys: dict[str, Any], truth: Truth, tree_of: TreeOf) -> None:
    told = ask(Sign(says="S", all=(condition(**keys),)), tree_of(UP)).told[0]
    assert told.truth == truth, told.words


def test_a_condition_names_the_line_that_decided(tree_of: TreeOf) -> None:
    sign = Sign(
        says="S",
        all=(condition(symbol=["up.x", "up.m:Runner.step"], reads_no="torch.cuda"),),
    )
    (told,) = ask(sign, tree_of(UP)).told
    assert told.words == "`up.m:Runner.step` reads `torch.cuda`"
    assert told.at is not None
    line = dedent(UP["up/m.py"]).splitlines()[told.at.line - 1]
    assert "torch.cuda.current_stream()" in line
    assert told.at.path == "up/m.py"


TRUTHS: dict[Truth, Condition] = {
    "yes": condition(symbol="up.m", exists=True),
    "no": condition(symbol="up.m", exists=False),
    "unknown": condition(symbol="up.gone", reads="x"),
}


@given(st.lists(st.lists(st.sampled_from(sorted(TRUTHS)), min_size=1), min_size=1))
def test_signs_combine_as_kleene_logic(truths: list[list[Truth]]) -> None:
    """All conditions of a sign, any sign of a probe, and nothing from the unknown."""
    rank: dict[Truth, int] = {"no": 0, "unknown": 1, "yes": 2}
    tree = _tree({"up/m.py": ""})
    signs = [Sign(says="S", all=tuple(TRUTHS[t] for t in sign)) for sign in truths]
    said = answer(signs, tree)
    assert rank[said.truth] == max(min(rank[t] for t in sign) for sign in truths)
    assert said.deciding.truth == said.truth
    assert said.deciding.deciding.truth == said.truth


def _tree(files: Mapping[str, str], label: str = "up 1.0") -> Tree:
    from .conftest import Texts

    return Tree(Texts(files, label))


# What follows for a gap ----------------------------------------------------------

REGISTRY = """
schema: 1
upstreams: [up]
package: PACKAGE
gaps:
  - id: one
    title: T
    status: open
    kind: workaround
    why: W
    remove_when: R
    removal_probe:
      - says: upstream takes a tone itself
        all: [{symbol: "up.m:f", takes: tone}]
    patches:
      - {target: "up.m:f", kind: wrap, replacement: ours}
"""

WITHOUT = "def f(a): return a\ndef g(): return f(1)\n"
WITH = "def f(a, tone=None): return a\ndef g(): return f(1)\n"
BROKEN = "def f(tone, more): return tone\ndef g(): return f(1, more=2)\n"


@pytest.fixture
def findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Callable[..., list[Finding]]:
    """What a release does to the registry above, changed by `how`."""
    package = f"probed_{abs(hash(request.node.name))}"
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").touch()
    (tmp_path / package / "one.py").write_text(
        "def ours(call, a):\n    return call(a)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))

    def run(old: str, new: str, **how: str) -> list[Finding]:
        text = REGISTRY.replace("PACKAGE", package)
        for word, other in how.items():
            assert word in text
            text = text.replace(word, other)
        path = tmp_path / "registry.yaml"
        path.write_text(text)
        watched = from_registry(load(path), path)
        trees = (_tree({"up/m.py": t}, f"up {v}") for t, v in ((old, 1), (new, 2)))
        return list(check(watched, *trees))

    return run


def _kinds(found: list[Finding]) -> list[tuple[str, str]]:
    return [(one.verdict.how, one.verdict.kind) for one in found]


def test_a_gap_that_upstream_closed(findings: Callable[..., list[Finding]]) -> None:
    """E21: one verdict for the gap, beside those of its patches."""
    found = findings(WITHOUT, WITH)
    assert _kinds(found) == [
        ("wraps_function", "compatible"),
        ("removal_probe", "fixed-upstream"),
    ]
    verdict = found[1].verdict
    assert verdict.sentence == (
        "up 2 no longer needs `one`: upstream takes a tone itself; "
        "remove the gap rather than port its patches"
    )
    assert str(verdict.new) == "up/m.py:1"
    assert worst(one.verdict.kind for one in found) == "fixed-upstream"


def test_a_probe_hides_no_broken_patch(findings: Callable[..., list[Finding]]) -> None:
    found = findings(WITHOUT, BROKEN)
    assert _kinds(found) == [
        ("wraps_function", "broken"),
        ("removal_probe", "fixed-upstream"),
    ]
    assert worst(one.verdict.kind for one in found) == "broken"


def test_a_gap_that_is_still_needed(findings: Callable[..., list[Finding]]) -> None:
    found = findings(WITHOUT, WITHOUT)
    assert _kinds(found)[1] == ("removal_probe", "identical")
    assert found[1].verdict.sentence == (
        "up 2 still needs `one`: `up.m:f` takes no `tone`"
    )


def test_a_probe_without_an_answer_says_so(
    findings: Callable[..., list[Finding]],
) -> None:
    (_, probed) = findings(WITHOUT, "def other(tone): ...")
    assert (probed.verdict.kind, probed.verdict.breakage) == ("review", "unreadable")
    assert "cannot be told: `up.m:f` is not there" in probed.verdict.sentence


@pytest.mark.parametrize(
    ("old", "new", "kind", "said"),
    [
        (WITH, WITH, "identical", "still does what `one` was for"),
        (WITHOUT, WITHOUT, "identical", "has not landed in up 2 yet"),
        (WITHOUT, WITH, "fixed-upstream", "up 1 did not: upstream takes a tone"),
        (
            WITH,
            WITHOUT,
            "broken",
            "`one` is landed in up 1 and open in up 2: `up.m:f` takes no `tone`",
        ),
    ],
)
def test_a_landed_gap_has_to_stay_landed(
    old: str, new: str, kind: str, said: str, findings: Callable[..., list[Finding]]
) -> None:
    found = findings(old, new, **{"status: open": "status: landed"})
    assert _kinds(found)[1] == ("removal_probe", kind)
    assert said in found[1].verdict.sentence


def test_a_probe_about_two_packages_is_asked_of_each(
    tmp_path: Path, findings: Callable[..., list[Finding]]
) -> None:
    more = '\n      - says: P\n        all: [{symbol: "plug.m:f", exists: false}]'
    findings(
        WITHOUT,
        WITHOUT,
        **{"takes: tone}]": f"takes: tone}}]{more}", "[up]": "[up, plug]"},
    )
    path = tmp_path / "registry.yaml"
    watched = from_registry(load(path), path)
    assert [(one.how, one.package) for one in watched] == [
        ("wraps_function", "up"),
        ("removal_probe", "up"),
        ("removal_probe", "plug"),
    ]
    assert len({one.key for one in watched}) == 3


# Our own registry ------------------------------------------------------------------

NEEDLESS: dict[str, dict[str, str]] = {
    "runtime-guard": {
        "vllm/v1/worker/gpu/model_runner.py": """
            class GPUModelRunner:
                def execute_model(self, output):
                    self.step_observer.begin(output)
                def sample_tokens(self, grammar):
                    for observer in self.observers:
                        call(self.step_observer)
        """
    },
    "cos-sin": {
        "vllm/model_executor/layers/attention/mla_attention.py": """
            class MLAAttention:
                def forward(self, q, kv, positions): return rotate(q, positions)
        """,
        "vllm/model_executor/layers/mla.py": """
            class MultiHeadLatentAttentionWrapper:
                def forward(self, positions, hidden):
                    return self.mla_attn(hidden, hidden, positions)
        """,
    },
    "kv-cache": {
        "vllm/v1/worker/utils.py": """
            def allocate_kv_cache(config, device):
                return zeros(config.size, alignment=config.alignment)
        """,
        "vllm/v1/kv_cache_layout.py": """
            class KVCacheLayout(Enum):
                LBHNC = 1
                KV_LBHNC = 2
        """,
    },
    "npu-graph": {
        f"vllm/v1/worker/gpu/{name}.py": "stream = current_platform.Stream()"
        for name in (
            "model_runner",
            "cudagraph_utils",
            "async_utils",
            "structured_outputs",
            "pp_utils",
        )
    },
    "graph-manager": {
        "vllm/v1/worker/gpu/cudagraph_utils.py": """
            class ModelCudaGraphManager:
                def __init__(self, config, model_runner): ...
                def run_fullgraph(self, desc): ...
        """
    },
    "speculator-graph-manager": {
        "vllm/v1/worker/gpu/spec_decode/target_dependent_ar/cudagraph_utils.py": """
            class SpeculatorCudaGraphManager:
                def __init__(self, config, speculator): ...
        """,
        "vllm/v1/worker/gpu/spec_decode/dflash/cudagraph.py": """
            class DFlashCudaGraphManager:
                def __init__(self, config, speculator): ...
        """,
    },
    "speculator-dispatch": {
        "vllm/v1/worker/gpu/spec_decode/__init__.py": """
            def init_speculator(config, device):
                return current_platform.get_speculator_cls(config)(config, device)
        """
    },
    "extract-hidden-states": {
        "vllm/v1/worker/gpu/spec_decode/__init__.py": """
            def init_speculator(config, device):
                from vllm.v1.worker.gpu.spec_decode.extract_hidden_states import (
                    ExtractHiddenStatesSpeculator,
                )
                return ExtractHiddenStatesSpeculator(config, device)
        """,
        "vllm/v1/worker/gpu/spec_decode/extract_hidden_states.py": (
            "class ExtractHiddenStatesSpeculator: ..."
        ),
    },
    "input-buffers": {
        "vllm/v1/worker/gpu/input_batch.py": """
            class InputBuffers:
                def __init__(self): self.seq_lens_cpu = zeros()
            class InputBatch:
                seq_lens_cpu: Tensor
                seq_lens_cpu_upper_bound: Tensor
        """
    },
    "profile-run-mc2": {
        "vllm/v1/worker/gpu/model_runner.py": """
            class GPUModelRunner:
                def profile_run(self):
                    current_platform.before_profile_run(self)
                    self._dummy_run(1)
        """
    },
    "shared-kv-backing": {
        "vllm/v1/worker/utils.py": "def allocate_kv_cache(config): ...",
        "vllm/v1/kv_cache_interface.py": """
            class KVCacheTensor:
                size: int
                layers: list[str]
                layer_stride: int
        """,
    },
}
"""A made-up upstream for each gap, in which nobody needs it."""


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load()


@pytest.mark.parametrize("gap", NEEDLESS)
def test_our_probes_see_an_upstream_without_the_need(
    gap: str, registry: Registry
) -> None:
    signs = [s for s in registry[gap].removal_probe if s.package == "vllm"]
    said = answer(signs, _tree(NEEDLESS[gap]))
    assert said.truth == "yes", said


def test_every_probe_of_ours_has_such_an_upstream(registry: Registry) -> None:
    probed = {g.id for g in registry.gaps if g.removal_probe}
    assert probed == set(NEEDLESS)


@pytest.mark.parametrize("gap", NEEDLESS)
def test_our_probes_do_not_take_a_void_for_an_answer(
    gap: str, registry: Registry
) -> None:
    """An upstream in which everything moved: nothing is declared needless."""
    signs = [s for s in registry[gap].removal_probe if s.package == "vllm"]
    assert answer(signs, _tree({"vllm/other.py": ""})).truth != "yes"


PLUGIN = {
    "cos-sin": {
        "vllm_ascend/attention/mla_v1.py": "def build(self): return 1",
        "vllm_ascend/attention/sfa_v1.py": "def build(self): return 1",
        "vllm_ascend/worker/v2/model_runner.py": """
            class NPUModelRunner:
                def __init__(self, config): super().__init__(config)
        """,
    },
    "kv-cache": {
        "vllm_ascend/worker/v2/attn_utils.py": "def build_metadata(): ...",
        "vllm_ascend/worker/v2/model_runner.py": "class NPUModelRunner: ...",
    },
}


@pytest.mark.parametrize("gap", PLUGIN)
def test_our_probes_see_a_plugin_without_the_need(gap: str, registry: Registry) -> None:
    signs = [s for s in registry[gap].removal_probe if s.package == "vllm_ascend"]
    assert signs
    assert answer(signs, _tree(PLUGIN[gap])).truth == "yes"


@pytest.mark.vllm
def test_our_probes_of_the_installed_vllm(registry: Registry) -> None:
    """The twelve are answered, and only what has landed is answered with yes."""
    from ascend_shims.upstream.sources import open_source

    source = open_source("installed")
    tree = Tree(source)
    assert source.version is not None
    since_029 = tuple(map(int, re.findall(r"\d+", source.version)[:2])) >= (0, 29)
    said = {
        gap.id: answer(signs, tree).truth
        for gap in registry.gaps
        if (signs := [s for s in gap.removal_probe if s.package == "vllm"])
    }
    assert set(said) == set(NEEDLESS)
    landed = {gap.id for gap in registry.gaps if gap.status == "landed"}
    assert {gap for gap, truth in said.items() if truth == "yes"} == (
        landed if since_029 else set()
    )
    assert "unknown" not in said.values()


def test_the_lock_names_the_files_that_probes_read() -> None:
    """So that a check of a remote release reads them in the same few requests."""
    import json

    lock = json.loads(packaged().with_suffix(".lock").read_text())
    modules = lock["baselines"]["vllm==0.32.0"]["modules"]
    assert "vllm.v1.kv_cache_interface" in modules
    assert "vllm.model_executor.layers.mla" in modules


def test_the_registry_spells_probes_as_the_types_do(registry: Registry) -> None:
    """Anchors and flow style are read like everything else."""
    data = yaml.safe_load(packaged().read_text(encoding="utf-8"))
    for gap in data["gaps"]:
        spelled = gap.get("removal_probe", [])
        assert msgspec.convert(spelled, tuple[Sign, ...]) == (
            registry[gap["id"]].removal_probe
        )
