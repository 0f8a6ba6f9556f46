"""Which index is asked, what its pages mean, and whom nobody talks to."""

from __future__ import annotations

import base64
import gzip
import html
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ascend_shims.upstream.sources import (
    IndexSettings,
    Sources,
    SourceUnavailable,
    open_source,
)
from ascend_shims.upstream.sources.errors import (
    AccessRefused,
    BadSource,
    HostRefused,
    IndexUnreachable,
    NoSuchRelease,
)
from ascend_shims.upstream.sources.links import parse_page

from .conftest import PLAIN, Mirror, sdist, wheel


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.fixture
def stocked(mirror: Mirror, tmp_path: Path) -> Mirror:
    for version in ("1.0", "1.1", "2.0rc1"):
        mirror.add(wheel(tmp_path / f"pkg-{version}-py3-none-any.whl"))
    return mirror


@pytest.mark.parametrize("json", [True, False])
@pytest.mark.parametrize("absolute", [True, False])
def test_pages_of_both_kinds_with_links_of_both_kinds(
    stocked: Mirror, json: bool, absolute: bool
) -> None:
    stocked.json = json
    stocked.absolute = f"http://{stocked.address}/files" if absolute else ""
    source = open_source("pkg==1.1")
    assert source.label == "pkg 1.1"
    assert source.version == "1.1"
    assert source.read("pkg/a.py") == b"A = 1\n"
    assert {r.path for r in stocked.got("/files")} == {
        "/files/pkg-1.1-py3-none-any.whl"
    }


@pytest.mark.parametrize(
    ("spec", "version"),
    [
        ("pkg==1.0", "1.0"),
        ("pkg == 1.0", "1.0"),
        ("PKG==1.0.0", "1.0"),
        ("pkg==2.0rc1", "2.0rc1"),
        ("pkg@latest", "1.1"),
        ("pkg@latest-pre", "2.0rc1"),
        ("pkg<1.1", "1.0"),
        ("pkg>=2.0rc1", "2.0rc1"),
        ("pkg==1.*", "1.1"),
    ],
)
def test_which_release_is_meant(stocked: Mirror, spec: str, version: str) -> None:
    assert open_source(spec).version == version


def test_releases_are_listed_oldest_first(stocked: Mirror, tmp_path: Path) -> None:
    stocked.add(sdist(tmp_path / "pkg-0.9.tar.gz"))
    stocked.add(sdist(tmp_path / "pkg-0.8.tar.gz"))
    stocked.yanked.add("pkg-0.8.tar.gz")
    sources = Sources()
    assert sources.releases("Pkg") == ("0.9", "1.0", "1.1", "2.0rc1")
    assert sources.stats.requests == 1
    assert sources.open("pkg==1.0").version == "1.0"
    assert len(stocked.got("/simple")) == 1


@pytest.mark.parametrize("json", [True, False])
def test_a_yanked_release_only_when_named(stocked: Mirror, json: bool) -> None:
    stocked.json = json
    stocked.yanked.add("pkg-1.1-py3-none-any.whl")
    assert open_source("pkg@latest").version == "1.0"
    assert open_source("pkg==1.1").version == "1.1"


def test_what_is_not_offered_says_what_is(stocked: Mirror) -> None:
    with pytest.raises(NoSuchRelease, match=r"pkg==9; .* of http.*: 1\.0, 1\.1"):
        open_source("pkg==9")
    with pytest.raises(NoSuchRelease, match="nothing-like-it is not offered by http"):
        open_source("nothing-like-it@latest")


@pytest.mark.parametrize(
    "spec", ["", "vllm", "vllm==", "vllm==x y", "vllm@newest", "-r==1", "git:x", "a b"]
)
def test_what_names_no_source_is_told_how(stocked: Mirror, spec: str) -> None:
    with pytest.raises(BadSource, match="write "):
        open_source(spec)
    assert stocked.asked == []


