"""Rules about version ranges: each can be read, and each can come true."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import TypeAlias

from packaging.specifiers import SpecifierSet

from .outline import Finding, Gates, Outline, OutlinedGap, OutlinedPatch, Text
from .problems import nearest, shown
from .ranges import can_match, find_match, parse

__all__ = ["Ranges", "findings", "meeting", "reach"]

Ranges: TypeAlias = Mapping[str, SpecifierSet]
"""Import package to range; a package that is not in it may have any version."""


def findings(outline: Outline) -> Iterator[Finding]:
    for gap in outline.patched:
        claimed = yield from _level(outline, gap.gates, {}, "")
        for provider in gap.providers:
            yield from _level(outline, provider.gates, claimed, "the range of its gap")
        for patch in gap.patches:
            allowed = yield from _level(
                outline, patch.gates, claimed, "the range of its gap"
            )
            for gates in patch.relies_on:
                yield from _level(outline, gates, allowed, "the range of its patch")


def reach(gap: OutlinedGap, patch: OutlinedPatch) -> Ranges | None:
    """Where a patch applies; `None` if that cannot be told from a faulty file."""
    merged: dict[str, SpecifierSet] = {}
    for gates in (gap.gates, patch.gates):
        if not gates.sound:
            return None
        for package, text in gates.ranges.items():
            specifiers = _parsed(text)
            if specifiers is None:
                return None
            merged[package] = merged.get(package, SpecifierSet()) & specifiers
    return merged


def meeting(a: Ranges, b: Ranges) -> str | None:
    """A version of each package on which both apply, in words; else `None`."""
    words = []
    for package in sorted({*a, *b}):
        both = a.get(package, SpecifierSet()) & b.get(package, SpecifierSet())
        version = find_match(both)
        if version is None:
            return None
        words.append(f"{package} {version}")
    return ", ".join(words) or "any version"


def _level(
    outline: Outline, gates: Gates, outer: Ranges, whose: str
) -> Generator[Finding, None, Ranges]:
    """What is wrong with one `versions`; returns what it leaves of `outer`."""
    narrowed = dict(outer)
    for package, text in gates.ranges.items():
        yield from _package(outline, package, text)
        specifiers = _parsed(text)
        if specifiers is None:
            yield Finding(
                text.place,
                f"`{shown(text.value)}` is not a range",
                "write one of PEP 440, for example `>=0.28,<0.29`",
            )
        elif not can_match(specifiers):
            yield Finding(
                text.place,
                f"`{shown(text.value)}` can never match",
                "no version is inside; check the bounds",
            )
        else:
            given = outer.get(package)
            narrowed[package] = given & specifiers if given else specifiers
            if given and not can_match(narrowed[package]):
                yield Finding(
                    text.place,
                    f"`{shown(text.value)}` lies outside {whose}, `{given}`",
                    "no version is in both; correct one of them",
                )
                narrowed[package] = given
    return narrowed


def _package(outline: Outline, package: str, text: Text) -> Iterator[Finding]:
    """A gate on a package that nobody has can never open."""
    if not package.isidentifier():
        fix = "write the name that is imported, such as `torch_npu`"
        yield Finding(
            text.place, f"`{shown(package)}` is not an import package", fix, on_key=True
        )
    elif package not in outline.upstreams:
        meant = nearest(package, outline.upstreams, similarity=0.8)
        if meant:
            yield Finding(
                text.place,
                f"`{shown(package)}` is not among the upstreams",
                f"did you mean `{meant}`?",
                on_key=True,
            )


def _parsed(text: Text) -> SpecifierSet | None:
    try:
        return parse(text.value)
    except ValueError:
        return None
