"""Files that come with this toolkit, also where it is imported from a zip."""

from __future__ import annotations

from pathlib import Path

__all__ = ["is_zipped", "text_of"]

_HOME = Path(__file__).parent


def is_zipped(path: Path) -> bool:
    """Whether this is a file of ours that only its importer can read."""
    return path.parent == _HOME and not _HOME.is_dir()


def text_of(path: Path) -> str:
    """The text of a file, which may be zipped. Raises `OSError`."""
    if not is_zipped(path):
        return path.read_text("utf-8")
    from pkgutil import get_data

    data = get_data("ascend_shims", path.name)
    if data is None:
        raise FileNotFoundError(f"{path} cannot be read")
    return data.decode("utf-8")
