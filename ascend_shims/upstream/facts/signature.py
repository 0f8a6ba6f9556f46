"""Parameters, and whether a call binds to them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import Literal

from ascend_shims.upstream.facts.annotations import normal

__all__ = [
    "ANYTHING",
    "Parameter",
    "Shape",
    "Signature",
    "dropping",
    "launched",
    "shape_of",
    "signature_of",
]

_LAUNCH_OPTIONS = frozenset(
    {"num_warps", "num_stages", "num_ctas", "maxnreg", "launch_pdl", "enable_fp_fusion"}
)
"""What a kernel's launcher takes for itself."""

Kind = Literal[
    "positional_only",
    "positional_or_keyword",
    "var_positional",
    "keyword_only",
    "var_keyword",
]


@dataclass(frozen=True)
class Parameter:
    name: str
    kind: Kind
    default: str | None = None
    """Source text of the default; `None` where the parameter is required."""
    annotation: str | None = None
    """In its one spelling."""

    @property
    def is_variadic(self) -> bool:
        return self.kind in ("var_positional", "var_keyword")

    @property
    def is_required(self) -> bool:
        return self.default is None and not self.is_variadic

    @property
    def is_positional(self) -> bool:
        return self.kind in ("positional_only", "positional_or_keyword")


@dataclass(frozen=True)
class Shape:
    """How a call passes its arguments."""

    positional: int
    keywords: tuple[str, ...] = ()
    star: bool = False
    """Passes `*something` too."""
    double_star: bool = False

    def __str__(self) -> str:
        parts = ["_"] * self.positional + ["*_"] * self.star
        parts += [f"{name}=_" for name in self.keywords] + ["**_"] * self.double_star
        return f"({', '.join(parts)})"


@dataclass(frozen=True)
class Signature:
    parameters: tuple[Parameter, ...]

    @property
    def named(self) -> dict[str, Parameter]:
        return {p.name: p for p in self.parameters if not p.is_variadic}

    @property
    def positional(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.is_positional)

    @property
    def takes_any_positional(self) -> bool:
        return any(p.kind == "var_positional" for p in self.parameters)

    @property
    def takes_any_keyword(self) -> bool:
        return any(p.kind == "var_keyword" for p in self.parameters)

    @property
    def is_open(self) -> bool:
        """Forwards whatever it is given."""
        return self.takes_any_positional and self.takes_any_keyword

    def binds_like(self, other: Signature) -> bool:
        """Whether every call binds to both in the same way."""
        one, two = (
            [(p.name, p.kind, p.is_required) for p in signature.parameters]
            for signature in (self, other)
        )
        return one == two

    def without_first(self) -> Signature:
        """As seen through an instance or class."""
        if not self.parameters or not self.parameters[0].is_positional:
            return self
        return Signature(self.parameters[1:])

    def refusal(self, shape: Shape) -> str | None:
        """Why a call of that shape does not bind, or `None` if it does."""
        positional = self.positional
        if shape.positional > len(positional) and not self.takes_any_positional:
            return (
                f"{shape.positional} positional arguments are passed, "
                f"{len(positional)} are taken"
            )
        filled = {p.name for p in positional[: shape.positional]}
        named = {
            name
            for name in shape.keywords
            if name in self.named and self.named[name].kind != "positional_only"
        }
        for name in shape.keywords:
            if name not in named:
                if not self.takes_any_keyword:
                    return f"`{name}` is passed by keyword and not taken"
            elif name in filled:
                return f"`{name}` is passed twice"
        if shape.double_star:
            return None
        missing = [
            p.name
            for p in self.parameters
            if p.is_required
            and p.name not in filled
            and p.name not in named
            and not (shape.star and p.is_positional)
        ]
        return f"`{'`, `'.join(missing)}` is not passed" if missing else None

    def usual_call(self) -> Shape:
        """Required parameters by position, optional ones by keyword."""
        required = sum(p.is_required for p in self.positional)
        keywords = [
            p.name
            for p in self.parameters
            if not p.is_variadic
            and (p.kind == "keyword_only" or not p.is_required)
            and p.kind != "positional_only"
        ]
        return Shape(required, tuple(keywords))

    def least_call(self) -> Shape:
        """Required parameters alone, by position where that can be."""
        required = [p for p in self.parameters if p.is_required]
        keywords = [p.name for p in required if not p.is_positional]
        return Shape(len(required) - len(keywords), tuple(keywords))

    def __str__(self) -> str:
        return f"({', '.join(p.name for p in self.parameters)})"


ANYTHING = Signature(
    (Parameter("args", "var_positional"), Parameter("kwargs", "var_keyword"))
)
"""Of a callable whose parameters the source does not show."""


def signature_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Signature:
    """The parameters as written, `self` included."""
    args = node.args
    plain = [*args.posonlyargs, *args.args]
    first_default = len(plain) - len(args.defaults)
    found = []
    for index, arg in enumerate(plain):
        at = index - first_default
        only = index < len(args.posonlyargs)
        kind: Kind = "positional_only" if only else "positional_or_keyword"
        found.append(_parameter(arg, kind, args.defaults[at] if at >= 0 else None))
    if args.vararg:
        found.append(_parameter(args.vararg, "var_positional", None))
    for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        found.append(_parameter(arg, "keyword_only", default))
    if args.kwarg:
        found.append(_parameter(args.kwarg, "var_keyword", None))
    return Signature(tuple(found))


def _parameter(arg: ast.arg, kind: Kind, default: ast.expr | None) -> Parameter:
    text = None if default is None else ast.unparse(default)
    return Parameter(arg.arg, kind, text, normal(arg.annotation))


def shape_of(call: ast.Call) -> Shape:
    """How this call passes its arguments."""
    return Shape(
        sum(not isinstance(arg, ast.Starred) for arg in call.args),
        tuple(k.arg for k in call.keywords if k.arg is not None),
        any(isinstance(arg, ast.Starred) for arg in call.args),
        any(k.arg is None for k in call.keywords),
    )


def dropping(shape: Shape, count: int) -> Shape:
    """The shape without its first `count` positional arguments."""
    return replace(shape, positional=max(0, shape.positional - count))


def launched(shape: Shape) -> Shape:
    """The shape as a kernel sees it that is launched as `kernel[grid](...)`."""
    kept = tuple(name for name in shape.keywords if name not in _LAUNCH_OPTIONS)
    return replace(shape, keywords=kept)
