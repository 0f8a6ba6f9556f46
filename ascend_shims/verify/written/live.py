"""What a loaded module holds, against what its source binds.

A name that a plain `def` or `class` binds has to be that very code. What a decorator
or a call makes is nobody else's as long as its code is from a package that the
source imports. Plain data is not compared: programs change it as they run.
"""

from __future__ import annotations

import ast
import functools
import sys
import types
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, NamedTuple

from .expected import Binding, Scope, codes_of, scope_of
from .makers import has_other_defaults, is_altered, is_made
from .raw import (
    gap_of,
    is_callable,
    is_class,
    is_code,
    is_function,
    is_generated,
    is_module,
    is_one_of,
    layers_of,
    made_by,
    mro,
    namespace,
    top,
    unwrapped,
)

__all__ = ["Row", "audited"]

_MODULE_NAMES = frozenset(
    {
        *("__name__", "__doc__", "__package__", "__loader__", "__spec__", "__path__"),
        *("__file__", "__cached__", "__builtins__", "__annotations__", "__annotate__"),
        *("__warningregistry__", "__conditional_annotations__"),
    }
)
_STANDARD = (frozenset(sys.stdlib_module_names) | {"builtins", ""}) - {"unittest"}
"""Not `unittest`: where its mocks stand, somebody put them there."""


class Row(NamedTuple):
    """One name whose object is not what the source defines."""

    path: str
    what: str
    """`replaced`, `wrapped`, `added`, `missing` or `stale`."""
    by: str
    """Module of what is there; empty where there is nothing or it has none."""
    where: str
    """`file:line` of its code, as far as it has any."""
    gap: str
    """The gap that a mark of ours on it names."""
    about: str
    """What it is, or what it should be."""


def audited(name: str) -> Iterator[Row]:
    """The rows of a loaded module; none for one without a source file."""
    module = sys.modules.get(name)
    if not is_module(module):
        return
    source = _source(namespace(module).get("__spec__"))
    if source is not None:
        yield from _Audit(name, module, *source).rows()


def has_source(name: str) -> bool:
    """Whether a module was made from a source file that is there."""
    module = sys.modules.get(name)
    if not is_module(module):
        return False
    spec = namespace(module).get("__spec__")
    return isinstance(spec, ModuleSpec) and (spec.origin or "").endswith(".py")


