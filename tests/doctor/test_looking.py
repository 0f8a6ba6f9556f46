"""What is seen: made-up trees of files, and real children."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ascend_shims.doctor.cann import Named, Toolkit
from ascend_shims.doctor.installed import Copy, EntryPoint, Metadata
from ascend_shims.doctor.looking.attempt import Trial, attempt_of
from ascend_shims.doctor.looking.cann import library_folders, read_cann
from ascend_shims.doctor.looking.copies import only_here, read_copies
from ascend_shims.doctor.looking.elf import Needs, read_needs
from ascend_shims.doctor.looking.libraries import find_missing, fits_python
from ascend_shims.doctor.looking.metadata import read_installed
from ascend_shims.doctor.looking.processes import read_environ, read_processes
from ascend_shims.doctor.looking.ray import read_ray
from ascend_shims.doctor.torches import Attempt, Missing
from ascend_shims.environment.modules import find_module

from ..fresh import LONG
from .elves import library

# Metadata


def info(root: Path, folder: str, **files: str) -> Path:
    path = root / folder
    path.mkdir(parents=True)
    for name, text in files.items():
        (path / name.replace("_json", ".json").replace("_txt", ".txt")).write_text(text)
    return path


def installed_in(monkeypatch: pytest.MonkeyPatch, *roots: Path) -> tuple[Metadata, ...]:
    monkeypatch.setattr(sys, "path", [str(root) for root in roots])
    return read_installed(["upv"])


def test_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = info(
        tmp_path,
        "Up_V-1.0.dist-info",
        METADATA="Name: Up_V\nVersion: 1.0+x\nRequires-Dist: torch==2.9\n"
        "Requires-Dist: numpy\n\nName: not this\n",
        RECORD="a.py,,\nupv/__init__.py,sha256=x,1\n",
        entry_points_txt="[ vllm.general_plugins ]\n# no\nmine = a.b:c\n\n[x]\ny=z\n",
    )
    (found,) = installed_in(monkeypatch, tmp_path)
    assert found == Metadata(
        "Up_V",
        "1.0+x",
        str(folder),
        None,
        (
            EntryPoint("vllm.general_plugins", "mine", "a.b:c"),
            EntryPoint("x", "y", "z"),
        ),
        ("torch==2.9", "numpy"),
        frozenset({"upv"}),
    )
    assert (found.normal, str(found)) == ("up-v", "Up_V 1.0+x")


def test_all_of_a_name_are_listed_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    info(first, "upv.egg-info", **{"PKG-INFO": "Name: upv\nVersion: 2\n"})
    info(second, "upv-1.dist-info", METADATA="Name: upv\nVersion: 1\n")
    found = installed_in(monkeypatch, first, second)
    assert [(one.version, Path(one.folder).name) for one in found] == [
        ("2", "upv.egg-info"),
        ("1", "upv-1.dist-info"),
    ]


@pytest.mark.parametrize(
    ("files", "claims"),
    [
        ({"RECORD": "upv/__init__.py,,\n"}, True),
        ({"RECORD": "other/upv/__init__.py,,\n"}, False),
        ({"RECORD": "other/__init__.py,,\n", "top_level_txt": "upv\n"}, False),
        ({"top_level_txt": "other\nupv\n"}, True),
        ({"top_level_txt": "upv_more\n"}, False),
        ({}, False),
    ],
)
def test_who_has_brought_a_package(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: dict[str, str],
    claims: bool,
) -> None:
    info(tmp_path, "x-1.dist-info", METADATA="Name: x\nVersion: 1\n", **files)
    (found,) = installed_in(monkeypatch, tmp_path)
    assert found.claims == (frozenset({"upv"}) if claims else frozenset())


@pytest.mark.parametrize("inside", ["upv", "src/upv", None])
def test_an_editable_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: str | None
) -> None:
    checkout = tmp_path / "a checkout"
    if inside:
        (checkout / inside).mkdir(parents=True)
        (checkout / inside / "__init__.py").touch()
    url = {"url": f"file://{checkout}".replace(" ", "%20"), "dir_info": {}}
    url["dir_info"] = {"editable": True}
    info(
        tmp_path / "s",
        "x-1.dist-info",
        METADATA="Name: x\nVersion: 1\n",
        RECORD="__editable__.py,,\n",
        direct_url_json=json.dumps(url),
    )
    (found,) = installed_in(monkeypatch, tmp_path / "s")
    assert found.editable == str(checkout)
    assert found.claims == (frozenset({"upv"}) if inside else frozenset())


def test_broken_metadata_is_left_out_or_read_as_far_as_it_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info(tmp_path, "empty-1.dist-info")
    info(tmp_path, "x-1.dist-info", METADATA="Name: x\n", direct_url_json="[1")
    (tmp_path / "x-1.dist-info" / "RECORD").write_bytes(b"\xff\xfe")
    found = installed_in(monkeypatch, tmp_path)
    assert [(one.name, one.version, one.editable) for one in found] == [("x", "", None)]


# Copies


def package(root: Path, name: str = "upv") -> str:
    init = root / name / "__init__.py"
    init.parent.mkdir(parents=True)
    init.write_text("raise RuntimeError('imported')\n")
    return str(init.resolve())


@pytest.fixture
def three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A copy each in the working directory, on PYTHONPATH, and in the environment."""
    names = ("here", "named", "site")
    found = {name: package(tmp_path / name) for name in names}
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "named"))
    monkeypatch.setattr(sys, "path", [str(tmp_path / n) for n in names[1:]])
    return found


