"""An index on the loopback interface, with every habit that real ones have."""

from __future__ import annotations

import contextlib
import hashlib
import html
import io
import json
import os
import re
import socket
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

PLAIN = {
    "pkg/__init__.py": b"",
    "pkg/a.py": b"A = 1\n",
    "pkg/sub/__init__.py": b"",
    "pkg/sub/b.py": b"def b(x):\n    return x\n",
}


def wheel(path: Path, files: Mapping[str, bytes] = PLAIN, *, before: int = 0) -> Path:
    """A wheel; `before` bytes of hole lie in front of its first member."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        stream.truncate(before)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        archive.writestr("pkg-1.0.dist-info/METADATA", "Name: pkg\n")
    return path


def sdist(path: Path, files: Mapping[str, bytes | tarfile.TarInfo] = PLAIN) -> Path:
    """An sdist; a value that is a `TarInfo` is added as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    top = path.name.removesuffix(".tar.gz")
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            if isinstance(data, tarfile.TarInfo):
                archive.addfile(data)
                continue
            info = tarfile.TarInfo(f"{top}/{name}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]


@dataclass
class Mirror:
    """What the server has, how it behaves, and what it was asked."""

    address: str = ""
    files: dict[str, Path] = field(default_factory=dict)
    page: bytes | None = None
    """Instead of the generated page."""
    json: bool = True
    sizes: bool = True
    hashes: bool = True
    absolute: str = ""
    """Where the page's links begin; empty: relative links."""
    yanked: set[str] = field(default_factory=set)
    ranges: str = "yes"
    """yes, ignored, wrong, short, liar (another total), late (not at first)."""
    statuses: dict[str, int] = field(default_factory=dict)
    """By the beginning of the path."""
    redirects: dict[str, str] = field(default_factory=dict)
    login: str = ""
    """The Authorization header that is wanted."""
    chunked: bool = False
    """Pages come without a length."""
    slow: float = 0.0
    broken: int = 0
    """So many whole downloads break off in the middle."""
    asked: list[Request] = field(default_factory=list)
    bodies: list[int] = field(default_factory=list)
    """How many bytes each answer has, noted before it is sent."""

    @property
    def index(self) -> str:
        return f"http://{self.address}/simple"

    @property
    def sent(self) -> int:
        return sum(self.bodies)

    def add(self, file: Path) -> Path:
        self.files[file.name] = file
        return file

    def got(self, beginning: str) -> list[Request]:
        return [r for r in self.asked if r.path.startswith(beginning)]

    def _entries(self) -> list[dict[str, object]]:
        entries = []
        for name, file in self.files.items():
            hashes = {}
            if self.hashes:
                hashes["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
            entry: dict[str, object] = {
                "filename": name,
                "url": f"{self.absolute or '../../files'}/{name}",
                "hashes": hashes,
                "yanked": name in self.yanked,
                "requires-python": ">=99",
            }
            if self.sizes:
                entry["size"] = file.stat().st_size
            entries.append(entry)
        return entries

    def body(self) -> tuple[bytes, str]:
        if self.page is not None:
            return self.page, "text/html"
        if self.json:
            page = {"meta": {"api-version": "1.0"}, "files": self._entries()}
            return json.dumps(page).encode(), "application/vnd.pypi.simple.v1+json"
        lines = ["<!DOCTYPE html><html><body>"]
        for entry in self._entries():
            url = str(entry["url"])
            for algorithm, digest in dict(entry["hashes"]).items():  # type: ignore[call-overload]
                url += f"#{algorithm}={digest}"
            yanked = ' data-yanked="bad"' if entry["yanked"] else ""
            lines.append(
                f'<a href="{html.escape(url)}" data-requires-python="&gt;=99"{yanked}>'
                f"{entry['filename']}</a>"
            )
        return "\n".join(lines).encode(), "text/html"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    mirror: Mirror

    def log_message(self, *_: object) -> None:
        pass

    def _answer(
        self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> None:
        self.mirror.bodies.append(len(body))
        self.send_response(status)
        for name, value in {
            "Content-Length": str(len(body)),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def _chunks(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with contextlib.suppress(OSError):
            for at in range(0, len(body), 100):
                part = body[at : at + 100]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.write(b"0\r\n\r\n")

    def do_GET(self) -> None:
        mirror = self.mirror
        path = unquote(urlsplit(self.path).path)
        mirror.asked.append(Request("GET", self.path, dict(self.headers)))
        time.sleep(mirror.slow)
        for beginning, status in mirror.statuses.items():
            if path.startswith(beginning):
                return self._answer(status)
        if path in mirror.redirects:
            return self._answer(302, headers={"Location": mirror.redirects[path]})
        if mirror.login and self.headers.get("Authorization") != mirror.login:
            return self._answer(401)
        if path == "/simple/pkg/":
            body, kind = mirror.body()
            if mirror.chunked:
                return self._chunks(body, kind)
            return self._answer(200, body, {"Content-Type": kind})
        file = mirror.files.get(path.removeprefix("/files/"))
        if file is None:
            return self._answer(404)
        return self._file(file)

    def _file(self, file: Path) -> None:
        mirror = self.mirror
        size = file.stat().st_size
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        first = len(mirror.got("/files/")) == 1
        if found is None or mirror.ranges == "ignored":
            if mirror.broken:
                mirror.broken -= 1
                return self._broken(file, size)
            return self._answer(200, file.read_bytes())
        if found[1]:
            start, last = int(found[1]), int(found[2] or size - 1)
        else:
            start, last = max(0, size - int(found[2])), size - 1
        if start >= size or last >= size:
            return self._answer(416)
        with file.open("rb") as stream:
            stream.seek(start)
            data = stream.read(last - start + 1)
        total = size
        if mirror.ranges == "wrong" and not first:
            start, last = start + 1, last + 1
        if mirror.ranges == "liar" and not first:
            total += 1
        headers = {"Content-Range": f"bytes {start}-{last}/{total}"}
        if mirror.ranges == "short" and not first:
            data = data[: len(data) // 2]
        return self._answer(206, data, headers)

    def _broken(self, file: Path, size: int) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.send_header("Accept-Ranges", "bytes")
        self.end_headers()
        self.wfile.write(file.read_bytes()[: size // 2])
        self.close_connection = True


@contextlib.contextmanager
def served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """`host:port` of a server with that handler."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def mirrors() -> Iterator[Callable[[], Mirror]]:
    with contextlib.ExitStack() as stack:

        def new() -> Mirror:
            mirror = Mirror()
            handler = type("Handler", (_Handler,), {"mirror": mirror})
            mirror.address = stack.enter_context(served(handler))
            return mirror

        yield new


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No setting of this machine, an empty home, and a cache of our own."""
    for name in list(os.environ):
        if (
            name.startswith(("PIP_", "ASCEND_SHIMS", "XDG_"))
            or name.lower().endswith("_proxy")
            or name in ("NETRC", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
        ):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("ASCEND_SHIMS_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def mirror(mirrors: Callable[[], Mirror], monkeypatch: pytest.MonkeyPatch) -> Mirror:
    """The configured index."""
    found = mirrors()
    monkeypatch.setenv("PIP_INDEX_URL", found.index)
    return found


@pytest.fixture
def closed_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
