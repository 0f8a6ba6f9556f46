"""The files for CI: their scripts over real HTTP, their YAML by the linters."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
import yaml

ROOT = Path(__file__).parents[1]
CI = ROOT / "tools" / "ci"


class Tracker:
    """Issues behind GitHub's or GitLab's interface, on this machine."""

    def __init__(self) -> None:
        self.issues: list[dict[str, Any]] = []
        self.requests: list[tuple[str, str]] = []
        self.refusals: list[tuple[int, dict[str, str]]] = []
        """Answers to give before any other."""
        self.tokens: set[str] = set()
        self.on_create: Any = None
        self.lock = threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def add(self, title: str, body: str, label: str = "ascend-shims-drift") -> Any:
        one = {
            "number": len(self.issues) + 1,
            "title": title,
            "body": body,
            "state": "open",
            "labels": [label],
        }
        self.issues.append(one)
        return one

    def states(self) -> list[tuple[int, str]]:
        return [(one["number"], one["state"]) for one in self.issues]

    def answer(self, method: str, path: str, value: Any) -> tuple[int, Any]:
        parts = urlsplit(path)
        query = {key: found[0] for key, found in parse_qs(parts.query).items()}
        is_github = parts.path.startswith("/repos/o/r/issues")
        is_gitlab = unquote(parts.path).startswith("/projects/7/issues")
        if not (is_github or is_gitlab):
            return 404, {"message": "Not Found"}
        show = _as_github if is_github else _as_gitlab
        tail = parts.path.partition("/issues")[2].strip("/")
        if method == "GET":
            size, page = int(query["per_page"]), int(query["page"])
            mine = [one for one in self.issues if query["labels"] in one["labels"]]
            if query["state"] != "all":
                mine = [one for one in mine if one["state"] == query["state"]]
            return 200, [show(one) for one in mine[(page - 1) * size : page * size]]
        if method == "POST":
            if self.on_create:
                self.on_create(value)
            labels = value["labels"]
            label = labels[0] if isinstance(labels, list) else labels
            body = value.get("body") or value.get("description")
            return 201, show(self.add(value["title"], body, label))
        one = self.issues[int(tail) - 1]
        one["title"] = value.get("title", one["title"])
        one["body"] = value.get("body", value.get("description", one["body"]))
        state = value.get("state") or value.get("state_event")
        if state:
            one["state"] = "open" if state in ("open", "reopen") else "closed"
        return 200, show(one)


def _as_github(one: dict[str, Any]) -> dict[str, Any]:
    shown = {key: one[key] for key in ("number", "title", "body", "state")}
    return {**shown, **one.get("more", {})}


def _as_gitlab(one: dict[str, Any]) -> dict[str, Any]:
    return {
        "iid": one["number"],
        "title": one["title"],
        "description": one["body"],
        "state": "opened" if one["state"] == "open" else "closed",
    }


def _handler(tracker: Tracker) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            value = json.loads(self.rfile.read(size) or b"null")
            token = self.headers.get("Authorization") or self.headers["PRIVATE-TOKEN"]
            headers: dict[str, str] = {}
            with tracker.lock:
                tracker.requests.append((self.command, self.path))
                tracker.tokens.add(token)
                if tracker.refusals:
                    status, headers = tracker.refusals.pop(0)
                    answer: Any = {"message": "slow down"}
                else:
                    status, answer = tracker.answer(self.command, self.path, value)
            data = json.dumps(answer).encode()
            self.send_response(status)
            for name, text in headers.items():
                self.send_header(name, text)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_PUT = _do

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


@pytest.fixture
def tracker() -> Iterator[Tracker]:
    made = Tracker()
    yield made
    made.server.shutdown()
    made.server.server_close()


def finding(gap: str, number: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "gap": gap,
        "how": "calls",
        "symbol": f"up.m:f{number}",
        "verdict": "broken",
        "breakage": "removed",
        "sentence": f"up 2.0 has no `f{number}`",
        "old": None,
        "new": {"release": "up 2.0", "symbol": "up.m:f", "path": "up/m.py", "line": 3},
        "moved_to": None,
        "confidence": 0.0,
        "evidence": ["up/n.py:7"],
        "file": "gap_registry.yaml",
        "line": 12,
        "fingerprint": f"{gap}-{number:016x}",
        **more,
    }


Report = list[dict[str, Any]]


class Job:
    """Runs of the script that keeps issues."""

    def __init__(self, tracker: Tracker, where: Path) -> None:
        self.tracker = tracker
        self.where = where
        self.environ = {
            "GITHUB_REPOSITORY": "o/r",
            "GITHUB_TOKEN": "secret",
            "GITHUB_API_URL": tracker.url,
        }

    def __call__(self, *reports: Report, words: tuple[str, ...] = ()) -> Any:
        files = []
        for number, findings in enumerate(reports):
            report = {"schema": 1, "release": f"up {number}.0", "findings": findings}
            file = self.where / f"{number}.json"
            file.write_text(json.dumps(report))
            files.append(str(file))
        return self.run(*files, *words)

    def start(self, *words: str) -> subprocess.Popen[str]:
        names = ("GITHUB_", "GITLAB_", "CI_", "HTTP", "NO_PROXY")
        kept = {k: v for k, v in os.environ.items() if not k.upper().startswith(names)}
        return subprocess.Popen(
            [sys.executable, str(CI / "issues.py"), *words],
            env={**kept, **self.environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str) -> Any:
        process = self.start(*words)
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(words, process.returncode, out, err)


@pytest.fixture
def job(tracker: Tracker, tmp_path: Path) -> Job:
    return Job(tracker, tmp_path)


def writes(tracker: Tracker) -> int:
    return sum(method != "GET" for method, _ in tracker.requests)


# One issue a finding ---------------------------------------------------------------


@pytest.fixture(params=["github", "gitlab"])
def any_job(job: Job, request: pytest.FixtureRequest) -> Job:
    if request.param == "gitlab":
        job.environ = {
            "CI_PROJECT_ID": "7",
            "GITLAB_TOKEN": "secret",
            "CI_API_V4_URL": job.tracker.url,
        }
    return job


def test_the_life_of_an_issue(any_job: Job) -> None:
    job, tracker = any_job, any_job.tracker
    one, two = finding("a", 1), finding("b", 2)
    assert job([one, two]).returncode == 0
    assert tracker.states() == [(1, "open"), (2, "open")]
    assert tracker.issues[0]["title"] == "a: f1 is broken"
    body = tracker.issues[0]["body"]
    assert "**broken** `up.m:f1` (calls), relied on by `a`" in body
    assert "In up 0.0: up 2.0 has no `f1`." in body
    assert "- `up/m.py:3`\n- `up/n.py:7`" in body
    # The same again: nothing is written.
    before = writes(tracker)
    assert job([two, one]).returncode == 0
    assert writes(tracker) == before == 2
    # Another text, of which the fingerprint says that it is the same finding.
    moved = {**one, "sentence": "up 2.0 has it elsewhere", "moved_to": "up.n:f1"}
    assert job([moved, two]).returncode == 0
    assert writes(tracker) == before + 1
    assert "- now `up.n:f1`" in tracker.issues[0]["body"]
    # Gone, and gone the next day too.
    assert job([two]).returncode == 0
    assert job([two]).returncode == 0
    assert tracker.states() == [(1, "closed"), (2, "open")]
    assert writes(tracker) == before + 2
    # Back.
    assert job([one, two]).returncode == 0
    assert tracker.states() == [(1, "open"), (2, "open")]
    assert "has no `f1`" in tracker.issues[0]["body"]
    assert job([one, two]).returncode == 0
    assert writes(tracker) == before + 3


def test_what_a_person_closed_stays_closed(job: Job, tracker: Tracker) -> None:
    one = finding("a", 1)
    job([one])
    tracker.issues[0]["state"] = "closed"
    job([one])
    job([{**one, "sentence": "another text"}])
    assert tracker.states() == [(1, "closed")]
    assert "another text" in tracker.issues[0]["body"]
    job([])
    job([one])
    assert tracker.states() == [(1, "open")]


def test_what_a_person_wrote_stays_until_the_text_changes(
    job: Job, tracker: Tracker
) -> None:
    job([finding("a", 1)])
    tracker.issues[0]["body"] = "We know.\n\n" + tracker.issues[0]["body"]
    before = writes(tracker)
    job([finding("a", 1)])
    assert writes(tracker) == before
    assert tracker.issues[0]["body"].startswith("We know.")


def test_one_issue_for_all_reports_that_have_it(job: Job, tracker: Tracker) -> None:
    one = finding("a", 1)
    job([one], [{**one, "sentence": "main has no `f1`"}])
    assert tracker.states() == [(1, "open")]
    assert "In up 0.0: up 2.0 has no `f1`." in tracker.issues[0]["body"]
    assert "In up 1.0: main has no `f1`." in tracker.issues[0]["body"]


def test_more_than_a_page_of_issues(job: Job, tracker: Tracker) -> None:
    many = [finding("a", n) for n in range(250)]
    assert job(many, words=("--most", "300")).returncode == 0
    assert len(tracker.issues) == 250
    before = writes(tracker)
    assert job(many, words=("--most", "300")).returncode == 0
    assert writes(tracker) == before
    pages = [path for method, path in tracker.requests if method == "GET"]
    assert any("page=3" in path for path in pages)


def test_not_too_many_at_once(job: Job, tracker: Tracker) -> None:
    many = [finding("a", n) for n in range(25)]
    done = job(many)
    assert len(tracker.issues) == 20
    assert "5 more next time" in done.stdout
    job(many)
    assert len(tracker.issues) == 25


def test_two_runs_at_once_leave_one_issue(job: Job, tracker: Tracker) -> None:
    many = [finding("a", n) for n in range(6)]
    job(many, words=("--dry-run",))
    files = [str(job.where / "0.json")]
    both = [job.start(*files) for _ in range(2)]
    assert [process.wait(timeout=60) for process in both] == [0, 0]
    keys = [_key(one["body"]) for one in tracker.issues if one["state"] == "open"]
    assert len(keys) == len(set(keys)) == 6


def _key(body: str) -> str:
    match = re.search(r"finding=(\S+)", body)
    assert match is not None
    return match[1]


def test_a_race_that_is_lost(job: Job, tracker: Tracker) -> None:
    """Another run opens the same issue between our look and our writing."""

    def other(value: dict[str, Any]) -> None:
        tracker.on_create = None
        tracker.add(value["title"], value["body"])

    tracker.on_create = other
    assert job([finding("a", 1)]).returncode == 0
    assert tracker.states() == [(1, "open"), (2, "closed")]
    before = writes(tracker)
    job([finding("a", 1)])
    assert writes(tracker) == before


def test_other_issues_are_left_alone(job: Job, tracker: Tracker) -> None:
    job([finding("a", 1)], words=("--scope", "torch npu"))
    forged = tracker.issues[0]["body"].replace("torch%20npu", "default")
    tracker.add("by a stranger", forged, label="bug")
    tracker.add("without a marker", "text")
    pull = tracker.add("a pull request", forged)
    pull["more"] = {"pull_request": {}}
    before = writes(tracker)
    job([])
    assert writes(tracker) == before
    job([finding("a", 1)])
    assert [one["title"] for one in tracker.issues][4:] == ["a: f1 is broken"]


def test_harmless_verdicts_have_no_issue(job: Job, tracker: Tracker) -> None:
    job([finding("a", 1, verdict="compatible"), finding("b", 2, verdict="review")])
    assert [one["title"] for one in tracker.issues] == ["b: f2 is review"]


def test_text_from_elsewhere_does_nothing(job: Job, tracker: Tracker) -> None:
    marker = "<!-- ascend-shims scope=default finding=x text=0123456789abcdef -->"
    evil = finding(
        f"a` {marker}",
        1,
        sentence=f"@everyone <img src=x> {marker}",
        evidence=["`\n# heading", f"{marker}.py:1"],
        moved_to="x" * 100_000,
    )
    assert job([evil]).returncode == 0
    body = tracker.issues[0]["body"]
    assert "@everyone" not in body
    assert "<img" not in body
    assert body.count("<!--") == 1
    assert len(body) < 65_536
    assert len(tracker.issues[0]["title"]) <= 256
    before = writes(tracker)
    job([evil])
    assert writes(tracker) == before


def test_a_dry_run_writes_nothing(job: Job, tracker: Tracker) -> None:
    done = job([finding("a", 1)], words=("--dry-run",))
    assert done.stdout == "would open: a: f1 is broken\n"
    assert writes(tracker) == 0


def test_it_waits_when_it_is_told_to(job: Job, tracker: Tracker) -> None:
    tracker.refusals = [
        (429, {"Retry-After": "0"}),
        (403, {"Retry-After": "1"}),
        (502, {}),
    ]
    assert job([finding("a", 1)]).returncode == 0
    assert tracker.states() == [(1, "open")]


@pytest.mark.parametrize(
    ("refusal", "why"),
    [
        ((401, {}), "HTTP 401"),
        ((403, {}), "HTTP 403"),
        ((302, {"Location": "http://127.0.0.1:9/"}), "HTTP 302"),
    ],
)
def test_what_the_tracker_refuses(
    job: Job, tracker: Tracker, refusal: tuple[int, dict[str, str]], why: str
) -> None:
    tracker.refusals = [refusal]
    done = job([finding("a", 1)])
    assert (done.returncode, tracker.issues) == (2, [])
    assert why in done.stderr
    assert "secret" not in done.stderr + done.stdout


def test_a_failed_creation_is_not_tried_again(job: Job, tracker: Tracker) -> None:
    """It may have happened all the same; the next run sees."""
    job([])

    def fail(value: dict[str, Any]) -> None:
        tracker.on_create = None
        tracker.add(value["title"], value["body"])
        tracker.refusals = [(502, {})]

    tracker.on_create = fail
    posts = [method for method, _ in tracker.requests].count("POST")
    job([finding("a", 1)])
    assert [method for method, _ in tracker.requests].count("POST") == posts + 1


@pytest.mark.parametrize(
    ("environ", "why"),
    [
        ({}, "set GITHUB_REPOSITORY"),
        ({"GITHUB_REPOSITORY": "o/r"}, "set GITHUB_TOKEN"),
        ({"GITHUB_REPOSITORY": "or", "GITHUB_TOKEN": "t"}, "OWNER/NAME"),
        (
            {
                "GITHUB_REPOSITORY": "o/r",
                "GITHUB_TOKEN": "t",
                "GITHUB_API_URL": "http://example.invalid",
            },
            "no https:// address",
        ),
    ],
)
def test_misuse(job: Job, environ: dict[str, str], why: str) -> None:
    job.environ = environ
    done = job([])
    assert done.returncode == 2
    assert why in done.stderr


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 2, "findings": []}'])
def test_what_is_no_report_closes_nothing(
    job: Job, tracker: Tracker, tmp_path: Path, text: str
) -> None:
    job([finding("a", 1)])
    (tmp_path / "bad.json").write_text(text)
    done = job.run(str(tmp_path / "bad.json"))
    assert done.returncode == 2
    assert "is no report of drift" in done.stderr
    assert tracker.states() == [(1, "open")]


# The job as a whole ----------------------------------------------------------------

REGISTRY = """
schema: 1
upstreams: [madeup]
package: madeup_patches
gaps:
  - id: loud
    title: Answers loudly
    status: open
    kind: workaround
    why: Callers are hard of hearing.
    remove_when: They hear.
    needs: {device: false}
    patches:
      - {target: "madeup.core:answer", kind: wrap, replacement: shout}
