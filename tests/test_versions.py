"""When a version is inside a range, and which version a package has."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

import ascend_shims
from ascend_shims.environment import read_environment
from ascend_shims.environment.device import find_device
from ascend_shims.environment.distributions import find_distribution
from ascend_shims.environment.modules import binds, find_module
from ascend_shims.environment.versions import Fit, fit, fit_all, parse

from .fresh import python

IN, OUT, UNKNOWN = Fit.INSIDE, Fit.OUTSIDE, Fit.UNKNOWN

TABLE = [
    ("0.28.0", ">=0.28,<0.29", IN),
    ("0.28.0+empty", ">=0.28,<0.29", IN),
    ("0.28.0+cpu", ">=0.28,<0.29", IN),
    ("v0.28.0", ">=0.28,<0.29", IN),
    ("0.28.0.post1", ">=0.28,<0.29", IN),
    ("0.28.7", ">=0.28,<0.29", IN),
    ("0.28.0+empty", "==0.28.0", IN),
    ("0.28.0+cu128", "==0.28.*", IN),
    ("0.28.0.post1", "==0.28.*", IN),
    ("0.28.0+empty", "!=0.28.0", OUT),
    ("0.29.0rc1", ">=0.28,<0.29", OUT),
    ("0.29.0.dev5", ">=0.28,<0.29", OUT),
    ("0.29.0.dev5+gabc", ">=0.28,<0.29", OUT),
    ("0.28.0rc1", ">=0.28,<0.29", OUT),
    ("0.28.1.dev12+gabc.d20260101", ">=0.28,<0.29", OUT),
    ("0.28.0rc1", ">=0.28rc1,<0.29", IN),
    ("0.28.0rc2", ">=0.28rc1,<0.29", IN),
    ("0.28.0rc1", "==0.28.0rc1", IN),
    ("0.29.0", ">=0.28,<0.29", OUT),
    ("0.27.9", ">=0.28,<0.29", OUT),
    ("0.9.0", ">=0.11", OUT),
    ("0.11.0", ">=0.9", IN),
    ("1!0.1", ">=0.28", IN),
    ("0.28.0", "", IN),
    ("0.28.0rc1", "", OUT),
    ("dev", ">=0.28,<0.29", UNKNOWN),
    ("", ">=0.28", UNKNOWN),
    ("unknown", ">=0.28", UNKNOWN),
    ("0.28.0-cpu-nightly", ">=0.28", UNKNOWN),
    (None, ">=0.28", UNKNOWN),
    ("0.1.dev1+g5e40263c3.empty", ">=0.28", UNKNOWN),
    ("0.1.dev8666+gabc", "<0.28", UNKNOWN),
    ("0.0.0", ">=0.28", UNKNOWN),
    ("0.0.0.dev0", ">=0.28", UNKNOWN),
    ("0+unknown", ">=0.28", UNKNOWN),
    ("0.1.0", ">=0.28", OUT),
    ("0.1.post1.dev3+gabc", ">=0.28", UNKNOWN),
    ("0.1.7.dev3+gabc", ">=0.28", UNKNOWN),
    ("0.0.7.dev3", ">=0.28", UNKNOWN),
    ("0.2.dev3", ">=0.28", OUT),
    ("1.0.dev3", ">=0.28", OUT),
    ("1.dev3", ">=0.28", OUT),
    ("0.dev3", ">=0.28", UNKNOWN),
    ("v1", ">=0.28", IN),
]


@pytest.mark.parametrize(("version", "range_", "expected"), TABLE)
def test_a_version_is_inside_outside_or_says_nothing(
    version: str | None, range_: str, expected: Fit
) -> None:
    """`0.28.0+empty`, `0.28.0.post1`, `0.28.0rc1` fall out of an equality; `dev` or
    `0.1.dev1+g...` raises; strings are compared as text; behaviour changes with the
    release of `packaging`."""
    assert fit(version, range_) is expected


releases = st.lists(st.integers(0, 40), min_size=1, max_size=3)
operators = st.sampled_from([">=", "<=", ">", "<", "==", "!=", "~="])


@settings(deadline=None)
@given(releases, st.lists(st.tuples(operators, releases), min_size=1, max_size=3))
def test_ranges_of_releases_are_those_of_packaging(
    release: list[int], clauses: list[tuple[str, list[int]]]
) -> None:
    """Strings are never compared as text."""
    spelled = ".".join(map(str, release))
    range_ = ",".join(
        op + ".".join(map(str, [*bound, 0] if op == "~=" else bound))
        for op, bound in clauses
    )
    expected = Version(spelled) in SpecifierSet(range_)
    if not any(release):
        assert fit(spelled, range_) is UNKNOWN
        return
    assert fit(spelled, range_) is (IN if expected else OUT)
    for suffix in ("+local", "+local.1"):
        assert fit(spelled + suffix, range_) is fit(spelled, range_)


@settings(deadline=None)
@given(st.text(max_size=20))
def test_no_version_is_an_error(text: str) -> None:
    assert fit(text, ">=0.28,<0.29") in set(Fit)


def test_versions_are_compared_as_versions_everywhere() -> None:
    """No file of the toolkit compares `__version__` with an order or an equality."""
    comparing = re.compile(r"version\w*(\(\))?\s*(<|>|==|<=|>=)\s*[\"']\d")
    root = Path(ascend_shims.__file__).parent
    files = sorted({*root.rglob("*.py"), *(root / "patches").glob("*.py")})
    assert len(files) > 30
    assert [f for f in files if comparing.search(f.read_text())] == []


def test_several_packages_together() -> None:
    versions = {"vllm": "0.28.0", "torch_npu": "dev", "torch": "2.13.0"}
    assert fit_all(versions, {"vllm": ">=0.28", "torch": ">=2"}) is IN
    assert fit_all(versions, {"vllm": ">=0.28", "torch_npu": ">=2"}) is UNKNOWN
    assert fit_all(versions, {"vllm": ">=0.29", "torch_npu": ">=2"}) is OUT
    assert fit_all(versions, {"missing": ">=1"}) is UNKNOWN
    assert fit_all(versions, {}) is IN


SAYS_NOTHING = [None, "", "dev", "0.0.0", "0.1.dev1", "not a version", "0.1.3.dev2+g1"]
SAYS_NOTHING += ["0.0.1.dev1", "0.dev3", "0.0", "XXXX"]


@pytest.mark.parametrize("raw", SAYS_NOTHING)
def test_what_says_nothing_is_no_version(raw: str | None) -> None:
    assert parse(raw) is None


@pytest.mark.parametrize("raw", ["0.2.dev1", "1.0.dev1", "1.dev1", "1.1.dev2", "0.1.3"])
def test_what_says_something_is_one(raw: str) -> None:
    assert str(parse(raw)) == raw


# Which version a package has


class Site:
    """A directory of packages with and without metadata."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def package(self, name: str, **files: str) -> Path:
        init = self.root / name / "__init__.py"
        init.parent.mkdir(parents=True, exist_ok=True)
        init.write_text("raise RuntimeError('imported')\n")
        for file, text in files.items():
            (init.parent / f"{file}.py").write_text(text)
        return init

    def metadata(
        self, name: str, version: str, *claims: str, kind: str = "dist-info"
    ) -> None:
        info = self.root / f"{name}-{version}.{kind}"
        info.mkdir(exist_ok=True)
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (info / ("METADATA" if kind == "dist-info" else "PKG-INFO")).write_text(text)
        if kind == "dist-info":
            lines = [f"{claim},sha256=x,1\n" for claim in claims]
            (info / "RECORD").write_text("".join(lines))
        else:
            (info / "top_level.txt").write_text("\n".join(claims) + "\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.syspath_prepend(tmp_path)
    return Site(tmp_path)


def test_metadata_that_claims_the_file_tells(site: Site) -> None:
    init = site.package("upv", _version="__version__ = '9.9.9'\n")
    site.metadata("upv", "0.28.0+empty", "upv/__init__.py")
    found = find_distribution("upv")
    assert (found.version, found.name, found.file, found.origin) == (
        "0.28.0+empty",
        "upv",
        str(init),
        "metadata",
    )
    assert str(found) == "upv 0.28.0+empty"


def test_another_distribution_name_is_told(site: Site) -> None:
    site.package("upv")
    site.metadata("upv_cpu", "0.32.0", "upv/__init__.py")
    site.metadata("unrelated", "1.0", "unrelated/__init__.py")
    found = find_distribution("upv")
    assert (found.version, found.name) == ("0.32.0", "upv_cpu")
    assert str(found) == "upv 0.32.0 (upv_cpu)"


@pytest.mark.parametrize(
    ("files", "version"),
    [
        ({"_version": "__version__ = '0.28.0'\n"}, "0.28.0"),
        ({"_version": "__version__ = version = '0.28.0+x'\n"}, "0.28.0+x"),
        ({"version": '__version__: str = "0.28.0"\n'}, "0.28.0"),
        (
            {
                "_version": "__version__ = 'dev'\n",
                "version": "__version__ = '0.28.0'\n",
            },
            "0.28.0",
        ),
        ({"_version": "__version__ = 'dev'\n"}, "dev"),
        ({"_version": "__version__ = ''\n"}, None),
        ({"_version": "__version__ = None\n"}, None),
        ({"_version": "__version__ = importlib.metadata.version('upv')\n"}, None),
        ({"_version": "# __version__ = '0.28.0'\n"}, None),
        ({}, None),
    ],
)
def test_without_metadata_the_files_tell(
    site: Site, files: dict[str, str], version: str | None
) -> None:
    """`dev`, an empty one, `None`, and no metadata at all are no error."""
    site.package("upv", **files)
    found = find_distribution("upv")
    assert (found.version, found.origin, found.present) == (version, "module", True)


def test_metadata_that_says_nothing_yields_to_the_files(site: Site) -> None:
    site.package("upv", _version="__version__ = '0.28.0'\n")
    site.metadata("upv", "0.1.dev1+gabc", "upv/__init__.py")
    assert find_distribution("upv").version == "0.28.0"


def test_metadata_that_says_nothing_is_shown_if_nothing_says_more(site: Site) -> None:
    site.package("upv")
    site.metadata("upv", "0.1.dev1+gabc.empty", "upv/__init__.py")
    found = find_distribution("upv")
    assert (found.version, found.origin) == ("0.1.dev1+gabc.empty", "metadata")


def test_an_egg_tells_as_well(site: Site) -> None:
    site.package("upv")
    site.metadata("upv", "0.28.0", "upv", kind="egg-info")
    assert find_distribution("upv").version == "0.28.0"


def test_of_two_that_claim_the_file_the_one_with_its_bytes_counts(site: Site) -> None:
    import base64
    import hashlib

    init = site.package("upv")
    digest = base64.urlsafe_b64encode(hashlib.sha256(init.read_bytes()).digest())
    site.metadata("upv", "0.27.0", "upv/__init__.py")
    site.metadata("upv_fork", "0.28.0", "upv/__init__.py")
    record = site.root / "upv_fork-0.28.0.dist-info" / "RECORD"
    record.write_text(f"upv/__init__.py,sha256={digest.rstrip(b'=').decode()},1\n")
    assert find_distribution("upv").name == "upv_fork"


def test_a_copy_that_shadows_another_is_the_one_that_counts(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A17 and A18 of the public reports: the metadata of one copy must not be told
    as that of the other."""
    site.package("upv")
    site.metadata("upv", "0.28.0", "upv/__init__.py")
    other = Site(tmp_path / "cwd")
    init = other.package("upv", _version="__version__ = '0.99.0'\n")
    monkeypatch.syspath_prepend(other.root)
    found = find_distribution("upv")
    assert (found.version, found.file, found.name) == ("0.99.0", str(init), None)


def test_a_checkout_installed_in_place_tells(site: Site, tmp_path: Path) -> None:
    checkout = Site(tmp_path / "checkout")
    checkout.package("upv")
    site.metadata("upv_src", "0.28.0", "__editable__.py")
    url = site.root / "upv_src-0.28.0.dist-info" / "direct_url.json"
    url.write_text(
        f'{{"url": "file://{checkout.root}", "dir_info": {{"editable": true}}}}'
    )
    sys.path.insert(0, str(checkout.root))
    try:
        found = find_distribution("upv")
    finally:
        sys.path.remove(str(checkout.root))
    assert (found.version, found.name) == ("0.28.0", "upv_src")


def test_an_environment_inside_a_checkout_is_not_the_checkout(
    site: Site, tmp_path: Path
) -> None:
    """A virtual environment often lies in a project that is installed in place."""
    inside = Site(tmp_path / "checkout/.venv/lib/python3/site-packages")
    inside.package("upv")
    site.metadata("project", "1.2.3", "__editable__.py")
    url = site.root / "project-1.2.3.dist-info" / "direct_url.json"
    url.write_text(
        f'{{"url": "file://{tmp_path}/checkout", "dir_info": {{"editable": true}}}}'
    )
    sys.path.insert(0, str(inside.root))
    try:
        found = find_distribution("upv")
    finally:
        sys.path.remove(str(inside.root))
    assert (found.version, found.name) == (None, None)


def test_a_description_tells_no_version(site: Site) -> None:
    site.package("upv")
    site.metadata("upv", "1.2.3", "upv/__init__.py")
    with (site.root / "upv-1.2.3.dist-info" / "METADATA").open("a") as file:
        file.write("\nName: another\nVersion: 9\n")
    found = find_distribution("upv")
    assert (found.version, found.name) == ("1.2.3", "upv")


def test_broken_metadata_is_no_error(site: Site) -> None:
    site.package("upv", _version="__version__ = '0.28.0'\n")
    site.metadata("upv", "1.0", "upv/__init__.py")
    info = site.root / "upv-1.0.dist-info"
    (info / "METADATA").write_text("nothing in here\n")
    (info / "direct_url.json").write_text("{")
    assert find_distribution("upv").version == "0.28.0"
    (info / "RECORD").unlink()
    assert find_distribution("upv").version == "0.28.0"


def test_a_package_that_is_not_there(site: Site) -> None:
    found = find_distribution("upv_not_there")
    assert (found.version, found.present) == (None, False)
    assert str(found) == "upv_not_there is not installed"
    assert site.root


def test_a_stand_in_without_a_spec_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "upv", ModuleType("upv"))
    monkeypatch.setitem(sys.modules, "torch_npu", ModuleType("torch_npu"))
    assert find_distribution("upv").present is False
    assert find_device("auto").kind == "none"


def test_an_assumed_version_needs_nothing() -> None:
    environment = read_environment(
        ["upv"], assume={"upv": "0.29.0", "other": "1.0"}, device="none"
    )
    assert environment.version("upv") == "0.29.0"
    assert environment.version("other") == "1.0"
    assert environment.version("nothing") is None
    assert environment.distributions["upv"].origin == "assumed"


def test_the_device_is_what_was_asked_for() -> None:
    assert find_device("npu").kind == "npu"
    assert find_device("sim").reason == "ASCEND_SHIMS_DEVICE=sim"
    assert find_device("none").kind == "none"
    auto = find_device("auto")
    assert (auto.kind, auto.reason) == ("none", "torch_npu is not installed")


# What a module's source binds


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(): pass", True),
        ("async def f(): pass", True),
        ("class f: pass", True),
        ("f = 1", True),
        ("f: int = 1", True),
        ("a, (f, b) = x", True),
        ("import f", True),
        ("import f.g", True),
        ("import g as f", True),
        ("from g import h as f", True),
        ("from g import f", True),
        ("if x:\n    pass\nelse:\n    def f(): pass", True),
        ("try:\n    import g\nexcept ImportError:\n    f = None", True),
        ("try:\n    pass\nfinally:\n    f = 1", True),
        ("for f in x: pass", True),
        ("with x as f: pass", True),
        ("with x:\n    f = 1", True),
        ("match x:\n    case 1:\n        f = 1", True),
        ("while x:\n    f = 1", True),
        ("def g():\n    f = 1", False),
        ("class C:\n    f = 1", False),
        ("x.f = 1", False),
        ("import g.f", False),
        ("from g import *", None),
        ("from g import *\nf = 1", True),
        ("def (:", None),
        ("", False),
    ],
)
def test_what_source_binds(site: Site, source: str, expected: bool | None) -> None:
    site.package("upv", mod=source)
    spec = importlib.util.spec_from_file_location("upv.mod", site.root / "upv/mod.py")
    assert spec is not None
    assert binds(spec, "f") is expected


def test_a_module_is_found_without_importing_its_parents(site: Site) -> None:
    site.package("upv", mod="raise RuntimeError('imported')\n")
    spec = find_module("upv.mod")
    assert spec is not None
    assert spec.origin == str(site.root / "upv/mod.py")
    assert find_module("upv.mod.more") is None
    assert find_module("upv.nothing") is None
    assert find_module("nothing.at.all") is None
    assert "upv" not in sys.modules


def test_reading_the_environment_imports_nothing(site: Site) -> None:
    site.package("upv")
    code = (
        "import sys\n"
        "from ascend_shims.environment import read_environment\n"
        "read_environment(['upv', 'vllm', 'torch'], assume={}, device='auto')\n"
        "print([m for m in ('upv', 'vllm', 'torch', 'pydantic') if m in sys.modules])\n"
    )
    assert python(code, cwd=site.root) == "[]\n"
