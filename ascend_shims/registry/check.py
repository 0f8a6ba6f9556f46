"""What the types of `model` cannot say about a registry, rule by rule.

Each rule looks at the sound parts of the file only and yields findings; none
raises, none depends on another, none imports anything from upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from . import companions, gates, replacements, signs, slots
from .document import Document
from .model import Registry
from .outline import Examination, Finding, Outline, OutlinedGap, Text, outline
from .problems import Problem, nearest, quoted, shown

__all__ = ["check"]

_DEFAULT_PACKAGE = Registry(schema=1, upstreams=(), gaps=()).package


def check(
    document: Document,
    examined: Examination,
    *,
    complete: bool,
    beside: Registry | None = None,
    home: str | None = None,
    folders: Sequence[Path] = (),
) -> list[Problem]:
    """Every problem that the structure allows.

    Args:
        complete: a module in the patches package without an entry is a problem too.
        beside: the registry whose gaps this one may name besides its own.
        home: the package that its patches are expected in.
        folders: where its package lies, in place of where an import would find it.
    """
    sound = outline(examined.data, _DEFAULT_PACKAGE)
    sound = msgspec.structs.replace(sound, folders=tuple(map(str, folders)))
    if beside is not None:
        sound = msgspec.structs.replace(
            sound,
            beside=tuple(gap.id for gap in beside.gaps),
            is_served=any(c.goes_with == "traced-gaps" for c in beside.companions),
            home=home,
        )

    def problem(finding: Finding, message: str | None = None) -> Problem:
        line, column = document.mark(
            finding.place, key=finding.on_key, renamed=examined.renamed
        )
        text = message or finding.message
        return Problem(document.file, line, column, text, finding.fix)

    found = [problem(one) for rule in _RULES for one in rule(sound)]
    found += map(problem, replacements.findings(sound, complete=complete))
    for finding, earlier in slots.conflicts(sound):
        line, _ = document.mark(earlier.place, key=False, renamed=examined.renamed)
        found.append(problem(finding, f"{finding.message} (line {line})"))
    return found


def _ids(sound: Outline) -> Iterator[Finding]:
    seen: set[str] = set()
    for gap in sound.patched:
        if gap.id and gap.id.value in seen:
            yield Finding(
                gap.id.place, f"duplicate gap id `{gap.name}`", "give each gap its own"
            )
        elif gap.id:
            seen.add(gap.id.value)


def _references(sound: Outline) -> Iterator[Finding]:
    known = {gap.id.value: None for gap in sound.gaps if gap.id}
    known.update(dict.fromkeys(sound.beside))
    for gap in sound.gaps:
        for text in (*gap.needs, *gap.after):
            if known and text.value not in known:
                meant = nearest(text.value, known)
                yield Finding(
                    text.place,
                    f"no gap has the id `{shown(text.value)}`",
                    f"did you mean `{meant}`?" if meant else f"use {quoted(known)}",
                )


def _cycles(sound: Outline) -> Iterator[Finding]:
    yield from _rings(sound, "needs", lambda gap: gap.needs)
    yield from _rings(sound, "after", lambda gap: gap.after)


def _rings(
    sound: Outline, word: str, edges: Callable[[OutlinedGap], tuple[Text, ...]]
) -> Iterator[Finding]:
    graph = {gap.id.value: edges(gap) for gap in sound.gaps if gap.id}
    done: set[str] = set()
    for start in graph:
        for ring in _rings_from(start, graph, done):
            names = [ring[-1].value, *(text.value for text in ring)]
            if len(names) > 12:
                names[6:-5] = ["..."]
            yield Finding(
                ring[0].place,
                f"`{word}` goes round in a circle: {' -> '.join(names)}",
                "take one of these out",
            )


def _rings_from(
    start: str, graph: dict[str, tuple[Text, ...]], done: set[str]
) -> Iterator[list[Text]]:
    """A circle for every edge that leads back to where the walk came from.

    Without recursion: a long chain in a file is no reason to overflow.
    """
    if start in done:
        return
    path: list[Text] = []
    entered = {start: 0}
    waiting = [iter(graph[start])]
    while waiting:
        edge = next(waiting[-1], None)
        if edge is None:
            waiting.pop()
            done.add(path.pop().value if path else start)
        elif edge.value in done:
            continue
        elif edge.value in entered:
            yield [*path[entered[edge.value] :], edge]
        else:
            path.append(edge)
            entered[edge.value] = len(path)
            waiting.append(iter(graph.get(edge.value, ())))


def _patches(sound: Outline) -> Iterator[Finding]:
    for gap in sound.gaps:
        if gap.has_patches and gap.has_unpatched:
            yield Finding(
                (*gap.place, "unpatched"),
                f"gap `{gap.name}` has patches and says why it has none",
                "remove `unpatched`",
                on_key=True,
            )
        elif gap.has_patches and gap.status == "retired":
            yield Finding(
                (*gap.place, "patches"),
                f"gap `{gap.name}` is retired and still has patches",
                "remove `patches`, or set another `status`",
                on_key=True,
            )
        elif not gap.has_patches and not gap.has_unpatched:
            yield Finding(
                gap.place,
                f"gap `{gap.name}` has no patches and does not say why",
                "add `patches`, or the reason as `unpatched`",
            )


def _targets(sound: Outline) -> Iterator[Finding]:
    if not sound.upstreams:
        return
    for gap in sound.patched:
        for patch in gap.patches:
            for target in patch.targets:
                package = target.value.partition(":")[0].partition(".")[0]
                if package in sound.upstreams:
                    continue
                meant = nearest(package, sound.upstreams)
                yield Finding(
                    target.place,
                    f"`{shown(target.value)}` is outside the upstreams",
                    f"did you mean `{meant}`?"
                    if meant
                    else f"a target lies in {quoted(sound.upstreams)}",
                )


def _providers(sound: Outline) -> Iterator[Finding]:
    """What upstream does itself is `landed`, not provided."""
    for gap in sound.gaps:
        for provider in gap.providers:
            symbol = provider.symbol
            package = symbol.value.partition(":")[0].partition(".")[0] if symbol else ""
            if symbol and package in sound.upstreams:
                yield Finding(
                    symbol.place,
                    f"`{shown(symbol.value)}` is upstream's own and no plugin's",
                    "name a place in the plugin that closes the gap",
                )


def _watched(sound: Outline) -> Iterator[Finding]:
    for copy in sound.watch_copies:
        yield Finding(
            copy.place,
            f"`copy` names `{shown(copy.value)}`, and a watched symbol has no module "
            "for it",
            "name it in a patch's `relies_on`",
        )


_RULES: tuple[Callable[[Outline], Iterator[Finding]], ...] = (
    _ids,
    _references,
    _cycles,
    _patches,
    _targets,
    _providers,
    gates.findings,
    signs.findings,
    companions.findings,
    _watched,
)
