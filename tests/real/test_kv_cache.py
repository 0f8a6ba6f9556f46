"""kv-cache on upstream's own allocation, binding, zeroing and block copies.

One interpreter of the release under test makes every cache of `CASES` three times:
as upstream does for backends that take packed caches, and with the shim for backends
that take K and V apart, without and with a KV connector. What it saw is compared.
"""

from __future__ import annotations

import inspect
import itertools
import os
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

GRANULE = 2 * 1024 * 1024
BLOCKS = 6
GAP = "kv-cache"

# Layers with regions of their own; with K and V in each page; MLA.
REGIONS = ("gqa", "kernel", "fp8", "uniform", "sharing")
PAGES = ("sliding", "hybrid", "unequal", "interleaved")
LATENT = ("mla",)
OTHERS = ("state",)
CASES = (*REGIONS, *PAGES, *LATENT, *OTHERS)
REFUSED = {
    "scales": r"a\.0: a cache \[6, 2, 4, 20\] .* use `auto` or `fp8`",
    "heads": r"spread over .* \(a\.0, a\.1, s\.4, s\.5\): set VLLM_.*_LAYOUT=LBNHC",
    "latent": r"a\.0: an MLA cache divides into kv_lora_rank .* 16 and 4 do not add",
    "packed": r"a\.0: .* takes K and V apart, but its cache was allocated packed",
    "mixed": r"z\.9: it shares the cache of a layer .* while Packed takes them packed",
}


@pytest.fixture(scope="module")
def seen(run_real: Callable[..., Any]) -> dict[str, Any]:
    environment = {"ASCEND_SHIMS_DEVICE": "none"}
    found: dict[str, Any] = run_real(look, env=environment)
    return found


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest, seen: dict[str, Any]) -> Any:
    if request.param in seen["absent"]:
        pytest.skip(f"{request.param}: {seen['absent'][request.param]}")
    return request.param, seen["cases"][request.param]


def test_every_patch_of_the_gap_is_in_force(seen: dict[str, Any]) -> None:
    assert seen["state"] == "applied"
    skipped = {n for n, s in seen["patches"].items() if s == "version-skipped"}
    applied = {n for n, s in seen["patches"].items() if s == "applied"}
    assert applied | skipped == set(seen["patches"])
    old = {"allocate_layers", "reshape_layers"}
    new = {"allocate_backing", "keep_manager_blocks"}
    assert skipped == (old if seen["shared"] else new)


def test_blocks_hold_what_upstreams_hold(case: Any) -> None:
    name, (plain, connector) = case
    assert plain["blocks"] >= BLOCKS, name
    assert plain["different"] == connector["different"] == []


def test_bytes_are_shared_where_upstreams_are(case: Any) -> None:
    for found in case[1]:
        assert found["aliased otherwise"] == []


def test_each_layer_is_bound_as_its_operator_takes_it(case: Any) -> None:
    name, (plain, connector) = case
    expected = SHAPES[name]
    assert plain["bound"] == connector["bound"] == expected
    assert plain["interior contiguous"] == len(
        [1 for shape in expected.values() if isinstance(shape[0], list)]
    )


def test_regions_are_contiguous_and_aligned(case: Any) -> None:
    name, both = case
    for found in both:
        assert found["regions"] == (name in REGIONS)


def test_upstream_keeps_one_tensor_a_layer_blocks_first(case: Any) -> None:
    for found in case[1]:
        assert set(found["kept"].values()) <= {BLOCKS, 2 * BLOCKS}
        assert set(found["kept"]) >= set(found["bound"])


def test_backings_are_aligned_and_extended_with_a_connector(case: Any) -> None:
    plain, connector = case[1]
    for found in (plain, connector):
        assert found["backings"]
        assert [base % GRANULE for base, _, _ in found["backings"]] == [0] * len(
            found["backings"]
        )
        layers = [layer for _, _, names in found["backings"] for layer in names]
        assert sorted(layers) == sorted(found["kept"])
        assert found["padding"] <= found["bound on padding"]
    assert {length % GRANULE for _, length, _ in connector["backings"]} == {0}


def test_new_blocks_are_zeroed_whole_and_no_others(case: Any) -> None:
    for found in case[1]:
        assert found["not zeroed"] == found["zeroed besides"] == 0


