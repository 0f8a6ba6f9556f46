"""What an expression stands for: imports followed, constants put together.

Everything else is nothing, and nothing is ever run.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product
from typing import Any

from .results import called, partial_of, sources_in
from .scopes import Scope
from .values import (
    NOTHING,
    Local,
    Modules,
    Param,
    Partial,
    Ref,
    Returned,
    Seq,
    Space,
    Table,
    Text,
    Value,
    Values,
    VersionOf,
    merged,
)
from .views import (
    by_parameter,
    every_module,
    halves,
    is_class,
    items_of,
    member,
    module_named,
    of_object,
    view,
    zipped,
)

__all__ = ["evaluate", "lambda_name", "module_of", "tail"]

_DEEP = 24
"""Expressions that nest deeper are not followed."""

_THROUGH = frozenset(
    {"Version", "parse", "parse_version", "LooseVersion", "str", "base_version"}
)
"""What is still the version when it was given one."""

_SAME = frozenset({"list", "tuple", "sorted", "reversed", "set", "frozenset", "iter"})
_IMPORTS = frozenset(
    {"import_module", "__import__", "import_from_path", "import_string"}
)
_ITEMS = 64


def tail(node: ast.expr | None) -> str:
    """The last identifier of a dotted expression, else nothing."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def evaluate(node: ast.expr | None, scope: Scope, deep: int = 0) -> Values:
    """What `node` may stand for in `scope`."""
    if node is None or deep > _DEEP:
        return NOTHING
    how = _KINDS.get(type(node))
    return NOTHING if how is None else how(node, scope, deep + 1)


def _name(node: ast.Name, scope: Scope, _deep: int) -> Values:
    found = scope.lookup(node.id)
    if found is None and node.id in ("setattr", "delattr"):
        return (Partial(node.id),)
    return found or NOTHING


def _lambda(node: ast.Lambda, scope: Scope, _deep: int) -> Values:
    return (Local(node, lambda_name(node), scope),)


def lambda_name(node: ast.Lambda) -> str:
    return f"lambda-{node.lineno}-{node.col_offset}"


def _constant(node: ast.Constant, _scope: Scope, _deep: int) -> Values:
    return (Text(node.value),) if isinstance(node.value, str) else NOTHING


def _attribute(node: ast.Attribute, scope: Scope, deep: int) -> Values:
    return member(evaluate(node.value, scope, deep), node.attr)


def _subscript(node: ast.Subscript, scope: Scope, deep: int) -> Values:
    found: list[Values] = []
    keys = evaluate(node.slice, scope, deep)
    for value in evaluate(node.value, scope, deep):
        if isinstance(value, Modules):
            found.append(module_of(node.slice, scope, deep))
        elif isinstance(value, Returned):
            index = _index(node.slice)
            if index is not None:
                found.append((replace(value, path=(*value.path, str(index))),))
        elif isinstance(value, Space):
            found += [
                (Ref((*value.of.parts, key.value)),)
                for key in keys
                if isinstance(key, Text)
            ]
        elif isinstance(value, Table):
            found += [v for k, v in value.items if not keys or set(k) & set(keys)]
        elif isinstance(value, Seq):
            index = _index(node.slice)
            if index is not None and -len(value.items) <= index < len(value.items):
                found.append(value.items[index])
        elif isinstance(value, Ref) and is_class(value.parts[-1]):
            # A generic class, with its parameters.
            found.append((value,))
    return merged(*found)


def module_of(node: ast.expr, scope: Scope, deep: int = 0) -> Values:
    """The module that an expression names, or whose `__name__` it is."""
    if isinstance(node, ast.Attribute) and node.attr == "__name__":
        known = evaluate(node.value, scope, deep)
        if any(isinstance(value, Ref) for value in known):
            return known
    return merged(*map(module_named, evaluate(node, scope, deep)))


def _relative(node: ast.Call, scope: Scope, deep: int) -> Values:
    """`import_module(".scheduler", "vllm.v1.core")`."""
    given = [k.value for k in node.keywords if k.arg == "package"]
    around = evaluate((*node.args[1:2], *given, None)[0], scope, deep)
    found: list[Value] = []
    names = evaluate(node.args[0], scope, deep)
    for name, package in product(names, around):
        if isinstance(name, Text) and isinstance(package, Text):
            bare = name.value.lstrip(".")
            home = package.value.split(".")
            up = len(name.value) - len(bare) - 1
            if 0 <= up < len(home):
                found.append(Text(".".join([*home[: len(home) - up], bare])))
    return merged(*map(module_named, found))


def _index(node: ast.expr) -> int | None:
    try:
        index = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return index if type(index) is int else None


