"""From a registry file to a `Registry`, or to everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from . import prepared
from .model import Registry
from .problems import RegistryError, refuse
from .reading import read

if TYPE_CHECKING:
    from .document import Document
    from .outline import Examination

__all__ = ["load", "packaged"]


def packaged() -> Path:
    """The registry that comes with this toolkit."""
    return Path(__file__).parents[1] / "gap_registry.yaml"


def load(
    path: Path | str | None = None,
    *,
    own: bool = False,
    beside: Registry | None = None,
    home: str | None = None,
    folders: Sequence[Path] = (),
    anew: bool = False,
) -> Registry:
    """The registry at `path`, or the one that comes with this toolkit.

    Nothing upstream and no patch module is imported. Raises `RegistryError` with
    every problem of the file.

    Args:
        own: it must be one that nobody else can change.
        beside: the registry whose gaps this one may name besides its own.
        home: the package that its patches are expected in, for what to do if not.
        folders: where its package lies, in place of where an import would find it.
        anew: check ours again, although it was when it was made.
    """
    source = packaged() if path is None else Path(path)
    text = read(source, own=own)
    known = None if path or anew else prepared.registry_of(text)
    if known is not None:
        return known
    # YAML, and what checks it, takes longer to load than all that is left to do.
    from .check import check
    from .document import compose
    from .outline import Examination

    document = compose(text, str(source))
    if isinstance(document.data, dict) and "baselines" in document.data:
        refuse(document.file, "is a lock", "name the registry that it lies beside")
    registry = _convert(document)
    examined = Examination(document.data) if registry else _examine(document)
    problems = [
        *examined.problems,
        *check(
            document,
            examined,
            complete=path is None,
            beside=beside,
            home=home,
            folders=folders,
        ),
    ]
    if problems:
        raise RegistryError(problems)
    return registry or _convert_examined(document, examined)


def _convert(document: Document) -> Registry | None:
    """The fast way for a file without structural mistakes."""
    if not document.regular:
        return None
    try:
        return msgspec.convert(document.data, Registry)
    except msgspec.ValidationError:
        return None


def _examine(document: Document) -> Examination:
    # Most files are sound: what it takes to tell what is wrong is loaded for the
    # others.
    from .structure import examine

    return examine(document)


def _convert_examined(document: Document, examined: Examination) -> Registry:
    try:
        return msgspec.convert(examined.data, Registry)
    except msgspec.ValidationError as error:
        refuse(document.file, str(error), "correct the value at that path")
