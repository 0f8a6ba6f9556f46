"""`shared-kv-backing`: the marker by which downstream code asks a runner for it.

Upstream places every layer's cache on one standardized backing from 0.29 on, and
`kv-cache` keeps to that, so a runner of upstream's may say that it supports it.
"""

from __future__ import annotations

__all__ = ["supports_standardized_shared_kv_backing"]

supports_standardized_shared_kv_backing = True
