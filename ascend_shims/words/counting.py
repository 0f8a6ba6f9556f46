"""Numbers of things."""

from __future__ import annotations

__all__ = ["counted"]


def counted(number: int, one: str, several: str) -> str:
    """`one` for exactly one thing, else `several`, where `{number}` stands for it.

    Both are whole texts, so that each is found in the catalogue: a language may have
    other forms than an `s`, or none.
    """
    return one if number == 1 else several.replace("{number}", str(number), 1)
