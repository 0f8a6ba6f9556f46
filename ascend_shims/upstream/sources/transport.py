"""HTTP: each request goes where somebody allowed it to go, once, in bounded time.

urllib3 rather than requests: redirects have to be checked before they are
followed, and bodies counted as they come.
"""

from __future__ import annotations

import contextlib
import netrc
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urljoin

import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    InsecureRequestWarning,
    NewConnectionError,
    ProtocolError,
    ProxyError,
    ReadTimeoutError,
    SSLError,
)

from .errors import AccessRefused, BadSource, IndexUnreachable
from .meter import Meter
from .proxies import Proxies
from .settings import Access
from .urls import Origin, bare, credentials, origin, shown

__all__ = ["CONNECTIONS", "Transport"]

CONNECTIONS = 8
"""At once, to one server."""

_REDIRECTS = 5
_MOVED = (301, 302, 303, 307, 308)
_PATIENCE_SECONDS = 3.0
"""Spent in all on servers that do not even accept a connection."""

_PROXY_LOGIN = (
    "the proxy wants credentials (HTTP 407); they belong into its address, "
    "http://USER:PASSWORD@PROXY:PORT"
)


def _reason(error: Exception, via: str) -> str:
    if isinstance(error, ProxyError):
        return "the proxy did not let us through"
    if isinstance(error, SSLError):
        return (
            f"its certificate is not accepted ({error}); pip's option cert names "
            "another bundle"
        )
    if isinstance(error, NewConnectionError | ConnectTimeoutError):
        return f"no connection{via}"
    if isinstance(error, ReadTimeoutError):
        return "it accepted the request and then said nothing"
    return "the connection broke"


def _netrc(environ: Mapping[str, str]) -> netrc.netrc | None:
    home = environ.get("HOME", "")
    file = environ.get("NETRC") or (f"{home}/.netrc" if home else "")
    if not file or not Path(file).is_file():
        return None
    try:
        return netrc.netrc(file)
    except (OSError, ValueError, netrc.NetrcParseError) as error:
        # The parser's message may quote the file.
        raise BadSource(f"cannot read {file} ({type(error).__name__})") from None


