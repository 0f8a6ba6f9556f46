"""The lines of a commit that decided a verdict."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import unified_diff

from .facts.symbol import Symbol, find
from .tree import Tree
from .verdict import Verdict
from .watched import Watched

__all__ = ["relevant"]

_MOST = 120
"""Lines; a file that went as a whole is not worth showing as a whole."""


def relevant(
    watched: Watched,
    verdict: Verdict,
    before: Tree,
    after: Tree,
    modules: Iterable[str],
) -> list[str]:
    """Lines of unified diffs, without their ends.

    The symbol's own text where that changed; else the changed parts of the files
    that the verdict was read from (`modules`), those parts that name it first.
    """
    lines = _of_symbols(watched, verdict, before, after)
    if not lines:
        lines = _of_files(watched, verdict, before, after, dict.fromkeys(modules))
    if len(lines) > _MOST:
        left = len(lines) - _MOST
        lines = [*lines[:_MOST], f"… and {left} lines more"]
    return lines


def _of_symbols(
    watched: Watched, verdict: Verdict, before: Tree, after: Tree
) -> list[str]:
    symbols = [one for one in watched.candidates if ":" in one]
    if watched.how == "removal_probe":
        pairs = [(find(before, one), find(after, one)) for one in symbols]
    else:
        was, now = _first(symbols, before), _first(symbols, after)
        if now is None and verdict.moved_to is not None:
            now = find(after, verdict.moved_to)
        pairs = [(was, now)]
    return [line for was, now in pairs for line in _symbol(before, after, was, now)]


def _first(symbols: Iterable[str], tree: Tree) -> Symbol | None:
    return next((found for one in symbols if (found := find(tree, one))), None)


def _symbol(
    before: Tree, after: Tree, was: Symbol | None, now: Symbol | None
) -> list[str]:
    return list(
        unified_diff(
            was.source.decode(errors="replace").splitlines() if was else [],
            now.source.decode(errors="replace").splitlines() if now else [],
            _place(before, was),
            _place(after, now),
            lineterm="",
        )
    )


def _place(tree: Tree, symbol: Symbol | None) -> str:
    if symbol is None:
        return f"{tree.label}: not there"
    return f"{tree.label}: {symbol.path}:{symbol.line}"


def _of_files(
    watched: Watched,
    verdict: Verdict,
    before: Tree,
    after: Tree,
    modules: Iterable[str],
) -> list[str]:
    names = {one.rpartition(":")[2].rpartition(".")[2] for one in watched.candidates}
    if verdict.moved_to is not None:
        names.add(verdict.moved_to.rpartition(":")[2].rpartition(".")[2])
    named = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in sorted(names)))
    telling: list[str] = []
    others: list[str] = []
    for module in modules:
        head, hunks = _file(module, before, after)
        told = [hunk for hunk in hunks if any(named.search(line) for line in hunk)]
        for kept, chosen in ((telling, told), (others, [] if told else hunks)):
            if chosen:
                kept += [*head, *(line for hunk in chosen for line in hunk)]
    return telling or others


def _file(
    module: str, before: Tree, after: Tree
) -> tuple[Sequence[str], list[list[str]]]:
    """The two lines that name a file's diff, and its hunks."""

    def lines(tree: Tree) -> list[str]:
        return tree.text(module).decode(errors="replace").splitlines()

    def label(tree: Tree) -> str:
        return f"{tree.label}: {tree.path(module) or 'not there'}"

    head: list[str] = []
    hunks: list[list[str]] = []
    for line in unified_diff(
        lines(before), lines(after), label(before), label(after), lineterm=""
    ):
        if line.startswith("@@"):
            hunks.append([line])
        elif hunks:
            hunks[-1].append(line)
        else:
            head.append(line)
    return head, hunks
