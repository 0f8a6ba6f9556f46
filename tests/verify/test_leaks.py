"""Each way of leaving something behind is found, and by its name."""

from __future__ import annotations

import re
from typing import Any

import pytest

from .conftest import Town
from .leaks import LEAKS


def _id(leak: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", leak.lower()).strip("-")


@pytest.fixture(scope="module")
def leaky(tmp_path_factory: pytest.TempPathFactory) -> Town:
    town = Town(tmp_path_factory.mktemp("leaky"), "leaky")
    for leak, told in LEAKS.items():
        if told.at_import:
            town.gap(_id(leak), "", top=told.code)
        else:
            town.gap(_id(leak), told.code)
    return town


@pytest.fixture(scope="module")
def told(leaky: Town) -> Any:
    """What one run says of all of them: each gap is a stage of its own."""
    ended = leaky.verify("--json")
    assert ended.code == 1, ended.err
    return ended.told


@pytest.mark.parametrize("leak", LEAKS)
def test_every_leak_is_found_by_its_name(leaky: Town, told: Any, leak: str) -> None:
    stage = next(one for one in told["stages"] if one["name"] == _id(leak))
    assert [gap["in_force"] for gap in stage["gaps"]] == [True]
    assert stage["errors"] == []
    expected = LEAKS[leak]
    path = leaky.spelled(expected.path)
    found = {(one["path"], one["kind"]): one["what"] for one in stage["differences"]}
    assert (path, expected.kind) in found, found
    assert leaky.spelled(expected.says) in found[path, expected.kind]
    assert not stage["ok"]
