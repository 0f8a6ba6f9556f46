"""The registry of a project, found from a place inside it and never outside."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ascend_shims.registry import discovery
from ascend_shims.registry.discovery import DiscoveryError, discover, in_folder

Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def write(*names: str, **texts: str) -> Path:
        for name in names:
            path = tmp_path / name
            if name.endswith("/"):
                path.mkdir(parents=True, exist_ok=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(texts.get(path.stem, ""))
        return tmp_path

    return write


def _table(said: str) -> str:
    return f'[tool.ascend-shims]\nregistry = "{said}"\n'


@pytest.mark.parametrize(
    "start", ["repo", "repo/pkg", "repo/pkg/deep", "repo/pkg/a.py"]
)
def test_up_to_the_repositorys_root(make: Make, start: str) -> None:
    root = make(
        "repo/.git/", "repo/gap_registry.yaml", "repo/pkg/a.py", "repo/pkg/deep/"
    )
    assert discover(root / start) == root / "repo" / "gap_registry.yaml"


def test_the_nearest_one(make: Make) -> None:
    root = make(
        "repo/.git/",
        "repo/gap_registry.yaml",
        "repo/sub/gap_registry.yml",
        "repo/sub/a/",
    )
    assert discover(root / "repo/sub/a") == root / "repo/sub/gap_registry.yml"


def test_a_project_file_comes_before_a_name(make: Make) -> None:
    root = make(
        "repo/.git/",
        "repo/gap_registry.yaml",
        "repo/conf/ours.yaml",
        "repo/pyproject.toml",
        pyproject=_table("conf/ours.yaml"),
    )
    assert discover(root / "repo") == root / "repo/conf/ours.yaml"


def test_a_project_file_that_says_nothing_of_it(make: Make) -> None:
    root = make(
        "repo/.git/",
        "repo/gap_registry.yaml",
        "repo/sub/pyproject.toml",
        pyproject='[project]\nname = "ascend-shims-user"\n',
    )
    assert discover(root / "repo/sub") == root / "repo/gap_registry.yaml"


def test_never_above_the_repository(make: Make) -> None:
    root = make("gap_registry.yaml", "repo/.git/", "repo/sub/")
    with pytest.raises(DiscoveryError, match=r"no registry in .*sub nor above it in"):
        discover(root / "repo/sub")
    # A linked work tree has a file there.
    root = make("tree/.git", "tree/sub/")
    with pytest.raises(DiscoveryError, match="no registry in"):
        discover(root / "tree/sub")


def test_without_a_repository_only_the_folder_itself(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make("plain/gap_registry.yaml", "plain/sub/")
    monkeypatch.setattr(discovery, "_repository", lambda folder: None)
    assert discover(root / "plain") == root / "plain/gap_registry.yaml"
    with pytest.raises(DiscoveryError, match="no registry in"):
        discover(root / "plain/sub")


def test_never_in_the_home_above(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the whole home is a repository."""
    root = make("home/.git/", "home/gap_registry.yaml", "home/project/")
    monkeypatch.setenv("HOME", str(root / "home"))
    with pytest.raises(DiscoveryError, match="no registry in"):
        discover(root / "home/project")
    assert discover(root / "home") == root / "home/gap_registry.yaml"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (_table("../outside.yaml"), "is not in"),
        (_table("link.yaml"), "is not in"),
        (_table("none.yaml"), "there is no registry none.yaml"),
        (_table("a\\u0000b"), "there is no registry"),
        (_table("sub"), "there is no registry sub"),
        (_table(""), "write"),
        ("[tool.ascend-shims]\nregistry = 3\n", "write"),
        ("[tool.ascend-shims]\n", "write"),
        ("[tool.ascend-shims]\nregistri = 'x'\n", "did you mean `registry`"),
        ("[tool]\nascend-shims = 1\n", "is no table"),
        ("[tool.ascend-shims\n", "pyproject.toml: "),
        ("ascend-shims = " + "[" * 5000, "pyproject.toml: "),
        ("#" * (1 << 20) + "\n", "more than"),
    ],
)
def test_project_files_that_are_wrong(make: Make, text: str, why: str) -> None:
    root = make(
        "repo/.git/",
        "repo/sub/",
        "outside.yaml",
        "repo/gap_registry.yaml",
        "repo/pyproject.toml",
        pyproject=text,
    )
    (root / "repo/link.yaml").symlink_to(root / "outside.yaml")
    with pytest.raises(DiscoveryError, match=why):
        discover(root / "repo")


