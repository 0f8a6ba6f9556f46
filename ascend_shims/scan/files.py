"""Which files to scan, and their text."""

from __future__ import annotations

import ast
import os
import re
import stat
import sys
import tokenize
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from ..errors import ConfigurationError
from ..files import real
from ..words.counting import counted
from .found import Skipped

__all__ = ["Files", "NothingToScanError", "SkipError", "Source", "collect", "parse"]

_LARGEST = 4 << 20
"""Bytes. Larger files are tables that a program wrote."""

_FOREIGN = frozenset(
    {
        "__pycache__",
        "node_modules",
        "site-packages",
        "dist-packages",
        "_vendor",
        "_vendored",
        "vendor",
        "vendored",
        "third_party",
        "3rdparty",
        "venv",
        "env",
        "virtualenv",
        "build",
        "dist",
    }
)
"""Folders of code that is not the project's own. Those with a leading dot as well."""

_TESTS = frozenset({"test", "tests", "testing_utils"})

_GENERATED = re.compile(
    rb"@generated|\b[Gg]enerated by the protocol buffer compiler"
    rb"|[Aa]uto-?generated[^\n]*\b(do not|don't) (edit|modify)"
    rb"|\b[Gg]enerated by[^\n]*\b(do not|don't) (edit|modify)"
    rb"|\b(DO NOT|do not) (EDIT|edit|MODIFY|modify)[^\n]*\b[Gg]enerated"
)
_HEAD = 1024
_COOKIE = re.compile(rb"\A(?:[^\n]*\n)?[ \t\f]*#[^\n]*coding[:=]")

_PYTHON_2 = re.compile(
    r"^\s*(print\s+[\"'\w%]|print\s*>>|exec\s+[\"'\w]|raise\s+\w+\s*,"
    r"|except\s+[\w.]+\s*,\s*\w+\s*:)",
    re.M,
)


_SYNTAX = (
    (
        (3, 14),
        r"(?<![\w'\"])[tT][rR]?['\"]|^\s*except\s+\w[\w.]*(\s*,\s*[A-Z][\w.]*)+\s*:",
    ),
    ((3, 13), r"^\s*(type|def|async def|class)\s+\w+\[[^\]]*=[^\]]*\]"),
    ((3, 12), r"^\s*(async\s+)?(def|class)\s+\w+\[|^\s*type\s+\w+(\[[^\]]*\])?\s*="),
    ((3, 11), r"^\s*except\s*\*"),
)
"""What newer versions of Python have, in the line at which an older one gives up."""

_LEVELS = 10
_ROOTS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
"""What lies beside a package, and never in it."""


class NothingToScanError(ConfigurationError):
    """No Python file is where the command was told to look."""


class SkipError(Exception):
    """A file cannot be scanned; the message says why."""


@dataclass(frozen=True)
class Source:
    """One file, and the module that it is."""

    path: str
    module: str
    """Dotted, from the topmost package around it."""
    is_package: bool = False


@dataclass(frozen=True)
class Files:
    sources: tuple[Source, ...]
    skipped: tuple[Skipped, ...]
    tests: int
    tops: tuple[Path, ...] = ()
    """Folders from which the names of modules start."""


def collect(paths: Iterable[Path], *, tests: bool = False) -> Files:
    """The files beneath `paths`, each once, in order.

    Args:
        tests: those of tests as well. What is named itself is never left out.

    Raises:
        NothingToScanError: there is none.
    """
    found: dict[str, Source] = {}
    tops: dict[Path, None] = {}
    skipped: list[Skipped] = []
    left_out = 0
    named = [Path(one) for one in paths]
    for root in named:
        if not root.exists():
            raise NothingToScanError(f"{root} is not there; name a file or folder")
        if root.is_dir():
            top = _top(root)
            tops[top] = None
            for path, is_test in _beneath(root):
                if is_test and not tests:
                    left_out += 1
                    continue
                _add(path, top, found, skipped)
        else:
            top = _top(root.parent)
            tops[top] = None
            _add(root, top, found, skipped)
    if not found and not skipped:
        where = ", ".join(map(str, named)) or "."
        hint = (
            counted(
                left_out,
                "; 1 file of tests is left out, --tests takes it in",
                f"; {left_out} files of tests are left out, --tests takes them in",
            )
            if left_out
            else "; name the folder of a plugin, as in `shims scan my_plugin/`"
        )
        raise NothingToScanError(f"no Python file in {where}{hint}")
    return Files(tuple(found.values()), tuple(skipped), left_out, tuple(tops))


def _beneath(root: Path) -> Iterable[tuple[Path, bool]]:
    for folder, folders, names in os.walk(root, followlinks=False):
        here = Path(folder)
        folders[:] = sorted(
            name
            for name in folders
            if name not in _FOREIGN
            and not name.startswith(".")
            and not name.endswith(".egg-info")
            and not (here / name / "pyvenv.cfg").exists()
        )
        inside = not _TESTS.isdisjoint(here.relative_to(root).parts)
        for name in sorted(names):
            if name.endswith(".py"):
                test = inside or re.fullmatch(r"test_\w+|\w+_test|conftest", name[:-3])
                yield here / name, bool(test)


