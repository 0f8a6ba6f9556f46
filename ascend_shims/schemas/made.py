"""The schemas, made from `shapes`.

`python -m ascend_shims.schemas.made --write` renews the committed copies.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec

from . import FOLDER
from .shapes import DOCUMENTS

__all__ = ["made"]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def made() -> dict[str, str]:
    """Every schema as its committed copy holds it, by name."""
    return {name: _text(name, *shapes) for name, shapes in DOCUMENTS.items()}


def _text(name: str, *shapes: Any) -> str:
    parts = [part for shape in shapes for part in getattr(shape, "parts", ())]
    (*refs,), defs = msgspec.json.schema_components(
        [*shapes, *parts], ref_template="#/$defs/{name}"
    )
    tops = refs[: len(shapes)]
    document = {
        "$schema": _DIALECT,
        "title": f"ascend-shims {name}",
        **(tops[0] if len(tops) == 1 else {"anyOf": tops}),
        "$defs": {key: _strict(one) for key, one in sorted(defs.items())},
    }
    return json.dumps(document, indent=2) + "\n"


def _strict(part: Any) -> Any:
    """What is written has every field, and no other; how it is checked is not told."""
    if isinstance(part, list):
        return [_strict(one) for one in part]
    if not isinstance(part, dict):
        return part
    kept = {
        key: _properties(one) if key == "properties" else _strict(one)
        for key, one in part.items()
        if key not in ("default", "pattern", "minLength", "minItems", "title")
    }
    if "properties" in part:
        # A field that may be missing is the only one that has neither.
        given = {key for key, one in part["properties"].items() if "default" in one}
        always = {*part.get("required", ()), *given}
        kept["required"] = [key for key in part["properties"] if key in always]
        kept["additionalProperties"] = False
    return kept


def _properties(properties: dict[str, Any]) -> dict[str, Any]:
    return {name: _strict(one) for name, one in properties.items()}


def main(arguments: list[str]) -> int:
    """Print all schemas, or renew the committed copies."""
    if arguments == ["--write"]:
        for name, text in made().items():
            (FOLDER / f"{name}.json").write_text(text, "utf-8")
        return 0
    if arguments:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    sys.stdout.write("".join(made().values()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
