"""Fields of dataclasses and of their relatives, in constructor order."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ascend_shims.upstream.facts.annotations import normal
from ascend_shims.upstream.facts.classes import Class
from ascend_shims.upstream.facts.signature import Parameter, Signature
from ascend_shims.upstream.index import tail

__all__ = ["Field", "fields_of", "has_fields", "init_of_fields"]

_DECORATORS = frozenset({"dataclass", "config", "dataclass_transform", "define"})
_BASES = frozenset({"NamedTuple", "BaseModel", "Struct", "TypedDict"})


@dataclass(frozen=True)
class Field:
    name: str
    default: str | None
    """Source text; `None` where the field is required."""
    annotation: str | None
    in_init: bool
    keyword_only: bool
    owner: str
    """`module:Class` that declares it."""


def has_fields(cls: Class) -> bool:
    """Whether the class gets its constructor from its annotations."""
    if cls.outside & _BASES:
        return True
    return any(_decorator(one) is not None for one in cls.mro)


def _decorator(cls: Class) -> ast.expr | None:
    for decorator in cls.node.decorator_list:
        callee = decorator.func if isinstance(decorator, ast.Call) else decorator
        if tail(callee) in _DECORATORS:
            return decorator
    return None


def fields_of(cls: Class) -> tuple[Field, ...]:
    """All fields, inherited ones first; an override keeps its first place."""
    found: dict[str, Field] = {}
    for one in reversed(cls.mro):
        if _decorator(one) is None and not cls.outside & _BASES:
            continue
        for field in _own(one):
            found[field.name] = field
    return tuple(found.values())


def _own(cls: Class) -> list[Field]:
    decorator = _decorator(cls)
    keyword_only = isinstance(decorator, ast.Call) and any(
        k.arg == "kw_only" and isinstance(k.value, ast.Constant) and k.value.value
        for k in decorator.keywords
    )
    found = []
    for node in cls.node.body:
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        annotation = normal(node.annotation)
        if annotation is not None and annotation.startswith("ClassVar"):
            continue
        if annotation == "KW_ONLY":
            keyword_only = True
            continue
        options = _options(node.value)
        found.append(
            Field(
                node.target.id,
                _default(node.value, options),
                annotation,
                not _is_false(options.get("init")),
                keyword_only or _is_true(options.get("kw_only")),
                f"{cls.module.name}:{cls.qualname}",
            )
        )
    return found


def _options(value: ast.expr | None) -> dict[str, ast.expr]:
    if isinstance(value, ast.Call) and tail(value.func) in ("field", "Field"):
        return {k.arg: k.value for k in value.keywords if k.arg}
    return {}


def _default(value: ast.expr | None, options: dict[str, ast.expr]) -> str | None:
    if value is None:
        return None
    if isinstance(value, ast.Call) and tail(value.func) in ("field", "Field"):
        for name in ("default", "default_factory"):
            if name in options:
                return ast.unparse(options[name])
        if value.args and not (
            isinstance(value.args[0], ast.Constant) and value.args[0].value is Ellipsis
        ):
            return ast.unparse(value.args[0])
        return None
    return ast.unparse(value)


def _is_false(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def init_of_fields(cls: Class) -> Signature:
    """The constructor that the fields make, without `self`."""
    fields = [f for f in fields_of(cls) if f.in_init]
    ordered = [f for f in fields if not f.keyword_only]
    ordered += [f for f in fields if f.keyword_only]
    return Signature(
        tuple(
            Parameter(
                f.name,
                "keyword_only" if f.keyword_only else "positional_or_keyword",
                f.default,
                f.annotation,
            )
            for f in ordered
        )
    )
