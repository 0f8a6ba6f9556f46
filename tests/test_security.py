"""Nobody but the user decides what runs: registries, files, sockets, command lines."""

from __future__ import annotations

import ast
import contextlib
import grp
import json
import os
import pwd
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ascend_shims
from ascend_shims import plugin
from ascend_shims.plan import NotAllowedError
from ascend_shims.processes.address import address, is_trusted
from ascend_shims.processes.address import listening as responding
from ascend_shims.processes.client import ask_all
from ascend_shims.registry import RegistryError, load, writers
from ascend_shims.states import State

from .engine.conftest import own_process, world  # noqa: F401
from .engine.world import P, World
from .fresh import LONG, python

TOP = Path(__file__).parents[1]
NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")

UP = "def f(x): return x\ndef g(x): return x\n"


@pytest.fixture
def up(own_process: World) -> World:  # noqa: F811
    """A made-up upstream whose registry a variable names; its package is allowed."""
    own_process.upstream(UP).gap("one", P("a:f"))
    own_process.registry_file()
    return own_process


# A registry is data

SOUND = """\
schema: 1
upstreams: [up]
package: ascend_shims.patches
gaps:
  - id: kv-cache
    title: T
    status: open
    kind: workaround
    why: W
    remove_when: R
    patches:
      - {target: "up.a:f", kind: wrap, replacement: allocate_backing}
"""


TAGGED = (
    "!!python/object/apply:os.system ['touch HIT']",
    "!!python/object/new:os.system ['touch HIT']",
    "!!python/name:os.system",
    "!!python/module:os",
    "!!binary aGk=",
)
NO_DATA = [
    *(("title: T", f"title: {one}", f"tag `{one.split()[0]}`") for one in TAGGED),
    ("title: T", "title: T\n    title: U", "title"),
    ("kind: workaround", "kind: workaround\n    <<: {title: U}", "<<"),
    ("allocate_backing", "'os:system'", "replacement"),
    ("allocate_backing", "os.system", "replacement"),
    ("allocate_backing", "'evil.mod:f'", "replacement"),
    ("allocate_backing", "'__import__(\"os\")'", "replacement"),
    ("allocate_backing", "''", "replacement"),
    ("id: kv-cache", "id: ../../evil", "id"),
    ("id: kv-cache", "id: os.path", "id"),
    ("ascend_shims.patches", "'../evil'", "package"),
    ("ascend_shims.patches", "'os;evil'", "package"),
]


