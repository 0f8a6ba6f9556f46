"""A plugin with a registry of its own is installed: every command knows its gaps."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ..registry.plugins import GAP, HEAD, install

ASK = """
import warnings
warnings.simplefilter('ignore')
import ascend_shims
report = ascend_shims.apply({arguments})
from madeup.core import answer
print(answer('tea'))
"""


@pytest.fixture
def plugin(project: Path) -> Path:
    """The plugin's registry."""
    return install(project)


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def python(environ: dict[str, str], plugin: Path) -> Run:
    def run(code: str, **extra: str) -> Any:
        return subprocess.run(
            [sys.executable, "-c", code],
            env={**environ, **extra},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


@pytest.mark.parametrize(
    ("arguments", "extra", "expected"),
    [
        ("", {}, "TEA, please!"),
        ("disable=['acme/fast-rope']", {}, "TEA, please"),
        ("only=['acme/*']", {}, "tea!"),
        ("", {"ASCEND_SHIMS_DISABLE": "acme/*"}, "TEA, please"),
        ("", {"ASCEND_SHIMS_DISABLE": "loud, polite"}, "tea!"),
        ("", {"ASCEND_SHIMS_ONLY": "acme/fast-rope"}, "tea!"),
        ("", {"ASCEND_SHIMS_REGISTRIES": "none"}, "TEA, please"),
        ("", {"ASCEND_SHIMS_REGISTRIES": "acme"}, "TEA, please!"),
        ("", {"ASCEND_SHIMS": "off"}, "tea"),
    ],
)
def test_it_is_applied_on_top_of_ours(
    arguments: str, extra: dict[str, str], expected: str, python: Run
) -> None:
    done = python(ASK.format(arguments=arguments), **extra)
    assert (done.stdout.strip(), done.stderr) == (expected, "")


def test_it_goes_and_comes_by_its_names(python: Run) -> None:
    code = ASK.format(arguments="") + (
        "with ascend_shims.disabled('acme/*'):\n"
        "    print(answer('tea'))\n"
        "print(answer('tea'))\n"
        "ascend_shims.revert('acme/fast-rope')\n"
        "print(answer('tea'))\n"
        "ascend_shims.revert()\n"
        "print(answer('tea'), ascend_shims.verify().ok)\n"
    )
    lines = python(code).stdout.splitlines()
    said = ["TEA, please!", "TEA, please", "TEA, please!", "TEA, please", "tea True"]
    assert lines == said


def test_nothing_of_it_is_imported_before_it_is_applied(python: Run) -> None:
    code = "import sys, ascend_shims; print([g.id for g in ascend_shims.status().gaps]"
    done = python(code + ", [m for m in sys.modules if m.startswith('acme')])")
    assert done.stdout.strip() == "['loud', 'polite', 'gone', 'acme/fast-rope'] []"


def test_processes_that_are_started_follow(python: Run, project: Path) -> None:
    child = (
        "import ascend_shims, madeup.core\n"
        "ascend_shims.apply()\n"
        "print(madeup.core.answer('tea'))"
    )
    code = (
        "import ascend_shims, subprocess, sys\n"
        "ascend_shims.apply(disable=['acme/*'])\n"
        f"subprocess.run([sys.executable, '-c', {child!r}])\n"
    )
    assert python(code).stdout.strip() == "TEA, please"
    code = code.replace("disable=['acme/*']", "")
    assert python(code).stdout.strip() == "TEA, please!"


def test_plans_tell_whether_it_is_in_force(shims_json: Any, plugin: Path) -> None:
    with_it = shims_json("status")["plan"]
    assert with_it != shims_json("status", extra=_OUT)["plan"]
    off = {"ASCEND_SHIMS_DISABLE": "acme/fast-rope"}
    assert with_it != shims_json("status", extra=off)["plan"]


_OUT = {"ASCEND_SHIMS_REGISTRIES": "none"}


def test_a_companion_is_told_the_version_of_its_code(
    python: Run, project: Path
) -> None:
    """That is what compiled code is kept apart by, and what ranks compare."""
    registry = project / "registry.yaml"
    registry.write_text(
        registry.read_text()
        + "companions:\n"
        + "  - id: told\n    why: x\n    goes_with: every-gap\n    patches:\n"
        + '      - {target: "madeup.user:told", kind: wrap, replacement: tell}\n'
    )
    (project / "madeup" / "user.py").write_text("def told():\n    return {}\n")
    (project / "madeup_patches" / "told.py").write_text(
        "def tell(gap, version, call):\n    return {**call(), gap: version}\n"
    )
    code = (
        "import ascend_shims, json; ascend_shims.apply()\n"
        "from madeup.user import told; print(json.dumps(told()))"
    )
    before = json.loads(python(code).stdout)
    assert sorted(before) == ["acme/fast-rope", "loud", "polite"]
    module = project / "acme_npu" / "shims" / "fast_rope.py"
    module.write_text(module.read_text() + "# edited\n")
    after = json.loads(python(code).stdout)
    assert after["loud"] == before["loud"]
    assert after["acme/fast-rope"] != before["acme/fast-rope"]


def test_status_names_it(shims: Any, shims_json: Any, plugin: Path) -> None:
    report = shims_json("status")
    assert [gap["id"] for gap in report["gaps"]] == ["loud", "polite", "acme/fast-rope"]
    assert report["registries"] == [
        {
            "namespace": "acme",
            "distribution": "acme-npu 1.0",
            "path": str(plugin),
            "gaps": 1,
            "problem": None,
        }
    ]
    shown = " ".join(shims("status").stdout.split())
    assert "acme 1 acme-npu 1.0" in shown
    assert (
        f"| acme | 1 | acme-npu 1.0, {plugin} |" in shims("status", "--markdown").stdout
    )


def test_show_apply_check_and_run(shims: Any, shims_json: Any, plugin: Path) -> None:
    assert shims_json("show", "acme/fast-rope")["registry"]["why"] == "They are slow."
    head = shims("show", "acme/fast-rope").stdout.splitlines()[:4]
    assert head[1:] == ["open · workaround", f"acme-npu 1.0, {plugin}", ""]
    assert "acme-npu" not in shims("show", "loud").stdout
    told = shims_json("apply-check")
    assert (told["ok"], told["wanted"]) == (True, ["loud", "polite", "acme/fast-rope"])
    assert {gap["state"] for gap in told["gaps"]} == {"applied"}
    ask = "from madeup.user import answer; print(answer('tea'))"
    words = ["--only", "acme/fast-rope", "--", sys.executable, "-c", ask]
    assert shims("run", *words).stdout == "tea!\n"


@pytest.fixture
def faulty(plugin: Path) -> str:
    plugin.write_text(plugin.read_text().replace("kind: work", "knid: work"))
    return f"{plugin}:8:5: unknown key `knid`; did you mean `kind`?"


def test_a_faulty_one_stops_nobody_and_is_named(
    shims: Any, shims_json: Any, python: Run, faulty: str
) -> None:
    code = "import ascend_shims; r = ascend_shims.apply(); print(r.registries[0])"
    done = python(f"{code}\nfrom madeup.core import answer; print(answer('tea'))")
    assert done.stdout.splitlines()[-1] == "TEA, please"
    assert faulty in done.stdout
    assert f"the registry 'acme' of acme-npu 1.0 is left out: {faulty}" in done.stderr
    report = shims_json("status")
    assert [one["problem"] for one in report["registries"]] == [faulty]
    assert shims("status").returncode == 1
    checked = shims("apply-check", "--json")
    assert checked.returncode == 1
    assert not json.loads(checked.stdout)["ok"]
    found = json.loads(shims("doctor", "--json").stdout)["findings"]
    (one,) = [f for f in found if f["code"] == "registry-left-out"]
    assert one["fix"] == "did you mean `kind`?"


def test_a_gap_of_one_that_is_left_out_is_no_other_gap(shims: Any, faulty: str) -> None:
    done = shims("show", "acme/fast-rope")
    said = f"the registry 'acme' of acme-npu 1.0 is left out: {faulty}"
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "no gap is called" not in done.stderr
    assert "no gap is called 'other/x'" in shims("show", "other/x").stderr


def test_strict_makes_it_an_error(python: Run, faulty: str) -> None:
    code = "import ascend_shims; ascend_shims.apply(strict=True)"
    done = python(code)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ascend_shims.registry.found.FoundRegistryError: ")
    assert faulty in last


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("--gap", "acme/*"), ["acme/fast-rope"]),
        (("--gap", "acme/*", "--gap", "loud"), ["loud", "acme/fast-rope"]),
        (("--gap", "acme/fast-rope"), ["acme/fast-rope"]),
    ],
)
def test_all_gaps_of_a_namespace_can_be_named(
    shims_json: Any, words: tuple[str, ...], shown: list[str]
) -> None:
    assert [gap["id"] for gap in shims_json("status", *words)["gaps"]] == shown


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("amce/*", "there are loud, polite, gone, acme/fast-rope"),
        ("fast-rope", "did you mean acme/fast-rope?"),
        ("acme/fast", "did you mean acme/fast-rope?"),
    ],
)
def test_a_name_of_no_gap_is_refused_with_what_there_is(
    shims: Any, name: str, hint: str
) -> None:
    for words in (("status", "--gap"), ("show",)):
        done = shims(*words, name)
        assert done.returncode == 2
        assert f"no gap is called {name!r}; {hint}" in done.stderr