class Transport:
    """Connections to the configured servers. Safe to use from many threads."""

    def __init__(self, access: Access, meter: Meter) -> None:
        self._access = access
        self._meter = meter
        # One set for all releases, so that their connections are used again.
        self.workers = ThreadPoolExecutor(CONNECTIONS, "shims-fetch")
        """Threads for requests that can be made side by side."""
        self._lock = threading.Lock()
        self._managers: dict[tuple[str | None, bool, bool], urllib3.PoolManager] = {}
        self._proxies = Proxies(access.proxy, access.environ)
        self._netrc = _netrc(access.environ)
        self._patience = _PATIENCE_SECONDS
        self._seconds: dict[Origin, float] = {}
        self._logins = {
            origin(url): found
            for url in (*access.indexes, *(u for u in access.find_links if "://" in u))
            if (found := credentials(url))
        }

    def _context(self, *, checked: bool) -> ssl.SSLContext:
        cert = self._access.cert
        try:
            context = ssl.create_default_context(
                cafile=str(cert) if cert and cert.is_file() else None,
                capath=str(cert) if cert and cert.is_dir() else None,
            )
            if self._access.client_cert:
                context.load_cert_chain(str(self._access.client_cert))
        except OSError as error:
            raise BadSource(
                f"pip's options cert and client-cert name no usable "
                f"certificates: {error}"
            ) from error
        if not checked:
            # The user decided it; a warning for each request tells nothing new.
            urllib3.disable_warnings(InsecureRequestWarning)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def _manager(self, server: Origin) -> urllib3.PoolManager:
        proxy = self._proxies.of(server)
        # Reading a bundle of certificates takes longer than a local request.
        secure = server.scheme == "https" or (proxy or "").startswith("https:")
        key = (proxy, secure, self._access.trusts(server))
        with self._lock:
            if key not in self._managers:
                self._managers[key] = self._new_manager(*key)
            return self._managers[key]

    def _new_manager(
        self, proxy: str | None, secure: bool, trusted: bool
    ) -> urllib3.PoolManager:
        context = self._context(checked=not trusted) if secure else None
        if proxy is None:
            return urllib3.PoolManager(maxsize=2 * CONNECTIONS, ssl_context=context)
        login = credentials(proxy)
        headers = (
            urllib3.make_headers(proxy_basic_auth=":".join(login)) if login else None
        )
        return urllib3.ProxyManager(
            bare(proxy),
            maxsize=2 * CONNECTIONS,
            proxy_headers=headers,
            ssl_context=context,
            proxy_ssl_context=context,
        )

    def _login(self, server: Origin) -> tuple[str, str] | None:
        found = self._logins.get(server)
        if found or self._netrc is None:
            return found
        entry = self._netrc.authenticators(server.host)
        return (entry[0] or "", entry[2] or "") if entry else None

    def _hop(self, server: Origin) -> Origin:
        """Whom we connect to."""
        proxy = self._proxies.of(server)
        return origin(proxy) if proxy else server

    def _connect_seconds(self, server: Origin) -> float:
        """How long connecting may take; resolves the name first.

        A resolver that does not answer cannot be interrupted, so it is asked in
        a thread that may be left behind.
        """
        hop = self._hop(server)
        with self._lock:
            known, patience = self._seconds.get(hop), max(self._patience, 0.25)
        if known:
            return known
        addresses: list[object] = []

        def resolve() -> None:
            with contextlib.suppress(OSError, UnicodeError):
                addresses.extend(
                    socket.getaddrinfo(hop.host, hop.port, type=socket.SOCK_STREAM)
                )

        began = time.monotonic()
        thread = threading.Thread(target=resolve, name="shims-resolve", daemon=True)
        thread.start()
        thread.join(patience)
        left = patience - (time.monotonic() - began)
        if not addresses:
            with self._lock:
                self._patience = min(self._patience, left)
            raise IndexUnreachable(f"cannot reach {server}: no address for {hop.host}")
        return max(left, 0.25) / len(addresses)

    def _failure(
        self, server: Origin, error: Exception, seconds: float
    ) -> AccessRefused | IndexUnreachable:
        if isinstance(error, NewConnectionError | ConnectTimeoutError):
            with self._lock:
                self._patience -= seconds
        # A refused tunnel has no response of its own, only this text.
        if isinstance(error, ProxyError) and " 407 " in f"{error.original_error} ":
            return AccessRefused(_PROXY_LOGIN)
        hop = self._hop(server)
        via = f" through the proxy {hop}" if hop != server else ""
        return IndexUnreachable(f"cannot reach {server}: {_reason(error, via)}")

    def _send(self, url: str, headers: Mapping[str, str]) -> urllib3.BaseHTTPResponse:
        server = origin(url)
        manager = self._manager(server)
        connect = self._connect_seconds(server)
        timeout = urllib3.Timeout(connect=connect, read=self._access.timeout)
        login = self._login(server)
        sent = {"Accept-Encoding": "identity", "User-Agent": "ascend-shims", **headers}
        if login:
            sent.update(urllib3.make_headers(basic_auth=":".join(login)))

        def ask() -> urllib3.BaseHTTPResponse:
            return manager.request(
                "GET",
                bare(url),
                headers=sent,
                redirect=False,
                retries=False,
                preload_content=False,
                decode_content=False,
                timeout=timeout,
            )

        began = time.monotonic()
        try:
            try:
                response = ask()
            except ProtocolError:
                # A kept connection that the server closed meanwhile looks so.
                response = ask()
        except (HTTPError, OSError, ValueError) as error:
            took = time.monotonic() - began
            raise self._failure(server, error, took) from None
        with self._lock:
            self._seconds[self._hop(server)] = connect
        self._meter.count(requests=1)
        return response

    @contextlib.contextmanager
    def get(
        self, url: str, because: str, headers: Mapping[str, str] | None = None
    ) -> Iterator[tuple[urllib3.BaseHTTPResponse, str]]:
        """The response and the address that gave it, redirects followed.

        An unread rest of the body is dropped with its connection.

        Args:
            because: what is fetched, for messages: `the page of vllm`.

        Raises:
            HostRefused: the address, or a redirect, is on a host of nobody's choice.
            AccessRefused: 401, 403 or 407.
            IndexUnreachable: no answer, or a server's fault (5xx).
        """
        for _ in range(_REDIRECTS + 1):
            self._access.check(url, because)
            response = self._send(url, headers or {})
            if response.status not in _MOVED:
                break
            target = response.headers.get("Location") or ""
            response.close()
            url = urljoin(bare(url), target)
        else:
            raise IndexUnreachable(f"{because}: {shown(url)} redirects for ever")
        try:
            self._judge(response, url, because)
            yield response, bare(url)
        finally:
            if response.closed or response.length_remaining == 0:
                response.release_conn()
            else:
                response.close()

    def _judge(
        self, response: urllib3.BaseHTTPResponse, url: str, because: str
    ) -> None:
        server = origin(url)
        if response.status in (401, 403):
            given = "does not accept" if self._login(server) else "wants"
            raise AccessRefused(
                f"{because}: {server} {given} credentials "
                f"(HTTP {response.status}); they belong into the index's address, "
                "https://USER:PASSWORD@HOST/…, or into ~/.netrc"
            )
        if response.status == 407:
            raise AccessRefused(_PROXY_LOGIN)
        if response.status >= 500:
            raise IndexUnreachable(
                f"{because}: {server} failed (HTTP {response.status})"
            )

    def body(self, response: urllib3.BaseHTTPResponse, limit: int) -> Iterator[bytes]:
        """The body as it comes, at most `limit` bytes of it.

        Raises:
            IndexUnreachable: it breaks off, or is longer.
        """
        received = 0
        try:
            while chunk := response.read(1 << 16):
                received += len(chunk)
                self._meter.count(received=len(chunk))
                if received > limit:
                    raise IndexUnreachable(
                        f"a server sent more than the {limit} bytes agreed on"
                    )
                yield chunk
        except (HTTPError, OSError) as error:
            reason = _reason(error, "")
            raise IndexUnreachable(f"an answer broke off: {reason}") from None
