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
        self._stars: dict[str, FileFacts] = {}
        self._called: dict[str, set[tuple[str, ...]]] = {}
        for facts in files:
            self._modules |= facts.modules
            self._exports[facts.source.module] = facts.exports
            if facts.stars:
                self._stars[facts.source.module] = facts
            for parts, _ in facts.imports:
                if is_class_name(parts[-1]):
                    self._called.setdefault(parts[-1], set()).add(parts)
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
                module = ".".join(parts[:count])
                to = exports.get(parts[count]) or self._starred(module, parts[count])
                return None if to is None else (*to, *parts[count + 1 :])
        return None

    def _starred(self, module: str, name: str, deep: int = 0) -> tuple[str, ...] | None:
        """Where a name comes from that a module has by `import *`."""
        facts = self._stars.get(module)
        if facts is None or name in facts.bound or name.startswith("_"):
            return None
        for home in reversed(facts.stars):
            if home[0] not in self._setting.own:
                return (*home, name)
            inner = ".".join(home)
            if name in self._exports.get(inner, {}):
                return self._exports[inner][name]
            found = self._starred(inner, name, deep + 1) if deep < _HOPS else None
            if found is not None:
                return found
        return None

    def class_called(self, name: str) -> tuple[str, ...] | None:
        """The one class of upstream of that name that is imported anywhere here."""
        found = self._called.get(name, set())
        return next(iter(found)) if len(found) == 1 else None

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
