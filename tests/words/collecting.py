"""What the source says to people: every text that looks like one, with named holes."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click

PACKAGE = Path(__file__).parents[2] / "ascend_shims"

ROOMS = (
    "cli",
    "coexistence.py",
    "doctor",
    "engine",
    "environment",
    "files.py",
    "observe",
    "plan.py",
    "process.py",
    "processes",
    "registry",
    "report.py",
    "scaffold",
    "scan",
    "spelling.py",
    "switches.py",
    "upstream",
    "verify",
)

_TAG = re.compile(r"\[/?(bold|red|green|yellow|cyan|dim| )+\]")
"""Of a style, in what a console is given."""
_HOLE = re.compile(r"\{\w+\}")


def sources() -> Iterator[Path]:
    for room in ROOMS:
        path = PACKAGE / room
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of every literal that may be a sentence."""
    yield from _Texts(ast.parse(path.read_text("utf-8"))).found()


class _Texts:
    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.skipped: set[int] = set()

    def found(self) -> Iterator[tuple[int, str]]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                self.skipped.add(id(node.value))
            if isinstance(node, ast.JoinedStr):
                self.skipped.update(
                    id(v) for v in node.values if isinstance(v, ast.Constant)
                )
            if isinstance(node, ast.FormattedValue) and node.format_spec:
                self.skipped.add(id(node.format_spec))
                for v in ast.walk(node.format_spec):
                    self.skipped.add(id(v))
        for node in ast.walk(self.tree):
            if id(node) in self.skipped:
                continue
            text = template(node)
            if text is not None and may_be_said(text):
                yield node.lineno, _TAG.sub("", text).strip()


def may_be_said(text: str) -> bool:
    """Whether it has a word and a space, of its own and not in a hole."""
    bare = _HOLE.sub("", text)
    return bool(re.search(r"[A-Za-z]{2,}", bare) and re.search(r"\s", bare))


def template(node: ast.AST) -> str | None:
    """A literal's text, its values as named holes."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if not isinstance(node, ast.JoinedStr):
        return None
    parts, names = [], {}
    for value in node.values:
        if isinstance(value, ast.Constant):
            parts.append(str(value.value))
        elif isinstance(value, ast.FormattedValue):
            parts.append("{" + _name(value.value, names) + "}")
    return "".join(parts)


def _name(value: ast.AST, names: dict[str, int]) -> str:
    words = re.findall(r"[a-zA-Z_]+", ast.unparse(value)) or ["value"]
    name = words[-1].strip("_").lower() or "value"
    names[name] = names.get(name, 0) + 1
    return name if names[name] == 1 else f"{name}{names[name]}"


def helps() -> Iterator[str]:
    """Every text of every help screen, as the formatter looks it up."""
    from ascend_shims.cli.app import _GROUPS, shims
    from ascend_shims.cli.helping import as_it_stands, paragraphs

    root = click.Context(shims)
    commands = [shims, *(shims.get_command(root, n) for n in shims.list_commands(root))]
    for group, about in _GROUPS.items():
        yield group
        yield from about.values()
    for command in commands:
        assert command is not None
        for text in (command.help or "", command.epilog or ""):
            for paragraph in paragraphs(inspect.cleandoc(text)):
                if not paragraph.startswith("\b"):
                    yield paragraph
                    continue
                for typed, about in as_it_stands(paragraph):
                    yield about or typed.strip()
        context = click.Context(command)
        for parameter in command.get_params(context):
            if isinstance(parameter, click.Option) and parameter.help:
                yield " ".join(parameter.help.split())
