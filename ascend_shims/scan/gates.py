"""Conditions, as text and as version ranges where they are about versions."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import NamedTuple

from packaging.version import InvalidVersion, Version

from .found import Gate
from .values import Ref, Test, Text, Values, VersionOf

__all__ = ["Reading", "read"]

_OPERATORS: dict[type, str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MIRRORED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}

_HELPERS = (
    (r"(at_least|since|_from|_ge|gte|newer_or|or_newer|or_later|>=)", ">="),
    (r"(at_most|up_to|_le|lte|or_older|or_earlier)", "<="),
    (r"(_gt|newer|later|after|greater|above)", ">"),
    (r"(_lt|older|earlier|before|less|below)", "<"),
    (r"(_is|is_|_eq|equal|match)", "=="),
)
"""What a function asks about a version that has such a word in its name."""

Eval = Callable[[ast.expr], Values]


class Reading(NamedTuple):
    """What a condition is read with."""

    evaluate: Eval
    spelled: Callable[[ast.AST], str]


def read(test: ast.expr, by: Reading, *, holds: bool = True) -> tuple[Gate, ...]:
    """The conditions that are met where `test` holds, or where it does not.

    A disjunction of versions is no range, and stays text.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return read(test.operand, by, holds=not holds)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is holds:
        parts = (read(value, by, holds=holds) for value in test.values)
        return tuple(gate for part in parts for gate in part)
    text = _said(test, by.spelled(test), holds)
    if isinstance(test, ast.Constant):
        return () if bool(test.value) is holds else (Gate(text, "never"),)
    kept = _kept(test, by.evaluate, holds)
    if kept is not None:
        return kept
    asked = _asked(test, by.evaluate)
    if asked is not None:
        package, operator, version = asked
        spec = _range(operator if holds else _opposite(operator), version)
        if spec:
            return (Gate(text, "version", package, spec),)
    if isinstance(test, ast.Call) and _tail(test.func) == "hasattr":
        return (Gate(text, "exists"),)
    return (Gate(text, "other"),)


def _said(test: ast.expr, text: str, holds: bool) -> str:
    if holds:
        return text
    simple = isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.Constant)
    return f"not {text}" if simple else f"not ({text})"


def _kept(test: ast.expr, evaluate: Eval, holds: bool) -> tuple[Gate, ...] | None:
    """Of a condition that was given a name before."""
    if not isinstance(test, ast.Name | ast.Attribute):
        return None
    tests = [value for value in evaluate(test) if isinstance(value, Test)]
    if len(tests) != 1:
        return None
    return tests[0].true if holds else tests[0].false


def _asked(test: ast.expr, evaluate: Eval) -> tuple[str, str, str] | None:
    """Package, operator and version that a condition is about."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _compared(test, evaluate)
    if not isinstance(test, ast.Call):
        return None
    name = _tail(test.func)
    if name == "startswith" and isinstance(test.func, ast.Attribute) and test.args:
        package = _package(test.func.value, evaluate)
        prefix = version_text(test.args[0], evaluate)
        if package and prefix:
            return package, "==", f"{prefix.rstrip('.')}.*"
        return None
    if "version" in name.lower() and test.args:
        version = version_text(test.args[-1], evaluate)
        if version and _is_version(version):
            return _named(name), _operator(name, test, evaluate), version
    return None


def _compared(test: ast.Compare, evaluate: Eval) -> tuple[str, str, str] | None:
    left, right, op = test.left, test.comparators[0], test.ops[0]
    if isinstance(op, ast.In | ast.NotIn):
        package = _package(left, evaluate)
        members: list[ast.expr] = getattr(right, "elts", [])
        if package and len(members) == 1:
            version = version_text(members[0], evaluate)
            if version:
                return package, "==" if isinstance(op, ast.In) else "!=", version
        return None
    operator = _OPERATORS.get(type(op))
    if operator is None:
        return None
    package, version = _package(left, evaluate), version_text(right, evaluate)
    if package and version:
        return package, operator, version
    package, version = _package(right, evaluate), version_text(left, evaluate)
    if package and version:
        return package, _MIRRORED[operator], version
    return None


def _operator(name: str, call: ast.Call, evaluate: Eval) -> str:
    for argument in call.args[:-1]:
        for value in evaluate(argument):
            if isinstance(value, Text) and value.value in _NEGATED:
                return value.value
    for pattern, operator in _HELPERS:
        if re.search(pattern, name.lower()):
            return operator
    return ""


def _named(name: str) -> str:
    """The package that a helper is about, by its name: vLLM where it does not say."""
    lowered = name.lower()
    for package in ("torch_npu", "torch", "transformers", "triton"):
        if package in lowered and "vllm" not in lowered:
            return package
    return "vllm"


def _package(node: ast.expr, evaluate: Eval) -> str:
    """The package whose version an expression is; nothing where it is none."""
    for value in evaluate(node):
        if isinstance(value, VersionOf):
            return value.package
        # `VLLM_VERSION`, taken from somewhere else.
        if isinstance(value, Ref) and _says_vllm(value.parts[-1]):
            return "vllm"
    unknown = isinstance(node, ast.Name) and not evaluate(node)
    return "vllm" if unknown and _says_vllm(_tail(node)) else ""


def _says_vllm(name: str) -> bool:
    return "vllm" in name.lower() and "version" in name.lower()


def version_text(node: ast.expr, evaluate: Eval) -> str:
    """The version that an expression spells: `"0.9"`, `Version("0.9")`, `(0, 9)`."""
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        return version_text(node.args[0], evaluate)
    if isinstance(node, ast.Tuple):
        parts = [one.value for one in node.elts if isinstance(one, ast.Constant)]
        if len(parts) == len(node.elts) and all(type(p) is int for p in parts):
            return ".".join(map(str, parts))
        return ""
    for value in evaluate(node):
        if isinstance(value, Text) and re.match(r"v?\d", value.value):
            return value.value.removeprefix("v")
    return ""


def _opposite(operator: str) -> str:
    return _NEGATED.get(operator, "")


def _range(operator: str, version: str) -> str:
    if not operator or not _is_version(version.removesuffix(".*")):
        return ""
    if version.endswith(".*") and operator not in ("==", "!="):
        return ""
    if operator in ("<", "<=", ">", ">="):
        # Local versions are not ordered by a range.
        version = version.partition("+")[0]
    return f"{operator}{version}"


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def _tail(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
