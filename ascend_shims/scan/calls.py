"""Calls that patch: `setattr`, `mock.patch`, wrapt, helpers of the code's own."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from .attributes import PUT_BACK, delete_attribute, set_attribute, set_of_object
from .classes import made_by_type
from .conditional import deferred
from .evaluate import evaluate, tail
from .handed import decorates, own_function
from .mocks import is_mock, mock, mocked, modules, wrapt, wrapt_call
from .named import by_name, is_patchy, name_of
from .privates import note_private, private_getattr
from .raw import Call
from .tables import mutated, set_item
from .values import (
    Local,
    Param,
    Partial,
    Ref,
    SourceOf,
    Space,
    Text,
    Values,
)
from .views import dotted
from .writes import NONE, Given, given_by, write

if TYPE_CHECKING:
    from .reader import Reader

__all__ = ["call", "decorated", "entered"]

_WRAPT = ("wrap_function_wrapper", "wrap_object", "patch_function_wrapper")
_MUTATORS = frozenset(
    [
        "append",
        "extend",
        "insert",
        "remove",
        "pop",
        "clear",
        "update",
        "setdefault",
        "add",
        "discard",
        "popitem",
    ]
)
_LATER = ("callback", "addCleanup", "addfinalizer", "register")
_ENTERING = ("enter_context", "enter_async_context")


def call(reader: Reader, node: ast.Call) -> None:
    """Whatever a call changes."""
    if id(node) in reader.done:
        return
    name = tail(node.func)
    handler = _HANDLERS.get(name)
    if handler is not None and handler(reader, node):
        return
    if handler is None and _by_another_name(reader, node):
        return
    if name in _MUTATORS and isinstance(node.func, ast.Attribute):
        mutated(reader, node, node.func)
    elif isinstance(node.func, ast.Call) and is_patchy(reader, node.func):
        reader.done.add(id(node.func))
        value = node.args[0] if node.args else None
        by_name(reader, node.func, given_by(reader, value), name_of(reader, value))
    elif is_patchy(reader, node):
        by_name(reader, node, NONE, "")
    if isinstance(node.func, ast.Attribute) and node.func.attr[0] == "_":
        note_private(reader, node.func, called=True)
    elif isinstance(node.func, ast.Call) and tail(node.func.func) == "getattr":
        private_getattr(reader, node.func, called=True)
    own_function(reader, node)


def _by_another_name(reader: Reader, node: ast.Call) -> bool:
    """`_set = setattr`, `partial(setattr, Engine)(…)`."""
    if not isinstance(node.func, ast.Name | ast.Call):
        return False
    for value in evaluate(node.func, reader.scope):
        if isinstance(value, Partial):
            args = [*value.given, *node.args]
            whole = ast.Call(ast.Name(value.name, ast.Load()), args, node.keywords)
            call(reader, ast.copy_location(whole, node))
            return True
    return False


def decorated(
    reader: Reader,
    decorator: ast.expr,
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef,
    values: Values,
) -> Values:
    """What a decorator patches; gives what the function's first parameter is then.

    Args:
        values: what is decorated.
    """
    if id(decorator) not in reader.done:
        decorates(reader, decorator, values)
    if not isinstance(decorator, ast.Call) or id(decorator) in reader.done:
        return ()
    name = tail(decorator.func)
    if name in ("when_imported", "on_import") and decorator.args:
        return modules(evaluate(decorator.args[0], reader.scope))
    is_class = isinstance(node, ast.ClassDef)
    given = Given(() if is_class else values, None, node.name)
    if name == "patch_function_wrapper":
        wrapt(reader, decorator, given)
    elif is_mock(reader, decorator):
        # In force while the function runs, and put back after it.
        mock(reader, decorator, undone_at=PUT_BACK)
    elif is_patchy(reader, decorator):
        by_name(reader, decorator, given, node.name)
    reader.done.add(id(decorator))
    return ()


def entered(reader: Reader, node: ast.expr) -> None:
    """The expression of a `with`: what it patches is put back at its end."""
    if isinstance(node, ast.Call) and is_mock(reader, node):
        mock(reader, node, undone_at=PUT_BACK)
        reader.done.add(id(node))
    reader.expressions(node)


def _getsource(reader: Reader, node: ast.Call) -> bool:
    for value in evaluate(node.args[0], reader.scope) if node.args else ():
        if isinstance(value, Ref) and reader.setting.is_upstream(value.parts):
            write(reader, node.lineno, "source-read", value.parts, NONE)
        elif isinstance(value, Param) and value.name:
            write(reader, node.lineno, "source-read", (), NONE, value)
    return True


def _compile(reader: Reader, node: ast.Call) -> bool:
    reader.facts.executes.add(reader.place.function)
    if reader.reads_source:
        for argument in node.args[:1]:
            for value in evaluate(argument, reader.scope):
                if isinstance(value, SourceOf):
                    reader.facts.rewritten.add(value.line)
    return False


def _exec(reader: Reader, node: ast.Call) -> bool:
    _compile(reader, node)
    for argument in node.args[1:]:
        for value in evaluate(argument, reader.scope):
            if isinstance(value, Space) and reader.setting.is_foreign(value.of.parts):
                what = ".".join(value.of.parts)
                write(
                    reader,
                    node.lineno,
                    "source-text",
                    (),
                    NONE,
                    unresolved=f"whatever the text run in `{what}` defines",
                )
    return False


def _replaced_code(reader: Reader, node: ast.Call) -> bool:
    func = node.func
    if isinstance(func, ast.Attribute) and tail(func.value) == "__code__":
        assert isinstance(func.value, ast.Attribute)
        for value in evaluate(func.value.value, reader.scope):
            if isinstance(value, Ref) and reader.setting.is_upstream(value.parts):
                write(reader, node.lineno, "source-text", value.parts, NONE)
        return True
    return False


def _hooked(reader: Reader, node: ast.Call) -> bool:
    """`register_post_import_hook(function, "module")`: it is called with that."""
    if len(node.args) < 2:
        return True
    for hook in evaluate(node.args[0], reader.scope):
        for module in evaluate(node.args[1], reader.scope):
            if isinstance(hook, Local) and isinstance(module, Text):
                here = reader.source.module.split(".")
                callee = (*here, *hook.qualname.split("."))
                given: tuple[Values, ...] = ((Ref(dotted(module.value)),),)
                called = Call(
                    callee, node.lineno, given, (), reader.place, reader.gates
                )
                reader.facts.calls.append(called)
    return True


def _entering(reader: Reader, node: ast.Call) -> bool:
    for argument in node.args:
        entered(reader, argument)
    return False


_HANDLERS: dict[str, Callable[[Reader, ast.Call], bool]] = {
    "setattr": set_attribute,
    "__setattr__": set_of_object,
    "delattr": delete_attribute,
    "__delattr__": delete_attribute,
    "patch": mocked,
    "object": mocked,
    "dict": mocked,
    "multiple": mocked,
    "getsource": _getsource,
    "getsourcelines": _getsource,
    "compile": _compile,
    "exec": _exec,
    "getattr": private_getattr,
    "type": made_by_type,
    "setitem": set_item,
    "__setitem__": set_item,
    "replace": _replaced_code,
    "register_post_import_hook": _hooked,
    **dict.fromkeys(_WRAPT, wrapt_call),
    **dict.fromkeys(_ENTERING, _entering),
    **dict.fromkeys(_LATER, deferred),
}
