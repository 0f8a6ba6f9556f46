"""How alike two definitions are, to tell what became of one that is gone."""

from __future__ import annotations

import ast
from collections import Counter
from difflib import SequenceMatcher
from typing import TypeAlias

from ascend_shims.upstream.facts.body import tokens
from ascend_shims.upstream.facts.signature import signature_of

__all__ = ["Named", "is_absorbed", "likeness", "names_alike"]

Named: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

_ABSORBED = 0.6
_CLOSER = 0.1
_TWIN = 0.7
"""Something that was there already counts as what the lost one was merged into if
it is a twin of it, or alike and more so than before."""

_TELLING = 12
"""Words below which a body is like any other."""


def _alike(one: Counter[str], other: Counter[str]) -> float:
    """Weighted overlap, from 0 to 1."""
    shared = sum((one & other).values())
    total = sum((one | other).values())
    return shared / total if total else 0.0


def likeness(old: Named, new: Named, name: str, other: str) -> float:
    """How likely `new` is what `old` became, from 0 to 1.

    Bodies are rewritten more often than parameters get other names, so for
    functions these count apart.
    """
    body = _alike(tokens(old), tokens(new))
    names = names_alike(name, other)
    plain = body * 0.8 + names * 0.2
    if isinstance(old, ast.ClassDef) or isinstance(new, ast.ClassDef):
        return plain
    one, two = (set(signature_of(f).named) - {"self", "cls"} for f in (old, new))
    if len(one) < 2 or not one & two:
        return plain
    shared = len(one & two) / len(one | two)
    return max(plain, body * 0.45 + shared * 0.25 + names * 0.3)


def is_absorbed(gone: Named, known: Named, score: float, name: str) -> bool:
    """Whether something that existed before has taken the lost one in."""
    if score < _ABSORBED or sum(tokens(gone).values()) < _TELLING:
        return False
    if score >= _TWIN:
        return True
    return score >= likeness(gone, known, name, known.name) + _CLOSER


def names_alike(one: str, other: str) -> float:
    return SequenceMatcher(None, one.lower(), other.lower()).ratio()
