"""Our own registry as it was when it was checked last.

Reading YAML and checking what it says takes 10 ms and 4 MB of each process that applies
something, for a file that nobody has changed since. So what was found is kept beside
the digest of the text; of another text nothing is known here, and it is read as any
registry is. `python -m ascend_shims.registry.prepared --write` renews it.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import msgspec

from .model import Registry

__all__ = ["COMMITTED", "made", "registry_of"]

COMMITTED = Path(__file__).parent / "gap_registry.json"


class _Prepared(msgspec.Struct, frozen=True):
    digest: str
    """SHA-256 of the text."""
    registry: Registry


def registry_of(text: str) -> Registry | None:
    """What the text of our registry says; None where it has changed since."""
    # The loader, since the package may lie within a zip.
    loader: Any = sys.modules[__name__].__spec__.loader  # type: ignore[union-attr]
    try:
        known = msgspec.json.decode(loader.get_data(str(COMMITTED)), type=_Prepared)
    except (OSError, msgspec.DecodeError):
        return None
    return known.registry if known.digest == _digest(text) else None


def made() -> bytes:
    """What the committed copy has to hold. Raises `RegistryError`."""
    from .loading import load, packaged
    from .reading import read

    known = _Prepared(_digest(read(packaged())), load(anew=True))
    return msgspec.json.format(msgspec.json.encode(known)) + b"\n"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def main(arguments: list[str]) -> int:
    """Renew the committed copy."""
    if arguments != ["--write"]:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    COMMITTED.write_bytes(made())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
