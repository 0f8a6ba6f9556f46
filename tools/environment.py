"""Runs a tool by the interpreter that tools/env made, whoever it was started by."""

import importlib.util
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".venv" / "bin" / "python"


def enter() -> None:
    """Start again there, unless the project's packages are to be had here."""
    sys.path.insert(0, str(ROOT))
    if importlib.util.find_spec("msgspec") is not None:
        return
    if not PYTHON.exists() or os.environ.get("ASCEND_SHIMS_ENTERED") == str(PYTHON):
        sys.exit(f"{sys.argv[0]}: needs the project's environment; run tools/env first")
    os.environ["ASCEND_SHIMS_ENTERED"] = str(PYTHON)
    os.execv(PYTHON, [str(PYTHON), *sys.argv])
