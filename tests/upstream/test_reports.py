"""Public reports of class E: drift and CI tools, each with what it says to try.

The number of the report is in the name. What a report says of sources (E11, E13,
E15) is tried here through the command and in `sources` in every detail.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any
from urllib.parse import unquote

import pytest

from ascend_shims.registry import load
from ascend_shims.upstream.facts.symbol import find
from ascend_shims.upstream.tree import Tree

from .sources.conftest import (  # noqa: F401
    Mirror,
    clean,
    closed_port,
    mirror,
    mirrors,
    wheel,
)

# ruff: noqa: F811 - the fixtures are imported by their names

TOP = Path(__file__).parents[2]

REGISTRY = """
schema: 1
upstreams: [pkg]
package: report_patches
gaps:
  - id: one
    title: T
    status: open
    kind: workaround
    why: W
    remove_when: R
    needs: {device: false}
    patches:
      - {target: "pkg.m:f", kind: KIND, replacement: ours}
"""
M = (
    "def f(a, b=1, c=2) -> 'list[int]':\n    return a + b + c\n\n\n"
    "def g():\n    return f(1, 2, 3)\n"
)

Drift = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A registry and its patches, in a directory that is a repository."""
    root = tmp_path / "project"
    (root / "report_patches").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / "report_patches" / "__init__.py").touch()
    ours = "def ours(*args, **kwargs): ...\n"
    (root / "report_patches" / "one.py").write_text(ours)
    (root / "registry.yaml").write_text(REGISTRY.replace("KIND", "wrap"))
    return root


def shims(*words: str, cwd: Path, environ: Mapping[str, str] | None = None) -> Any:
    """Run the command with nothing but variables, in a directory."""
    env = {**os.environ, "PYTHONPATH": f"{TOP}{os.pathsep}{cwd}", **(environ or {})}
    return subprocess.run(
        [sys.executable, "-m", "ascend_shims", *words],
        env=env,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def drift(project: Path) -> Drift:
    """`shims drift` from one text of `pkg.m` to another."""

    def run(
        old: str, new: str, *words: str, how: str = "calls", **more: bool | str
    ) -> Any:
        for name, text in (("old", old), ("new", new)):
            folder = project.parent / name / "pkg"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "__init__.py").touch()
            (folder / "m.py").write_text(dedent(text))
        watch = project / "watch.jsonl"
        watch.write_text(json.dumps({"symbol": "pkg.m:f", "how": how, **more}))
        return shims(
            "drift",
            *("--package", "pkg", "--registry", "registry.yaml"),
            *("--watch", "watch.jsonl", "--gap", "watch"),
            *("--baseline", str(project.parent / "old")),
            *("--against", str(project.parent / "new")),
            *words,
            cwd=project,
        )

    return run


def verdict(done: Any) -> str:
    (finding,) = json.loads(done.stdout)["findings"]
    return str(finding["verdict"])


@pytest.mark.parametrize(
    ("new", "by_keyword", "kind"),
    [
        ("f(a, x=0, b=1, c=2)", False, "broken"),
        ("f(a, x=0, b=1, c=2)", True, "compatible"),
        ("f(a, b=1, c=2, x=0)", False, "compatible"),
        ("f(a, b=1, c=2, *, x=0)", False, "compatible"),
    ],
)
def test_e02_a_parameter_inserted_in_the_middle(
    new: str, by_keyword: bool, kind: str, drift: Drift
) -> None:
    changed = M.replace("f(a, b=1, c=2)", new)
    done = drift(M, changed, "--json", by_keyword=by_keyword)
    assert verdict(done) == kind
    assert done.returncode == (kind == "broken")


OVERLOADED = """
from typing import overload
@overload
def f(a: int) -> int: ...
@overload
def f(a: str) -> str: ...
def f(a): return a
def g(): return f(1)
"""


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        (OVERLOADED, OVERLOADED.replace("def f(a): return", "def f(a, z): return"),
         {"broken"}),
        # No more than a note: nothing happens at run time.
        (OVERLOADED, OVERLOADED.replace("a: str) -> str", "a: bytes) -> bytes"),
         {"identical", "cosmetic", "compatible"}),
    ],
)  # fmt: skip
def test_e03_the_implementation_counts_among_overloads(
    old: str, new: str, kinds: set[str], drift: Drift
) -> None:
    assert verdict(drift(old, new, "--json")) in kinds


