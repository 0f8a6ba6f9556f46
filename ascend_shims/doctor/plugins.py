"""What `VLLM_PLUGINS` leaves of the plugins.

vLLM splits the value at commas and compares the pieces as they are: a space belongs to
the name, and an empty value is a list of one empty name.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from .finding import Finding, notice, ok, problem
from .toolkit import ENTRY

__all__ = ["PluginsSeen", "judge_plugins"]

_AREA = "plugins"
_RIG = "ascend_shims_rig"


@dataclass(frozen=True, slots=True)
class PluginsSeen:
    """The variable, and the names that it may have."""

    value: str | None
    known: frozenset[str]
    """Of all plugins of vLLM that are installed."""
    on_rig: bool = False


def judge_plugins(seen: PluginsSeen) -> Iterator[Finding]:
    if seen.value is None:
        yield ok(_AREA, "vllm-plugins", "VLLM_PLUGINS is not set: all plugins load")
        return
    names = seen.value.split(",")
    wanted = list(dict.fromkeys(filter(None, map(str.strip, names))))
    if not wanted:
        yield problem(
            _AREA,
            "vllm-plugins-empty",
            "VLLM_PLUGINS is set and empty, so vLLM loads no plugin, ours neither",
            "unset VLLM_PLUGINS",
        )
        return
    yield _ours(seen, names, wanted)
    yield from _unknown(seen, wanted)


def _ours(seen: PluginsSeen, names: list[str], wanted: list[str]) -> Finding:
    needed = [ENTRY.name, *([_RIG] if seen.on_rig else [])]
    mended = ",".join([*wanted, *(name for name in needed if name not in wanted)])
    fix = f"export VLLM_PLUGINS={mended}"
    if ENTRY.name not in wanted:
        return problem(
            _AREA,
            "vllm-plugins-without-ours",
            f"VLLM_PLUGINS names {', '.join(wanted)} and not {ENTRY.name}, so vLLM "
            "leaves our plugin out",
            fix,
        )
    spaced = next((n for n in names if n.strip() == ENTRY.name), "")
    if ENTRY.name not in names:
        return problem(
            _AREA,
            "vllm-plugins-spaces",
            f"VLLM_PLUGINS has spaces in {spaced!r}, which vLLM takes for a part of "
            "the name, so it leaves our plugin out",
            fix,
        )
    if seen.on_rig and _RIG not in names:
        return notice(
            _AREA,
            "vllm-plugins-without-rig",
            f"VLLM_PLUGINS leaves {_RIG} out, without which MLA models do not run on "
            "the rig",
            fix,
        )
    return ok(_AREA, "vllm-plugins", f"VLLM_PLUGINS={seen.value} has ours")


def _unknown(seen: PluginsSeen, wanted: list[str]) -> Iterator[Finding]:
    for name in wanted:
        if name in seen.known or name == ENTRY.name:
            continue
        near = difflib.get_close_matches(name, sorted(seen.known), n=1, cutoff=0.6)
        yield notice(
            _AREA,
            "vllm-plugins-unknown",
            f"VLLM_PLUGINS names {name!r}, and no plugin that is installed has this "
            "name",
            f"write {near[0]} instead" if near else f"install it, or take {name} out",
        )
