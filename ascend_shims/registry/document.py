"""A registry file as YAML nodes, each of which knows where it stands.

Bounded: a text that nests too deeply or grows beyond reason through its aliases is
refused before anything is built from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec
import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from .problems import position, refuse

try:
    from yaml import CSafeLoader as _SafeLoader
except ImportError:
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]

__all__ = [
    "MAX_DEPTH",
    "MAX_NODES",
    "Document",
    "Place",
    "compose",
    "is_too_long",
    "mark_of",
    "parse_scalar",
]

MAX_DEPTH = 32
MAX_NODES = 20_000
"""Nodes after aliases are expanded; twelve full entries have about two thousand."""

Place: TypeAlias = "tuple[str | int, ...]"
"""Keys and indices that lead from the root to a part."""

_TAG = "tag:yaml.org,2002:"


class _Loader(_SafeLoader):
    """Reads scalars as YAML 1.2 does and editors show them: `off` is text."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the name and shape are PyYAML's
        first: rules
        for firsts, rules in (
            ("tf", [(_TAG + "bool", re.compile(r"(?:true|false)\Z"))]),
            (
                "-+0123456789",
                [
                    (_TAG + "int", re.compile(r"[-+]?[0-9]+\Z")),
                    (_TAG + "float", re.compile(r"[-+]?[0-9]+\.[0-9]*\Z")),
                ],
            ),
            ("~n", [(_TAG + "null", re.compile(r"(?:~|null)\Z"))]),
            ([""], [(_TAG + "null", re.compile(r"\Z"))]),
        )
        for first in firsts
    }


class Document(msgspec.Struct, frozen=True):
    """A whole file."""

    file: str
    root: Node
    data: Any
    """The file's content as plain values."""

    regular: bool
    """False if `data` lost something: duplicate keys, odd keys, tags."""

    def mark(
        self, place: Place, *, key: bool, renamed: Mapping[Place, Node]
    ) -> tuple[int, int]:
        """Line and column of a part, or of its key; of the nearest part that
        is there if it is not. `renamed` holds parts that stand under a
        misspelled key."""
        found = self.root
        for depth in range(1, len(place) + 1):
            step = place[depth - 1]
            last = depth == len(place)
            if (other := renamed.get(place[:depth])) is not None:
                found = other
            elif isinstance(found, SequenceNode) and isinstance(step, int):
                found = found.value[step]
            else:
                pair = _pair(found, step)
                if pair is None:
                    break
                found = pair[0] if key and last else pair[1]
        return mark_of(found)


def mark_of(node: Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def compose(text: str, file: str) -> Document:
    """The one YAML document in `text`. Raises `RegistryError`."""
    loader = None
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = ", ".join(part for part in (error.context, error.problem) if part)
        refuse(
            file,
            f"not YAML: {reason}",
            "check quotes, brackets and indentation up to here",
            (mark.line + 1, mark.column + 1) if mark else None,
        )
    except yaml.reader.ReaderError as error:
        bad = re.search(r"[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-]", text)
        where = text[: bad.start()] if bad else ""
        refuse(file, f"not YAML: {error.reason}", "remove it", position(where))
    except RecursionError:
        refuse(file, "is nested too deeply", _SHAPE)
    finally:
        if loader is not None:
            loader.dispose()
    if root is None:
        refuse(file, "is empty", "a registry begins with `schema: 1`")
    plain = _Plain(file)
    data = plain.convert(root, 0)
    return Document(file, root, data, plain.regular)


class _Plain:
    """Turns nodes into plain values within the bounds."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.count = 0
        self.regular = True

    def convert(self, node: Node, depth: int) -> Any:
        self.count += 1
        if depth > MAX_DEPTH:
            refuse(self.file, "is nested too deeply", _SHAPE, mark_of(node))
        if self.count > MAX_NODES:
            refuse(
                self.file,
                f"has more than {MAX_NODES} values, aliases expanded",
                "write out what the aliases stand for, or split the registry",
                mark_of(node),
            )
        if isinstance(node, ScalarNode):
            return self._scalar(node)
        if isinstance(node, SequenceNode):
            self.regular &= node.tag == _TAG + "seq"
            return [self.convert(item, depth + 1) for item in node.value]
        return self._mapping(node, depth)

    def _scalar(self, node: ScalarNode) -> Any:
        try:
            return parse_scalar(node)
        except ValueError:
            self.regular = False
            return node.value

    def _mapping(self, node: Node, depth: int) -> dict[Any, Any]:
        self.regular &= node.tag == _TAG + "map"
        values: dict[Any, Any] = {}
        for key, value in node.value:
            name = key.value
            plain = isinstance(key, ScalarNode) and key.tag == _TAG + "str"
            if not plain or name in values:
                self.regular = False
                self.convert(key, depth + 1)  # it counts towards the bounds
                name = object()
            values[name] = self.convert(value, depth + 1)
        return values


_NUMBER = 100
"""No number in a registry is longer, and Python takes its time for those that are."""

_SHAPE = "a registry needs ten levels at most"


def is_too_long(node: Node) -> bool:
    """Whether this is a longer number than is read."""
    is_number = node.tag in (_TAG + "int", _TAG + "float")
    return is_number and isinstance(node, ScalarNode) and len(node.value) > _NUMBER


def parse_scalar(node: ScalarNode) -> str | int | float | bool | None:
    """The value of a scalar. Raises `ValueError` for a tag that we do not read, and for
    a number that is too long."""
    text: str = node.value
    if is_too_long(node):
        raise ValueError(f"a number of {len(text)} characters")
    match node.tag.removeprefix(_TAG):
        case "str":
            return text
        case "null":
            return None
        case "bool" if text in ("true", "false"):
            return text == "true"
        case "int":
            return int(text)
        case "float":
            return float(text)
    raise ValueError(node.tag)


def _pair(node: Node, name: str | int) -> tuple[Node, Node] | None:
    if not isinstance(node, MappingNode):
        return None
    return next((pair for pair in node.value if pair[0].value == name), None)