def _add(
    path: Path, top: Path, found: dict[str, Source], skipped: list[Skipped]
) -> None:
    name = path.as_posix()
    if name in found:
        return
    try:
        mode = path.stat().st_mode
    except (OSError, RuntimeError) as error:
        skipped.append(Skipped(name, f"cannot be read: {_reason(error)}"))
        return
    if not stat.S_ISREG(mode):
        skipped.append(Skipped(name, "is not a regular file"))
        return
    is_package = path.name == "__init__.py"
    found[name] = Source(name, _module(path, top), is_package)


def _top(folder: Path) -> Path:
    """The folder that module names beneath `folder` start from."""
    here = top = real(folder)
    for above in (here, *here.parents)[:_LEVELS]:
        if (above / "__init__.py").exists():
            top = above.parent
        elif above.name == "src":
            return above
        if any((above / name).exists() for name in _ROOTS):
            break
    return top


def _module(path: Path, top: Path) -> str:
    """The name under which a file is imported.

    From the topmost folder that is a package: folders within one need not be marked
    as such.
    """
    try:
        parts = list(real(path).relative_to(top).with_suffix("").parts)
    except ValueError:
        parts = [path.stem]
    folder = top
    for count, part in enumerate(parts[:-1]):
        folder = folder / part
        if (folder / "__init__.py").exists():
            parts = parts[_first(parts[:count], top) :]
            break
    else:
        parts = parts[-1:]
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    return ".".join(parts)


def _first(above: list[str], top: Path) -> int:
    """Where a module's name starts, if the first marked package is below `above`.

    In `src` lies what is imported, and a namespace package is not marked.
    """
    if top.name == "src":
        return 0
    for count in range(len(above), 0, -1):
        if above[count - 1] == "src":
            return count
    return len(above)


def parse(source: Source) -> tuple[str, ast.Module]:
    """The text of a file and its syntax tree. Raises `SkipError`."""
    try:
        with Path(source.path).open("rb") as stream:
            raw = stream.read(_LARGEST + 1)
    except OSError as error:
        raise SkipError(f"cannot be read: {_reason(error)}") from error
    if len(raw) > _LARGEST:
        raise SkipError(f"has more than {_LARGEST >> 20} MiB, more than people write")
    head = raw[:_HEAD]
    mark = next((m for m in _GENERATED.finditer(head) if _in_comment(head, m)), None)
    if mark is not None:
        raise SkipError("is generated, as its first lines say")
    text = _decoded(raw)
    try:
        with warnings.catch_warnings():
            # Invalid escapes in somebody's strings are theirs.
            warnings.simplefilter("ignore")
            return text, ast.parse(text)
    except SyntaxError as error:
        needed = _newer(text, error)
        if needed > sys.version_info[:2]:
            mine = ".".join(map(str, sys.version_info[:2]))
            raise SkipError(
                f"is written for Python {needed[0]}.{needed[1]}, line {error.lineno}, "
                f"and this is {mine}; scan with that version"
            ) from error
        if _PYTHON_2.search(text):
            raise SkipError("is Python 2") from error
        raise SkipError(f"is not Python: {error.msg}, line {error.lineno}") from error
    except ValueError as error:
        raise SkipError(f"is not Python: {error}") from error
    except (RecursionError, MemoryError) as error:
        raise SkipError("nests too deeply") from error


def _newer(text: str, error: SyntaxError) -> tuple[int, int]:
    """The version of Python whose syntax stands where the parser gave up."""
    lines, at = text.splitlines(), error.lineno or 0
    line = lines[at - 1] if 0 < at <= len(lines) else ""
    for version, pattern in _SYNTAX:
        if re.search(pattern, line):
            return version
    # Since then the inside of an f-string is like any other expression.
    return (3, 12) if "f-string" in (error.msg or "") else (0, 0)


def _in_comment(head: bytes, mark: re.Match[bytes]) -> bool:
    """A comment or docstring, and not code that talks about generated files."""
    start = head.rfind(b"\n", 0, mark.start()) + 1
    line = head[start : mark.start()].lstrip()
    return line.startswith((b"#", b'"""', b"'''")) or not line


def _decoded(raw: bytes) -> str:
    try:
        encoding, _ = tokenize.detect_encoding(BytesIO(raw).readline)
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        name = error.encoding.upper()
        raise SkipError(f"is not {name}, as it ought to be") from error
    except (SyntaxError, LookupError) as error:
        # Of bytes that cannot be read the first lines are told in the same way.
        if not _COOKIE.search(raw[:_HEAD]):
            raise SkipError("is not UTF-8, as it ought to be") from error
        raise SkipError(f"has an encoding that is not known: {error}") from error


def _reason(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error)
