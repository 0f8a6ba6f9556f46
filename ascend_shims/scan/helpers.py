"""Patches through functions of the scanned code: `set_attribute(module, "name", new)`.

A function that sets an attribute of a parameter is a template. Each of its calls with
names that can be told makes a patch of it: in the line of the call, or in the line of
the statement where that has the name and several calls lead to it. Calls that hand on
a parameter of their own are followed to who calls them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from .filled import Given, fill, handed_over, of_object
from .found import Gate
from .names import Names, is_class_name
from .raw import Call, ClassInfo, FileFacts, Raw
from .values import NOTHING, UNTOLD, Param, Ref, Text, Values

__all__ = ["instances"]

_HOPS = 5
"""Functions that hand on what they were handed."""
_MOST = 400
"""Ways from one statement to who calls it."""

_HOLDERS = re.compile(r"(^|_)(cls|klass|class|mod|module)$")
"""What parameters are called that are a class or module."""
_PATCHES = re.compile(r"patch|override|hijack|monkey|inject", re.I)


@dataclass(frozen=True)
class _Way:
    """A statement's target, as far as the calls so far tell it."""

    template: Param
    gates: tuple[Gate, ...] = ()
    hops: int = 0
    by_object: bool = False
    at: tuple[str, Call] | None = None
    """The file and call that gave the name of the attribute."""
    last: tuple[str, Call] | None = None


def instances(
    files: Sequence[FileFacts], names: Names, aside: Sequence[FileFacts] = ()
) -> Mapping[str, Sequence[Raw]]:
    """By path: what calls of templates patch, and templates that nobody fills in.

    The templates are taken out of `files`.

    Args:
        aside: files that are read for these, and of which nothing is told.
    """
    calls = _Calls([*files, *aside], names)
    made: defaultdict[str, list[Raw]] = defaultdict(list)
    spelled = {".".join(names.own(n)[:-1]) for f in files for n in f.spelled}
    for facts in (*files, *aside):
        path = facts.source.path
        for raw in facts.raws:
            if raw.template is None:
                continue
            filled = False
            for value, way in calls.targets(raw.template):
                filled = True
                where, one = _instance(path, raw, value, way, names)
                if one is not None:
                    made[where].append(one)
            # What their calls spell is known already.
            is_known = raw.template.is_module and facts.source.module in spelled
            for value, way in () if filled else calls.namesakes(raw.template, facts):
                filled = True
                _, one = _instance(path, raw, value, way, names)
                made[path] += [one] if one is not None else []
            if not filled and not is_known and raw.template.name not in facts.objects:
                made[path] += _open(raw, names)
        facts.raws = [raw for raw in facts.raws if raw.template is None]
    return made


class _Calls:
    """Every call of a function of the scanned code, by function."""

    def __init__(self, files: Sequence[FileFacts], names: Names) -> None:
        self._names = names
        self._parameters: dict[str, tuple[str, ...]] = {}
        self._nested: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self._classes: dict[tuple[str, ...], ClassInfo] = {}
        self._functions: dict[tuple[str, ...], str] = {}
        for facts in files:
            module = facts.source.module
            for function, known in facts.parameters.items():
                callee = f"{module}:{function}"
                self._parameters[callee] = known
                self._functions[(*module.split("."), *function.split("."))] = callee
                outer, _, _ = function.rpartition(".")
                if outer in facts.parameters and known:
                    self._nested[f"{module}:{outer}"][callee] = known[0]
            self._classes.update({info.names: info for info in facts.classes})
        self._sites: defaultdict[str, list[tuple[str, Call]]] = defaultdict(list)
        self._methods: defaultdict[str, list[tuple[str, Call]]] = defaultdict(list)
        known_callees: dict[tuple[str, ...], str | None] = {}
        for facts in files:
            for call in facts.calls:
                site = (facts.source.path, call)
                if call.of is not None:
                    self._methods[call.callee[0]].append(site)
                    continue
                if call.callee not in known_callees:
                    known_callees[call.callee] = self._function(call.callee)
                named = known_callees[call.callee]
                if named is not None:
                    self._sites[named].append(site)

    def _function(self, callee: tuple[str, ...], deep: int = 0) -> str | None:
        """The function behind a name by which it is called."""
        for parts in (callee, self._names.own(callee)):
            for whole in (parts, (*parts, "__init__")):
                if whole in self._functions:
                    return self._functions[whole]
            info = self._classes.get(parts[:-1])
            for base in info.bases if info is not None and deep < _HOPS else ():
                found = self._function((*self._names.own(base), parts[-1]), deep + 1)
                if found is not None:
                    return found
        return None

    def targets(self, template: Param) -> Iterator[tuple[Ref, _Way]]:
        """What a template stands for, and by which calls."""
        open_, seen = [_Way(template)], {template}
        while open_ and len(seen) < _MOST:
            way = open_.pop()
            for given, site, by_object in self._given(way.template):
                for value in fill(way.template, given):
                    if isinstance(value, Text):
                        value = Ref(tuple(value.value.split(".")))
                    next_ = _onward(way, value, site, by_object)
                    if isinstance(value, Ref):
                        yield value, next_
                    elif isinstance(value, Param) and value not in seen:
                        seen.add(value)
                        if next_.hops < _HOPS:
                            open_.append(replace(next_, template=value))

    def namesakes(
        self, template: Param, facts: FileFacts
    ) -> Iterator[tuple[Ref, _Way]]:
        """What a class stands for that elsewhere in the file has the same name."""
        known = facts.named.get(template.name.partition("@")[0], NOTHING)
        given = {template.name: known} if len(known) == 1 else {}
        for value in fill(template, given) if given else ():
            if isinstance(value, Ref):
                yield value, _Way(template, by_object=True)
            elif isinstance(value, Param):
                for target, way in self.targets(value):
                    yield target, replace(way, by_object=True)

    def _given(self, template: Param) -> Iterator[tuple[Given, tuple[str, Call], bool]]:
        for callee in sorted(_functions(template)):
            known = self._parameters.get(callee, ())
            for site in self._sites.get(callee, ()):
                yield (
                    handed_over(site[1], callee, known, self._nested[callee]),
                    site,
                    False,
                )
            module, _, function = callee.partition(":")
            owner, _, method = function.rpartition(".")
            if owner and method in self._methods:
                info = self._classes.get((*module.split("."), *owner.split(".")))
                if info is None:
                    continue
                for site in self._methods[method]:
                    text = partial(self._text, info)
                    given = of_object(site[1], callee, known, text)
                    if any(given.values()):
                        yield given, site, True

    def _text(self, info: ClassInfo, name: str, deep: int = 0) -> Values:
        """A text that a class, or one of its bases, has in its body."""
        mine = dict(info.texts).get(name)
        if mine is not None or deep > _HOPS:
            return mine or NOTHING
        for base in info.bases:
            known = self._classes.get(self._names.own(base))
            if known is not None and known is not info:
                found = self._text(known, name, deep + 1)
                if found:
                    return found
        return NOTHING


