"""The real guard, before the made-up runner."""

from ascend_shims.patches.runtime_guard import bind_guard, guard_sample, guard_step

__all__ = ["bind_guard", "guard_sample", "guard_step"]
