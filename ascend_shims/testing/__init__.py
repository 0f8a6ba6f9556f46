"""For the tests of whoever uses shims: a scope for them, and a pytest plugin.

    from ascend_shims.testing import Shims

    with Shims.context() as shims:
        shims.apply(only=["cos-sin"])

The plugin, in `plugin`, needs pytest; nothing else here does.
"""

from __future__ import annotations

from .scope import Shims

__all__ = ["Shims"]