def test_the_working_directory_is_asked_first(three: dict[str, str]) -> None:
    assert read_copies("upv") == (
        Copy(three["here"], "the working directory", on_path=False),
        Copy(three["named"], "PYTHONPATH"),
        Copy(three["site"], "the environment"),
    )


@pytest.mark.parametrize("entry", ["", None])
def test_where_it_is_on_the_path(three: dict[str, str], entry: str | None) -> None:
    sys.path.insert(0, entry if entry is not None else str(Path.cwd()))
    first, *_ = read_copies("upv")
    assert first == Copy(three["here"], "the working directory")


@pytest.mark.parametrize(
    ("path", "named", "only"),
    [
        (["HERE", "x"], "", True),
        (["", "x"], "", True),
        (["x", "HERE"], "", False),
        (["HERE", "x", "HERE"], "", False),
        (["HERE", "x"], "HERE", False),
        ([], "", False),
    ],
)
def test_whether_only_the_start_has_put_it_there(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: list[str],
    named: str,
    only: bool,
) -> None:
    here = str(tmp_path.resolve())
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "path", [p.replace("HERE", here) for p in path])
    monkeypatch.setenv("PYTHONPATH", named.replace("HERE", here))
    assert only_here() == (here if only else None)


def test_a_folder_without_init_shadows_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "upv").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [])
    assert read_copies("upv") == ()


def test_a_link_is_the_file_that_it_leads_to(
    three: dict[str, str], tmp_path: Path
) -> None:
    link = tmp_path / "linked"
    link.symlink_to(tmp_path / "site")
    sys.path.insert(0, str(link))
    found = [one.file for one in read_copies("upv")]
    assert found.count(three["site"]) == 2
    assert "upv" not in sys.modules


# Shared libraries


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("tag", [15, 29])
def test_needs_of_any_kind_of_file(
    tmp_path: Path, order: str, wide: bool, tag: int
) -> None:
    search = "$ORIGIN/lib:${ORIGIN}/../x:/opt"
    file = library(
        tmp_path / "a.so",
        "libb.so",
        "libc.so.6",
        search=search,
        order=order,
        wide=wide,
        tag=tag,
    )
    home = tmp_path.resolve()
    assert read_needs(file) == Needs(
        ("libb.so", "libc.so.6"), (f"{home}/lib", f"{home}/../x", "/opt")
    )


def test_needs_of_a_real_file() -> None:
    import msgspec._core

    needs = read_needs(Path(msgspec._core.__file__))
    assert needs is not None
    assert any(name.startswith("libc") for name in needs.libraries)


@pytest.mark.parametrize("cut", [0, 4, 40, 63, 100, 180])
def test_what_is_no_such_file_is_no_error(tmp_path: Path, cut: int) -> None:
    file = library(tmp_path / "a.so", "libb.so")
    file.write_bytes(file.read_bytes()[:cut])
    needs = read_needs(file)
    assert needs is None or "libb.so" not in needs.libraries
    assert read_needs(tmp_path / "none.so") is None
    assert read_needs(tmp_path) is None


def test_damaged_files_are_no_error(tmp_path: Path) -> None:
    file = library(tmp_path / "a.so", "libb.so", search="/x")
    whole = file.read_bytes()
    for at in range(len(whole)):
        file.write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
        read_needs(file)


