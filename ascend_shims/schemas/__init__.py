"""What each command prints with `--json`, as JSON Schemas that anybody may rely on.

`shapes` says it in types; the `.json` files beside this one are made from them by
`python -m ascend_shims.schemas.made --write`, and are what is read here.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["FOLDER", "names", "schema_text"]

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """What there are schemas of: commands, and lines that processes write."""
    # The package may lie within a zip.
    from importlib.resources import files

    found = (one.name for one in files(__package__).iterdir())
    return sorted(n.removesuffix(".json") for n in found if n.endswith(".json"))


def schema_text(name: str) -> str:
    """The schema of one of `names()`, as JSON. Raises `KeyError` for another name."""
    from importlib.resources import files

    if name not in names():
        raise KeyError(name)
    return files(__package__).joinpath(f"{name}.json").read_text("utf-8")
