"""Reads one file from top to bottom, branch by branch, with what names stand for."""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from .calls import call, decorated
from .classes import finished, lay_over, read_class
from .conditional import conditional, note_stopped, settled, with_stopped
from .evaluate import evaluate, lambda_name, tail
from .files import Source
from .found import Gate
from .gates import Reading, read
from .handing import bind_parameters, hand_over
from .library import Library
from .lines import Lines
from .loops import comprehended
from .privates import note_private
from .raw import ClassInfo, FileFacts, Place, Raw, Setting
from .results import Results
from .scopes import Scope
from .stars import Stars
from .statements import STATEMENTS
from .values import (
    NOTHING,
    Local,
    OwnClass,
    Ref,
    Returned,
    Values,
    merged,
)

__all__ = ["Reader", "read_file"]

_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_BRANCHING = (ast.BoolOp, ast.IfExp)
_RESTORING = re.compile(r"restore|undo|revert|unpatch|reset|teardown|disable|remove")
_MANAGERS = ("contextmanager", "asynccontextmanager")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


_LEAVES: frozenset[type] = frozenset(
    {ast.Name, ast.Constant, type(None), str, int, bool}
    | {
        kind
        for base in (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)
        for kind in base.__subclasses__()
    }
)
"""Parts of syntax with nothing in them."""


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp)

_BARE = {"ctx", "op", "ops", "id", "attr", "arg", "kind", "type_comment"}


class _Fields(dict[type, tuple[str, ...]]):
    """By kind of node: its fields that may have something in them."""

    def __missing__(self, kind: type) -> tuple[str, ...]:
        names: tuple[str, ...] = getattr(kind, "_fields", ())
        found = self[kind] = tuple(name for name in names if name not in _BARE)
        return found


_FIELDS = _Fields()


_Block = tuple[Sequence[ast.stmt], tuple[Gate, ...]]


@dataclass
class _Job:
    """A function whose body is read once everything around it was."""

    node: ast.FunctionDef | ast.AsyncFunctionDef
    scope: Scope
    place: Place
    gates: tuple[Gate, ...]
    owner: OwnClass | None
    first: Values
    """What the first parameter stands for, where that is known."""


def read_file(
    source: Source, text: str, tree: ast.Module, setting: Setting, library: Library
) -> FileFacts:
    """What one file says."""
    reader = Reader(source, text, setting, library)
    reader.run(tree)
    return reader.facts