"""
CORE = "def answer(word):\n    return word\n"
USER = "from madeup.core import answer\n\n\ndef ask():\n    return answer('tea')\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        "old/madeup/core.py": CORE,
        "new/madeup/core.py": "",
        "main/madeup/core.py": CORE,
        "madeup_patches/loud.py": "def shout(call, word):\n    return call(word)\n",
        "madeup_patches/__init__.py": "",
        "gap_registry.yaml": REGISTRY,
    }
    for place in ("old", "new", "main"):
        files[f"{place}/madeup/__init__.py"] = ""
        files[f"{place}/madeup/user.py"] = USER if place != "new" else ""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def _environ(project: Path, **more: str) -> dict[str, str]:
    names = ("GITHUB_", "GITLAB_", "CI_", "ASCEND_SHIMS", "RUNNER_")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(names)}
    return {
        **kept,
        "PYTHON": sys.executable,
        "PYTHONPATH": f"{project}{os.pathsep}{ROOT}",
        "ASCEND_SHIMS_CACHE": "off",
        **more,
    }


def _step(project: Path, word: str, **more: str) -> Any:
    return subprocess.run(
        [str(CI / "step"), word],
        env=_environ(project, **more),
        cwd=project,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


OPTIONS = "--baseline\nold\n--package\nmadeup\n"


def test_the_steps_of_the_job(project: Path, tracker: Tracker) -> None:
    temp = project / "temp"
    temp.mkdir()
    job = {
        "RUNNER_TEMP": str(temp),
        "GITHUB_ACTIONS": "true",
        "GITHUB_OUTPUT": str(project / "output"),
        "GITHUB_STEP_SUMMARY": str(project / "summary"),
        "SOURCES": "new\n\nmain\n",
        "OPTIONS": OPTIONS,
    }
    done = _step(project, "drift", **job)
    assert done.returncode == 0, done.stderr
    assert (
        "::error file=gap_registry.yaml,line=14,title=loud%3A broken::" in done.stdout
    )
    assert (project / "output").read_text() == "findings=1\n"
    assert "loud" in (project / "summary").read_text()
    out = temp / ".ascend-shims-drift"
    assert sorted(p.name for p in out.iterdir()) == [
        "main.json",
        "main.junit.xml",
        "new.json",
        "new.junit.xml",
        "sarif",
    ]
    logs = [json.loads(p.read_text()) for p in sorted((out / "sarif").iterdir())]
    categories = [log["runs"][0]["automationDetails"]["id"] for log in logs]
    assert categories == ["ascend-shims/main/", "ascend-shims/new/"]
    assert [len(log["runs"][0]["results"]) for log in logs] == [0, 1]
    where = {
        "GITHUB_REPOSITORY": "o/r",
        "GITHUB_TOKEN": "secret",
        "GITHUB_API_URL": tracker.url,
    }
    assert _step(project, "issues", **job, **where).returncode == 0
    assert [one["title"] for one in tracker.issues] == ["loud: answer is broken"]
    job["SOURCES"] = "main"
    assert _step(project, "drift", **job).returncode == 0
    assert _step(project, "issues", **job, **where).returncode == 0
    assert tracker.states() == [(1, "closed")]


def test_the_registry_of_the_job_is_the_projects_own(project: Path) -> None:
    """Without any option: `--registry` may also name a file or another folder."""
    job = {"SOURCES": "new", "OPTIONS": OPTIONS}
    for more in ({}, {"REGISTRY": "."}, {"REGISTRY": "gap_registry.yaml"}):
        assert _step(project, "drift", **job, **more).returncode == 0
        out = project / ".ascend-shims-drift" / "new.json"
        report = json.loads(out.read_text())
        assert [one["gap"] for one in report["findings"]] == ["loud"]
    other = project / "other.yaml"
    other.write_text(REGISTRY.replace("loud", "louder"))
    (project / "madeup_patches" / "louder.py").write_text("def shout(call): ...\n")
    job["OPTIONS"] += "--registry\nother.yaml\n"
    assert _step(project, "drift", **job).returncode == 0
    assert "louder" in (project / ".ascend-shims-drift" / "new.json").read_text()
    (project / "gap_registry.yaml").unlink()
    done = _step(project, "drift", SOURCES="new")
    assert done.returncode == 2
    assert "gap_registry.yaml" in done.stderr


def test_a_source_that_cannot_be_checked_fails_the_job(project: Path) -> None:
    done = _step(project, "drift", SOURCES="new\nnowhere==1.0.x", OPTIONS=OPTIONS)
    assert done.returncode == 2
    assert "nowhere==1.0.x could not be checked" in done.stderr
    # Nothing is left of which the issues could be made.
    assert _step(project, "nothing").returncode == 2


def test_what_is_asked_for_is_never_a_command(project: Path) -> None:
    evil = "$(touch x); `touch x` && touch x"
    for words in ({"SOURCES": evil}, {"SOURCES": "new", "OPTIONS": evil}):
        assert _step(project, "drift", **words).returncode == 2
    assert not (project / "x").exists()


# The YAML --------------------------------------------------------------------------


def _yaml(name: str) -> Any:
    return yaml.safe_load((CI / name).read_text())


def test_actions_are_pinned_and_no_text_is_part_of_a_command() -> None:
    action, workflow = _yaml("action.yml"), _yaml("workflow.yml")
    steps = [*action["runs"]["steps"], *workflow["jobs"]["drift"]["steps"]]
    used = [step["uses"] for step in steps if "uses" in step]
    assert len(used) == 5
    for name in used:
        assert re.search(r"@[0-9a-f]{40}$", name), name
    commands = [step["run"] for step in steps if "run" in step]
    assert len(commands) == 3
    assert all("${{" not in one for one in commands)


def test_each_step_that_the_yaml_calls_is_one(project: Path) -> None:
    called = [step.get("run", "") for step in _yaml("action.yml")["runs"]["steps"]]
    called += _yaml("gitlab.yml")["upstream-drift"]["script"]
    words = set(re.findall(r"step\"? ([a-z]+)", " ".join(called)))
    assert words == {"install", "drift", "issues"}
    text = (CI / "step").read_text()
    assert all(f"    {word})" in text for word in words)
    artifacts = _yaml("gitlab.yml")["upstream-drift"]["artifacts"]
    assert ".ascend-shims-drift" in artifacts["reports"]["junit"]


def _workflow(tmp_path: Path) -> Path:
    """The workflow as somebody has it who filled it in."""
    text = (CI / "workflow.yml").read_text()
    place = tmp_path / ".github" / "workflows" / "drift.yml"
    place.parent.mkdir(parents=True)
    place.write_text(text.replace("@" + "0" * 40, "@" + "0123456789" * 4))
    assert "0123456789" in place.read_text()
    return place


@pytest.mark.skipif(shutil.which("actionlint") is None, reason="no actionlint here")
def test_actionlint(tmp_path: Path) -> None:
    done = subprocess.run(
        ["actionlint", "-no-color", str(_workflow(tmp_path))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")


ZIZMOR = shutil.which(
    "zizmor", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
)


@pytest.mark.skipif(ZIZMOR is None, reason="no zizmor here")
def test_zizmor(tmp_path: Path) -> None:
    assert ZIZMOR is not None
    for place in (_workflow(tmp_path), CI / "workflow.yml", CI / "action.yml"):
        done = subprocess.run(
            [ZIZMOR, "--offline", "--no-progress", "--persona=pedantic", str(place)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout


# Hooks of pre-commit ---------------------------------------------------------------


def _hook(project: Path, name: str, *words: str) -> Any:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    (entry,) = [shlex.split(one["entry"]) for one in hooks if one["id"] == name]
    assert entry[0] == "python"
    return subprocess.run(
        [sys.executable, *entry[1:], *words],
        env=_environ(project),
        cwd=project,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_hook_that_checks_registries(project: Path) -> None:
    done = _hook(project, "shims-registry", "gap_registry.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    (project / "gap_registry.yaml").write_text(REGISTRY.replace("wrap", "wrpa"))
    done = _hook(project, "shims-registry", "gap_registry.yaml", "gap_registry.yaml")
    assert done.returncode == 1
    assert "gap_registry.yaml:14:" in done.stderr
    assert "did you mean `wrap`?" in done.stderr
    assert (
        _hook(project, "shims-registry", str(ROOT / "gap_registry.yaml")).returncode
        == 0
    )
    assert _hook(project, "shims-registry").returncode == 2


def test_the_hooks_that_read_upstream(project: Path) -> None:
    """Of the project that they run in, and not of the toolkit."""
    words = ("--against", "new", *OPTIONS.split())
    done = _hook(project, "shims-drift", *words)
    assert done.returncode == 1
    assert "loud" in done.stdout
    # As it is: there is no lock, so that nothing is fetched.
    done = _hook(project, "shims-lock")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no lock yet" in done.stderr
    done = _hook(project, "shims-lock", "old")
    assert done.returncode == 2
    assert "does not say which release it is" in done.stderr


@pytest.mark.parametrize("name", ["shims-lock", "shims-drift"])
def test_a_hook_where_there_is_no_registry(project: Path, name: str) -> None:
    (project / "gap_registry.yaml").unlink()
    done = _hook(project, name)
    assert (done.returncode, done.stdout) == (2, "")
    assert "gap_registry.yaml" in done.stderr