@pytest.mark.parametrize(("old", "new", "said"), NO_DATA)
def test_what_is_not_data_is_refused_and_nothing_runs(
    old: str, new: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "registry.yaml"
    path.write_text(SOUND.replace(old, new, 1))
    before = set(sys.modules)
    with pytest.raises(RegistryError) as caught:
        load(path)
    assert said in str(caught.value)
    assert not (tmp_path / "HIT").exists()
    assert not {m for m in set(sys.modules) - before if "evil" in m}


# Whose code a registry may bring

MARK = "from pathlib import Path\nPath({file!r}).touch()\n"


@pytest.fixture
def evil(up: World) -> Callable[[], bool]:
    """Whether anything of the package that the registry names was imported."""
    hit = up.root / "hit"
    mark = MARK.format(file=str(hit))
    up.write("PP/__init__.py", mark)
    module = up.root / up.package / "one.py"
    module.write_text(mark + module.read_text())
    return hit.exists


@pytest.mark.parametrize("allowed", ["", "another", "os, ascend_shims"])
def test_a_package_that_nobody_has_allowed_is_not_imported(
    allowed: str,
    up: World,
    evil: Callable[[], bool],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("ASCEND_SHIMS_ALLOW", allowed)
    a = up.import_()
    stock = a.f
    for attempt in (
        ascend_shims.apply,
        ascend_shims.status,
        lambda: ascend_shims.apply(registry=up.root / "registry.yaml"),
        lambda: ascend_shims.apply(allow=["ascend_shims", f"{up.package}.one"]),
    ):
        with pytest.raises(NotAllowedError) as caught:
            attempt()
        assert f"ASCEND_SHIMS_ALLOW={up.package}" in str(caught.value)
        assert f"allow=['{up.package}']" in str(caught.value)
        assert str(up.root / "registry.yaml") in str(caught.value)
    plugin.register()
    assert "no shims in this process" in caplog.text
    for words in (["status"], ["apply-check"], ["run", "--", sys.executable, "-V"]):
        done = subprocess.run(
            [sys.executable, "-m", "ascend_shims", *words],
            env={**os.environ, "PYTHONPATH": str(up.root)},
            capture_output=True,
            text=True,
            timeout=LONG,
            check=False,
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert f"ASCEND_SHIMS_ALLOW={up.package}" in done.stderr
    assert a.f is stock
    assert not evil()
    monkeypatch.setenv("ASCEND_SHIMS_ALLOW", up.package)


def test_a_package_is_allowed_by_name(
    up: World, evil: Callable[[], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    up.import_()
    assert ascend_shims.apply().state("one") is State.APPLIED
    assert evil()
    ascend_shims.revert()
    # By the program: for itself, and for the processes that it starts.
    monkeypatch.delenv("ASCEND_SHIMS_ALLOW")
    report = ascend_shims.apply(registry=up.root / "registry.yaml", allow=up.package)
    assert report.state("one") is State.APPLIED
    assert os.environ["ASCEND_SHIMS_ALLOW"] == up.package
    told = up.run(
        "import ascend_shims, UP.a\n"
        "print(ascend_shims.apply().state('one'), UP.a.f(1))\n"
    )
    assert told == "applied 10\n"
    ascend_shims.revert()
    assert "ASCEND_SHIMS_ALLOW" not in os.environ
    monkeypatch.setenv("ASCEND_SHIMS_ALLOW", up.package)


def test_ours_needs_no_permission(
    own_process: World,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ASCEND_SHIMS_ALLOW")
    file = own_process.root / "registry.yaml"
    file.write_text(SOUND)
    assert ascend_shims.status()["kv-cache"].state is State.NOT_APPLICABLE
    monkeypatch.delenv("ASCEND_SHIMS_REGISTRY")
    assert load().package == "ascend_shims.patches"
    assert ascend_shims.status()["kv-cache"].id == "kv-cache"


# Who can change a registry that a variable names


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A registry in a folder of its own."""
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o755)
    path = folder / "registry.yaml"
    path.write_text(SOUND)
    path.chmod(0o644)
    return path


@pytest.mark.parametrize(
    ("file", "folder", "refused"),
    [
        (0o600, 0o700, ""),
        (0o644, 0o755, ""),
        (0o444, 0o555, ""),
        (0o646, 0o755, "registry.yaml: can be written by everybody (mode 0646)"),
        (0o666, 0o755, "registry.yaml: can be written by everybody (mode 0666)"),
        (0o664, 0o755, "registry.yaml: can be written by the group 54321 (mode 0664)"),
        (0o644, 0o757, "shared: can be written by everybody (mode 0757)"),
        (0o644, 0o777, "shared: can be written by everybody (mode 0777)"),
        # Nobody else could take the file away; but put it back once it is gone.
        (0o644, 0o1777, "shared: can be written by everybody (mode 1777)"),
        (0o644, 0o775, "shared: can be written by the group 54321 (mode 0775)"),
        (0o644, 0o3775, "shared: can be written by the group 54321 (mode 3775)"),
    ],
)
@as_root
def test_modes(file: int, folder: int, refused: str, shared: Path) -> None:
    for path, mode in ((shared, file), (shared.parent, folder)):
        os.chown(path, 0, 54321)
        path.chmod(mode)
    assert load(shared).gaps[0].id == "kv-cache"
    if not refused:
        assert load(shared, own=True) == load(shared)
        return
    with pytest.raises(RegistryError) as caught:
        load(shared, own=True)
    assert refused in str(caught.value)
    assert "; `chmod " in str(caught.value)
    assert "ASCEND_SHIMS_REGISTRY names only what others cannot change" in str(
        caught.value
    )


@pytest.mark.parametrize("whose", ["file", "folder"])
@as_root
def test_owners(whose: str, shared: Path) -> None:
    path = shared if whose == "file" else shared.parent
    os.chown(path, NOBODY, 0)
    with pytest.raises(RegistryError) as caught:
        load(shared, own=True)
    assert f"{path}: belongs to the user {NOBODY}, who can change it" in str(
        caught.value
    )
    assert f"chown 0 {path}" in str(caught.value)


@pytest.mark.parametrize(
    ("members", "primary", "name", "private"),
    [
        ((), ("mona",), "mona", True),
        (("mona",), ("mona",), "mona", True),
        (("mona", "otto"), ("mona",), "mona", False),
        ((), ("mona", "otto"), "mona", False),
        ((), ("mona",), "staff", False),
        ((), (), "mona", False),
    ],
)
def test_a_group_of_ones_own_is_nobody_else(
    members: tuple[str, ...],
    primary: tuple[str, ...],
    name: str,
    private: bool,
    shared: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where each user has a group, files are often writable by it (umask 002)."""
    number = shared.stat().st_gid
    users = [SimpleNamespace(pw_name=one, pw_gid=number) for one in primary]
    mona = SimpleNamespace(pw_name="mona", pw_gid=number if users else number + 1)
    group = SimpleNamespace(gr_name=name, gr_mem=list(members))
    monkeypatch.setattr(grp, "getgrgid", lambda _: group)
    monkeypatch.setattr(pwd, "getpwuid", lambda _: mona)
    monkeypatch.setattr(pwd, "getpwall", lambda: users)
    shared.chmod(0o664)
    shared.parent.chmod(0o775)
    assert (writers.problem_of(shared) is None) == private


def test_a_group_that_is_not_known_is_somebody_else(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(_: int) -> Any:
        raise KeyError

    monkeypatch.setattr(grp, "getgrgid", unknown)
    shared.chmod(0o664)
    assert "can be written by the group" in str(writers.problem_of(shared))


def test_links_are_followed_to_where_they_can_be_turned(
    shared: Path, tmp_path: Path
) -> None:
    loose = tmp_path / "loose"
    loose.mkdir()
    (loose / "link.yaml").symlink_to("../middle.yaml")
    (tmp_path / "middle.yaml").symlink_to(shared)
    assert load(loose / "link.yaml", own=True) == load(shared)
    loose.chmod(0o757)
    assert f"{loose}: can be written" in str(writers.problem_of(loose / "link.yaml"))
    assert writers.problem_of(tmp_path / "middle.yaml") is None
    shared.parent.chmod(0o757)
    said = str(writers.problem_of(tmp_path / "middle.yaml"))
    assert f"{shared.parent}: can be written" in said
    shared.parent.chmod(0o755)
    shared.chmod(0o646)
    assert f"{shared}: can be" in str(writers.problem_of(tmp_path / "middle.yaml"))


ABOVE = [
    (0o755, ""),
    (0o711, ""),
    (0o1777, ""),
    (0o1775, ""),
    (0o777, "can be written by everybody (mode 0777)"),
    (0o757, "can be written by everybody (mode 0757)"),
    (0o775, "can be written by the group 54321 (mode 0775)"),
    (0o2775, "can be written by the group 54321 (mode 2775)"),
]


@pytest.mark.parametrize(("mode", "refused"), ABOVE)
@pytest.mark.parametrize("how", ["folder", "link in the middle", "dots"])
@as_root
def test_every_folder_on_the_way(
    how: str, mode: int, refused: str, shared: Path, tmp_path: Path
) -> None:
    """Who can write to one renames what lies beneath, and puts another in its place."""
    above = tmp_path / "above"
    above.mkdir()
    moved = above / "inner" / "shared"
    moved.parent.mkdir()
    shared.parent.rename(moved)
    path = moved / "registry.yaml"
    if how == "link in the middle":
        (tmp_path / "d").symlink_to("above/inner/shared")
        path = tmp_path / "d" / "registry.yaml"
    elif how == "dots":
        (tmp_path / "beside").mkdir()
        path = tmp_path / "beside" / ".." / "above" / "inner" / "." / "shared"
        path /= "registry.yaml"
    os.chown(above, 0, 54321)
    above.chmod(mode)
    said = writers.problem_of(path)
    if refused:
        assert said is not None
        assert said.startswith(f"{above}: {refused}")
        assert "`chmod " in said
    else:
        assert said is None
        assert load(path, own=True).gaps[0].id == "kv-cache"


@pytest.mark.parametrize("link", ["in the middle", "in front", "beneath a link"])
@pytest.mark.parametrize("mode", [0o757, 0o1777])
@as_root
def test_a_link_on_the_way_that_somebody_else_can_turn(
    link: str, mode: int, shared: Path, tmp_path: Path
) -> None:
    loose = tmp_path / "loose"
    loose.mkdir()
    loose.chmod(mode)
    (loose / "d").symlink_to(shared.parent)
    path = loose / "d" / "registry.yaml"
    if link == "in front":
        path = loose / "registry.yaml"
        path.symlink_to(shared)
    elif link == "beneath a link":
        (tmp_path / "first").symlink_to("loose/d")
        path = tmp_path / "first" / "registry.yaml"
    with pytest.raises(RegistryError) as caught:
        load(path, own=True)
    assert f"{loose}: can be written by everybody (mode {mode:04o})" in str(
        caught.value
    )


@as_root
def test_a_folder_of_somebody_else_on_the_way(shared: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    shared.parent.rename(theirs / "shared")
    os.chown(theirs, NOBODY, 0)
    said = str(writers.problem_of(theirs / "shared" / "registry.yaml"))
    assert f"{theirs}: belongs to the user {NOBODY}, who can change it" in said


@as_root
def test_a_home_that_others_cannot_look_into(shared: Path) -> None:
    """Folders on the way have to be passed, and no more."""
    with tempfile.TemporaryDirectory() as top:
        home = Path(top) / "mona"
        home.mkdir(mode=0o700)
        shared.rename(home / "registry.yaml")
        for path in (home, home / "registry.yaml"):
            os.chown(path, NOBODY, NOBODY)
        Path(top).chmod(0o711)

        def read() -> bytes:
            return load(home / "registry.yaml", own=True).gaps[0].id.encode()

        assert somebody_else(read) == b"kv-cache"


def test_a_path_from_the_current_folder(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shared.parent)
    assert writers.problem_of(Path("registry.yaml")) is None
    assert writers.problem_of(Path("../shared/./registry.yaml")) is None
    shared.parent.chmod(0o757)
    said = str(writers.problem_of(Path("registry.yaml")))
    assert f"{shared.parent}: can be written" in said


def test_what_was_checked_is_what_is_read(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody puts another file, or folder, in its place between the two."""
    for place in (shared, shared.parent):
        text = shared.read_text()
        other = place.with_name("other")
        if place == shared:
            other.write_text(SOUND.replace("kv-cache", "cos-sin"))
        else:
            other.mkdir()
            (other / shared.name).write_text("gaps: []\n")
        check = writers._check

        def checked_and_changed(
            path: Path, *found: Any, place: Path = place, check: Any = check, **how: Any
        ) -> None:
            check(path, *found, **how)
            if path == place and place.with_name("other").exists():
                place.rename(place.with_name("was"))
                place.with_name("other").rename(place)

        with monkeypatch.context() as patched:
            patched.setattr(writers, "_check", checked_and_changed)
            from ascend_shims.registry.reading import read as read_text

            assert read_text(shared, own=True) == text
        assert shared.read_text() != text
        assert not place.with_name("other").exists()


@pytest.mark.parametrize("kind", ["pipe", "directory", "missing", "ring"])
def test_what_is_no_file_does_not_keep_us_waiting(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "registry.yaml"
    if kind == "pipe":
        os.mkfifo(path, 0o600)
    elif kind == "directory":
        path.mkdir()
    elif kind == "ring":
        path.symlink_to(path)
    with pytest.raises(RegistryError, match=r"is not a regular|is a direc|cannot be"):
        load(path, own=True)


def test_a_variable_names_only_what_others_cannot_change(
    up: World, caplog: pytest.LogCaptureFixture
) -> None:
    a = up.import_()
    stock = a.f
    path = up.root / "registry.yaml"
    path.chmod(0o666)
    for attempt in (ascend_shims.apply, ascend_shims.status):
        with pytest.raises(RegistryError, match=r"mode 0666.*chmod o-w"):
            attempt()
    plugin.register()
    assert "chmod o-w" in caplog.text
    for command in (["status"], ["drift", "--against", "installed"], ["show", "one"]):
        done = subprocess.run(
            [sys.executable, "-m", "ascend_shims", *command],
            env={**os.environ, "PYTHONPATH": str(up.root)},
            capture_output=True,
            text=True,
            timeout=LONG,
            check=False,
        )
        assert done.returncode == 2, done.stderr
        assert f"{path}: can be written by everybody" in done.stderr
    assert a.f is stock
    # The program's own word stands; its children will not take it, and it is told.
    with pytest.warns(UserWarning, match="processes started from here refuse it"):
        assert ascend_shims.apply(registry=path).state("one") is State.APPLIED
    path.chmod(0o644)


# Nothing that everybody could write to

_MAKE = """
import os, sys
from pathlib import Path
os.umask(0)
from ascend_shims.simnpu import models
from ascend_shims.upstream.lock import Lock, save_lock
from ascend_shims.upstream.sources.cache import Cache, cache_directory
top = Path(sys.argv[1])
cache = Cache(cache_directory({"XDG_CACHE_HOME": str(top / "xdg" / "deep")}))
assert cache.put("kind", "key", data=b"x")
with cache.scratch() as scratch:
    assert scratch.stat().st_mode & 0o777 == 0o600
Cache(top / "own" / "cache").put("kind", "key", data=b"x")
save_lock(Lock(), top / "gap_registry.lock")
models.gqa(top / "models" / "gqa")
from ascend_shims.guard.report import Report
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
loader = SourceFileLoader("tool", sys.argv[2])
tool = module_from_spec(spec_from_loader("tool", loader))
sys.modules["tool"] = tool
loader.exec_module(tool)
tool.KEPT = top / "build" / "matrix"
kept = tool.Kept("code", anew=False)
kept.add({"release": "1", "case": "c"})
kept.add({"release": "2", "case": "c"})
"""


def test_nothing_is_made_that_everybody_can_write_to(tmp_path: Path) -> None:
    python(_MAKE, tmp_path, TOP / "tools" / "matrix")
    made = {path: path.lstat().st_mode & 0o7777 for path in tmp_path.rglob("*")}
    assert len([path for path in made if path.is_file()]) >= 5
    assert len([path for path in made if path.is_dir()]) >= 9
    assert [oct(mode) for mode in made.values() if mode & 0o022] == []
    caches = [path for path in made if {"xdg", "own"} & {*path.parts}]
    assert {made[path] for path in caches} == {0o700, 0o600}
    assert made[tmp_path / "gap_registry.lock"] == 0o644


# Sockets


def somebody_else(body: Callable[[], bytes]) -> bytes:
    """What `body` gives in a process of another user."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(write, body())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    return said


def asked(pid: int) -> bytes:
    """How many bytes the process answers."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(LONG)
        connection.connect(address(pid))
        return b"%d" % len(connection.recv(1 << 16))


def listening(stop: int) -> bytes:
    """Answer as a process with shims would, until `stop` is closed."""
    told = {"schema": 1, "plan": "x", "process": {"pid": 1, "role": "r"}, "gaps": []}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address(os.getpid()))
        listener.listen()
        while True:
            ready, _, _ = select.select([listener, stop], [], [])
            if stop in ready:
                return b""
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                connection.sendall(json.dumps(told).encode())


def test_root_and_oneself_are_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    assert [is_trusted(uid) for uid in (0, 1000, 1001, NOBODY)] == [
        True,
        True,
        False,
        False,
    ]


@as_root
def test_other_users_are_not_answered(up: World) -> None:
    ascend_shims.apply()
    pid = os.getpid()
    assert somebody_else(lambda: asked(pid)) == b"0"
    code = f"""
import socket
connection = socket.socket(socket.AF_UNIX)
connection.connect({address(pid)!r})
print(len(connection.recv(1 << 16)))
"""
    assert int(python(code)) > 500


@as_root
@pytest.mark.parametrize("user", [0, NOBODY])
def test_other_users_are_not_believed(user: int) -> None:
    stop, held = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.close(held)
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            listening(stop)
        finally:
            os._exit(0)
    os.close(stop)
    try:
        deadline = time.monotonic() + LONG
        while pid not in responding() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert pid in responding()
        assert (pid in {answer.pid for answer in ask_all(LONG)}) == (user == 0)
    finally:
        os.close(held)
        os.waitpid(pid, 0)


# Command lines

HOSTILE = (
    "; rm -rf /",
    "$(touch HIT)",
    "`touch HIT`",
    "| touch HIT",
    "&& touch HIT",
    "> HIT",
    "a b",
    "",
    "\n",
    "two\nlines",
    "\ttab",
    "'single'",
    '"double"',
    "back\\slash",
    "*",
    "~",
    "$HOME",
    "${HOME}",
    "%s {0}",
    "--only",
    "--disable=kv-cache",
    "--",
    "-c",
    "é ü \U0001f600",
    "\udce9",
)

_SHOW = "import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ)]))"


@pytest.fixture
def clean() -> dict[str, str]:
    mine = ("ASCEND_", "VLLM_", "PYTHONPATH")
    return {k: v for k, v in os.environ.items() if not k.startswith(mine)}


def ran(
    words: list[str], environ: dict[str, str], cwd: Path
) -> tuple[list[str], dict[str, str]]:
    done = subprocess.run(
        [sys.executable, "-m", "ascend_shims", "run", *words],
        env=environ,
        cwd=cwd,
        capture_output=True,
        timeout=LONG,
        check=True,
    )
    arguments, found = json.loads(done.stdout)
    return arguments, found


def test_arguments_reach_the_command_as_they_are(
    tmp_path: Path, clean: dict[str, str]
) -> None:
    command = ["--", sys.executable, "-c", _SHOW, *HOSTILE]
    arguments, _ = ran(command, clean, tmp_path)
    assert arguments == list(HOSTILE)
    assert list(tmp_path.iterdir()) == []


def test_the_environment_of_the_command_is_the_users_and_ours(
    tmp_path: Path, clean: dict[str, str]
) -> None:
    given = {**clean, "SECRET": "kept", "PYTHONPATH": str(tmp_path)}
    options = ["--disable", "cos-sin", "--", sys.executable, "-c", _SHOW]
    _, found = ran(options, given, tmp_path)
    first, *rest = found.pop("PYTHONPATH").split(os.pathsep)
    assert Path(first, "sitecustomize.py").is_file()
    assert rest == [given.pop("PYTHONPATH")]
    found.pop("LC_CTYPE", None)  # an interpreter sets this itself
    given.pop("LC_CTYPE", None)
    ours = {k: v for k, v in found.items() if k.startswith("ASCEND_SHIMS")}
    assert ours == {"ASCEND_SHIMS_DISABLE": "cos-sin"}
    assert {k: v for k, v in found.items() if k not in ours} == given


def test_a_program_is_looked_for_on_path_only(
    tmp_path: Path, clean: dict[str, str]
) -> None:
    program = tmp_path / "ls-of-ours"
    program.write_text("#!/bin/sh\ntouch HIT\n")
    program.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "ascend_shims", "run", "--", "ls-of-ours"],
        env=clean,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert done.returncode == 2
    assert "there is no command 'ls-of-ours' on PATH" in done.stderr
    assert not (tmp_path / "HIT").exists()


# The code itself

DANGEROUS = {
    "eval",
    "exec",
    "os.system",
    "os.popen",
    "pickle.load",
    "pickle.loads",
    "yaml.load",
    "yaml.unsafe_load",
    "tempfile.mktemp",
}


def sources() -> Iterator[Path]:
    for folder in ("ascend_shims", "patches"):
        yield from sorted((TOP / folder).rglob("*.py"))
    for tool in sorted((TOP / "tools").iterdir()):
        if tool.is_file() and "python" in tool.read_text().partition("\n")[0]:
            yield tool


def test_nothing_of_ours_runs_text() -> None:
    found = []
    files = list(sources())
    assert len(files) > 150
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            shell = any(
                word.arg == "shell"
                and not (isinstance(word.value, ast.Constant) and not word.value.value)
                for word in node.keywords
            )
            if ast.unparse(node.func) in DANGEROUS or shell:
                found.append(f"{path.relative_to(TOP)}:{node.lineno}")
    assert found == []
