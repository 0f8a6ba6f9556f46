"""Sources that lie on this machine as files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from ...environment.distributions import find_distribution, module_file
from ..source import DirectorySource, SourceError
from .errors import BadSource
from .layout import find_layout
from .links import name_and_version
from .meter import Meter, Stats
from .packs import PackSource, pack_sdist
from .zips import FileBlocks, ZipSource, file_listing, too_large

__all__ = ["FolderSource", "archive_source", "folder_source", "installed_source"]


class FolderSource(DirectorySource):
    """The packages of a folder. Links that lead out of it are not followed."""

    def __init__(
        self, root: Path, label: str, version: str | None, packages: Collection[str]
    ) -> None:
        super().__init__(root, label=label, packages=packages or None)
        self.version = version
        self.problems: Mapping[str, str] = {}
        self.notes: tuple[str, ...] = ()
        self.stats = Stats()
        self._folder = root

    def read(self, path: str) -> bytes:
        try:
            reason = too_large((self._folder / path).stat().st_size)
        # A loop of links is an OSError; a NUL in the name a ValueError.
        except (OSError, ValueError) as error:
            raise SourceError(f"{path} of {self.label}: {error}") from error
        if reason:
            raise SourceError(f"{path} of {self.label}: {reason}")
        return super().read(path)

    def prefetch(self, paths: Iterable[str]) -> None:
        """Everything is here already."""


def installed_source(packages: Collection[str]) -> FolderSource:
    """The files that this interpreter would import; nothing is imported.

    Raises:
        BadSource: a package is not installed here, or they lie in several folders.
    """
    roots: dict[Path, str] = {}
    for package in packages:
        init = module_file(package) if package.isidentifier() else None
        if init is None or init.name != "__init__.py":
            raise BadSource(
                f"{package} is no package installed in this interpreter; name a "
                f"release ({package}@latest), a wheel or a directory"
            )
        roots[init.parent.parent] = package
    if len(roots) > 1:
        raise BadSource(
            f"{', '.join(packages)} are installed in several folders; open them one "
            "by one, installed:NAME"
        )
    found = [find_distribution(package) for package in packages]
    label = ", ".join(f"{d.package} {d.version or '(no version)'}" for d in found)
    root = next(iter(roots))
    return FolderSource(root, f"{label} (installed)", found[0].version, packages)


def _inits(root: Path) -> Iterator[str]:
    """Packages at the top of `root` or in its `src`, as paths of `__init__.py`."""
    for place in (root, root / "src"):
        if place.is_dir():
            for init in place.glob("*/__init__.py"):
                yield init.relative_to(root).as_posix()


_VERSION = re.compile(
    r"^(__)?version(__)?\b[^'\"\n]*['\"]([^'\"\n]+)['\"]", re.MULTILINE
)


def _version(root: Path, packages: Iterable[str]) -> str | None:
    for package in packages:
        for name in ("_version.py", "version.py"):
            file = root / package / name
            if file.is_file() and file.stat().st_size < 100_000:
                match = _VERSION.search(file.read_text(errors="replace"))
                if match:
                    return match.group(3)
    return None


def folder_source(path: Path, packages: Collection[str]) -> FolderSource:
    """An import root, a checkout, or a package's own folder.

    Raises:
        BadSource: no package lies there.
    """
    root = path.absolute()
    if (root / "__init__.py").is_file():
        names: tuple[str, ...] = (root.name,)
        root = root.parent
    else:
        layout = find_layout(_inits(root), packages)
        names = layout.packages
        if not names:
            wanted = ", ".join(packages) or "no Python package"
            raise BadSource(
                f"{path} holds {wanted if not packages else 'none of ' + wanted}; "
                "give the folder that contains the package's folder"
            )
        root = root / layout.prefix
    try:
        version = _version(root, names)
    except OSError:
        version = None
    return FolderSource(root, f"{', '.join(names)} in {path}", version, names)


def archive_source(
    file: Path, packages: Collection[str], meter: Meter
) -> ZipSource | PackSource:
    """A wheel or an sdist. Raises `BadSource`."""
    known = name_and_version(file.name)
    label = f"{known[0]} {known[1]}" if known else file.name
    version = str(known[1]) if known else None
    try:
        if file.suffix == ".whl":
            listing = file_listing(file)
            return ZipSource(label, version, listing, FileBlocks(file), meter)
        named = packages or ((known[0].replace("-", "_"),) if known else ())
        pack = pack_sdist(file, file.name, named)
        return PackSource(label, version, pack, meter)
    except (SourceError, OSError) as error:
        raise BadSource(f"{file} cannot be read: {error}") from error
