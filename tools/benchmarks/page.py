"""docs/performance.md, made of the results, but for what is written by hand."""

from __future__ import annotations

from collections.abc import Iterator

from .chart import ALT
from .model import Entry, Machine, Results, Row
from .wording import interval, kept, number, ratio, spread_text

__all__ = ["PROFILES", "page"]

PROFILES = "## Profiles"
"""From this heading on the page is written by hand."""

_PROFILES = f"""{PROFILES}

From this heading on the page is written by hand: what profiles showed, and what was
changed because of them.
"""

_INTRODUCTION = """# Performance

Written by `tools/bench --write` from what it measured; the numbers are in
[performance.json](performance.json), and `tools/bench --check` tells what got worse by
more than 10 %. Each row compares two things that took turns in one run on one machine;
a ratio is the middle of the ratios of the pairs, ours to theirs, and its interval holds
the true one in 95 of 100 cases (bootstrap over the pairs). Times of another machine are
other times; ratios should stay near."""

_MEASURED = """## How it was measured

- Whole processes are timed from outside: the wall clock, or the processor time that
  the system counted for them where the unit says so. What happens within one process
  is processor time too, so that other programs on the machine do not count.
- Applying: vLLM's runner and every module that a patch lands in are imported, and the
  software NPU is claimed, so that all gaps apply. `first` is the first time in a
  process, which imports the patches and reads the registry; each sample is a process
  of its own. `steady` is again and again in one process. The others write the same
  values to the same places, which they are told beforehand, and put back what
  was there.
- The floor of a pass over all names asks `id(value) in wanted` of each value of each
  module and class; finding these namespaces is not counted for it. For a check it is
  the bytes of the members that were asked for, as packed in the wheels, and one plain
  request a wheel for that many.
- Calls: the method gives its argument back. A `wrap` patch is called with what lies
  beneath, a `decorate` patch is called once and makes a function. By hand means a
  function that calls the one beneath and nothing else.
- Tokens: two processes live at once and take turns, one of them without shims; new
  processes are started several times. The platform is upstream's CPU platform in both,
  and Triton's kernels run in its interpreter, so that a step is slow and what shims add
  is a small part of it. Tokens are the same, or nothing is written.
- Checking a release: each cold run has a cache of its own. `mpat` watches those of our
  registry's symbols that can be looked up at run time, locked in 0.28.0; `griffe` gets
  a repository with both trees.
"""


def _table(*columns: str) -> list[str]:
    return ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]


def _cells(*texts: str) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"


def _limits(results: Results) -> Iterator[str]:
    yield from _table("what", "limit", "found", "")
    for row in results.rows.values():
        for limit in row.limits:
            against = f", against {row.against}" if row.against else ""
            yield _cells(
                f"{row.what}{against}", limit.says, number(limit.found), kept(limit)
            )


def _row(row: Row) -> str:
    theirs = spread_text(row.theirs) if row.theirs else ""
    against = row.against or "-"
    ours = f"{spread_text(row.ours)} {row.unit}"
    return _cells(row.what, against, ours, theirs, ratio(row.ratio), interval(row))


def _entry(entry: Entry) -> Iterator[str]:
    yield f"## {entry.title}"
    yield ""
    if entry.quick:
        yield "A quick run, with few samples: it shows that this works and little more."
        yield ""
    yield from _table("what", "against", "ours", "theirs", "ratio", "95 %")
    yield from map(_row, entry.rows)
    notes = [f"- {row.name}: {row.note}" for row in entry.rows if row.note]
    if notes:
        yield ""
        yield from notes


def _machines(results: Results) -> Iterator[str]:
    by_machine: dict[str, list[str]] = {}
    for entry in results.entries:
        text = f"{entry.taken}, {_machine(entry.machine)}"
        by_machine.setdefault(text, []).append(entry.benchmark)
    for text, names in by_machine.items():
        yield f"- {', '.join(names)}: {text}"


def _machine(machine: Machine) -> str:
    versions = ", ".join(f"{name} {at}" for name, at in machine.versions.items())
    cores = f"{machine.cores} cores of {machine.processor}"
    return f"{cores}, Python {machine.python}, {versions}"


def page(results: Results, before: str) -> str:
    """The page; of the one before it what was written by hand."""
    written = before[before.find(PROFILES) :] if PROFILES in before else _PROFILES
    parts = [
        _INTRODUCTION,
        f"![{ALT}](images/performance.svg)",
        "## What must hold",
        "\n".join(_limits(results)),
        *("\n".join(_entry(entry)) for entry in results.entries),
        _MEASURED.rstrip(),
        "\n".join(_machines(results)),
        written.rstrip(),
    ]
    return "\n\n".join(parts) + "\n"
