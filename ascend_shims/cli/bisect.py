"""`shims bisect`: the upstream commit at which a verdict changes."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import click

from ..upstream.collecting import rare_collections
from ..upstream.verdict import VerdictKind
from ..words.counting import counted
from .completion import gap_ids
from .near import nearest
from .speech import ended, say
from .upstream import check_package, relied_options, watched_of

if TYPE_CHECKING:
    from ..upstream.bisection import Answer, Bisected, Step
    from ..upstream.sources.snapshots import Commit
    from ..upstream.verdict import Verdict
    from ..upstream.watched import Watched

from .named import OneOf

__all__ = ["command"]

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_STYLES = {"broken": "red", "review": "yellow", "fixed-upstream": "cyan"}
_SHOWN = 40
"""Lines of a hunk in a terminal; JSON has more."""


@click.command("bisect")
@click.argument("gap", metavar="[GAP]", required=False, shell_complete=gap_ids)
@click.option(
    "--repo",
    required=True,
    metavar="CLONE",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A clone of upstream; its work tree is left alone.",
)
@click.option("--good", required=True, metavar="REV", help="Compare with this.")
@click.option("--bad", default="HEAD", show_default=True, metavar="REV")
@click.option("--on", "symbols", metavar="SYMBOL", multiple=True, help="Only this.")
@click.option(
    "--verdict",
    type=OneOf(get_args(VerdictKind)),
    help="Look for changes to this one; default: the gravest at --bad.",
)
@click.option("--package", help="Which upstream the clone is of.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, schema 1.")
@relied_options
@rare_collections()
def command(
    gap: str | None,
    repo: Path,
    good: str,
    bad: str,
    symbols: tuple[str, ...],
    verdict: str | None,
    package: str | None,
    as_json: bool,
    registry: Path | None,
    watch_files: tuple[Path, ...],
) -> int:
    """The upstream commit at which a verdict on what GAP relies on changes.

    Without GAP: on what the files of --watch name. Every commit between the two
    revisions is evaluated from git's objects, nothing is checked out. Exit 1 if a
    verdict changed.

    \b
    Examples:
      shims bisect kv-cache --repo vllm --good v0.32.0 --package vllm
      shims bisect --watch symbols.jsonl --repo vllm --good v0.32.0
    """
    from ..upstream.bisection import bisect
    from ..upstream.sources import Bar
    from ..upstream.sources.git import prefix_of

    # A folder that is no clone is told before all that is asked of it.
    prefix_of(repo)
    watched = _asked(gap, symbols, registry, watch_files)
    name = package.replace("-", "_") if package else _package(watched)
    check_package(name, watched)
    result = bisect(
        [one for one in watched if one.package == name],
        repo,
        good,
        bad,
        package=name,
        wanted=cast("VerdictKind | None", verdict),
        progress=Bar(),
    )
    if as_json:
        from .here import print_json

        print_json(_json(result))
    else:
        _print(result, verdict)
    return 1 if result.answers else 0


def _asked(
    gap: str | None,
    symbols: tuple[str, ...],
    registry: Path | None,
    watch_files: tuple[Path, ...],
) -> list[Watched]:
    from ..upstream.watched import from_file

    if gap is None and not watch_files:
        raise click.BadParameter("name a gap, or symbols with --watch FILE")
    if gap is None:
        watched = [one for file in watch_files for one in from_file(file)]
    else:
        everything, _ = watched_of(registry, watch_files)
        watched = [one for one in everything if one.gap == gap]
        if not watched:
            known = sorted({one.gap for one in everything})
            hint = _meant(gap, known) or "shims status --all lists the gaps"
            raise click.BadParameter(
                f"no gap called {gap!r} relies on anything; {hint}"
            )
    for symbol in symbols:
        known = sorted({s for one in watched for s in one.candidates})
        if symbol not in known:
            hint = _meant(symbol, known) or "shims show GAP lists what a gap relies on"
            raise click.BadParameter(f"nothing here relies on {symbol!r}; {hint}")
    if symbols:
        watched = [one for one in watched if set(symbols) & set(one.candidates)]
    if not watched:
        raise click.BadParameter(
            "the files of --watch name nothing; write symbols into them, or name a gap"
        )
    return watched


def _meant(word: str, known: list[str]) -> str:
    near = nearest(word, known)
    return f"did you mean {near}?" if near else ""


def _package(watched: list[Watched]) -> str:
    packages = sorted({one.package for one in watched})
    if len(packages) > 1:
        raise click.BadParameter(
            f"it relies on {' and '.join(packages)}: say with --package which of them "
            "the clone is of"
        )
    return packages[0]


# For a person --------------------------------------------------------------------


def _print(result: Bisected, wanted: str | None) -> None:
    commits = counted(result.commits, "1 commit", "{number} commits")
    say(
        f"{result.package} {result.good} … {result.bad}: {commits}, "
        f"{result.judged} judged, {result.seconds:.1f} s"
    )
    for answer in result.answers:
        _answer(answer)
    if not result.answers:
        say(_none(result, wanted))
    for note in result.notes:
        say(f"Note: {note}.", fg="yellow")


def _none(result: Bisected, wanted: str | None) -> str:
    """Why no commit is named."""
    from .formats.shared import tally

    same = [good for good, bad in result.ends if good == bad]
    moved = Counter(f"{good} -> {bad}" for good, bad in result.ends if good != bad)
    told = [f"{tally(same)} at both"] if same else []
    told += [f"{number} {change}" for change, number in moved.items()]
    if wanted is None:
        return f"No verdict differs: {', '.join(told)}."
    hint = " Without --verdict the gravest change is looked for." if moved else ""
    return f"No verdict becomes {wanted}: {', '.join(told)}.{hint}"


def _answer(answer: Answer) -> None:
    one = answer.watched
    say()
    say(f"{one.gap}: {answer.bad.symbol}  ({one.how})", bold=True)
    say(f"{answer.good.kind} at the good revision, ", nl=False)
    say(answer.bad.kind, fg=_STYLES.get(answer.bad.kind), nl=False)
    say(f" at the bad one: {ended(answer.bad.sentence)}")
    for step in answer.standing:
        _step(step, "since")
    for step in answer.reverse:
        _step(step, "only the good revision has")
    for note in answer.notes:
        say(f"Note: {note}.", fg="yellow")
    others = [step for step in answer.steps if not step.stands]
    if others:
        say("Other changes on the way, oldest first:")
    for step in others:
        before, commit = " and ".join(step.before), step.commit
        say(
            f"  {commit.oid[:12]} {_day(commit.authored)} {before} -> "
            f"{step.after.kind}: {_plain(commit.subject)}"
        )


def _step(step: Step, word: str) -> None:
    commit = step.commit
    say()
    say(f"{word} ", nl=False)
    click.secho(commit.oid, fg="yellow")
    click.echo(f"  {_plain(commit.subject)}")
    click.echo(f"  {_plain(commit.author)}, {_when(commit.authored)}")
    if step.merged_by is not None:
        merge = step.merged_by
        say(f"  merged by {merge.oid[:12]}: {_plain(merge.subject)}")
    say(f"  {' and '.join(step.before) or 'nothing'} before it")
    say()
    for line in step.diff[:_SHOWN]:
        click.secho(_plain(line), fg=_COLOURS.get(line[:1]))
    if len(step.diff) > _SHOWN:
        rest = len(step.diff) - _SHOWN
        more = counted(
            rest,
            "… and 1 line more; --json has it",
            "… and {number} lines more; --json has them",
        )
        say(more)


def _plain(text: str) -> str:
    """What a commit says, without what a terminal would act on."""
    return "".join(c if c.isprintable() or c == "\t" else "\ufffd" for c in text)


def _time(stamp: str) -> datetime | None:
    """What git writes as `1700000000 +0100`; None where that is no time."""
    seconds, _, zone = stamp.partition(" ")
    try:
        offset = timedelta(hours=int(zone[:3]), minutes=int(f"{zone[0]}{zone[3:]}"))
        return datetime.fromtimestamp(int(seconds), timezone(offset))
    except (ValueError, IndexError, OverflowError, OSError):
        return None


def _when(stamp: str) -> str:
    time = _time(stamp)
    return time.isoformat(sep=" ") if time else f"no date ({stamp})"


def _day(stamp: str) -> str:
    time = _time(stamp)
    return time.date().isoformat() if time else "no date   "


# JSON ----------------------------------------------------------------------------


def _json(result: Bisected) -> dict[str, Any]:
    return {
        "schema": 1,
        "package": result.package,
        "good": {"revision": result.good.name, "commit": result.good.commit},
        "bad": {"revision": result.bad.name, "commit": result.bad.commit},
        "findings": [_answer_json(one) for one in result.answers],
        "unchanged": result.unchanged,
        "notes": list(result.notes),
        "costs": {
            "commits": result.commits,
            "judged": result.judged,
            "seconds": round(result.seconds, 3),
        },
    }


def _answer_json(answer: Answer) -> dict[str, Any]:
    return {
        "gap": answer.watched.gap,
        "symbol": answer.bad.symbol,
        "how": answer.watched.how,
        "good": _verdict_json(answer.good),
        "bad": _verdict_json(answer.bad),
        "commits": [_step_json(one) for one in answer.standing],
        "others": [_step_json(one) for one in answer.steps if not one.stands],
        "only_in_good": [_step_json(one) for one in answer.reverse],
        "notes": list(answer.notes),
    }


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    return {
        "verdict": verdict.kind,
        "breakage": verdict.breakage,
        "sentence": verdict.sentence,
        "moved_to": verdict.moved_to,
    }


def _step_json(step: Step) -> dict[str, Any]:
    return {
        **_commit_json(step.commit),
        "before": list(step.before),
        "after": _verdict_json(step.after),
        "merged_by": step.merged_by and _commit_json(step.merged_by),
        "diff": list(step.diff),
    }


def _commit_json(commit: Commit) -> dict[str, Any]:
    authored, committed = _time(commit.authored), _time(commit.committed)
    return {
        "commit": commit.oid,
        "subject": commit.subject,
        "author": commit.author,
        "authored": authored and authored.isoformat(),
        "committed": committed and committed.isoformat(),
    }
