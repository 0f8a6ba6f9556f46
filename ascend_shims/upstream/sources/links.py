"""An index's page about a project, as the files it offers.

Both forms of the simple API: JSON (PEP 691) and HTML (PEP 503). Own parsing
because the usual library for it loads pydantic and an HTML tree builder, which
takes a fifth of the time that a whole check may take.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import msgspec
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from .errors import BadSource, IndexUnreachable
from .urls import bare

__all__ = ["ACCEPT", "Link", "name_and_version", "parse_page"]

ACCEPT = (
    "application/vnd.pypi.simple.v1+json, "
    "application/vnd.pypi.simple.v1+html; q=0.1, text/html; q=0.01"
)
_SDISTS = (".tar.gz", ".zip", ".tar.bz2", ".tar.xz", ".tgz")


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """One file that an index offers."""

    filename: str
    url: str
    """Absolute, without credentials."""
    version: str
    hash: str = ""
    """`sha256=…`; empty where the index gives none that we know."""
    size: int | None = None
    yanked: bool = False
    index: str = ""
    """The index that offers it, without credentials."""

    @property
    def wheel(self) -> bool:
        return self.filename.endswith(".whl")


def name_and_version(filename: str) -> tuple[str, Version] | None:
    """Normalised project and version of a wheel's or sdist's name."""
    try:
        if filename.endswith(".whl"):
            return parse_wheel_filename(filename)[:2]
        for ending in _SDISTS:
            if filename.endswith(ending):
                return parse_sdist_filename(filename[: -len(ending)] + ".tar.gz")
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return None
    return None


def _link(
    name: str,
    index: str,
    url: str,
    filename: str,
    hashes: dict[str, Any],
    *,
    size: object = None,
    yanked: bool = False,
) -> Link | None:
    known = name_and_version(filename)
    if known is None or known[0] != name or "/" in filename:
        return None
    try:
        address = bare(url)
    except BadSource:
        return None
    digest = hashes.get("sha256")
    return Link(
        filename=filename,
        url=address,
        version=str(known[1]),
        hash=f"sha256={digest.lower()}" if isinstance(digest, str) else "",
        size=size if type(size) is int and size >= 0 else None,
        yanked=yanked,
        index=index,
    )


class _Anchors(HTMLParser):
    """Collects addresses. Scripts and whatever else a page has stay text."""

    def __init__(self) -> None:
        super().__init__()
        self.base: str | None = None
        self.found: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        address = values.get("href")
        if not address:
            return
        if tag == "base" and self.base is None:
            self.base = address
        elif tag == "a":
            self.found.append((address, "data-yanked" in values))


def _from_html(name: str, index: str, url: str, body: bytes) -> Iterator[Link | None]:
    parser = _Anchors()
    parser.feed(body.decode("utf-8", errors="replace"))
    parser.close()
    for address, yanked in parser.found:
        try:
            joined, fragment = urldefrag(
                urljoin(urljoin(url, parser.base or ""), address)
            )
            filename = unquote(urlsplit(joined).path.rpartition("/")[2])
        except ValueError:
            continue
        algorithm, _, digest = fragment.partition("=")
        yield _link(name, index, joined, filename, {algorithm: digest}, yanked=yanked)


def _from_json(name: str, index: str, url: str, body: bytes) -> Iterator[Link | None]:
    page = msgspec.json.decode(body)
    files = page.get("files") if isinstance(page, dict) else None
    if not isinstance(files, list):
        raise msgspec.DecodeError("no list of files")
    for file in files:
        if not isinstance(file, dict):
            continue
        address, filename = file.get("url"), file.get("filename")
        hashes = file.get("hashes")
        if not isinstance(address, str) or not isinstance(filename, str):
            continue
        try:
            joined = urljoin(url, address)
        except ValueError:
            continue
        yield _link(
            name,
            index,
            joined,
            filename,
            hashes if isinstance(hashes, dict) else {},
            size=file.get("size"),
            # The reason may be an empty string, which still means yanked.
            yanked=file.get("yanked", False) is not False,
        )


def parse_page(
    project: str, index: str, url: str, content_type: str, body: bytes
) -> tuple[Link, ...]:
    """The files of `project` that a page offers, in the page's order.

    Args:
        index: the index's address, without credentials.
        url: the page's own address, to which its links are relative.

    Raises:
        IndexUnreachable: the page is not an index page.
    """
    name = canonicalize_name(project)
    kind = content_type.partition(";")[0].strip().lower()
    found: Iterable[Link | None]
    if kind.endswith("+json") or kind == "application/json":
        try:
            found = list(_from_json(name, index, url, body))
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            raise IndexUnreachable(
                f"{index} answers for {project} with something that is no index page"
            ) from None
    else:
        found = _from_html(name, index, url, body)
    unique = {link.filename: link for link in found if link is not None}
    return tuple(unique.values())
