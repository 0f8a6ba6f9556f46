"""A release as far as a lock's facts tell: source text that says just these.

Where the text of a baseline cannot be had, judges read this in its place. What the
facts do not tell is not in it; hashes of the real bodies go with it as records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .facts.record import Record
from .parsed import digest_of
from .source import SourceError

__all__ = ["StubSource"]

_INDENT = "    "


@dataclass
class _Node:
    """A definition, or a scope around definitions."""

    record: Record | None = None
    children: dict[str, _Node] = field(default_factory=dict)
    bases: list[str] = field(default_factory=list)
    """Of a class that is known through an inherited member alone."""
    loads: list[str] = field(default_factory=list)
    stores: list[str] = field(default_factory=list)
    """Statements of a method that sets attributes."""

    def at(self, qualname: str) -> _Node:
        node = self
        for part in qualname.split("."):
            node = node.children.setdefault(part, _Node())
        return node


@dataclass
class _Draft:
    root: _Node = field(default_factory=_Node)
    imports: dict[str, None] = field(default_factory=dict)


class StubSource:
    """The modules and symbols that a lock knows of one release.

    Args:
        label: how the release is called.
        modules: names of all modules that are known.
        records: facts by symbol, `module:Qual.name`.
    """

    def __init__(
        self,
        label: str,
        version: str | None,
        modules: Sequence[str],
        records: Mapping[str, Record],
    ) -> None:
        self.label = label
        self.version = version
        self.records = records
        self.problems: Mapping[str, str] = {}
        self.notes: tuple[str, ...] = ()
        drafts = _drafts(records)
        names = {*modules, *drafts}
        self._drafts = {_path(name, names): drafts.get(name) for name in names}

    def paths(self) -> Sequence[str]:
        return sorted(self._drafts)

    def read(self, path: str) -> bytes:
        if path not in self._drafts:
            raise SourceError(f"{path} is not among the lock's facts of {self.label}")
        draft = self._drafts[path]
        if draft is None:
            return b""
        lines = [*draft.imports, *_block(draft.root, "", within_class=False)]
        # Whoever keeps a verdict by what was read has to see other hashes too.
        told = digest_of(repr(list(_all(draft.root))).encode())
        return "\n".join([f"# {told}", *lines, ""]).encode()


def _path(name: str, names: set[str]) -> str:
    stem = name.replace(".", "/")
    is_package = any(other.startswith(f"{name}.") for other in names)
    return f"{stem}/__init__.py" if is_package else f"{stem}.py"


def _drafts(records: Mapping[str, Record]) -> dict[str, _Draft]:
    drafts: dict[str, _Draft] = {}

    def draft(module: str) -> _Draft:
        return drafts.setdefault(module, _Draft())

    for symbol, record in records.items():
        module, _, qualname = symbol.partition(":")
        home, _, name = record.defined.partition(":")
        asked = draft(module)
        for user in record.users:
            if user:
                asked.root.at(user).loads.append(qualname)
        if record.kind == "external":
            if "." not in qualname and "." not in name:
                asked.imports[_import(home, name, qualname)] = None
            continue
        if record.kind == "module" or not name:
            draft(home)
            continue
        _define(draft(home).root, name, record)
        if (home, name) != (module, qualname):
            _lead(asked, qualname, home, name)
    return drafts


def _define(root: _Node, name: str, record: Record) -> None:
    if record.kind != "set":
        root.at(name).record = record
        return
    owner, _, attribute = name.rpartition(".")
    said = f": {record.annotation}" if record.annotation else ""
    value = record.value or "None"
    for setter in record.setters:
        root.at(f"{owner}.{setter}").stores.append(f"self.{attribute}{said} = {value}")


def _lead(asked: _Draft, qualname: str, home: str, name: str) -> None:
    """From where something is asked for to where it is defined."""
    owner, _, _ = qualname.rpartition(".")
    real, _, _ = name.rpartition(".")
    if not owner:
        asked.imports[_import(home, name, qualname)] = None
    elif owner == real:
        asked.imports[_import(home, owner.split(".")[0], owner.split(".")[0])] = None
    else:
        top = real.split(".")[0]
        asked.imports[_import(home, top, top)] = None
        asked.root.at(owner).bases.append(real)


def _import(module: str, name: str, bound: str) -> str:
    if not name:
        return f"import {module} as {bound}"
    return f"from {module} import {name} as {bound}"


def _all(node: _Node) -> Iterator[Record]:
    if node.record is not None:
        yield node.record
    for child in node.children.values():
        yield from _all(child)


def _block(node: _Node, indent: str, *, within_class: bool) -> Iterator[str]:
    for name, child in node.children.items():
        yield from _written(name, child, indent, within_class=within_class)


def _written(
    name: str, node: _Node, indent: str, *, within_class: bool
) -> Iterator[str]:
    record = node.record
    if record is not None and record.kind == "value":
        said = f": {record.annotation}" if record.annotation else ""
        yield f"{indent}{name}{said} = {record.value or '...'}"
    elif record is not None and record.kind != "class":
        yield from _function(name, node, record, indent)
    elif record is None and not node.children and not node.bases:
        takes = "self" if within_class else ""
        yield f"{indent}def {name}({takes}):"
        yield from _body(node, indent + _INDENT)
    else:
        yield from _class(name, node, record, indent)


def _class(name: str, node: _Node, record: Record | None, indent: str) -> Iterator[str]:
    inner = indent + _INDENT
    bases = list(record.bases) if record else []
    bases += [base for base in node.bases if base not in bases]
    if record is not None and record.fields:
        yield f"{indent}@dataclass"
    yield f"{indent}class {name}({', '.join(bases)}):"
    yield f"{inner}pass"
    for declared in record.fields if record else ():
        yield inner + declared
    if record is not None and not record.fields and "__init__" not in node.children:
        yield f"{inner}def __init__{_with('self', record.signature)}:"
        yield f"{inner}{_INDENT}pass"
    for method in record.methods if record else ():
        if method not in node.children and method != "__init__":
            yield f"{inner}def {method}(self, *args, **kwargs): pass"
    for load in node.loads:
        yield inner + load
    yield from _block(node, inner, within_class=True)


def _function(name: str, node: _Node, record: Record, indent: str) -> Iterator[str]:
    for decorator in record.decorators:
        yield f"{indent}@{decorator}"
    said = f" -> {record.annotation}" if record.annotation else ""
    keyword = "async def" if record.kind == "async" else "def"
    # What a property takes is not said, since nobody passes it.
    takes = record.takes or ("self" if record.kind == "property" else "")
    signature = _with(takes, record.signature or "()")
    yield f"{indent}{keyword} {name}{signature}{said}:"
    yield from _body(node, indent + _INDENT)


def _body(node: _Node, indent: str) -> Iterator[str]:
    yield f"{indent}pass"
    for statement in (*node.loads, *node.stores):
        yield indent + statement
    yield from _block(node, indent, within_class=False)


def _with(first: str, signature: str) -> str:
    """Parameters with one more in front, which may be none."""
    rest = signature[1:-1]
    return f"({', '.join(part for part in (first, rest) if part)})"
