"""Parameters of captured attention: what a replay must be told anew.

An attention operator in a FULL graph replays with the host-side lengths that it
was captured with, unless it is updated before. What is needed for that, the handle
of each captured operator, its event and its arguments, is kept in a `GraphParams`,
by the number of tokens that the graph was captured for. The attributes are those of
vllm-ascend's class of the same name, which serves the same purpose process-wide;
here each graph manager has its own, and makes it the current one, for the plugin's
operators as well, while it captures and replays.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import msgspec
import torch

from .operators import operators

__all__ = [
    "GraphParams",
    "capturing",
    "current",
    "is_capturing",
    "owned",
    "replayed",
    "stores",
    "using",
]


class GraphParams(msgspec.Struct, eq=False, weakref=True):
    """Parameters of the graphs of one graph manager, by number of tokens."""

    name: str
    """Whose they are: `target`, `draft prefill`, …"""
    events: dict[int, list[Any]] = msgspec.field(
        default_factory=lambda: defaultdict(list)
    )
    handles: dict[int, list[Any]] = msgspec.field(
        default_factory=lambda: defaultdict(list)
    )
    attn_params: dict[int, list[Any]] = msgspec.field(
        default_factory=lambda: defaultdict(list)
    )
    workspaces: dict[int, torch.Tensor] = msgspec.field(default_factory=dict)
    """uint8 scratch memory of the attention operator, one tensor a size."""
    weak: set[int] = msgspec.field(default_factory=set)
    """Sizes whose workspace is held weakly: its memory is the pool's alone."""
    is_updated: bool = True
    """Whether somebody will update it before each replay."""

    def __post_init__(self) -> None:
        _STORES.add(self)

    def add(self, num_tokens: int, event: Any, handle: Any, arguments: Any) -> None:
        """One more captured operator of the graph for `num_tokens`."""
        self.events[num_tokens].append(event)
        self.handles[num_tokens].append(handle)
        self.attn_params[num_tokens].append(arguments)

    def workspace(self, num_tokens: int, size: int) -> torch.Tensor:
        """`size` bytes of scratch for the operators of the graph being captured.

        They run one after the other and share it.
        """
        found = self.workspaces.get(num_tokens)
        if found is None or num_tokens in self.weak or found.nbytes < size:
            found = torch.empty(size, dtype=torch.uint8)
            self.workspaces[num_tokens] = found
            self.weak.discard(num_tokens)
        return found


_STORES: weakref.WeakSet[GraphParams] = weakref.WeakSet()

_FALLBACK = GraphParams("nobody's", is_updated=False)
"""Takes what is captured while no graph manager says that it will update it."""

_CURRENT: ContextVar[GraphParams | None] = ContextVar("graph_params", default=None)
_CAPTURING: ContextVar[bool] = ContextVar("capturing", default=False)
_REPLAYED: ContextVar[Any] = ContextVar("replayed", default=None)


def current() -> GraphParams:
    """The parameters of the graphs that are being captured or replayed."""
    return _CURRENT.get() or _FALLBACK


def owned() -> GraphParams | None:
    """As `current`; None where no graph manager owns what is captured."""
    return _CURRENT.get()


def stores() -> tuple[GraphParams, ...]:
    """All parameters in this process."""
    return tuple(_STORES)


def is_capturing() -> bool:
    """Whether a graph manager is at it: warm-up for a capture included."""
    return _CAPTURING.get()


def replayed() -> Any:
    """The graph that is being replayed: several may serve one number of tokens."""
    return _REPLAYED.get()


@contextmanager
def using(params: GraphParams, graph: Any = None) -> Iterator[None]:
    """`params` are the current ones inside, where `graph` is replayed."""
    token = _CURRENT.set(params)
    replay = _REPLAYED.set(graph)
    try:
        with operators().storing(params):
            yield
    finally:
        _REPLAYED.reset(replay)
        _CURRENT.reset(token)


@contextmanager
def capturing(params: GraphParams) -> Iterator[None]:
    """Graphs are captured inside, and `params` take their parameters."""
    token = _CAPTURING.set(True)
    try:
        with using(params):
            yield
    finally:
        _CAPTURING.reset(token)
