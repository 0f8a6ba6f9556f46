"""The texts of a release whose list of files is not at hand, and may not be needed."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from .source import Source
from .texts import Texts, module_name

if TYPE_CHECKING:
    from .sources.parts import PartSource

__all__ = ["texts_of"]


def texts_of(source: Source) -> Texts:
    """All texts of a release, looked up one by one where that spares its list."""
    from .sources.parts import PartSource

    return _PartTexts(source) if isinstance(source, PartSource) else Texts(source)


class _Modules(Mapping[str, str]):
    """Modules and their paths."""

    def __init__(self, source: PartSource) -> None:
        self._source = source

    def __getitem__(self, module: str) -> str:
        path = self._source.path_of(module)
        if path is None:
            raise KeyError(module)
        return path

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(map(module_name, self._source.paths())))

    def __len__(self) -> int:
        return len(list(iter(self)))


class _Packages(Container[str]):
    def __init__(self, source: PartSource) -> None:
        self._source = source

    def __contains__(self, name: object) -> bool:
        return self._source.is_package(str(name))


class _PartTexts(Texts):
    def __init__(self, source: PartSource) -> None:
        self._part = source
        super().__init__(source)

    def _listed(self) -> Mapping[str, str]:
        return _Modules(self._part)

    @cached_property
    def packages(self) -> Container[str]:
        return _Packages(self._part)
