"""What nobody asks: each question, and where it is not asked."""

from __future__ import annotations

from typing import Any

import pytest

from ascend_shims.scan.questions import ask

HEAD = "import vllm.a.b as m\nfrom plug.utils import vllm_version_is\n"


def _asked(scanned: Any, code: Any) -> list[tuple[str, str]]:
    return [(q.kind, q.sentence) for q in ask(scanned(code))]


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("if False:\n    m.f = 1", "`False` is never true"),
        (
            "if vllm_version_is('0.27.1') and vllm_version_is('0.28.0'):\n    m.f = 1",
            "no vllm is in `==0.27.1,==0.28.0`, the conditions taken together",
        ),
        (
            "if vllm_version_is('0.27.1'):\n    if not vllm_version_is('0.27.1'):\n"
            "        m.f = 1",
            "no vllm is in `==0.27.1,!=0.27.1`, the conditions taken together",
        ),
    ],
)
def test_gates_that_can_never_be_true(scanned: Any, code: str, sentence: str) -> None:
    assert _asked(scanned, HEAD + code) == [("gate-never-true", sentence)]


@pytest.mark.parametrize(
    "code",
    [
        "m.f = 1",
        "if vllm_version_is('0.27.1'):\n    m.f = 1\nelse:\n    m.f = 2",
        "kept = m.f\nm.f = 1\nm.f = kept",
        "m.f = 1\nm.f = 2",
    ],
)
def test_there_is_nothing_to_ask(scanned: Any, code: str) -> None:
    assert _asked(scanned, HEAD + code) == []


def test_two_files_that_patch_the_same(scanned: Any) -> None:
    files = {"plug/one.py": HEAD + "m.f = 1", "plug/two.py": HEAD + "m.f = 2"}
    assert _asked(scanned, files) == [
        ("contested", "`vllm.a.b:f` is patched by another file too: plug/one.py:3")
    ]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (
            "if vllm_version_is('0.27.1'):\n    m.f = 1",
            "if vllm_version_is('0.28.0'):\n    m.f = 1",
        ),
        ("if is_310p():\n    m.f = 1", "if not is_310p():\n    m.f = 1"),
        ("m.f = 1", "m.g = 1"),
        ("m.TABLE['a'] = 1", "m.TABLE['b'] = 1"),
        ("m.f = 1", "kept = m.f\nm.f = 1\nm.f = kept"),
        ("m.f = 1", "if False:\n    m.f = 1"),
        (
            "if vllm_version_is('0.27.1'):\n    m.f = 1",
            "if vllm_version_is('0.27.1') and vllm_version_is('0.28.0'):\n    m.f = 1",
        ),
    ],
)
def test_files_that_do_not_get_in_each_others_way(
    scanned: Any, one: str, two: str
) -> None:
    files = {"plug/one.py": HEAD + one, "plug/two.py": HEAD + two}
    asked = _asked(scanned, files)
    assert [kind for kind, _ in asked if kind != "gate-never-true"] == []
    assert len(scanned(files).patches) >= 2


def test_a_file_that_is_reached_by_two_names(scanned: Any, write: Any) -> None:
    root = write({"plug/one.py": HEAD + "m.f = 1", "plug/__init__.py": ""})
    (root / "plug" / "two.py").symlink_to("one.py")
    assert _asked(scanned, {"plug/__init__.py": ""}) == []


def test_a_context_manager_that_puts_nothing_back(scanned: Any) -> None:
    code = HEAD + (
        "import contextlib\n@contextlib.contextmanager\ndef on():\n"
        "    m.f = 1\n    try:\n        yield\n    finally:\n        pass"
    )
    assert _asked(scanned, code) == [
        (
            "never-restored",
            "`on` never puts it back, and `vllm.a.b:f` stays as it left it",
        )
    ]


def test_a_name_that_another_file_holds(scanned: Any) -> None:
    files = {
        "plug/one.py": HEAD + "m.f = 1",
        "plug/user.py": "from vllm.a.b import f, g\n",
        "plug/late.py": "def use():\n    from vllm.a.b import f\n",
    }
    (question,) = ask(scanned(files))
    assert (question.kind, question.places) == ("bound-by-name", ("plug/user.py:1",))
    assert question.sentence == (
        "`vllm.a.b:f` is imported by name in plug/user.py:1, which may keep the old one"
    )


def test_the_patching_file_may_import_what_it_patches(scanned: Any) -> None:
    code = HEAD + "from vllm.a.b import f as stock\nm.f = lambda: stock()"
    assert _asked(scanned, code) == []


def test_a_method_is_looked_up_anew(scanned: Any) -> None:
    files = {
        "plug/one.py": HEAD + "m.Engine.step = 1",
        "plug/user.py": "from vllm.a.b import Engine\n",
    }
    assert _asked(scanned, files) == []
