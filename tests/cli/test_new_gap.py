"""`shims new-gap`: what is made works as it is, and nothing is half made."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from ascend_shims.registry import load
from ascend_shims.scaffold import make
from ascend_shims.scaffold.errors import ScaffoldError
from ascend_shims.scaffold.make import Made, make_gap

CORE = """
    LIMIT = 3

    def plain(a, b=1, *, c=None):
        return a

    async def waits(a):
        return a

    def counts(a):
        yield a
        return a

    async def streams(a):
        yield a

    class Thing:
        def __init__(self, size):
            self.size = size

        def method(self, a):
            return a

        @classmethod
        def made(cls, a):
            return a

        @staticmethod
        def loose(a):
            return a

        @property
        def half(self):
            return self.size / 2

    class Bare:
        pass
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project with one package, beside a made-up upstream that is installed."""
    site = tmp_path / "site"
    (site / "madeup").mkdir(parents=True)
    (site / "madeup" / "__init__.py").write_text("__version__ = '1.2.0'\n")
    (site / "madeup" / "version.py").write_text("__version__ = '1.2.0'\n")
    (site / "madeup" / "core.py").write_text(dedent(CORE))
    project = tmp_path / "project"
    (project / "acme_npu").mkdir(parents=True)
    (project / "acme_npu" / "__init__.py").touch()
    (project / ".git").mkdir()
    monkeypatch.syspath_prepend(str(site))
    for name in [n for n in os.environ if n.startswith("ASCEND_SHIMS")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHONPATH", f"{site}{os.pathsep}{project}")
    monkeypatch.setenv("ASCEND_SHIMS_ALLOW", "acme_npu.shims")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    yield project
    assert not [n for n in sys.modules if n.partition(".")[0] in ("madeup", "acme_npu")]


def _make(home: Path, gap: str = "one", target: str = "plain", **more: Any) -> Made:
    registry = home / "acme_npu" / "shims" / "gap_registry.yaml"
    options: dict[str, Any] = {
        "registry": registry if registry.exists() else None,
        "package": None,
        "target": f"madeup.core:{target}",
        "folder": home,
        **more,
    }
    return make_gap(gap, **options)


def _files(home: Path) -> dict[str, str]:
    found = (path for path in home.rglob("*") if path.is_file())
    return {p.relative_to(home).as_posix(): p.read_text() for p in found}


def _shims(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ascend_shims", *words],
        # Without what readline may have set beside it, which is a terminal's width.
        env={**os.environ},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


REGISTRY = "acme_npu/shims/gap_registry.yaml"


def test_a_first_gap_brings_registry_and_package(home: Path) -> None:
    made = _make(home)
    names = [path.relative_to(home).as_posix() for path in made.files]
    assert names == [
        REGISTRY,
        "acme_npu/shims/__init__.py",
        "acme_npu/shims/one.py",
        "tests/test_one.py",
    ]
    assert sorted(_files(home)) == sorted([*names, "acme_npu/__init__.py"])
    (gap,) = load(home / REGISTRY, folders=[home / "acme_npu" / "shims"]).gaps
    assert (gap.id, gap.versions) == ("one", {"madeup": ">=1.2.0"})
    assert gap.patches[0].target == "madeup.core:plain"
    assert "plain(a, b=1, *, c=None)" in _files(home)["acme_npu/shims/one.py"]


FORMS = [
    ("plain", "def around_plain(call: Any, *args", "return call(*args"),
    ("waits", "async def around_waits(call", "return await call(*args"),
    ("counts", "def around_counts(call", "return (yield from call(*args"),
    ("streams", "async def around_streams(call", "async for one in call(*args"),
    ("Thing", "def around_init(call: Any, self: Any, /,", "return call(self, *args"),
    ("Thing.method", "def around_method(call: Any, self: Any", "call(self, *args"),
    ("Thing.made", "def around_made(call: Any, cls: Any", "return call(cls, *args"),
    ("Thing.loose", "def around_loose(call: Any, *args", "return call(*args"),
    ("Thing.half", "def around_half(call: Any, self: Any", "return call(self, *args"),
]


def test_every_form_applies_passes_through_and_goes(home: Path) -> None:
    """`shims apply-check`, the tests that were made, and `shims drift`."""
    for number, (target, head, body) in enumerate(FORMS):
        made = _make(home, f"gap-{number}", target)
        text = made.place.module(made.gap).read_text()
        assert head in text, text
        assert body in text, text
    done = _shims(home, "apply-check", "--registry", REGISTRY, "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    assert len(json.loads(done.stdout)["gaps"]) == len(FORMS)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=home,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert f"{len(FORMS)} passed" in ran.stdout, ran.stdout + ran.stderr
    site = str(home.parent / "site")
    done = _shims(home, "lock", site, "--registry", REGISTRY, "--offline")
    assert done.returncode == 0, done.stderr
    words = ["--package", "madeup", "--registry", REGISTRY, "--json", "--offline"]
    told = json.loads(_shims(home, "drift", "--against", site, *words).stdout)
    assert len(told["findings"]) == len(FORMS)
    assert {one["verdict"] for one in told["findings"]} == {"identical"}


# What is there stays as it is

HEAD = "schema: 1\nupstreams: [madeup]\npackage: acme_npu.shims\n"
ENTRY = """\
- id: old
  title: T   # a comment
  status: landed
  kind: workaround
  why: W
  remove_when: R
  unpatched: it landed
