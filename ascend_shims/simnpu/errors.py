"""What the software NPU refuses, each in the way of the device, by a name."""

from __future__ import annotations

from ascend_shims.errors import ShimsError

__all__ = [
    "HostLengthsMissingError",
    "PackedCacheError",
    "RegistrationError",
    "RopeTablesMissingError",
    "SimNPUError",
    "StaleLengthsError",
    "StridedCacheError",
    "WorkspaceError",
]


class SimNPUError(ShimsError):
    """An operator of the software NPU was not given what it needs."""


class PackedCacheError(SimNPUError):
    """K and V came as one packed tensor. Gap: kv-cache."""


class StridedCacheError(SimNPUError):
    """K or V are not contiguous within a block. Gap: kv-cache."""


class HostLengthsMissingError(SimNPUError):
    """The sequence lengths are not on the host. Gap: input-buffers."""


class RegistrationError(SimNPUError):
    """Memory that a transfer engine does not register. Gap: kv-cache."""


class RopeTablesMissingError(SimNPUError):
    """Cos and sin of the step were not set. Gap: cos-sin."""


class StaleLengthsError(SimNPUError):
    """A graph was replayed with lengths of another step. Gap: graph-manager, or
    speculator-graph-manager for a draft's graph."""


class WorkspaceError(SimNPUError):
    """The scratch memory handed to an operator is too small."""
