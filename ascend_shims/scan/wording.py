"""What a function asks of a version, by its name: every word of it has to be known."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

__all__ = ["Helper", "helper"]

_PHRASES = {
    ">=": "at least|since|from|ge|gte|or newer|or later|or above|or higher|and above|"
    "newer or equal|later or equal|greater equal|greater or equal|"
    "greater than or equal|greater than or equal to|and later|and newer",
    "<=": "at most|up to|le|lte|or older|or earlier|or below|or lower|less equal|"
    "less or equal|less than or equal|less than or equal to|older or equal|and below|"
    "lower or equal",
    ">": "gt|newer|newer than|later|later than|after|greater|greater than|above|"
    "higher|higher than",
    "<": "lt|older|older than|earlier|earlier than|before|less|less than|lower|"
    "lower than|below",
    "==": "eq|equal|equals|equal to|same|exactly",
    "!=": "not|ne|neq|not eq|not equal|not equals|not equal to",
    "in": "in|one of|any of|among",
}
_OPERATORS = {
    phrase: sign for sign, all_ in _PHRASES.items() for phrase in all_.split("|")
}
_PACKAGES = ("vllm ascend", "torch npu", "vllm", "torch", "transformers", "triton")
_AROUND = {
    *("version", "ver", "is", "check", "installed", "current", "the", "compare"),
    *("cmp", "has"),
}
"""Words that say nothing of how it is compared."""


class Helper(NamedTuple):
    package: str
    """Empty where the name does not say."""
    operator: str
    """Empty where an argument has to say, `is` where one may; `in`: one of those
    given."""
    is_about: bool
    """The name says that it is about versions."""


@lru_cache(maxsize=1024)
def helper(name: str) -> Helper | None:
    """What a function of this name asks, if that is certain."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().replace("_", " ")
    words = spaced.split()
    package = ""
    for one in _PACKAGES:
        if f" {one} " in f" {' '.join(words)} ":
            package = one.replace(" ", "_")
            words = f" {' '.join(words)} ".replace(f" {one} ", " ", 1).split()
            break
    is_about = "version" in words or "ver" in words
    if not is_about and not package:
        return None
    rest = " ".join(word for word in words if word not in _AROUND)
    if rest:
        operator = _OPERATORS.get(rest)
        # `not vllm version` may deny what it is given, or anything else.
        denies = operator == "!=" and words[:1] == ["not"]
        return (
            None if operator is None or denies else Helper(package, operator, is_about)
        )
    if "is" in words and is_about:
        # `is_version("1.0")` alone may ask whether that is a version.
        return Helper(package, "is" if words[-1] == "is" or package else "", is_about)
    return Helper(package, "", is_about) if is_about else None
