"""A KV transfer connector for tests: it registers memory as a transfer engine does.

Configure it with `kv_connector="SimTransferConnector"` and
`kv_connector_module_path="ascend_shims.simnpu.transfer"`. It moves nothing; what it
does is refuse memory that a transfer engine of the device refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorBase_V1,
    KVConnectorMetadata,
)

from ascend_shims.device.kv_memory import GRANULE, Backing, backings

from .errors import RegistrationError

__all__ = ["SimTransferConnector", "TransferEngine"]


class TransferEngine:
    """Registers memory in units of 2 MiB, each address once."""

    def __init__(self) -> None:
        self.registered: list[Backing] = []

    def register(self, backing: Backing) -> None:
        """Raises `RegistrationError`."""
        where = f"{backing.length} bytes at {backing.base:#x}"
        layers = ", ".join(backing.layers)
        for what, number in (("starts", backing.base), ("extends", backing.length)):
            if number % GRANULE:
                raise RegistrationError(
                    f"the transfer engine registers multiples of 2 MiB, and the "
                    f"backing of {layers}, {where}, {what} at none; switch the gap "
                    "kv-cache on"
                )
        end = backing.base + backing.length
        for other in self.registered:
            if backing.base < other.base + other.length and other.base < end:
                raise RegistrationError(
                    f"{where}, the backing of {layers}, is registered already, with "
                    f"{', '.join(other.layers)}; register each backing once"
                )
        self.registered.append(backing)


class SimTransferConnector(KVConnectorBase_V1):  # type: ignore[misc]
    """Takes part in every step, and has nothing to load or to save."""

    def __init__(self, vllm_config: Any, role: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(vllm_config, role, *args, **kwargs)
        self.engine = TransferEngine()

    def register_kv_caches(self, kv_caches: Mapping[str, torch.Tensor]) -> None:
        for backing in backings(kv_caches):
            self.engine.register(backing)

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        pass

    def wait_for_layer_load(self, layer_name: str) -> None:
        pass

    def save_kv_layer(
        self, layer_name: str, kv_layer: Any, attn_metadata: Any, **kwargs: Any
    ) -> None:
        pass

    def wait_for_save(self) -> None:
        pass

    def get_num_new_matched_tokens(
        self, request: Any, num_computed_tokens: int
    ) -> tuple[int, bool]:
        return 0, False

    def update_state_after_alloc(
        self, request: Any, blocks: Any, num_external_tokens: int
    ) -> None:
        pass

    def build_connector_meta(self, scheduler_output: Any) -> KVConnectorMetadata:
        return KVConnectorMetadata()
