"""Values seen through attributes, keys and halves, without any syntax."""

from __future__ import annotations

from dataclasses import replace

from .values import (
    EVERY_MODULE,
    NOTHING,
    Local,
    Modules,
    OwnClass,
    Param,
    Ref,
    Returned,
    Seq,
    Space,
    Table,
    Text,
    Value,
    Values,
    VersionOf,
    merged,
)

__all__ = [
    "by_parameter",
    "dotted",
    "every_module",
    "halves",
    "is_class",
    "items_of",
    "member",
    "module_named",
    "of_object",
    "view",
    "zipped",
]


def dotted(text: str) -> tuple[str, ...]:
    """The parts of `a.b:C.d`, or nothing where it is no dotted name."""
    parts = tuple(text.replace(":", ".").split("."))
    return parts if all(part.isidentifier() for part in parts) else ()


def member(values: Values, name: str) -> Values:
    """What an attribute of some values may be."""
    found: list[Values] = []
    for value in values:
        if isinstance(value, Ref):
            found.append((_of_ref(value, name),))
        elif isinstance(value, OwnClass):
            found.append(value.names.get(name, NOTHING))
        elif isinstance(value, Param):
            found.append((value.at(name),))
        elif isinstance(value, VersionOf) and name in ("public", "base_version"):
            found.append((value,))
        elif isinstance(value, Returned):
            found.append((replace(value, path=(*value.path, name)),))
        elif isinstance(value, Local) and name == "__name__":
            found.append((Text(value.qualname.rpartition(".")[2]),))
    return merged(*found)


def _of_ref(value: Ref, name: str) -> Value:
    if value.parts == ("sys",) and name == "modules":
        return Modules()
    if name == "__dict__":
        return Space(value)
    if name == "__globals__" and len(value.parts) > 1:
        return Space(Ref(_module_of(value.parts)))
    if name == "__name__" and len(value.parts) > 1:
        return Text(value.parts[-1])
    if name == "__module__" and len(value.parts) > 1:
        return Text(".".join(value.parts[:-1]))
    if name in ("__version__", "__version_tuple__") and len(value.parts) == 1:
        return VersionOf(value.parts[0])
    if name in ("__func__", "__wrapped__", "fget", "fset"):
        return value
    return Ref((*value.parts, name))


def _module_of(parts: tuple[str, ...]) -> tuple[str, ...]:
    """The module that a function is in, be it a method."""
    owner = parts[:-1]
    while len(owner) > 1 and is_class(owner[-1].lstrip("_")):
        owner = owner[:-1]
    return owner


def is_class(name: str) -> bool:
    return name[:1].isupper() and not name.isupper()


def module_named(value: Value) -> Values:
    """The module that some text names."""
    if isinstance(value, Text):
        parts = dotted(value.value)
        return (Ref(parts),) if parts else NOTHING
    return (replace(value, is_module=True),) if isinstance(value, Param) else NOTHING


def by_parameter(owners: Values, name: Param) -> Values:
    """An attribute whose name is a parameter."""
    found: list[Value] = []
    for owner in owners:
        if isinstance(owner, Param):
            found.append(owner.at(name))
        elif isinstance(owner, Ref):
            found.append(Param("", (*owner.parts, name)))
    return tuple(found)


def of_object(name: str, values: Values) -> Values:
    refs = [value for value in values if isinstance(value, Ref)]
    if name == "vars":
        return tuple(Space(ref) for ref in refs)
    if name == "unwrap":
        return tuple(refs)
    return tuple(Ref(ref.parts[:-1]) for ref in refs if len(ref.parts) > 1)


def every_module(how: str) -> Values:
    if how == "values":
        return (Seq(((EVERY_MODULE,),)),)
    return (Seq(((Seq((NOTHING, (EVERY_MODULE,))),),)),)


def halves(text: Text, how: str) -> Values:
    head, _, last = text.value.rpartition(".")
    middle = ((Text("."),),) if how == "rpartition" else ()
    return (Seq(((Text(head),), *middle, (Text(last),))),)


def view(table: Table, name: str) -> Values:
    if name == "items":
        return (Seq(tuple((Seq(pair),) for pair in table.items)),)
    if name == "keys":
        return (Seq(tuple(key for key, _ in table.items)),)
    if name == "values":
        return (Seq(tuple(value for _, value in table.items)),)
    return (table,) if name == "copy" else NOTHING


def items_of(values: Values) -> Values:
    found: list[Value] = []
    for value in values:
        if isinstance(value, Table):
            found += view(value, "keys")
        elif isinstance(value, Seq):
            found.append(value)
    return tuple(found)


def zipped(several: list[Values]) -> Values:
    rows: list[tuple[Values, ...]] = []
    for values in several:
        seqs = [value for value in items_of(values) if isinstance(value, Seq)]
        if len(seqs) != 1:
            return NOTHING
        rows.append(seqs[0].items)
    return (Seq(tuple((Seq(tuple(row)),) for row in zip(*rows, strict=False))),)
