"""Why a gap that is wanted could not be applied."""

from __future__ import annotations

import msgspec

from ..states import State
from .contract import BrokenContractError
from .slot import ImmutableOwnerError, MissingTargetError
from .table import ConflictError
from .wrappers import NotWrappableError

__all__ = ["Fault", "fault_of"]

_STATE_OF_ERROR = (
    (MissingTargetError, State.MISSING_TARGET),
    (BrokenContractError, State.BROKEN_CONTRACT),
    (NotWrappableError, State.BROKEN_CONTRACT),
    (ImmutableOwnerError, State.BROKEN_CONTRACT),
    (ConflictError, State.CONFLICT),
)


class Fault(msgspec.Struct, frozen=True):
    """The state that a failed gap is in, and the reason."""

    state: State
    reason: str


def fault_of(error: BaseException) -> Fault:
    """What an error on the way says about the gap."""
    for kind, state in _STATE_OF_ERROR:
        if isinstance(error, kind):
            return Fault(state, str(error))
    if not isinstance(error, (Exception, SystemExit)):
        return Fault(State.FAILED, f"interrupted ({type(error).__name__})")
    return Fault(State.FAILED, f"{type(error).__name__}: {error}")
