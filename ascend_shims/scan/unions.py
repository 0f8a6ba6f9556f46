"""Several version ranges as one, where one says the same.

PEP 440 has no "or". Of ranges that touch each other there is one that says the same;
of others the narrowest around them is true as well, and not all that is meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from math import prod

from packaging.specifiers import InvalidSpecifier, Specifier, SpecifierSet
from packaging.version import Version

from ..registry.ranges import find_match

__all__ = ["NEGATED", "negated", "plain", "union"]

NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MOST = 256
"""Combinations that are tried to see whether a range says the same as several."""


def plain(text: str) -> str:
    """A range in operators that have an opposite; empty where it has none."""
    try:
        parts = [part for one in SpecifierSet(text) for part in _plain(one)]
    except InvalidSpecifier:
        return ""
    return ",".join(sorted(parts)) if all(parts) else ""


def _plain(one: Specifier) -> Iterator[str]:
    if one.operator == "~=":
        head = one.version.rpartition(".")[0]
        yield f">={one.version}"
        yield f"=={head}.*" if head.replace(".", "").isdigit() else ""
    else:
        yield f"{one.operator}{one.version}" if one.operator in NEGATED else ""


def negated(text: str) -> list[str]:
    """The ranges of which one holds where `text` does not."""
    return [_opposite(one) for one in SpecifierSet(text)]


def _opposite(one: Specifier) -> str:
    return f"{NEGATED[one.operator]}{one.version}"


@lru_cache(maxsize=512)
def _holds_any(text: str) -> bool:
    """Whether a release is inside; pre-releases are in no range that names none."""
    found = find_match(SpecifierSet(text))
    return found is not None and not found.is_prerelease


def _is_within(text: str, other: str) -> bool:
    return not any(_holds_any(f"{text},{one}") for one in negated(other))


def union(several: Sequence[str]) -> tuple[str, bool]:
    """A range around all of these, and whether it says the same; empty: any version."""
    alive = [text for text in dict.fromkeys(several) if _holds_any(text)]
    if not alive:
        return several[0], True
    bounds = dict.fromkeys(one for text in alive for one in _bounds(text))
    kept = [one for one in bounds if all(_is_within(text, one) for text in alive)]
    for one in list(kept):
        rest = [other for other in kept if other != one]
        if rest and _is_within(",".join(rest), one):
            kept = rest
    found = ",".join(kept)
    if _is_all_of(found, alive):
        return found, True
    # One release that is left out says little where others are, too.
    return ",".join(one for one in kept if one[0] in "<>"), False


def _bounds(text: str) -> Iterator[str]:
    """What a range says, one by one, and what follows from each of that."""
    for one in SpecifierSet(text):
        version = one.version
        yield f"{one.operator}{version}"
        if version.endswith(".*"):
            if one.operator == "==":
                yield f">={version.removesuffix('.*')}"
                yield f"<{_after(version.removesuffix('.*'))}"
        elif one.operator in ("<", ">"):
            yield f"{one.operator}={version}"
            yield f"!={version}"
        elif one.operator == "==":
            yield f">={version}"
            yield f"<={version}"


def _after(text: str) -> str:
    *head, last = Version(text).release
    return ".".join(map(str, (*head, last + 1)))


def _is_all_of(text: str, several: Iterable[str]) -> bool:
    """Whether whatever is in a range is in one of several."""
    without = [negated(one) for one in several]
    if prod(map(len, without)) > _MOST:
        return False
    return not any(
        _holds_any(",".join(filter(None, (text, *chosen))))
        for chosen in product(*without)
    )
