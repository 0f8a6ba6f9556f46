"""Generates tokens whenever it is told to, and says what that took.

Arguments: the model, whether gaps are applied, prompts, tokens for each.
"""

from __future__ import annotations

import sys
import time

from .answering import answer, arguments
from .engines import prepared, started


def main(model: str, shims: bool, prompts: list[list[int]], tokens: int) -> None:
    from ascend_shims.simnpu.runtime import generate

    gaps = prepared(shims)
    llm = started(model, shims)
    generate(llm, prompts, tokens)
    answer({"gaps": gaps}, goes_on=True)
    for _ in sys.stdin:
        begun, used = time.perf_counter(), time.process_time()
        made = generate(llm, prompts, tokens)
        seconds, processor = time.perf_counter() - begun, time.process_time() - used
        told = {"seconds": seconds, "processor": processor, "tokens": made}
        answer(told, goes_on=True)


if __name__ == "__main__":
    main(*arguments())
