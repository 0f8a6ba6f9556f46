"""What a scan found, written for a person or for a machine."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..scan.found import Found, Question, Scanned
from ..words import said
from ..words.counting import counted
from ..words.folding import columns, fold

if TYPE_CHECKING:
    from rich.console import Console

    from ..scan.releases import Compared
    from ..upstream.check import Checked, Finding
    from ..upstream.verdict import Verdict

__all__ = ["Shown", "show"]

_SAID = {
    "delete": "deletes it",
    "table": "changes its entries",
    "sys-modules": "puts a module in its place",
    "source-text": "rewrites its text",
    "source-read": "reads its text",
    "override": "overrides it in a subclass",
    "subclass": "derives from it",
    "private-import": "imports it, though it is private",
    "private-read": "reads it, though it is private",
    "private-call": "calls it, though it is private",
    "private-member": "uses it of its base, though it is private",
}
_HOW = {
    "wraps_function": "wraps it",
    "replaces_function": "replaces it",
    "replaces_class_binding": "replaces the class",
    "reads_attribute": "sets it",
}
_STYLES = {
    "broken": "bold red",
    "review": "yellow",
    "compatible": "green",
    "nowhere": "yellow",
}
_MARK = 11
"""Columns of a verdict."""


@dataclass(frozen=True)
class Shown:
    """Everything that may be written."""

    scanned: Scanned
    compared: Compared | None
    """Where somebody asked for releases."""
    questions: tuple[Question, ...]
    call: str
    """The command with what it was given, to be called again with more."""
    settled: Compared | None = None
    """The release that told targets apart."""
    registries: tuple[Path, ...] = ()
    """Found in what was scanned: their gaps are another command's."""

    @cached_property
    def asked(self) -> dict[Found, list[Question]]:
        found: defaultdict[Found, list[Question]] = defaultdict(list)
        for one in self.questions:
            found[one.found].append(one)
        return found

    def verdicts(self, found: Found) -> tuple[Verdict | None, ...]:
        return () if self.compared is None else self.compared.verdicts.get(found, ())

    def verdict(self, found: Found) -> Verdict | None:
        """The gravest, of the newest release that has it."""
        from ..upstream.check import ORDER

        there = [v for v in self.verdicts(found) if v is not None]
        return min(reversed(there), key=lambda v: ORDER.index(v.kind), default=None)

    @property
    def kinds(self) -> set[str]:
        """Kinds of verdicts; a question is for a person to review."""
        kinds = {v.kind for f in self.scanned.found if (v := self.verdict(f))}
        return {*kinds, *(["review"] if self.questions else [])}

    def checked(self) -> Checked:
        """As a check of one release, for the formats that know nothing else."""
        from ..scan.releases import gap_ids
        from ..upstream.check import Checked

        gaps = gap_ids(one.found.path for one in self.questions)
        asked = tuple(_finding(one, gaps[one.found.path]) for one in self.questions)
        skipped = tuple(f"{one.path}: {one.reason}" for one in self.scanned.skipped)
        if self.compared is None:
            return Checked("nothing", "the code alone", asked, skipped)
        newest = self.compared.checked[-1]
        findings = (*newest.findings, *asked)
        problems = (*newest.problems, *skipped)
        return replace(newest, findings=findings, problems=problems)


def _finding(question: Question, gap: str) -> Finding:
    from ..upstream.check import Finding
    from ..upstream.verdict import Verdict
    from ..upstream.watched import Watched

    found = question.found
    symbol = found.target or found.unresolved
    watched = Watched(gap, found.how, (symbol,), found.line, found.path)
    verdict = Verdict(
        "review",
        symbol,
        found.how,
        question.kind,
        question.sentence,
        None,
        None,
        evidence=question.places[:3],
    )
    return Finding(watched, verdict)


def show(form: str, shown: Shown, *, everything: bool) -> None:
    """Write it to standard output in the format called `form`."""
    if form == "table":
        _table(shown, everything)
    elif form == "json":
        from .here import print_json

        print_json(_plain(shown))
    else:
        from .formats import render

        render(form, shown.checked(), everything=everything)


# JSON ------------------------------------------------------------------------------


