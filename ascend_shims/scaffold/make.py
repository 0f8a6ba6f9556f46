"""Make the files of a new gap: all of them, or none."""

from __future__ import annotations

import keyword
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ..files import write_whole
from ..registry import Registry, RegistryError, load
from ..registry.document import compose
from .entry import with_entry
from .errors import ScaffoldError
from .project import Place, new_place, place_of
from .target import Target, read_target
from .texts import entry_text, head_text, module_text, test_text

__all__ = ["EXAMPLE", "Made", "make_gap"]

EXAMPLE = "vllm.utils.math_utils:cdiv"
"""The target where none is named: small, and in every release of the last years."""

_DEFAULT = "ascend_shims.patches"
_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_TARGET = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


@dataclass(frozen=True, slots=True)
class Made:
    """What was made, and where."""

    gap: str
    target: Target
    place: Place
    files: tuple[Path, ...]
    """New ones."""
    changed: tuple[Path, ...]


def make_gap(
    gap: str,
    *,
    registry: Path | None,
    package: str | None,
    target: str | None,
    folder: Path,
) -> Made:
    """Add a gap to `registry`, or begin one in `folder` where it is None.

    Raises `ScaffoldError` or `RegistryError`; then nothing was written.
    """
    if not _ID.fullmatch(gap):
        raise ScaffoldError(
            f"{gap!r} is no id; write small letters, digits and `-`: fast-rope"
        )
    if keyword.iskeyword(gap):
        raise ScaffoldError(
            f"{gap!r} is a word of Python, and no module can be called so; choose "
            "another id"
        )
    if target is not None and not _TARGET.fullmatch(target):
        raise ScaffoldError(
            f"{target!r} is no target; write package.module:Qual.name: {EXAMPLE}"
        )
    if registry is None:
        place = new_place(folder, package)
        registry = place.registry if place.registry.exists() else None
    before = _read(registry) if registry is not None else None
    if registry is not None and before is not None:
        place = place_of(registry, before.registry.package)
        _check_wish(gap, package, before.registry, registry)
    wanted = read_target(target or EXAMPLE)
    if before is not None and wanted.package not in before.registry.upstreams:
        raise ScaffoldError(
            f"{wanted.name} is outside the upstreams of {registry}; name one in "
            f"{' or '.join(before.registry.upstreams)} with --target, or add "
            f"{wanted.package} to them"
        )
    text = _text(gap, wanted, place, before)
    new = _new_files(gap, wanted, place)
    _check(text, gap, wanted, place, before)
    return _write(gap, wanted, place, text, new)


def _check_wish(gap: str, package: str | None, known: Registry, path: Path) -> None:
    if package not in (None, known.package):
        raise ScaffoldError(
            f"{path} has its patches in {known.package}; leave --package out, or name "
            "another registry"
        )
    if gap in known or any(one.id == gap for one in known.companions):
        raise ScaffoldError(f"{path} has a gap {gap} already; choose another id")


@dataclass(frozen=True, slots=True)
class _Before:
    text: str
    registry: Registry


def _read(path: Path) -> _Before:
    """A registry as it is in its project, whatever is installed.

    Raises `RegistryError` where it has mistakes: they are to be mended first.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScaffoldError(f"{path} cannot be read: {error}") from None
    data = compose(text, str(path)).data
    package = data.get("package") if isinstance(data, dict) else None
    folder = place_of(path, str(package or _DEFAULT)).folder
    return _Before(text, _loaded(path, [folder]))


def _loaded(path: Path, folders: list[Path]) -> Registry:
    try:
        return load(path, folders=folders)
    except RegistryError:
        # Found beside ours, it may name gaps of ours.
        return load(path, folders=folders, beside=load())


def _text(gap: str, target: Target, place: Place, before: _Before | None) -> str:
    """The whole registry with one more gap."""
    if before is None:
        return head_text(place, target) + entry_text(gap, target, [], 2)
    after = [
        one.id
        for one in before.registry.gaps
        if any(target.name in patch.candidates for patch in one.patches)
    ]
    document = compose(before.text, str(place.registry))
    return with_entry(
        document, before.text, lambda dash: entry_text(gap, target, after, dash)
    )


def _new_files(gap: str, target: Target, place: Place) -> dict[Path, str]:
    """What is written besides the registry, each where nothing is yet."""
    files = {
        place.module(gap): module_text(gap, target),
        place.test(gap): test_text(gap, target, place),
    }
    for path in files:
        if path.exists() or path.is_symlink():
            raise ScaffoldError(f"{path} is there already; choose another id")
    inits = []
    for folder in (place.folder, *place.folder.parents):
        if folder == place.root:
            break
        inits.append(folder / "__init__.py")
    made = {path: "" for path in reversed(inits) if not path.exists()}
    return {**made, **files}


def _check(
    text: str, gap: str, target: Target, place: Place, before: _Before | None
) -> None:
    """Raise unless the loader takes it, and all that was there is as it was."""
    with tempfile.TemporaryDirectory(prefix="ascend-shims-") as folder:
        tried = Path(folder) / place.registry.name
        tried.write_bytes(text.encode())
        module = Path(folder) / place.module(gap).name
        module.write_text(module_text(gap, target), "utf-8")
        try:
            now = _loaded(tried, [Path(folder), place.folder])
        except RegistryError as error:
            said = str(error).replace(str(tried), str(place.registry))
            raise ScaffoldError(f"with the new entry, {said}") from None
    if before is not None:
        known = msgspec.structs.replace(now, gaps=now.gaps[:-1])
        if known != before.registry or now.gaps[-1].id != gap:
            raise ScaffoldError(
                f"{place.registry} cannot be added to without changing what it says; "
                "write its gaps one beneath the other, at its end"
            )


def _write(
    gap: str, target: Target, place: Place, text: str, new: Mapping[Path, str]
) -> Made:
    """The registry comes last, whole: what it names is there by then."""
    is_new = not place.registry.exists()

    def is_done() -> bool:
        return place.registry.is_file() and place.registry.read_bytes() == text.encode()

    with _undone_on_error(is_done) as made:
        for path, content in new.items():
            _folders(path.parent, made)
            made.append(path)
            write_whole(path, content)
        _folders(place.registry.parent, made)
        write_whole(place.registry.resolve(), text)
    files = (*([place.registry] if is_new else []), *new)
    return Made(gap, target, place, files, () if is_new else (place.registry,))


@contextmanager
def _undone_on_error(is_done: Callable[[], bool]) -> Iterator[list[Path]]:
    """What is noted as made is taken away again where anything is raised, unless all
    was done by then."""
    made: list[Path] = []
    try:
        yield made
    except BaseException:
        for path in reversed([] if is_done() else made):
            with suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()
        raise


def _folders(folder: Path, made: list[Path]) -> None:
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        made.append(one)
        one.mkdir()
