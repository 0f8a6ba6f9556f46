"""Finished sentences find their words; data stays as it is."""

from __future__ import annotations

import pytest

from ascend_shims.words.catalogue import Catalogue, Template, load
from ascend_shims.words.folding import columns, filled, fold, padded

CHINESE = load("zh_CN")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no NPU: torch_npu is not installed", "没有 NPU：未安装 torch_npu"),
        ("switched off by ASCEND_SHIMS=off", "被 ASCEND_SHIMS=off 关闭"),
        ("vllm 0.20.0 is outside vllm >=0.27", "vllm 0.20.0 在 vllm >=0.27 之外"),
        ("needs graph-manager, which is off", "需要 graph-manager，而它是 off"),
        ("  applies when upstream is imported\n", "  导入上游时应用\n"),
        ("- torch_npu is not installed", "- 未安装 torch_npu"),
        (
            "no gap is called 'kv'; did you mean kv-cache?",
            "没有这个 gap：'kv'；是不是 kv-cache？",
        ),
        (
            "madeup.core:answer: answer does not exist in madeup.core",
            "madeup.core:answer：madeup.core 中 answer 不存在",
        ),
        (
            "cos-sin: failed: torch_npu is not installed",
            "cos-sin：failed：未安装 torch_npu",
        ),
        ("`m:f` did not change.", "`m:f` 没有变。"),
        (
            "`m:f` was a class and is a value now",
            "`m:f` 原来是类，现在是值",
        ),
        ("x is not installed for /py; y", "x is not installed for /py; y"),
        (
            "Invalid value for '--watch': 'abc' is not a valid float range.",
            "'--watch' 的值无效：'abc' 不是有效的数值。",
        ),
        ("Missing argument 'GAP'.", "缺少参数 'GAP'。"),
        (
            "Missing argument 'x|y'. Choose from:\n\tx,\n\ty",
            "缺少参数 'x|y'。请从中选择：\n\tx,\n\ty",
        ),
        (
            "a/b.whl cannot be read: [Errno 2] No such file or directory: 'a/b.whl'",
            "a/b.whl 无法读取：[Errno 2] 没有该文件或目录：'a/b.whl'",
        ),
        (
            "r.yaml:5:9: `id` cannot be `A_B`; write a name of small letters, digits "
            "and `-`; gap `a-b` has its code in `patches/a_b.py`",
            "r.yaml:5:9：`id` 不能是 `A_B`；请写由小写字母、数字和 `-` 组成的名字；"
            "gap `a-b` 的代码在 `patches/a_b.py`",
        ),
        (
            "`device` must be `true` or `false`, not text",
            "`device` 必须是 `true` 或 `false`，而不是文本",
        ),
        ("`a` must be a list, not a mapping", "`a` 必须是列表，而不是映射"),
        (
            "not YAML: while parsing a flow sequence, did not find expected ',' or ']'",
            "不是 YAML：解析 [ ] 列表时，缺少 ',' 或 ']'",
        ),
        ("No module named 'x'", "没有名为 'x' 的模块"),
    ],
)
def test_sentences_are_put_together_of_sentences(text: str, expected: str) -> None:
    assert CHINESE.said(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "kv-cache",
        "applied",
        "3 applied, 7 off",
        "vllm.v1.worker.gpu.attn_utils:init_kv_cache",
        "/home/me/is not/a path",
        "vllm==0.32.0",
        "Removal of the old cache",
        "[Core] Fix the order of KV blocks; move them to one place, and test it",
        "Our operator wants this; nothing, if that is meant by others; it is large",
        "RuntimeError: the tensor is on another device",
        "this kernel has no image available",
        '{"schema": 1, "gaps": []}',
        "已经是中文的句子。",
        "x" * 5000 + " is not installed",
    ],
)
def test_data_stays_as_it_is(text: str) -> None:
    assert CHINESE.said(text) == text


def test_what_says_most_fits_best() -> None:
    catalogue = Catalogue(
        {"{a} is gone": "{a} 没了", "the file {a} is gone": "文件 {a}"}
    )
    assert catalogue.said("the file x is gone") == "文件 x"
    assert catalogue.said("x is gone") == "x 没了"


def test_holes_are_found_without_trying_twice() -> None:
    template = Template.of("{a}, {b}, {c}!", "{c} {b} {a}")
    assert template.holes("1, 2, 3!") == {"a": "1", "b": "2", "c": "3"}
    assert template.holes("1, 2!") is None
    assert template.holes("1, 2, 3") is None
    assert template.holes("a, " * 1000 + "!") is not None
    assert template.filled({"a": "1", "b": "2", "c": "3"}) == "3 2 1"


def test_what_is_in_a_hole_may_have_braces() -> None:
    catalogue = Catalogue({"cannot read {path}": "无法读取 {path}"})
    assert catalogue.said("cannot read {x}") == "无法读取 {x}"


# Lines ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("", 10, [""]),
        ("一二三四五", 10, ["一二三四五"]),
        ("一二三四五六", 10, ["一二三四五", "六"]),
        ("一二三四，五", 8, ["一二三", "四，五"]),
        ("一二三（四）", 8, ["一二三", "（四）"]),
        ("在 vLLM 中运行", 8, ["在 vLLM", "中运行"]),
        ("one two 三", 8, ["one two", "三"]),
        ("abcdefgh一", 4, ["abcd", "efgh", "一"]),
    ],
)
def test_lines_end_where_they_may(text: str, width: int, lines: list[str]) -> None:
    assert fold(text, width) == lines
    assert all(columns(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_columns_are_counted_rather_than_characters() -> None:
    assert columns("gap 补丁") == 8
    assert padded("补丁", 6) == "补丁  "
    assert padded("补丁补丁", 6) == "补丁补丁"


def test_english_is_filled_as_ever() -> None:
    assert filled("one two … three", 9) == ["one two …", "three"]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("in /a/long/path it is", ["in", "/a/long/path", "it is"]),
        ("在 /a/long/path 中的", ["在", "/a/long/path", "中的"]),
        ("/a/long/path，中", ["/a/long/path，", "中"]),
    ],
)
def test_a_word_that_fits_no_line_is_copied_as_a_whole(
    text: str, lines: list[str]
) -> None:
    assert filled(text, 8) == lines