def _source(spec: Any) -> tuple[ast.Module, types.CodeType] | None:
    if not isinstance(spec, ModuleSpec) or not (spec.origin or "").endswith(".py"):
        return None
    if getattr(spec, "_initializing", False):
        return None
    try:
        text = Path(str(spec.origin)).read_bytes()
        tree = ast.parse(text)
        code = compile(text, str(spec.origin), "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
    return tree, code


class _Audit:
    def __init__(
        self, name: str, module: Any, tree: ast.Module, code: types.CodeType
    ) -> None:
        self._name = name
        self._module = module
        self._tree = tree
        self._codes = codes_of(code)
        held = namespace(module)
        self._is_package = "__path__" in held
        self._scope = scope_of(tree.body, name, self._is_package)
        self._known = _STANDARD | {top(name)} | self._scope.packages

    def rows(self) -> Iterator[Row]:
        held, scope = namespace(self._module), self._scope
        for name, value in list(held.items()):
            if name in _MODULE_NAMES or not isinstance(name, str):
                continue
            path = f"{self._name}:{name}"
            bindings = scope.names.get(name)
            if bindings is None:
                yield from self._unbound(path, name, value, scope)
            else:
                yield from self._bound(path, name, value, bindings, scope)
        yield from self._missing(self._name + ":", held, scope)

    def _missing(self, prefix: str, held: Any, scope: Scope) -> Iterator[Row]:
        for name, bindings in scope.names.items():
            sure = any(one.sure for one in bindings)
            mangled = prefix.endswith(".") and name.startswith("__")
            if sure and name not in held and name not in scope.deleted and not mangled:
                kind = bindings[-1].kind
                about = "a value" if kind == "value" else f"by `{kind}`"
                yield Row(prefix + name, "missing", "", "", "", f"bound {about}")

    # Names of modules ------------------------------------------------------------

    def _unbound(self, path: str, name: str, value: Any, scope: Scope) -> Iterator[Row]:
        if name in scope.lazy or sys.modules.get(f"{self._name}.{name}") is value:
            return
        starred = [star for star in scope.stars if _has(star, name)]
        if starred:
            found = [Binding("from", None, True, star, name) for star in starred]
            yield from self._imported(path, value, found)
            return
        if not is_code(value) and not is_callable(value):
            return
        who = made_by(value)
        # What upstream makes by itself at run time shows in no text: types made in C,
        # names set through `globals()`.
        own = scope.is_dynamic or is_class(value)
        if not own or self._is_foreign(who):
            yield _row(path, "added", value, who)

    def _bound(
        self, path: str, name: str, value: Any, bindings: list[Binding], scope: Scope
    ) -> Iterator[Row]:
        kinds = {one.kind for one in bindings}
        if kinds <= {"import", "from"} and name not in scope.lazy:
            yield from self._imported(path, value, bindings)
            return
        if name in scope.lazy or kinds & {"value", "import", "from"}:
            if self._is_brought(value) and not self._is_written(value, bindings):
                yield _row(path, "replaced", value, made_by(value))
            return
        if "class" in kinds and is_class(value):
            yield from self._class(path, name, value, bindings)
            return
        yield from self._function(path, name, value, bindings)

    def _is_brought(self, value: Any) -> bool:
        """Whether a value is code from a package that nothing here knows of."""
        if not is_code(value) and not is_callable(value):
            return False
        if gap_of(value):
            return True
        return top(made_by(value)) not in self._handed_on

    @functools.cached_property
    def _handed_on(self) -> set[str]:
        """Packages that it imports, and those that these modules import."""
        found = set(self._known)
        for bindings in self._scope.names.values():
            found.update(*(_imports(one.module) for one in bindings if one.module))
        return found

    def _is_written(self, value: Any, bindings: list[Binding]) -> bool:
        """Whether one of the statements says so: `f = other.f`."""
        for one in bindings:
            if one.kind in ("import", "from"):
                if any(value is each for each in _sources(one)):
                    return True
            elif value is self._evaluated(one.node):
                return True
        return False

    def _evaluated(self, node: Any) -> Any:
        """What a dotted name leads to, raw; None of anything else."""
        if isinstance(node, ast.Name):
            return namespace(self._module).get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self._evaluated(node.value)
            if is_module(owner) or is_class(owner):
                return namespace(owner).get(node.attr)
        return None

    def _imported(
        self, path: str, value: Any, bindings: list[Binding]
    ) -> Iterator[Row]:
        if not (is_code(value) or is_module(value)):
            return
        sources = [each for one in bindings for each in _sources(one)]
        if not sources or any(value is each for each in sources):
            return
        who, gap = made_by(value), gap_of(value)
        behind = [made_by(each) for each in sources]
        if gap or self._is_foreign(who):
            yield _row(path, "replaced", value, who)
        elif any(gap_of(each) for each in sources) or any(
            self._is_foreign(each) for each in behind
        ):
            there = bindings[0].module
            yield Row(path, "stale", who, "", "", f"{there} has another one by now")

    # Functions and classes -------------------------------------------------------

    def _is_foreign(self, who: str) -> bool:
        return top(who) not in self._known

    def _decorating(self, node: Any) -> set[str]:
        """Packages of its decorators, and those that their modules import."""
        found: set[str] = set()
        for one in node.decorator_list:
            named = one.func if isinstance(one, ast.Call) else one
            who = made_by(self._evaluated(named))
            found |= {top(who), *_imports(who)}
        return found

    def _function(
        self,
        path: str,
        qualname: str,
        value: Any,
        defs: list[Binding],
        made: bool = False,
    ) -> Iterator[Row]:
        """`made`: something else has a say in it, as a decorator has."""
        codes = self._codes.get(qualname, [])
        plain, who = unwrapped(value), made_by(value)
        if is_function(plain) and is_one_of(plain.__code__, codes):
            yield from self._defaults(path, value, defs)
            return
        known = set(self._known)
        for one in defs:
            known |= self._decorating(one.node)
        layers = list(layers_of(value))
        decorated = made or any(one.node.decorator_list for one in defs)
        if decorated and not gap_of(value) and top(who) in known:
            # Beneath what a decorator made, somebody else may stand.
            inside = (one for one in layers[1:] if is_function(one))
            for layer in inside:
                if gap_of(layer) or top(made_by(layer)) not in known:
                    yield _row(path, "wrapped", layer, made_by(layer))
                    return
            for layer in layers[1:]:
                if is_function(layer) and is_one_of(layer.__code__, codes):
                    yield from self._defaults(path, layer, defs)
                    return
            return
        holds = any(is_function(o) and is_one_of(o.__code__, codes) for o in layers)
        yield _row(path, "wrapped" if holds else "replaced", value, who)

    def _defaults(self, path: str, value: Any, defs: list[Binding]) -> Iterator[Row]:
        if has_other_defaults(value, [one.node for one in defs]):
            yield Row(path, "replaced", "", "", gap_of(value), "its default values")

    def _class(
        self, path: str, qualname: str, value: Any, bindings: list[Binding]
    ) -> Iterator[Row]:
        held = namespace(value)
        nodes = [one.node for one in bindings if one.kind == "class"]
        own = held.get("__module__") == self._name
        named = type.__dict__["__qualname__"].__get__(value) == qualname
        if not (own and named):
            decorated = any(node.decorator_list for node in nodes)
            if not decorated or self._is_foreign(made_by(value)):
                yield _row(path, "replaced", value, made_by(value))
            return
        yield from self._members(path, qualname, value, nodes)

    def _members(
        self, path: str, qualname: str, value: Any, nodes: list[ast.ClassDef]
    ) -> Iterator[Row]:
        scopes = [scope_of(node.body, self._name, self._is_package) for node in nodes]
        made = is_made(value, nodes)
        altered = made and is_altered(value, nodes, self._evaluated)
        known = self._known | _providers(value)
        for node in nodes:
            known |= self._decorating(node)
        held = namespace(value)
        for name, member in list(held.items()):
            if not isinstance(name, str):
                continue
            bindings = [b for s in scopes for b in s.names.get(_plain(name, value), ())]
            place = f"{path}.{name}"
            defs = [one for one in bindings if one.kind in ("def", "class")]
            if not (defs or is_code(member) or is_callable(member)):
                continue
            who, gap = made_by(member), gap_of(member)
            foreign = bool(gap) or top(who) not in known
            if not bindings:
                quiet = made or is_class(member) or is_generated(member)
                if foreign or not quiet:
                    yield _row(place, "added", member, who)
            elif len(defs) < len(bindings):
                if foreign:
                    yield _row(place, "replaced", member, who)
            elif defs[-1].kind == "class" and is_class(member):
                inner = f"{qualname}.{name}"
                yield from self._class(place, inner, member, defs)
            else:
                inner = f"{qualname}.{_plain(name, value)}"
                for row in self._function(place, inner, member, defs, altered):
                    if row.gap or not altered or top(row.by) not in known:
                        yield row
        if len(scopes) == 1 and not altered:
            for row in self._missing(f"{path}.", held, scopes[0]):
                # A field or a member of an enumeration may be moved elsewhere.
                if not made or row.about in ("bound by `def`", "bound by `class`"):
                    yield row


def _row(path: str, what: str, value: Any, who: str) -> Row:
    inner = unwrapped(value)
    code = getattr(inner, "__code__", None) if is_function(inner) else None
    where = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""
    return Row(path, what, who, where, gap_of(value), type(inner).__name__)


def _sources(binding: Binding) -> Iterator[Any]:
    """What an import gives now."""
    module = sys.modules.get(binding.module)
    if binding.kind == "import":
        if module is not None:
            yield module
        return
    if is_module(module):
        held = namespace(module)
        if binding.original in held:
            yield held[binding.original]
    inner = sys.modules.get(f"{binding.module}.{binding.original}")
    if inner is not None:
        yield inner


def _has(module: str, name: str) -> bool:
    there = sys.modules.get(module)
    return is_module(there) and name in namespace(there)


def _plain(name: str, owner: Any) -> str:
    """A private name as it is written in the class."""
    prefix = f"_{type.__dict__['__name__'].__get__(owner).lstrip('_')}__"
    return name[len(prefix) - 2 :] if name.startswith(prefix) else name


def _providers(cls: Any) -> set[str]:
    """Packages of its bases and metaclass, and those that these modules import."""
    found: set[str] = set()
    for one in (*mro(cls), type(cls)):
        name = made_by(one)
        found.add(top(name))
        found |= _imports(name)
    return found


@functools.lru_cache(maxsize=4096)
def _imports(name: str) -> frozenset[str]:
    module = sys.modules.get(name)
    if not is_module(module):
        return frozenset()
    source = _source(namespace(module).get("__spec__"))
    if source is None:
        return frozenset()
    scope = scope_of(source[0].body, name, "__path__" in namespace(module))
    return frozenset(scope.packages)
