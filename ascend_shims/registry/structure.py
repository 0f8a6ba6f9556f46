"""Finds every structural mistake of a registry file at once.

`msgspec` stops at the first. This walk follows the same types, taken from
`model`, over the YAML nodes: it reports all mistakes with their places and
keeps what is sound, so that the rules of `check` can go on with the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import inspect as shapes
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from .document import Document, Place, is_too_long, mark_of, parse_scalar
from .model import Registry
from .outline import UNSOUND, Examination, Unsound
from .problems import Problem, nearest, quoted, shown

__all__ = ["examine"]


def examine(document: Document) -> Examination:
    """Everything that is structurally wrong with a document."""
    walk = _Walk(document.file)
    data = walk.visit(shapes.type_info(Registry), document.root, (), "the file")
    return Examination(data, tuple(walk.problems), walk.renamed)


class _Walk:
    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.renamed: dict[Place, Node] = {}

    def report(self, node: Node, message: str, fix: str) -> Unsound:
        self.problems.append(Problem(self.file, *mark_of(node), message, fix))
        return UNSOUND

    def visit(
        self, shape: shapes.Type, node: Node, place: Place, name: str, form: str = ""
    ) -> Any:
        """The value of a node if it fits `shape`. `form` tells how to write it."""
        if isinstance(shape, shapes.Metadata):
            told = (shape.extra_json_schema or {}).get("description", form)
            return self.visit(shape.type, node, place, name, str(told))
        if isinstance(shape, shapes.UnionType):
            for member in shape.types:
                if _accepts(member, node):
                    return self.visit(member, node, place, name, form)
        elif _accepts(shape, node):
            match shape:
                case shapes.StructType():
                    return self._struct(shape, node, place)
                case shapes.DictType():
                    return self._dict(shape, node, place, name)
                case shapes.VarTupleType():
                    return self._list(shape, node, place, name)
                case shapes.LiteralType():
                    return self._choice(shape, node, name)
                case shapes.StrType():
                    return self._text(shape, node, name, form)
            return parse_scalar(node)  # type: ignore[arg-type]
        if is_too_long(node):
            length = len(node.value)
            message = f"the number in {name} is too long ({length} characters)"
            return self.report(node, message, f"write {_noun(shape)}")
        if _is_tagged(node):
            return self.report(
                node, f"tag `{_tag(node)}` is not read", "remove the tag"
            )
        return self.report(
            node,
            f"{name} must be {_noun(shape)}, not {_found(node)}",
            _cure(shape, node),
        )

    def _struct(self, shape: shapes.StructType, node: Node, place: Place) -> Any:
        fields = {field.encode_name: field for field in shape.fields}
        noun = shape.cls.__name__.lower()
        pairs = dict(self._pairs(node))
        absent = [name for name in fields if name not in pairs]
        for name in [name for name in pairs if name not in fields]:
            key, value = pairs.pop(name)
            meant = nearest(name, fields)
            if meant is None:
                fix = f"the keys of a {noun} are {quoted(fields, 'and')}"
                self.report(key, f"unknown key `{shown(name)}`", fix)
                continue
            self.report(key, f"unknown key `{shown(name)}`", f"did you mean `{meant}`?")
            # Read it as the key that it was meant to be, or a misspelled key
            # would also be a missing one and hide what is wrong beneath it.
            if meant in absent:
                absent.remove(meant)
                pairs[meant] = (key, value)
                self.renamed[(*place, meant)] = value
        for name in absent:
            if fields[name].required:
                self.report(node, f"`{name}` is missing", f"every {noun} has one")
        return {
            name: self.visit(fields[name].type, value, (*place, name), f"`{name}`")
            for name, (_, value) in pairs.items()
        }

    def _dict(self, shape: shapes.DictType, node: Node, place: Place, name: str) -> Any:
        return {
            key: self.visit(
                shape.value_type, value, (*place, key), f"`{shown(key)}` in {name}"
            )
            for key, (_, value) in self._pairs(node)
        }

    def _pairs(self, node: Node) -> Iterator[tuple[str, tuple[Node, Node]]]:
        """The entries of a mapping whose keys are text, each once."""
        lines: dict[str, int] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode) or _is_tagged(key):
                self.report(key, "a key must be plain text", "write a name")
            elif key.value in lines:
                first = lines[key.value]
                self.report(
                    key,
                    f"duplicate key `{shown(key.value)}`, first on line {first}",
                    "keep one of them",
                )
            else:
                lines[key.value] = mark_of(key)[0]
                yield key.value, (key, value)

    def _list(
        self, shape: shapes.VarTupleType, node: Node, place: Place, name: str
    ) -> Any:
        if len(node.value) < (shape.min_length or 0):
            return self.report(node, f"{name} is empty", "list at least one")
        return [
            self.visit(shape.item_type, item, (*place, index), f"an item of {name}")
            for index, item in enumerate(node.value)
        ]

    def _choice(self, shape: shapes.LiteralType, node: Node, name: str) -> Any:
        value = _scalar(node)
        if any(value == one and type(value) is type(one) for one in shape.values):
            return value
        options = [str(one) for one in shape.values]
        meant = nearest(str(node.value), options)
        fix = f"did you mean `{meant}`?" if meant else f"use {quoted(options)}"
        if meant == node.value:
            fix = "write it without quotes"
        elif name == "`schema`" and type(value) is int:
            fix = (
                f"this ascend-shims reads schema {quoted(options)}: install the one "
                "that the registry is written for"
            )
        return self.report(node, f"{name} cannot be `{shown(node.value)}`", fix)

    def _text(self, shape: shapes.StrType, node: Node, name: str, form: str) -> Any:
        value = node.value
        if len(value) < (shape.min_length or 0):
            return self.report(node, f"{name} is empty", "write a sentence")
        if shape.pattern and not re.search(shape.pattern, value):
            hint = form[:1].lower() + form[1:].rstrip(".")
            return self.report(
                node, f"{name} cannot be `{shown(value)}`", f"write {hint}"
            )
        return value


def _accepts(shape: shapes.Type, node: Node) -> bool:
    """Whether a node has the outer form of a shape."""
    if isinstance(shape, shapes.Metadata):
        return _accepts(shape.type, node)
    if _is_tagged(node):
        return False
    tag = _tag(node)
    match shape:
        case shapes.StructType() | shapes.DictType():
            return tag == "!!map"
        case shapes.VarTupleType():
            return tag == "!!seq"
        case shapes.LiteralType():
            return isinstance(node, ScalarNode) and tag != "!!null"
        case shapes.StrType():
            return tag == "!!str"
        case shapes.BoolType():
            return tag == "!!bool"
        case shapes.NoneType():
            return tag == "!!null"
    raise TypeError(f"model.py uses {shape!r}: teach `structure` to read it")


_FOUND = {
    "!!null": "nothing",
    "!!str": "text",
    "!!int": "a number",
    "!!float": "a number",
    "!!bool": "`true` or `false`",
    "!!seq": "a list",
    "!!map": "a mapping",
}


def _tag(node: Node) -> str:
    return str(node.tag).replace("tag:yaml.org,2002:", "!!")


def _is_tagged(node: Node) -> bool:
    """True for what carries a tag that has no place in a registry."""
    tag = _tag(node)
    if isinstance(node, SequenceNode):
        return tag != "!!seq"
    if isinstance(node, MappingNode):
        return tag != "!!map"
    try:
        _scalar(node)
    except ValueError:
        return True
    return False


def _scalar(node: Node) -> str | int | float | bool | None:
    assert isinstance(node, ScalarNode)
    return parse_scalar(node)


def _found(node: Node) -> str:
    return _FOUND[_tag(node)]


def _noun(shape: shapes.Type) -> str:
    """What is expected, in words."""
    match shape:
        case shapes.Metadata():
            return _noun(shape.type)
        case shapes.UnionType():
            members = [t for t in shape.types if not isinstance(t, shapes.NoneType)]
            return " or ".join(map(_noun, members))
        case shapes.StructType() | shapes.DictType():
            return "a mapping"
        case shapes.VarTupleType():
            return "a list"
        case shapes.BoolType():
            return "`true` or `false`"
        case shapes.LiteralType():
            return quoted(shape.values)
    return "text"


def _cure(shape: shapes.Type, node: Node) -> str:
    noun, tag = _noun(shape), _tag(node)
    if tag == "!!null":
        return "give it a value or leave the key out"
    if "text" in noun and isinstance(node, ScalarNode):
        return "put it in quotes"
    if noun == "a list" and isinstance(node, ScalarNode):
        return f"write `[{shown(node.value)}]`"
    if noun == "a mapping":
        return "write `key: value` lines"
    if noun == "a list":
        return "begin each item with `- `"
    return f"write {noun}"
