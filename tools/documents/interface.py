"""The page about the Python interface, from signatures and docstrings as text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from .markdown import note, paragraph

__all__ = ["page"]

_ROOT = Path(__file__).resolve().parents[2]

_SHOWN = (
    ("ascend_shims", "ascend_shims/__init__.py", ()),
    (
        "ascend_shims.report",
        "ascend_shims/report.py",
        ("Report", "GapReport", "PatchReport", "RegistryReport", "UnappliedError"),
    ),
    (
        "ascend_shims.verify.running",
        "ascend_shims/verify/running.py",
        ("Verification",),
    ),
    (
        "ascend_shims.ranks.compare",
        "ascend_shims/ranks/compare.py",
        ("Ranks", "RanksDifferError"),
    ),
    (
        "ascend_shims.errors",
        "ascend_shims/errors.py",
        ("ShimsError", "ConfigurationError"),
    ),
    ("ascend_shims.testing", "ascend_shims/testing/scope.py", ("Shims",)),
)
"""Module, its file and the names in it; without names all functions of `__all__`."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_SECTION = re.compile(r"^(Args|Raises):$", re.MULTILINE)
_ITEM = re.compile(r"^    (\S[^:]*): (.*(?:\n     +.*)*)", re.MULTILINE)


def page() -> str:
    parts = [
        "# In Python",
        note("the docstrings"),
        paragraph(
            "The functions of `ascend_shims`, and the values that they give. All are "
            "typed; the values are frozen. What is not here is not for programs, and "
            "may change from release to release."
        ),
    ]
    for module, file, names in _SHOWN:
        tree = ast.parse((_ROOT / file).read_text("utf-8"))
        parts.append(f"## {module}")
        for node in _public(tree, names):
            parts += _class(node) if isinstance(node, ast.ClassDef) else _function(node)
    return "\n\n".join(parts) + "\n"


def _public(
    tree: ast.Module, names: tuple[str, ...]
) -> Iterator[_Function | ast.ClassDef]:
    wanted = names or _exported(tree)
    there = {
        node.name: node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    gone = sorted(set(names) - there.keys())
    if gone:
        raise LookupError(f"{', '.join(gone)} not there any more; mend _SHOWN")
    # In the order of the source, which is the one to read them in.
    yield from (node for name, node in there.items() if name in wanted)


def _exported(tree: ast.Module) -> tuple[str, ...]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                return tuple(ast.literal_eval(value))
    raise LookupError("no __all__")


def _function(node: _Function) -> Iterator[str]:
    yield f"### {node.name}()"
    yield _fenced(_signature(node))
    yield from _documented(node)


def _class(node: ast.ClassDef) -> Iterator[str]:
    yield f"### {node.name}"
    yield from _documented(node)
    members = [*_members(node)]
    if members:
        yield "\n".join(members)


def _members(node: ast.ClassDef) -> Iterator[str]:
    for one, beneath in zip(node.body, [*node.body[1:], None], strict=True):
        match one:
            case ast.AnnAssign(target=ast.Name(id=name)) if not name.startswith("_"):
                told = _told_beneath(beneath)
                yield _item(f"{name}: {ast.unparse(one.annotation)}", told)
            case ast.FunctionDef(name=name) if not name.startswith("_"):
                text = ast.get_docstring(one) or ""
                yield _item(_shown(one), text.partition("\n\n")[0])


def _told_beneath(node: ast.stmt | None) -> str:
    match node:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return text
    return ""


def _shown(node: ast.FunctionDef) -> str:
    given = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    if any(
        isinstance(one, ast.Name) and one.id == "property"
        for one in node.decorator_list
    ):
        return f"{node.name}{given.replace(' ->', ':')}"
    return f"{node.name}({_without_self(node)}){given}"


def _without_self(node: _Function) -> str:
    arguments = ast.unparse(node.args)
    return re.sub(r"^(?:self|cls)(?:, )?", "", arguments)


def _item(name: str, told: str) -> str:
    # A docstring in code style has its names in single backticks already.
    return paragraph(f"- `{name}`{f': {told}' if told else ''}", "  ")


def _signature(node: _Function) -> str:
    given = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    one_line = f"{node.name}({ast.unparse(node.args)}){given}"
    if len(one_line) <= 80:
        return one_line
    parts = _arguments(node.args)
    inside = "".join(f"    {part},\n" for part in parts)
    return f"{node.name}(\n{inside}){given}"


def _arguments(given: ast.arguments) -> list[str]:
    """Each as it is written, which one long line does not tell well."""
    shown = []
    first = len(given.args) - len(given.defaults)
    for position, one in enumerate(given.args):
        default = given.defaults[position - first] if position >= first else None
        shown.append(_argument(one, default))
    if given.vararg:
        shown.append(f"*{ast.unparse(given.vararg)}")
    elif given.kwonlyargs:
        shown.append("*")
    pairs = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    shown += [_argument(one, default) for one, default in pairs]
    return shown


def _argument(one: ast.arg, default: ast.expr | None) -> str:
    return ast.unparse(one) + (f" = {ast.unparse(default)}" if default else "")


def _fenced(text: str) -> str:
    return f"```text\n{text}\n```"


def _documented(node: _Function | ast.ClassDef) -> Iterator[str]:
    """Paragraphs, then arguments and errors as lists."""
    text = ast.get_docstring(node)
    if not text:
        raise LookupError(f"{node.name} has no docstring")
    told, *sections = _SECTION.split(text)
    for part in told.strip().split("\n\n"):
        yield _fenced(part) if part.startswith("    ") else paragraph(part)
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        yield {"Args": "Arguments:", "Raises": "Raises:"}[title]
        items = _ITEM.findall(body)
        yield "\n".join(paragraph(f"- `{name}`: {what}", "  ") for name, what in items)
