"""One spelling for annotations that mean the same."""

from __future__ import annotations

import ast

__all__ = ["arguments", "normal", "split_union", "tuple_arity"]

_RENAMED = {
    "List": "list",
    "Dict": "dict",
    "Tuple": "tuple",
    "Set": "set",
    "FrozenSet": "frozenset",
    "Type": "type",
    "DefaultDict": "defaultdict",
    "Text": "str",
}


def normal(node: ast.expr | None) -> str | None:
    """The annotation in one spelling, `None` where there is none.

    `Optional[int]`, `int | None`, `"int | None"` and `typing.Union[None, int]` are
    one; so are `List[int]` and `list[int]`, `torch.Tensor` and `Tensor`.
    """
    return None if node is None else _text(node)


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return _constant(node)
    if isinstance(node, ast.Name):
        return _RENAMED.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        return _RENAMED.get(node.attr, node.attr)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union([node.left, node.right])
    if isinstance(node, ast.Subscript):
        return _subscript(node)
    if isinstance(node, ast.List | ast.Tuple):
        inner = ", ".join(_text(element) for element in node.elts)
        return f"[{inner}]" if isinstance(node, ast.List) else inner
    return ast.unparse(node)


def _constant(node: ast.Constant) -> str:
    if node.value is None:
        return "None"
    if node.value is Ellipsis:
        return "..."
    if isinstance(node.value, str):
        try:
            return _text(ast.parse(node.value.strip(), mode="eval").body)
        except SyntaxError:
            return node.value
    return repr(node.value)


def _subscript(node: ast.Subscript) -> str:
    head = _text(node.value)
    if head == "Optional":
        return _union([node.slice, ast.Constant(None)])
    if head == "Union":
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return _union(inner)
    if head == "Annotated" and isinstance(node.slice, ast.Tuple):
        return _text(node.slice.elts[0])
    if head == "Literal":
        return f"Literal[{ast.unparse(node.slice)}]"
    return f"{head}[{_text(node.slice)}]"


def _union(nodes: list[ast.expr]) -> str:
    parts: set[str] = set()
    for node in nodes:
        parts.update(split_union(_text(node)))
    return " | ".join(sorted(parts - {"None"}) + sorted(parts & {"None"}))


def split_union(text: str) -> list[str]:
    """The members of a union, not those of unions inside its brackets."""
    return _split(text, " | ")


def _split(text: str, by: str) -> list[str]:
    parts, depth, start, at = [], 0, 0, 0
    while at < len(text):
        depth += (text[at] in "[(") - (text[at] in "])")
        if not depth and text.startswith(by, at):
            parts.append(text[start:at])
            start = at = at + len(by)
        else:
            at += 1
    return [*parts, text[start:]]


def arguments(text: str) -> tuple[str, list[str]]:
    """`dict[str, int]` -> `dict` and its arguments."""
    head, bracket, rest = text.partition("[")
    return head, _split(rest[:-1], ", ") if bracket else []


def tuple_arity(annotation: str | None) -> int | None:
    """How many values `tuple[...]` says; `None` where it does not say."""
    if annotation is None or not annotation.startswith("tuple["):
        return None
    if not annotation.endswith("]") or "..." in annotation:
        return None
    depth, count = 0, 1
    for char in annotation[len("tuple[") : -1]:
        depth += (char in "[(") - (char in "])")
        if depth < 0:
            return None
        count += char == "," and depth == 0
    return count
