"""Our side of a patch: its replacement as the patches package has it.

Read as text, as everything here: a patches module imports torch.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from functools import cached_property

from ..registry.replacements import source_of
from .facts.scope import Scope, function_types, scope_of
from .facts.signature import Shape, Signature, shape_of, signature_of
from .index import tail

__all__ = ["Ours", "Replacements"]


@dataclass(frozen=True)
class Ours:
    """A function or class of a patches module."""

    name: str
    path: str
    line: int
    text: str
    """As written, decorators included."""
    signature: Signature | None
    """All parameters, of a class those of its constructor without `self`. `None`
    where they cannot be told from the text."""


class Replacements:
    """What one module of the patches package defines, read when it is asked for."""

    def __init__(self, package: str, module: str) -> None:
        self._package = package
        self._module = module

    def named(self, name: str) -> Ours | None:
        """The definition behind a module-level name; `None` where it has none here,
        for example because it is imported."""
        for _ in range(8):  # aliases of aliases
            binding = self._scope.best(name)
            if binding is None:
                return None
            if isinstance(binding.value, ast.Name):
                name = binding.value.id
                continue
            if isinstance(binding.node, (*function_types, ast.ClassDef)):
                return self._ours(name, binding.node)
            return None
        return None

    def calls(self, name: str) -> tuple[Shape, ...]:
        """How this module calls what has that name, however it got hold of it."""
        return tuple(dict.fromkeys(map(shape_of, self._calls.get(name, ()))))

    def _ours(
        self, name: str, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    ) -> Ours:
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        lines = self._text.splitlines()[first - 1 : node.end_lineno]
        return Ours(name, self._path, first, "\n".join(lines), _signature(node))

    @cached_property
    def _source(self) -> tuple[str, str]:
        return source_of(self._package, self._module) or ("", "")

    @property
    def _path(self) -> str:
        return self._source[0]

    @property
    def _text(self) -> str:
        return self._source[1]

    @cached_property
    def _scope(self) -> Scope:
        return scope_of(self._tree.body)

    @cached_property
    def _calls(self) -> dict[str, list[ast.Call]]:
        """Calls by the last identifier of what is called."""
        found: dict[str, list[ast.Call]] = {}
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Call):
                found.setdefault(tail(node.func), []).append(node)
        return found

    @cached_property
    def _tree(self) -> ast.Module:
        try:
            return ast.parse(self._text)
        except (SyntaxError, ValueError, RecursionError):
            return ast.Module(body=[], type_ignores=[])


def _signature(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef,
) -> Signature | None:
    if isinstance(node, ast.ClassDef):
        constructor = scope_of(node.body).best("__init__")
        if constructor is None or not isinstance(constructor.node, function_types):
            return None
        return _plain(signature_of(constructor.node).without_first())
    return _plain(signature_of(node))


def _plain(signature: Signature) -> Signature:
    """Without annotations: `Any` here says nothing of what upstream passes."""
    return Signature(tuple(replace(p, annotation=None) for p in signature.parameters))
