"""What one comparison or call asks of a package's version.

Only what is certain: a range that is wrong keeps a patch out of releases it is for.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import NamedTuple

from packaging.version import InvalidVersion, Version

from .evaluate import tail
from .unions import NEGATED, plain
from .values import Ref, Seq, Text, Values, VersionOf
from .wording import Helper, helper

__all__ = ["Asked", "Eval", "asked"]

Eval = Callable[[ast.expr], Values]

_OPERATORS: dict[type, str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_MIRRORED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_PARSERS = ("Version", "parse", "parse_version", "LooseVersion", "StrictVersion", "str")
_VERSIONS = ("__version__", "__version_tuple__")
_NUMBERS = ("major", "minor", "micro")
_OWN_WORDS = {
    *("vllm", "version", "ver", "v", "installed", "current", "cur", "the", "get"),
    *("parsed", "raw", "base", "public", "full", "str", "tuple", "is"),
}
"""Words of a name that stands for the version which is installed."""


class Asked(NamedTuple):
    package: str
    any_of: tuple[str, ...]
    """Ranges, of which one has to hold."""


class _Tuple(NamedTuple):
    """The numbers of a version, or the first of them."""

    package: str
    first: int | None
    """How many; `None`: all."""


def asked(test: ast.expr, evaluate: Eval) -> Asked | None:
    """Package and ranges that a condition is about, where that is certain."""
    found: Asked | None = None
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        found = _compared(test, evaluate)
    elif isinstance(test, ast.Call):
        found = _called(test, evaluate)
    if found is None or not found.any_of or not all(map(_is_range, found.any_of)):
        return None
    return found


def _is_range(text: str) -> bool:
    return bool(text) and plain(text) != ""


def _range(operator: str, version: str) -> str:
    """Empty where it is none."""
    bare = version.removesuffix(".*")
    if not operator or not _is_version(bare):
        return ""
    if bare != version and operator not in ("==", "!="):
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


# Comparisons -------------------------------------------------------------------------


def _compared(test: ast.Compare, evaluate: Eval) -> Asked | None:
    left, right, op = test.left, test.comparators[0], test.ops[0]
    if isinstance(op, ast.In | ast.NotIn):
        return _contained(left, right, isinstance(op, ast.In), evaluate)
    operator = _OPERATORS.get(type(op))
    if operator is None:
        return None
    for subject, other, sign in (
        (left, right, operator),
        (right, left, _MIRRORED[operator]),
    ):
        numbers = _numbers(other)
        if numbers is not None:
            of = _tuple(subject, evaluate)
            if of is not None:
                return Asked(of.package, (_of_numbers(sign, numbers, of.first),))
            continue
        package, version = package_of(subject, evaluate), version_text(other, evaluate)
        if package and version:
            return Asked(package, (_range(sign, version),))
    return None


def _contained(
    left: ast.expr, right: ast.expr, is_in: bool, evaluate: Eval
) -> Asked | None:
    package = package_of(left, evaluate)
    if not package:
        return None
    within = _specifiers(right, evaluate)
    if within:
        return Asked(package, (within,)) if is_in else None
    versions = _versions(right, evaluate)
    if not versions:
        return None
    if is_in:
        return Asked(package, tuple(_range("==", one) for one in versions))
    ranges = [_range("!=", one) for one in versions]
    return Asked(package, (",".join(ranges),)) if all(ranges) else None


def _specifiers(node: ast.expr, evaluate: Eval) -> str:
    """The text of a `SpecifierSet("…")`."""
    if isinstance(node, ast.Call) and tail(node.func) in ("SpecifierSet", "Specifier"):
        values = [v for argument in node.args[:1] for v in evaluate(argument)]
        texts = [value.value for value in values if isinstance(value, Text)]
        if len(texts) == 1:
            return plain(texts[0])
    return ""


def _versions(node: ast.expr, evaluate: Eval) -> list[str]:
    """The versions that are written out in a list, all of them."""
    members: list[ast.expr] | None = getattr(node, "elts", None)
    if members is not None:
        found = [version_text(one, evaluate) for one in members]
        return found if all(found) else []
    values = evaluate(node)
    if len(values) != 1 or not isinstance(values[0], Seq):
        return []
    found = [_version_of(item) for item in values[0].items]
    return found if all(found) else []


def _version_of(values: Values) -> str:
    """The one version that some alternatives spell."""
    if len(values) == 1 and isinstance(values[0], Text):
        text = values[0].value.removeprefix("v")
        if text[:1].isdigit():
            return text
    return ""


def version_text(node: ast.expr, evaluate: Eval) -> str:
    """The version that an expression spells: `"0.9"`, `Version("0.9")`."""
    if isinstance(node, ast.Call):
        if tail(node.func) in _PARSERS and len(node.args) == 1 and not node.keywords:
            return version_text(node.args[0], evaluate)
        return ""
    return _version_of(evaluate(node))


def package_of(node: ast.expr, evaluate: Eval) -> str:
    """The package whose version an expression is; nothing where it is none."""
    if isinstance(node, ast.Call) and tail(node.func) in _PARSERS and node.args:
        return package_of(node.args[0], evaluate)
    if isinstance(node, ast.Attribute) and node.attr in ("public", "base_version"):
        return package_of(node.value, evaluate)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Call):
        # Without the local part; other parts of the text are no version.
        cut = node.value
        if tail(cut.func) not in ("split", "partition") or not _is_plus(cut):
            return ""
        if not isinstance(node.slice, ast.Constant) or node.slice.value != 0:
            return ""
        assert isinstance(cut.func, ast.Attribute)
        return package_of(cut.func.value, evaluate)
    values = evaluate(node)
    packages = {_package_of(value) for value in values}
    if len(packages) == 1:
        return packages.pop()
    unknown = isinstance(node, ast.Name) and not values
    return "vllm" if unknown and _is_vllms(tail(node)) else ""


def _is_plus(call: ast.Call) -> bool:
    sign = call.args[0] if call.args else None
    return isinstance(sign, ast.Constant) and sign.value == "+"


def _package_of(value: object) -> str:
    if isinstance(value, VersionOf):
        return value.package
    if isinstance(value, Ref):
        *home, last = value.parts
        if last in _VERSIONS and home and home[1:] in ([], ["version"], ["_version"]):
            return home[0]
        # `VLLM_VERSION`, taken from somewhere else.
        return "vllm" if _is_vllms(last) else ""
    return ""


def _is_vllms(name: str) -> bool:
    words = set(name.lower().strip("_").split("_"))
    return {"vllm", "version"} <= words <= _OWN_WORDS


# Numbers -----------------------------------------------------------------------------


def _numbers(node: ast.expr) -> tuple[int, ...] | None:
    if not isinstance(node, ast.Tuple) or not node.elts:
        return None
    parts = [one.value for one in node.elts if isinstance(one, ast.Constant)]
    numbers = tuple(part for part in parts if type(part) is int)
    return numbers if len(numbers) == len(node.elts) else None


def _tuple(node: ast.expr, evaluate: Eval) -> _Tuple | None:
    if isinstance(node, ast.Subscript):
        count = _head(node.slice)
        whole = _tuple(node.value, evaluate)
        if count is None or whole is None or whole.first is not None:
            return None
        return _Tuple(whole.package, count)
    if isinstance(node, ast.Tuple):
        names = tuple(one.attr for one in node.elts if isinstance(one, ast.Attribute))
        if names != _NUMBERS[: len(node.elts)]:
            return None
        owners = {package_of(one.value, evaluate) for one in _attributes(node.elts)}
        package = owners.pop() if len(owners) == 1 else ""
        return _Tuple(package, len(names)) if package else None
    if isinstance(node, ast.Attribute) and node.attr == "release":
        package = package_of(node.value, evaluate)
        return _Tuple(package, None) if package else None
    if isinstance(node, ast.Call):
        return _converted(node, evaluate)
    if tail(node) == "__version_tuple__" or isinstance(node, ast.Name):
        # What a plain name holds was checked by whoever compares it with numbers.
        package = package_of(node, evaluate)
        return _Tuple(package, None) if package else None
    return None


def _attributes(nodes: list[ast.expr]) -> list[ast.Attribute]:
    return [one for one in nodes if isinstance(one, ast.Attribute)]


def _head(node: ast.expr) -> int | None:
    """The `n` of `[:n]`."""
    if not isinstance(node, ast.Slice) or node.step is not None:
        return None
    first = node.lower
    if first is not None and not (isinstance(first, ast.Constant) and first.value == 0):
        return None
    end = node.upper.value if isinstance(node.upper, ast.Constant) else None
    return end if type(end) is int and end > 0 else None


def _converted(node: ast.Call, evaluate: Eval) -> _Tuple | None:
    """`tuple(map(int, version.split(".")[:2]))`, and the same with a loop."""
    if tail(node.func) != "tuple" or len(node.args) != 1 or node.keywords:
        return None
    inner, texts = node.args[0], None
    if isinstance(inner, ast.Call) and tail(inner.func) == "map":
        if len(inner.args) == 2 and tail(inner.args[0]) == "int":
            texts = inner.args[1]
    elif isinstance(inner, ast.GeneratorExp | ast.ListComp):
        loop, made = inner.generators[0], inner.elt
        plainly = len(inner.generators) == 1 and not loop.ifs
        if plainly and isinstance(made, ast.Call) and tail(made.func) == "int":
            texts = loop.iter
    if not isinstance(texts, ast.Subscript):
        return None
    count, cut = _head(texts.slice), texts.value
    if count is None or not isinstance(cut, ast.Call) or tail(cut.func) != "split":
        return None
    sign = cut.args[0] if len(cut.args) == 1 else None
    if not (isinstance(sign, ast.Constant) and sign.value == "."):
        return None
    assert isinstance(cut.func, ast.Attribute)
    package = package_of(cut.func.value, evaluate)
    return _Tuple(package, count) if package else None


def _of_numbers(operator: str, numbers: tuple[int, ...], count: int | None) -> str:
    """A comparison of numbers as a range; empty where there is none.

    `(0, 28, 0)` is more than `(0, 28)`, while 0.28.0 is 0.28.
    """
    text = ".".join(map(str, numbers))
    if count is None or count >= 3 <= len(numbers):
        if len(numbers) >= 3:
            return f"{operator}{text}" if len(numbers) == 3 else ""
        if operator in ("==", "!="):
            return ""
        return f"<{text}" if operator[0] == "<" else f">={text}"
    if len(numbers) < count:
        return "" if operator in ("==", "!=") else _of_numbers(operator, numbers, None)
    if len(numbers) > count:
        return ""
    if operator in ("==", "!="):
        return f"{operator}{text}.*"
    *head, last = numbers
    above = ".".join(map(str, (*head, last + 1)))
    ranges = {"<": f"<{text}", "<=": f"<{above}", ">": f">={above}", ">=": f">={text}"}
    return ranges[operator]


# Calls -------------------------------------------------------------------------------


def _called(test: ast.Call, evaluate: Eval) -> Asked | None:
    if any(isinstance(one, ast.Starred) for one in test.args) or test.keywords:
        return None
    if isinstance(test.func, ast.Attribute):
        if test.func.attr == "startswith":
            return _started(test, test.func.value, evaluate)
        if test.func.attr == "contains" and len(test.args) == 1:
            within = _specifiers(test.func.value, evaluate)
            package = package_of(test.args[0], evaluate)
            return Asked(package, (within,)) if within and package else None
    if tail(test.func) == "bool" and len(test.args) == 1:
        return asked(test.args[0], evaluate)
    named = helper(_name_of(test.func, evaluate))
    return None if named is None else _of_helper(named, test.args, evaluate)


def _name_of(func: ast.expr, evaluate: Eval) -> str:
    """What a function is called where it is defined."""
    values = evaluate(func)
    if len(values) == 1 and isinstance(values[0], Ref):
        return values[0].parts[-1]
    return tail(func)


def _started(test: ast.Call, subject: ast.expr, evaluate: Eval) -> Asked | None:
    package = package_of(subject, evaluate)
    if not package or len(test.args) != 1:
        return None
    first = test.args[0]
    given = _versions(first, evaluate) or [version_text(first, evaluate)]
    return Asked(package, tuple(map(_prefixed, given)))


def _prefixed(text: str) -> str:
    """`0.27` begins 0.27.1, and no other minor; `0.2` begins 0.2.0 and 0.27.1."""
    parts = text.rstrip(".").split(".")
    sure = text.endswith(".") or len(parts) > 2 or len(parts[-1]) > 1
    return _range("==", f"{'.'.join(parts)}.*") if sure else ""


def _of_helper(named: Helper, args: list[ast.expr], evaluate: Eval) -> Asked | None:
    """What a function asks, from its name and from what it is given."""
    package, operator = named.package, named.operator
    versions: list[str] = []
    mirrored = False
    for argument in args:
        values = evaluate(argument)
        only = values[0] if len(values) == 1 else None
        text = only.value if isinstance(only, Text) else ""
        listed = _versions(argument, evaluate) if not text else []
        subject = package_of(argument, evaluate)
        if text in NEGATED and operator in ("", "is"):
            operator = text
        elif version := version_text(argument, evaluate):
            versions.append(version)
        elif listed and named.operator in ("in", "is"):
            versions += listed
        elif subject and package in ("", subject):
            package, mirrored = subject, bool(versions)
        elif text.isidentifier() and not package:
            package = text.replace("-", "_")
        else:
            return None
    if not versions or not operator or (operator == "in" and not named.is_about):
        return None
    if len(versions) > 1 and operator not in ("is", "in"):
        return None
    operator = "==" if operator in ("is", "in") else operator
    if mirrored:
        operator = _MIRRORED[operator]
    ranges = tuple(_range(operator, one) for one in versions)
    return Asked(package or "vllm", ranges)
