#!/usr/bin/env python
"""Keeps one tracking issue for each finding of `shims drift`.

    tools/ci/issues.py REPORT.json… [--scope NAME] [--most N] [--dry-run]

A finding's issue is opened when it is first seen, rewritten when its text changes,
closed when no report has it any more, and reopened when it is back. An issue that a
person closed stays closed as long as the finding is there: closing one is how to say
that it is known.

GITHUB_TOKEN and GITHUB_REPOSITORY say where (GITHUB_API_URL for an Enterprise
server), or GITLAB_TOKEN, CI_PROJECT_ID and CI_API_V4_URL. Exit 0 if the issues are
as they should be, 2 if not.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from trackers import GitHub, GitLab, Issue, Tracker, TrackerError

KINDS = ("broken", "review", "fixed-upstream")
LABEL = "ascend-shims-drift"
_TITLE = 200
_BODY = 60_000
"""Characters; GitHub takes 65,536 of a body and 256 of a title."""

_MARKER = re.compile(
    r"<!-- ascend-shims scope=(?P<scope>\S+) finding=(?P<finding>\S+) "
    r"text=(?P<text>[0-9a-f]{16})(?P<gone> gone)? -->"
)


@dataclass(frozen=True)
class Wanted:
    """The issue that a finding should have."""

    key: str
    title: str
    text: str
    gone: bool = False

    def body(self, scope: str) -> str:
        state = " gone" if self.gone else ""
        marker = (
            f"<!-- ascend-shims scope={scope} finding={self.key} "
            f"text={digest(self.title, self.text)}{state} -->"
        )
        return f"{self.text}\n\n{marker}\n"


@dataclass(frozen=True)
class Tracked:
    """An issue of ours."""

    issue: Issue
    key: str
    text: str
    gone: bool
    """We closed it; otherwise a person did."""


def digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


class ReportError(Exception):
    """A file is no report: what is not in it would look as if it were mended."""


def code(text: object) -> str:
    """Text from elsewhere as a code span, whatever is in it."""
    plain = " ".join(str(text).split()).replace("`", "'").replace("<", "\u2039")
    return f"`{plain}`"


def harmless(text: str) -> str:
    """Text from elsewhere, that neither calls people nor hides or forges anything."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("@", "@\u200b")


def read(reports: Iterable[Path]) -> dict[str, Wanted]:
    """The issues that there should be. Raises `ReportError`."""
    seen: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for path in reports:
        try:
            report = json.loads(path.read_text("utf-8"))
            if report["schema"] != 1:
                raise ValueError(f"schema {report['schema']}")  # noqa: TRY301
            for one in report["findings"]:
                if one["verdict"] in KINDS:
                    key = quote(one["fingerprint"], safe="")
                    seen.setdefault(key, []).append((report["release"], one))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ReportError(f"{path} is no report of drift: {error!r}") from None
    return {key: _wanted(key, found) for key, found in seen.items()}


def _wanted(key: str, found: list[tuple[str, Mapping[str, Any]]]) -> Wanted:
    _, one = found[0]
    title = f"{one['gap']}: {one['symbol'].rpartition(':')[2]} is {one['verdict']}"
    gap, place = code(one["gap"]), code(f"{one['file']}:{one['line']}")
    lines = [
        f"**{one['verdict']}** {code(one['symbol'])} ({one['how']}), relied on by "
        f"{gap} at {place}."
    ]
    for release, each in found:
        lines += ["", f"In {harmless(release)}: {harmless(each['sentence'])}."]
        new = each["new"]
        places = [f"{new['path']}:{new['line']}"] if new else []
        places += each["evidence"][:5]
        lines += [f"- {code(place)}" for place in dict.fromkeys(places)]
        if each["moved_to"]:
            lines.append(f"- now {code(each['moved_to'])}")
    diff, bisect = (code(f"shims {word} {one['gap']}") for word in ("diff", "bisect"))
    lines += [
        "",
        f"{diff} shows upstream's change, {bisect} the commit. This issue is kept by a "
        "scheduled job: it closes when the finding is gone. Close it to say that it is "
        "known.",
    ]
    text = "\n".join(lines)
    if len(text) > _BODY:
        text = f"{text[:_BODY]}\n…"
    return Wanted(key, title[:_TITLE], text)