def test_e03_overloads_alone_are_a_symbol(tree_of: Callable[..., Tree]) -> None:
    stub = OVERLOADED.replace("def f(a): return a\n", "")
    found = find(tree_of(stub), "up.m:f")
    assert found is not None
    assert found.kind == "function"


@pytest.mark.parametrize(
    ("new", "kind", "codes"),
    [
        ("'''Doc.'''\n" + M, "identical", {"any": 0, "review": 0, "broken": 0}),
        (M.replace("'list[int]'", "List[int]"), "cosmetic",
         {"any": 1, "review": 0, "broken": 0}),
        (M.replace("c=2)", "c=None)"), "compatible",
         {"any": 1, "review": 0, "broken": 0}),
        (M.replace("a + b", "a - b"), "review",
         {"any": 1, "review": 1, "broken": 0}),
        (M.replace("def f", "def h"), "broken",
         {"any": 1, "review": 1, "broken": 1, "never": 0}),
    ],
    ids=["docstring", "annotation", "default", "body", "gone"],
)  # fmt: skip
def test_e04_severity_and_the_exit_code(
    new: str, kind: str, codes: dict[str, int], drift: Drift
) -> None:
    for level, code in codes.items():
        done = drift(M, new, "--json", "--fail-on", level, how="replaces_function")
        assert (verdict(done), done.returncode) == (kind, code), level


HEADER = "# SPDX-License-Identifier: Apache-2.0\n# Copyright contributors\n\n"


@pytest.mark.parametrize(
    ("new", "same"),
    [
        (HEADER + M, True),
        (M.replace("(a, b=1, c=2)", "(\n    a,\n    b=1,\n    c=2,\n)"), True),
        (
            M.replace("return a + b + c", '"""Adds."""\n    return a + b + c  # sum'),
            True,
        ),
        ("import os\nimport re\n\n" + M, True),
        (M.replace("a + b + c", "a + b - c"), False),
    ],
    ids=["header", "formatter", "docstring", "imports", "operator"],
)
def test_e05_what_is_the_same_stays_the_same(
    new: str, same: bool, drift: Drift
) -> None:
    """With a whole body relied on, whatever the lines."""
    kind = verdict(drift(M, new, "--json", how="replaces_function"))
    assert (kind in ("identical", "cosmetic")) is same
    assert same or kind == "review"


def test_e05_a_finding_keeps_its_fingerprint(drift: Drift) -> None:
    gone = M.replace("def f", "def h")

    def fingerprints(new: str) -> list[str]:
        report = json.loads(drift(M, new, "--json").stdout)
        return [finding["fingerprint"] for finding in report["findings"]]

    first = fingerprints(gone)
    assert len(first) == 1
    assert fingerprints(HEADER + gone.replace("(a,", "(\n    a,")) == first


MADE = """
namespace = {}
exec("def f(a): return a", namespace)
f = namespace["f"]
"""


def test_e10_what_source_does_not_show_is_never_equal(drift: Drift) -> None:
    """Made at run time: nothing is hashed that belongs to something else."""
    defined = "def f(a): return a\ndef g(): return f(1)\n"
    done = drift(defined, MADE, "--json", how="replaces_function")
    assert verdict(done) not in ("identical", "cosmetic")
    for old in ("exec('def f(a): return a')\n", "x = 1\n"):
        done = drift(old, defined, "--json", how="replaces_function")
        (finding,) = json.loads(done.stdout)["findings"]
        assert (finding["verdict"], finding["breakage"]) == ("review", "unreadable")


def test_e11_no_network_is_one_line_within_seconds(
    project: Path, closed_port: int
) -> None:
    words = ("drift", "--against", "pkg==1.0", "--registry", "registry.yaml")

    def timed(*more: str) -> tuple[Any, float]:
        begun = time.monotonic()
        return shims(*words, *more, cwd=project), time.monotonic() - begun

    done, starting = timed("--baseline", "names no source")
    assert done.returncode == 2
    for how in ((), ("--offline",)):
        index = f"http://127.0.0.1:{closed_port}/simple"
        done, took = timed("--baseline", "pkg==1.0", "--index-url", index, *how)
        assert (done.returncode, done.stdout) == (2, "")
        assert len(done.stderr.splitlines()) == 1
        # On a machine that is busy, and may be more so than a moment ago.
        assert took < 15 + 4 * starting


