"""Ways of relying on upstream, and what each of them needs to stay true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from ascend_shims.errors import ConfigurationError
from ascend_shims.registry.model import How
from ascend_shims.upstream.facts.signature import Signature

__all__ = ["HOWS", "How", "Reliance", "RelianceError"]

HOWS: tuple[How, ...] = get_args(How)


class RelianceError(ConfigurationError):
    """A way of relying that is not one of ours, or a symbol that is not written so."""


@dataclass(frozen=True)
class Reliance:
    """One thing of upstream that we rely on, and how.

    `wraps_function`: calls the original with whatever it is given.
    `replaces_function`: has a replacement with exactly the baseline's parameters.
    `overrides_method`: a subclass overrides it with exactly the baseline's
    parameters and may call `super()` with them.
    `calls`: calls it as the baseline allows and uses what the baseline returns.
    `imports_name`: imports the name from that module.
    `subclass_init_signature`: subclasses it with an `__init__` of the baseline's
    parameters, is constructed by upstream, and calls `super().__init__` so.
    `reads_attribute`: reads it of an instance, class or module.
    `dataclass_fields`: constructs it with the baseline's fields by keyword, or
    subclasses it with fields of its own.
    `replaces_class_binding`: assigns another class to the module-level name and
    expects upstream to use it.
    """

    symbol: str
    how: How
    by_keyword: bool = False
    """Of `calls`: optional arguments are passed by keyword only, so that a
    parameter inserted among them does no harm."""

    replacement: Signature | None = None
    """Parameters of what stands in the symbol's place, without `self` and without
    the `call` of a wrapper; `None`: exactly the baseline's."""

    def __post_init__(self) -> None:
        module, _, qualname = self.symbol.partition(":")
        names = [*module.split("."), *qualname.split(".")]
        if not all(name.isidentifier() for name in names):
            raise RelianceError(
                f"{self.symbol!r} is not a symbol: write `package.module:Qual.name`"
            )
        if self.how not in HOWS:
            raise RelianceError(
                f"{self.how!r} is not a way of relying: write one of {', '.join(HOWS)}"
            )
