"""What of our registry's symbols is there at run time, as another tool writes them.

Answers dotted names; attributes that only instances have are left out.
"""

from __future__ import annotations

import contextlib
import importlib
from functools import reduce

from ascend_shims.registry import load
from ascend_shims.registry.loading import packaged
from ascend_shims.upstream.watched import from_registry

from .answering import answer


def main() -> list[str]:
    path = packaged()
    found = []
    for one in from_registry(load(None), path):
        if one.package != "vllm" or one.how == "removal_probe":
            continue
        for symbol in one.candidates:
            module, _, name = symbol.partition(":")
            with contextlib.suppress(ImportError, AttributeError):
                reduce(getattr, name.split("."), importlib.import_module(module))
                found.append(f"{module}.{name}")
                break
    return sorted(set(found))


if __name__ == "__main__":
    answer(main())