class Reader:
    """State while a file is read. Its parts are in the modules beside this one."""

    def __init__(
        self, source: Source, text: str, setting: Setting, library: Library
    ) -> None:
        self.source = source
        self.setting = setting
        self.library = library
        self.results = Results(self)
        self.facts = FileFacts(source)
        self.stars: Stars | None = None
        self.reads_source = "getsource" in text
        self.imports_by_name = "import_module" in text or "__import__" in text
        self.given: list[Values] = []
        """What the function that is read gives back."""
        self.scope = Scope(reader=self)
        self.place = Place()
        self.gates: tuple[Gate, ...] = ()
        self.owner: OwnClass | None = None
        """The class whose body is read."""
        self.me: tuple[str, OwnClass] | None = None
        """What a method calls its object, and its class."""
        self.classes: list[tuple[ClassInfo, OwnClass]] = []
        self.tokens = _tokens(setting)
        self.jobs: deque[_Job] = deque()
        self.callers: dict[str, dict[int, tuple[Gate, ...]]] = {}
        """Gates of the calls of a function of this file, by its name and their line."""
        self.loads_files = "module_from_spec" in text
        self.seen_private: set[tuple[str, ...]] = set()
        self.done: set[int] = set()
        """Calls that were read already, by the identity of their nodes."""
        self._text = text
        self.lines = Lines(text)
        self._around: ast.AST | None = None
        self.patchers: dict[str, int] = {}
        """Lines of `mock.patch`, by the name that the patcher is given."""
        self.stopped: dict[str, int] = {}
        """Lines of `.stop`, by the name of the patcher."""
        self.silent = 0
        """How many blocks around are seen by type checkers only."""
        self.rounds = 0
        """Of loops over what is written out, so far."""

    def names_of(self, tree: ast.Module) -> Scope:
        """Only what its module-level names stand for; nothing is noted."""
        self.silent += 1
        self._begin(tree)
        self.jobs.clear()
        return self.scope

    def _begin(self, tree: ast.Module) -> None:
        if "import *" in self._text:
            self.stars = Stars(self, tree)
        self.block(tree.body)
        if self.stars is not None:
            self.facts.bound = frozenset(self.scope.names)

    def run(self, tree: ast.Module) -> None:
        self._begin(tree)
        top = self.scope
        for name, values in top.names.items():
            for value in values[:1]:
                if isinstance(value, Ref):
                    self.facts.exports[name] = value.parts
        while self.jobs:
            self._function_body(self.jobs.popleft())
        with_stopped(self)
        self.facts.classes = [finished(*one) for one in self.classes]
        self._inherit()

    def emit(self, raw: Raw, definition: ast.AST | None = None) -> None:
        """Note it, with the nearest comment.

        Args:
            definition: of what is put there.
        """
        if not self.silent:
            comment = self.lines.near(raw.line, definition, self._around)
            self.facts.raws.append(replace(raw, comment=comment))

    def comment(self, line: int) -> str:
        return self.lines.near(line, self._around)

    def note_restoring(self, line: int) -> None:
        """Something is set of which nothing is known; it may put things back."""
        name = self.place.function.rpartition(".")[2]
        if self.place.cleaning or _RESTORING.search(name):
            self.facts.restoring.append((line, self.place))

    def conditions(self, test: ast.expr, *, holds: bool) -> tuple[Gate, ...]:
        by = Reading(lambda one: settled(self, one), self.lines.spelled)
        return read(test, by, holds=holds)

    @contextmanager
    def under(self, *gates: Gate) -> Iterator[None]:
        before = self.gates
        self.gates = (*before, *gates)
        try:
            yield
        finally:
            self.gates = before

    # Statements --------------------------------------------------------------------

    def block(self, statements: Sequence[ast.stmt]) -> bool:
        """Read statements; whether what follows the block is never reached by them."""
        before = self.gates
        ended = False
        for statement in statements:
            handler = STATEMENTS.get(type(statement))
            if handler is not None:
                ended = bool(handler(self, statement)) or ended
            else:
                self.expressions(statement)
            if isinstance(statement, _ENDS):
                ended = True
        self.gates = before
        return ended

    def branches(
        self, blocks: Iterable[tuple[Sequence[ast.stmt], tuple[Gate, ...]]]
    ) -> list[bool]:
        """Read blocks of which one runs; for each whether it ends what is around."""
        ends, results = [], []
        for statements, gates in blocks:
            with self.scope.apart() as after, self.under(*gates):
                ended = self.block(statements)
            results.append(ended)
            if not ended:
                ends.append(after)
        self.scope.join(ends)
        return results

    def expressions(self, node: ast.AST) -> None:
        """Calls and private names anywhere in a statement or expression."""
        stack: list[Any] = [] if type(node) in _LEAVES else [node]
        while stack:
            one = stack.pop()
            kind = type(one)
            if kind is ast.Call:
                call(self, one)
            elif kind is ast.Attribute:
                if one.attr[0] == "_":
                    note_private(self, one)
                elif one.attr in ("stop", "stopall"):
                    note_stopped(self, one)
            elif kind is ast.Yield or kind is ast.YieldFrom:
                self.place = replace(self.place, leaving=True)
            elif kind is ast.NamedExpr:
                evaluate(one, self.scope)
            elif kind in _BRANCHING and conditional(self, one):
                continue
            elif kind is ast.Lambda:
                self._lambda(one)
                continue
            elif kind in _COMPREHENSIONS and comprehended(self, one):
                continue
            for field in _FIELDS[kind]:
                value = getattr(one, field, None)
                if type(value) is list:
                    stack += [v for v in value if type(v) not in _LEAVES]
                elif type(value) not in _LEAVES:
                    stack.append(value)

    def _inherit(self) -> None:
        """A private function that is only called under conditions is under them."""
        common = {
            name: _common(list(gates.values()))
            for name, gates in self.callers.items()
            # Nothing but its definition and these calls may mention it.
            if name.startswith("_")
            and len(re.findall(rf"\b{name}\b", self._text)) == len(gates) + 1
        }
        common = {name: gates for name, gates in common.items() if gates}
        if not common:
            return
        facts = self.facts

        def gated(place: Place, gates: tuple[Gate, ...]) -> tuple[Gate, ...]:
            more = common.get(place.function.split(".")[0], ())
            return tuple(dict.fromkeys((*more, *gates)))

        facts.raws = [replace(r, gates=gated(r.place, r.gates)) for r in facts.raws]
        facts.calls = [replace(c, gates=gated(c.place, c.gates)) for c in facts.calls]

    # Functions and classes ----------------------------------------------------------

    def define(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        qualname = f"{self.place.qualname}.{node.name}".lstrip(".")
        first = NOTHING
        mine = (Local(node, qualname, self.scope),)
        for decorator in node.decorator_list:
            first = decorated(self, decorator, node, mine) or first
            self.expressions(decorator)
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.expressions(default)
        is_manager = any(tail(_called(d)) in _MANAGERS for d in node.decorator_list)
        manager = qualname if is_manager else self.place.manager
        place = Place(qualname, qualname, manager)
        if self.owner is not None and self.place.manager:
            leaving = node.name in ("__exit__", "__aexit__")
            place = replace(place, leaving=leaving, cleaning=leaving)
        local = (Local(node, qualname, self.scope),)
        owner = self.owner if self.scope.owner is self.owner else None
        if owner is not None:
            owner.names[node.name] = local
        self.scope.bind(node.name, local)
        job = _Job(node, self.scope, place, self.gates, owner, first)
        self.jobs.append(job)

    def _function_body(self, job: _Job) -> None:
        node, args = job.node, job.node.args
        plain = [*args.posonlyargs, *args.args]
        static = any(tail(d) == "staticmethod" for d in node.decorator_list)
        self.scope, self.me = Scope(job.scope), None
        names = bind_parameters(self, args, job.place.function)
        if job.owner is not None and plain and not static:
            self.scope.names[plain[0].arg] = (job.owner,)
            self.me = (plain[0].arg, job.owner)
            names = names[1:]
        if job.first and plain:
            self.scope.names[plain[0].arg] = job.first
        self.facts.parameters[job.place.function] = tuple(names)
        self.place, self.gates, self._around = job.place, job.gates, node
        self.owner = None
        self.block(node.body)

    def _lambda(self, node: ast.Lambda) -> None:
        """Its body, which is read where it stands."""
        scope, place = self.scope, self.place
        function = lambda_name(node)
        self.scope = Scope(scope)
        self.place = replace(place, function=place.function or function)
        names = bind_parameters(self, node.args, function)
        self.facts.parameters[function] = tuple(names)
        self.expressions(node.body)
        self.scope, self.place = scope, place

    def returned(self, function: Local, asked: Returned) -> Values:
        """What one function gives; nothing that it says is noted."""
        node = function.node
        before = vars(self).copy()
        self.facts, self.jobs, self.given = FileFacts(self.source), deque(), []
        self.gates, self.owner, self.me, self._around = (), None, None, None
        self.place, self.rounds = Place(function.qualname, function.qualname), 0
        self.seen_private, self.done = set(before["seen_private"]), set()
        self.callers = {}
        self.silent += 1
        self.scope = Scope(function.scope)
        try:
            hand_over(self.scope, node, asked)
            if isinstance(node, ast.Lambda):
                return evaluate(node.body, self.scope)
            self.block(node.body)
            return merged(*self.given)
        finally:
            vars(self).update(before)

    def class_(self, node: ast.ClassDef) -> None:
        qualname = f"{self.place.qualname}.{node.name}".lstrip(".")
        owner = OwnClass(qualname, module=tuple(self.source.module.split(".")))
        for decorator in node.decorator_list:
            decorated(self, decorator, node, (owner,))
            self.expressions(decorator)
        for base in (*node.bases, *(k.value for k in node.keywords)):
            self.expressions(base)
        read_class(self, node, owner)
        outer, place, before = self.scope, self.place, self.owner
        bodies = {one.name for one in node.body if isinstance(one, _FUNCTIONS)}
        manager = place.manager
        if bodies & {"__exit__", "__aexit__"}:
            manager = qualname
        self.scope = Scope(outer, owner, owner.names)
        self.place = replace(place, qualname=qualname, manager=manager)
        self.owner = owner
        waiting = len(self.jobs)
        self.block(node.body)
        lay_over(self, node)
        owner.names.update(self.scope.names)
        self.scope, self.place, self.owner = outer, place, before
        self._first_things_first(waiting)
        self.scope.bind(node.name, (owner,))

    def _first_things_first(self, waiting: int) -> None:
        """Methods of a class in the order in which they see each other's values."""
        mine = [self.jobs.pop() for _ in range(len(self.jobs) - waiting)][::-1]
        early = ("__init__", "__enter__", "__aenter__")
        mine.sort(key=lambda job: job.node.name not in early)
        self.jobs.extend(mine)


def _called(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _common(several: list[tuple[Gate, ...]]) -> tuple[Gate, ...]:
    return tuple(g for g in several[0] if all(g in gates for gates in several[1:]))


def _tokens(setting: Setting) -> tuple[str, ...]:
    """Words that mark a name as the scanned code's own."""
    words = {word for top in setting.own for word in top.lower().split("_")}
    return tuple(w for w in words - set(setting.upstreams) if len(w) > 2)
