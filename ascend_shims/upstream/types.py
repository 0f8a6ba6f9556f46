"""A modest guess at what class an expression is an instance of.

Follows annotations, constructor calls and attributes set on `self`, a few steps
deep. Silence means unknown, never "of no class".
"""

from __future__ import annotations

import ast

from ascend_shims.upstream.facts.classes import Class, class_at, class_of
from ascend_shims.upstream.facts.resolve import Definition, expression, in_module
from ascend_shims.upstream.facts.scope import function_types
from ascend_shims.upstream.index import Place, tail
from ascend_shims.upstream.tree import Module, Tree

__all__ = ["annotated", "class_named", "instance_of", "receiver_self"]

_DEPTH = 5

_WRAPPERS = frozenset({"Optional", "type", "Type", "Annotated", "Final", "ClassVar"})


def receiver_self(expr: ast.expr, place: Place) -> str | None:
    """The class around, if `expr` is the first parameter of one of its methods."""
    if not isinstance(expr, ast.Name) or not place.owner or not place.functions:
        return None
    method = place.functions[0]
    if isinstance(method, ast.Lambda):
        return None
    if any(tail(decorator) == "staticmethod" for decorator in method.decorator_list):
        return None
    plain = [*method.args.posonlyargs, *method.args.args]
    return place.owner if plain and plain[0].arg == expr.id else None


def class_named(
    tree: Tree, module: Module, expr: ast.expr, place: Place
) -> Class | None:
    """The class that the expression itself is: `InputBatch`, `m.InputBatch`."""
    found = _named(tree, module, expr, place)
    return class_of(tree, found) if found is not None else None


def _named(
    tree: Tree, module: Module, expr: ast.expr, place: Place
) -> Definition | None:
    if isinstance(expr, ast.Name):
        for binding, where in module.index.imports:
            if binding.name == expr.id and where.functions[0] in place.functions:
                source = module.absolute(binding.module, binding.level)
                if binding.kind == "from":
                    return in_module(tree, source, binding.original)
    return expression(tree, module, expr)


def instance_of(
    tree: Tree, module: Module, expr: ast.expr, place: Place, depth: int = 0
) -> Class | str | None:
    """The class of the expression's value; a name if it lies outside the source."""
    if depth > _DEPTH:
        return None
    owner = receiver_self(expr, place)
    if owner is not None:
        return class_at(tree, module.name, owner)
    if isinstance(expr, ast.Name):
        return _variable(tree, module, expr, place, depth)
    if isinstance(expr, ast.Attribute):
        return _attribute(tree, module, expr, place, depth)
    if isinstance(expr, ast.Call):
        return _result(tree, module, expr, place, depth)
    if isinstance(expr, ast.IfExp):
        return instance_of(tree, module, expr.body, place, depth + 1) or instance_of(
            tree, module, expr.orelse, place, depth + 1
        )
    if isinstance(expr, ast.BoolOp):
        return instance_of(tree, module, expr.values[0], place, depth + 1)
    if isinstance(expr, ast.Await):
        return instance_of(tree, module, expr.value, place, depth + 1)
    return None


def _variable(
    tree: Tree, module: Module, expr: ast.Name, place: Place, depth: int
) -> Class | str | None:
    for function in reversed(place.functions):
        args = function.args
        for arg in [*args.posonlyargs, *args.args, *args.kwonlyargs]:
            if arg.arg == expr.id and arg.annotation is not None:
                return annotated(tree, module, arg.annotation)
    index = module.index
    for target, annotation, where in index.declared.get(expr.id, ()):
        if isinstance(target, ast.Name) and _visible(where, place):
            return annotated(tree, module, annotation)
    for target, value, where in index.assigned.get(expr.id, ()):
        if isinstance(target, ast.Name) and _visible(where, place):
            found = instance_of(tree, module, value, where, depth + 1)
            if found is not None:
                return found
    return None


def _visible(where: Place, place: Place) -> bool:
    return where.functions == place.functions[: len(where.functions)]


