"""What outlives its revert in a running process, and who holds it."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Town

PATCHED = "up_small.targets:t0"


@pytest.fixture
def one(town: Town) -> Town:
    town.gap("one", "")
    return town


INSTANCE = "1 live object of up_small.a:{} may have been made while one was on"


def _on_a_method(town: Town) -> None:
    town.gap("one", "")
    town.gaps[0]["patches"][0]["target"] = "up_small.a:Elder.method"
    source = (town.root / "up_small/a.py").read_text()
    changed = source.replace(
        "class Elder: pass", "class Elder:\n    def method(self): 1"
    )
    town.write("up_small/a.py", changed)


def test_objects_that_were_made_meanwhile_ask_for_a_restart(town: Town) -> None:
    _on_a_method(town)
    before, on, off, gone = town.python("""
        old = a.Elder(); before = told(); del old
        apply(); made = a.Heir(); on = told()
        ascend_shims.revert(); off = told()
        del made; say([before, on, off, told()])
        """)
    assert before["restart"] == []
    assert on["restart"] == []
    assert off["restart"] == [INSTANCE.format("Heir")]
    assert (off["ok"], off["is_stock"], off["restart_needed"]) == (False, True, True)
    assert (gone["ok"], gone["restart"]) == (True, [])


def test_a_heap_that_upstream_froze_is_looked_at_all_the_same(town: Town) -> None:
    _on_a_method(town)
    told, frozen = town.python("""
        apply(); made = a.Elder(); gc.collect(); gc.freeze()
        ascend_shims.revert(); say([told(), gc.get_freeze_count()])
        """)
    assert told["restart"] == [INSTANCE.format("Elder")]
    assert frozen > 1000


KEPT: dict[str, tuple[str, str]] = {
    "in a list": ("kept = [targets.t0]", "the list __main__:kept"),
    "in a default": ("def f(x=targets.t0): pass", "a default of __main__:f"),
    "bound": (
        "import functools; kept = functools.partial(targets.t0, 1)",
        "a functools.partial __main__:kept",
    ),
    "in an object": ("kept = a.Held(); kept.call = targets.t0", "attribute call of an"),
}


BURIED = """
def foreign(call):
    @functools.wraps(call)
    def wrapper(*args): return call(*args)
    return wrapper
"""

HIDDEN: dict[str, tuple[str, str]] = {
    "beneath a foreign wrapper": (
        f"import functools{BURIED}targets.t0 = foreign(targets.t0)",
        f"what stands in {PATCHED}",
    ),
    "beneath one that only notes it": (
        "kept = targets.t0\ndef w(x): return x\nw.__wrapped__ = kept\n"
        "targets.t0 = w\ndel kept",
        f"what stands in {PATCHED}",
    ),
    "in a generator": (
        "def g(kept): yield\nkept = g(targets.t0); next(kept)",
        "what cannot be named",
    ),
    "in a list that holds itself": (
        "kept = [targets.t0]; kept.append(kept)",
        "the list __main__:kept",
    ),
    "in a context variable": (
        "import contextvars; v = contextvars.ContextVar('v'); v.set(targets.t0)",
        "what cannot be named",
    ),
    "in a thread": (
        "import threading; on, off = threading.Event(), threading.Event()\n"
        "def f(): kept = targets.t0; on.set(); off.wait()\n"
        "threading.Thread(target=f, daemon=True).start(); on.wait()",
        "local variable kept of __main__:f",
    ),
}


@pytest.mark.parametrize("how", HIDDEN)
def test_a_wrapper_that_outlives_its_revert_asks_for_a_restart(
    one: Town, how: str
) -> None:
    code, place = HIDDEN[how]
    on, off = one.python(f"""
apply()
{code}
on = told(); ascend_shims.revert(); say([on, told()])
""")
    assert (on["restart_needed"], off["restart_needed"]) == (False, True)
    said = [line for line in off["restart"] if place in line]
    assert said and said[0].startswith(f"our wrapper of {PATCHED} (one) is held by")


def test_stacked_wrappers_in_force_ask_for_no_restart(one: Town) -> None:
    one.gap("two", "")
    one.gaps[1]["patches"][0]["target"] = one.gaps[0]["patches"][0]["target"]
    one.gaps[1]["after"] = ["one"]
    on, off = one.python(
        "apply(); on = told(); ascend_shims.revert(); say([on, told()])"
    )
    assert set(on["gaps"].values()) == {"applied"}
    assert (on["ok"], on["restart"], off["ok"], off["restart"]) == (True, [], True, [])


@pytest.mark.parametrize("how", KEPT)
def test_who_keeps_a_wrapper_is_named(one: Town, how: str) -> None:
    code, place = KEPT[how]
    told = one.python(f"apply()\n{code}\nascend_shims.revert()\nsay(told())")
    (said,) = told["restart"]
    assert said.startswith(f"our wrapper of {PATCHED} (one) is held by {place}")
    assert told["is_stock"]
    assert told["restart_needed"]


def test_what_keeps_the_stock_function_is_told_without_a_restart(one: Town) -> None:
    told: Any = one.python("kept = [targets.t0]; apply(); say(told())")
    assert told["held"] == [f"{PATCHED} is held by the list __main__:kept"]
    assert (told["ok"], told["restart"]) == (True, [])
