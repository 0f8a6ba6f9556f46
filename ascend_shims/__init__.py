"""Reversible, version-gated shims that run upstream vLLM on Ascend NPUs.

    import ascend_shims
    report = ascend_shims.apply()

Importing this package changes nothing and imports neither vLLM nor torch. The
functions here are the whole public face; each returns a fresh `Report` that was
read from the live bindings.

There is no assert here: PYTEST_DONT_REWRITE, or pytest, which has a plugin of ours,
complains where this is imported before it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from .ranks.compare import Ranks
    from .report import Report
    from .verify.running import Verification

__version__ = "0.1.0"

__all__ = [
    "__version__",
    "apply",
    "check_ranks",
    "disabled",
    "revert",
    "status",
    "verify",
]


def apply(
    *,
    only: Iterable[str] | None = None,
    disable: Iterable[str] = (),
    strict: bool | None = None,
    registry: str | PathLike[str] | None = None,
    allow: Iterable[str] = (),
) -> Report:
    """Bring this process to what the registry, the environment and you want.

    Calling it again is harmless; calling it with other arguments moves to what
    those say. What the environment switches off stays off. The choice reaches
    the processes that this one starts through environment variables.

    Args:
        only: apply these gaps and no others.
        disable: leave these gaps off.
        strict: raise if a gap that is wanted is not in force afterwards.
            Default: `ASCEND_SHIMS_STRICT`.
        registry: another registry file. Default: `ASCEND_SHIMS_REGISTRY`, else
            the one that came with this package.
        allow: packages that this registry may take its patches from, besides ours.
            Those of `ASCEND_SHIMS_ALLOW` are allowed as well.

    Raises:
        SwitchError: `only` or `disable` names a gap that does not exist.
        RegistryError: the registry cannot be used; names every fault in it.
        NotAllowedError: the registry's patches are in a package that is not allowed.
        UnappliedError: strict, and a wanted gap is not in force.
        RestoreError: a gap to be taken back could not be, everywhere.
    """
    from pathlib import Path

    from .process import the_process

    return the_process().apply(
        only=_ids(only),
        disable=_ids(disable) or (),
        strict=strict,
        registry=Path(registry).absolute() if registry is not None else None,
        allow=_ids(allow) or (),
    )


def status() -> Report:
    """Where every gap stands in this process now, read from the live bindings."""
    from .process import the_process

    return the_process().status()


def revert(*gaps: str) -> Report:
    """Take gaps back, all of them if none is named: the stock objects return.

    A gap that needs one of these goes with it. Reverting what is not applied
    does nothing.

    Raises:
        SwitchError: there is no such gap.
        RestoreError: some slot could not be put back; all others have been.
    """
    from .process import the_process

    return the_process().revert(gaps)


def verify() -> Verification:
    """Whether upstream is byte-identical in this process: compared with its files.

    Tells what gaps in force account for, what nothing accounts for, and what still
    holds something of ours after a revert, so that a restart is due. Takes seconds.
    `shims verify` compares with a stock interpreter, which proves more.
    """
    from .process import the_process

    return the_process().verify()


@contextmanager
def disabled(*gaps: str) -> Iterator[None]:
    """Have `gaps` out of force inside the block, all if none is named.

    Raises `SwitchError` where there is no such gap.
    """
    from .process import the_process

    back = the_process().switch_off(gaps)
    try:
        yield
    finally:
        back()


def check_ranks(
    engine: Any, *, timeout: float | None = None
) -> Ranks | Awaitable[Ranks]:
    """What every rank of a running engine carries, which has to be the same.

    All ranks are compared when they start; this asks them again, through vLLM's
    `collective_rpc`, for example after one of them was told to revert.

    Args:
        engine: a `vllm.LLM`, an `LLMEngine` or an executor; or an `AsyncLLM`, and
            then the result is to be awaited.
        timeout: seconds to wait for the ranks, as `collective_rpc` takes it.

    Raises:
        RanksDifferError: names the ranks and the gaps that differ, and ranks
            without patches, where others or this process carry some.
        NotAnEngineError: `engine` is none of these.
    """
    from .process import the_process
    from .ranks.asking import ask

    return ask(engine, timeout, expected=the_process().wants_some)


def _ids(gaps: Iterable[str] | None) -> list[str] | None:
    # A lone string is an iterable of letters; it surely means one gap.
    return [gaps] if isinstance(gaps, str) else None if gaps is None else list(gaps)