def _onward(way: _Way, value: object, site: tuple[str, Call], by_object: bool) -> _Way:
    named = isinstance(value, Ref) or (
        isinstance(value, Param) and value.path and isinstance(value.path[-1], str)
    )
    return _Way(
        way.template,
        tuple(dict.fromkeys((*site[1].gates, *way.gates))),
        way.hops + 1,
        way.by_object or by_object,
        way.at or (site if named else None),
        site,
    )


def _functions(template: Param) -> set[str]:
    """The functions whose parameters it has in it."""
    found = {template.name.partition("@")[2]}
    for part in template.path:
        if isinstance(part, Param):
            found |= _functions(part)
    return {name for name in found if name}


def _instance(
    path: str, raw: Raw, value: Ref, way: _Way, names: Names
) -> tuple[str, Raw | None]:
    """One patch, and the file that it is told of."""
    target = value.parts
    owner = names.follow(target[:-1]) if len(target) > 1 else None
    if owner is None:
        return path, None
    followed = (*owner, target[-1])
    how = raw.how
    if how == "replaces_function" and is_class_name(followed[-1]):
        how = "replaces_class_binding"
    assert raw.template is not None
    if followed[-1] == UNTOLD:
        why = f"an attribute of `{'.'.join(owner)}` whose name is not written out"
        return path, replace(raw, template=None, unresolved=why)
    written = bool(raw.template.path) and isinstance(raw.template.path[-1], str)
    gates = tuple(dict.fromkeys((*way.gates, *raw.gates)))
    if written and (way.hops > 1 or way.by_object):
        return path, replace(raw, how=how, names=followed, gates=gates, template=None)
    assert way.last is not None
    where, call = way.at or way.last
    return where, replace(
        raw,
        line=call.line,
        form="helper" if raw.form in ("setattr", "assignment") else raw.form,
        how=how,
        names=followed,
        place=call.place,
        gates=gates,
        comment=call.comment or raw.comment,
        template=None,
        replacement="",
        ours=None,
    )


def _open(raw: Raw, names: Names) -> Iterator[Raw]:
    """A patch of something that no call names."""
    assert raw.template is not None
    what = raw.template.name.partition("@")[0].lstrip("*")
    path = ".".join(p if isinstance(p, str) else "…" for p in raw.template.path)
    if raw.template.name == "*":
        why = f"`{path}` of every module that is loaded"
    elif raw.template.is_module:
        # `sys.modules[x.__module__]` is a module, too.
        path = path.removeprefix("__module__.")
        why = f"`{path}` of the module `{what}`, a parameter that no call here spells"
        if not what:
            why = f"`{path}`, where … is a parameter that no call here spells"
        elif not path:
            why = f"a module called `{what}`, a parameter that no call here spells"
    elif _is_patch(raw, what):
        known = names.class_called(what)
        if known is not None and all(isinstance(p, str) for p in raw.template.path):
            followed = (*known, *(p for p in raw.template.path if isinstance(p, str)))
            yield replace(raw, template=None, names=followed)
            return
        why = f"`{path}` of `{what}`, a parameter that no call here spells"
    else:
        return
    yield replace(raw, template=None, unresolved=why)


def _is_patch(raw: Raw, what: str) -> bool:
    """Whether a parameter is a class or module that gets something of ours."""
    if raw.form not in ("assignment", "setattr") or raw.restores:
        return False
    path = raw.template.path if raw.template is not None else (UNTOLD,)
    if not raw.puts_code or UNTOLD in path or len(path) > 2:
        return False
    if is_class_name(what) or _HOLDERS.search(what):
        return True
    function = raw.place.function.rpartition(".")[2]
    return raw.form == "setattr" and bool(_PATCHES.search(function))