def test_upstreams_block_copies_copy_a_block(case: Any) -> None:
    for found in case[1]:
        assert found["not copied"] == found["changed besides"] == []


def test_a_packed_backend_gets_exactly_upstreams_views(seen: dict[str, Any]) -> None:
    assert seen["packed"]
    assert seen["packed"] == seen["stock"]


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_cannot_be_divided_is_refused(name: str, seen: dict[str, Any]) -> None:
    if name in seen["absent"]:
        pytest.skip(f"{name}: {seen['absent'][name]}")
    import re

    kind, said = seen["refused"][name]
    assert kind == "UnsplittableCacheError"
    assert re.search(REFUSED[name], said), said


def test_padding_is_reserved_where_the_engine_plans(seen: dict[str, Any]) -> None:
    assert seen["reserved"] == {
        "divided": 64 * GRANULE - (1 + 2 * 2) * GRANULE,
        "packed": 64 * GRANULE - (1 + 2) * GRANULE,
        "elsewhere": 64 * GRANULE - (1 + 2 * 2) * GRANULE,
        "no layers": 64 * GRANULE,
    }


def test_more_than_the_user_gave_is_told_with_numbers(seen: dict[str, Any]) -> None:
    (said,) = seen["excess"]
    assert f"more than kv_cache_memory_bytes={GRANULE}" in said
    assert said.endswith(f"raise kv_cache_memory_bytes to {seen['taken']}")
    assert seen["taken"] > GRANULE


def test_a_dump_of_hidden_states_lies_on_its_own(seen: dict[str, Any]) -> None:
    if "dump" in seen["absent"]:
        pytest.skip(seen["absent"]["dump"])
    for found in seen["dump"]:
        assert found["backings"] == [["a.0", "a.1"], ["dump"]]
        assert found["dump"] == [[BLOCKS, 3, 4, 16], "torch.float32", BLOCKS * 768]
        assert found["order"] == ["a.0", "a.1", "dump"]
    plan = seen["dump plan"]
    assert plan["blocks"] * (plan["block"] + plan["page"]) <= plan["memory"]
    assert (plan["blocks"] + 1) * (plan["block"] + plan["page"]) > plan["memory"]


def test_the_marker_is_what_the_registry_adds(seen: dict[str, Any]) -> None:
    assert seen["marker"] is True


@pytest.mark.parametrize("model", ["gqa", "mla"])
def test_on_upstreams_cpu_backend_the_gap_changes_no_token(
    model: str, request: pytest.FixtureRequest, run_real: Callable[..., Any]
) -> None:
    path = request.getfixturevalue(f"model_{model}")
    environment = {
        "ASCEND_SHIMS_DEVICE": "none",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    }
    told = run_real(generated, path, env=environment)
    assert told["state"] == "applied"
    assert [len(row) for row in told["stock"]] == [24] * len(PROMPTS)
    assert told["shimmed"] == told["stock"]
    assert told["bases"]
    assert {base % GRANULE for base in told["bases"]} == {0}
    # The engine was given 1 GiB, fills it to less than a block, and pads the rest.
    gib = 1 << 30
    assert gib - told["page"] - told["bound"] < told["planned"]
    assert told["planned"] + told["padding"] <= gib
    assert told["padding"] <= told["bound"]


def _pair(tokens: int, heads: int, k: int, v: int, blocks: int = BLOCKS) -> Any:
    return [[blocks, tokens, heads, k], [blocks, tokens, heads, v]]


_GQA = _pair(4, 2, 8, 8)
SHAPES: dict[str, dict[str, Any]] = {
    "gqa": {"a.0": _GQA, "a.1": _GQA, "a.2": _GQA},
    "kernel": {"a.0": _pair(2, 2, 8, 8, 12), "a.1": _pair(2, 2, 8, 8, 12)},
    "fp8": {"a.0": _GQA, "a.1": _GQA},
    "uniform": {"a.0": _GQA, "b.3": _pair(4, 2, 12, 12)},
    "sharing": {"a.0": _GQA, "a.1": _GQA, "z.9": _GQA},
    "sliding": {"a.0": _GQA, "a.1": _GQA, "s.4": _GQA, "s.5": _GQA},
    "hybrid": {"a.0": _GQA, "a.1": _GQA, "m.6": ["state"], "m.7": ["state"]},
    "unequal": {"a.0": _pair(4, 2, 8, 4), "a.1": _pair(4, 2, 8, 4)},
    "interleaved": {"a.0": _GQA, "a.1": _GQA, "s.4": _GQA, "s.5": _GQA},
    "mla": {"a.0": _pair(4, 1, 16, 8), "a.1": _pair(4, 1, 16, 8)},
    "state": {"m.6": ["state"], "m.7": ["state"]},
}


