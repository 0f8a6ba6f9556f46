"""Found first by every Python under `shims run`: applies, then steps aside.

Not part of the package's modules: `shims run` puts this directory on
PYTHONPATH. A `sitecustomize` that the environment has of its own is run after.
"""

import sys
from pathlib import Path


def _apply() -> None:
    try:
        from ascend_shims.plugin import register
    except ImportError as error:
        print(
            f"shims run: no shims in {sys.executable}: {error}; "
            "install ascend-shims for this interpreter",
            file=sys.stderr,
        )
        return
    register()


def _hand_on() -> None:
    here = str(Path(__file__).parent)
    sys.path[:] = [entry for entry in sys.path if entry != here]
    ours = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # type: ignore[import-not-found] # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = ours


_apply()
_hand_on()
