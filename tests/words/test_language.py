"""Which language an environment asks for, and whether its output can show it."""

from __future__ import annotations

import io

import pytest

from ascend_shims.words import is_english, language, said, speaking
from ascend_shims.words.language import preferred

CHINESE = "zh_CN"


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, "en"),
        ({"LANG": ""}, "en"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({"LANG": "POSIX"}, "en"),
        ({"LANG": "en_US.UTF-8"}, "en"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "zh_TW.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, CHINESE),
        ({"LANG": "zh_CN"}, CHINESE),
        ({"LANG": "zh_CN.GB18030"}, CHINESE),
        ({"LANG": "zh_SG.UTF-8"}, CHINESE),
        ({"LC_MESSAGES": "zh_CN.UTF-8", "LANG": "en_US.UTF-8"}, CHINESE),
        ({"LC_MESSAGES": "en_US.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_ALL": "zh_CN.UTF-8", "LC_MESSAGES": "en_US.UTF-8"}, CHINESE),
        ({"LC_ALL": "C.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_ALL": "", "LANG": "zh_CN.UTF-8"}, CHINESE),
        ({"LANGUAGE": "zh_CN:en", "LANG": "en_US.UTF-8"}, CHINESE),
        ({"LANGUAGE": "en", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LANGUAGE": "fr:zh_CN:en", "LANG": "fr_FR.UTF-8"}, CHINESE),
        ({"LANGUAGE": "zh_CN", "LANG": "C"}, "en"),
        ({"LANGUAGE": "zh_CN"}, "en"),
        ({"ASCEND_SHIMS_LANG": "zh_CN"}, CHINESE),
        ({"ASCEND_SHIMS_LANG": " zh-cn "}, CHINESE),
        ({"ASCEND_SHIMS_LANG": "zh"}, CHINESE),
        ({"ASCEND_SHIMS_LANG": "zh-Hans"}, CHINESE),
        ({"ASCEND_SHIMS_LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, CHINESE),
        ({"ASCEND_SHIMS_LANG": "en", "LC_ALL": "zh_CN.UTF-8"}, "en"),
        ({"ASCEND_SHIMS_LANG": "xx", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"ASCEND_SHIMS_LANG": "", "LANG": "zh_CN.UTF-8"}, CHINESE),
    ],
)
def test_what_an_environment_asks_for(environ: dict[str, str], expected: str) -> None:
    assert preferred(environ) == expected


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("utf-8", CHINESE),
        ("gb18030", CHINESE),
        ("gbk", CHINESE),
        ("ascii", "en"),
        ("latin-1", "en"),
        ("cp1252", "en"),
    ],
)
def test_an_output_that_cannot_show_chinese_gets_english(
    encoding: str, expected: str
) -> None:
    wanted = {"ASCEND_SHIMS_LANG": "zh_CN"}
    output = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    fine = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    assert preferred(wanted, output, fine) == expected
    assert preferred(wanted, fine, output) == expected


def test_what_has_no_encoding_takes_any_text() -> None:
    assert preferred({"ASCEND_SHIMS_LANG": "zh"}, io.StringIO(), None) == CHINESE


def test_the_language_is_spoken_meanwhile_only() -> None:
    text = "Everything about one gap."
    assert said(text) == text
    with speaking(CHINESE):
        assert language() == CHINESE
        assert not is_english()
        assert said(text) == "一个 gap 的全部信息。"
        with speaking("en"):
            assert said(text) == text
        assert said(text) == "一个 gap 的全部信息。"
    assert language() == "en"
    assert is_english()
    assert said(text) == text
