"""The processes of this machine that run vLLM, found by what the kernel shows."""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..running import VllmProcess

__all__ = ["concerning", "read_environ", "read_processes"]

_TITLE = re.compile(r"^VLLM::\S+")
_SERVING = {"serve", "run-batch", "launch"}
"""Of the `vllm` command: the others start no engine."""
_LOADED = re.compile(rb"\s(/\S+)/(?:vllm|vllm_ascend)/\S*\.so\b")
_PYTHON = re.compile(r"python[0-9.]*$")


def concerning(environ: Mapping[str, str]) -> dict[str, str]:
    """Of an environment, what explains that there are shims or none."""
    return {
        name: value
        for name, value in environ.items()
        if name.startswith("ASCEND_SHIMS") or name == "VLLM_PLUGINS"
    }


def read_processes(proc: Path = Path("/proc")) -> tuple[VllmProcess, ...]:
    """All but this process and those above it."""
    above = set(_above(proc, os.getpid()))
    own_network = _network(proc / "self")
    found = []
    for folder in proc.glob("[0-9]*"):
        pid = int(folder.name)
        if pid in above:
            continue
        try:
            one = _read(folder, pid, own_network)
        except OSError:
            # It has ended meanwhile.
            continue
        if one is not None:
            found.append(one)
    return tuple(sorted(found, key=lambda one: one.pid))


def _read(folder: Path, pid: int, own_network: str | None) -> VllmProcess | None:
    words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
    own = os.geteuid() in (0, folder.stat().st_uid)
    title = _title(words)
    site = None
    if own and (title or _is_python(folder, words)):
        site = _site(folder)
    if title is None and site is None:
        return None
    network = _network(folder)
    return VllmProcess(
        pid=pid,
        title=title or Path(words[0]).name,
        age=_age(folder),
        is_own=own,
        same_network=network is None or network == own_network,
        switches=read_environ(folder) if own else None,
        site=site,
    )


def _title(words: list[str]) -> str | None:
    """What a command line says that runs vLLM, without its arguments."""
    named = _TITLE.match(words[0])
    if named:
        return named.group()
    program = next(
        (i for i, word in enumerate(words[:3]) if Path(word).name == "vllm"), None
    )
    if program is not None and words[program + 1 :][:1]:
        verb = words[program + 1]
        return f"vllm {verb}" if verb in _SERVING else None
    for option, module in itertools.pairwise(words):
        if option == "-m" and module.startswith("vllm.entrypoints"):
            return module
    return None


def _is_python(folder: Path, words: list[str]) -> bool:
    if _PYTHON.search(words[0]):
        return True
    try:
        return bool(_PYTHON.search(str((folder / "exe").readlink())))
    except OSError:
        return False


def _site(folder: Path) -> str | None:
    """The folder with the vLLM whose compiled modules are loaded."""
    try:
        found = _LOADED.search((folder / "maps").read_bytes())
    except OSError:
        return None
    return os.fsdecode(found.group(1)) if found else None


def read_environ(folder: Path) -> dict[str, str] | None:
    """The variables that concern us, as the process was started with.

    None also where they have been written over, as by a process that gives itself a
    title.
    """
    try:
        raw = (folder / "environ").read_bytes().decode(errors="replace")
    except OSError:
        return None
    pairs = [part.partition("=") for part in raw.split("\0") if "=" in part]
    if not any(name.isidentifier() for name, _, _ in pairs):
        return None
    return concerning({name: value for name, _, value in pairs})


def _network(folder: Path) -> str | None:
    try:
        return str((folder / "ns" / "net").readlink())
    except OSError:
        return None


def _age(folder: Path) -> float:
    """Seconds since it was started."""
    fields = (folder / "stat").read_text().rpartition(")")[2].split()
    started = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started)


def _above(proc: Path, pid: int) -> Iterator[int]:
    while pid > 0:
        yield pid
        try:
            fields = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            return
        pid = int(fields[1])
