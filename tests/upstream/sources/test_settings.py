"""Every option comes from where pip would take it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ascend_shims.upstream.sources import IndexSettings, settings
from ascend_shims.upstream.sources import pip_options as pip_options_module
from ascend_shims.upstream.sources.errors import BadSource, HostRefused
from ascend_shims.upstream.sources.pip_options import (
    configuration_files,
    default_index,
    pip_options,
)
from ascend_shims.upstream.sources.proxies import Proxies
from ascend_shims.upstream.sources.settings import Access, access_from
from ascend_shims.upstream.sources.urls import origin, shown


def _conf(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Where pip's files lie for an environment made of `tmp_path`."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    monkeypatch.setattr(pip_options_module, "_MACHINE", tmp_path / "etc" / "pip.conf")
    return {
        "global": tmp_path / "xdg" / "pip" / "pip.conf",
        "legacy": tmp_path / "home" / ".pip" / "pip.conf",
        "user": tmp_path / "home" / ".config" / "pip" / "pip.conf",
        "site": tmp_path / "venv" / "pip.conf",
        "chosen": tmp_path / "chosen.conf",
    }


def _environ(tmp_path: Path, **more: str) -> dict[str, str]:
    return {
        "HOME": str(tmp_path / "home"),
        "XDG_CONFIG_DIRS": str(tmp_path / "xdg"),
        **more,
    }


def test_files_override_each_other_in_pips_order(
    places: dict[str, Path], tmp_path: Path
) -> None:
    for number, path in enumerate(list(places.values())[:4]):
        _conf(path, f"[global]\nproxy = http://p{number}\n")
        assert pip_options(_environ(tmp_path))["proxy"] == f"http://p{number}"
    chosen = _conf(places["chosen"], "[global]\nproxy = http://chosen\n")
    environ = _environ(tmp_path, PIP_CONFIG_FILE=str(chosen))
    assert pip_options(environ)["proxy"] == "http://chosen"
    assert places["user"] not in configuration_files(environ)
    environ["PIP_PROXY"] = "http://variable"
    assert pip_options(environ)["proxy"] == "http://variable"
    environ["PIP_CONFIG_FILE"] = os.devnull
    assert configuration_files(environ) == ()
    assert pip_options(environ) == {
        "proxy": "http://variable",
        "config-file": os.devnull,
    }


def test_sections_and_spellings(places: dict[str, Path], tmp_path: Path) -> None:
    _conf(
        places["user"],
        """
[global]
Index_URL = https://a.invalid/simple
extra-index-url =
    https://b.invalid/simple
    https://c.invalid/simple
