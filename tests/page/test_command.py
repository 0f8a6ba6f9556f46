"""`shims report`, as a person calls it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

_WORDS = ("--from", "1.0", "--package", "madeup")


def _data(path: Path) -> dict[str, Any]:
    found = re.search(r'id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_it_writes_the_page_and_says_so(drift: Any, tmp_path: Path) -> None:
    done = drift("report", *_WORDS, "--html", "page.html")
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(
        rf"{tmp_path}/page.html: 3 gaps x 5 releases, 0\.\d MB; at 1\.4 2 broken\n",
        done.stdout,
    )
    data = _data(tmp_path / "page.html")
    # The same as `shims matrix` says.
    table = json.loads(drift("matrix", *_WORDS, "--json").stdout)
    releases = [one["version"] for one in data["releases"]]
    assert releases == table["releases"]
    for entry in data["entries"]:
        verdicts = [cell["verdict"] for cell in entry["cells"]]
        same = table["gaps"].get(entry["id"], {})
        assert verdicts == list(same.values()) or not same
    assert data["entries"][0]["here"]["state"] == "pending"
    assert str(tmp_path) not in json.dumps(data["entries"])


def test_json_is_what_the_page_has(drift: Any, tmp_path: Path) -> None:
    done = drift("report", *_WORDS, "--json", "--html", "page.html")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == _data(tmp_path / "page.html")
    assert json.loads(drift("report", *_WORDS, "--json").stdout)["schema"] == 1


def test_two_pages_differ_in_the_time_alone(drift: Any, tmp_path: Path) -> None:
    texts = []
    for name in ("a.html", "b.html"):
        assert drift("report", *_WORDS, "--html", name).returncode == 0
        # Other processes of this machine come and go.
        varies = r'(?<="made":")[^"]*(?=")|(?<="processes":)\[.*\](?=\}</script>)'
        text, count = re.subn(varies, "", (tmp_path / name).read_text())
        assert count == 2
        texts.append(text)
    assert texts[0] == texts[1]


def test_a_running_process_is_on_it(drift: Any, serving: Any, tmp_path: Path) -> None:
    process = serving("import ascend_shims, madeup.core\nascend_shims.apply()")
    assert drift("report", *_WORDS, "--html", "page.html").returncode == 0
    (found,) = [
        one
        for one in _data(tmp_path / "page.html")["processes"]
        if one["pid"] == process.pid
    ]
    assert found["states"]["loud"]["state"] == "applied"
    assert found["role"] == "front-end"


def test_a_registry_that_may_not_run_is_read(drift: Any, tmp_path: Path) -> None:
    extra = {"ASCEND_SHIMS_ALLOW": None}
    done = drift("report", *_WORDS, "--html", "page.html", extra=extra)
    assert done.returncode == 0, done.stderr
    data = _data(tmp_path / "page.html")
    assert [one["here"] for one in data["entries"]] == [None, None, None]
    assert "ASCEND_SHIMS_ALLOW=madeup_patches" in data["notes"][0]
    assert data["entries"][0]["cells"][4]["verdict"] == "broken"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "say where the page goes: shims report --html FILE"),
        (["--html", "no/where.html"], "make it first"),
        (["--html", "."], "is no file; name one, like report.html"),
        (["--html", "/dev/null"], "is no file"),
        (["--html", "p.html", "--from", "banana"], "write it like 0.28.0"),
        (["--html", "p.html", "--from", "9.0"], "has no release from 9.0 on"),
        (["--html", "p.html", "--package", "nope"], "name one of madeup"),
    ],
)
def test_misuse_is_said_before_anything_is_written(
    drift: Any, tmp_path: Path, words: list[str], said: str
) -> None:
    given = ["--package", "madeup", *words]
    before = sorted(tmp_path.iterdir())
    done = drift("report", *given)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in " ".join(re.sub(r"[│╭╰─╮╯]", " ", done.stderr).split())
    assert "Traceback" not in done.stderr
    after = [one for one in sorted(tmp_path.iterdir()) if one.name != "cache"]
    assert after == [one for one in before if one.name != "cache"]


def test_what_was_there_stays_where_it_goes_wrong(drift: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("old")
    (tmp_path / "index/madeup/madeup-1.2.tar.gz").write_bytes(b"no archive")
    done = drift("report", *_WORDS, "--html", "page.html")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert page.read_text() == "old"
    assert [one.name for one in tmp_path.glob(".page*")] == []


def test_of_a_link_the_target_is_replaced(drift: Any, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "link.html").symlink_to("out/page.html")
    assert drift("report", *_WORDS, "--html", "link.html").returncode == 0
    assert (tmp_path / "link.html").is_symlink()
    assert _data(tmp_path / "out/page.html")["package"] == "madeup"
    assert (tmp_path / "out/page.html").stat().st_mode & 0o777 == 0o644
