"""Registries that installed plugins bring, found by their entry points.

    [options.entry_points]
    ascend_shims.registries =
        acme = acme_npu.shims

`acme` is the namespace, and `acme_npu.shims` the package that holds the registry and
its patches. Nothing of it is imported. Each is checked by itself: what is wrong with
one keeps that one out, and no other.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from pathlib import Path

from ..environment.entry_points import GROUP, EntryPoint, read_entry_points
from ..environment.modules import find_module
from ..errors import ConfigurationError
from .joined import Found, Unusable, join, within
from .loading import load, packaged
from .model import Registry
from .problems import RegistryError, nearest, shown

__all__ = [
    "FoundRegistryError",
    "check_found",
    "is_brought",
    "load_all",
    "namespace_at",
]

_NAMES = ("gap_registry.yaml", "gap_registry.yml")
_NAMESPACE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_WORDS = ("all", "none")
"""What ASCEND_SHIMS_REGISTRIES says besides namespaces, so that none is called so."""

_LEAVE = "leave it out: ASCEND_SHIMS_REGISTRIES=none, or a list of the others"


class FoundRegistryError(ConfigurationError):
    """Strict: a registry that an installed plugin brings cannot be used."""


class _UnusableError(Exception):
    """Why a registry cannot be used, and where it is if that is known."""

    def __init__(self, reason: str, path: Path | None = None) -> None:
        super().__init__(reason)
        self.path = path


def load_all(
    path: Path | None,
    *,
    own: bool = False,
    namespaces: Collection[str] | None = None,
    allow: Collection[str] = (),
) -> Registry:
    """The registry at `path`, or that of this toolkit, and those that plugins bring.

    One that is the very file at `path` is there already. Raises `RegistryError` for
    the one at `path` alone; what cannot be used of the others is told by `Joined`.

    Args:
        own: that at `path` must be one that nobody else can change.
        namespaces: take these and no others; None for all.
        allow: packages that these may take patches from, besides their own.
    """
    base = load(path, own=own)
    entries = read_entry_points() if namespaces is None or namespaces else ()
    found: list[Found] = []
    unusable: list[Unusable] = []
    by_name: dict[str, list[EntryPoint]] = {}
    for entry in entries:
        by_name.setdefault(entry.name, []).append(entry)
    for name in sorted(namespaces or ()):
        if name not in by_name:
            unusable.append(_absent(name, by_name))
    for name, several in sorted(by_name.items()):
        if namespaces is not None and name not in namespaces:
            continue
        try:
            one = _usable(several, base, path or packaged(), allow)
        except _UnusableError as error:
            unusable.append(
                Unusable(
                    namespace=shown(name),
                    distribution=" and ".join(shown(e.distribution) for e in several),
                    path=str(error.path) if error.path else None,
                    reason=str(error),
                )
            )
        else:
            found += [one] if one else []
    return join(base, tuple(found), tuple(unusable))


def namespace_at(path: Path) -> str | None:
    """The namespace under which an installed distribution brings a registry; None
    where none does."""
    entry = _entry_at(path)
    return entry.name if entry else None


def is_brought(path: Path, package: str) -> bool:
    """Whether an installed distribution brings a registry, and the package that its
    patches are in."""
    entry = _entry_at(path)
    return entry is not None and _is_within(package, entry.value)


def _entry_at(path: Path) -> EntryPoint | None:
    for entry in read_entry_points():
        try:
            if _is_same(_file(entry), path):
                return entry
        except _UnusableError:
            continue
    return None


def _is_within(package: str, outer: str) -> bool:
    return package == outer or package.startswith(f"{outer}.")


def check_found(registry: Registry) -> None:
    """Raise `FoundRegistryError` where a found registry cannot be used."""
    unusable: Iterable[Unusable] = getattr(registry, "unusable", ())
    said = "\n".join(map(str, unusable))
    if said:
        raise FoundRegistryError(said)


def _absent(name: str, known: Collection[str]) -> Unusable:
    meant = nearest(name, [*known, *_WORDS])
    listed = f"there are {', '.join(sorted(known))}" if known else "there is none"
    hint = f"did you mean {meant!r}?" if meant else listed
    return Unusable(
        namespace=shown(name),
        distribution=None,
        path=None,
        reason="ASCEND_SHIMS_REGISTRIES names it, and no installed distribution has "
        f"an entry point {GROUP} of that name; {hint}",
    )


def _usable(
    several: list[EntryPoint], base: Registry, base_path: Path, allow: Collection[str]
) -> Found | None:
    """None where it is the base. Raises `_UnusableError`."""
    entry = several[0]
    if len(several) > 1:
        raise _UnusableError("several bring one of that name; uninstall all but one")
    if not _NAMESPACE.fullmatch(entry.name) or entry.name in _WORDS:
        raise _UnusableError(
            f"{shown(entry.name)!r} is no namespace; in the entry points of "
            f"{shown(entry.distribution)}, call it by small letters, digits and `-`"
        )
    path = _file(entry)
    if _is_same(path, base_path):
        return None
    try:
        registry = load(path, beside=base, home=entry.value)
    except RegistryError as error:
        raise _UnusableError(_told(error, path), path) from None
    except Exception as error:  # noqa: BLE001 - it must not stop the others
        said = shown(f"{type(error).__name__}: {error}")
        raise _UnusableError(
            f"{path} cannot be read ({said}); {_LEAVE}", path
        ) from None
    _check_package(registry, entry, path, allow)
    return Found(
        namespace=entry.name,
        distribution=shown(entry.distribution),
        path=str(path),
        registry=within(registry, entry.name),
    )


def _file(entry: EntryPoint) -> Path:
    """The registry in the package that an entry point names."""
    package = shown(entry.value)
    where = f"the entry point of {shown(entry.distribution)}"
    if not all(part.isidentifier() for part in entry.value.split(".")):
        raise _UnusableError(
            f"{where} names {package!r}; name the package that holds "
            f"{_NAMES[0]}, such as `acme = acme_npu.shims`"
        )
    again = f"install {shown(entry.distribution)} again, or {_LEAVE}"
    try:
        spec = find_module(entry.value)
    except KeyError:
        # A folder without `__init__.py` in a package that is not imported.
        raise _UnusableError(
            f"{package} is a folder without __init__.py, which {where} names; add one"
        ) from None
    except Exception as error:  # noqa: BLE001 - whoever's import hook it is
        said = shown(f"{type(error).__name__}: {error}")
        raise _UnusableError(
            f"{package} cannot be looked for ({said}); {again}"
        ) from None
    if spec is None:
        raise _UnusableError(
            f"there is no package {package}, which {where} names; {again}"
        )
    if spec.submodule_search_locations is None:
        raise _UnusableError(
            f"{package} is a module, and {where} has to name a package; name the one "
            f"that holds {_NAMES[0]}"
        )
    folders = [Path(folder) for folder in spec.submodule_search_locations]
    for folder in folders:
        for name in _NAMES:
            if (folder / name).is_file():
                return folder / name
    raise _UnusableError(
        f"there is no {_NAMES[0]} in {shown(folders[0]) if folders else package}; list "
        f"it as package data of {shown(entry.distribution)} and {again}"
    )


def _is_same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _told(error: RegistryError, path: Path) -> str:
    """The first of what is wrong, and where to read the rest."""
    of_schema = [p for p in error.problems if p.message.startswith("`schema` cannot")]
    if of_schema:
        return f"{of_schema[0]}, or {_LEAVE}"
    first, *more = error.problems
    rest = f" ({len(more)} more: python -m ascend_shims.registry {path})"
    return f"{first}{rest if more else ''}"


def _check_package(
    registry: Registry, entry: EntryPoint, path: Path, allow: Collection[str]
) -> None:
    """Who installs a plugin has agreed to run its code, and to no other's."""
    mine = registry.package
    if not _is_within(mine, entry.value) and mine not in allow:
        raise _UnusableError(
            f"{path} takes its patches from {shown(mine)!r}, which is not in "
            f"{entry.value!r}, the package of its entry point; write `package: "
            f"{entry.value}`, or allow it by ASCEND_SHIMS_ALLOW={shown(mine)}",
            path,
        )