def ours(tracker: Tracker, scope: str) -> dict[str, list[Tracked]]:
    """The issues of this scope by finding, the first one first.

    Only issues with our label count, which strangers cannot set.
    """
    found: dict[str, list[Tracked]] = {}
    for issue in tracker.issues():
        match = _MARKER.search(issue.body)
        if match is not None and match["scope"] == scope:
            mine = Tracked(issue, match["finding"], match["text"], bool(match["gone"]))
            found.setdefault(mine.key, []).append(mine)
    return {
        key: sorted(several, key=lambda one: one.issue.number)
        for key, several in found.items()
    }


@dataclass
class Sync:
    """Brings a tracker to what is wanted."""

    tracker: Tracker
    scope: str
    most: int
    dry: bool = False

    def run(self, wanted: Mapping[str, Wanted]) -> None:
        tracked = ours(self.tracker, self.scope)
        self._single(tracked)
        for key, several in tracked.items():
            if key in wanted:
                self._present(several[0], wanted[key])
            else:
                self._absent(several[0])
        missing = [one for key, one in wanted.items() if key not in tracked]
        for one in missing[: self.most]:
            self._say("open", one.title)
            if not self.dry:
                self.tracker.create(one.title, one.body(self.scope))
        if len(missing) > self.most:
            left = len(missing) - self.most
            print(f"{left} more next time: no more than {self.most} at once")
        if missing and not self.dry:
            # Another run may have opened the same ones meanwhile. Both look again,
            # and both leave the first of each.
            self._single(ours(self.tracker, self.scope))

    def _say(self, what: str, about: str) -> None:
        print(f"{'would ' if self.dry else ''}{what}: {about}")

    def _single(self, tracked: Mapping[str, list[Tracked]]) -> None:
        for first, *others in tracked.values():
            for one in others:
                if one.issue.is_open:
                    self._say("close", f"#{one.issue.number}, as #{first.issue.number}")
                    self._change(one, is_open=False)

    def _present(self, mine: Tracked, one: Wanted) -> None:
        back = mine.gone and not mine.issue.is_open
        # Compared by what we wrote last: a person may have added to the body.
        changed = mine.text != digest(one.title, one.text) or mine.gone
        if back or changed:
            self._say("reopen" if back else "update", f"#{mine.issue.number}")
            body = one.body(self.scope)
            self._change(mine, title=one.title, body=body, is_open=back or None)

    def _absent(self, mine: Tracked) -> None:
        if mine.gone:
            return
        self._say("close", f"#{mine.issue.number}, gone")
        marker = _MARKER.search(mine.issue.body)
        assert marker is not None
        at = marker.end() - len(" -->")
        body = f"{mine.issue.body[:at]} gone{mine.issue.body[at:]}"
        self._change(mine, body=body, is_open=False)

    def _change(self, mine: Tracked, **values: Any) -> None:
        if not self.dry:
            self.tracker.change(mine.issue.number, **values)


def tracker_from(environ: Mapping[str, str], label: str) -> Tracker:
    """The tracker that the variables name."""
    if environ.get("GITHUB_REPOSITORY"):
        api = environ.get("GITHUB_API_URL") or "https://api.github.com"
        token = environ.get("GITHUB_TOKEN", "")
        made: Tracker = GitHub(api, environ["GITHUB_REPOSITORY"], token, label)
    elif environ.get("CI_PROJECT_ID"):
        api = environ.get("CI_API_V4_URL") or "https://gitlab.com/api/v4"
        token = environ.get("GITLAB_TOKEN", "")
        made = GitLab(api, environ["CI_PROJECT_ID"], token, label)
    else:
        raise TrackerError("set GITHUB_REPOSITORY=OWNER/NAME, or CI_PROJECT_ID")
    if not token:
        raise TrackerError("set GITHUB_TOKEN or GITLAB_TOKEN to a token for issues")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(usage=(__doc__ or "").split("\n\n")[1].strip())
    parser.add_argument("reports", type=Path, nargs="+")
    parser.add_argument("--scope", default="default")
    parser.add_argument("--label", default=LABEL)
    parser.add_argument("--most", type=int, default=20)
    parser.add_argument("--dry-run", action="store_true")
    given = parser.parse_args(arguments)
    scope = quote(given.scope, safe="")
    try:
        wanted = read(given.reports)
        tracker = tracker_from(os.environ, given.label)
        Sync(tracker, scope, given.most, given.dry_run).run(wanted)
    except (ReportError, TrackerError) as error:
        print(f"tools/ci/issues.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
