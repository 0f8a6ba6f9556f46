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
    "OutlinedCondition",
    "OutlinedGap",
    "OutlinedPatch",
    "OutlinedProvider",
    "OutlinedSign",
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
    is_default: bool = False
    """Whether the file does not say it."""


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
    copies: tuple[Text, ...]


class OutlinedProvider(msgspec.Struct, frozen=True):
    symbol: Text | None
    gates: Gates


class OutlinedCondition(msgspec.Struct, frozen=True):
    place: Place
    symbols: tuple[Text, ...]
    keys: tuple[str, ...]
    """The keys with a value, `symbol` apart, those with an unsound one too."""


class OutlinedSign(msgspec.Struct, frozen=True):
    place: Place
    conditions: tuple[OutlinedCondition, ...]


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
    providers: tuple[OutlinedProvider, ...]
    signs: tuple[OutlinedSign, ...]
    is_traced: bool
    goes_with: str | None
    """Of a companion: the gaps that have it."""

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
    watched: tuple[str, ...]
    """The packages of what is watched."""

    watch_copies: tuple[Text, ...]
    """What watched symbols say is copied from them."""

    gaps: tuple[OutlinedGap, ...]
    companions: tuple[OutlinedGap, ...]
    """They have an id and patches, as gaps do, and little else."""

    beside: tuple[str, ...] = ()
    """Ids of the registry beside which this one is found: they may be named, too."""

    is_served: bool = False
    """Whether companions of that one go with traced gaps."""

    home: str | None = None
    """The package that a found registry's patches have to be in."""

    folders: tuple[str, ...] = ()
    """Where the package lies; empty: where an import would find it."""

    @property
    def patched(self) -> tuple[OutlinedGap, ...]:
        """Whatever has patches, and a module for them."""
        return (*self.gaps, *self.companions)


def outline(data: Any, default_package: str) -> Outline:
    """The sound parts of a file's content."""
    content = data if isinstance(data, dict) else {}
    upstreams = content.get("upstreams")
    listed = upstreams if isinstance(upstreams, list) else []
    return Outline(
        upstreams=() if UNSOUND in listed else tuple(listed),
        package=_text(content, "package", ()) or _default(content, default_package),
        watched=tuple(_watched(content)),
        watch_copies=tuple(_copies(content, "watch", ())),
        gaps=tuple(_gap(gap, place) for gap, place in _parts(content, "gaps", ())),
        companions=tuple(_gap(*part) for part in _parts(content, "companions", ())),
    )


def _default(content: dict[str, Any], package: str) -> Text | None:
    return (
        None if "package" in content else Text(package, ("package",), is_default=True)
    )


def _gap(data: dict[str, Any], place: Place) -> OutlinedGap:
    needs = data.get("needs")
    after = data.get("after", [])
    return OutlinedGap(
        place=place,
        id=_text(data, "id", place),
        status=_word(data, "status"),
        needs=_needs(needs, (*place, "needs")) if isinstance(needs, dict) else (),
        after=_texts(data, "after", place),
        after_is_sound=isinstance(after, list) and UNSOUND not in after,
        gates=_gates(data, place),
        patches=tuple(_patch(*part) for part in _parts(data, "patches", place)),
        has_patches=bool(data.get("patches", [])),
        has_unpatched="unpatched" in data and data["unpatched"] is not None,
        providers=tuple(
            _provider(*part) for part in _parts(data, "provided_by", place)
        ),
        signs=tuple(_sign(*part) for part in _parts(data, "removal_probe", place)),
        is_traced=data.get("traced") is not None,
        goes_with=_word(data, "goes_with"),
    )


def _word(data: dict[str, Any], key: str) -> str | None:
    return data[key] if isinstance(data.get(key), str) else None


def _needs(data: dict[str, Any], place: Place) -> tuple[Text, ...]:
    return (*_texts(data, "gaps", place), *_texts(data, "patched", place))


def _provider(data: dict[str, Any], place: Place) -> OutlinedProvider:
    return OutlinedProvider(_text(data, "symbol", place), _gates(data, place))


def _watched(content: dict[str, Any]) -> Iterator[str]:
    for data, place in _parts(content, "watch", ()):
        symbol = _text(data, "symbol", place)
        if symbol:
            yield symbol.value.partition(":")[0].partition(".")[0]


def _sign(data: dict[str, Any], place: Place) -> OutlinedSign:
    return OutlinedSign(
        place=place,
        conditions=tuple(_condition(*part) for part in _parts(data, "all", place)),
    )


def _condition(data: dict[str, Any], place: Place) -> OutlinedCondition:
    symbol = _text(data, "symbol", place)
    keys = (k for k, value in data.items() if k != "symbol" and value is not None)
    return OutlinedCondition(
        place=place,
        symbols=(symbol,) if symbol else _texts(data, "symbol", place),
        keys=tuple(keys),
    )


def _patch(data: dict[str, Any], place: Place) -> OutlinedPatch:
    target = _text(data, "target", place)
    return OutlinedPatch(
        place=place,
        targets=(target,) if target else _texts(data, "target", place),
        replacement=_text(data, "replacement", place),
        gates=_gates(data, place),
        relies_on=tuple(_gates(*part) for part in _parts(data, "relies_on", place)),
        copies=tuple(_copies(data, "relies_on", place)),
    )


def _copies(data: dict[str, Any], key: str, place: Place) -> Iterator[Text]:
    for reliance, where in _parts(data, key, place):
        copy = _text(reliance, "copy", where)
        if copy:
            yield copy


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
