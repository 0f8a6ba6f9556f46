"""Random weights in a safetensors file, from the standard library alone."""

from __future__ import annotations

import json
import math
import random
import sys
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..files import write_whole

__all__ = ["Weight", "write"]


@dataclass(frozen=True, slots=True)
class Weight:
    """One float32 tensor, uniform around `centre`; its name is its seed."""

    name: str
    shape: tuple[int, ...]
    spread: float
    """Standard deviation."""
    centre: float = 0.0

    @classmethod
    def ones(cls, name: str, size: int) -> Weight:
        """The neutral weight of a norm."""
        return cls(name, (size,), spread=0.0, centre=1.0)

    @classmethod
    def linear(cls, name: str, rows: int, columns: int, gain: float = 1.0) -> Weight:
        """A projection that keeps the size of its input, times `gain`."""
        return cls(name, (rows, columns), spread=gain / math.sqrt(columns))

    def values(self) -> array[float]:
        count = math.prod(self.shape)
        if not self.spread:
            return array("f", [self.centre]) * count
        draw = random.Random(self.name).random
        width = self.spread * math.sqrt(12.0)
        low = self.centre - width / 2
        return array("f", [low + width * draw() for _ in range(count)])


def write(path: Path, weights: Iterable[Weight]) -> None:
    """Write all of `weights` to `path`, replacing what was there."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    chunks: list[bytes] = []
    offset = 0
    for weight in weights:
        values = weight.values()
        if sys.byteorder == "big":
            values.byteswap()
        chunk = values.tobytes()
        end = offset + len(chunk)
        header[weight.name] = {
            "dtype": "F32",
            "shape": list(weight.shape),
            "data_offsets": [offset, end],
        }
        chunks.append(chunk)
        offset = end
    encoded = json.dumps(header).encode()
    # Readers map the file: data starts at a multiple of eight.
    encoded += b" " * (-len(encoded) % 8)
    write_whole(path, len(encoded).to_bytes(8, "little") + encoded + b"".join(chunks))
