"""Proof that upstream's own objects are back, byte for byte.

This room has the name of the public function `ascend_shims.verify()`. Python binds a
package's name in its parent when the first module of it is imported, which would put
this room in the function's place; so the room can be called, and does what that does.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    def __call__(self) -> Any:
        # By name: nothing in this room knows the process.
        process = import_module(f"{__name__.rpartition('.')[0]}.process")
        return process.the_process().verify()


sys.modules[__name__].__class__ = _Room