PROMPTS = [[1, 2, 3, 4, 5], [7, 8, 9], list(range(100, 137)), [11]]


def generated(model: str) -> dict[str, Any]:
    """Tokens of upstream's CPU backend without and with the gap, in one process."""
    import gc

    import ascend_shims
    from ascend_shims.device.kv_memory import backings, padding_bound
    from ascend_shims.simnpu.runtime import engine, generate

    llm = engine(model)
    told: dict[str, Any] = {"stock": generate(llm, PROMPTS, 24)}
    llm.llm_engine.engine_core.shutdown()
    del llm
    gc.collect()

    os.environ["ASCEND_SHIMS_DEVICE"] = "sim"
    report = ascend_shims.apply(only=[GAP])
    told["state"] = next(g.state.value for g in report.gaps if g.id == GAP)
    llm = engine(model, num_gpu_blocks_override=None)
    told["shimmed"] = generate(llm, PROMPTS, 24)
    core = llm.llm_engine.engine_core.engine_core
    runner = core.model_executor.driver_worker.worker.model_runner
    plan = runner.kv_cache_config
    sizes = [tensor.size for tensor in plan.kv_cache_tensors]
    planned = max(sizes) if hasattr(plan.kv_cache_tensors[0], "layers") else sum(sizes)
    caches = {str(i): cache for i, cache in enumerate(runner.kv_caches)}
    found = backings(caches)
    last = found[-1]
    told["bases"] = [backing.base for backing in found]
    told["planned"] = planned
    told["page"] = planned // plan.num_blocks
    told["padding"] = last.base + last.length - found[0].base + GRANULE - planned
    told["bound"] = padding_bound(divided=0, others=len(caches))
    core.shutdown()
    return told


# -- what follows runs in the other interpreter ----------------------------------


def look() -> dict[str, Any]:
    """Everything the tests above ask for, as JSON."""
    import ascend_shims
    from ascend_shims.patches import kv_cache

    world = _World()
    described = {name: world.make(name, divided=False) for name in CASES}
    stock = {n: made and world.spelled(made) for n, made in described.items()}
    os.environ["ASCEND_SHIMS_DEVICE"] = "sim"
    report = ascend_shims.apply(only=[GAP])
    (gap,) = (gap for gap in report.gaps if gap.id == GAP)
    connector = False
    kv_cache._has_connector = lambda: connector
    cases: dict[str, Any] = {}
    for name, reference in described.items():
        if reference is None:
            continue
        cases[name] = []
        for connector in (False, True):  # noqa: B007, the lambda above reads it
            cases[name].append(world.compared(name, reference))
    connector = False
    packed = {
        n: (m := world.make(n, divided=False)) and world.spelled(m) for n in CASES
    }
    return {
        "state": gap.state.value,
        "patches": {
            p.replacement: p.state.value for p in gap.patches if p.companion is None
        },
        "shared": world.shared,
        "absent": world.absent,
        "cases": cases,
        "stock": stock,
        "packed": packed,
        "refused": {name: world.refused(name) for name in REFUSED},
        "reserved": world.reserved(),
        **world.excess(),
        **world.dump(),
        "marker": _marker(),
    }


def _marker() -> Any:
    from ascend_shims.patches import shared_kv_backing

    return shared_kv_backing.supports_standardized_shared_kv_backing


