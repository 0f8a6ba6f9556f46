"""Addresses: which server they mean, and how they may be shown."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from .errors import BadSource

__all__ = ["Origin", "bare", "credentials", "file_path", "origin", "shown", "split"]

_PORTS = {"http": 80, "https": 443}


class Origin(NamedTuple):
    """A server. `file` has no host and port 0."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        usual = self.port in (0, _PORTS.get(self.scheme))
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if usual else f"{host}:{self.port}"

    @property
    def loopback(self) -> bool:
        return self.host in ("localhost", "::1") or self.host.startswith("127.")


def split(url: str) -> SplitResult:
    """Parsed. Raises `BadSource` for what is no http, https or file address."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise BadSource(f"{shown(url)} is not an address") from None
    named = parts.scheme in _PORTS and parts.hostname and port != 0
    if not named and parts.scheme != "file":
        raise BadSource(f"{shown(url)} is not an https://, http:// or file:// address")
    return parts


def origin(url: str) -> Origin:
    parts = split(url)
    if parts.scheme == "file":
        return Origin("file", "", 0)
    port = parts.port or _PORTS[parts.scheme]
    return Origin(parts.scheme, (parts.hostname or "").lower(), port)


def bare(url: str) -> str:
    """Without user, password and fragment: what is sent, stored and compared."""
    parts = split(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, parts.query, ""))


def credentials(url: str) -> tuple[str, str] | None:
    parts = split(url)
    if parts.username is None and parts.password is None:
        return None
    return unquote(parts.username or ""), unquote(parts.password or "")


def shown(url: str) -> str:
    """For messages: no user, no password, no query (it may hold a token).

    Never raises, whatever the text is.
    """
    text = url.partition("#")[0].partition("?")[0]
    scheme, mark, rest = text.partition("://")
    if not mark:
        return text.rpartition("@")[2]
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def file_path(url: str) -> str:
    """The path of a `file://` address."""
    return unquote(split(url).path)