def test_the_file_of_a_page_is_what_it_is(stocked: Mirror) -> None:
    hostile = f"""<html><script>location = "http://evil.invalid/"</script>
    <a href="javascript:alert(1)">pkg-1.0.tar.gz</a>
    <a href="http://[broken/pkg-1.0.tar.gz">x</a>
    <a href="../../files/../../etc/passwd">y</a>
    <a href="../../files/other-1.0-py3-none-any.whl">other project</a>
    <a href="../../files/pkg-nonsense.whl">z</a> <a>no link</a> <a href="">w</a>
    <a href='../../files/pkg-1.0-py3-none-any.whl#md5=abc'>ok</a>
    <!-- <a href="../../files/pkg-3.0-py3-none-any.whl">comment</a> -->
    <{"x" * 5000}
    """
    stocked.page = hostile.encode()
    sources = Sources()
    assert sources.releases("pkg") == ("1.0",)
    assert sources.open("pkg==1.0").read("pkg/a.py") == b"A = 1\n"


def test_links_follow_the_base_of_the_page() -> None:
    page = b"""<base href="https://mirror.invalid/pool/">
    <a href="pkg-1.0.tar.gz#sha256=AB">pkg-1.0.tar.gz</a>"""
    (link,) = parse_page("pkg", "https://i.invalid", "https://i.invalid/pkg/", "", page)
    assert link.url == "https://mirror.invalid/pool/pkg-1.0.tar.gz"
    assert link.hash == "sha256=ab"


@pytest.mark.parametrize(
    "body", [b"[]", b"{}", b"{", b'{"files": 3}', b"[" * 100_000, b"\xff"]
)
def test_json_that_is_no_page_is_said_so(body: bytes) -> None:
    with pytest.raises(IndexUnreachable, match="no index page"):
        parse_page("pkg", "i", "https://i.invalid/", "application/json", body)


def test_entries_of_a_json_page_fail_one_by_one() -> None:
    body = b"""{"files": [3, {"filename": 3}, {"filename": "pkg-1.0.tar.gz"},
    {"filename": "pkg-2.0.tar.gz", "url": "a/pkg-2.0.tar.gz", "size": -4,
     "hashes": [], "yanked": ""}]}"""
    url = "https://i.invalid/pkg/"
    (link,) = parse_page("pkg", "i", url, "application/json", body)
    assert (link.version, link.size, link.hash, link.yanked) == ("2.0", None, "", True)


