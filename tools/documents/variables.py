"""The page about environment variables: those that the code knows, and no others."""

from __future__ import annotations

from ascend_shims.switches import ELSEWHERE, NAMES

from .markdown import code, note, paragraph, table

__all__ = ["page"]

_NOT_A_PLAN = {
    "Messages": {
        "ASCEND_SHIMS_LANG": "language of what `shims` says: `en`, `zh_CN`; without it "
        "that of the locale",
    },
    "Reading releases": {
        "ASCEND_SHIMS_CACHE": "folder for what was read of releases, or `off`; default "
        "`ascend-shims` in `XDG_CACHE_HOME`, else in `~/.cache`",
        "ASCEND_SHIMS_ALLOW_HOSTS": "further hosts that the package index may send to",
    },
    "The guard": {
        "ASCEND_SHIMS_GUARD": "file with thresholds and actions, read again when it "
        "changes",
        "ASCEND_SHIMS_GUARD_DETECTORS": "what to look for: `nonfinite-logits`, "
        "`repeated-tokens`, …",
        "ASCEND_SHIMS_GUARD_REPORT": "file to which each finding goes, a line of JSON",
    },
    "Ranks": {
        "ASCEND_SHIMS_RANKS": "`off`: ranks are not compared when they start",
        "ASCEND_SHIMS_RANKS_PATIENCE": "seconds to wait for a rank that tells nothing; "
        "default 60",
    },
    "On the NPU": {
        "ASCEND_SHIMS_SUPER_KERNEL": "`1`: fuse the operators of a captured graph",
    },
    "The rig": {
        "ASCEND_SHIMS_SIM_MEMORY": "bytes of device memory, for example `512MiB`; "
        "default 64 GiB",
        "ASCEND_SHIMS_SIM_CHECKS": "`0`: stale lengths are computed with, as silently "
        "as on the device",
        "ASCEND_SHIMS_SIM_HAZARDS": "`1`: streams that are not joined are reported",
        "ASCEND_SHIMS_SIM_QUICK": "`0`: Triton's interpreter as it is; `1`: quickened "
        "on upstream's CPU backend, too",
    },
    "Set-up, tools and tests of a checkout": {
        "ASCEND_SHIMS_TORCH_INDEX": "package index that has CPU builds of torch, for "
        "`tools/env`, `demo` and `test`",
        "ASCEND_SHIMS_BROWSER": "a Chromium for the tests of pages",
        "ASCEND_SHIMS_SOAK": "`1`: the long forms of some tests; `tools/test --soak` "
        "sets it",
        "ASCEND_SHIMS_ENTERED": "set by the tools when they start themselves again",
        "ASCEND_SHIMS_URL": "in `tools/ci/gitlab.yml`: where the job gets the toolkit",
        "ASCEND_SHIMS_REF": "in `tools/ci/gitlab.yml`: the commit that it takes",
    },
}
"""What those mean that do not steer a plan, by who reads them."""


def page() -> str:
    parts = [
        "# Environment variables",
        note("ascend_shims/switches.py"),
        paragraph(
            "What the environment switches off stays off, whatever a program asks for. "
            "A variable that begins with `ASCEND_SHIMS` and is not here is told as a "
            "mistake, with the nearest one, and so is a value that is not understood. "
            "A process goes on with the default then, and a command ends with 2."
        ),
        paragraph(
            "What is switched on by `1` is so by `true`, `yes` or `on` as well, and "
            "off by `0`, `false`, `no` or `off`, in capital letters, too."
        ),
        "## What is applied",
        table(("variable", "meaning"), ((code(k), v) for k, v in NAMES.items())),
    ]
    for title, variables in _known().items():
        rows = ((code(name), told) for name, told in variables.items())
        parts += [f"## {title}", table(("variable", "meaning"), rows)]
    return "\n\n".join(parts) + "\n"


def _known() -> dict[str, dict[str, str]]:
    """Those that the code knows."""
    told = {name for group in _NOT_A_PLAN.values() for name in group}
    missing = sorted(ELSEWHERE - told)
    if missing:
        raise LookupError(
            f"say in {__name__} what {', '.join(missing)} means; it is in ELSEWHERE"
        )
    kept = {
        title: {name: what for name, what in group.items() if name in ELSEWHERE}
        for title, group in _NOT_A_PLAN.items()
    }
    return {title: group for title, group in kept.items() if group}
