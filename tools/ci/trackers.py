"""Issue trackers, as far as one issue a finding needs them.

Each request is bounded, waits when it is told to, and goes to the one host that was
named: a token never follows a redirection.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote, urlencode, urlsplit

import urllib3

__all__ = ["GitHub", "GitLab", "Issue", "Tracker", "TrackerError"]

_SECONDS = 30
_TRIES = 4
_LONGEST_WAIT = 120
_PAGES = 100
_ANSWER_BYTES = 32 << 20


class TrackerError(Exception):
    """The tracker cannot be used; the message says why."""


@dataclass(frozen=True)
class Issue:
    number: int
    title: str
    body: str
    is_open: bool


class Tracker(Protocol):
    def issues(self) -> Iterator[Issue]:
        """All issues with our label, open and closed, page by page."""

    def create(self, title: str, body: str) -> Issue: ...

    def change(
        self,
        number: int,
        *,
        title: str | None = None,
        body: str | None = None,
        is_open: bool | None = None,
    ) -> None: ...


class _Http:
    def __init__(
        self,
        base: str,
        headers: Mapping[str, str],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        parts = urlsplit(base)
        local = parts.hostname in ("localhost", "127.0.0.1", "::1")
        if parts.scheme != "https" and not (parts.scheme == "http" and local):
            raise TrackerError(f"{base} is no https:// address: a token goes there")
        self._base = base.rstrip("/")
        self._headers = {"User-Agent": "ascend-shims", **headers}
        self._sleep = sleep
        self._pool = urllib3.PoolManager(
            retries=False, timeout=urllib3.Timeout(_SECONDS)
        )

    def ask(
        self, method: str, path: str, value: Mapping[str, Any] | None = None
    ) -> Any:
        """The decoded answer. Raises `TrackerError`."""
        for attempt in range(_TRIES):
            status, headers, data = self._send(method, path, value)
            if status < 300:
                try:
                    return json.loads(data or b"null")
                except ValueError:
                    raise TrackerError(f"{method} {path}: no JSON came back") from None
            wait = _wait(status, headers, method)
            if wait is None or attempt == _TRIES - 1:
                break
            self._sleep(min(wait or 2**attempt, _LONGEST_WAIT))
        said = data[:300].decode(errors="replace")
        raise TrackerError(f"{method} {path}: HTTP {status}: {said}")

    def _send(
        self, method: str, path: str, value: Mapping[str, Any] | None
    ) -> tuple[int, Mapping[str, str], bytes]:
        try:
            response = self._pool.request(
                method,
                self._base + path,
                body=None if value is None else json.dumps(value).encode(),
                headers={**self._headers, "Content-Type": "application/json"},
                redirect=False,
                preload_content=False,
            )
            data = response.read(_ANSWER_BYTES)
            response.release_conn()
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise TrackerError(f"{method} {path}: {error}") from None
        return response.status, response.headers, data

    def pages(self, path: str, query: Mapping[str, str]) -> Iterator[Any]:
        """What is listed, page after page, until one is not full."""
        size = 100
        for page in range(1, _PAGES + 1):
            asked = urlencode({**query, "per_page": size, "page": page})
            found = self.ask("GET", f"{path}?{asked}")
            yield from found
            if len(found) < size:
                return
        raise TrackerError(f"{path} has more than {_PAGES * size} issues of ours")


def _wait(status: int, headers: Mapping[str, str], method: str) -> float | None:
    """Seconds to wait before asking again, 0: as we like; None: it will not help."""
    after = headers.get("Retry-After", "")
    spent = headers.get("X-RateLimit-Remaining") == "0"
    if status == 429 or (status == 403 and (after or spent)):
        if after.isdigit():
            return float(after)
        reset = headers.get("X-RateLimit-Reset", "")
        return max(1.0, int(reset) - time.time()) if reset.isdigit() else 0
    # What was asked twice may be done twice, so only questions are repeated.
    return 0 if status >= 500 and method == "GET" else None


class GitHub:
    """A repository's issues, through the REST API."""

    def __init__(self, api: str, repository: str, token: str, label: str) -> None:
        if repository.count("/") != 1:
            raise TrackerError(f"{repository!r} is no repository; write OWNER/NAME")
        self._http = _Http(
            api,
            {
                "Accept": "application/vnd.github+json",
                "Authorization": f"Bearer {token}",
                "X-GitHub-Api-Version": "2022-11-28",
            },
        )
        self._path = f"/repos/{quote(repository)}/issues"
        self._label = label

    def issues(self) -> Iterator[Issue]:
        query = {
            "labels": self._label,
            "state": "all",
            "sort": "created",
            "direction": "asc",
        }
        for one in self._http.pages(self._path, query):
            # The same list has pull requests.
            if "pull_request" not in one:
                yield self._issue(one)

    def create(self, title: str, body: str) -> Issue:
        value = {"title": title, "body": body, "labels": [self._label]}
        return self._issue(self._http.ask("POST", self._path, value))

    def change(
        self,
        number: int,
        *,
        title: str | None = None,
        body: str | None = None,
        is_open: bool | None = None,
    ) -> None:
        value = {"title": title, "body": body}
        if is_open is not None:
            value["state"] = "open" if is_open else "closed"
        given = {key: text for key, text in value.items() if text is not None}
        self._http.ask("PATCH", f"{self._path}/{number}", given)

    def _issue(self, one: Mapping[str, Any]) -> Issue:
        is_open = one["state"] == "open"
        return Issue(one["number"], one["title"], one["body"] or "", is_open)


class GitLab:
    """A project's issues, through the REST API."""

    def __init__(self, api: str, project: str, token: str, label: str) -> None:
        self._http = _Http(api, {"PRIVATE-TOKEN": token})
        self._path = f"/projects/{quote(project, safe='')}/issues"
        self._label = label

    def issues(self) -> Iterator[Issue]:
        query = {
            "labels": self._label,
            "state": "all",
            "scope": "all",
            "order_by": "created_at",
            "sort": "asc",
        }
        return map(self._issue, self._http.pages(self._path, query))

    def create(self, title: str, body: str) -> Issue:
        value = {"title": title, "description": body, "labels": self._label}
        return self._issue(self._http.ask("POST", self._path, value))

    def change(
        self,
        number: int,
        *,
        title: str | None = None,
        body: str | None = None,
        is_open: bool | None = None,
    ) -> None:
        value = {"title": title, "description": body}
        if is_open is not None:
            value["state_event"] = "reopen" if is_open else "close"
        given = {key: text for key, text in value.items() if text is not None}
        self._http.ask("PUT", f"{self._path}/{number}", given)

    def _issue(self, one: Mapping[str, Any]) -> Issue:
        is_open = one["state"] == "opened"
        return Issue(one["iid"], one["title"], one["description"] or "", is_open)
