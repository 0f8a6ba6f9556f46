"""One more entry in the text of a registry, all else of which stays as it is."""

from __future__ import annotations

import re
from collections.abc import Callable

from yaml.nodes import MappingNode, Node, SequenceNode

from ..registry.document import Document
from .errors import ScaffoldError

__all__ = ["with_entry"]


def with_entry(document: Document, text: str, entry: Callable[[int], str]) -> str:
    """`text` with an entry at the end of its gaps.

    Args:
        document: what `text` is.
        entry: the entry, whose dash is in the column that it is given.

    Raises `ScaffoldError` where the gaps are not written one beneath the other.
    """
    gaps, following = _gaps(document.root)
    if gaps is None or gaps.flow_style or not gaps.value:
        raise ScaffoldError(
            f"{document.file}: write `gaps` as a list, one beneath the other, each "
            "beginning with `- id:`"
        )
    lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$", text)
    dash = _dash(lines, gaps.value[0])
    end = len(lines) if following is None else following.start_mark.line
    # What stands before the next key, at the margin, belongs to that.
    while following is not None and re.match(r"\s*$|#", lines[end - 1]):
        end -= 1
    ending = "\r\n" if "\r\n" in text else "\n"
    before = "".join(lines[:end])
    before += "" if before.endswith(("\n", "\r")) else ending
    added = f"\n{entry(dash)}".replace("\n", ending)
    return before + added + "".join(lines[end:])


def _gaps(root: Node) -> tuple[SequenceNode | None, Node | None]:
    """The list of gaps, and the key that follows it."""
    pairs = root.value if isinstance(root, MappingNode) else []
    for index, (key, value) in enumerate(pairs):
        if key.value == "gaps" and isinstance(value, SequenceNode):
            after = pairs[index + 1][0] if index + 1 < len(pairs) else None
            return value, after
    return None, None


def _dash(lines: list[str], first: Node) -> int:
    """The column in which the first item's dash is."""
    row, column = first.start_mark.line, first.start_mark.column
    while row >= 0:
        before = lines[row][:column]
        if before.rstrip().endswith("-"):
            return len(before.rstrip()) - 1
        row, column = row - 1, len(lines[row - 1])
    raise ScaffoldError("the list of gaps has no dash that can be found")
