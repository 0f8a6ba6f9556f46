"""What the rules of `check` look at: the sound parts of a file and their places.

A rule must work on a file that is partly unsound, so it cannot use the values of
`model`, which are whole or not there at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from yaml.nodes import Node

from .document import Place
from .problems import Problem

__all__ = [
    "UNSOUND",
    "Examination",
    "Finding",
    "Gates",
    "Outline",
    "OutlinedGap",
    "OutlinedPatch",
    "Text",
    "Unsound",
    "outline",
]


class Unsound:
    """Stands where a value was that cannot be used."""

    def __repr__(self) -> str:
        return "UNSOUND"


UNSOUND: Final = Unsound()


class Examination(msgspec.Struct, frozen=True):
    """What is left of a file when its structural mistakes are set aside."""

    data: Any
    """The content, with `UNSOUND` in the place of what is wrong."""

    problems: tuple[Problem, ...] = ()
    renamed: Mapping[Place, Node] = {}
    """Parts read although their key was misspelled, by their right place."""


class Text(msgspec.Struct, frozen=True):
    """A sound piece of text and where it stands."""

    value: str
    place: Place


class Finding(msgspec.Struct, frozen=True):
    """A problem whose place is not yet a line."""

    place: Place
    message: str
    fix: str
    on_key: bool = False


class Gates(msgspec.Struct, frozen=True):
    """One `versions` mapping."""

    ranges: Mapping[str, Text]
    sound: bool
    """False if a range is missing here because it is not even text."""


class OutlinedPatch(msgspec.Struct, frozen=True):
    place: Place
    targets: tuple[Text, ...]
    replacement: Text | None
    gates: Gates
    relies_on: tuple[Gates, ...]


class OutlinedGap(msgspec.Struct, frozen=True):
    place: Place
    id: Text | None
    status: str | None
    needs: tuple[Text, ...]
    after: tuple[Text, ...]
    after_is_sound: bool
    gates: Gates
    patches: tuple[OutlinedPatch, ...]
    has_patches: bool
    """Also true where none of them is sound."""

    has_unpatched: bool
    removal_probe: Text | None

    @property
    def name(self) -> str:
        """How messages call this gap."""
        return self.id.value if self.id else f"number {int(self.place[-1]) + 1}"

    @property
    def module(self) -> str | None:
        return self.id.value.replace("-", "_") if self.id else None


class Outline(msgspec.Struct, frozen=True):
    upstreams: tuple[str, ...]
    """Empty if they are not sound."""

    package: Text | None
    gaps: tuple[OutlinedGap, ...]


def outline(data: Any, default_package: str) -> Outline:
    """The sound parts of a file's content."""
    content = data if isinstance(data, dict) else {}
    upstreams = content.get("upstreams")
    listed = upstreams if isinstance(upstreams, list) else []
    return Outline(
        upstreams=() if UNSOUND in listed else tuple(listed),
        package=_text(content, "package", ()) or _default(content, default_package),
        gaps=tuple(_gap(gap, place) for gap, place in _parts(content, "gaps", ())),
    )


def _default(content: dict[str, Any], package: str) -> Text | None:
    return None if "package" in content else Text(package, ("package",))


def _gap(data: dict[str, Any], place: Place) -> OutlinedGap:
    needs = data.get("needs")
    after = data.get("after", [])
    return OutlinedGap(
        place=place,
        id=_text(data, "id", place),
        status=data["status"] if isinstance(data.get("status"), str) else None,
        needs=(
            _texts(needs, "gaps", (*place, "needs")) if isinstance(needs, dict) else ()
        ),
        after=_texts(data, "after", place),
        after_is_sound=isinstance(after, list) and UNSOUND not in after,
        gates=_gates(data, place),
        patches=tuple(_patch(*part) for part in _parts(data, "patches", place)),
        has_patches=bool(data.get("patches", [])),
        has_unpatched="unpatched" in data and data["unpatched"] is not None,
        removal_probe=_text(data, "removal_probe", place),
    )


def _patch(data: dict[str, Any], place: Place) -> OutlinedPatch:
    target = _text(data, "target", place)
    return OutlinedPatch(
        place=place,
        targets=(target,) if target else _texts(data, "target", place),
        replacement=_text(data, "replacement", place),
        gates=_gates(data, place),
        relies_on=tuple(_gates(*part) for part in _parts(data, "relies_on", place)),
    )


def _gates(data: dict[str, Any], place: Place) -> Gates:
    versions = data.get("versions", {})
    if not isinstance(versions, dict):
        return Gates({}, sound=False)
    ranges = {
        package: Text(text, (*place, "versions", package))
        for package, text in versions.items()
        if isinstance(text, str)
    }
    return Gates(ranges, sound=len(ranges) == len(versions))


def _parts(
    data: dict[str, Any], key: str, place: Place
) -> Iterator[tuple[dict[str, Any], Place]]:
    """The mappings in a list."""
    items = data.get(key)
    for index, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, dict):
            yield item, (*place, key, index)


def _texts(data: dict[str, Any], key: str, place: Place) -> tuple[Text, ...]:
    items = data.get(key)
    return tuple(
        Text(item, (*place, key, index))
        for index, item in enumerate(items if isinstance(items, list) else ())
        if isinstance(item, str)
    )


def _text(data: dict[str, Any], key: str, place: Place) -> Text | None:
    value = data.get(key)
    return Text(value, (*place, key)) if isinstance(value, str) else None
