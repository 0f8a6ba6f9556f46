"""What functions of the scanned code give back, and names of its other modules.

Neither is looked up before something is done to it. `called` only notes what would
have to be asked; `Results` asks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from .values import (
    NOTHING,
    Local,
    OwnClass,
    Param,
    Partial,
    Ref,
    Returned,
    Seq,
    SourceOf,
    Values,
    merged,
)
from .views import member

if TYPE_CHECKING:
    from .reader import Reader
    from .scopes import Scope

__all__ = ["Results", "called", "partial_of", "sources_in"]

_MOST_ARGUMENTS = 8
_DEEP = 5
"""Functions that give what functions give."""
_BUDGET = 300
"""Functions that are read for what they give, in one file."""


def called(node: ast.Call, owners: Values, scope: Scope, deep: int) -> Values:
    """A call of a function of the scanned code, and of a class of it an instance.

    Args:
        owners: of a method, what it is taken of.
    """
    from .evaluate import evaluate

    if len(node.args) > _MOST_ARGUMENTS:
        return NOTHING
    found: list[Values] = []
    me: OwnClass | None = None
    if isinstance(node.func, ast.Attribute):
        name = node.func.attr
        functions = member(owners, name)
        for owner in owners:
            if isinstance(owner, OwnClass):
                me = owner
                if not functions and owner.bases:
                    asked = Returned(owner, (), me=owner, method=name)
                    found.append((_given(asked, node, scope, deep),))
    else:
        functions = evaluate(node.func, scope, deep)
    for function in functions:
        if isinstance(function, OwnClass):
            found.append((function,))
        elif isinstance(function, Local) or _is_own(function, scope):
            asked = Returned(function, (), me=me)  # type: ignore[arg-type]
            found.append((_given(asked, node, scope, deep),))
    return merged(*found)


def _is_own(value: object, scope: Scope) -> bool:
    if not isinstance(value, Ref) or scope.reader is None:
        return False
    return value.parts[0] in scope.reader.setting.own and len(value.parts) > 1


def _given(asked: Returned, node: ast.Call, scope: Scope, deep: int) -> Returned:
    from .evaluate import evaluate

    return replace(
        asked,
        arguments=tuple(evaluate(one, scope, deep) for one in node.args),
        keywords=tuple(
            (k.arg, evaluate(k.value, scope, deep)) for k in node.keywords if k.arg
        ),
    )


def partial_of(node: ast.Call, functions: Values) -> Values:
    """`partial(setattr, Engine)`."""
    for function in functions:
        if isinstance(function, Partial):
            return (Partial(function.name, (*function.given, *node.args[1:])),)
    return NOTHING


def sources_in(node: ast.Call, scope: Scope, deep: int) -> Values:
    """The text that `getsource` gives, and whatever is made of it."""
    from .evaluate import evaluate, tail

    if tail(node.func) in ("getsource", "getsourcelines"):
        return (SourceOf(node.lineno),)
    asked: Iterable[ast.expr] = node.args
    if isinstance(node.func, ast.Attribute):
        asked = (node.func.value, *node.args)
    found = (evaluate(one, scope, deep) for one in asked)
    return merged(tuple(v for vs in found for v in vs if isinstance(v, SourceOf)))


class Results:
    """Asks functions and modules of the scanned code, each question once."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: dict[Returned | Ref, Values] = {}
        self._deep = 0
        self._left = _BUDGET

    def of(self, values: Values) -> Values:
        """The values with nothing in them that would have to be asked."""
        if not any(isinstance(v, Returned) for v in values):
            return values
        return merged(
            *(self._asked(v) if isinstance(v, Returned) else (v,) for v in values)
        )

    def everywhere(self, values: Values) -> Values:
        """The same, and names of the scanned code's other modules looked up there."""
        return merged(*(self._looked_up(value) for value in self.of(values)))

    def _looked_up(self, value: object) -> Values:
        if isinstance(value, Ref) and value.parts[0] in self._reader.setting.own:
            if value not in self._known:
                self._known[value] = (value,)
                found = self._reader.library.find(value.parts)
                self._known[value] = self.of(found) or (value,)
            return self._known[value]
        return (value,)  # type: ignore[return-value]

    def _asked(self, asked: Returned) -> Values:
        bare = replace(asked, path=())
        if bare not in self._known:
            self._known[bare] = NOTHING
            if self._deep < _DEEP and self._left > 0:
                self._deep += 1
                self._left -= 1
                self._known[bare] = self.of(self._run(bare))
                self._deep -= 1
        values = self._known[bare]
        for name in asked.path:
            values = (
                _item(values, int(name)) if name.isdigit() else member(values, name)
            )
        return values

    def _run(self, asked: Returned) -> Values:
        found: list[Values] = []
        for function in self._functions(asked):
            if isinstance(function, OwnClass):
                found.append((function,))
            elif isinstance(function, Local) and function.scope is not None:
                reader = function.scope.reader
                if reader is not None:
                    found.append(reader.returned(function, asked))
        return merged(*found)

    def _functions(self, asked: Returned) -> Values:
        function = asked.function
        if isinstance(function, OwnClass):
            return self.inherited(function, asked.method)
        given = [*asked.arguments, *(values for _, values in asked.keywords)]
        if isinstance(function, Ref) and given and not any(map(_is_known, given)):
            # Whatever it makes of that is nothing of upstream's.
            return NOTHING
        return self.everywhere((function,))

    def inherited(self, owner: OwnClass, name: str, deep: int = 0) -> Values:
        """A member of a class, or of the first of its bases that has it."""
        mine = owner.names.get(name)
        if mine is not None or deep > _DEEP:
            return mine or NOTHING
        for base in self.everywhere(owner.bases):
            if isinstance(base, OwnClass) and base is not owner:
                found = self.inherited(base, name, deep + 1)
                if found:
                    return found
        return NOTHING


def _is_known(values: Values) -> bool:
    return any(not isinstance(value, Param) for value in values)


def _item(values: Values, index: int) -> Values:
    found = [
        v.items[index] for v in values if isinstance(v, Seq) and index < len(v.items)
    ]
    return merged(*found)