def test_e11_requests_go_where_the_proxy_variables_say(
    project: Path, mirror: Mirror, mirrors: Callable[[], Mirror], tmp_path: Path
) -> None:
    """The index has no address here: only the proxy can have answered."""
    relay = mirrors()
    relay.add(wheel(tmp_path / "pkg-1.0-py3-none-any.whl", {"pkg/m.py": M.encode()}))
    index = "http://index.invalid/simple"
    relay.redirects = {}
    environ = {
        "http_proxy": f"http://{relay.address}",
        "PIP_TRUSTED_HOST": "index.invalid",
        "PIP_INDEX_URL": index,
    }
    words = ("drift", "--against", "pkg==1.0", "--registry", "registry.yaml")
    done = shims(*words, "--baseline", "pkg==1.0", cwd=project, environ=environ)
    asked = [request.path for request in relay.asked]
    assert asked[:1] == [f"{index}/pkg/"]
    assert mirror.asked == []
    assert "Traceback" not in done.stderr


def test_e13_a_mirror_stays_the_only_host(
    project: Path, mirror: Mirror, mirrors: Callable[[], Mirror], tmp_path: Path
) -> None:
    public = mirrors()
    mirror.add(wheel(tmp_path / "pkg-1.0-py3-none-any.whl", {"pkg/m.py": M.encode()}))
    public.files = mirror.files
    mirror.absolute = f"http://{public.address}/files"
    words = (
        *("drift", "--against", "pkg==1.0", "--baseline", "pkg==1.0"),
        *("--registry", "registry.yaml", "--json"),
    )
    refused = shims(*words, cwd=project)
    assert refused.returncode == 2
    assert f"--allow-host {public.address}" in refused.stderr.replace(
        "allow_hosts", "--allow-host"
    )
    assert public.asked == []
    told = shims(*words, "--allow-host", public.address, cwd=project)
    assert verdict(told) == "identical"
    assert public.asked != []


def test_e15_a_release_of_500_mb_costs_next_to_nothing(
    project: Path, mirror: Mirror, tmp_path: Path
) -> None:
    mirror.hashes = False
    big = tmp_path / "pkg-1.0-py3-none-any.whl"
    mirror.add(wheel(big, {"pkg/m.py": M.encode()}, before=500_000_000))
    done = shims(
        *("drift", "--against", "pkg==1.0", "--baseline", "pkg==1.0"),
        *("--registry", "registry.yaml", "--json"),
        cwd=project,
    )
    assert verdict(done) == "identical"
    assert 0 < mirror.sent < 0.05 * 500_000_000
    assert json.loads(done.stdout)["costs"]["bytes"] == mirror.sent


# What code scanning refuses, in a few lines of JSON Schema.
ACCEPTED = {
    "type": "object",
    "required": ["version", "runs", "$schema"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "not": {"required": ["originalUriBaseIds"]},
                "properties": {
                    "results": {"type": "array", "items": {"$ref": "#/$defs/result"}}
                },
            },
        },
    },
    "$defs": {
        "result": {
            "type": "object",
            "required": ["ruleId", "message", "locations", "partialFingerprints"],
            "properties": {
                "level": {"enum": ["none", "note", "warning", "error"]},
                "message": {
                    "required": ["text"],
                    "properties": {"text": {"type": "string", "minLength": 1}},
                },
                "partialFingerprints": {
                    "type": "object",
                    "minProperties": 1,
                    "additionalProperties": {"type": "string", "minLength": 1},
                },
                "locations": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 1,
                    "items": {"$ref": "#/$defs/location"},
                },
            },
        },
        "location": {
            "required": ["physicalLocation"],
            "properties": {
                "physicalLocation": {
                    "required": ["artifactLocation", "region"],
                    "properties": {
                        "artifactLocation": {
                            "required": ["uri"],
                            "not": {"required": ["uriBaseId"]},
                            "properties": {
                                # Relative, percent-encoded, inside the checkout.
                                "uri": {
                                    "type": "string",
                                    "pattern": "^(?!/|\\.\\./)"
                                    "([A-Za-z0-9._~/-]|%[0-9A-F]{2})+$",
                                }
                            },
                        },
                        "region": {
                            "required": ["startLine"],
                            "properties": {
                                "startLine": {"type": "integer", "minimum": 1}
                            },
                        },
                    },
                }
            },
        },
    },
}


