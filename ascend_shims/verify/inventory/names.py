"""What objects are called: the same in each process, and without asking them."""

from __future__ import annotations

import types
from hashlib import blake2b
from typing import Any

from .plain import SCALARS, scalar
from .raw import is_class, is_module, layout, namespace

__all__ = ["NAMED", "OWNED", "code_mark", "kind_name", "name_of", "said"]

NAMED = (types.BuiltinFunctionType, types.MethodWrapperType)
OWNED = (
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)

_BUILTIN_IDS = frozenset(map(id, NAMED))
_DESCRIPTOR_IDS = frozenset(map(id, OWNED))

_marks: dict[int, tuple[types.CodeType, str]] = {}
"""By identity. Code never changes, and is kept here so that none takes its place."""


def code_mark(code: types.CodeType) -> str:
    """A fingerprint of code, the same in every process: bytes, names, constants."""
    known = _marks.get(id(code))
    if known is None:
        known = _marks[id(code)] = code, _code_mark(code)
    return known[1]


def _code_mark(code: types.CodeType) -> str:
    state = blake2b(code.co_code, digest_size=8)
    state.update(
        repr(
            (
                code.co_name,
                code.co_names,
                code.co_varnames,
                code.co_freevars,
                code.co_cellvars,
                code.co_argcount,
                code.co_posonlyargcount,
                code.co_kwonlyargcount,
                code.co_flags,
                code.co_firstlineno,
                code.co_linetable,
                getattr(code, "co_exceptiontable", None),
            )
        ).encode()
    )
    for constant in code.co_consts:
        state.update(_constant(constant).encode(errors="surrogatepass"))
    return state.hexdigest()


def _constant(value: Any) -> str:
    kind = type(value)
    if kind is types.CodeType:
        return code_mark(value)
    if kind is frozenset:
        # Its order depends on the process.
        return f"frozenset {sorted(map(_constant, value))}"
    if kind is tuple:
        return f"tuple {list(map(_constant, value))}"
    return f"{kind.__name__} {value!r}"


def name_of(one: Any) -> str:
    """What identifies an object in a list of differences; the same in each process."""
    kind = type(one)
    if id(kind) in SCALARS:
        return scalar(one)
    if kind is types.FunctionType:
        return f"{one.__module__}:{one.__qualname__}"
    if is_class(one):
        return f"{namespace(one).get('__module__', 'builtins')}:{_qualname(one)}"
    if kind is tuple:
        return f"({', '.join(map(name_of, one))})"
    if kind is frozenset:
        return f"{{{', '.join(sorted(map(name_of, one)))}}}"
    if is_module(one):
        return f"module {namespace(one).get('__name__')}"
    return f"a {kind_name(kind)}{said(one)}"


_QUALNAME: Any = type.__dict__["__qualname__"]


def _qualname(one: Any) -> str:
    return str(_QUALNAME.__get__(one))


_kind_names: dict[int, tuple[type, str]] = {}


def kind_name(kind: type) -> str:
    known = _kind_names.get(id(kind))
    if known is None:
        known = _kind_names[id(kind)] = kind, _named(kind)
    return known[1]


def _named(kind: type) -> str:
    module = namespace(kind).get("__module__", "builtins")
    name = _qualname(kind)
    # Of some of Python's own it is what tells that of their instances.
    return (
        name if module == "builtins" or type(module) is not str else f"{module}.{name}"
    )


_SAYING = ("torch.dtype", "torch.device", "torch.layout", "torch.memory_format")


def said(one: Any) -> str:
    """What an object says of itself, where that is C code and its whole value."""
    kind = type(one)
    for base in (str, int, bytes, float):
        if issubclass(kind, base):
            return f" {scalar(base.__repr__(one))}"
    # Their qualified names are asked for of the class, which may answer as it likes.
    if id(kind) in _BUILTIN_IDS:
        return f" {_owner(one.__self__)}{one.__name__}"
    if id(kind) in _DESCRIPTOR_IDS:
        return f" {name_of(one.__objclass__)}.{one.__name__}"
    if kind_name(kind) in _SAYING:
        return f" {one!r}"
    getter = layout(kind).dictionary
    held = getter.__get__(one) if getter is not None else None
    if type(held) is dict:
        name = held.get("__qualname__") or held.get("__name__")
        if type(name) is str:
            return f" {name}"
    return ""


def _owner(one: Any) -> str:
    if one is None:
        return ""
    if is_module(one) or is_class(one):
        return f"{name_of(one)}."
    return f"{kind_name(type(one))}."
