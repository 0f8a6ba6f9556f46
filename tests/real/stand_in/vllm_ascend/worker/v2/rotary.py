"""Tables of cos and sin, kept by the plugin."""

from __future__ import annotations

from typing import Any

from ascend_shims.patches import cos_sin

refreshed: list[int] = []
"""Tokens of each refresh."""


def update_cos_sin(runner: Any, batch: Any) -> None:
    refreshed.append(batch.num_tokens_after_padding)
    cos_sin.update_for_step(lambda _: batch, runner)
