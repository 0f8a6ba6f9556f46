"""The schema that editors use says what the types say."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import msgspec
import pytest
import yaml

from ascend_shims.registry import (
    Condition,
    Gap,
    Needs,
    Patch,
    Registry,
    Reliance,
    Sign,
    packaged,
)
from ascend_shims.registry.schema import COMMITTED, json_schema, text


def test_the_committed_schema_is_current() -> None:
    assert COMMITTED.read_text(encoding="utf-8") == text(), (
        "run `python -m ascend_shims.registry.schema --write`"
    )


def test_running_the_module_prints_it() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ascend_shims.registry.schema"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == (text(), "")


def test_the_registry_names_it_for_editors() -> None:
    path = packaged()
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first == (
        "# yaml-language-server: $schema=ascend_shims/registry/gap_registry.schema.json"
    )
    root = path.resolve().parent
    if (root / "ascend_shims").is_dir():  # a wheel has no top-level registry
        assert (root / first.partition("=")[2]).samefile(COMMITTED)


@pytest.mark.parametrize(
    "struct", [Registry, Gap, Needs, Patch, Reliance, Sign, Condition]
)
def test_every_field_is_there_and_nothing_else(struct: type[msgspec.Struct]) -> None:
    found = json_schema()["$defs"][struct.__name__]
    fields = msgspec.structs.fields(struct)
    assert list(found["properties"]) == [field.encode_name for field in fields]
    assert found.get("required", []) == [f.encode_name for f in fields if f.required]
    assert found["additionalProperties"] is False


def test_what_stands_beneath_a_field_is_shown_in_editors() -> None:
    gap = json_schema()["$defs"]["Gap"]["properties"]
    assert gap["unpatched"]["description"] == (
        "Why there are no patches. Required where there are none."
    )
    assert gap["versions"]["description"].startswith(
        "The releases this gap claims to serve. Import package"
    )


def _validator() -> Any:
    jsonschema = pytest.importorskip("jsonschema")
    return jsonschema.Draft202012Validator(json.loads(text()))


def test_the_packaged_registry_fits_it() -> None:
    content = yaml.safe_load(packaged().read_text(encoding="utf-8"))
    assert list(_validator().iter_errors(content)) == []
    content["gaps"][0]["tagret"] = 1
    del content["gaps"][1]["why"]
    assert len(list(_validator().iter_errors(content))) == 2