def _either(node: ast.BoolOp | ast.IfExp, scope: Scope, deep: int) -> Values:
    if isinstance(node, ast.IfExp):
        both: Iterable[ast.expr] = (node.body, node.orelse)
    else:
        both = node.values
    return merged(*(evaluate(one, scope, deep) for one in both))


def _sum(node: ast.BinOp, scope: Scope, deep: int) -> Values:
    if isinstance(node.op, ast.Mod):
        return _formatted(node, scope, deep)
    if not isinstance(node.op, ast.Add):
        return NOTHING
    left = evaluate(node.left, scope, deep)
    right = evaluate(node.right, scope, deep)
    found: list[Value] = []
    for one, two in product(left, right):
        if isinstance(one, Text) and isinstance(two, Text):
            found.append(Text(one.value + two.value))
        elif isinstance(one, Seq) and isinstance(two, Seq):
            found.append(Seq((*one.items, *two.items)))
    return merged(tuple(found))


def _formatted(node: ast.BinOp, scope: Scope, deep: int) -> Values:
    """`"pre_%s" % name`."""
    left = evaluate(node.left, scope, deep)
    texts = [v.value for v in left if isinstance(v, Text)]
    given = evaluate(node.right, scope, deep) if texts else ()
    return merged(
        tuple(
            Text(text.replace("%s", one.value))
            for text, one in product(texts, given)
            if isinstance(one, Text) and text.count("%") == text.count("%s") == 1
        )
    )


def _joined(node: ast.JoinedStr, scope: Scope, deep: int) -> Values:
    made: list[str] = [""]
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            if part.format_spec is not None or part.conversion not in (-1, 115):
                return NOTHING
            part = part.value
        texts = [v.value for v in evaluate(part, scope, deep) if isinstance(v, Text)]
        made = [one + text for one, text in product(made, texts)][:_ITEMS]
    return merged(tuple(Text(one) for one in made))


def _sequence(node: ast.List | ast.Tuple | ast.Set, scope: Scope, deep: int) -> Values:
    items: list[Values] = []
    for one in node.elts[:_ITEMS]:
        if isinstance(one, ast.Starred):
            for value in evaluate(one.value, scope, deep):
                items += value.items if isinstance(value, Seq) else ()
        else:
            items.append(evaluate(one, scope, deep))
    return (Seq(tuple(items)),)


def _table(node: ast.Dict, scope: Scope, deep: int) -> Values:
    pairs = []
    for key, value in zip(node.keys[:_ITEMS], node.values, strict=False):
        if key is not None:
            found = evaluate(key, scope, deep)
            pairs.append((found, evaluate(value, scope, deep)))
    return (Table(tuple(pairs)),)


def _named(node: ast.NamedExpr, scope: Scope, deep: int) -> Values:
    values = evaluate(node.value, scope, deep)
    scope.bind(node.target.id, values)
    return values


def _comprehension(
    node: ast.ListComp | ast.SetComp | ast.GeneratorExp, scope: Scope, deep: int
) -> Values:
    """Of one loop over something written out; its conditions are taken as met."""
    if len(node.generators) != 1 or not isinstance(node.generators[0].target, ast.Name):
        return NOTHING
    loop = node.generators[0]
    inner, items = Scope(scope), []
    for value in evaluate(loop.iter, scope, deep):
        for item in value.items if isinstance(value, Seq) else ():
            inner.names = {loop.target.id: item}  # type: ignore[attr-defined]
            items.append(evaluate(node.elt, inner, deep))
    return (Seq(tuple(items)),) if items else NOTHING


# Calls -----------------------------------------------------------------------------


