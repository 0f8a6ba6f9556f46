"""Dotted names: followed through the scanned code, and split into module and name."""

from __future__ import annotations

from collections.abc import Iterable

from .raw import FileFacts, Setting

__all__ = ["Names", "is_class_name", "split_at"]

_HOPS = 12

_FAMILIAR = ("torch", "torch_npu", "transformers", "triton")
"""Packages that folders of a plugin are called after."""


def is_class_name(name: str) -> bool:
    """Whether a name is spelled like a class."""
    bare = name.lstrip("_")
    return bare[:1].isupper() and not bare.isupper()


def split_at(names: tuple[str, ...], count: int) -> str:
    """`module:Qual.name`, with so many parts before the colon."""
    return f"{'.'.join(names[:count])}:{'.'.join(names[count:])}"


class Names:
    """What the import statements of all files tell together."""

    def __init__(self, files: Iterable[FileFacts], setting: Setting) -> None:
        self._setting = setting
        self._modules: set[str] = set()
        self._exports: dict[str, dict[str, tuple[str, ...]]] = {}
        for facts in files:
            self._modules |= facts.modules
            self._exports[facts.source.module] = facts.exports
        # Scripts import the packages beside them without the folders around.
        self._beside = {
            tuple(module.split(".")[-2:])
            for module in self._exports
            if module.count(".") > 1
        }

    def follow(self, parts: tuple[str, ...]) -> tuple[str, ...] | None:
        """A name of the scanned code as the foreign name it stands for, if any."""
        for _ in range(_HOPS):
            if parts[0] not in self._setting.own:
                return parts if self.is_foreign(parts) else None
            step = self._step(parts)
            if not step or step == parts:
                return None
            parts = step
        return None

    def own(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        """A name of the scanned code as the one under which it is defined there."""
        for _ in range(_HOPS):
            step = self._step(parts)
            if not step or step == parts or step[0] not in self._setting.own:
                return parts
            parts = step
        return parts

    def is_foreign(self, parts: tuple[str, ...]) -> bool:
        if parts[:2] in self._beside and not self._setting.is_upstream(parts):
            return parts[0] in _FAMILIAR
        return self._setting.is_foreign(parts)

    def is_upstream(self, parts: tuple[str, ...]) -> bool:
        return self._setting.is_upstream(parts)

    def _step(self, parts: tuple[str, ...]) -> tuple[str, ...] | None:
        for count in range(len(parts) - 1, 0, -1):
            exports = self._exports.get(".".join(parts[:count]))
            if exports is not None:
                to = exports.get(parts[count])
                return None if to is None else (*to, *parts[count + 1 :])
        return None

    def target(self, parts: tuple[str, ...]) -> str | None:
        """`module:Qual.name`, as import statements and spelling suggest.

        What is known to be a module comes before the colon, and what looks like one:
        a name in small letters with more names after it.
        """
        if len(parts) < 2:
            return None
        count = max(1, self._known(parts))
        while count < len(parts) - 1 and _looks_like_module(parts[count]):
            count += 1
        return split_at(parts, count)

    def _known(self, parts: tuple[str, ...]) -> int:
        for count in range(len(parts) - 1, 0, -1):
            if ".".join(parts[:count]) in self._modules:
                return count
        return 0


def _looks_like_module(name: str) -> bool:
    return name.islower() and not name.startswith("__")
