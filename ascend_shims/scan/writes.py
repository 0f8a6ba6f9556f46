"""Statements that change something of upstream, and what they put there."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..registry.model import How
from ..upstream.facts.signature import Signature, signature_of
from .evaluate import evaluate, tail
from .found import Form, Gate
from .raw import Raw
from .tabular import may_be_table
from .values import (
    Local,
    Modules,
    OwnClass,
    Param,
    Ref,
    Returned,
    Seq,
    Space,
    Table,
    Text,
    Value,
    Values,
    merged,
)
from .views import dotted, is_class

if TYPE_CHECKING:
    from .reader import Reader

__all__ = ["NONE", "Given", "delete", "given_by", "store", "write"]

_CODE = ("__code__", "__defaults__", "__kwdefaults__", "__closure__")
_ABOUT = ("__doc__", "__annotations__")
"""What only readers look at."""
_WRAPPERS = ("staticmethod", "classmethod", "property", "wraps", "partial")
_SETTINGS = re.compile(
    r"^torch(_npu)?\.(\w+\.)*_?config\.\w+$|^torch\.backends\."
    r"|^sys\.(argv|path|std(in|out|err)|\w+hook|meta_path|path_hooks|ps[12]"
    r"|dont_write_bytecode|tracebacklimit)$"
    r"|^threading\.excepthook$|^os\.environ$"
)
"""Attributes that their owner means to be set: no patch."""


@dataclass(frozen=True)
class Given:
    """What is put into a place."""

    values: Values = ()
    node: ast.expr | None = None
    text: str = ""
    """Where it is no expression."""


NONE = Given()


def given_by(reader: Reader, node: ast.expr | None) -> Given:
    return NONE if node is None else Given(evaluate(node, reader.scope), node)


def store(
    reader: Reader, target: ast.expr, given: Given, line: int, *, adding: bool = False
) -> None:
    """An assignment to one target."""
    if isinstance(target, ast.Name):
        # `+=` leaves what was there among the alternatives.
        before = evaluate(target, reader.scope) if adding else ()
        reader.scope.bind(target.id, merged(before, given.values))
        if given.values and is_class(target.id):
            _note_class(reader, target.id, given.values)
    elif isinstance(target, ast.Tuple | ast.List):
        _several(reader, target, given, line)
    elif isinstance(target, ast.Starred):
        store(reader, target.value, NONE, line)
    elif isinstance(target, ast.Attribute):
        owners = reader.results.of(evaluate(target.value, reader.scope))
        _note_alternatives(reader, target.value, owners)
        for owner in owners:
            _attribute(reader, owner, target.attr, given, line, "assignment")
    elif isinstance(target, ast.Subscript):
        _item(reader, target, given, line)


def _several(
    reader: Reader, target: ast.Tuple | ast.List, given: Given, line: int
) -> None:
    nodes: list[ast.expr | None] = [None] * len(target.elts)
    written = getattr(given.node, "elts", ())
    if len(written) == len(target.elts):
        nodes = list(written)
    values = given.values
    if any(isinstance(v, Returned) for v in values):
        values = reader.results.of(values)
    seqs = [v for v in values if isinstance(v, Seq)]
    for index, one in enumerate(target.elts):
        if nodes[index] is not None:
            its = given_by(reader, nodes[index])
        else:
            found = [s.items[index] for s in seqs if index < len(s.items)]
            its = Given(merged(*found))
            if len(found) > 1 and values is not given.values:
                _either(reader, its.values)
        store(reader, one, its, line)


def _note_class(reader: Reader, name: str, values: Values) -> None:
    """A variable called like a class is it, wherever it goes under that name."""
    asked = reader.results.of(values)
    kept = tuple(v for v in asked if isinstance(v, Ref | Param) and v != Ref((name,)))
    if kept:
        named = reader.facts.named
        named[name] = merged(named.get(name, ()), kept)


def _note_alternatives(reader: Reader, node: ast.expr, owners: Values) -> None:
    """What a function gives first of several: one of them is meant."""
    if len(owners) < 2 or reader.silent:
        return
    if any(isinstance(v, Returned) for v in evaluate(node, reader.scope)):
        _either(reader, owners)


def _either(reader: Reader, values: Values) -> None:
    refs = [v.parts for v in values if isinstance(v, Ref)]
    reader.facts.either += [(refs[0], other) for other in refs[1:]]


def _attribute(
    reader: Reader,
    owner: Value,
    name: str,
    given: Given,
    line: int,
    form: Form,
) -> None:
    if isinstance(owner, OwnClass):
        if owner.module == tuple(reader.source.module.split(".")):
            owner.names[name] = merged(owner.names.get(name, ()), given.values)
    elif isinstance(owner, Param):
        write(reader, line, form, (), given, owner.at(name))
    elif isinstance(owner, Ref):
        names = (*owner.parts, name)
        if name in _CODE and len(owner.parts) > 1:
            form, names = "source-text", owner.parts
        elif name in _ABOUT:
            return
        write(reader, line, form, names, given)


def _item(reader: Reader, target: ast.Subscript, given: Given, line: int) -> None:
    owners = evaluate(target.value, reader.scope)
    keys = evaluate(target.slice, reader.scope)
    for owner in owners:
        if isinstance(owner, Modules):
            if reader.loads_files and not any(isinstance(k, Text) for k in keys):
                # What is loaded from a file is made known under its own name.
                continue
            for names, param in _named(keys):
                kept = None if param is None else replace(param, is_module=True)
                write(reader, line, "sys-modules", names, given, kept)
            if not keys:
                why = "the name of the module is not written out"
                write(reader, line, "sys-modules", (), given, unresolved=why)
        elif isinstance(owner, Space):
            for names, _ in _named(keys):
                write(reader, line, "namespace", (*owner.of.parts, *names), given)
            if not keys and reader.setting.is_foreign(owner.of.parts):
                why = f"names of `{'.'.join(owner.of.parts)}` that are not written out"
                write(reader, line, "namespace", (), given, unresolved=why)
        elif isinstance(owner, Ref) and may_be_table(reader, owner.parts):
            write(reader, line, "table", owner.parts, given)
        elif isinstance(owner, Table) and isinstance(target.value, ast.Name):
            added = Table((*owner.items, (keys, given.values)))
            reader.scope.bind(target.value.id, (added,))


def _named(keys: Values) -> list[tuple[tuple[str, ...], Param | None]]:
    found: list[tuple[tuple[str, ...], Param | None]] = []
    for key in keys:
        if isinstance(key, Text) and dotted(key.value):
            found.append((dotted(key.value), None))
        elif isinstance(key, Param):
            found.append(((), key))
    return found


def delete(reader: Reader, target: ast.expr, line: int) -> None:
    """`del target`."""
    if isinstance(target, ast.Attribute):
        for owner in evaluate(target.value, reader.scope):
            if isinstance(owner, Ref):
                write(reader, line, "delete", (*owner.parts, target.attr), NONE)
    elif isinstance(target, ast.Subscript):
        keys = evaluate(target.slice, reader.scope)
        for owner in evaluate(target.value, reader.scope):
            if isinstance(owner, Modules):
                for names, param in _named(keys):
                    write(reader, line, "sys-modules", names, NONE, param)
            elif isinstance(owner, Space):
                for names, _ in _named(keys):
                    write(reader, line, "delete", (*owner.of.parts, *names), NONE)
            elif isinstance(owner, Ref) and may_be_table(reader, owner.parts):
                write(reader, line, "table", owner.parts, NONE)
    elif isinstance(target, ast.Tuple | ast.List):
        for one in target.elts:
            delete(reader, one, line)


def write(
    reader: Reader,
    line: int,
    form: Form,
    names: tuple[str, ...],
    given: Given,
    template: Param | None = None,
    *,
    unresolved: str = "",
    how: How | None = None,
    undone_at: int = 0,
) -> None:
    """Note that a statement changes what `names` spells."""
    own = bool(names) and names[0] in reader.setting.own
    if names and not own:
        if not reader.setting.is_foreign(names):
            return
        if len(names) < 2 and form != "sys-modules":
            return
        if _SETTINGS.search(".".join(names)):
            return
        if "__class__" in names[1:-1]:
            at = names.index("__class__")
            what, of = ".".join(names[at + 1 :]), ".".join(names[:at])
            unresolved, names = f"`{what}` of the class that `{of}` is of", ()
    elif own and (len(names) < 3 or ".".join(names[:-1]) == reader.source.module):
        return
    restores = names != () and _puts_back(reader, names, given)
    if template is not None and template in given.values:
        restores = True
    reader.emit(
        Raw(
            line,
            form,
            how or _how(reader, form, names or _last(template), given),
            names,
            reader.place,
            reader.gates,
            unresolved=unresolved,
            replacement=_spelled(reader, given),
            ours=None if restores else _parameters(given),
            adds=_adds(reader, names or _last(template), given),
            restores=restores,
            undone_at=undone_at,
            own=own,
            template=template,
            puts_code=_function(given) is not None
            or any(isinstance(v, OwnClass) for v in given.values),
        ),
        _function(given),
    )


def _spelled(reader: Reader, given: Given) -> str:
    return given.text or (reader.lines.spelled(given.node) if given.node else "")


def _last(template: Param | None) -> tuple[str, ...]:
    path = template.path if template is not None else ()
    return tuple(part for part in path[-1:] if isinstance(part, str))


def _puts_back(reader: Reader, names: tuple[str, ...], given: Given) -> bool:
    """Whether what is put there is what was there: a name that was given it before."""
    if Ref(names) not in given.values:
        return False
    if given.node is None:
        return True
    # `a.b = a.b` changes nothing, and puts nothing back.
    written = ".".join(names[-2:])
    spelled = _spelled(reader, given)
    return not spelled.endswith(written) or isinstance(given.node, ast.Name)


def _how(reader: Reader, form: Form, names: tuple[str, ...], given: Given) -> How:
    if form in ("table", "sys-modules"):
        return "reads_attribute"
    last = names[-1] if names else ""
    if form == "delete":
        return "imports_name" if _is_class(last) else "reads_attribute"
    if form == "source-text":
        return "replaces_function"
    if _wraps(reader, names, given):
        return "wraps_function"
    if _function(given) is not None:
        return "replaces_function"
    if _is_class(last) or any(isinstance(v, OwnClass) for v in given.values):
        return "replaces_class_binding"
    node = given.node
    if last.isupper() or (
        isinstance(node, ast.Constant | ast.List | ast.Dict | ast.Set | ast.Tuple)
    ):
        return "reads_attribute"
    return "replaces_function"


def _is_class(name: str) -> bool:
    bare = name.lstrip("_")
    return bare[:1].isupper() and not bare.isupper()


def _wraps(reader: Reader, names: tuple[str, ...], given: Given) -> bool:
    """Whether the original is called by what stands in its place."""
    if not names:
        return False
    node, original = given.node, Ref(names)
    if isinstance(node, ast.Call) and tail(node.func) not in _WRAPPERS[:3]:
        for argument in node.args:
            if original in evaluate(argument, reader.scope):
                return True
    function = _function(given)
    kept = reader.scope.called(original) if function is not None else ()
    if function is None or not kept:
        return False
    return any(
        isinstance(inner, ast.Name)
        and isinstance(inner.ctx, ast.Load)
        and inner.id in kept
        and original in (reader.scope.lookup(inner.id) or ())
        for inner in ast.walk(function)
    )


def _function(
    given: Given,
) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | None:
    """The definition of what is put there, where it is in this file."""
    node = given.node
    while isinstance(node, ast.Call) and tail(node.func) in _WRAPPERS and node.args:
        node = node.args[0]
    if isinstance(node, ast.Lambda):
        return node
    for value in given.values:
        if isinstance(value, Local):
            return value.node
    return None


def _parameters(given: Given) -> Signature | None:
    function = _function(given)
    if function is None or isinstance(given.node, ast.Call):
        return None
    if isinstance(function, ast.Lambda):
        made = ast.FunctionDef("lambda_", function.args, [], [])
        return signature_of(made)
    return signature_of(function)


def _adds(reader: Reader, names: tuple[str, ...], given: Given) -> bool:
    """Whether the name is one that upstream is not meant to have."""
    if not names:
        return False
    last = names[-1]
    if any(token in last.lower() for token in reader.tokens):
        return True
    if last.startswith("_") and _is_mark(names, given):
        return True
    asked = re.compile(rf"^not hasattr\(.*['\"]{re.escape(last)}['\"]\)")
    return any(_is_missing(gate, asked) for gate in reader.gates)


def _is_mark(names: tuple[str, ...], given: Given) -> bool:
    """`_patched = True`, or the original kept under another name beside it."""
    if isinstance(given.node, ast.Constant) and given.node.value is True:
        return True
    beside = any(
        isinstance(v, Ref) and v.parts[:-1] == names[:-1] for v in given.values
    )
    return beside and Ref(names) not in given.values


def _is_missing(gate: Gate, asked: re.Pattern[str]) -> bool:
    return gate.kind == "exists" and bool(asked.search(gate.text))