@pytest.fixture
def npu(tmp_path: Path) -> Path:
    """The folder of a torch_npu for this Python, as it is released."""
    folder = tmp_path / "torch_npu"
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    library(
        folder / f"_C{suffix}",
        "libtorch_npu.so",
        "libc10.so",
        "libshims_hccl.so",
        "libc.so.6",
        search="$ORIGIN/lib",
    )
    library(folder / "lib/libtorch_npu.so", "libshims_ascendcl.so", "libc10.so")
    library(tmp_path / "torch/lib/libc10.so", "libc.so.6")
    return folder


def test_the_missing_libraries_are_named(npu: Path, tmp_path: Path) -> None:
    assert find_missing(npu, tmp_path / "torch") == (
        Missing("libshims_ascendcl.so", "libtorch_npu.so"),
        Missing("libshims_hccl.so", next(npu.glob("_C*")).name),
    )


def test_where_they_lie_out_of_sight_is_told(npu: Path, tmp_path: Path) -> None:
    lib64 = tmp_path / "cann/lib64"
    library(lib64 / "libshims_hccl.so")
    found = find_missing(npu, tmp_path / "torch", [tmp_path / "none", lib64])
    assert [one.lies_in for one in found] == [None, str(lib64)]


def test_along_the_library_path_they_are_found_and_followed(
    npu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lib64 = tmp_path / "cann/lib64"
    library(lib64 / "libshims_hccl.so")
    library(lib64 / "libshims_ascendcl.so", "libshims_hal.so")
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/none:{lib64}")
    assert find_missing(npu, tmp_path / "torch") == (
        Missing("libshims_hal.so", "libshims_ascendcl.so"),
    )


def test_what_only_the_loader_knows_is_found(npu: Path, tmp_path: Path) -> None:
    library(npu / "lib/libtorch_npu.so", "libc.so.6")
    next(npu.glob("_C*")).unlink()
    assert find_missing(npu, None) == ()


def test_an_extension_for_another_python(npu: Path) -> None:
    assert fits_python(npu)
    next(npu.glob("_C*")).rename(npu / "_C.cpython-27-x86_64-linux-gnu.so")
    assert not fits_python(npu)


# Importing torch_npu


@pytest.mark.parametrize(
    ("code", "said", "expected"),
    [
        (0, "noise\nascend-shims doctor: null\n", Attempt()),
        (
            0,
            'ascend-shims doctor: "ImportError: libx.so: cannot open shared object '
            'file: No such file or directory"',
            Attempt(
                "ImportError: libx.so: cannot open shared object file: No such file or "
                "directory",
                library="libx.so",
            ),
        ),
        (0, 'ascend-shims doctor: "E: a\\nb"', Attempt("E: a")),
        (-11, "anything", Attempt(signal=11)),
        (3, "anything", Attempt("the process ended with exit code 3")),
    ],
)
def test_what_the_end_of_a_trial_means(code: int, said: str, expected: Attempt) -> None:
    assert attempt_of(code, said) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("print('hello')", Attempt()),
        ("raise ImportError('no')", Attempt("ImportError: no")),
        ("import sys; sys.exit(4)", Attempt("SystemExit: 4")),
        ("import os; os._exit(4)", Attempt("the process ended with exit code 4")),
        ("import os; os.kill(os.getpid(), 9)", Attempt(signal=9)),
    ],
)
def test_a_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, expected: Attempt
) -> None:
    (tmp_path / "torch_npu.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    assert Trial().result() == expected


def test_a_trial_imports_nothing_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "torch_npu.py").touch()
    (tmp_path / "json.py").write_text("import os; os._exit(9)")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.chdir(tmp_path)
    assert Trial().result() == Attempt()


