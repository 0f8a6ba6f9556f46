"""`python -m ascend_shims.registry`: what it says, and in which language."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BAD = "schema: 1\nupstreams: [up]\ngaps: 3\n"


def _check(language: str, *files: Path) -> tuple[int, str, str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("ASCEND_")}
    done = subprocess.run(
        [sys.executable, "-m", "ascend_shims.registry", *map(str, files)],
        env={
            **inherited,
            "ASCEND_SHIMS_LANG": language,
            "PYTHONIOENCODING": "utf-8",
        },
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", ": `gaps` must be a list, not a number; write `[3]`\n"),
        ("zh_CN", "：`gaps` 必须是列表，而不是数；请写 `[3]`\n"),
    ],
)
def test_a_mistake_is_said_in_the_language_of_the_commands(
    tmp_path: Path, language: str, said: str
) -> None:
    file = tmp_path / "gaps.yaml"
    file.write_text(BAD)
    assert _check(language, file) == (1, "", f"{file}:3:7{said}")


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "name a registry: python -m ascend_shims.registry FILE…\n"),
        ("zh_CN", "请给出一个注册表：python -m ascend_shims.registry FILE…\n"),
    ],
)
def test_without_a_file_it_says_how_to_call_it(language: str, said: str) -> None:
    assert _check(language) == (2, "", said)
