"""`shims status` and `shims show`: what they say, and what they do not touch."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ascend_shims.cli.status import _Choice
from ascend_shims.cli.status_page import _row, as_markdown


def _states(report: dict) -> dict[str, str]:
    return {gap["id"]: gap["state"] for gap in report["gaps"]}


def test_status_lists_open_gaps(shims_json) -> None:
    report = shims_json("status")
    assert report["schema"] == 1
    assert _states(report) == {"loud": "pending", "polite": "pending"}


def test_status_all_lists_landed_gaps_too(shims_json) -> None:
    report = shims_json("status", "--all")
    assert _states(report)["gone"] == "landed"
    assert report["gaps"][2]["reason"] == "upstream answers by itself"


def test_a_switch_shows_with_who_set_it(shims_json) -> None:
    report = shims_json("status", extra={"ASCEND_SHIMS_DISABLE": " loud , "})
    (loud, _) = report["gaps"]
    assert loud["state"] == "off"
    assert loud["reason"] == "switched off by ASCEND_SHIMS_DISABLE"


def test_the_table_fits_eighty_columns_and_has_no_colour_in_a_pipe(shims) -> None:
    done = shims("status")
    assert done.returncode == 0
    assert "loud" in done.stdout
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "Next: " in done.stdout


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ((), ["loud", "polite"]),
        (("--all",), ["loud", "polite", "gone"]),
        (("--gap", "polite"), ["polite"]),
        (("--gap", "gone"), ["gone"]),
        (("--gap", "polite", "--gap", "loud"), ["loud", "polite"]),
        (("--state", "pending"), ["polite"]),
        (("--state", "off"), ["loud"]),
        (("--state", "off", "--state", "pending"), ["loud", "polite"]),
        (("--state", "landed"), ["gone"]),
        (("--state", "failed"), []),
        (("--sort", "state"), ["loud", "polite"]),
        (("--all", "--sort", "state"), ["gone", "loud", "polite"]),
        (("--all", "--sort", "gap"), ["gone", "loud", "polite"]),
    ],
)
def test_what_is_shown_and_in_which_order(shims_json, words, shown) -> None:
    report = shims_json("status", *words, extra={"ASCEND_SHIMS_DISABLE": "loud"})
    assert [gap["id"] for gap in report["gaps"]] == shown


def test_the_next_command_is_about_the_same_registry(shims, project: Path) -> None:
    mine = str(project / "registry.yaml")
    done = shims("status", "--registry", mine, extra={"COLUMNS": "300"})
    (last,) = done.stdout.splitlines()[-1:]
    assert (
        last == f"Next: shims apply-check --registry {mine}   (would it succeed here?)"
    )
    done = shims(
        "status",
        "--all",
        "--registry",
        mine,
        extra={"ASCEND_SHIMS": "off", "COLUMNS": "300"},
    )
    assert done.stdout.splitlines()[-1] == f"Next: shims show loud --registry {mine}"


@pytest.mark.parametrize(
    ("words", "suggested"),
    [
        ((), "shims status --all"),
        (("--state", "failed"), "shims status --all"),
        (("--all",), "shims show loud"),
        (("--all", "--state", "failed"), "shims doctor"),
        (("--gap", "polite"), "shims show polite"),
        (("--state", "off"), "shims show loud"),
    ],
)
def test_what_adds_nothing_is_not_suggested(shims, words, suggested) -> None:
    done = shims("status", *words, extra={"ASCEND_SHIMS": "off"})
    assert done.stdout.splitlines()[-1] == f"Next: {suggested}"


def test_the_next_command_is_about_the_same_gaps(shims) -> None:
    from ascend_shims.registry import packaged

    ours = str(packaged())
    words = ("--all", "--gap", "kv-cache", "--registry", ours)
    done = shims("status", *words, extra={"COLUMNS": "300"})
    assert done.stdout.splitlines()[-1] == (
        f"Next: ASCEND_SHIMS_DEVICE=sim shims status --registry {ours} --all "
        "--gap kv-cache   (what an NPU would get)"
    )


def test_all_is_not_suggested_where_all_is_shown(shims, project: Path) -> None:
    registry = project / "registry.yaml"
    registry.write_text(registry.read_text().partition("  - id: gone")[0])
    done = shims("status", extra={"ASCEND_SHIMS": "off"})
    assert done.stdout.splitlines()[-1] == "Next: shims show loud"


def test_what_needs_somebody_comes_first() -> None:
    states = {"a": "applied", "b": "lost", "c": "off", "d": "buried"}
    gaps = [{"id": i, "state": s, "status": "open"} for i, s in states.items()]
    sorted_ = _Choice(False, (), (), "state").of(gaps)
    assert [gap["id"] for gap in sorted_] == ["d", "b", "a", "c"]


def test_a_ticket_has_it_in_markdown(shims) -> None:
    lines = shims("status", "--all", "--markdown").stdout.splitlines()
    assert lines[0].startswith("### shims status: madeup 1.2.0")
    assert "| `loud` | pending | applies when upstream is imported |" in lines
    assert "| `gone` | landed | upstream answers by itself |" in lines


def test_processes_and_their_faults_are_in_the_ticket() -> None:
    gaps = [
        {"id": "loud", "state": "lost", "reason": "a | b", "status": "open"},
        {"id": "polite", "state": "applied", "reason": "", "status": "open"},
    ]
    report = {
        "environment": {"distributions": {}, "device": {"kind": "none"}},
        "gaps": [],
        "processes": [
            {"pid": 7, "role": "worker", "plan": "abc", "gaps": gaps},
            {"pid": 8, "problem": "no answer"},
        ],
    }
    assert as_markdown(report).splitlines()[5:] == [
        "| pid | role | plan | states |",
        "| --- | --- | --- | --- |",
        "| 7 | worker | abc | 1 lost, 1 applied |",
        "| 8 | ? | ? | no answer |",
        "",
        "- 7: loud is lost: a | b",
    ]
    assert _states_cell([]) == "none of these"
    assert _states_cell([gaps[1]]) == "1 applied"
    landed = {"id": "gone", "state": "landed", "reason": "", "status": "landed"}
    assert _states_cell([landed]) == "1 landed"
    assert _states_cell([landed, gaps[1]]) == "1 applied"
    nobody = as_markdown({**report, "processes": []})
    assert nobody.splitlines()[5:] == ["No running process carries shims."]


def _states_cell(gaps: list[dict]) -> str:
    """What `shims status` says of a process with these gaps."""
    return _row({"pid": 7, "role": "worker", "plan": "abc", "gaps": gaps})[-1]


def test_watching_ends_by_the_users_wish(environ: dict[str, str]) -> None:
    """Each look is a document of its own."""
    words = ("status", "--json", "--watch", "0.2")
    watching = subprocess.Popen(
        [sys.executable, "-m", "ascend_shims", *words],
        env=environ,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert watching.stdout is not None
    seen, text = 0, ""
    while seen < 2:
        text += watching.stdout.readline()
        if text.endswith("\n}\n"):
            assert _states(json.loads(text)) == {"loud": "pending", "polite": "pending"}
            seen, text = seen + 1, ""
    watching.send_signal(signal.SIGINT)
    rest, _ = watching.communicate(timeout=60)
    assert watching.returncode == 0
    assert not rest.strip() or "schema" in rest


def test_assume_needs_nothing_installed(shims_json) -> None:
    report = shims_json(
        "status", "--assume", "vllm=0.28.0", extra={"ASCEND_SHIMS_REGISTRY": None}
    )
    assert report["environment"]["distributions"]["vllm"] == {
        "version": "0.28.0",
        "distribution": None,
        "file": None,
        "origin": "assumed",
    }
    assert len(report["gaps"]) == 10


@pytest.mark.parametrize(
    ("version", "state"),
    [
        ("0.27.1", "pending"),
        ("0.28.0+empty", "pending"),
        ("0.33.0", "pending"),
        ("0.27.0", "version-skipped"),
        ("0.34.0", "version-skipped"),
        ("0.34.0rc1", "version-skipped"),
    ],
)
def test_our_registry_serves_the_releases_it_claims(
    shims_json, version: str, state: str
) -> None:
    extra = {"ASCEND_SHIMS_REGISTRY": None, "ASCEND_SHIMS_DEVICE": "sim"}
    report = shims_json("status", "--assume", f"vllm={version}", extra=extra)
    patched = {"runtime-guard", "cos-sin", "kv-cache"}
    states = {gap: s for gap, s in _states(report).items() if gap in patched}
    assert states == dict.fromkeys(patched, state)


@pytest.mark.parametrize(
    ("words", "extra", "said"),
    [
        (["status"], {"ASCEND_SHIMS_DISABLE": "lound"}, "did you mean 'loud'?"),
        (["status"], {"ASCEND_SHIMS": "onn"}, "did you mean 'on'?"),
        (["status"], {"ASCEND_SHIMS_DISABLED": "x"}, "did you mean"),
        (["status"], {"ASCEND_SHIMS_ASSUME": "vllm=new"}, "like vllm=0.28.0"),
        (["status"], {"ASCEND_SHIMS_REGISTRY": "/no/such.yaml"}, "/no/such.yaml"),
        (["status"], {"ASCEND_SHIMS_REGISTRY": "/"}, "directory"),
        (["status", "--assume", "vllm"], {}, "like vllm=0.28.0"),
        (["status", "--assume", "vllm=???"], {}, "like vllm=0.28.0"),
        (["show", "lou"], {}, "did you mean loud?"),
        (["show", "?"], {}, "loud, polite, gone"),
        (
            ["show", "compile-key"],
            {"ASCEND_SHIMS_REGISTRY": None},
            "compile-key is no gap but a companion, which goes along with cos-sin, "
            "kv-cache, npu-graph, extract-hidden-states, profile-run-mc2; see it with: "
            "shims show cos-sin",
        ),
        (
            ["show", "watch"],
            {"ASCEND_SHIMS_REGISTRY": None},
            "watch is no gap but what is relied on without a patch, in torch_npu and "
            "vllm_ascend; see it with: "
            "shims drift --gap watch --against torch_npu@latest --all",
        ),
        (["show", "watch"], {}, "no gap is called 'watch'"),
        (["run", "--only", "nothing", "--", "true"], {}, "nothing"),
        (["run", "--", "no-such-command"], {}, "no-such-command"),
        (["apply-check"], {"ASCEND_SHIMS_ONLY": "lound"}, "did you mean 'loud'?"),
        (["statu"], {}, "statu"),
        (["status", "--assume", "vlm=0.30.0"], {}, "assumed, and no gap depends on"),
        (["status"], {"ASCEND_SHIMS_ASSUME": "madup=1"}, "did you mean madeup?"),
        (["status"], {"ASCEND_SHIMS_RANKS_PATIENCE": "abc"}, "a number of seconds"),
        (["show", "LOUD"], {}, "did you mean loud?"),
        (["explain", "kv-cache"], {"ASCEND_SHIMS_REGISTRY": None}, "shims show kv-cac"),
        (["audit", "madeup.nothing"], {}, "nothing could be imported: madeup.nothing"),
        (["drift", "--json", "--format", "markdown"], {}, "name one of them"),
        (["new-gap", "x", "--package", "p", "--target", "os.path:join"], {}, "Python"),
        (["lock", "madup==1.0"], {}, "did you mean madeup?"),
    ],
)
def test_misuse_is_one_message_and_exit_2(shims, words, extra, said) -> None:
    done = shims(*words, extra=extra)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_broken_registry_names_every_fault_with_its_line(shims, project) -> None:
    path = project / "registry.yaml"
    text = path.read_text().replace("replacement: shout", "replacement: shouts")
    path.write_text(text.replace("kind: adaptation", "kind: adaption"))
    done = shims("status")
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    assert "registry.yaml:14:" in lines[0] and "shout" in lines[0]
    assert "registry.yaml:18:" in lines[1] and "adaptation" in lines[1]


def test_show_tells_the_patches_of_companions_apart(shims) -> None:
    lines = shims("show", "kv-cache", extra={"ASCEND_SHIMS_REGISTRY": None}).stdout
    own, _, along = lines.partition("Patches of companions, which go along with it\n")
    assert "wrap with keep_layers  not-applicable" in own
    assert "compile-key" not in own and "rank-agreement" not in own
    assert "wrap with fold, of compile-key  not-applicable" in along


def test_show_has_the_registry_entry_and_where_it_stands(shims_json) -> None:
    page = shims_json("show", "polite")
    assert page["registry"]["why"] == "Manners."
    assert page["here"]["state"] == "pending"
    assert page["here"]["patches"][0]["target"] == "madeup.core:answer"
    assert isinstance(page["processes"], list)


def test_show_reads_like_a_page(shims) -> None:
    done = shims("show", "loud")
    assert done.returncode == 0
    for part in ("Why", "Callers are hard of hearing.", "Goes when", "They hear."):
        assert part in done.stdout
    assert "ASCEND_SHIMS_DISABLE=loud" in done.stdout


def test_apply_check_does_it_and_reports(shims_json) -> None:
    answer = shims_json("apply-check")
    assert answer["ok"] is True
    assert _states(answer) == {"loud": "applied", "polite": "applied"}


def test_apply_check_fails_with_the_reason(shims, project: Path) -> None:
    (project / "madeup" / "core.py").write_text("def reply(word):\n    return word\n")
    done = shims("apply-check", "--json")
    assert done.returncode == 1
    answer = json.loads(done.stdout)
    assert answer["ok"] is False
    assert _states(answer) == dict.fromkeys(("loud", "polite"), "missing-target")
    assert "madeup.core:answer does not exist" in answer["gaps"][0]["reason"]
    assert answer["near"] == {}


@pytest.mark.parametrize(
    ("mistyped", "meant"),
    [
        ("madeup.core:anser", "madeup.core:answer"),
        ("madeup.cor:answer", "madeup.core:answer"),
    ],
)
def test_apply_check_says_what_was_meant(
    shims, project: Path, mistyped: str, meant: str
) -> None:
    registry = project / "registry.yaml"
    text = registry.read_text().replace("madeup.core:answer", mistyped, 1)
    registry.write_text(text)
    answer = json.loads(shims("apply-check", "--json").stdout)
    assert answer["near"] == {mistyped: meant}
    assert f"{mistyped}: did you mean {meant}?" in shims("apply-check").stdout


@pytest.mark.parametrize(
    ("mistyped", "hint"),
    [
        (
            "madeup.core:anser",
            "did you mean madeup.core:answer? Correct its target in the registry",
        ),
        (
            "madeup.cor:answer",
            "did you mean madeup.core:answer? Correct its target in the registry",
        ),
        (
            "madeup.core:Quite.other",
            "correct its target in the registry, or narrow its versions",
        ),
    ],
)
def test_a_target_that_there_is_not_is_told_before_upstream_is_loaded(
    shims, shims_json, project: Path, mistyped: str, hint: str
) -> None:
    registry = project / "registry.yaml"
    registry.write_text(registry.read_text().replace("madeup.core:answer", mistyped, 1))
    missing = f"the installed release has no {mistyped}"
    said = f"never applies here: {missing}; {hint}"
    done = shims("status", "--json")
    assert done.returncode == 1
    loud, polite = json.loads(done.stdout)["gaps"]
    assert (loud["state"], loud["reason"]) == ("missing-target", said)
    assert "has no" not in polite["reason"]
    assert shims_json("show", "loud")["here"]["reason"] == said
    (loud, _) = shims_json("status", "--assume", "madeup=1.2.0")["gaps"]
    assert "has no" not in loud["reason"]


def test_what_a_patch_adds_is_not_missed(shims_json, project: Path) -> None:
    registry = project / "registry.yaml"
    added = '{target: "madeup.core:shout", kind: add, replacement: shout}'
    wrapped = '{target: "madeup.core:answer", kind: wrap, replacement: shout}'
    registry.write_text(registry.read_text().replace(wrapped, added))
    (loud, _) = shims_json("status")["gaps"]
    assert loud["state"] == "pending"
    assert "has no" not in loud["reason"]


def test_of_candidates_one_is_enough_and_a_closed_gate_needs_none(
    shims_json, project: Path
) -> None:
    registry = project / "registry.yaml"
    two = '["madeup.core:reply", "madeup.core:answer"]'
    registry.write_text(
        registry.read_text()
        .replace('target: "madeup.core:answer", kind', f"target: {two}, kind", 1)
        .replace(
            '- {target: "madeup.core:answer", kind: wrap, replacement: please}',
            '- {target: "madeup.core:answer", kind: wrap, replacement: please}\n'
            '      - {target: "madeup.core:reply", kind: wrap, replacement: please, '
            'versions: {madeup: ">=2"}}',
        )
    )
    gaps = shims_json("status")["gaps"]
    assert [gap["state"] for gap in gaps] == ["pending", "pending"]
    assert not [gap for gap in gaps if "has no" in gap["reason"]]


NPU = {"ASCEND_SHIMS_REGISTRY": None, "ASCEND_SHIMS_DEVICE": None}


def test_what_is_patched_though_it_is_closed_is_told(shims) -> None:
    said = "2 gaps that upstream has closed are patched here, too: --all shows them."
    assumed = ("--assume", "vllm=0.32.0")
    sim = {**NPU, "ASCEND_SHIMS_DEVICE": "sim"}
    assert said in shims("status", *assumed, extra=sim).stdout
    assert "closed" not in shims("status", "--all", *assumed, extra=sim).stdout
    assert "closed" not in shims("status", *assumed, extra=NPU).stdout


def test_apply_check_without_an_npu_says_how_to_try(shims) -> None:
    done = shims("apply-check", extra={**NPU, "ASCEND_SHIMS_ASSUME": "vllm=0.32.0"})
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == (
        "Next: ASCEND_SHIMS_DEVICE=sim shims apply-check   (what an NPU would get)"
    )


def test_apply_check_says_of_each_gap_why_nothing_would_be(shims) -> None:
    done = shims("apply-check", extra={"ASCEND_SHIMS": "off"})
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:3]] == [
        ["loud", "off"],
        ["polite", "off"],
    ]
    assert "Nothing would be applied here, so nothing can fail." in lines


def test_apply_check_names_the_parameter(shims, project: Path) -> None:
    (project / "madeup" / "core.py").write_text("def answer(word, tone=1): ...\n")
    done = shims("apply-check", "--json")
    assert done.returncode == 1
    (loud, _) = json.loads(done.stdout)["gaps"]
    assert loud["state"] == "broken-contract"
    assert "`tone`" in loud["reason"]


def test_the_command_imports_no_upstream(environ: dict[str, str]) -> None:
    script = (
        "import sys; from ascend_shims.cli import main; main(['status', '--json']);"
        "heavy = {'vllm', 'torch', 'pydantic', 'madeup'} & set(sys.modules);"
        "print(sorted(heavy), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.strip() == "[]"
    assert json.loads(done.stdout)["schema"] == 1