def _plain(shown: Shown) -> dict[str, Any]:
    compared, scanned = shown.compared, shown.scanned
    return {
        "schema": 1,
        "files": scanned.files,
        "tests_left_out": scanned.tests,
        "skipped": [{"file": s.path, "reason": s.reason} for s in scanned.skipped],
        "package": compared.package if compared else None,
        "baseline": compared.checked[0].baseline if compared else None,
        "releases": list(compared.labels) if compared else [],
        "found": [_found(shown, one) for one in scanned.found],
        "questions": [
            {
                "kind": one.kind,
                "file": one.found.path,
                "line": one.found.line,
                "target": one.found.target,
                "sentence": one.sentence,
                "places": list(one.places),
            }
            for one in shown.questions
        ],
        "problems": [p for c in compared.checked for p in c.problems]
        if compared
        else [],
        "unplaced": [
            {"file": one.path, "line": one.line, "target": one.target}
            for one in (compared.unplaced if compared else ())
        ],
        "costs": [c.costs for c in compared.checked] if compared else [],
    }


def _found(shown: Shown, one: Found) -> dict[str, Any]:
    labels = shown.compared.labels if shown.compared else ()
    return {
        "file": one.path,
        "line": one.line,
        "form": one.form,
        "is_patch": one.is_patch,
        "how": one.how,
        "target": one.target,
        "candidates": list(one.candidates),
        "unresolved": one.unresolved or None,
        "gates": [
            {"text": g.text, "kind": g.kind, "package": g.package, "range": g.range}
            for g in one.gates
        ],
        "versions": dict(one.ranges),
        "undone_at": one.undone_at,
        "within": one.within,
        "replacement": one.replacement,
        "comment": one.comment,
        "adds": one.adds,
        "verdicts": [
            None
            if verdict is None
            else {
                "release": label,
                "verdict": verdict.kind,
                "breakage": verdict.breakage,
                "sentence": verdict.sentence,
                "new": None if verdict.new is None else str(verdict.new),
                "moved_to": verdict.moved_to,
                "confidence": round(verdict.confidence, 3),
                "evidence": list(verdict.evidence),
                "fingerprint": verdict.fingerprint,
            }
            for label, verdict in zip(labels, shown.verdicts(one), strict=False)
        ],
    }


# For a terminal --------------------------------------------------------------------


def _table(shown: Shown, everything: bool) -> None:
    from .render import console

    out = console()
    last = ""
    for one in _rows(shown, everything):
        if one.path != last:
            out.print(f"[bold]{_escape(one.path)}[/bold]")
            last = one.path
        _row(out, shown, one)
    if last:
        out.print()
    _footer(out, shown, everything)


def _rows(shown: Shown, everything: bool) -> Iterator[Found]:
    for one in shown.scanned.found:
        verdict = shown.verdict(one)
        grave = verdict is not None and verdict.kind in ("broken", "review")
        plain = everything or (shown.compared is None and one.is_patch)
        if grave or plain or one in shown.asked:
            yield one


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _row(out: Console, shown: Shown, one: Found) -> None:
    from rich.text import Text

    verdict = shown.verdict(one)
    head = Text(f"{one.line:>5}  ")
    if shown.compared is not None:
        kind = verdict.kind if verdict else ("nowhere" if _nowhere(shown, one) else "")
        head.append(f"{kind:<{_MARK}}", _STYLES.get(kind, "dim"))
    indent = len(head)
    target = one.target or f"? {one.unresolved}"
    for number, part in enumerate(_folded(target, max(20, out.width - indent))):
        out.print((head if not number else Text(" " * indent)) + Text(part))
    lines = [(" · ".join(_said(one)), "dim")]
    if verdict is not None and verdict.kind in ("broken", "review"):
        since = _since(shown, one, verdict)
        lines.append((f"{since}{verdict.sentence}", ""))
    lines += [(f"{q.kind}: {q.sentence}", "yellow") for q in shown.asked.get(one, ())]
    for text, style in lines:
        for part in _filled(said(text), max(20, out.width - indent)):
            line = Text.assemble(" " * indent, (part, style))
            out.print(line, soft_wrap=True)


def _filled(text: str, width: int) -> Iterator[str]:
    """Lines that end between words, and within a word only where no line holds it."""
    for line in fold(text, width, whole=True):
        yield from _folded(line, width) if columns(line) > width else [line]


def _folded(text: str, width: int) -> list[str]:
    """Cut behind dots and colons rather than within names."""
    lines = [""]
    for part in text.replace(":", ":\0").replace(".", ".\0").split("\0"):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return lines


