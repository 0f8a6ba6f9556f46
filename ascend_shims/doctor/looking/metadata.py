"""Every distribution on the import path, those that hide each other included."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Collection, Iterator
from pathlib import Path
from urllib.parse import unquote, urlparse

from ..installed import EntryPoint, Metadata

__all__ = ["read_installed"]


def read_installed(packages: Collection[str]) -> tuple[Metadata, ...]:
    """In the order in which vLLM's own search for plugins comes upon them.

    `packages` are those of which it shall be told who has brought them.
    """
    found = (_read(one, packages) for one in importlib.metadata.distributions())
    return tuple(one for one in found if one is not None)


def _read(
    found: importlib.metadata.Distribution, packages: Collection[str]
) -> Metadata | None:
    # Not `found.metadata`: parsing a whole message for each takes a tenth of a second.
    stated = dict(_headers(_text(found, "METADATA") or _text(found, "PKG-INFO")))
    name = stated.get("name", ("",))[0]
    if not name:
        return None
    checkout = _checkout(_text(found, "direct_url.json"))
    return Metadata(
        name=name,
        version=stated.get("version", ("",))[0],
        folder=str(getattr(found, "_path", found.locate_file(""))),
        editable=checkout,
        entries=tuple(_entries(_text(found, "entry_points.txt"))),
        requires=stated.get("requires-dist", ()),
        claims=frozenset(p for p in packages if _claims(found, p, checkout)),
    )


def _text(found: importlib.metadata.Distribution, name: str) -> str:
    try:
        return found.read_text(name) or ""
    except (OSError, UnicodeDecodeError):
        return ""


def _headers(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    stated: dict[str, list[str]] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if not line:
            break
        if colon and not line[0].isspace():
            stated.setdefault(key.lower(), []).append(value.strip())
    for key, values in stated.items():
        yield key, tuple(values)


def _entries(text: str) -> Iterator[EntryPoint]:
    group = ""
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1].strip()
        elif "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield EntryPoint(group, name.strip(), value.strip())


def _checkout(text: str) -> str | None:
    try:
        url = json.loads(text or "{}")
        if url["dir_info"]["editable"]:
            return unquote(urlparse(url["url"]).path)
    except (ValueError, KeyError, TypeError):
        pass
    return None


def _claims(
    found: importlib.metadata.Distribution, package: str, checkout: str | None
) -> bool:
    if checkout is not None:
        homes = (Path(checkout, package), Path(checkout, "src", package))
        named = package in _text(found, "top_level.txt").split()
        return named or any((home / "__init__.py").is_file() for home in homes)
    record = _text(found, "RECORD")
    if record:
        return f"\n{package}/__init__.py," in f"\n{record}"
    return package in _text(found, "top_level.txt").split()
