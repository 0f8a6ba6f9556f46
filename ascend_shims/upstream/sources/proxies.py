"""Which proxy a server is reached through."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from .urls import Origin

__all__ = ["Proxies"]


class Proxies:
    """The proxy of pip's option, else of the usual variables, and NO_PROXY.

    Args:
        chosen: the option's value; it stands for every scheme.
    """

    def __init__(self, chosen: str | None, environ: Mapping[str, str]) -> None:
        # The lower-case name of a variable counts more, and only it for http: in
        # a CGI process HTTP_PROXY is a header that the remote side sends.
        found: dict[str, str] = {}
        for name, value in sorted(environ.items()):
            lower = name.lower()
            if not lower.endswith("_proxy") or not value:
                continue
            if name == "HTTP_PROXY" and "REQUEST_METHOD" in environ:
                continue
            found[lower.removesuffix("_proxy")] = value.strip()
        self._chosen = chosen
        self._found = found
        self._direct = found.get("no", "").lower().replace(",", " ").split()

    def of(self, server: Origin) -> str | None:
        """Its address, credentials included; None: reached directly."""
        if any(_covers(entry, server) for entry in self._direct):
            return None
        found = self._chosen or self._found.get(server.scheme) or self._found.get("all")
        if not found:
            return None
        return found if "://" in found else f"http://{found}"


def _covers(entry: str, server: Origin) -> bool:
    """Whether an entry of NO_PROXY means this server."""
    if entry == "*":
        return True
    if entry in (server.host, f"{server.host}:{server.port}"):
        return True
    try:
        return ipaddress.ip_address(server.host) in ipaddress.ip_network(
            entry, strict=False
        )
    except ValueError:
        pass
    name, _, port = entry.partition(":")
    if port and port != str(server.port):
        return False
    plain = name.lstrip("*").lstrip(".")
    return bool(plain) and f".{server.host}".endswith(f".{plain}")
