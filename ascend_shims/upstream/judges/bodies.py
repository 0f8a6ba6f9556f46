"""Bodies that changed under somebody who carries a copy or inherits from them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ascend_shims.upstream.facts.body import arithmetic, ingredients
from ascend_shims.upstream.facts.classes import Class
from ascend_shims.upstream.judging import Case, Finding

__all__ = ["body_review", "constructor_review", "copy_review"]


def body_review(case: Case) -> Finding | None:
    """Review where a replaced body means something else than it did."""
    before, after = case.before, case.there
    if before.function is None or after.function is None:
        return None
    if before.quiet_body == after.quiet_body:
        return None
    return Finding(
        "review",
        "body-changed",
        f"the body of `{case.symbol}` changed: a copy of the old one may be stale",
    )


def copy_review(case: Case) -> Finding | None:
    """Review where an overridden method does something else with the same things.

    An override that was copied is stale then. A method that only gained helpers,
    attributes or arguments, and still computes all that it did, was extended, which
    an override need not follow.
    """
    before, after = case.before.function, case.there.function
    if before is None or after is None:
        return None
    if case.before.quiet_body == case.there.quiet_body:
        return None
    # A lock has no more than the hash of a body.
    extended = not case.old.is_stub and not ingredients(after) <= ingredients(before)
    if extended and not arithmetic(before) - arithmetic(after):
        return None
    return Finding(
        "review",
        "body-changed",
        f"`{case.symbol}` no longer computes what it did: an override that "
        "copied the old body is stale",
    )


def constructor_review(case: Case) -> Finding | None:
    """Review where inherited methods begin to read what only the constructor sets.

    Either a new argument of the constructor that ends up on `self`, or an attribute
    that the constructor set all along and no method read.
    """
    before, after = case.before.cls, case.there.cls
    if before is None or after is None or case.old.is_stub:
        return None
    old, new = _only_in_constructor(before), _only_in_constructor(after)
    grown = case.before.signature != case.there.signature
    read_before = {name for name, _ in _reads(before)}
    for name, reader in _reads(after):
        if name not in new or name in read_before:
            continue
        if name in old or grown:
            return Finding(
                "review",
                "body-changed",
                f"`{reader}` now reads `self.{name}`, which only the constructor of "
                f"`{case.symbol}` sets: a subclass that does not call it fails",
            )
    return None


def _only_in_constructor(cls: Class) -> set[str]:
    return {
        name
        for one in cls.mro
        for name, setters in one.set_on_self.items()
        if all(method == "__init__" for method, _ in setters)
        and one.scope.best(name) is None
    }


def _reads(cls: Class) -> Iterator[tuple[str, str]]:
    """Attributes of `self` read outside constructors, and the reading method."""
    for one in cls.mro:
        for method in one.methods():
            if method.name == "__init__":
                continue
            for node in ast.walk(method):
                if (
                    isinstance(node, ast.Attribute)
                    and isinstance(node.ctx, ast.Load)
                    and isinstance(node.value, ast.Name)
                    and node.value.id == "self"
                ):
                    yield node.attr, f"{one.qualname}.{method.name}"
