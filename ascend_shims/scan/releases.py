"""What releases of upstream do to what was found: the same verdicts as `shims drift`.

scanned x baseline x releases -> settled targets, verdicts
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from ..upstream.check import Checked, Finding
from ..upstream.facts.symbol import Symbol, find
from ..upstream.fetching import Releases
from ..upstream.lock import Lock
from ..upstream.ours import Ours
from ..upstream.parsed import Shelf
from ..upstream.run import Run
from ..upstream.texts import Texts
from ..upstream.tree import Tree
from ..upstream.verdict import Verdict
from ..upstream.watched import Watched
from .found import Found, Scanned
from .names import split_at
from .presence import is_guarded, is_nowhere, is_unknown, owner_of

__all__ = ["Compared", "compare", "gap_ids"]

_CALLERS = 24
"""Modules that are searched for calls of one function or class."""


@dataclass(frozen=True)
class Compared:
    """What was found, as the text of some releases tells it."""

    scanned: Scanned
    """Targets told apart into module and name, and members that upstream has."""
    package: str
    checked: tuple[Checked, ...]
    """By release, in their order."""
    versions: tuple[str | None, ...]
    verdicts: Mapping[Found, tuple[Verdict | None, ...]]
    """By release; None where it is not for that one."""
    nowhere: frozenset[Found]
    """Patches of what none of the releases has, nor the baseline, and what the code
    only tries."""
    trees: tuple[Tree, ...]
    """Of the releases."""
    baseline: str | None = None
    """Its version."""
    is_judged: bool = True
    """Somebody asked for these releases."""
    unplaced: tuple[Found, ...] = ()
    """Methods of subclasses that none of the releases has: the code's own, or overrides
    of what was gone before."""

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(one.release for one in self.checked)


def compare(
    scanned: Scanned,
    releases: Releases,
    specs: Sequence[str],
    baseline: str,
    package: str,
    *,
    search_all: bool = False,
    judge: bool = True,
) -> Compared:
    """Judge everything that was found of one package in some of its releases.

    Args:
        search_all: look for what is gone in the whole package.
        judge: False: only what there is in the releases, without verdicts.

    Raises:
        SourceUnavailable: a release cannot be had.
    """
    for spec in (baseline, *specs):
        releases.begin(spec)
    shelf = Shelf()
    opened = {s: Texts(releases[s]) for s in dict.fromkeys((baseline, *specs))}
    trees = {spec: Tree(texts, shelf) for spec, texts in opened.items()}
    mine = [_settled(f, trees.values()) for f in scanned.found if f.package == package]
    _fetch(releases, mine, opened)
    kept = _there(mine, list(trees.values()))
    gone = [f for f in kept if is_nowhere(f, trees.values())]
    # Whoever sets a name may mean to add it. To import or call one that is not there
    # fails, unless the code is prepared for that.
    asked = [f for f in gone if f.is_patch or is_guarded(f) or not judge]
    nowhere = frozenset(asked)
    others = [f for f in scanned.found if f.package != package and f.sure]
    every = sorted((*kept, *others), key=lambda f: (f.path, f.line))
    scanned = replace(scanned, found=tuple(every))
    judged = [f for f in kept if f.target and f not in nowhere]
    old = trees[baseline]
    versions, checked = [], []
    verdicts: dict[Found, list[Verdict | None]] = {f: [] for f in judged if judge}
    for spec in specs:
        versions.append(releases[spec].version)
        if not judge:
            checked.append(Checked(opened[spec].label, opened[spec].label, ()))
            continue
        entries = _watched(judged, old, trees[spec], gap_ids(f.path for f in judged))
        callers = _Callers(texts=opened[spec])
        result = _checked(
            entries, releases, callers, spec, baseline, package, search_all
        )
        checked.append(result)
        said = {id(one.watched): one.verdict for one in result.findings}
        mine_now = {found: said.get(id(watched)) for found, watched, _ in entries}
        for found, all_ in verdicts.items():
            all_.append(mine_now.get(found))
    return Compared(
        scanned,
        package,
        tuple(checked),
        tuple(versions),
        {found: tuple(all_) for found, all_ in verdicts.items()},
        nowhere,
        tuple(trees[spec] for spec in specs),
        releases[baseline].version,
        judge,
        tuple(_unplaced(mine, kept, list(trees.values()))),
    )


def _settled(found: Found, trees: Iterable[Tree]) -> Found:
    """With its target split where the releases' own files say."""
    names = found.names
    for count in range(len(names) - 1, 0, -1):
        module = ".".join(names[:count])
        if not any(tree.is_package(module) for tree in trees):
            continue
        target = split_at(names, count)
        first = split_at(names[: count + 1], count)
        there = any(find(tree, first) is not None for tree in trees)
        if _module_of(found.target) > count and not there:
            # A module that no release has, rather than an object of a package.
            return found
        return replace(found, target=target)
    return found