def _attribute(
    tree: Tree, module: Module, expr: ast.Attribute, place: Place, depth: int
) -> Class | str | None:
    base = instance_of(tree, module, expr.value, place, depth + 1)
    if not isinstance(base, Class):
        return None
    for one in base.mro:
        binding = one.scope.best(expr.attr)
        if binding is not None:
            if binding.annotation is not None:
                return annotated(tree, one.module, binding.annotation)
            if isinstance(binding.node, function_types):
                return annotated(tree, one.module, binding.node.returns)
            return None
        for method, statement in one.set_on_self.get(expr.attr, ()):
            if isinstance(statement, ast.AnnAssign):
                return _declared(tree, one, method, statement, depth)
            found = _set(tree, one, method, statement, depth)
            if found is not None:
                return found
    return None


def _declared(
    tree: Tree, cls: Class, method: str, statement: ast.AnnAssign, depth: int
) -> Class | str | None:
    """The declared class; unknown where what is assigned is plainly another's."""
    declared = annotated(tree, cls.module, statement.annotation)
    if statement.value is None or not isinstance(declared, Class):
        return declared
    held = _value(tree, cls, method, statement.value, depth)
    if isinstance(held, Class) and not held.inherits(declared.key):
        return None
    return declared


def _set(
    tree: Tree, cls: Class, method: str, statement: ast.stmt, depth: int
) -> Class | str | None:
    if not isinstance(statement, ast.Assign):
        return None
    return _value(tree, cls, method, statement.value, depth)


def _value(
    tree: Tree, cls: Class, method: str, value: ast.expr, depth: int
) -> Class | str | None:
    """The class of what a method assigns to an attribute of `self`."""
    binding = cls.scope.best(method)
    if binding is None or not isinstance(binding.node, function_types):
        return None
    place = Place(f"{cls.qualname}.{method}", cls.qualname, (binding.node,))
    return instance_of(tree, cls.module, value, place, depth + 1)


def _result(
    tree: Tree, module: Module, expr: ast.Call, place: Place, depth: int
) -> Class | str | None:
    named = _named(tree, module, expr.func, place)
    if named is not None and named.kind == "class":
        return class_of(tree, named)
    if named is not None and named.kind == "function":
        parsed = tree.module(named.module)
        if parsed is not None and isinstance(named.node, function_types):
            return annotated(tree, parsed, named.node.returns)
        return None
    if named is not None and named.kind == "external":
        return None
    if isinstance(expr.func, ast.Attribute):
        base = class_named(tree, module, expr.func.value, place) or instance_of(
            tree, module, expr.func.value, place, depth + 1
        )
        if isinstance(base, Class):
            member = base.member(expr.func.attr)
            if member is not None and member.function is not None:
                return annotated(tree, member.owner.module, member.function.returns)
    return None


def annotated(
    tree: Tree, module: Module, annotation: ast.expr | None
) -> Class | str | None:
    """The class that an annotation names, `X | None` and `type[X]` included."""
    if annotation is None:
        return None
    if isinstance(annotation, ast.Constant):
        if not isinstance(annotation.value, str):
            return None
        try:
            inner = ast.parse(annotation.value.strip(), mode="eval").body
        except SyntaxError:
            return None
        return annotated(tree, module, inner)
    if isinstance(annotation, ast.BinOp):
        sides = [annotation.left, annotation.right]
        plain = [s for s in sides if not _is_none(s)]
        return annotated(tree, module, plain[0]) if len(plain) == 1 else None
    if isinstance(annotation, ast.Subscript):
        if tail(annotation.value) not in _WRAPPERS:
            return annotated(tree, module, annotation.value)
        inner = annotation.slice
        return annotated(
            tree, module, inner.elts[0] if isinstance(inner, ast.Tuple) else inner
        )
    found = expression(tree, module, annotation)
    if found is None:
        return None
    if found.kind == "class":
        return class_of(tree, found)
    return found.name if found.kind == "external" and found.name != "Any" else None


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
