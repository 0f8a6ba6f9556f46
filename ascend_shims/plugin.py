"""What vLLM calls in every process it starts: `vllm.general_plugins`.

It runs while vLLM is only partly initialised, so nothing of vLLM or torch is
imported from here.
"""

from __future__ import annotations

import logging
import os

__all__ = ["register"]


def register() -> None:
    """Apply what the environment says. Never raises, unless strict is set."""
    from .errors import ShimsError
    from .process import the_process
    from .switches import read_switches

    try:
        the_process().start()
    except Exception as error:
        if read_switches(os.environ).strict:
            raise
        log = logging.getLogger("ascend_shims")
        if isinstance(error, ShimsError):
            log.warning("no shims in this process: %s", error)
        else:
            log.exception("no shims in this process")
