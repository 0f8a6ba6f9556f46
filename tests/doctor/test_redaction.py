"""What goes into a bundle is without secrets, and still tells what it is for."""

from __future__ import annotations

import json

import pytest

from ascend_shims.doctor.redaction import (
    HIDDEN,
    Redaction,
    relevant,
    without_credentials,
)

REDACTION = Redaction(("/home/ada", "/data/homes/ada"), "ada")
TOKEN = "hf_" + 8 * "aB3d"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://ada:pw@index/simple", f"https://{HIDDEN}@index/simple"),
        ("https://ada@index/x", f"https://{HIDDEN}@index/x"),
        ("https://a:p@x, http://b:q@y", f"https://{HIDDEN}@x, http://{HIDDEN}@y"),
        (
            "https://index/simple?token=abc&x=1",
            f"https://index/simple?token={HIDDEN}&x=1",
        ),
        ("https://index/@scope/x", "https://index/@scope/x"),
        (f"it said {TOKEN}.", f"it said {HIDDEN}."),
        ("key sk-proj-abcdefghijkl1", f"key {HIDDEN}"),
        ("ghp_abcdefghijklmnop1234", HIDDEN),
        ("AKIAABCDEFGHIJKLMNOP", HIDDEN),
        ("Authorization: Bearer abcdefgh1234", f"Authorization: {HIDDEN}"),
        ("with bearer abcdefgh1234", f"with bearer {HIDDEN}"),
        ("password=hunter2 next", f"password={HIDDEN} next"),
        ("api_key: 'abc'", f"api_key: '{HIDDEN}'"),
        ("MY_SECRET=abc", f"MY_SECRET={HIDDEN}"),
        ("hf_xet-1.8.0.dist-info", "hf_xet-1.8.0.dist-info"),
        ("vllm==0.28.0", "vllm==0.28.0"),
        ("", ""),
    ],
)
def test_credentials(text: str, expected: str) -> None:
    assert without_credentials(text) == expected
    assert without_credentials(expected) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/ada/gaps/r.yaml", "~/gaps/r.yaml"),
        ("in /data/homes/ada: x", "in ~: x"),
        ("/home/adam/x", "/home/<user>/x"),
        ("/home/bob/x and /Users/eve", "/home/<user>/x and /Users/<user>"),
        ("/scratch/ada/x", "/scratch/<user>/x"),
        ("/scratch/adam/x", "/scratch/adam/x"),
        ("a nomada", "a nomada"),
        ("/usr/lib/python3/site-packages/vllm", "/usr/lib/python3/site-packages/vllm"),
    ],
)
def test_homes_and_names(text: str, expected: str) -> None:
    assert REDACTION.text(text) == expected
    assert REDACTION.text(expected) == expected


def test_a_user_that_is_called_like_a_package_stays() -> None:
    file = "/s/site-packages/vllm/__init__.py"
    assert Redaction((), "vllm").text(file) == file


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("VLLM_API_KEY", "x", HIDDEN),
        ("VLLM_API_KEY", "", ""),
        ("ASCEND_AUTH", "/etc/x", HIDDEN),
        ("HCCL_password", "x", HIDDEN),
        ("VLLM_X", "f3a9c2e1b7d4f3a9c2e1b7d4", HIDDEN),
        ("VLLM_X", "a,QWxhZGRpbjpvcGVuIHNlc2FtZQ==", f"a,{HIDDEN}"),
        (
            "ASCEND_SHIMS_DISABLE",
            "speculator-graph-manager",
            "speculator-graph-manager",
        ),
        (
            "ASCEND_SHIMS_ONLY",
            "cos-sin, speculator-graph-manager",
            "cos-sin, speculator-graph-manager",
        ),
        ("VLLM_ATTENTION_BACKEND", "FLASH_ATTN_VLLM_V1_TRITON", None),
        ("ASCEND_SHIMS_REGISTRY", "/home/ada/r.yaml", "~/r.yaml"),
        ("ASCEND_HOME_PATH", "/usr/local/Ascend/ascend-toolkit/latest", None),
        ("VLLM_PLUGINS", "ascend_shims,ascend_shims_rig", None),
    ],
)
def test_variables(name: str, value: str, expected: str | None) -> None:
    assert REDACTION.variable(name, value) == (value if expected is None else expected)


def test_only_our_families_are_relevant() -> None:
    ours = {"ASCEND_SHIMS": "1", "ASCEND_X": "2", "VLLM_X": "3", "HCCL_X": "4"}
    others = {"HF_TOKEN": "t", "AWS_SECRET": "t", "PATH": "/", "ASCENDING": "x"}
    assert relevant({**ours, **others}) == ours


def test_a_document_is_redacted_everywhere() -> None:
    document = {
        "/home/ada/k": [{"a": f"x {TOKEN}"}, ("https://u:p@h", 3, None, True)],
    }
    said = json.dumps(REDACTION.document(document))
    assert json.loads(said) == {
        "~/k": [{"a": f"x {HIDDEN}"}, [f"https://{HIDDEN}@h", 3, None, True]],
    }
