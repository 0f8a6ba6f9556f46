"""What the files of CANN and of the driver, and the device nodes, say."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..cann import CannSeen, Named, Toolkit

__all__ = ["library_folders", "read_cann"]

_VARIABLES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")
_USUAL = (
    "usr/local/Ascend/cann",
    "usr/local/Ascend/ascend-toolkit/latest",
    "usr/local/Ascend/nnae/latest",
)
_MANAGERS = ("davinci_manager", "devmm_svm", "hisi_hdc")

_RUNNING = re.compile(r"^\w*toolkit\w*_version\s*=\s*\[?([^\]\n]+)\]?", re.MULTILINE)
_VERSION = re.compile(r"^version\s*=\s*([^\s]+)", re.MULTILINE | re.IGNORECASE)
_INSTALLED_TO = re.compile(r"^Driver_Install_Path_Param\s*=\s*(.+)$", re.MULTILINE)


def read_cann(
    environ: Mapping[str, str], *, has_torch_npu: bool, root: Path = Path("/")
) -> CannSeen:
    """Look where variables say, and in the usual places beneath `root`."""
    named = tuple(
        Named(variable, folder, _toolkit(Path(folder)))
        for variable in _VARIABLES
        if (folder := environ.get(variable, "").strip())
    )
    usual = tuple(
        toolkit for place in _USUAL if (toolkit := _toolkit(root / place)) is not None
    )
    nodes = sorted((root / "dev").glob("davinci[0-9]*"), key=_number)
    there = [one.toolkit for one in named if one.toolkit] + list(usual)
    return CannSeen(
        named=named,
        usual=usual,
        set_env=next((s for one in there for s in _scripts(Path(one.folder))), None),
        driver=_driver(root),
        nodes=tuple(map(str, nodes)),
        closed=tuple(str(n) for n in nodes if not os.access(n, os.R_OK | os.W_OK)),
        managers_missing=tuple(
            str(node)
            for name in _MANAGERS
            if nodes and not (node := root / "dev" / name).exists()
        ),
        has_torch_npu=has_torch_npu,
    )


def library_folders(seen: CannSeen, root: Path = Path("/")) -> tuple[Path, ...]:
    """Where CANN and the driver keep shared libraries, whether the loader knows or
    not."""
    there = [one.toolkit for one in seen.named if one.toolkit] + list(seen.usual)
    driver = root / "usr/local/Ascend/driver/lib64"
    return (
        *(Path(one.folder) / "lib64" for one in there),
        *(driver / part for part in ("", "common", "driver")),
    )


def _number(node: Path) -> tuple[int, str]:
    digits = node.name.removeprefix("davinci")
    return (int(digits) if digits.isdigit() else 0, node.name)


def _toolkit(folder: Path) -> Toolkit | None:
    return Toolkit(str(folder), _version(folder)) if folder.is_dir() else None


def _version(folder: Path) -> str | None:
    for file in _version_files(folder):
        text = _text(file)
        found = _RUNNING.search(text) or _VERSION.search(text)
        if found:
            # The part behind a colon is the release; before it is a build's number.
            return found.group(1).rpartition(":")[2].strip()
    return None


def _version_files(folder: Path) -> Iterator[Path]:
    yield folder / "version.cfg"
    yield from sorted(folder.glob("*/ascend_*_install.info"))
    yield from sorted(folder.glob("ascend_*_install.info"))
    for place in ("", "toolkit", "compiler", "runtime"):
        yield folder / place / "version.info"


def _scripts(folder: Path) -> Iterator[str]:
    """`set_env.sh` of an installation, or of the folder of installations."""
    for place in (folder, folder.parent):
        if (place / "set_env.sh").is_file():
            yield str(place / "set_env.sh")


def _driver(root: Path) -> str | None:
    places = [root / "usr/local/Ascend"]
    found = _INSTALLED_TO.search(_text(root / "etc/ascend_install.info"))
    if found:
        places.insert(0, root / found.group(1).strip().lstrip("/"))
    for place in places:
        version = _VERSION.search(_text(place / "driver/version.info"))
        if version:
            return version.group(1)
    return None


def _text(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return stream.read(1 << 16).decode("utf-8", "replace")
    except OSError:
        return ""
