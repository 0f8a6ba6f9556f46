"""Names of lists and mappings."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from .views import is_class

if TYPE_CHECKING:
    from .reader import Reader

__all__ = ["is_table", "may_be_table"]

_TABLE = re.compile(
    r"(map|mapping|registry|table|dict|list|set|cache|names|supported|hooks|ops|"
    r"methods|backends|models|configs|kernels|functions|states|types|classes)s?$",
    re.I,
)


_SURE_TABLE = re.compile(
    r"(map|mapping|registry|table|dict|list|set|cache|names|supported|hooks)s?$", re.I
)
"""Of these, what modules are not called."""


def may_be_table(reader: Reader, names: tuple[str, ...]) -> bool:
    """Entries of the standard library's mappings, `os.environ`, are there to be set."""
    if len(names) < 2 or names[0] in sys.stdlib_module_names:
        return False
    return reader.setting.is_foreign(names)


def is_table(reader: Reader, names: tuple[str, ...]) -> bool:
    """Whether a name most likely stands for a list or mapping that is changed.

    A module has functions called `add` and `update`, too: a name that may be one has
    to say more clearly that it is none.
    """
    if not may_be_table(reader, names) or ".".join(names) in reader.facts.modules:
        return False
    last = names[-1]
    if last.isupper():
        return True
    if any(is_class(part.lstrip("_")) for part in names[1:-1]):
        return bool(_TABLE.search(last))
    return "_" in last and bool(_SURE_TABLE.search(last))