def test_an_unknown_namespace_warns_with_the_nearest(
    shims_json: Any, plugin: Path
) -> None:
    report = shims_json("status", extra={"ASCEND_SHIMS_REGISTRIES": "acmee"})
    (one,) = report["registries"]
    assert one["problem"].endswith("did you mean 'acme'?")


def test_it_may_be_named_as_a_file_too(shims_json: Any, plugin: Path) -> None:
    told = shims_json("apply-check", "--registry", str(plugin))
    assert [(one["id"], one["state"]) for one in told["gaps"]] == [
        ("fast-rope", "applied")
    ]


def test_a_copy_of_it_may_not(shims: Any, plugin: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copied" / plugin.name
    copy.parent.mkdir()
    shutil.copy(plugin, copy)
    done = shims("apply-check", "--registry", str(copy))
    assert done.returncode == 2
    assert "ASCEND_SHIMS_ALLOW=acme_npu.shims" in done.stderr


# What is read of upstream


def _release(project: Path) -> str:
    """A folder with upstream as it is now, and nothing else."""
    folder = project / "release"
    shutil.copytree(project / "madeup", folder / "madeup", dirs_exist_ok=True)
    (folder / "madeup" / "version.py").write_text("__version__ = '1.2.0'\n")
    return str(folder)


def _drift(shims: Any, project: Path, *words: str) -> dict[str, Any]:
    against = ["--against", _release(project), "--package", "madeup", "--json"]
    done = shims("drift", *against, "--offline", *words)
    assert done.returncode in (0, 1), done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_drift_compares_each_with_its_own_lock(
    shims: Any, project: Path, plugin: Path
) -> None:
    for registry in (plugin, project / "registry.yaml"):
        done = shims(
            "lock", _release(project), "--registry", str(registry), "--offline"
        )
        assert done.returncode == 0, done.stderr
    assert plugin.with_suffix(".lock").is_file()
    same = _drift(shims, project)
    assert [f["gap"] for f in same["findings"]] == ["loud", "polite", "acme/fast-rope"]
    assert {f["verdict"] for f in same["findings"]} == {"identical"}
    assert same["findings"][2]["file"].endswith("acme_npu/shims/gap_registry.yaml")
    core = project / "madeup" / "core.py"
    core.write_text("def reply(word):\n    return word\n")
    gone = _drift(shims, project, "--gap", "acme/fast-rope")
    assert [f["verdict"] for f in gone["findings"]] == ["broken"]


def test_drift_says_of_one_without_a_lock_what_to_do(
    shims: Any, project: Path, plugin: Path
) -> None:
    mine = str(project / "registry.yaml")
    shims("lock", _release(project), "--registry", mine, "--offline")
    told = _drift(shims, project)
    assert [f["gap"] for f in told["findings"]] == ["loud", "polite"]
    assert told["notes"] == [
        "acme is not checked: it has no baseline; `shims lock madeup==VERSION "
        f"--registry {plugin}` writes one"
    ]


def test_a_registry_that_is_named_is_meant_alone(
    shims: Any, project: Path, plugin: Path
) -> None:
    shims("lock", _release(project), "--registry", str(plugin), "--offline")
    told = _drift(shims, project, "--registry", str(plugin))
    assert [f["gap"] for f in told["findings"]] == ["fast-rope"]


def test_one_that_names_a_gap_of_ours_can_be_checked_alone(
    shims: Any, project: Path, plugin: Path
) -> None:
    plugin.write_text(HEAD + GAP.replace("false}", "false, gaps: [kv-cache]}"))
    done = shims("lock", _release(project), "--registry", str(plugin), "--offline")
    assert done.returncode == 0, done.stderr
    told = _drift(shims, project, "--registry", str(plugin))
    assert [f["verdict"] for f in told["findings"]] == ["identical"]


@pytest.mark.parametrize(
    "words", [("lock",), ("drift",), ("show", "loud"), ("verify",)]
)
def test_a_namespace_is_no_registry_and_which_is_meant_is_told(
    words: tuple[str, ...], shims: Any, plugin: Path
) -> None:
    done = shims(*words, "--registry", "acme")
    assert done.returncode == 2
    assert (
        "Invalid value for '--registry': acme is the namespace of an installed plugin, "
        f"and no file; name its registry: --registry {plugin}"
    ) in done.stderr


def test_what_is_no_namespace_is_no_path(shims: Any, plugin: Path) -> None:
    done = shims("lock", "--registry", "acm")
    assert "Invalid value for '--registry': Path 'acm' does not exist." in done.stderr


def test_a_folder_called_like_a_namespace_is_a_folder(
    shims: Any, project: Path, plugin: Path
) -> None:
    (project / "acme").mkdir()
    done = shims("lock", "--registry", "acme")
    assert f"no registry in {project / 'acme'}" in done.stderr
