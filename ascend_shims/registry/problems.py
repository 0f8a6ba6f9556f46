"""What can be wrong with a registry file, as values, and the error that holds them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NoReturn

import msgspec

from ascend_shims.errors import ConfigurationError

__all__ = [
    "Problem",
    "RegistryError",
    "nearest",
    "position",
    "quoted",
    "refuse",
    "shown",
]


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong, where, and what to do about it."""

    file: str
    line: int | None
    """Counted from 1; `None` if the whole file is meant."""

    column: int | None
    message: str
    fix: str

    def __str__(self) -> str:
        where = self.file
        if self.line is not None:
            where += f":{self.line}:{self.column}"
        return f"{where}: {self.message}; {self.fix}"


class RegistryError(ConfigurationError):
    """A registry that cannot be used, with everything that is wrong with it."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(
            # Each once: a part behind an alias is met at every use.
            sorted(dict.fromkeys(problems), key=lambda p: (p.line or 0, p.column or 0))
        )
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))


def refuse(
    file: str, message: str, fix: str, at: tuple[int, int] | None = None
) -> NoReturn:
    """Raise `RegistryError` for one problem, at a line and column if it has one."""
    line, column = at or (None, None)
    raise RegistryError([Problem(file, line, column, message, fix)])


def position(before: str) -> tuple[int, int]:
    """Line and column right after some text."""
    lines = before.split("\n")
    return len(lines), len(lines[-1]) + 1


def nearest(word: str, known: Iterable[str], *, similarity: float = 0.6) -> str | None:
    """The known word that `word` was probably meant to be."""
    from difflib import get_close_matches

    # Bounded: difflib is slow, and the file that it serves may be hostile.
    options = [one[:100] for one in islice(known, 200)]
    found = get_close_matches(word[:100], options, n=1, cutoff=similarity)
    return found[0] if found else None


def quoted(words: Iterable[object], last: str = "or") -> str:
    """`a`, `b` or `c`."""
    listed = [f"`{shown(word)}`" for word in words]
    if len(listed) < 2:
        return "".join(listed)
    return f"{', '.join(listed[:-1])} {last} {listed[-1]}"


def shown(content: object) -> str:
    """Content of a file as it may stand in a message: on one line, not too long,
    without characters that a terminal would act on."""
    text = str(content)
    if len(text) > 80:
        text = f"{text[:77]}..."
    if text.isprintable():
        return text
    return text.encode("unicode_escape").decode("ascii")
