"""Ranges are decided without a list of releases: checked against brute force."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from ascend_shims.registry.ranges import can_match, find_match, overlap, parse

_RELEASES = ("0", "0.1", "1", "1.0.1", "1.1", "1.1.0.1", "1.2", "1.2.1", "2", "1!0.5")
_SUFFIXES = tuple(
    pre + post + dev
    for pre, post, dev in product(
        ("", "a0", "a1", "b0", "rc1", "rc2"),
        ("", ".post0", ".post1", ".post2"),
        ("", ".dev0", ".dev1", ".dev2"),
    )
)
GRID = tuple(Version(r + s) for r, s in product(_RELEASES, _SUFFIXES))

_named = st.builds(
    "{}{}".format,
    st.sampled_from(["0.1", "1", "1.0", "1.1", "1.2", "1.2.0", "1.2.1", "2", "1!0.5"]),
    st.sampled_from(["", "", "", "a1", "rc1", "rc2", ".post1", ".dev1", "rc1.post1"]),
)
_release = st.sampled_from(["0", "0.1", "1", "1.1", "1.2", "1.2.1", "2"])
_two_parts = st.sampled_from(["0.1", "1.1", "1.2.0", "1.2rc1", "1.1.post1", "1.2.1"])
_specifier = st.one_of(
    st.builds(
        "{}{}".format, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), _named
    ),
    st.builds("{}{}.*".format, st.sampled_from(["==", "!="]), _release),
    st.builds("~={}".format, _two_parts),
    st.builds("==={}".format, _named),
)
_ranges = st.lists(_specifier, max_size=4).map(",".join).map(SpecifierSet)


def _brute_force(specifiers: SpecifierSet) -> list[Version]:
    return [v for v in GRID if specifiers.contains(v, prereleases=True)]


@settings(max_examples=300, deadline=None)
@given(_ranges)
def test_no_range_that_matches_a_known_version_is_called_empty(
    specifiers: SpecifierSet,
) -> None:
    inside = _brute_force(specifiers)
    assert can_match(specifiers) or not inside, f"{specifiers} matches {inside[0]}"


@settings(max_examples=300, deadline=None)
@given(_ranges)
def test_a_match_is_a_witness(specifiers: SpecifierSet) -> None:
    found = find_match(specifiers)
    assert found is None or specifiers.contains(found, prereleases=True)
    assert found is None or found.local is None


@settings(max_examples=150, deadline=None)
@given(_ranges, _ranges)
def test_overlap_is_symmetric_and_found_by_brute_force(
    a: SpecifierSet, b: SpecifierSet
) -> None:
    assert overlap(a, b) == overlap(b, a)
    both = set(_brute_force(a)) & set(_brute_force(b))
    assert overlap(a, b) or not both


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        (">=0.28,<0.29", True),
        (">=0.30,<0.28", False),
        (">=0.28,<0.28", False),
        (">0.28,<0.28.1", True),  # 0.28.0.1
        (">0.28,<0.28.0.post1", False),  # `>` leaves out post-releases
        (">0.28.post0,<0.28.post2", True),
        (">=0.28rc1,<0.28", False),  # `<` leaves out its own pre-releases
        (">=0.28rc1,<0.28rc2", True),
        (">=0.28.dev0,<0.28rc1", True),
        ("<0.dev0", False),
        ("<0", False),
        ("<=0", True),
        ("==0.28.*,!=0.28.*", False),
        ("==0.28.*,!=0.28", True),
        ("==0.28.*,>=0.29.dev0", False),
        ("!=0.28.*,>=0.28,<0.29", False),
        ("!=0.28.*,>=0.28,<=0.29", True),
        ("~=0.28.1,<0.28.1", False),
        ("~=0.28.1,<0.29,!=0.28.1", True),
        ("~=0.28.1,>=0.29", False),
        ("~=0.28,>=0.29", True),
        ("===0.28.0", True),
        ("===0.28.0,==0.28", True),
        ("===0.28.0,>0.28", False),
        ("===0.28.0+cpu", False),  # a gate sees the public version
        ("==0.28.0+cpu", False),
        ("===nightly", False),
        (">=1!0", True),
        ("<1!0,>=9000", True),
        (">=0.27.1,<0.34", True),
        ("!=0,!=0.0.1,<0.0.2,!=0.0.0.1", True),
    ],
)
def test_known_ranges(text: str, matches: bool) -> None:
    assert can_match(parse(text)) is matches


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("<0.29", ">=0.29", False),
        ("<0.29", ">=0.28.1", True),
        ("", "==0.28.*", True),
        ("==0.28.*", "==0.28.1", True),
        ("==0.28.*", "==0.29.*", False),
        ("<=0.29", ">=0.29", True),
        ("<0.29", ">0.28.9", True),
    ],
)
def test_known_overlaps(a: str, b: str, expected: bool) -> None:
    assert overlap(parse(a), parse(b)) is expected


@pytest.mark.parametrize(
    ("text", "found"),
    [(">=0.28,<0.29", "0.28"), (">0.28,<0.30", "0.29"), ("<0.29", "0")],
)
def test_a_plain_release_is_the_preferred_match(text: str, found: str) -> None:
    assert find_match(parse(text)) == Version(found)


@pytest.mark.parametrize(
    "text", ["0.28", ">=", ">=0.28 <0.29", "nightly", ">=x", ">=1" + "0" * 5000]
)
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse(text)