class _World:
    """Made-up configurations on upstream's real classes."""

    def __init__(self) -> None:
        import torch
        from vllm.model_executor.layers.attention import Attention
        from vllm.model_executor.layers.attention_layer_base import AttentionLayerBase
        from vllm.v1 import kv_cache_interface as interface
        from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackend
        from vllm.v1.core import kv_cache_utils as planning
        from vllm.v1.worker import utils
        from vllm.v1.worker.gpu import attn_utils, model_runner

        self.torch, self.specs, self.planning = torch, interface, planning
        self.attn_utils, self.runner, self.utils = attn_utils, model_runner, utils
        self.shared = hasattr(attn_utils, "allocate_kv_cache")
        self.absent: dict[str, str] = {}
        if not self.shared:
            self.absent["dump"] = "no speculator that dumps before 0.29"
            self.absent["heads"] = self.absent["packed"] = "no such layout before 0.29"
            self.absent["interleaved"] = "no block-outermost layout before 0.29"

        class Packed(CPUAttentionBackend):  # type: ignore[misc]
            content: int | None = None

            @classmethod
            def get_kv_cache_shape(
                cls, num_blocks: int, block_size: int, heads: int, size: int, **_: Any
            ) -> tuple[int, ...]:
                return num_blocks, heads, block_size, cls.content or 2 * size

        class Apart(Packed):
            takes_split_kv = True

        class PackedLatent(Packed):
            @classmethod
            def get_kv_cache_shape(
                cls, num_blocks: int, block_size: int, _heads: int, size: int, **_: Any
            ) -> tuple[int, ...]:
                return num_blocks, block_size, size

        class ApartLatent(PackedLatent):
            takes_split_kv = True

        class Layer(Attention):  # type: ignore[misc]
            def __init__(self, backend: Any, target: str | None) -> None:
                torch.nn.Module.__init__(self)
                self.backend = backend
                self.kv_sharing_target_layer_name = target
                self.num_heads = 2

            def get_attn_backend(self) -> Any:
                return self.backend

        class Latent(torch.nn.Module, AttentionLayerBase):  # type: ignore[misc]
            kv_lora_rank, qk_rope_head_dim = 16, 8
            get_kv_cache_spec = get_attn_backend = None

            def __init__(self, backend: Any) -> None:
                super().__init__()
                self.get_attn_backend = lambda: backend

            def bind_kv_cache(self, kv_cache: Any) -> None:
                # As upstream's, that expects one head: [B, 1, N, C].
                self.kv_cache = kv_cache.squeeze(1)

        self.backends = {False: Packed, True: Apart}
        self.latents = {False: PackedLatent, True: ApartLatent}
        self.layer, self.latent = Layer, Latent

    # configurations

    def groups(self, name: str) -> list[tuple[list[str], Any]]:
        specs, torch = self.specs, self.torch
        base = {"block_size": 4, "num_kv_heads": 2, "head_size": 8}
        half = {**base, "dtype": torch.float16}
        full = specs.FullAttentionSpec(**half)
        window = specs.SlidingWindowSpec(**half, sliding_window=8)
        latent = {**half, "num_kv_heads": 1, "head_size": 24}
        mamba = specs.MambaSpec(
            block_size=4,
            shapes=((3, 8), (2, 40)),
            dtypes=(torch.float16,) * 2,
            page_size_padded=full.page_size_bytes,
        )
        if name == "kernel":
            return [(["a.0", "a.1"], full)]
        if name in ("sliding", "interleaved", "heads"):
            return [(["a.0", "a.1"], full), (["s.4", "s.5"], window)]
        if name == "hybrid":
            return [(["a.0", "a.1"], full), (["m.6", "m.7"], mamba)]
        if name == "state":
            return [(["m.6", "m.7"], mamba)]
        if name in ("mla", "latent"):
            spec = specs.MLAAttentionSpec(**latent)
            return [(["a.0", "a.1"], spec)]
        if name == "fp8":
            mode = specs.KVQuantMode.FP8_PER_TENSOR
            spec = specs.FullAttentionSpec(
                **base, dtype=torch.uint8, kv_quant_mode=mode
            )
            return [(["a.0", "a.1"], spec)]
        if name == "scales":
            mode = specs.KVQuantMode.INT8_PER_TOKEN_HEAD
            spec = specs.FullAttentionSpec(
                **base, dtype=torch.int8, kv_quant_mode=mode, state_content_bytes=20
            )
            return [(["a.0"], spec)]
        if name == "uniform":
            wide = specs.FullAttentionSpec(**{**half, "head_size": 12})
            own = {"a.0": full, "b.3": wide}
            spec = specs.UniformTypeKVCacheSpecs(block_size=4, kv_cache_specs=own)
            return [(["a.0", "b.3"], spec)]
        if name == "unequal":
            spec = specs.FullAttentionSpec(**half, head_size_v=4)
            return [(["a.0", "a.1"], spec)]
        if name in ("gqa",):
            return [(["a.0", "a.1", "a.2"], full)]
        return [(["a.0", "a.1"], full)]

    def layout(self, name: str) -> Any:
        from vllm.v1.kv_cache_layout import KVCacheLayout

        return KVCacheLayout[
            {"interleaved": "BLNHC", "heads": "LHBNC"}.get(name, "LBNHC")
        ]

    def stub(self, name: str, layers: dict[str, Any], **cache: Any) -> Any:
        """As much of a `VllmConfig` as planning and allocation read."""
        cache_config = SimpleNamespace(
            num_gpu_blocks_override=BLOCKS,
            prefix_cache_retention_interval=None,
            kv_cache_memory_bytes=None,
            get_resolved_kv_cache_layout=lambda: self.layout(name),
            **cache,
        )
        hf_config = SimpleNamespace(model_type="made-up")
        return SimpleNamespace(
            cache_config=cache_config,
            attention_config=SimpleNamespace(hisparse_config=None),
            compilation_config=SimpleNamespace(static_forward_context=layers),
            model_config=SimpleNamespace(hf_config=hf_config),
            kv_transfer_config=None,
        )

    def layers(self, name: str, *, divided: bool) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for names, spec in self.groups(name):
            for one in names:
                if isinstance(spec, self.specs.MLAAttentionSpec):
                    made[one] = self.latent(self.latents[divided])
                    if name == "latent":
                        made[one].qk_rope_head_dim = 4
                elif isinstance(spec, self.specs.MambaSpec):
                    made[one] = _State()
                else:
                    made[one] = self.layer(self.backends[divided], None)
        if name in ("sharing", "mixed"):
            other = divided and name == "sharing"
            made["z.9"] = self.layer(self.backends[other], "a.1")
        return made

    def make(self, name: str, *, divided: bool, memory: int | None = None) -> Any:
        """A cache made by `init_kv_cache`, or None where the release has none such."""
        if name in self.absent:
            return None
        layers = self.layers(name, divided=divided)
        # Releases before 0.29 ask the backend what a token of these takes.
        self.backends[False].content = {"unequal": 12, "scales": 20}.get(name)
        config = self.stub(name, layers)
        config.cache_config.kv_cache_memory_bytes = memory
        groups = [
            self.specs.KVCacheGroupSpec(names, spec)
            for names, spec in self.groups(name)
        ]
        plan = self.planning.get_kv_cache_config_from_groups(config, groups, 1 << 20)
        if layers.get("z.9") is not None:
            plan.kv_cache_groups[0].layer_names.append("z.9")
        sizes = [2 if name == "kernel" else 4] * len(groups)
        attention = self.attention_groups(plan, layers, sizes[0])
        kept: list[Any] = []
        given = {
            "runner_kv_caches": kept,
            "forward_context": layers,
            "kv_cache_config": plan,
            "attn_groups": attention if self.shared else [attention],
            "device": self.torch.device("cpu"),
            "cache_dtype": "auto",
            "kernel_block_sizes": sizes,
            "vllm_config": config,
        }
        takes = inspect.signature(self.attn_utils.init_kv_cache).parameters
        caches = self.attn_utils.init_kv_cache(
            **{key: value for key, value in given.items() if key in takes}
        )
        return SimpleNamespace(
            name=name,
            plan=plan,
            layers=layers,
            caches=caches,
            attention=attention,
            sizes=sizes,
            specs=self.specs_of(plan),
        )

    def specs_of(self, plan: Any) -> dict[str, Any]:
        found = {}
        for group in plan.kv_cache_groups:
            own = getattr(group.kv_cache_spec, "kv_cache_specs", {})
            for one in group.layer_names:
                found[one] = own.get(one, group.kv_cache_spec)
        found.update({"z.9": found["a.1"]} if "z.9" in found else {})
        return found

    def attention_groups(
        self, plan: Any, layers: dict[str, Any], kernel: int
    ) -> list[Any]:
        made = []
        for number, group in enumerate(plan.kv_cache_groups):
            own = getattr(group.kv_cache_spec, "kv_cache_specs", None)
            if own:
                parts = [([name], spec) for name, spec in own.items()]
            else:
                parts = [(list(group.layer_names), group.kv_cache_spec)]
            for names, spec in parts:
                backend = layers[names[0]].get_attn_backend()
                made.append(self.utils.AttentionGroup(backend, names, spec, number))
                if hasattr(made[-1], "kernel_block_size"):
                    made[-1].kernel_block_size = kernel
        return made

    # what came out

    def spelled(self, made: Any) -> Any:
        """All that upstream says of its tensors, addresses within a storage."""
        said = {}
        for name, cache in made.caches.items():
            storage = cache.untyped_storage()
            said[name] = [
                str(cache.dtype),
                list(cache.shape),
                list(cache.stride()),
                cache.data_ptr() - storage.data_ptr(),
                storage.nbytes(),
                made.layers[name].kv_cache.data_ptr() - storage.data_ptr(),
            ]
        return said

    def compared(self, name: str, reference: Any) -> dict[str, Any]:
        from ascend_shims.device.kv_memory import backings, padding_bound

        made = self.make(name, divided=True)
        pairs = {n: _parts(layer.kv_cache) for n, layer in made.layers.items()}
        storages = {c.untyped_storage().data_ptr(): c for c in made.caches.values()}
        sizes = {
            c.untyped_storage().data_ptr(): c.untyped_storage().nbytes()
            for c in reference.caches.values()
        }
        taken = sum(c.untyped_storage().nbytes() for c in storages.values())
        divided = sum(isinstance(la.kv_cache, tuple) for la in made.layers.values())
        return {
            "blocks": reference.plan.num_blocks,
            "different": list(self.differences(reference, made, pairs)),
            "aliased otherwise": list(self.aliases(reference, made, pairs)),
            "bound": {
                n: [list(p.shape) for p in parts]
                if isinstance(made.layers[n].kv_cache, tuple)
                else ["state"]
                for n, parts in pairs.items()
            },
            "interior contiguous": sum(
                all(p[0].is_contiguous() for p in parts)
                for n, parts in pairs.items()
                if isinstance(made.layers[n].kv_cache, tuple)
            ),
            "regions": any(
                len(parts) == 2
                and all(p.is_contiguous() and not p.data_ptr() % GRANULE for p in parts)
                for parts in pairs.values()
            ),
            "kept": {n: c.shape[0] for n, c in made.caches.items()},
            "backings": [
                [b.base, b.length, list(b.layers)] for b in backings(made.caches)
            ],
            "padding": taken + GRANULE - sum(sizes.values()),
            "bound on padding": padding_bound(
                divided=divided, others=len(made.layers) - divided
            ),
            **self.zeroed(made, pairs),
            **self.copied(made),
        }

    def owned(self, made: Any) -> Iterator[tuple[str, int]]:
        """Layers and kernel blocks, each block with the layers of one group."""
        groups = made.plan.kv_cache_groups
        for number, group in enumerate(groups):
            for name in group.layer_names:
                blocks = made.caches[name].shape[0]
                ratio = blocks // made.plan.num_blocks
                for block in range(blocks):
                    if block // ratio % len(groups) == number:
                        yield name, block

    def differences(self, reference: Any, made: Any, pairs: Any) -> Iterator[str]:
        """Writes to upstream's blocks, copies them over, and reads all at the end."""
        number = itertools.count(1)
        for name, block in self.owned(reference):
            packed = reference.caches[name]
            values = self.torch.arange(packed[block].numel()) * 7 + next(number)
            packed[block] = (values % 101).reshape(packed[block].shape).to(packed.dtype)
        for name, block in self.owned(reference):
            for part, theirs in zip(
                pairs[name], self.cut(made, name, reference, block), strict=True
            ):
                part[block].copy_(theirs)
        for name, block in self.owned(reference):
            for part, theirs in zip(
                pairs[name], self.cut(made, name, reference, block), strict=True
            ):
                if not self.torch.equal(part[block], theirs) or not theirs.any():
                    yield f"{name}[{block}]"

    def cut(self, made: Any, name: str, reference: Any, block: int) -> list[Any]:
        """A block of upstream's, in the parts and the order of ours."""
        packed = reference.caches[name][block]
        bound = made.layers[name].kv_cache
        if not isinstance(bound, tuple):
            return [packed]
        k, v = bound
        rows = packed.reshape(k.shape[2], k.shape[1], -1).transpose(0, 1)
        first, second = rows.split([k.shape[3], v.shape[3]], dim=-1)
        return [first, second]

    def aliases(self, reference: Any, made: Any, pairs: Any) -> Iterator[str]:
        cells = [(n, b) for n, c in reference.caches.items() for b in range(len(c))]
        theirs = {c: _bytes([reference.caches[c[0]][c[1]]]) for c in cells}
        ours = {c: _bytes([part[c[1]] for part in pairs[c[0]]]) for c in cells}
        for one, other in itertools.combinations(cells, 2):
            if bool(theirs[one] & theirs[other]) != bool(ours[one] & ours[other]):
                yield f"{one} {other}"

    def zeroed(self, made: Any, pairs: Any) -> dict[str, int]:
        """Bytes of block 1 that upstream's zeroing would miss, and others it hits."""
        zeroer = self.runner.KVBlockZeroer
        given = {
            "device": self.torch.device("cpu"),
            "attn_groups_iter": iter(made.attention),
            "kernel_block_sizes": made.sizes,
            "cache_dtype": "auto",
            "static_forward_context": made.layers,
            "num_blocks": made.plan.num_blocks,
        }
        takes = inspect.signature(zeroer.__init__).parameters
        meta = zeroer(**{k: v for k, v in given.items() if k in takes})._meta
        hit: set[int] = set()
        if meta is not None:
            for start, stride, page in zip(
                *(m.tolist() for m in meta[:3]), strict=True
            ):
                begin = start + stride * 4
                hit |= set(range(begin, begin + page * 4))
        wanted: set[int] = set()
        for name, parts in pairs.items():
            if isinstance(made.layers[name].kv_cache, tuple):
                ratio = parts[0].shape[0] // made.plan.num_blocks
                wanted |= _bytes([p[ratio : 2 * ratio] for p in parts])
        return {"not zeroed": len(wanted - hit), "zeroed besides": len(hit - wanted)}

    def copied(self, made: Any) -> dict[str, list[str]]:
        """Block 1 over block 4, by upstream's function as the runner calls it."""
        blocks = made.plan.num_blocks
        views = {n: c.unflatten(0, (blocks, -1)) for n, c in made.caches.items()}
        for number, view in enumerate(views.values()):
            values = self.torch.arange(view.numel()).reshape(view.shape) * 3 + number
            view.copy_(values % 103)
        before = {n: v.clone() for n, v in views.items()}
        copy = self.runner.copy_kv_cache_blocks_inplace
        copy(list(made.caches.values()), blocks, [(1, 4)])
        others = [b for b in range(blocks) if b != 4]
        same = self.torch.equal
        return {
            "not copied": [n for n, v in views.items() if not same(v[4], before[n][1])],
            "changed besides": [
                n for n, v in views.items() if not same(v[others], before[n][others])
            ],
        }

    # what is refused, planned, told

    def refused(self, name: str) -> Any:
        if name in self.absent:
            return None
        from ascend_shims.patches import kv_cache

        whole = self.attn_utils
        stock = getattr(whole, "allocate_kv_cache", None)
        try:
            if name == "packed":
                whole.allocate_kv_cache = self.utils.allocate_kv_cache
            self.make(name, divided=True)
        except kv_cache.UnsplittableCacheError as error:
            return [type(error).__name__, str(error)]
        except TypeError as error:
            # Releases whose spec knows no such packing have no such cache.
            self.absent[name] = str(error)
            return None
        finally:
            if name == "packed":
                whole.allocate_kv_cache = stock
        return ["nothing", name]

    def reserved(self) -> dict[str, int]:
        from ascend_shims.patches import kv_cache

        def plan(_config: Any, _specs: Any, memory: list[int]) -> int:
            return memory[0]

        specs = [{"a.0": object(), "a.1": object()}]
        found = {}
        for kind, divided in (("divided", True), ("packed", False)):
            layers = self.layers("fp8", divided=divided)
            config = self.stub("fp8", layers)
            found[kind] = kv_cache.reserve_padding(plan, config, specs, [64 * GRANULE])
        config = self.stub("fp8", {})
        args = [64 * GRANULE]
        found["elsewhere"] = kv_cache.reserve_padding(plan, config, specs, args)
        found["no layers"] = kv_cache.reserve_padding(plan, config, [{}], args)
        return found

    def excess(self) -> dict[str, Any]:
        import logging

        said: list[logging.LogRecord] = []
        handler = logging.Handler(logging.WARNING)
        handler.emit = said.append  # type: ignore[method-assign]
        logger = logging.getLogger("ascend_shims.kv_cache")
        logger.addHandler(handler)
        made = self.make("gqa", divided=True, memory=GRANULE)
        self.make("gqa", divided=True, memory=1 << 30)
        logger.removeHandler(handler)
        storages = {c.untyped_storage().data_ptr(): c for c in made.caches.values()}
        sizes = [c.untyped_storage().nbytes() for c in storages.values()]
        starts = sorted(storages)
        span = starts[-1] - starts[0] + storages[starts[-1]].untyped_storage().nbytes()
        assert len(sizes) == len(starts)
        return {"excess": [r.getMessage() for r in said], "taken": span + GRANULE}

    def dump(self) -> dict[str, Any]:
        if "dump" in self.absent:
            return {}
        from ascend_shims.device.kv_memory import backings
        from ascend_shims.patches import extract_hidden_states as patches

        specs, torch = self.specs, self.torch
        hidden = specs.HiddenStateCacheSpec(
            block_size=4, num_kv_heads=3, head_size=16, dtype=torch.float32
        )
        assert hidden.page_size_bytes == 768
        padded = specs.FullAttentionSpec(
            block_size=4,
            num_kv_heads=2,
            head_size=8,
            dtype=torch.float16,
            page_size_padded=768,
        )
        groups = [
            specs.KVCacheGroupSpec(["a.0", "a.1"], padded),
            specs.KVCacheGroupSpec(["dump"], hidden),
        ]
        config = self.stub("gqa", {})
        plan = self.planning.get_kv_cache_config_from_groups(config, groups, 1 << 20)
        seen = []
        # On upstream's own allocation, and on the one that kv-cache left there.
        for allocate in (
            self.utils.allocate_kv_cache,
            self.attn_utils.allocate_kv_cache,
        ):
            caches = patches.separate_dump(
                allocate, plan, torch.device("cpu"), self.layout("gqa"), [4, 4]
            )
            view = caches["dump"]
            seen.append(
                {
                    "backings": sorted(list(b.layers) for b in backings(caches)),
                    "dump": [
                        list(view.shape),
                        str(view.dtype),
                        view.untyped_storage().nbytes(),
                    ],
                    "order": list(caches),
                }
            )

        def planned(_config: Any, _specs: Any, memory: list[int]) -> list[Any]:
            config.cache_config.num_gpu_blocks_override = None
            return [
                self.planning.get_kv_cache_config_from_groups(config, groups, size)
                for size in memory
            ]

        (plan,) = patches.count_dump(planned, config, [{}], [1 << 20])
        block = plan.kv_cache_tensors[0].size // plan.num_blocks
        return {
            "dump": seen,
            "dump plan": {
                "blocks": plan.num_blocks,
                "block": block,
                "page": 768,
                "memory": 1 << 20,
            },
        }


class _State:
    """A Mamba layer as far as binding goes: upstream's own view, as it is."""

    def bind_kv_cache(self, kv_cache: Any) -> None:
        self.kv_cache = kv_cache

    def get_attn_backend(self) -> type:
        return object


def _parts(bound: Any) -> list[Any]:
    return list(bound) if isinstance(bound, tuple) else [bound]


def _bytes(views: list[Any]) -> set[int]:
    import torch

    found: set[int] = set()
    for view in views:
        index = torch.zeros((), dtype=torch.int64)
        for n, stride in zip(view.shape, view.stride(), strict=True):
            index = index.unsqueeze(-1) + torch.arange(n) * stride
        for start in (view.data_ptr() + index.flatten() * view.itemsize).tolist():
            found.update(range(start, start + view.itemsize))
    return found
