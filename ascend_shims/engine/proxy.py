"""Standing in front of a callable that is not a plain function.

In a module of its own because `wrapt` takes a while to import, and most processes
never need it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, ClassVar

import wrapt

__all__ = ["Proxy", "proxy_before"]


class Proxy(wrapt.FunctionWrapper):  # type: ignore[type-arg]
    """In front of a callable that is not a plain function."""

    __slots__: ClassVar[tuple[str, ...]] = ()

    _self_current: list[Callable[..., Any]]
    _self_mark: Any

    def __reduce_ex__(self, protocol: Any) -> Any:
        try:
            return str(self.__wrapped__.__qualname__)
        except AttributeError:
            # An object without a name of its own travels by value, as it would
            # without us.
            return self.__wrapped__.__reduce_ex__(protocol)

    # A copy is what it would be without us: most of these are their own copies.

    def __copy__(self) -> Any:
        copied = copy.copy(self.__wrapped__)
        return self if copied is self.__wrapped__ else copied

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copied = copy.deepcopy(self.__wrapped__, memo)
        return self if copied is self.__wrapped__ else copied


def proxy_before(beneath: Any, call: Callable[..., Any]) -> Any:
    """A proxy that calls `call` and otherwise is `beneath`."""
    current = [call]

    def through(_wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        if instance is None:
            return current[0](*args, **kwargs)
        return current[0](instance, *args, **kwargs)

    wrapper = Proxy(beneath, through)
    wrapper._self_current = current
    return wrapper