def test_a_mirror_may_not_send_us_to_another_host(
    stocked: Mirror, mirrors: Callable[[], Mirror], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = mirrors()
    other.files = stocked.files
    stocked.absolute = f"http://{other.address}/files"
    with pytest.raises(HostRefused, match=f"allow_hosts {other.address}"):
        open_source("pkg==1.0")
    assert other.asked == []
    settings = IndexSettings(allow_hosts=[other.address])
    assert open_source("pkg==1.0", index=settings).version == "1.0"
    monkeypatch.setenv("ASCEND_SHIMS_ALLOW_HOSTS", f"x.invalid, {other.address}")
    assert open_source("pkg==1.1").version == "1.1"


def test_a_redirect_to_another_host_is_refused(
    stocked: Mirror, mirrors: Callable[[], Mirror]
) -> None:
    other = mirrors()
    stocked.redirects["/simple/pkg/"] = f"{other.index}/pkg/"
    with pytest.raises(HostRefused, match=other.address):
        open_source("pkg==1.0")
    assert other.asked == []


def test_a_redirect_on_the_same_host_is_followed(stocked: Mirror) -> None:
    stocked.redirects["/old/pkg/"] = "/simple/pkg/"
    settings = IndexSettings(index_url=f"http://{stocked.address}/old")
    assert open_source("pkg==1.0", index=settings).read("pkg/a.py") == b"A = 1\n"
    stocked.redirects["/old/pkg/"] = "/old/pkg/"
    with pytest.raises(IndexUnreachable, match="redirects for ever"):
        open_source("pkg==7", index=settings)


def test_a_server_may_not_point_into_this_machine(
    mirror: Mirror, tmp_path: Path
) -> None:
    secret = wheel(tmp_path / "pkg-1.0-py3-none-any.whl")
    mirror.page = f'<a href="{secret.as_uri()}">x</a>'.encode()
    with pytest.raises(HostRefused, match="into this machine"):
        open_source("pkg==1.0")


def test_plain_http_needs_a_trusted_host() -> None:
    settings = IndexSettings(index_url="http://mirror.invalid/simple")
    with pytest.raises(HostRefused, match=r"trusted-host mirror\.invalid"):
        open_source("pkg==1.0", index=settings)


def test_switching_the_mirror_takes_effect(
    stocked: Mirror, mirrors: Callable[[], Mirror], tmp_path: Path
) -> None:
    assert open_source("pkg==1.0").read("pkg/a.py") == b"A = 1\n"
    other = mirrors()
    files = {**PLAIN, "pkg/a.py": b"A = 2\n"}
    other.add(wheel(tmp_path / "other" / "pkg-1.0-py3-none-any.whl", files))
    settings = IndexSettings(index_url=other.index)
    source = open_source("pkg==1.0", index=settings)
    assert source.read("pkg/a.py") == b"A = 2\n"
    assert open_source("pkg==1.0").read("pkg/a.py") == b"A = 1\n"


@pytest.mark.parametrize("status", [401, 403])
def test_refused_access_stops_and_leaks_nothing(
    stocked: Mirror,
    mirrors: Callable[[], Mirror],
    monkeypatch: pytest.MonkeyPatch,
    status: int,
) -> None:
    fallback = mirrors()
    fallback.files = stocked.files
    stocked.statuses["/simple"] = status
    url = stocked.index.replace("//", "//bob:s3cret@")
    monkeypatch.setenv("PIP_INDEX_URL", url)
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", fallback.index)
    with pytest.raises(AccessRefused, match=f"HTTP {status}") as caught:
        open_source("pkg==1.0")
    assert "s3cret" not in str(caught.value)
    assert "bob" not in str(caught.value)
    assert len(stocked.asked) == 1
    assert fallback.asked == []


def test_refused_access_to_a_file_stops_too(stocked: Mirror) -> None:
    source = open_source("pkg==1.0")
    stocked.statuses["/files"] = 403
    with pytest.raises(AccessRefused):
        open_source("pkg==1.1")
    assert source.version == "1.0"


def test_credentials_of_the_address_go_to_its_host_alone(
    stocked: Mirror, mirrors: Callable[[], Mirror], tmp_path: Path
) -> None:
    other = mirrors()
    other.files = stocked.files
    stocked.login = _basic("bob", "p@ss:word")
    stocked.absolute = f"http://{other.address}/files"
    settings = IndexSettings(
        index_url=stocked.index.replace("//", "//bob:p%40ss%3Aword@"),
        allow_hosts=[other.address],
    )
    source = open_source("pkg==1.0", index=settings)
    assert source.read("pkg/a.py") == b"A = 1\n"
    assert len(other.asked) > 0
    assert all("Authorization" not in request.headers for request in other.asked)
    kept = [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]
    assert len(kept) >= 3
    assert all(b"p@ss" not in p.read_bytes() for p in kept)
    assert all(b"p%40ss" not in p.read_bytes() for p in kept)


def test_credentials_come_from_netrc(stocked: Mirror, tmp_path: Path) -> None:
    stocked.login = _basic("alice", "word")
    with pytest.raises(AccessRefused, match=r"wants credentials.*netrc"):
        open_source("pkg==1.0")
    (tmp_path / "home").mkdir()
    file = tmp_path / "home" / ".netrc"
    file.write_text("machine 127.0.0.1 login alice password word\n")
    file.chmod(0o600)
    assert open_source("pkg==1.0").version == "1.0"
    file.write_text("machine 127.0.0.1 login alice pass word hidden\n")
    with pytest.raises(BadSource) as caught:
        open_source("pkg==1.0")
    assert "hidden" not in str(caught.value)


def test_an_earlier_index_is_not_overruled_by_a_later_one(
    stocked: Mirror,
    mirrors: Callable[[], Mirror],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    extra = mirrors()
    evil = {**PLAIN, "pkg/a.py": b"A = 'evil'\n"}
    extra.add(wheel(tmp_path / "x" / "pkg-1.0-py2.py3-none-any.whl", evil))
    extra.add(wheel(tmp_path / "x" / "pkg-3.0-py3-none-any.whl"))
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", extra.index)
    assert open_source("pkg==1.0").read("pkg/a.py") == b"A = 1\n"
    assert extra.asked == []
    assert open_source("pkg@latest").version == "3.0"
    assert open_source("pkg==3.0").version == "3.0"


def test_a_folder_as_an_index(stocked: Mirror, tmp_path: Path) -> None:
    page = tmp_path / "index" / "simple" / "pkg"
    page.mkdir(parents=True)
    pool = tmp_path / "index" / "files"
    pool.mkdir()
    shutil.copy(stocked.files["pkg-1.0-py3-none-any.whl"], pool)
    link = html.escape("../../files/pkg-1.0-py3-none-any.whl")
    (page / "index.html").write_text(f'<a href="{link}">pkg</a>')
    settings = IndexSettings(index_url=(tmp_path / "index" / "simple").as_uri())
    source = open_source("pkg==1.0", index=settings, offline=True)
    assert source.read("pkg/a.py") == b"A = 1\n"
    assert source.stats.requests == 0
    with pytest.raises(NoSuchRelease):
        open_source("other==1.0", index=settings)


def test_find_links_without_an_index(
    stocked: Mirror, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "wheels"
    folder.mkdir()
    for file in stocked.files.values():
        shutil.copy(file, folder)
    sdist(folder / "pkg-0.5.tar.gz")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    assert open_source("pkg@latest").read("pkg/a.py") == b"A = 1\n"
    assert open_source("pkg==0.5").read("pkg/sub/b.py") == PLAIN["pkg/sub/b.py"]
    assert stocked.asked == []


def test_a_page_that_is_a_bomb_is_refused(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ascend_shims.upstream.sources.index as module

    monkeypatch.setattr(module, "PAGE_BYTES", 1000)
    data = gzip.compress(b" " * 100_000)
    with pytest.raises(IndexUnreachable, match="larger than 1000"):
        module._gunzip(data, "the page of pkg")
    with pytest.raises(IndexUnreachable, match="damaged"):
        module._gunzip(b"nonsense", "the page of pkg")
    mirror.page = b"x" * 2000
    with pytest.raises(SourceUnavailable, match="more than the 1000 bytes"):
        open_source("pkg==1.0")


def test_a_page_without_a_length(
    stocked: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ascend_shims.upstream.sources.index as module

    stocked.chunked = True
    sources = Sources()
    assert sources.open("pkg==1.0").read("pkg/a.py") == b"A = 1\n"
    with monkeypatch.context() as patch:
        patch.setattr(module, "PAGE_BYTES", 300)
        with pytest.raises(IndexUnreachable, match="more than the 300 bytes"):
            sources.open("pkg==7")
    with pytest.raises(NoSuchRelease):
        sources.open("pkg==7")


def test_a_failing_index_is_an_answer_of_one_line(stocked: Mirror) -> None:
    stocked.statuses["/simple"] = 503
    with pytest.raises(IndexUnreachable, match=r"127\.0\.0\.1:\d+ failed .HTTP 503"):
        open_source("pkg==1.0")
    stocked.statuses["/simple"] = 418
    with pytest.raises(IndexUnreachable, match="HTTP 418"):
        open_source("pkg==1.0")