def _module_of(target: str | None) -> int:
    """How many names of a target are its module's."""
    return 0 if target is None else len(target.partition(":")[0].split("."))


def _fetch(
    releases: Releases, found: Iterable[Found], opened: Mapping[str, Texts]
) -> None:
    """The modules of all targets, of all releases, in few requests."""
    modules = {f.target.partition(":")[0]: None for f in found if f.target}
    stems = [name.replace(".", "/") for name in modules]
    paths = [f"{stem}{end}" for stem in stems for end in (".py", "/__init__.py")]
    releases.fetch(dict.fromkeys(opened, paths))


def _there(found: Sequence[Found], trees: Sequence[Tree]) -> list[Found]:
    """Without members that upstream's classes do not have, each said once."""
    kept: dict[tuple[object, ...], Found] = {}
    for one in found:
        if not one.sure and not _has(one.target, trees):
            continue
        # A class with several bases overrides a method once.
        key: tuple[object, ...] = (one.path, one.line, one.form, one.names[-1], one.how)
        if one.sure:
            key = (*key, one.names)
        kept.setdefault(key, one)
    return list(kept.values())


def _unplaced(
    found: Sequence[Found], kept: Sequence[Found], trees: Sequence[Tree]
) -> Iterator[Found]:
    """Methods of subclasses that no release has, of classes that one has."""
    seen = {(one.path, one.line) for one in kept if one.form == "override"}
    for one in found:
        if one.form != "override" or (one.path, one.line) in seen or not one.target:
            continue
        owner = owner_of(one.target)
        if owner is not None and any(find(tree, owner) for tree in trees):
            seen.add((one.path, one.line))
            yield one


def _has(target: str | None, trees: Iterable[Tree]) -> bool:
    if target is None:
        return False
    found = (find(tree, target) for tree in trees)
    return any(symbol is not None and _is_own(symbol) for symbol in found)


def _is_own(symbol: Symbol) -> bool:
    """Whether it is of the package, and not of `object` or another one's class."""
    return symbol.kind != "external"


@dataclass(frozen=True)
class _Callers(Lock):
    """Which modules to search for calls, in place of what a lock would know.

    Those that mention the function, or the class of the method, the nearest of them.
    """

    texts: Texts | None = None
    _known: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def callers(self, _baseline: str, symbol: str) -> tuple[str, ...] | None:
        module, _, qualname = symbol.partition(":")
        word = qualname.partition(".")[0]
        key = f"{module}:{word}"
        if key not in self._known:
            assert self.texts is not None
            near = sorted(
                self.texts.holding(word), key=lambda name: -_shared(name, module)
            )
            self._known[key] = tuple(near[:_CALLERS])
        return self._known[key]