"""
WATCH = "watch:\n  - {symbol: 'madeup.core:waits', how: calls}\n"


def _indented(text: str, by: int) -> str:
    return "".join(f"{' ' * by}{line}\n" for line in text.splitlines())


LAYOUTS = {
    "indented": HEAD + "gaps:\n" + _indented(ENTRY, 2),
    "at the margin": HEAD + "gaps:\n" + ENTRY,
    "far": HEAD + "gaps:\n" + _indented(ENTRY, 6),
    "dash apart": HEAD + "gaps:\n  -\n" + _indented(ENTRY.replace("- id", "  id"), 2),
    "no line break": HEAD + "gaps:\n" + ENTRY.rstrip("\n"),
    "comment at the end": HEAD + "gaps:\n" + ENTRY + "\n# the end\n",
    "not last": HEAD + "gaps:\n" + ENTRY + "\n# Besides.\n" + WATCH,
    "windows": (HEAD + "gaps:\n" + ENTRY + WATCH).replace("\n", "\r\n"),
    "other letters": HEAD + "gaps:\n" + ENTRY.replace("title: T", "title: 图表 é"),
}


@pytest.fixture
def own(home: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = home / REGISTRY
        path.parent.mkdir()
        (path.parent / "__init__.py").touch()
        path.write_bytes(text.encode())
        return path

    return write


@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS)
def test_an_entry_is_added_and_all_else_stays(
    text: str, home: Path, own: Callable[[str], Path]
) -> None:
    path = own(text)
    made = _make(home, "new-one", "Thing.method")
    assert made.changed == (path,)
    now = path.read_bytes().decode()
    gaps = load(path, folders=[path.parent]).gaps
    assert [gap.id for gap in gaps] == ["old", "new-one"]
    # Without the lines that were added, it is the old text.
    rest = [line for line in now.splitlines() if line.strip()]
    before = [line for line in text.splitlines() if line.strip()]
    assert [line for line in rest if line in before or "new" in line][: len(before)]
    kept = iter(rest)
    assert all(line in kept for line in before)
    assert ("\r\n" in text) == ("\r\n" in now)
    assert "\n" not in now.replace("\r\n", "") or "\r\n" not in text


def test_two_on_one_place_get_an_order(home: Path) -> None:
    _make(home)
    _make(home, "two")
    gaps = load(home / REGISTRY, folders=[home / "acme_npu" / "shims"]).gaps
    assert [(gap.id, gap.after) for gap in gaps] == [("one", ()), ("two", ("one",))]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"gap": "Bad"}, "'Bad' is no id; write small letters"),
    ({"gap": "../x"}, "is no id"),
    ({"gap": "one\n"}, "is no id"),
    ({"gap": "old"}, "has a gap old already; choose another id"),
    ({"gap": "taken"}, "taken.py is there already; choose another id"),
    ({"target": "planar"}, "did you mean madeup.core:plain?"),
    ({"target": "Thing.methid"}, "did you mean madeup.core:Thing.method?"),
    ({"target": "LIMIT"}, "is no function, and a wrapper stands before functions"),
    ({"target": "Bare"}, "is a class without an __init__ of its own"),
    ({"target": "plain.x:"}, "is no target; write package.module:Qual.name"),
    ({"package": "acme_npu.other"}, "has its patches in acme_npu.shims; leave"),
]


@pytest.mark.parametrize(("wish", "said"), REFUSED)
def test_what_cannot_be_made_is_told_and_nothing_is_written(
    wish: dict[str, Any], said: str, home: Path, own: Callable[[str], Path]
) -> None:
    own(LAYOUTS["indented"])
    (home / "acme_npu" / "shims" / "taken.py").write_text("mine")
    before = _files(home)
    with pytest.raises(ScaffoldError) as caught:
        _make(home, **wish)
    assert said in str(caught.value)
    assert _files(home) == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + "gaps: [" + json.dumps({"id": "x"}) + "]", "is missing"),
        (
            HEAD
            + "gaps: [{id: old, title: T, status: landed, kind: workaround, why: W, "
            "remove_when: R, unpatched: it}]\n",
            "write `gaps` as a list, one beneath the other",
        ),
        (HEAD.replace("madeup]", "other]") + "gaps:\n" + ENTRY, "outside the upstream"),
        (
            HEAD.replace("shims", "gone") + "gaps:\n" + ENTRY,
            "is not in a folder around",
        ),
    ],
)
def test_a_registry_that_takes_none(
    text: str, said: str, home: Path, own: Callable[[str], Path]
) -> None:
    path = own(text)
    before = _files(home)
    with pytest.raises(ValueError, match=said):
        _make(home, registry=path)
    assert _files(home) == before


def test_without_a_package_one_has_to_be_named(home: Path) -> None:
    (home / "another").mkdir()
    (home / "another" / "__init__.py").touch()
    with pytest.raises(ScaffoldError, match="there are acme_npu, another"):
        _make(home)
    made = _make(home, package="another.gaps")
    assert made.place.package == "another.gaps"


@pytest.mark.parametrize(
    "package", ["json", "json.shims", "ascend_shims.patches", "madeup.shims", "pytest"]
)
def test_a_package_of_somebody_else_is_not_hidden(home: Path, package: str) -> None:
    with pytest.raises(ScaffoldError, match="is a package of somebody else"):
        _make(home, package=package)
    assert not (home / package.partition(".")[0]).exists()


def test_a_package_of_the_project_is_not_somebody_elses(home: Path) -> None:
    made = _make(home, package="acme_npu.other")
    assert made.place.package == "acme_npu.other"


@pytest.mark.parametrize("gap", ["class", "import", "yield"])
def test_no_module_is_called_like_a_word_of_python(home: Path, gap: str) -> None:
    with pytest.raises(ScaffoldError, match="is a word of Python"):
        _make(home, gap=gap)


def test_a_source_folder_is_where_packages_are(home: Path) -> None:
    (home / "acme_npu").rename(home / "moved")
    (home / "src").mkdir()
    (home / "moved").rename(home / "src" / "acme_npu")
    made = _make(home)
    assert made.place.module("one") == home / "src" / "acme_npu" / "shims" / "one.py"
    test = (home / "tests" / "test_one.py").read_text()
    assert 'syspath_prepend(str(PROJECT / "src"))' in test
    assert 'REGISTRY = PROJECT / "src/acme_npu/shims/gap_registry.yaml"' in test


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError("full"), SystemExit])
@pytest.mark.parametrize("at", range(4))
def test_interrupted_anywhere_nothing_is_left(
    error: Any, at: int, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _files(home)
    folders = {p for p in home.rglob("*") if p.is_dir()}
    calls = 0
    write = make.write_whole

    def failing(path: Path, content: str) -> None:
        nonlocal calls
        if calls == at:
            raise error
        calls += 1
        write(path, content)

    monkeypatch.setattr(make, "write_whole", failing)
    with pytest.raises((KeyboardInterrupt, OSError, SystemExit)):
        _make(home)
    assert calls == at
    assert _files(home) == before
    assert {p for p in home.rglob("*") if p.is_dir()} == folders


def test_what_is_printed_and_its_json(home: Path) -> None:
    words = ["new-gap", "one", "--target", "madeup.core:plain"]
    done = _shims(home, *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"made     {REGISTRY}\n" in done.stdout
    assert "one stands before madeup.core:plain, as in madeup 1.2.0" in done.stdout
    assert f"  shims apply-check --registry {REGISTRY}\n" in done.stdout
    assert "ascend_shims.registries =\n      acme = acme_npu.shims\n" in done.stdout
    done = _shims(home, "new-gap", "two", *words[2:], "--json")
    told = json.loads(done.stdout)
    assert (told["schema"], told["gap"], told["release"]) == (
        1,
        "two",
        "madeup 1.2.0 (installed)",
    )
    assert told["changed"] == [str(home / REGISTRY)]
    assert told["next"][0] == f"shims apply-check --registry {REGISTRY}"
    done = _shims(home, *words)
    assert done.returncode == 2
    assert done.stderr.endswith("choose another id [scaffold]\n")


def test_sentences_are_folded_in_a_terminal_and_commands_never(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--target", "madeup.core:Thing.method"]
    monkeypatch.delenv("COLUMNS", raising=False)
    whole = _shims(home, "new-gap", "one", *words).stdout.splitlines()
    sentence = (
        "To have it found where the project is installed, write into setup.cfg, or the "
        "like into pyproject.toml, and list the registry as package data:"
    )
    assert sentence in whole
    (home / REGISTRY).unlink()
    for path in ("acme_npu/shims/one.py", "tests/test_one.py"):
        (home / path).unlink()
    monkeypatch.setenv("COLUMNS", "40")
    folded = _shims(home, "new-gap", "one", *words).stdout
    lines = folded.splitlines()
    assert sentence not in lines
    assert sentence in " ".join(folded.split())
    wide = [line for line in lines if len(line) > 40]
    assert wide
    assert all(line.startswith(("  ", "made     ")) for line in wide)
    steps = [line for line in whole if line.startswith("  ")]
    assert [line for line in lines if line.startswith("  ")] == steps
    assert [line for line in lines if line != line.rstrip()] == []


@pytest.mark.vllm
def test_on_real_vllm_the_example_holds(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = _shims(home, "new-gap", "one")
    assert done.returncode == 0, done.stderr
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=home,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert "1 passed" in ran.stdout, ran.stdout + ran.stderr
    done = _shims(home, "apply-check", "--registry", REGISTRY)
    assert done.returncode == 0, done.stderr + done.stdout
    done = _shims(home, "lock", "installed", "--registry", REGISTRY, "--offline")
    assert done.returncode == 0, done.stderr
    done = _shims(home, "drift", "--registry", REGISTRY, "--offline")
    assert (done.returncode, "identical" in done.stdout) == (0, True), done.stderr
