"""`python -m ascend_shims.registry FILE…`: everything that is wrong with registries.

For editors and hooks: reads the files and the text of the patches packages that they
name, and nothing else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ..files import real
from ..words import preferred, said, speaking
from .loading import load, packaged
from .problems import RegistryError

__all__ = ["main"]


def main(files: Sequence[str]) -> int:
    """0 if all are valid, 1 if one is not, 2 if none was named."""
    if not files:
        _tell("name a registry: python -m ascend_shims.registry FILE…")
        return 2
    code = 0
    for file in files:
        path = Path(file)
        own = real(path) == real(packaged())
        try:
            load(None if own else path, anew=True)
        except RegistryError as error:
            _tell(str(error))
            code = 1
    return code


def _tell(text: str) -> None:
    """Print a text as commands do, in the language that is wanted."""
    with speaking(preferred(os.environ, sys.stderr)):
        print(said(text), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
