"""Reading a code base, and proving that off is upstream."""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from pathlib import Path

from . import rooms
from .children import ChildError, rig, run
from .figures import in_turns, spread
from .making import Benchmark, Effort, row
from .model import Row

__all__ = ["SCAN", "VERIFY"]

_FILES = 1000

_PARSE = """
import ast, pathlib, sys
files = sorted(pathlib.Path(sys.argv[1]).rglob("*.py"))
for file in files:
    ast.parse(file.read_bytes())
print(len(files))
"""


def _copied(target: Path) -> None:
    """A thousand files of vLLM's own, as if they were a plugin's."""
    words = ("-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    source = Path(run(rooms.environment(), *words).printed.strip()) / "vllm"
    for file in sorted(source.rglob("*.py"))[:_FILES]:
        there = target / file.relative_to(source)
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, there)


def scan(effort: Effort) -> list[Row]:
    """Raises `ChildError` where there are not that many files."""
    took, used = defaultdict(list), defaultdict(list)
    python = rooms.environment()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        plugin = Path(folder, "plugin")
        _copied(plugin)
        commands = {
            "scan": (python, "-m", "ascend_shims", "scan", plugin, "--json"),
            "parse": (python, "-c", _PARSE, plugin),
        }
        for order in in_turns(list(commands), effort.times(9, 1)):
            for name in order:
                done = run(*commands[name], ends=(0, 1))
                took[name].append(done.seconds)
                used[name].append(done.processor)
                if name == "parse" and done.answer() != _FILES:
                    raise ChildError(f"{done.answer()} files, not {_FILES}")
    what, other = f"shims scan of {_FILES:,} files", "one pass of ast.parse"
    note = "files of vLLM itself, judged by the release installed"
    return [
        row("scan", what, other, "s", took, "scan", "parse", note=note),
        row("scan-processor", what, other, "s of processor", used, "scan", "parse"),
    ]


def verify(effort: Effort) -> list[Row]:
    python = rooms.environment()
    took = []
    for _ in range(effort.times(3, 1)):
        done = run(python, "-m", "ascend_shims", "verify", "--json", env=rig())
        took.append(done.seconds)
    return [Row(name="verify", what="shims verify", unit="s", ours=spread(took))]


SCAN = Benchmark("scan", "Scanning a code base", scan)
VERIFY = Benchmark("verify", "Proof that off is upstream", verify)