def test_places_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for name in ("none", "loop"):
        with pytest.raises(DiscoveryError, match="cannot be looked into"):
            discover(tmp_path / name)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.sampled_from(["git", "yaml", "toml", ""]), min_size=1, max_size=5),
    st.integers(0, 4),
    st.booleans(),
)
def test_the_same_from_any_working_directory(
    tmp_path_factory: pytest.TempPathFactory,
    levels: list[str],
    start: int,
    relative: bool,
) -> None:
    base = tmp_path_factory.mktemp("tree")
    (base / ".git").mkdir()
    folders = [base]
    for number, what in enumerate(levels):
        folder = folders[-1] / f"d{number}"
        folder.mkdir()
        folders.append(folder)
        if what == "git":
            (folder / ".git").mkdir()
        if what == "yaml":
            (folder / "gap_registry.yaml").touch()
        if what == "toml":
            (folder / "other.yaml").touch()
            (folder / "pyproject.toml").write_text(_table("other.yaml"))
    place = folders[min(start, len(levels))]
    expected = None
    for folder, what in zip(folders[::-1], [*levels[::-1], "git"], strict=True):
        if not place.is_relative_to(folder):
            continue
        name = {"yaml": "gap_registry.yaml", "toml": "other.yaml"}.get(what)
        if name is not None:
            expected = folder / name
        if name is not None or what == "git":
            break
    before = Path.cwd()
    try:
        for where in (base, folders[-1], Path("/")):
            os.chdir(where)
            asked = Path(os.path.relpath(place)) if relative else place
            try:
                found: Path | None = discover(asked)
            except DiscoveryError:
                found = None
            assert found == expected
    finally:
        os.chdir(before)


@pytest.mark.parametrize(
    "name",
    [
        "repo/gap_registry.yaml",
        "repo/acme_npu/shims/gap_registry.yaml",
        "repo/src/acme/npu/shims/gap_registry.yml",
    ],
)
def test_a_folder_that_is_named_may_have_it_in_a_package(make: Make, name: str) -> None:
    root = make(
        name,
        "repo/tests/acme/gap_registry.yaml",
        "repo/.venv/lib/gap_registry.yaml",
        "repo/env/pyvenv.cfg",
        "repo/env/lib/gap_registry.yaml",
        "repo/a/b/c/d/e/gap_registry.yaml",
    )
    assert in_folder(root / "repo") == root / name


def test_of_several_below_a_folder_none_is_meant(make: Make) -> None:
    root = make("repo/a/gap_registry.yaml", "repo/b/gap_registry.yaml")
    with pytest.raises(DiscoveryError, match=r"several registries .*: a/gap_registry"):
        in_folder(root / "repo")


def test_nothing_below_a_folder_is_told_as_nothing_above(make: Make) -> None:
    root = make("repo/tests/gap_registry.yaml")
    with pytest.raises(DiscoveryError, match=r"no registry in .*repo: put a"):
        in_folder(root / "repo")


def test_above_comes_before_below(make: Make) -> None:
    root = make(
        "repo/.git/", "repo/gap_registry.yaml", "repo/pkg/deep/gap_registry.yaml"
    )
    assert in_folder(root / "repo" / "pkg") == root / "repo" / "gap_registry.yaml"


def test_the_whole_machine_is_no_project(monkeypatch: pytest.MonkeyPatch) -> None:
    walked: list[Path] = []
    monkeypatch.setattr(os, "walk", lambda top: walked.append(top) or [])
    with pytest.raises(DiscoveryError) as caught:
        in_folder(Path("/"))
    assert str(caught.value) == (
        "no registry in /, and none is looked for below; name its file, or the folder "
        "of its project"
    )
    assert walked == []


def test_more_files_than_a_project_has_are_not_gone_through(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make(
        "repo/a/gap_registry.yaml", "repo/b/one", "repo/.venv/1", "repo/.venv/2"
    )
    # The folders a and b, and a file in each.
    monkeypatch.setattr(discovery, "_MOST", 4)
    assert in_folder(root / "repo") == root / "repo/a/gap_registry.yaml"
    monkeypatch.setattr(discovery, "_MOST", 3)
    with pytest.raises(DiscoveryError) as caught:
        in_folder(root / "repo")
    assert str(caught.value) == (
        f"more than 3 files are in {root / 'repo'}, too many to look for a registry "
        "among them; name its file, or the folder of its project"
    )
