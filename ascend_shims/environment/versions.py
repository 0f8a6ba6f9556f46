"""When a version is inside a range, outside it, or says nothing.

Ranges are PEP 440. What counts is the public version: `0.28.0+cpu` and
`v0.28.0` are `0.28.0`. A pre-release is inside only a range that names a
pre-release itself. `packaging` has changed its defaults on this between
releases, so nothing here relies on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import lru_cache

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

__all__ = ["Fit", "fit", "fit_all", "parse"]


class Fit(Enum):
    """How a version stands to a range."""

    INSIDE = "inside"
    OUTSIDE = "outside"
    UNKNOWN = "unknown"


def parse(raw: str | None) -> Version | None:
    """The public version that `raw` stands for, or None where it says nothing.

    Source builds without tags call themselves `0.1.dev1+gabc` or `0.0.0`, and
    some packages `dev`: none of these tells which release the code is.
    """
    try:
        version = Version(raw or "")
    except InvalidVersion:
        return None
    untagged = version.is_devrelease and version.release[:2] in {(0, 1), (0, 0), (0,)}
    if untagged or not any(version.release):
        return None
    return Version(version.public)


@lru_cache(maxsize=256)
def _admits_prereleases(range_: str) -> bool:
    for specifier in SpecifierSet(range_):
        try:
            if Version(specifier.version.removesuffix(".*")).is_prerelease:
                return True
        except InvalidVersion:
            continue
    return False


@lru_cache(maxsize=1024)
def fit(raw: str | None, range_: str) -> Fit:
    """How the version `raw` stands to `range_`.

    Raises `packaging.specifiers.InvalidSpecifier` for a malformed range.
    """
    specifiers = SpecifierSet(range_)
    version = parse(raw)
    if version is None:
        return Fit.UNKNOWN
    inside = specifiers.contains(version, prereleases=_admits_prereleases(range_))
    return Fit.INSIDE if inside else Fit.OUTSIDE


def fit_all(versions: Mapping[str, str | None], ranges: Mapping[str, str]) -> Fit:
    """How a set of versions stands to a set of ranges, package by package."""
    fits = {fit(versions.get(package), range_) for package, range_ in ranges.items()}
    if Fit.OUTSIDE in fits:
        return Fit.OUTSIDE
    return Fit.UNKNOWN if Fit.UNKNOWN in fits else Fit.INSIDE
