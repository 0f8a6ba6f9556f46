"""The JSON Schema of a registry file, for editors.

`python -m ascend_shims.registry.schema` prints it; with `--write` it renews the
committed copy.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from . import model

__all__ = ["COMMITTED", "json_schema", "text"]

COMMITTED = Path(__file__).with_name("gap_registry.schema.json")
"""The copy that the first line of a registry file names."""


def json_schema() -> dict[str, Any]:
    """The schema, derived from the types of `model`."""
    schema = msgspec.json.schema(model.Registry)
    for name, fields in _field_docs().items():
        properties = schema["$defs"].get(name, {}).get("properties", {})
        for field, told in fields.items():
            form = properties[field].get("description")
            properties[field]["description"] = f"{told} {form}" if form else told
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ascend-shims gap registry",
        **schema,
    }


def text() -> str:
    """The schema as the committed copy holds it."""
    return json.dumps(json_schema(), indent=2, sort_keys=True) + "\n"


def _field_docs() -> dict[str, dict[str, str]]:
    """The texts beneath the fields in `model`, which nothing keeps at run time."""
    docs: dict[str, dict[str, str]] = {}
    for node in ast.parse(inspect.getsource(model)).body:
        if not isinstance(node, ast.ClassDef):
            continue
        fields = docs.setdefault(node.name, {})
        for field, beneath in zip(node.body, node.body[1:], strict=False):
            match field, beneath:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(told))),
                ):
                    fields[name] = " ".join(told.split())
    return docs


def main(arguments: list[str]) -> int:
    match arguments:
        case []:
            sys.stdout.write(text())
        case ["--write"]:
            COMMITTED.write_text(text(), encoding="utf-8")
        case _:
            sys.stderr.write(f"{__doc__}\n")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
