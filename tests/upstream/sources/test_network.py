"""Proxies, certificates, and networks that are not there."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

import pytest
import urllib3

from ascend_shims.upstream.source import SourceError
from ascend_shims.upstream.sources import IndexSettings, SourceUnavailable, open_source
from ascend_shims.upstream.sources.errors import (
    AccessRefused,
    BadSource,
    IndexUnreachable,
    NotCached,
)

from .conftest import Mirror, _Handler, served, wheel


@pytest.fixture
def stocked(mirror: Mirror, tmp_path: Path) -> Mirror:
    mirror.add(wheel(tmp_path / "pkg-1.0-py3-none-any.whl"))
    return mirror


@pytest.fixture
def proxy() -> Iterator[tuple[str, list[str]]]:
    """A proxy's address, and what it was asked: it relays http and tunnels."""
    seen: list[str] = []

    class Proxy(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            seen.append(f"GET {self.path}")
            asked = {"Range": r} if (r := self.headers.get("Range")) else {}
            direct = build_opener(ProxyHandler({}))
            with direct.open(Request(self.path, headers=asked)) as answer:
                self.send_response(answer.status)
                for name in ("Content-Type", "Content-Length", "Content-Range"):
                    if name in answer.headers:
                        self.send_header(name, answer.headers[name])
                self.end_headers()
                self.wfile.write(answer.read())

        def do_CONNECT(self) -> None:
            login = self.headers.get("Proxy-Authorization", "")
            seen.append(f"CONNECT {self.path} {login}".strip())
            host, _, port = self.path.partition(":")
            if host != "127.0.0.1":
                self.send_error(502)
                return
            self.send_response(200)
            self.end_headers()
            with socket.create_connection((host, int(port))) as far:
                back = threading.Thread(target=self._pump, args=(far,))
                back.start()
                while data := self.connection.recv(65536):
                    far.sendall(data)
                far.shutdown(socket.SHUT_WR)
                back.join()

        def _pump(self, far: socket.socket) -> None:
            while data := far.recv(65536):
                self.connection.sendall(data)

    with served(Proxy) as address:
        yield address, seen


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[tuple[Mirror, Path]]:
    """An index behind a certificate that only its own bundle vouches for."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs the openssl program to make a certificate")
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=x"),
            *("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(cert)),
        ],
        check=True,
        capture_output=True,
    )
    mirror = Mirror()
    handler = type("Handler", (_Handler,), {"mirror": mirror})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    mirror.address = f"127.0.0.1:{server.server_address[1]}"
    mirror.add(wheel(tmp_path / "pkg-1.0-py3-none-any.whl"))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield mirror, cert
    server.shutdown()
    server.server_close()


def test_https_goes_through_the_proxy_and_its_tunnel(
    secure: tuple[Mirror, Path],
    proxy: tuple[str, list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mirror, cert = secure
    address, seen = proxy
    url = f"https://{mirror.address}/simple"
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:word@{address}")
    settings = IndexSettings(index_url=url, cert=str(cert))
    assert open_source("pkg==1.0", index=settings).read("pkg/a.py") == b"A = 1\n"
    assert len(seen) > 0
    assert set(seen) == {f"CONNECT {mirror.address} Basic dXNlcjp3b3Jk"}
    count = len(seen)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("ASCEND_SHIMS_CACHE", "off")
    assert open_source("pkg==1.0", index=settings).read("pkg/a.py") == b"A = 1\n"
    assert len(seen) == count


def test_certificates(
    secure: tuple[Mirror, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror, cert = secure
    monkeypatch.setenv("PIP_INDEX_URL", f"https://{mirror.address}/simple")
    with pytest.raises(IndexUnreachable, match="certificate is not accepted"):
        open_source("pkg==1.0")
    assert mirror.asked == []
    monkeypatch.setenv("PIP_CERT", str(cert))
    assert open_source("pkg==1.0").version == "1.0"
    monkeypatch.delenv("PIP_CERT")
    monkeypatch.setenv("PIP_TRUSTED_HOST", "127.0.0.1")
    monkeypatch.setenv("ASCEND_SHIMS_CACHE", "off")
    assert open_source("pkg==1.0").version == "1.0"
    monkeypatch.setenv("PIP_CLIENT_CERT", str(mirror.files[next(iter(mirror.files))]))
    with pytest.raises(BadSource, match="no usable certificates"):
        open_source("pkg==1.0")


def test_plain_http_is_relayed_by_the_proxy(
    stocked: Mirror, proxy: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, seen = proxy
    monkeypatch.setenv("http_proxy", address)
    stocked.json = False
    source = open_source("pkg==1.0")
    assert source.read("pkg/a.py") == b"A = 1\n"
    assert seen[0] == f"GET {stocked.index}/pkg/"
    assert len(seen) == source.stats.requests


def test_a_proxy_that_lets_nothing_through_is_said_so(
    proxy: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, seen = proxy
    monkeypatch.setenv("PIP_PROXY", f"http://u:s3cret@{address}")
    settings = IndexSettings(index_url="https://mirror.invalid/simple")
    with pytest.raises(IndexUnreachable, match="the proxy did not let us") as caught:
        open_source("pkg==1.0", index=settings)
    assert len(seen) == 1
    assert "s3cret" not in str(caught.value)


def test_an_index_that_is_down_does_not_hide_the_next(
    stocked: Mirror, closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    down = f"http://127.0.0.1:{closed_port}/simple"
    monkeypatch.setenv("PIP_INDEX_URL", down)
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", stocked.index)
    source = open_source("pkg==1.0")
    assert source.version == "1.0"
    assert source.notes == (f"cannot reach 127.0.0.1:{closed_port}: no connection",)
    with pytest.raises(IndexUnreachable):
        open_source("pkg@latest")


def test_a_tunnel_that_wants_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_CONNECT(self) -> None:
            self.send_error(407)

    with served(Closed) as address:
        monkeypatch.setenv("HTTPS_PROXY", address)
        settings = IndexSettings(index_url="https://mirror.invalid/simple")
        with pytest.raises(AccessRefused, match="the proxy wants credentials"):
            open_source("pkg==1.0", index=settings)


def test_a_proxy_that_wants_credentials(stocked: Mirror) -> None:
    stocked.statuses["/simple"] = 407
    with pytest.raises(AccessRefused, match="the proxy wants credentials"):
        open_source("pkg==1.0")


SOON = 12
"""Seconds, on a busy machine: alone it is three at most, and 15 is what pip waits."""


def _timed(action: Callable[[], object], match: str) -> float:
    began = time.monotonic()
    with pytest.raises(SourceUnavailable, match=match) as caught:
        action()
    assert "\n" not in str(caught.value)
    return time.monotonic() - began


def test_nobody_listening(closed_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{closed_port}/simple")
    assert _timed(lambda: open_source("pkg==1.0"), "no connection") < SOON
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{closed_port}")
    assert _timed(lambda: open_source("pkg==1.0"), "cannot reach 127.0.0.1") < SOON


def test_a_network_that_swallows_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    # A listener with a full queue answers no further connection attempt, as a
    # firewall does that drops packets.
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        waiting = []
        for _ in range(4):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
            waiting.append(one)
        indexes = [f"http://127.0.0.1:{port}/{name}" for name in ("a", "b", "c")]
        monkeypatch.setenv("PIP_INDEX_URL", indexes[0])
        monkeypatch.setenv("PIP_EXTRA_INDEX_URL", " ".join(indexes[1:]))
        allowed: list[float] = []

        def connect(address: Any, timeout: float, **options: Any) -> socket.socket:
            allowed.append(timeout)
            return create_connection(address, timeout, **options)

        create_connection = urllib3.util.connection.create_connection
        monkeypatch.setattr(urllib3.util.connection, "create_connection", connect)
        try:
            assert _timed(lambda: open_source("pkg==1.0"), "no connection") < SOON
            # All together, and not one after the other.
            assert allowed
            assert sum(allowed) < 5
        finally:
            for one in waiting:
                one.close()


def test_a_resolver_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()

    def resolve(*_: object, **__: object) -> list[object]:
        asked.set()
        time.sleep(10 * SOON)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    settings = IndexSettings(index_url="https://mirror.invalid/simple")
    took = _timed(lambda: open_source("pkg==1.0", index=settings), "no address for")
    assert took < SOON
    assert asked.is_set()


def test_a_server_that_says_nothing(stocked: Mirror) -> None:
    stocked.slow = 2 * SOON
    settings = IndexSettings(timeout=0.3)
    took = _timed(lambda: open_source("pkg==1.0", index=settings), "said nothing")
    assert took < SOON


def test_what_was_read_once_needs_no_network(
    stocked: Mirror, closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_source("pkg==1.0")
    first.prefetch(["pkg/a.py", "pkg/sub/b.py"])
    assert first.stats.cached == 0
    cold = len(stocked.asked)
    for offline in (False, True):
        source = open_source("pkg==1.0", offline=offline)
        assert source.paths() == first.paths()
        assert source.read("pkg/a.py") == b"A = 1\n"
        assert (source.stats.requests, source.stats.bytes) == (0, 0)
        assert source.stats.cached == 3
    assert len(stocked.asked) == cold
    assert open_source("pkg@latest", offline=True).version == "1.0"
    with pytest.raises(SourceError, match="offline, and it is not in the cache"):
        open_source("pkg==1.0", offline=True).read("pkg/sub/__init__.py")


def test_offline_without_the_cache_is_one_line(stocked: Mirror) -> None:
    assert _timed(lambda: open_source("pkg==1.0", offline=True), "^offline") < SOON
    with pytest.raises(NotCached):
        open_source("pkg@latest", offline=True)
    assert stocked.asked == []


def test_the_newest_release_of_a_lost_index_is_the_newest_known(
    stocked: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_source("pkg@latest")
    stocked.statuses["/simple"] = 503
    later = time.time() + 7300
    monkeypatch.setattr(time, "time", lambda: later)
    source = open_source("pkg@latest")
    assert source.version == "1.0"
    assert source.notes == (
        f"the page of pkg: {stocked.address} failed (HTTP 503); going by what it "
        "offered 2 hours ago",
    )


def test_a_network_lost_on_the_way_is_an_error_of_the_file(stocked: Mirror) -> None:
    source = open_source("pkg==1.0")
    # Small enough to have come whole with its directory; what is here stays.
    assert source.read("pkg/a.py") == b"A = 1\n"
    stocked.statuses["/files"] = 500
    big = open_source("pkg==1.0")
    with pytest.raises(SourceError, match=r"pkg/sub/b\.py of pkg 1\.0: .*HTTP 500"):
        big.read("pkg/sub/b.py")
    assert big.read("pkg/a.py") == b"A = 1\n"
