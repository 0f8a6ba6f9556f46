"""From a symbol of a release to the plain data that a lock keeps of it."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterable

from ascend_shims.upstream.facts.annotations import normal
from ascend_shims.upstream.facts.body import Returns
from ascend_shims.upstream.facts.fields import Field, fields_of, has_fields
from ascend_shims.upstream.facts.record import Record
from ascend_shims.upstream.facts.signature import Parameter, Signature
from ascend_shims.upstream.facts.symbol import Symbol

__all__ = ["record_of", "spelled"]

_LONGEST_VALUE = 120
"""Characters of what is assigned to a constant; of longer ones the hash tells."""

_BOUND = ("function", "async", "classmethod")


def record_of(symbol: Symbol) -> Record:
    """What the source of a release says of a symbol itself."""
    cls = symbol.cls if symbol.member is None else None
    function = symbol.function
    member = symbol.member
    first = ""
    if member is not None and function is not None and symbol.kind in _BOUND:
        arguments = [*function.args.posonlyargs, *function.args.args]
        first = arguments[0].arg if arguments else ""
    return Record(
        kind=symbol.kind,
        defined=symbol.place,
        text=symbol.written[:16],
        body=symbol.body[:16],
        quiet=symbol.quiet_body[:16],
        signature=spelled(symbol.signature) if symbol.is_callable else "",
        takes=first,
        annotation=_annotation(symbol),
        returns=None if symbol.returns == Returns() else symbol.returns,
        decorators=symbol.decorators,
        bases=_names([c.qualname for c in cls.mro[1:]], cls.outside) if cls else (),
        written_bases=symbol.base_names if cls else (),
        fields=tuple(map(_declared, fields_of(cls))) if cls and has_fields(cls) else (),
        methods=tuple(m.name for m in cls.methods()) if cls else (),
        setters=member.setters if member else (),
        value=_value(symbol.node),
    )


def spelled(signature: Signature) -> str:
    """The parameters as Python writes them; reading them gives the same ones."""
    parts: list[str] = []
    previous: Parameter | None = None
    for one in signature.parameters:
        only = previous is not None and previous.kind == "positional_only"
        if only and one.kind != "positional_only":
            parts.append("/")
        starred = any(p.startswith("*") for p in parts)
        if one.kind == "keyword_only" and not starred:
            parts.append("*")
        parts.append(_parameter(one))
        previous = one
    if previous is not None and previous.kind == "positional_only":
        parts.append("/")
    return f"({', '.join(parts)})"


def _parameter(one: Parameter) -> str:
    stars = {"var_positional": "*", "var_keyword": "**"}.get(one.kind, "")
    return f"{stars}{one.name}{_rest(one.annotation, one.default)}"


def _rest(annotation: str | None, default: str | None) -> str:
    said = f": {annotation}" if annotation and _is_expression(annotation) else ""
    equals = " = " if said else "="
    return said + ("" if default is None else f"{equals}{default}")


def _is_expression(text: str) -> bool:
    with contextlib.suppress(SyntaxError, ValueError):
        return bool(ast.parse(text, mode="eval"))
    return False


def _declared(field: Field) -> str:
    """A field as one writes it, options that change the constructor included."""
    annotation = field.annotation or "object"
    said = annotation if _is_expression(annotation) else "object"
    options = [] if field.default is None else [f"default={field.default}"]
    options += ["init=False"] * (not field.in_init)
    options += ["kw_only=True"] * field.keyword_only
    if len(options) == (field.default is not None):
        return f"{field.name}{_rest(said, field.default)}"
    return f"{field.name}: {said} = field({', '.join(options)})"


def _annotation(symbol: Symbol) -> str | None:
    node = symbol.node
    said = symbol.return_annotation
    if isinstance(node, ast.AnnAssign):
        said = normal(node.annotation)
    return said if said and _is_expression(said) else None


def _value(node: ast.AST | None) -> str:
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return ""
    text = ast.unparse(node.value)
    return text if len(text) <= _LONGEST_VALUE else ""


def _names(inner: Iterable[str], outside: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*inner, *sorted(outside)]))
