"""Shims for the length of a block, a test or a fixture."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import ascend_shims

__all__ = ["Shims"]


class Shims:
    """The public functions, in a scope that leaves the process as it was found.

    Whatever is applied or reverted inside, through this object or not, is gone when
    the scope ends, also when it ends with an exception. Scopes nest: one inside
    another returns to what the outer one had applied.
    """

    apply = staticmethod(ascend_shims.apply)
    disabled = staticmethod(ascend_shims.disabled)
    revert = staticmethod(ascend_shims.revert)
    status = staticmethod(ascend_shims.status)

    @classmethod
    @contextmanager
    def context(cls) -> Iterator[Shims]:
        """A scope of your own, for a fixture of any scope or for a block.

        Raises `RestoreError` at its end where a slot could not be put back.
        """
        from ..process import the_process

        back = the_process().remember()
        try:
            yield cls()
        finally:
            back()
