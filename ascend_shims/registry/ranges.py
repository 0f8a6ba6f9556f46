"""Whether PEP 440 ranges can match anything, alone and together.

A range says nothing about which releases exist, so "can match" means: some
public version that PEP 440 can spell lies inside. A set of specifiers changes its
answer only near the versions that it names; trying one version in every stretch
between those places decides the question without a list of releases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import product

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

__all__ = ["can_match", "find_match", "overlap", "parse"]

_MAX_LENGTH = 200
"""A longer range is a mistake, and its numbers may be too long to be numbers."""

_Pre = tuple[str, int] | None


class _Base(msgspec.Struct, frozen=True):
    """A version without its pre, post and dev parts."""

    epoch: int
    release: tuple[int, ...]


@lru_cache(maxsize=512)
def parse(text: str) -> SpecifierSet:
    """The range that `text` spells. Raises `ValueError` if it spells none."""
    if len(text) > _MAX_LENGTH:
        raise InvalidSpecifier(f"longer than {_MAX_LENGTH} characters")
    return SpecifierSet(text)


def can_match(specifiers: SpecifierSet) -> bool:
    """True if some public version, pre-releases included, is inside."""
    return find_match(specifiers) is not None


def overlap(a: SpecifierSet, b: SpecifierSet) -> bool:
    """True if some public version is inside both."""
    return can_match(a & b)


def find_match(specifiers: SpecifierSet) -> Version | None:
    """A public version that is inside, a plain release where there is one."""
    return _find_match(str(specifiers))


# By text: for some releases of `packaging`, `===1.0` and `===1` are equal keys.
@lru_cache(maxsize=512)
def _find_match(text: str) -> Version | None:
    specifiers = SpecifierSet(text)
    for version in _candidates(specifiers):
        # What `packaging` does with pre-releases by default changes between its
        # releases; a gate must not.
        if specifiers.contains(version, prereleases=True):
            return version
    return None


def _candidates(specifiers: SpecifierSet) -> Iterator[Version]:
    named = tuple(_named(specifiers))
    yield from named
    bases = tuple(_bases(named))
    yield from (_version(base) for base in bases)
    for base in bases:
        yield from _variants(base, named)


def _named(specifiers: SpecifierSet) -> Iterator[Version]:
    for specifier in specifiers:
        try:
            version = Version(specifier.version.removesuffix(".*"))
        except InvalidVersion:
            continue  # `===` takes any text, and no version equals this one
        yield Version(version.public)


def _bases(named: Iterable[Version]) -> Iterator[_Base]:
    """The releases around which an answer may change, each once."""
    origins = [_Base(version.epoch, version.release) for version in named]
    origins += [_Base(epoch, (0,)) for epoch in {0, *(o.epoch for o in origins)}]
    depth = max(len(origin.release) for origin in origins)
    seen = set()
    for base in (
        *origins,
        *(_Base(o.epoch, bumped) for o in origins for bumped in _bumped(o.release)),
        *(_Base(o.epoch, _just_above(o.release, depth)) for o in origins),
    ):
        key = _key(base)
        if key not in seen:
            seen.add(key)
            yield base


def _bumped(release: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Where the prefixes of a release end: `==1.2.*` ends at `1.3`."""
    for length in range(len(release), 0, -1):
        yield (*release[: length - 1], release[length - 1] + 1)


def _just_above(release: tuple[int, ...], depth: int) -> tuple[int, ...]:
    """A release beneath every other one that has at most `depth` components."""
    return (*release, *(0,) * (depth - len(release)), 1)


def _key(base: _Base) -> _Base:
    """Equal for releases that PEP 440 takes as equal: `1.0` and `1`."""
    release = base.release
    while release and release[-1] == 0:
        release = release[:-1]
    return _Base(base.epoch, release)


def _variants(base: _Base, named: Iterable[Version]) -> Iterator[Version]:
    """Every kind of pre-, post- and dev-release of `base` that may matter."""
    here = [v for v in named if _key(_Base(v.epoch, v.release)) == _key(base)]
    pres: list[_Pre] = [None, ("rc", 0), ("a", 0)]
    for version in here:
        if version.pre is not None:
            letter, number = version.pre
            pres += [(letter, number), (letter, number + 1)]
    posts = _around(version.post for version in here)
    devs = _around(version.dev for version in here)
    for pre, post, dev in product(dict.fromkeys(pres), posts, devs):
        yield _version(base, pre, post, dev)


def _around(numbers: Iterable[int | None]) -> tuple[int | None, ...]:
    found = [number for number in numbers if number is not None]
    return tuple(dict.fromkeys([None, 0, *found, *(n + 1 for n in found)]))


def _version(
    base: _Base,
    pre: _Pre = None,
    post: int | None = None,
    dev: int | None = None,
) -> Version:
    text = f"{base.epoch}!" + ".".join(map(str, base.release))
    if pre is not None:
        text += f"{pre[0]}{pre[1]}"
    if post is not None:
        text += f".post{post}"
    if dev is not None:
        text += f".dev{dev}"
    return Version(text)
