"""Which index is asked, how it is reached, and which other hosts are allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import BadSource, HostRefused
from .pip_options import default_index, pip_options
from .urls import Origin, origin, shown

__all__ = ["Access", "IndexSettings", "access_from"]

_TRUE = ("1", "true", "yes", "on", "y", "t")
_TIMEOUT_SECONDS = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSettings:
    """What the command line says of the index; None: what pip would use."""

    index_url: str | None = None
    extra_index_urls: Sequence[str] | None = None
    find_links: Sequence[str] | None = None
    no_index: bool | None = None
    cert: str | None = None
    client_cert: str | None = None
    proxy: str | None = None
    trusted_hosts: Sequence[str] | None = None
    timeout: float | None = None
    """Seconds to wait for a server that has accepted the connection."""
    allow_hosts: Sequence[str] = ()
    """Further hosts, `name` or `name:port`, that an index may send us to.
    `ASCEND_SHIMS_ALLOW_HOSTS` adds to them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Settled: everything that reading from an index depends on."""

    indexes: tuple[str, ...]
    """Addresses of simple indexes, first asked first, credentials included."""
    find_links: tuple[str, ...] = ()
    cert: Path | None = None
    client_cert: Path | None = None
    proxy: str | None = None
    trusted_hosts: frozenset[str] = frozenset()
    timeout: float = _TIMEOUT_SECONDS
    allow_hosts: frozenset[str] = frozenset()
    environ: Mapping[str, str]
    """For proxies and netrc."""

    def trusts(self, server: Origin) -> bool:
        """Whether its certificate goes unchecked and plain http is accepted."""
        return bool({server.host, f"{server.host}:{server.port}"} & self.trusted_hosts)

    def _configured(self) -> set[Origin]:
        pages = (link for link in self.find_links if "://" in link)
        return {origin(url) for url in (*self.indexes, *pages)}

    def check(self, url: str, because: str) -> None:
        """Raise `HostRefused` unless someone configured the server of `url`.

        Args:
            because: who sends us there, for the message.
        """
        server = origin(url)
        if server.scheme == "file":
            raise HostRefused(
                f"{because} points into this machine, at {shown(url)}; refused"
            )
        if server.scheme == "http" and not (server.loopback or self.trusts(server)):
            raise HostRefused(
                f"{because} uses http://{server}, which anybody on the way can "
                f"change; refused. To accept that: trusted-host {server}"
            )
        named = {server.host, f"{server.host}:{server.port}"}
        if server in self._configured() or named & self.allow_hosts:
            return
        raise HostRefused(
            f"{because} is served from {server}, which is not a configured index; "
            f"refused. To accept that: allow_hosts {server} "
            f"(ASCEND_SHIMS_ALLOW_HOSTS={server})"
        )


def _words(text: str | None) -> tuple[str, ...]:
    return tuple((text or "").split())


def _file(text: str | None, option: str) -> Path | None:
    if not text:
        return None
    path = Path(text).expanduser()
    if not path.exists():
        raise BadSource(f"pip's option {option} names {path}, which does not exist")
    return path


def _seconds(text: str | None) -> float:
    if not text:
        return _TIMEOUT_SECONDS
    try:
        return max(float(text), 0.1)
    except ValueError:
        raise BadSource(f"pip's option timeout is {text!r}, not seconds") from None


def access_from(given: IndexSettings | None, environ: Mapping[str, str]) -> Access:
    """The command line's settings, then pip's, then pip's default index.

    Raises:
        BadSource: a setting makes no sense, or there is no index at all.
    """
    given = given or IndexSettings()
    pip = pip_options(environ)
    find_links = given.find_links
    if find_links is None:
        find_links = _words(pip.get("find-links"))
    no_index = given.no_index
    if no_index is None:
        no_index = pip.get("no-index", "").lower() in _TRUE
    extra = given.extra_index_urls
    if extra is None:
        extra = _words(pip.get("extra-index-url"))
    allow = {host.lower() for host in given.allow_hosts}
    allow.update(
        environ.get("ASCEND_SHIMS_ALLOW_HOSTS", "").lower().replace(",", " ").split()
    )
    indexes: tuple[str, ...] = ()
    if not no_index:
        default = default_index()
        first = given.index_url or pip.get("index-url") or (default and default[0])
        if not first:
            raise BadSource(
                "no package index is configured, and pip, whose default would be "
                "used, is not installed here; set PIP_INDEX_URL"
            )
        indexes = (first, *extra)
        if default and first.rstrip("/") == default[0].rstrip("/"):
            allow.add(default[1])
    trusted = given.trusted_hosts
    if trusted is None:
        trusted = _words(pip.get("trusted-host"))
    cert = (
        given.cert
        or pip.get("cert")
        or environ.get("REQUESTS_CA_BUNDLE")
        or environ.get("CURL_CA_BUNDLE")
    )
    return Access(
        indexes=indexes,
        find_links=tuple(find_links),
        cert=_file(cert, "cert"),
        client_cert=_file(given.client_cert or pip.get("client-cert"), "client-cert"),
        proxy=given.proxy or pip.get("proxy"),
        trusted_hosts=frozenset(host.lower() for host in trusted),
        timeout=given.timeout or _seconds(pip.get("timeout")),
        allow_hosts=frozenset(allow),
        environ=environ,
    )
