"""Starts an engine, and ends at once.

Arguments: the model, whether gaps are applied.
"""

from __future__ import annotations

import os

from .answering import answer, arguments
from .engines import prepared, started


def main(model: str, shims: bool) -> None:
    gaps = prepared(shims)
    started(model, shims)
    answer({"gaps": gaps})
    # Taking it down piece by piece is no part of a start.
    os._exit(0)


if __name__ == "__main__":
    main(*arguments())
