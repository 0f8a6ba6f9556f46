"""Which shared libraries torch_npu needs that the loader does not find.

What is found beside torch_npu and torch, where a file itself says, or along
`LD_LIBRARY_PATH` is followed on. Of the rest the loader is asked, in a child: what it
has in its cache, and where it looks by default, it alone knows.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from ..torches import Missing
from .elf import read_needs

__all__ = ["find_missing", "fits_python"]

_MOST = 500
"""Files that are looked at: CANN has some hundred."""
_PATIENCE = 10
"""Seconds for the loader's answers, which take a few hundredths."""

_ASK = """
import ctypes, json, sys
missing = {}
for name in sys.argv[1:]:
    try:
        ctypes.CDLL(name, 1)  # lazily: what is undefined does not matter
    except OSError as error:
        said = str(error)
        if "cannot open shared object file" in said:
            missing[name] = said.partition(":")[0]
print(json.dumps(missing))
"""


def fits_python(package: Path) -> bool:
    """Whether the extension module is there for this version of Python."""
    modules = [file.name for file in package.glob("_C.*")]
    return not modules or any(
        name == f"_C{suffix}" for name in modules for suffix in EXTENSION_SUFFIXES
    )


def find_missing(
    package: Path, torch: Path | None, elsewhere: Iterable[Path] = ()
) -> tuple[Missing, ...]:
    """What torch_npu, in the folder `package`, needs and does not find.

    Args:
        package: its folder.
        torch: torch's folder, which loads its libraries first.
        elsewhere: folders that the loader does not know, and that may have them.
    """
    roots = [*(package / "lib").glob("libtorch_npu*.so"), *package.glob("_C.*.so")]
    given = [package / "lib", *([torch / "lib"] if torch else [])]
    given += map(Path, filter(None, _library_path()))
    open_ones = _unresolved(roots, given)
    asked = _ask_loader(tuple(open_ones)) if open_ones else {}
    return tuple(
        Missing(library, open_ones[name], _lies_in(library, elsewhere))
        for name, library in asked.items()
    )


def _library_path() -> list[str]:
    return os.environ.get("LD_LIBRARY_PATH", "").replace(";", ":").split(":")


def _unresolved(roots: list[Path], given: list[Path]) -> dict[str, str]:
    """What no folder that is known here has, and who needs it."""
    waiting, seen = list(roots), set(roots)
    names: set[str] = set()
    left: dict[str, str] = {}
    while waiting and len(seen) < _MOST:
        file = waiting.pop(0)
        needs = read_needs(file)
        for name in needs.libraries if needs else ():
            if name in names:
                continue
            names.add(name)
            folders = [*map(Path, needs.folders if needs else ()), *given]
            found = next((f / name for f in folders if (f / name).is_file()), None)
            if found is None:
                left[name] = file.name
            elif found not in seen:
                seen.add(found)
                waiting.append(found)
    return left


def _ask_loader(names: tuple[str, ...]) -> dict[str, str]:
    """Of these names those that cannot be opened, and what is missing for that."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _ASK, *names],
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            stdin=subprocess.DEVNULL,
            check=True,
        )
        answer: dict[str, str] = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        # A library that ends the process when it is loaded was found, at least.
        return {}
    return answer


def _lies_in(library: str, folders: Iterable[Path]) -> str | None:
    return next((str(f) for f in folders if (f / library).exists()), None)
