"""Whether the very same objects are back, in the process that held them before.

Everything that a walk has met is held and read again: the same names, in the same
order, with the same objects behind them, and these of the same parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from types import FunctionType, MethodType
from typing import Any, NamedTuple

from .elsewhere import Elsewhere
from .graph import Walk, joined, modules_of, quiet
from .names import name_of
from .parts import Derived
from .plain import SCALARS, scalar
from .raw import is_class, is_module, mro, namespace

__all__ = ["Difference", "differences"]

_ABSENT = object()
_SEQUENCES = (list, tuple)
_HOLDING = frozenset(map(id, (staticmethod, classmethod, property)))
_BOUND = frozenset(map(id, (staticmethod, classmethod, MethodType)))


class Difference(NamedTuple):
    """One name that is not as it was."""

    path: str
    kind: str
    what: str


def differences(
    walk: Walk, surroundings: Derived, elsewhere: Elsewhere | None = None
) -> list[Difference]:
    """What is not as it was when `walk` and `elsewhere` were made."""
    with quiet():
        found = [*_modules(walk), *_objects(walk)]
        found += _derived(walk, ["process"], walk.surroundings, surroundings)
        if elsewhere is not None:
            found += _elsewhere(walk, elsewhere)
    found = [*dict.fromkeys(found)]
    # What was imported is seldom what one looks for, and there may be thousands.
    return sorted(found, key=lambda one: one.kind == "imported")


def _elsewhere(walk: Walk, elsewhere: Elsewhere) -> Iterator[Difference]:
    for path, old, new, was_there, is_there in elsewhere.changes():
        if not is_there:
            yield Difference(path, "gone", f"is gone; it was {_said(walk, old)}")
        elif not was_there:
            yield Difference(path, "new", f"is new: {_said(walk, new)}")
        else:
            yield from _value(walk, path, old, new)


def _modules(walk: Walk) -> Iterator[Difference]:
    before = dict(zip(walk.labels[0], walk.values[0], strict=True))
    now = modules_of(walk.kinds.roots)
    for name, module in now.items():
        if name not in before:
            yield Difference(name, "imported", "was imported meanwhile")
        elif module is not before[name]:
            what = f"is another module in sys.modules: {name_of(module)}"
            yield Difference(name, "other-object", what)
    for name in walk.modules:
        if name not in now:
            yield Difference(name, "gone", "is gone from sys.modules")


def _objects(walk: Walk) -> Iterator[Difference]:
    for number in walk.watch.suspects(walk.kinds.parts):
        one, kind = walk.objects[number], walk.watch.kind(number)
        if type(one) is kind:
            yield from _parts(walk, number, *walk.kinds.parts(one))
        else:
            what = f"is of another class: {name_of(type(one))}, was {name_of(kind)}"
            yield Difference(walk.path(number), "other-class", what)


def _parts(
    walk: Walk, number: int, labels: list[str], values: list[Any]
) -> Iterator[Difference]:
    one = walk.objects[number]
    if issubclass(type(one), _SEQUENCES):
        yield from _sequence(walk, number, values)
        return
    before = dict(zip(walk.labels[number], walk.values[number], strict=True))
    now = dict(zip(labels, values, strict=True))
    for label, old in before.items():
        new = now.get(label, _ABSENT)
        if new is _ABSENT:
            what = f"is gone; it was {_said(walk, old)}"
            yield Difference(walk.path(number, label), "gone", what)
        elif type(old) is Derived and type(new) is Derived:
            yield from _derived(walk, [walk.path(number, label)], old, new)
        else:
            yield from _value(walk, walk.path(number, label), old, new)
    for label, new in now.items():
        if label not in before:
            kind, what = _new(walk, one, label, new)
            yield Difference(walk.path(number, label), kind, what)
    yield from _order(walk.path(number), before, now)


def _order(
    path: str, before: dict[str, Any], now: dict[str, Any]
) -> Iterator[Difference]:
    old = [label for label in before if label in now]
    new = [label for label in now if label in before]
    if old != new:
        first = next(o for o, n in zip(old, new, strict=True) if o != n)
        what = f"names stand in another order, from {first!r} on"
        yield Difference(path, "order", what)


def _sequence(walk: Walk, number: int, values: list[Any]) -> Iterator[Difference]:
    """A list: positions shift when something is put in, so it is by the elements."""
    yield from _elements(walk, walk.path(number), walk.values[number], values)


def _elements(
    walk: Walk, path: str, before: list[Any], values: list[Any]
) -> Iterator[Difference]:
    old = [_key(one) for one in before]
    new = [_key(one) for one in values]
    gone = [one for one, key in zip(before, old, strict=True) if key not in new]
    come = [one for one, key in zip(values, new, strict=True) if key not in old]
    for one in gone:
        yield Difference(path, "gone", f"lacks {_said(walk, one)}")
    for one in come:
        yield Difference(path, "new", f"holds {_said(walk, one)} as well")
    if not gone and not come and old != new:
        if len(old) == len(new):
            yield Difference(path, "order", "elements stand in another order")
        else:
            what = f"has {len(new)} elements instead of {len(old)}"
            yield Difference(path, "other-value", what)


def _key(one: Any) -> Any:
    return (type(one), one) if id(type(one)) in SCALARS else id(one)


def _derived(
    walk: Walk, labels: list[str], before: Derived, now: Derived
) -> Iterator[Difference]:
    """The same of what has been put together to be described."""
    old = dict(zip(before.labels, before.values, strict=True))
    new = dict(zip(now.labels, now.values, strict=True))
    for label, value in old.items():
        path = joined([*labels, label])
        if label not in new:
            yield Difference(path, "gone", f"is gone; it was {_said(walk, value)}")
        elif type(value) is Derived:
            yield from _derived(walk, [*labels, label], value, new[label])
        else:
            yield from _value(walk, path, value, new[label])
    for label, value in new.items():
        if before.kind == "modules" and _was_imported(label, value):
            # What the toolkit and patches are made of is imported when it is needed.
            continue
        if label not in old:
            what = f"is new: {_said(walk, value)}"
            yield Difference(joined([*labels, label]), "new", what)


def _was_imported(name: str, module: Any) -> bool:
    """Whether Python's import put a module where it is, and not somebody's code."""
    if not is_module(module):
        return False
    spec = namespace(module).get("__spec__")
    return type(spec) is ModuleSpec and (spec.name == name and spec.loader is not None)


def _value(walk: Walk, path: str, old: Any, new: Any) -> Iterator[Difference]:
    if old is new:
        return
    if id(type(old)) in SCALARS and type(new) is type(old) and old == new:
        # The interpreter makes and shares such values as it likes.
        return
    kind, what = _changed(walk, old, new)
    yield Difference(path, kind, what)
    if type(old) is list and type(new) is list:
        yield from _elements(walk, path, [*list.__iter__(old)], [*list.__iter__(new)])


def _changed(walk: Walk, old: Any, new: Any) -> tuple[str, str]:
    was, now = _said(walk, old), _said(walk, new)
    if type(old) is staticmethod and type(new) is FunctionType:
        return "plain-function", f"was a staticmethod and is the {now}"
    if type(old) is classmethod and type(new) is MethodType:
        return "bound-to-class", f"was a classmethod and is {now}"
    if id(type(old)) in SCALARS and id(type(new)) in SCALARS:
        return "other-value", f"was {was} and is {now}"
    if type(old) is not type(new):
        return "other-kind", f"was {was} and is {now}"
    if _same_code(old, new):
        return "other-object", f"is another object of the same code: {now}"
    return "other-object", f"is another object: {now}, was {was}"


def _same_code(old: Any, new: Any) -> bool:
    for name in ("__func__", "fget", "func"):
        if id(type(old)) in _HOLDING:
            old, new = getattr(old, name, old), getattr(new, name, new)
    return type(old) is FunctionType and old.__code__ is new.__code__


def _new(walk: Walk, owner: Any, label: str, value: Any) -> tuple[str, str]:
    said = _said(walk, value)
    if is_class(owner):
        for base in mro(owner)[1:]:
            raw = namespace(base).get(label, _ABSENT)
            if raw is not _ABSENT and _inner(raw) is _inner(value):
                what = f"is new: an own copy of what it inherits from {name_of(base)}"
                return "copy-of-inherited", what
    if is_module(owner) and is_module(value):
        name = f"{namespace(owner).get('__name__')}.{label}"
        if namespace(value).get("__name__") == name:
            return "imported", "was imported meanwhile"
    if is_module(owner) and "__getattr__" in namespace(owner):
        what = f"is new: {said}; the module's __getattr__ serves such names"
        return "served-name-made-real", what
    return "new", f"is new: {said}"


def _inner(raw: Any) -> Any:
    if id(type(raw)) in _BOUND:
        return raw.__func__
    return raw


def _said(walk: Walk, one: Any) -> str:
    """An object in a few words."""
    kind = type(one)
    if id(kind) in SCALARS:
        return scalar(one)
    if kind is Derived:
        return str(one.kind)
    if kind is FunctionType:
        file = "/".join(one.__code__.co_filename.rsplit("/", 2)[-2:])
        return f"function {name_of(one)} of {file}:{one.__code__.co_firstlineno}"
    if kind is staticmethod or kind is classmethod:
        return f"the {kind.__name__} {name_of(one.__func__)}"
    if kind is MethodType:
        return f"the method {name_of(one.__func__)} bound to {name_of(one.__self__)}"
    if kind is tuple:
        return name_of(one)
    if kind is property:
        return f"the property {name_of(one.fget)}"
    return walk.kinds.text(one)