--timeout = 7
cert =
[install]
index-url = https://install.invalid/simple
[download]
default-timeout = 9
[freeze]
index-url = https://never.invalid/simple
""",
    )
    access = access_from(None, _environ(tmp_path))
    assert access.indexes == (
        "https://install.invalid/simple",
        "https://b.invalid/simple",
        "https://c.invalid/simple",
    )
    assert access.timeout == 9
    assert access.cert is None


def test_the_command_line_is_stronger(places: dict[str, Path], tmp_path: Path) -> None:
    cert = _conf(tmp_path / "bundle.pem", "")
    environ = _environ(
        tmp_path,
        PIP_INDEX_URL="https://a.invalid/simple",
        PIP_EXTRA_INDEX_URL="https://b.invalid/simple https://c.invalid/simple",
        PIP_TRUSTED_HOST="a.invalid b.invalid:8080",
        PIP_CERT=str(cert),
        PIP_CLIENT_CERT=str(cert),
        PIP_PROXY="http://proxy.invalid:3128",
        PIP_DEFAULT_TIMEOUT="4",
        PIP_FIND_LINKS="wheels https://d.invalid/x",
    )
    access = access_from(None, environ)
    assert access.indexes[0] == "https://a.invalid/simple"
    assert access.trusted_hosts == {"a.invalid", "b.invalid:8080"}
    assert access.find_links == ("wheels", "https://d.invalid/x")
    assert (access.cert, access.client_cert, access.timeout) == (cert, cert, 4)
    assert access.proxy == "http://proxy.invalid:3128"
    given = IndexSettings(
        index_url="https://x.invalid/simple",
        extra_index_urls=[],
        find_links=[],
        trusted_hosts=["y"],
        proxy="http://z.invalid",
        timeout=1,
    )
    access = access_from(given, environ)
    assert access.indexes == ("https://x.invalid/simple",)
    assert access.find_links == ()
    assert access.trusted_hosts == {"y"}
    assert (access.proxy, access.timeout) == ("http://z.invalid", 1)


@pytest.mark.parametrize("value", ["1", "true", "Yes", "on"])
def test_no_index(places: dict[str, Path], tmp_path: Path, value: str) -> None:
    environ = _environ(tmp_path, PIP_NO_INDEX=value)
    assert access_from(None, environ).indexes == ()
    assert access_from(IndexSettings(no_index=False), environ).indexes != ()


def test_the_default_index_brings_its_own_host_of_files(
    places: dict[str, Path], tmp_path: Path
) -> None:
    default = default_index()
    assert default is not None
    file = f"https://{default[1]}/packages/x.whl"
    access = access_from(None, _environ(tmp_path))
    assert access.indexes == (default[0],)
    access.check(file, "x.whl")
    with pytest.raises(HostRefused):
        access.check("https://elsewhere.invalid/x.whl", "x.whl")
    mirror = IndexSettings(index_url="https://mirror.invalid/simple")
    with pytest.raises(HostRefused, match="allow_hosts"):
        access_from(mirror, _environ(tmp_path)).check(file, "x.whl")


def test_no_pip_and_no_index_says_what_to_set(
    places: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "default_index", lambda: None)
    with pytest.raises(BadSource, match="set PIP_INDEX_URL"):
        access_from(None, _environ(tmp_path))


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("PIP_DEFAULT_TIMEOUT", "soon", "timeout is 'soon'"),
        ("PIP_CERT", "/no/such/bundle", "cert names /no/such/bundle"),
        ("PIP_CLIENT_CERT", "/no/such/pem", "client-cert names"),
    ],
)
def test_settings_that_make_no_sense(
    places: dict[str, Path], tmp_path: Path, name: str, value: str, match: str
) -> None:
    with pytest.raises(BadSource, match=match):
        access_from(None, _environ(tmp_path, **{name: value}))


def test_a_broken_file_is_named_and_not_quoted(
    places: dict[str, Path], tmp_path: Path
) -> None:
    _conf(places["user"], "index-url = https://bob:s3cret@x.invalid\n")
    with pytest.raises(BadSource, match=r"pip\.conf:1 is not") as caught:
        pip_options(_environ(tmp_path))
    assert "s3cret" not in str(caught.value)


_PROXIES = {
    "HTTPS_PROXY": "http://upper:1",
    "https_proxy": "http://lower:1",
    "HTTP_PROXY": "plain:2",
    "NO_PROXY": "localhost, .corp.invalid,10.0.0.0/8,other.invalid:8080,*.star.invalid",
}


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("https://a.invalid", "http://lower:1"),
        ("http://a.invalid", "http://plain:2"),
        ("https://localhost:9", None),
        ("https://x.corp.invalid", None),
        ("https://corp.invalid", None),
        ("https://notcorp.invalid", "http://lower:1"),
        ("https://10.1.2.3", None),
        ("https://11.1.2.3", "http://lower:1"),
        ("https://other.invalid:8080", None),
        ("https://other.invalid", "http://lower:1"),
        ("https://x.star.invalid", None),
    ],
)
def test_which_proxy(url: str, proxy: str | None) -> None:
    assert Proxies(None, _PROXIES).of(origin(url)) == proxy


def test_proxies_that_count_more_or_not() -> None:
    server = origin("http://a.invalid")
    assert Proxies("http://option", _PROXIES).of(server) == "http://option"
    assert Proxies(None, {**_PROXIES, "REQUEST_METHOD": "GET"}).of(server) is None
    assert Proxies(None, {"ALL_PROXY": "http://all"}).of(server) == "http://all"
    assert Proxies("http://option", {"NO_PROXY": "*"}).of(server) is None
    assert Proxies(None, {}).of(server) is None


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("https://u:p@host:1/simple?t=1#x", "https://host:1/simple"),
        ("https://u:p@p@host/", "https://host/"),
        ("u:p@host", "host"),
        ("https://host", "https://host"),
    ],
)
def test_addresses_are_shown_without_secrets(url: str, text: str) -> None:
    assert shown(url) == text


def test_a_trusted_host_is_one_server_when_it_names_a_port() -> None:
    access = Access(indexes=(), trusted_hosts=frozenset({"a", "b:8080"}), environ={})
    trusted = ["http://a", "https://a:9", "http://b:8080"]
    assert [access.trusts(origin(url)) for url in trusted] == [True] * 3
    assert not access.trusts(origin("http://b"))