def _nowhere(shown: Shown, one: Found) -> bool:
    return any(q.kind == "exists-nowhere" for q in shown.asked.get(one, ()))


def _said(one: Found) -> Iterator[str]:
    yield _SAID.get(one.form) or _HOW.get(one.how, one.how)
    versions = [f"{package} {range_}" for package, range_ in one.ranges.items()]
    if versions:
        yield f"on {', '.join(versions)}"
    other = [gate.text for gate in one.gates if gate.kind != "version"]
    if other:
        yield f"if {' and '.join(other[-2:])}"
    if one.undone_at > 0:
        yield f"undone in line {one.undone_at}"
    elif one.undone_at < 0:
        yield "undone by its context"


def _since(shown: Shown, one: Found, verdict: Verdict) -> str:
    """The release at which it begins, where several were compared."""
    if shown.compared is None or len(shown.compared.labels) < 2:
        return ""
    for label, there in zip(shown.compared.labels, shown.verdicts(one), strict=True):
        if there is not None and there.kind == verdict.kind:
            return f"since {label}: "
    return ""


def _footer(out: Console, shown: Shown, everything: bool) -> None:
    scanned, compared = shown.scanned, shown.compared
    out.print(_counts(scanned, shown.settled is not None))
    if compared is not None:
        from .formats.shared import tally

        against = f"against {compared.checked[0].baseline}"
        for number, one in enumerate(compared.checked):
            kinds = [v[number] for v in compared.verdicts.values()]
            told = tally(v.kind for v in kinds if v is not None)
            out.print(f"{one.release} {against}: {told}")
        if compared.unplaced:
            out.print(_unplaced(compared), style="dim")
    if shown.questions:
        kinds_asked = Counter(q.kind for q in shown.questions)
        told = ", ".join(f"{n} {kind}" for kind, n in kinds_asked.most_common())
        out.print(f"questions: {told}", style="yellow")
    for file in scanned.skipped:
        out.print(f"not scanned: {file.path}: {file.reason}", style="red", markup=False)
    for problem in compared.checked[-1].problems if compared else ():
        out.print(f"not read: {problem}", style="red", markup=False)
    if scanned.tests:
        left = counted(
            scanned.tests,
            "1 test file left out; --tests takes it in",
            f"{scanned.tests} test files left out; --tests takes them in",
        )
        out.print(left, style="dim")
    for path in shown.registries:
        call = f"shims drift --registry {shlex.quote(str(path))}"
        registry = f"The gaps of {path} are checked by: {call}"
        out.print(registry, style="dim", soft_wrap=True, markup=False)
    out.print(_next(shown, everything), style="dim", soft_wrap=True, markup=False)


def _unplaced(compared: Compared) -> str:
    """Text tells no override of what is long gone from a method of the code's own."""
    first, *more = compared.unplaced
    oldest = compared.checked[0].baseline
    place = f"{first.path}:{first.line}"
    if not more:
        head = f"The method at {place} is not in any of these"
    else:
        head = f"{len(more) + 1} methods of subclasses are in none, as {place}"
    return (
        f"{head}: its own, or an override of what was gone before {oldest}; an older "
        "--baseline tells"
    )


def _counts(scanned: Scanned, settled: bool) -> str:
    patches = scanned.patches
    forms = Counter(one.form for one in scanned.found)
    private = sum(n for form, n in forms.items() if form.startswith("private"))
    files, many = len({one.path for one in patches}), len(patches)
    subclasses, overrides = forms["subclass"], forms["override"]
    parts = [
        counted(scanned.files, "1 file", "{number} files"),
        counted(many, f"1 patch in {files}", f"{many} patches in {files}")
        if many
        else "0 patches",
        counted(subclasses, "1 subclass", "{number} subclasses"),
        counted(private, "1 private name", "{number} private names"),
    ]
    # Which methods are overrides only upstream's text tells.
    if settled:
        parts.insert(3, counted(overrides, "1 override", "{number} overrides"))
    return " · ".join(parts)


def _next(shown: Shown, everything: bool) -> str:
    more = any(not one.is_patch for one in shown.scanned.found)
    if shown.compared is None:
        why = "what it breaks"
        call = f"{shown.call} --against vllm@latest"
    else:
        more, why = True, "a first registry"
        call = f"{shown.call} --registry-out gap_registry.yaml"
    if more and not everything:
        why += "; --all shows the rest here"
    return f"Next: {call}   ({why})"