def test_a_trial_that_hangs_is_ended_with_what_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    code = (
        "import subprocess, sys\n"
        "words = [sys.executable, '-c', 'input()']\n"
        "child = subprocess.Popen(words, stdin=subprocess.PIPE)\n"
        f"open({str(pids)!r}, 'w').write(str(child.pid))\n"
        "child.wait()\n"
    )
    trial = Trial(code, patience=5)
    assert trial.result() == Attempt(timed_out=True)
    pid = int(pids.read_text())
    deadline = time.monotonic() + LONG
    while _runs(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    """Whether it does more than wait for somebody to take note of its end."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] not in "ZX"


# CANN


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("file", "text", "version"),
    [
        (
            "version.cfg",
            "# version: 1.0\nruntime_running_version=[7.6:8.0.0]\n"
            "toolkit_running_version=[7.6.0.1.220:8.0.0]\n",
            "8.0.0",
        ),
        ("version.cfg", "toolkit_running_version=[8.3.RC2]\n", "8.3.RC2"),
        (
            "x86_64-linux/ascend_toolkit_install.info",
            "package_name=Ascend-cann-toolkit\nversion=8.5.0\npath=/p\n",
            "8.5.0",
        ),
        ("runtime/version.info", "Version=7.8.0.1\n", "7.8.0.1"),
        ("version.cfg", "nothing in here\n", None),
        ("else", "", None),
    ],
)
def test_versions_of_cann(
    tmp_path: Path, file: str, text: str, version: str | None
) -> None:
    write(tmp_path, **{f"usr/local/Ascend/cann/{file}": text})
    seen = read_cann({}, has_torch_npu=False, root=tmp_path)
    folder = str(tmp_path / "usr/local/Ascend/cann")
    assert seen.usual == (Toolkit(folder, version),)


def test_variables_that_name_cann(tmp_path: Path) -> None:
    latest = tmp_path / "ascend-toolkit/latest"
    write(latest, **{"version.cfg": "toolkit_running_version=[8.1.RC1]"})
    write(tmp_path, **{"ascend-toolkit/set_env.sh": ""})
    environ = {
        "ASCEND_HOME_PATH": str(latest),
        "ASCEND_TOOLKIT_HOME": "/none/there",
    }
    seen = read_cann(environ, has_torch_npu=True, root=tmp_path)
    assert seen.named == (
        Named("ASCEND_HOME_PATH", str(latest), Toolkit(str(latest), "8.1.RC1")),
        Named("ASCEND_TOOLKIT_HOME", "/none/there", None),
    )
    assert seen.set_env == str(tmp_path / "ascend-toolkit/set_env.sh")
    assert library_folders(seen, tmp_path)[0] == latest / "lib64"


def test_the_driver_and_the_nodes(tmp_path: Path) -> None:
    write(
        tmp_path,
        **{
            "etc/ascend_install.info": "Driver_Install_Path_Param=/opt/hw\n",
            "opt/hw/driver/version.info": "Version=25.2.0\nascendhal_version=7\n",
            "dev/davinci10": "",
            "dev/davinci2": "",
            "dev/davinci_manager": "",
            "dev/devmm_svm": "",
        },
    )
    seen = read_cann({}, has_torch_npu=False, root=tmp_path)
    assert seen.driver == "25.2.0"
    assert [Path(n).name for n in seen.nodes] == ["davinci2", "davinci10"]
    assert seen.managers_missing == (str(tmp_path / "dev/hisi_hdc"),)
    assert seen.closed == ()


def test_a_machine_without_any_of_it(tmp_path: Path) -> None:
    seen = read_cann({"ASCEND_HOME_PATH": " "}, has_torch_npu=False, root=tmp_path)
    assert (seen.named, seen.usual, seen.driver, seen.nodes) == ((), (), None, ())
    assert (seen.closed, seen.managers_missing, seen.set_env) == ((), (), None)


# Processes

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start() -> Iterator[Start]:
    running: list[subprocess.Popen[bytes]] = []

    def run(*words: str, **environ: str) -> subprocess.Popen[bytes]:
        script = "import sys; print('ready', flush=True); sys.stdin.read()"
        process = subprocess.Popen(
            [words[0], "-c", script, *words[1:]],
            executable=sys.executable,
            env={**os.environ, **environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        running.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        return process

    yield run
    for process in running:
        process.kill()
        process.communicate(timeout=LONG)


def test_an_engine_is_known_by_its_title(start: Start) -> None:
    process = start("VLLM::EngineCore", "--api-key=x", ASCEND_SHIMS_ONLY="a", OTHER="b")
    (found,) = (one for one in read_processes() if one.pid == process.pid)
    assert found.title == "VLLM::EngineCore"
    assert found.switches is not None
    assert found.switches["ASCEND_SHIMS_ONLY"] == "a"
    assert "OTHER" not in found.switches
    assert (found.is_own, found.same_network, found.site) == (True, True, None)
    assert 0 <= found.age < LONG


def test_a_process_that_is_something_else(start: Start) -> None:
    process = start("python", "vllm")
    assert process.pid not in {one.pid for one in read_processes()}


Proc = Callable[..., None]


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    """A made-up `/proc`."""

    def add(pid: int, cmdline: str, maps: str = "", environ: str = "", net: str = "1"):
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "cmdline").write_text(cmdline.replace(" ", "\0") + "\0")
        (folder / "maps").write_text(maps)
        (folder / "environ").write_text(environ.replace(" ", "\0"))
        (folder / "stat").write_text(f"{pid} (a ) b) S 1 {'0 ' * 17}100 0\n")
        (folder / "ns").mkdir()
        (folder / "ns/net").symlink_to(f"net:[{net}]")

    add(1, "init")
    (tmp_path / "self").symlink_to("1")
    return add


@pytest.mark.parametrize(
    ("cmdline", "title"),
    [
        ("VLLM::Worker_TP0", "VLLM::Worker_TP0"),
        ("/v/bin/python /v/bin/vllm serve --api-key secret", "vllm serve"),
        ("vllm run-batch -i x", "vllm run-batch"),
        (
            "python3 -m vllm.entrypoints.openai.api_server --api-key x",
            "vllm.entrypoints.openai.api_server",
        ),
        ("/v/bin/python /v/bin/vllm bench serve", None),
        ("/v/bin/python /v/bin/vllm --help", None),
        ("grep -r vllm", None),
        ("python train.py", None),
        ("", None),
    ],
)
def test_command_lines(
    proc: Proc, tmp_path: Path, cmdline: str, title: str | None
) -> None:
    proc(77, cmdline)
    found = [one.title for one in read_processes(tmp_path) if one.pid == 77]
    assert found == ([title] if title else [])


def test_what_has_loaded_vllm_runs_it(proc: Proc, tmp_path: Path) -> None:
    line = "7f00-7f01 r-xp 00000000 fe:00 12   /v/site-packages/vllm/_C.abi3.so\n"
    proc(77, "/v/bin/python3.11 train.py --token secret", maps=line)
    proc(78, "less notes", maps=line)
    (found,) = read_processes(tmp_path)
    assert (found.pid, found.title, found.site) == (
        77,
        "python3.11",
        "/v/site-packages",
    )


def test_another_network_namespace_is_told(proc: Proc, tmp_path: Path) -> None:
    proc(77, "VLLM::EngineCore", net="2")
    proc(78, "VLLM::EngineCore")
    found = {one.pid: one.same_network for one in read_processes(tmp_path)}
    assert found == {77: False, 78: True}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (
            "PATH=/ ASCEND_SHIMS=off VLLM_PLUGINS=a=b VLLM_API_KEY=x",
            {"ASCEND_SHIMS": "off", "VLLM_PLUGINS": "a=b"},
        ),
        ("PATH=/", {}),
        # Written over by a title.
        ("", None),
        ("  ore ", None),
    ],
)
def test_environments(
    proc: Proc, tmp_path: Path, environ: str, expected: dict[str, str] | None
) -> None:
    proc(77, "VLLM::EngineCore", environ=environ)
    assert read_environ(tmp_path / "77") == expected


def test_one_that_ends_meanwhile_is_left_out(proc: Proc, tmp_path: Path) -> None:
    proc(77, "VLLM::EngineCore")
    (tmp_path / "77" / "stat").unlink()
    assert read_processes(tmp_path) == ()


# Ray


def test_what_ray_workers_get(tmp_path: Path) -> None:
    (tmp_path / "ray_non_carry_over_env_vars.json").write_text('["ASCEND_SHIMS"]')
    environ = {
        "VLLM_CONFIG_ROOT": str(tmp_path),
        "VLLM_RAY_EXTRA_ENV_VAR_PREFIXES_TO_COPY": "X_",
        "ASCEND_SHIMS": "off",
        "ASCEND_SHIMS_ONLY": " ",
        "ASCEND_SHIMS_NONE_SUCH": "1",
        "ASCEND_SHIMS_LANG": "en",
        "ASCEND_SHIMS_CACHE": "off",
    }
    if find_module("ray") is None:
        pytest.skip("Ray is not installed")
    seen = read_ray(environ, wants=True)
    assert (seen.installed, seen.prefixes, seen.wants) == (True, "X_", True)
    assert seen.switches == ("ASCEND_SHIMS",)
    assert seen.left_out == {"ASCEND_SHIMS"}


@pytest.mark.parametrize("text", [None, "{", "3", "[]"])
def test_a_file_that_keeps_nothing_back(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "ray_non_carry_over_env_vars.json").write_text(text)
    seen = read_ray({"VLLM_CONFIG_ROOT": str(tmp_path)}, wants=False)
    assert seen.left_out == frozenset()