def _call(node: ast.Call, scope: Scope, deep: int) -> Values:
    name, args = tail(node.func), node.args
    if name in _IMPORTS and args:
        if isinstance(args[0], ast.Constant) and str(args[0].value).startswith("."):
            return _relative(node, scope, deep)
        return module_of(args[0], scope, deep)
    if name == "partial" and args:
        return partial_of(node, evaluate(args[0], scope, deep))
    if name in ("getattr", "getattr_static") and len(args) >= 2:
        return _getattr(args, scope, deep)
    if name == "type" and len(args) == 1:
        return member(evaluate(args[0], scope, deep), "__class__")
    if name == "cast" and len(args) == 2:
        return evaluate(args[1], scope, deep)
    if name in ("staticmethod", "classmethod") and len(args) == 1:
        return evaluate(args[0], scope, deep)
    if name in ("vars", "getmodule", "unwrap") and len(args) == 1:
        return of_object(name, evaluate(args[0], scope, deep))
    if name == "version" and len(args) == 1:
        asked = evaluate(args[0], scope, deep)
        return tuple(
            VersionOf(v.value.replace("-", "_")) for v in asked if isinstance(v, Text)
        )
    owners: Values = ()
    if isinstance(node.func, ast.Attribute):
        owners = evaluate(node.func.value, scope, deep)
        found = _method(node, node.func, owners, scope, deep) if owners else ()
        if found:
            return found
    if name in _SAME and len(args) == 1:
        return items_of(evaluate(args[0], scope, deep))
    if name == "dict" and len(args) <= 1:
        return _dict(node, scope, deep)
    if name == "zip":
        return zipped([evaluate(one, scope, deep) for one in args])
    if name == "enumerate" and args:
        several = items_of(evaluate(args[0], scope, deep))
        return tuple(
            Seq(tuple((Seq((NOTHING, item)),) for item in one.items))
            for one in several
            if isinstance(one, Seq)
        )
    if name in _THROUGH and args:
        given = evaluate(args[0], scope, deep)
        same = tuple(v for v in given if isinstance(v, VersionOf | Text))
        if same:
            return same
    if isinstance(node.func, ast.Name | ast.Attribute | ast.Lambda | ast.Call):
        made = called(node, owners, scope, deep)
        if made:
            return made
    if scope.reader is not None and scope.reader.reads_source:
        return sources_in(node, scope, deep)
    return NOTHING


def _getattr(args: list[ast.expr], scope: Scope, deep: int) -> Values:
    owners = evaluate(args[0], scope, deep)
    found: list[Values] = []
    for name in evaluate(args[1], scope, deep):
        if isinstance(name, Text) and name.value.isidentifier():
            found.append(member(owners, name.value))
        elif isinstance(name, Param):
            found.append(by_parameter(owners, name))
    if len(args) > 2:
        found.append(evaluate(args[2], scope, deep))
    return merged(*found)


def _method(
    node: ast.Call, func: ast.Attribute, owners: Values, scope: Scope, deep: int
) -> Values:
    """A call on something that is written out, or on `sys.modules`."""
    found: list[Values] = []
    args = node.args
    for owner in owners:
        if isinstance(owner, Modules) and func.attr in ("get", "pop") and args:
            found += [module_named(key) for key in evaluate(args[0], scope, deep)]
        elif isinstance(owner, Modules) and func.attr in ("values", "items"):
            found.append(every_module(func.attr))
        elif isinstance(owner, Table) and not args:
            found.append(view(owner, func.attr))
        elif isinstance(owner, Table | Space) and func.attr in ("get", "pop") and args:
            read = ast.Subscript(func.value, args[0], ast.Load())
            found.append(_subscript(read, scope, deep))
        elif isinstance(owner, VersionOf) and func.attr in ("split", "partition"):
            found.append((Seq(((owner,), NOTHING)),))
        elif isinstance(owner, VersionOf):
            found.append((owner,))
        elif isinstance(owner, Text) and func.attr in ("rsplit", "rpartition"):
            found.append(halves(owner, func.attr))
        elif isinstance(owner, Text) and func.attr == "split" and not args:
            words = tuple((Text(word),) for word in owner.value.split())
            found.append((Seq(words),))
        elif isinstance(owner, Param) and func.attr == "items" and not args:
            pair = ((replace(owner, cut="key"),), (replace(owner, cut="value"),))
            found.append((Seq(((Seq(pair),),)),))
        elif isinstance(owner, Param) and func.attr in ("rsplit", "rpartition"):
            first = ((replace(owner, cut="head"),),)
            last = ((replace(owner, cut="tail"),),)
            middle = (NOTHING,) if func.attr == "rpartition" else ()
            found.append((Seq((*first, *middle, *last)),))
    return merged(*found)


def _dict(node: ast.Call, scope: Scope, deep: int) -> Values:
    pairs: list[tuple[Values, Values]] = []
    for value in evaluate(node.args[0], scope, deep) if node.args else ():
        if isinstance(value, Table):
            pairs += value.items
    pairs += [
        ((Text(k.arg),), evaluate(k.value, scope, deep))
        for k in node.keywords
        if k.arg is not None
    ]
    return (Table(tuple(pairs)),)


_KINDS: dict[type, Callable[[Any, Scope, int], Values]] = {
    ast.Name: _name,
    ast.Constant: _constant,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.BoolOp: _either,
    ast.IfExp: _either,
    ast.BinOp: _sum,
    ast.JoinedStr: _joined,
    ast.List: _sequence,
    ast.Tuple: _sequence,
    ast.Set: _sequence,
    ast.Dict: _table,
    ast.NamedExpr: _named,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.Call: _call,
    ast.Lambda: _lambda,
}
