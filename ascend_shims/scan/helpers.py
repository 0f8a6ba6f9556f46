"""Patches through functions of the scanned code: `set_attribute(module, "name", new)`.

A function that sets an attribute of a parameter is a template; each of its calls with
names that can be told makes a patch of it, in the line of the call.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from .names import Names, is_class_name
from .raw import Call, FileFacts, Raw
from .values import Param

__all__ = ["instances"]


def instances(files: Sequence[FileFacts], names: Names) -> Mapping[str, Sequence[Raw]]:
    """By path: what calls of templates patch, and templates that nobody fills in.

    The templates are taken out of `files`.
    """
    templates: defaultdict[tuple[str, ...], list[tuple[str, Raw]]] = defaultdict(list)
    parameters: dict[tuple[str, ...], tuple[str, ...]] = {}
    for facts in files:
        module = tuple(facts.source.module.split("."))
        for raw in facts.raws:
            if raw.template is not None:
                for function in _functions(raw.template):
                    callee = (*module, *function.split("."))
                    templates[callee].append((facts.source.path, raw))
                    known = facts.parameters.get(function, ())
                    parameters[callee] = known
    made: defaultdict[str, list[Raw]] = defaultdict(list)
    filled: set[int] = set()
    for facts in files:
        for call in facts.calls:
            callee = _own(call.callee, templates, names)
            for _, raw in templates.get(callee, ()):
                target = _filled_in(raw, call, parameters[callee])
                if target is None:
                    continue
                filled.add(id(raw))
                if _is_foreign(target, names):
                    made[facts.source.path].append(_instance(raw, call, target, names))
    spelled = {".".join(names.own(n)[:-1]) for f in files for n in f.spelled}
    for facts in files:
        path = facts.source.path
        for raw in facts.raws:
            if raw.template is None or id(raw) in filled:
                continue
            # What their calls spell is known already.
            if raw.template.is_module and facts.source.module not in spelled:
                made[path].append(_open(raw))
        facts.raws = [raw for raw in facts.raws if raw.template is None]
    return made


def _is_foreign(target: tuple[str, ...], names: Names) -> bool:
    return len(target) > 1 and names.follow(target[:-1]) is not None


def _functions(template: Param) -> set[str]:
    """The functions whose parameters it has in it."""
    found = {template.name.partition("@")[2]}
    for part in template.path:
        if isinstance(part, Param):
            found |= _functions(part)
    return {name for name in found if name}


def _own(
    callee: tuple[str, ...], templates: Mapping[tuple[str, ...], object], names: Names
) -> tuple[str, ...]:
    """The function behind a name by which a package offers it."""
    return callee if callee in templates else names.own(callee)


def _filled_in(
    raw: Raw, call: Call, parameters: tuple[str, ...]
) -> tuple[str, ...] | None:
    """The target for one call; `None` where its arguments do not tell."""
    given = dict(zip(parameters, call.positional, strict=False))
    given |= dict(call.keywords)
    assert raw.template is not None
    return _spelled(raw.template, given)


def _spelled(
    template: Param, given: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...] | None:
    parts: tuple[str, ...] = ()
    if template.name:
        name = template.name.partition("@")[0]
        parts = given.get(name, ())
        if not parts:
            return None
        if template.cut:
            parts = parts[:-1] if template.cut == "head" else parts[-1:]
    for part in template.path:
        if isinstance(part, str):
            parts = (*parts, part)
        else:
            more = _spelled(part, given)
            if more is None:
                return None
            parts = (*parts, *more)
    return parts


def _instance(raw: Raw, call: Call, target: tuple[str, ...], names: Names) -> Raw:
    owner = names.follow(target[:-1])
    assert owner is not None
    followed = (*owner, target[-1])
    how = raw.how
    if how == "replaces_function" and is_class_name(followed[-1]):
        how = "replaces_class_binding"
    return replace(
        raw,
        line=call.line,
        form="helper" if raw.form in ("setattr", "assignment") else raw.form,
        how=how,
        names=followed,
        place=call.place,
        gates=tuple(dict.fromkeys((*call.gates, *raw.gates))),
        comment=call.comment or raw.comment,
        template=None,
        replacement="",
        ours=None,
    )


def _open(raw: Raw) -> Raw:
    """A patch of a module that no call names."""
    assert raw.template is not None
    path = ".".join(p if isinstance(p, str) else "…" for p in raw.template.path)
    # `sys.modules[x.__module__]` is a module, too.
    path = path.removeprefix("__module__.")
    if raw.template.name == "*":
        why = f"`{path}` of every module that is loaded"
    else:
        what = raw.template.name.partition("@")[0]
        why = f"`{path}` of the module `{what}`, a parameter that no call here spells"
        if not what:
            why = f"`{path}`, where … is a parameter that no call here spells"
        elif not path:
            why = f"a module called `{what}`, a parameter that no call here spells"
    return replace(raw, template=None, unresolved=why)