def _shared(one: str, other: str) -> int:
    """How many packages two modules have in common."""
    pairs = zip(one.split("."), other.split("."), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


# Verdicts --------------------------------------------------------------------------

_Entry = tuple[Found, Watched, bool]


def _watched(
    found: Sequence[Found], old: Tree, new: Tree, gaps: Mapping[str, str]
) -> list[_Entry]:
    """What is relied on; and of each, whether the baseline has it."""
    entries = []
    for one in found:
        assert one.target is not None
        every = (one.target, *one.candidates)
        target = next((t for t in every if find(old, t) or find(new, t)), every[0])
        before, after = find(old, target), find(new, target)
        how = one.how
        lost = before is None and after is None
        if lost and not one.adds and all(is_unknown(every, t) for t in (old, new)):
            entries.append((one, _entry(one, target, how, gaps[one.path]), True))
            continue
        if lost:
            if one.adds:
                continue
            owner = owner_of(target)
            if owner is None or find(new, owner) is None:
                owner = owner if owner and find(old, owner) else None
            if owner is None:
                continue
            # An attribute of an object: the text tells of the object alone.
            target, how = owner, "reads_attribute"
            before, after = find(old, target), find(new, target)
        if before is not None and how == "replaces_function" and not before.is_callable:
            how = "reads_attribute"
        elif before is not None and before.kind == "class":
            how = "replaces_class_binding" if one.is_patch and how in _OF_CODE else how
        entries.append(
            (one, _entry(one, target, how, gaps[one.path]), before is not None)
        )
    return entries


_OF_CODE = ("replaces_function", "wraps_function")


def _entry(found: Found, target: str, how: str, gap: str) -> Watched:
    ours = None
    if found.ours is not None and found.is_patch:
        name = found.replacement or target.rpartition(".")[2]
        ours = Ours(name, found.path, found.line, "", found.ours)
    return Watched(
        gap,
        how,  # type: ignore[arg-type]
        tuple(dict.fromkeys((target, *found.candidates))),
        found.line,
        found.path,
        (found.ranges,),
        ours=ours,
        is_copy=how == "replaces_function",
    )


def _checked(
    entries: Sequence[_Entry],
    releases: Releases,
    callers: Lock,
    spec: str,
    baseline: str,
    package: str,
    search_all: bool,
) -> Checked:
    """Judged against the baseline; what is new since then, against the release."""
    results = []
    for known, base in ((True, baseline), (False, spec)):
        watched = [w for _, w, in_baseline in entries if in_baseline is known]
        if watched or known:
            run = Run(releases, callers, watched, base, search_all)
            results.append(run.check(spec, package))
            run.save()
    first, *more = results
    findings = [*first.findings, *(f for one in more for f in one.findings)]
    order = {id(w): number for number, (_, w, _) in enumerate(entries)}
    findings.sort(key=lambda f: order[id(f.watched)])
    return replace(first, findings=tuple(map(_said_once, findings)))


def _said_once(finding: Finding) -> Finding:
    """Of a release that is compared with itself."""
    verdict = finding.verdict
    sentence = re.sub(
        r"^neither (.+) nor \1 has ", r"\1 does not have ", verdict.sentence
    )
    return replace(finding, verdict=replace(verdict, sentence=sentence))


def gap_ids(paths: Iterable[str]) -> Mapping[str, str]:
    """A gap's name for each file, by path: the file's, with as many folders before
    it as it takes to tell it from others."""
    names: dict[str, str] = {}
    taken: dict[str, str] = {}
    for path in dict.fromkeys(paths):
        parts = [one for one in path.removesuffix(".py").split("/") if one != ".."]
        if parts[-1] == "__init__" and len(parts) > 1:
            parts.pop()
        for count in range(1, len(parts) + 1):
            name = _spelled("-".join(parts[-count:]))
            if name not in taken:
                break
        else:
            name = next(_numbered(name, taken))
        taken[name] = path
        names[path] = name
    return names


def _spelled(text: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return name if name[:1].isalpha() else f"file-{name}".rstrip("-")


def _numbered(name: str, taken: Mapping[str, str]) -> Iterator[str]:
    number = 2
    while f"{name}-{number}" in taken:
        number += 1
    yield f"{name}-{number}"