@pytest.mark.parametrize("name", ["registry.yaml", "our gaps/régistre #1.yaml"])
def test_e16_sarif_that_an_upload_accepts(
    name: str, project: Path, drift: Drift
) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    drift(M, M.replace("def f", "def h"))  # writes both releases
    path = project / name
    path.parent.mkdir(exist_ok=True)
    path.write_text((project / "registry.yaml").read_text(), encoding="utf-8")
    done = shims(
        *("drift", "--package", "pkg", "--registry", name, "--format", "sarif"),
        *("--baseline", str(project.parent / "old")),
        *("--against", str(project.parent / "new")),
        cwd=project,
    )
    assert done.returncode == 1, done.stderr
    log = json.loads(done.stdout)
    assert list(jsonschema.Draft202012Validator(ACCEPTED).iter_errors(log)) == []
    (result,) = log["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert unquote(place["artifactLocation"]["uri"]) == name
    lines = path.read_text(encoding="utf-8").splitlines()
    assert "pkg.m:f" in lines[place["region"]["startLine"] - 1]
    # Upstream's place is in the words, for it is no file of the repository.
    assert (
        "pkg/m.py:1" in result["message"]["text"] or "`f`" in result["message"]["text"]
    )


def test_e16_the_schema_above_refuses_what_was_refused() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    location = {"$ref": "#/$defs/location", "$defs": ACCEPTED["$defs"]}
    refuses = jsonschema.Draft202012Validator(location)

    def place(uri: str, line: int = 1, **more: str) -> dict[str, Any]:
        physical = {
            "artifactLocation": {"uri": uri, **more},
            "region": {"startLine": line},
        }
        return {"physicalLocation": physical}

    assert refuses.is_valid(place("registry.yaml"))
    assert refuses.is_valid(place("a/b%20c.yaml"))
    for bad in (
        place("https://host/registry.yaml"),
        place("file:///registry.yaml"),
        place("/registry.yaml"),
        place("../registry.yaml"),
        place("a b.yaml"),
        place(""),
        place("registry.yaml", line=0),
        place("registry.yaml", uriBaseId="ROOT"),
    ):
        assert not refuses.is_valid(bad), bad


def test_e19_no_file_around_decides_which_configuration_it_is(project: Path) -> None:
    """There is nothing to discover: an option or a variable names the registry, and
    without either it is the packaged one, wherever one stands."""
    table = "[tool.ascend-shims]\nregistry = 'other.yaml'\n"
    (project.parent / "pyproject.toml").write_text(table)  # outside the repository
    (project / "pyproject.toml").write_text(table)
    sub = project / "sub" / "deep"
    sub.mkdir(parents=True)
    (sub.parent / "pyproject.toml").write_text("[project]\nname = 'sub'\n")
    linked = project.parent / "linked"
    linked.symlink_to(sub)

    def gaps(cwd: Path, *words: str, **environ: str) -> list[str]:
        path = os.pathsep.join([str(TOP), str(project)])
        done = shims(
            "status",
            "--all",
            "--json",
            *words,
            cwd=cwd,
            environ={"PYTHONPATH": path, **environ},
        )
        assert done.returncode == 0, done.stderr
        return [gap["id"] for gap in json.loads(done.stdout)["gaps"]]

    places = [project, sub, linked, project.parent]
    packaged = [gaps(cwd) for cwd in places]
    assert packaged[0] == [gap.id for gap in load().gaps]
    assert packaged == [packaged[0]] * len(places)
    named = str(project / "registry.yaml")
    given = {"ASCEND_SHIMS_REGISTRY": named, "ASCEND_SHIMS_ALLOW": "report_patches"}
    assert [gaps(cwd, **given) for cwd in places] == [["one"]] * 4


E21 = """
schema: 1
upstreams: [pkg]
package: report_patches
gaps:
  - &gap
    id: one
    title: T
    status: open
    kind: workaround
    why: W
    remove_when: R
    removal_probe:
      - says: upstream adds the third by itself
        all: [{symbol: "pkg.m:f", takes: c}]
    patches:
      - {target: "pkg.m:f", kind: wrap, replacement: ours}
  - id: two
    title: looks alike and is meant to stay
    status: open
    kind: adaptation
    why: W
    remove_when: never
    after: [one]
    patches:
      - {target: "pkg.m:f", kind: wrap, replacement: ours}
"""


def test_e21_a_gap_that_upstream_closed_is_to_be_removed(
    project: Path, drift: Drift
) -> None:
    drift(M.replace(", c=2", "").replace(" + c", ""), M)
    ours = (project / "report_patches" / "one.py").read_text()
    (project / "report_patches" / "two.py").write_text(ours)
    (project / "registry.yaml").write_text(E21)

    def run(*words: str) -> Any:
        return shims(
            *("drift", "--package", "pkg", "--registry", "registry.yaml"),
            *("--baseline", str(project.parent / "old")),
            *("--against", str(project.parent / "new"), *words),
            cwd=project,
        )

    done = run("--json")
    said = {
        (finding["gap"], finding["verdict"])
        for finding in json.loads(done.stdout)["findings"]
    }
    assert ("one", "fixed-upstream") in said
    assert ("two", "fixed-upstream") not in said
    assert {gap for gap, _ in said} == {"one", "two"}
    assert done.returncode == 0
    assert run("--fail-on", "any").returncode == 1
    table = " ".join(run().stdout.split())
    assert "no longer needs `one`: upstream adds the third by itself" in table
    assert "remove the gap" in table


SERVE = """
import multiprocessing, sys
from importlib.metadata import entry_points

def plugins():
    # As vLLM does in every process that it starts.
    for entry in entry_points(group="vllm.general_plugins"):
        if entry.name == "ascend_shims":
            entry.load()()

def work(ready, done):
    plugins()
    import pkg.m
    ready.set()
    done.wait()

if __name__ == "__main__":
    plugins()
    import pkg.m
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    child = context.Process(target=work, args=(ready, done))
    child.start()
    ready.wait(60)
    print(child.pid, "report_patches.one" in sys.modules, flush=True)
    input()
    done.set()
    child.join()
"""


@pytest.mark.parametrize("is_on", [True, False])
def test_e23_the_serving_path_itself_carries_them(
    is_on: bool, project: Path, tmp_path: Path
) -> None:
    """Variables alone; the proof is what the serving processes say, not an import."""
    (project / "pkg").mkdir()
    (project / "pkg" / "__init__.py").touch()
    (project / "pkg" / "m.py").write_text(M)
    info = project / "report_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: report-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[vllm.general_plugins]\nascend_shims = ascend_shims.plugin:register\n"
    )
    script = tmp_path / "serve.py"
    script.write_text(SERVE)
    environ = {
        "PYTHONPATH": f"{TOP}{os.pathsep}{project}",
        "ASCEND_SHIMS_REGISTRY": str(project / "registry.yaml"),
        "ASCEND_SHIMS_ALLOW": "report_patches",
        "ASCEND_SHIMS": "auto" if is_on else "off",
    }
    with subprocess.Popen(
        [sys.executable, str(script)],
        env={**os.environ, **environ},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        child, imported = process.stdout.readline().split()
        done = shims("status", "--json", cwd=project, environ=environ)
        process.communicate("\n", timeout=60)
    assert imported == str(is_on)
    listed = {
        one["pid"]: {gap["id"]: gap["state"] for gap in one["gaps"]}
        for one in json.loads(done.stdout)["processes"]
        if one["pid"] in (process.pid, int(child))
    }
    applied = {process.pid: {"one": "applied"}, int(child): {"one": "applied"}}
    assert listed == (applied if is_on else {})
