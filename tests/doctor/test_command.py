"""`shims doctor`, on what is installed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ascend_shims
from ascend_shims.environment.modules import find_module

from ..fresh import LONG
from .elves import library
from .test_documented import _listed

Doctor = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def doctor(tmp_path: Path) -> Doctor:
    """Run the command in an empty directory; None takes a variable away."""

    def run(*words: str, **extra: str | None) -> subprocess.CompletedProcess[str]:
        families = ("ASCEND_", "VLLM_", "HCCL_", "PYTHONPATH")
        environ = {k: v for k, v in os.environ.items() if not k.startswith(families)}
        cwd = tmp_path / "empty"
        cwd.mkdir(exist_ok=True)
        merged = {**environ, "COLUMNS": "80", **extra}
        return subprocess.run(
            [sys.executable, "-m", "ascend_shims", "doctor", *words],
            env={k: v for k, v in merged.items() if v is not None},
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=5 * LONG,
            check=False,
        )

    return run


def found(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    assert done.returncode in (0, 1), done.stderr
    answer = json.loads(done.stdout)
    return {finding["code"]: finding for finding in answer["findings"]}


def test_here_all_is_well(doctor: Doctor) -> None:
    done = doctor("--json")
    answer = json.loads(done.stdout)
    problems = [f for f in answer["findings"] if f["verdict"] == "problem"]
    assert done.returncode == bool(problems)
    # What else runs on this machine is as it is.
    problems = [f for f in problems if f["area"] != "processes"]
    has_vllm = find_module("vllm") is not None
    expected = {"entry-point", "vllm-plugins", "switches-default", "registry"}
    assert expected | ({"vllm", "torch"} if has_vllm else set()) <= set(found(done))
    if has_vllm and find_module("torch_npu") is None:
        assert problems == []
    assert done.stderr == ""


def test_the_json_has_the_documented_keys(doctor: Doctor) -> None:
    answer = json.loads(doctor("--json").stdout)
    assert set(answer) == _listed("JSON")
    assert answer["schema"] == 1
    assert answer["python"]["executable"] == sys.executable
    counted = [finding["verdict"] for finding in answer["findings"]]
    assert counted == sorted(counted, key=["problem", "notice", "ok"].index)
    assert answer["counts"] == {v: counted.count(v) for v in answer["counts"]}
    for finding in answer["findings"]:
        assert set(finding) == {"code", "area", "verdict", "seen", "fix"}
    assert re.fullmatch("[0-9a-f]{64}", answer["registry"]["sha256"])


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_the_text_fits_and_is_plain_in_a_pipe(doctor: Doctor, columns: str) -> None:
    done = doctor(COLUMNS=columns, VLLM_PLUGINS="", ASCEND_SHIMS_DISABEL="x")
    lines = done.stdout.splitlines()
    assert done.returncode == 1
    assert "\x1b" not in done.stdout
    # What fits no line is copied as a whole.
    wide = [line for line in lines if len(line) > int(columns)]
    assert [line for line in wide if " " in line.strip()] == []
    assert all("/" in line or "=" in line or "_" in line for line in wide)
    assert [line for line in lines if line != line.rstrip()] == []
    headings = [line for line in lines if line in ("PROBLEMS", "NOTICES", "FINE")]
    assert headings[0] == "PROBLEMS"
    assert headings[-1] == "FINE"
    text = " ".join(done.stdout.split())
    assert "Fix: unset VLLM_PLUGINS" in text
    assert "Fix: write ASCEND_SHIMS_DISABLE instead" in text
    assert "Next: mend the first problem, then: shims doctor" in text


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_a_path_is_told_as_a_whole(
    doctor: Doctor, tmp_path: Path, language: str
) -> None:
    registry = tmp_path / "a-folder-with-a-name-that-is-long" / ("registry" * 8)
    done = doctor(ASCEND_SHIMS_REGISTRY=str(registry), ASCEND_SHIMS_LANG=language)
    lines = [line.strip() for line in done.stdout.splitlines()]
    told = [line for line in lines if str(registry) in line]
    assert told
    assert all(len(line.split()) == 1 for line in told)


def test_a_cache_that_cannot_be_written(doctor: Doctor, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    refused = found(doctor("--json", ASCEND_SHIMS_CACHE=str(file)))["cache-unwritable"]
    assert refused == {
        "code": "cache-unwritable",
        "area": "switches",
        "verdict": "notice",
        "seen": "nothing of what is read of releases is kept: "
        f"{file} cannot be written (Not a directory)",
        "fix": "name another folder: export ASCEND_SHIMS_CACHE=FOLDER",
    }
    for fine in (str(tmp_path / "new"), "off"):
        assert "cache-unwritable" not in found(
            doctor("--json", ASCEND_SHIMS_CACHE=fine)
        )
    assert not (tmp_path / "new").exists()


def test_misuse(doctor: Doctor, tmp_path: Path) -> None:
    there = tmp_path / "there.tgz"
    there.write_text("old")
    for words, said in [
        (["--force"], "--force is for --report FILE"),
        (["--report", str(there)], "add --force"),
        (["--report", str(tmp_path)], "is a directory"),
        (["--report", str(tmp_path / "no" / "r.tgz")], "there is no directory"),
        (["more"], "unexpected extra argument"),
    ]:
        done = doctor(*words)
        assert done.returncode == 2
        assert said in done.stderr
        assert "Traceback" not in done.stderr
        assert done.stdout == ""
    assert there.read_text() == "old"


def test_an_environment_that_others_refuse_is_a_finding(
    doctor: Doctor, tmp_path: Path
) -> None:
    registry = tmp_path / "registry.yaml"
    registry.write_text("schema: 1\ngaps: 3\n")
    done = doctor(
        "--json",
        ASCEND_SHIMS="onn",
        ASCEND_SHIMS_GUARD_REPROT="x",
        ASCEND_SHIMS_REGISTRY=str(registry),
    )
    codes = found(done)
    assert done.returncode == 1
    assert codes["switch-value"]["fix"] == "export ASCEND_SHIMS=on"
    assert codes["switch-unknown"]["fix"] == "write ASCEND_SHIMS_GUARD_REPORT instead"
    assert "registry.yaml:" in codes["registry-unusable"]["seen"]
    assert json.loads(done.stdout)["plan"] is None


def test_a_registry_that_others_can_write(doctor: Doctor, tmp_path: Path) -> None:
    registry = tmp_path / "registry.yaml"
    registry.write_text("schema: 1\n")
    registry.chmod(0o666)
    codes = found(doctor("--json", ASCEND_SHIMS_REGISTRY=str(registry)))
    assert codes["registry-writable"]["fix"].startswith(f"`chmod o-w {registry}`")
    assert "registry-unusable" not in codes


def test_a_folder_that_shadows(doctor: Doctor, tmp_path: Path) -> None:
    if find_module("vllm") is None:
        pytest.skip("vLLM is not installed")
    init = tmp_path / "other" / "vllm" / "__init__.py"
    init.parent.mkdir(parents=True)
    init.touch()
    done = doctor("--json", PYTHONPATH=str(init.parents[1]))
    shadowed = found(done)["vllm-shadowed"]
    assert done.returncode == 1
    assert str(init) in shadowed["seen"]
    assert shadowed["fix"] == "take its folder out of PYTHONPATH"


def test_old_metadata_in_the_working_directory(doctor: Doctor, tmp_path: Path) -> None:
    egg = tmp_path / "empty" / "ascend_shims.egg-info"
    egg.mkdir(parents=True)
    (egg / "PKG-INFO").write_text("Name: ascend-shims\nVersion: 0.0.1\n")
    hidden = found(doctor("--json"))["entry-point-hidden"]
    assert hidden["verdict"] == "problem"
    assert hidden["fix"].startswith(f"delete {egg}")


def test_a_checkout_that_is_not_installed(tmp_path: Path) -> None:
    """Without site-packages but what the command needs: as on a new machine."""
    home = Path(ascend_shims.__file__).parents[1]
    here = tmp_path / "checkout"
    here.mkdir()
    (here / "ascend_shims").symlink_to(home / "ascend_shims")
    for name in ("click", "msgspec", "packaging", "rich", "wrapt", "yaml", "pygments"):
        link_to(tmp_path / "needs", name)
    for extra in ("markdown_it", "mdurl", "typing_extensions"):
        link_to(tmp_path / "needs", extra)
    done = subprocess.run(
        [sys.executable, "-S", "-m", "ascend_shims", "doctor", "--json"],
        env={"PYTHONPATH": str(tmp_path / "needs"), "PATH": os.environ["PATH"]},
        cwd=here,
        capture_output=True,
        text=True,
        timeout=5 * LONG,
        check=False,
    )
    codes = found(done)
    assert codes["entry-point-absent"]["verdict"] == "problem"
    assert codes["vllm-absent"]["verdict"] == "problem"
    assert sys.executable in codes["entry-point-absent"]["fix"]


def link_to(folder: Path, name: str) -> None:
    """Make a module of this environment importable from `folder`, without metadata."""
    spec = find_module(name)
    if spec is None or spec.origin is None:
        return
    file = Path(spec.origin)
    source = file.parent if file.name == "__init__.py" else file
    folder.mkdir(exist_ok=True)
    (folder / source.name).symlink_to(source)


def test_a_torch_npu_without_cann(doctor: Doctor, tmp_path: Path) -> None:
    if find_module("torch_npu") is not None:
        pytest.skip("there is a real one")
    site = tmp_path / "site"
    library(site / "torch_npu/lib/libtorch_npu.so", "libshims_ascendcl.so", "libc.so.6")
    (site / "torch_npu/__init__.py").write_text("raise SystemExit('imported')\n")
    codes = found(doctor("--json", PYTHONPATH=str(site)))
    assert codes["torch-npu-library"]["verdict"] == "problem"
    assert (
        "libshims_ascendcl.so, which libtorch_npu.so"
        in (codes["torch-npu-library"]["seen"])
    )


def test_a_torch_npu_that_fails_in_its_own_way(doctor: Doctor, tmp_path: Path) -> None:
    if find_module("torch_npu") is not None:
        pytest.skip("there is a real one")
    site = tmp_path / "site"
    init = site / "torch_npu/__init__.py"
    init.parent.mkdir(parents=True)
    init.write_text("raise ImportError('undefined symbol: _ZN3c10')\n")
    codes = found(doctor("--json", PYTHONPATH=str(site)))
    assert "undefined symbol: _ZN3c10" in codes["torch-npu-broken"]["seen"]
    init.write_text("")
    assert found(doctor("--json", PYTHONPATH=str(site)))["torch-npu"]["verdict"] == "ok"


def test_processes_are_looked_at(doctor: Doctor) -> None:
    """A stock engine, as long as nothing of ours is in it."""
    process = subprocess.Popen(
        ["VLLM::EngineCore", "-c", "import sys; print(flush=True); sys.stdin.read()"],
        executable=sys.executable,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        answer = json.loads(doctor("--json").stdout)
        (entry,) = [one for one in answer["processes"] if one["pid"] == process.pid]
        assert entry["title"] == "VLLM::EngineCore"
        assert (entry["shims"], entry["plan"]) == (False, None)
        said = [f for f in answer["findings"] if f"{process.pid} (VLLM" in f["seen"]]
        assert [one["area"] for one in said] == ["processes"]
    finally:
        process.communicate(timeout=LONG)


SECRET = "hunter2hunter2"


def test_the_bundle(doctor: Doctor, tmp_path: Path) -> None:
    target = tmp_path / "r.tar.gz"
    home = tmp_path / "home" / "ada"
    home.mkdir(parents=True)
    done = doctor(
        "--json",
        "--report",
        str(target),
        HOME=str(home),
        VLLM_API_KEY=SECRET,
        ASCEND_SHIMS_TORCH_INDEX=f"https://ada:{SECRET}@index/simple",
        ASCEND_SHIMS_REGISTRY=str(home / "registry.yaml"),
        HF_TOKEN=SECRET,
        VLLM_LOGGING_LEVEL="INFO",
    )
    assert done.returncode == 1
    assert json.loads(done.stdout)["schema"] == 1
    assert str(target) in done.stderr
    assert target.stat().st_mode & 0o777 == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {
        "r.tar.gz",
        "home",
        "empty",
    }
    texts = {}
    with tarfile.open(target) as tar:
        for member in tar.getmembers():
            file = tar.extractfile(member)
            assert file is not None
            texts[Path(member.name).name] = file.read().decode()
    assert set(texts) == _listed("The bundle")
    everything = "".join(texts.values())
    assert SECRET not in everything
    assert "HF_TOKEN" not in everything
    assert str(home) not in everything
    assert "~/registry.yaml" in texts["doctor.json"]
    documents = {name: json.loads(text) for name, text in texts.items()}
    assert {document["schema"] for document in documents.values()} == {1}
    variables = documents["environment.json"]["variables"]
    assert variables["VLLM_LOGGING_LEVEL"] == "INFO"
    assert variables["VLLM_API_KEY"] == "<redacted>"
    names = {one["name"] for one in documents["distributions.json"]["distributions"]}
    assert {"click", "msgspec"} <= names
    assert "registry.yaml" in documents["status.json"]["error"]


def test_the_bundle_has_the_status(doctor: Doctor, tmp_path: Path) -> None:
    target = tmp_path / "r.tar.gz"
    done = doctor("--report", str(target))
    assert "readable for you alone" in " ".join(done.stdout.split())
    with tarfile.open(target) as tar:
        file = tar.extractfile("shims-report/status.json")
        assert file is not None
        status = json.loads(file.read())
    assert len(status["gaps"]) >= 10
    assert status["plan"]


def test_nothing_upstream_is_imported(tmp_path: Path) -> None:
    script = (
        "import sys; from ascend_shims.cli import main; main(['doctor', '--json']);"
        "heavy = {'vllm', 'torch', 'torch_npu', 'pydantic', 'ray'} & set(sys.modules);"
        "print(sorted(heavy), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=5 * LONG,
        check=True,
    )
    assert done.stderr.strip() == "[]"
    assert json.loads(done.stdout)["schema"] == 1
