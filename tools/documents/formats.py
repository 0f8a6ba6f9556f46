"""The page about the registry file, from its JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ascend_shims.registry.schema import json_schema

from .markdown import code, note, paragraph, table

__all__ = ["page"]

_ORDER = (
    "Registry",
    "Gap",
    "Needs",
    "Patch",
    "Reliance",
    "Sign",
    "Condition",
    "Provider",
    "Companion",
)
"""As one comes to them in a file."""


def page() -> str:
    definitions = json_schema()["$defs"]
    assert set(_ORDER) == set(definitions), "name each part once, in _ORDER"
    parts = [
        "# The registry's format",
        note("ascend_shims/registry/gap_registry.schema.json"),
        paragraph(
            "A registry is YAML of these parts, beginning with [Registry](#registry). "
            "Keys that are not here are an error, with the line and the nearest one. "
            "An editor that reads YAML schemas completes and checks it by "
            "`ascend_shims/registry/gap_registry.schema.json`, which is in the wheel. "
            "[Write a gap](../write-a-gap.md) is the way through it."
        ),
    ]
    for name in _ORDER:
        parts += _part(name, definitions[name])
    return "\n\n".join(parts) + "\n"


def _part(name: str, definition: dict[str, Any]) -> Iterator[str]:
    yield f"## {name}"
    for text in definition.get("description", "").split("\n\n"):
        yield paragraph(text)
    required = definition.get("required", [])
    keys = definition["properties"]
    # What has to be there comes first.
    ordered = sorted(keys, key=lambda key: key not in required)
    yield table(
        ("key", "value", "if left out", "meaning"),
        (
            (
                code(key),
                _value(keys[key]),
                _otherwise(keys[key], needed=key in required),
                keys[key].get("description", ""),
            )
            for key in ordered
        ),
    )


def _value(schema: dict[str, Any]) -> str:
    match schema:
        case {"$ref": str(ref)}:
            name = ref.rpartition("/")[2]
            return f"[{name}](#{name.lower()})"
        case {"enum": list(values)}:
            return ", ".join(code(str(value)) for value in values)
        case {"anyOf": list(choices)}:
            kinds = [_value(one) for one in choices if one.get("type") != "null"]
            return " or ".join(kinds)
        case {"type": "array", "items": items}:
            return f"list of {_value(items)}"
        case {"type": "object"}:
            return "mapping"
        case {"type": "boolean"}:
            return "`true`, `false`"
        case {"type": "string", "pattern": str()}:
            return "name"
        case _:
            return "text"


def _otherwise(schema: dict[str, Any], *, needed: bool) -> str:
    if needed:
        return "required"
    value = schema.get("default")
    if value in (None, [], {}):
        return ""
    match value:
        case dict():
            kept = {key: one for key, one in value.items() if one}
            return code(json.dumps(kept).replace('"', ""))
        case bool():
            return code(str(value).lower())
        case _:
            return code(str(value))
