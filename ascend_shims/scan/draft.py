"""A first registry from what was found, for a person to finish.

One gap for each file that patches something. Its patches are written as comments, to
be taken in once the code has moved to the patches package, where the loader looks for
it. Until then every target is watched, so that drift tells of it at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from packaging.specifiers import SpecifierSet

from ..errors import ConfigurationError
from ..registry.ranges import can_match
from ..upstream.contract import Reliance, RelianceError
from .found import Found
from .releases import gap_ids

__all__ = ["NothingToDraftError", "draft"]

_KINDS = {"wraps_function": "wrap", "replaces_function": "replace"}
_NO_TARGET = ("table", "sys-modules", "delete", "source-text", "namespace")
"""Forms that are no patch of one name."""

_MOST = 1500
"""Watched symbols; a registry holds no more than the loader is willing to read."""


class NothingToDraftError(ConfigurationError):
    """Nothing was found that a registry could say."""


def draft(found: Sequence[Found], *, claims: Mapping[str, str] | None = None) -> str:
    """The text of a registry.

    Args:
        claims: releases that the code is for, by package.
    """
    patches = [one for one in found if one.is_patch]
    relied = [one for one in found if _symbol(one) is not None]
    if not patches:
        raise NothingToDraftError(
            "no patch was found, so there is no gap to write down; name the folder "
            "that holds the patches"
        )
    upstreams = dict.fromkeys(one.package for one in patches if one.package)
    lines = [
        "# A draft, written by `shims scan`. What is marked TODO is for a person to",
        "# decide. Each gap is a file; merge those that close the same difference.",
        "schema: 1",
        f"upstreams: [{', '.join(upstreams or ['vllm'])}]",
        "",
        *_watch(relied),
        "gaps:",
    ]
    ids = gap_ids(one.path for one in patches)
    for path, some in groupby(patches, key=lambda one: one.path):
        lines += [*_gap(ids[path], path, list(some), claims or {}), ""]
    return "\n".join(lines).rstrip() + "\n"


def _gap(
    name: str, path: str, patches: Sequence[Found], claims: Mapping[str, str]
) -> Iterator[str]:
    comments = dict.fromkeys(one.comment for one in patches if one.comment)
    why = _plain(" ".join(comments)) or f"TODO: why {path} changes upstream"
    yield f"  - id: {name}"
    yield f"    title: {_quoted(path)}  # TODO: what it is about, in a few words"
    yield "    status: open"
    yield "    kind: workaround  # TODO: or adaptation, which is meant to stay"
    yield f"    why: {_quoted(why)}"
    yield ('    remove_when: "TODO: what has to happen upstream for this to go"')
    if claims:
        yield f"    versions: {_ranges(claims)}  # TODO: the releases it is for"
    else:
        yield "    # TODO: versions, the releases it is for"
    module = name.replace("-", "_")
    yield (
        f'    unpatched: "TODO: move the code to `patches/{module}.py`, then take this '
        'line out and the patches in"'
    )
    expressed, told = _split(patches)
    if expressed:
        yield "    # patches:"
    for one in expressed:
        yield from (f"    # {line}" for line in _patch(one))
    for one, why_not in told:
        yield f"    # line {one.line}: {_plain(why_not)}"


def _split(patches: Sequence[Found]) -> tuple[list[Found], list[tuple[Found, str]]]:
    """What a registry can say, and what it cannot, with the reason."""
    expressed: list[Found] = []
    told: list[tuple[Found, str]] = []
    seen: dict[str, Found] = {}
    for one in patches:
        symbol = _symbol(one)
        if one.target is None:
            told.append((one, f"TODO: {one.unresolved}"))
        elif one.form in _NO_TARGET or symbol is None:
            told.append(
                (one, f"TODO: {one.form} of {one.target} is no patch of a name")
            )
        elif _meets(one, seen.get(symbol)):
            told.append((one, f"TODO: {symbol} is patched a second time"))
        elif not _possible(one):
            told.append((one, f"TODO: {symbol}, under conditions that are never met"))
        else:
            seen[symbol] = one
            expressed.append(one)
    return expressed, told


def _meets(one: Found, before: Found | None) -> bool:
    """Whether two patches of one target may apply at once."""
    if before is None:
        return False
    for package, range_ in one.ranges.items():
        other = before.ranges.get(package)
        if other and not can_match(SpecifierSet(range_) & SpecifierSet(other)):
            return False
    return True


def _possible(one: Found) -> bool:
    if any(gate.kind == "never" for gate in one.gates):
        return False
    return all(can_match(SpecifierSet(range_)) for range_ in one.ranges.values())


def _patch(one: Found) -> Iterator[str]:
    targets = [str(_symbol(one)), *one.candidates]
    spelled = f"[{', '.join(map(_quoted, targets))}]" if targets[1:] else targets[0]
    yield f"  - target: {spelled}"
    kind = "add" if one.adds else _KINDS.get(one.how, "replace")
    yield f"    kind: {kind}"
    yield f"    replacement: {_replacement(one)}  # line {one.line}"
    if one.ranges:
        yield f"    versions: {_ranges(one.ranges)}"
    if one.how == "replaces_class_binding":
        yield '    swap_is_safe: "TODO: why a class may be swapped here"'
    other = [gate.text for gate in one.gates if gate.kind != "version"]
    if other:
        yield f"    # TODO: only where {_plain(' and '.join(other))}"


def _replacement(one: Found) -> str:
    """The name of what is put there, or one made from the target's."""
    if one.replacement.isidentifier() and one.replacement not in ("None", "True"):
        return one.replacement
    return f"our_{one.names[-1].strip('_')}"


def _symbol(one: Found) -> str | None:
    """The target as a registry writes it, where it can."""
    if one.target is None:
        return None
    try:
        return Reliance(one.target, one.how).symbol
    except RelianceError:
        return None


def _watch(found: Iterable[Found]) -> Iterator[str]:
    seen: dict[tuple[object, ...], Found] = {}
    for one in found:
        if _possible(one) and not one.adds:
            key = (_symbol(one), one.how, tuple(sorted(one.ranges.items())))
            seen.setdefault(key, one)
    kept = list(seen.values())[:_MOST]
    if not kept:
        return
    yield "# What is relied on: patched, overridden, or used though it is private."
    yield "watch:"
    for path, some in groupby(kept, key=lambda one: one.path):
        yield f"  # {_plain(path)}"
        for one in some:
            ranges = f", versions: {_ranges(one.ranges)}" if one.ranges else ""
            symbol = _quoted(str(_symbol(one)))
            yield f"  - {{symbol: {symbol}, how: {one.how}{ranges}}}"
    if len(seen) > len(kept):
        yield f"  # TODO: {len(seen) - len(kept)} more are left out"
    yield ""


def _ranges(ranges: Mapping[str, str]) -> str:
    inside = ", ".join(f"{name}: {_quoted(text)}" for name, text in ranges.items())
    return f"{{{inside}}}"


def _plain(text: str) -> str:
    """On one line, without what YAML does not take."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _quoted(text: str) -> str:
    return json.dumps(_plain(text), ensure_ascii=False)
