"""What somebody probably meant by a word that there is not."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

__all__ = ["nearest"]

_ALIKE = 0.7
"""Below that a short word is near to any other: `nope` would be `nodes`."""
_LONG = 4
"""Letters of a part of a name that says which is meant."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """That of `known` which is spelled much alike, or the only one with `word` as one
    of its parts; None where any suggestion would be a guess."""
    names = list(known)
    for spelled in (word, word.lower()):
        near = difflib.get_close_matches(spelled, names, n=1, cutoff=_ALIKE)
        if near:
            return near[0]
    parts = [one for one in names if word.lower() in re.split(r"[-_/.:]", one.lower())]
    return parts[0] if len(parts) == 1 and len(word) >= _LONG else None
