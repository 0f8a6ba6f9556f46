"""Where the parts of a new gap belong in a project."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..environment.modules import find_module
from .errors import ScaffoldError

__all__ = ["Place", "new_place", "place_of"]

_REGISTRY = "gap_registry.yaml"


@dataclass(frozen=True, slots=True)
class Place:
    """The files that a gap consists of."""

    registry: Path
    package: str
    folder: Path
    """Of the package."""
    root: Path
    """From which the package is imported."""
    tests: Path

    def module(self, gap: str) -> Path:
        return self.folder / f"{gap.replace('-', '_')}.py"

    def test(self, gap: str) -> Path:
        return self.tests / f"test_{gap.replace('-', '_')}.py"


def new_place(folder: Path, package: str | None) -> Place:
    """A place for a first registry: in the package that is to hold the patches.

    Raises `ScaffoldError` where it is not said which package that is, and cannot be
    told.
    """
    root = folder / "src" if (folder / "src").is_dir() else folder
    if package is None:
        package = f"{_only_package(root)}.shims"
    if not all(part.isidentifier() for part in package.split(".")):
        raise ScaffoldError(
            f"{package!r} is no package; write it as in an import, acme_npu.shims"
        )
    _refuse_others(package, root)
    home = root.joinpath(*package.split("."))
    return Place(home / _REGISTRY, package, home, root, folder / "tests")


def _refuse_others(package: str, root: Path) -> None:
    """Refuse a package of somebody else: on the path ours would stand before it."""
    top = package.partition(".")[0]
    spec = None if top in sys.stdlib_module_names else find_module(top)
    places = [spec.origin, *(spec.submodule_search_locations or ())] if spec else []
    mine = root.resolve()
    theirs = [one for one in places if one and not _is_in(Path(one), mine)]
    if top in sys.stdlib_module_names or (theirs and not (root / top).is_dir()):
        raise ScaffoldError(
            f"{top} is a package of somebody else, which one here would hide; name one "
            "of your own: --package acme_npu.shims"
        )


def _is_in(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder)


def place_of(registry: Path, package: str) -> Place:
    """Where the parts of one more gap of a registry belong.

    Raises `ScaffoldError` where its package is not in the project: an installed copy
    is not what somebody works on.
    """
    for above in _above(registry.parent):
        for root in (above, above / "src"):
            folder = root.joinpath(*package.split("."))
            if folder.is_dir():
                return Place(registry, package, folder, root, _tests(registry, above))
    raise ScaffoldError(
        f"the package {package} of {registry} is not in a folder around it; make it, "
        "or correct `package` in the registry"
    )


def _above(folder: Path) -> Iterator[Path]:
    """The folder and those above it, up to the root of the repository."""
    for one in (folder, *folder.parents):
        yield one
        if (one / ".git").exists():
            return


def _tests(registry: Path, root: Path) -> Path:
    for one in _above(registry.parent):
        if (one / "tests").is_dir():
            return one / "tests"
        if (one / "pyproject.toml").exists() or (one / "setup.cfg").exists():
            return one / "tests"
    return root / "tests"


def _only_package(root: Path) -> str:
    found = sorted(
        one.parent.name
        for one in root.glob("*/__init__.py")
        if one.parent.name.isidentifier() and one.parent.name not in ("tests", "docs")
    )
    if len(found) != 1:
        which = f"there are {', '.join(found)}" if found else f"there is none in {root}"
        raise ScaffoldError(
            f"say which package is to hold the registry and the patches ({which}): "
            "shims new-gap ID --package acme_npu.shims"
        )
    return found[0]
