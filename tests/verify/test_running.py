"""`ascend_shims.verify()`: a running process against the files on disk."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Town

PATCHED = "up_small.targets:t0"


@pytest.fixture
def one(town: Town) -> Town:
    town.gap("one", "")
    return town


def test_a_process_without_patches_is_stock(one: Town) -> None:
    told = one.python("say(told())")
    assert (told["schema"], told["ok"], told["is_stock"]) == (1, True, True)
    assert told["restart_needed"] is False
    for name in ("differences", "patched", "held", "restart"):
        assert told[name] == []
    assert told["unread"] == {}
    # The targets, what the classes define, and a dozen functions.
    assert told["compared"]["modules"] == 8
    assert 110 < told["compared"]["definitions"] < 140
    assert told["compared"]["compiled"] == 1
    assert len(told["digest"]) == 32


def test_gaps_in_force_account_for_what_they_changed(one: Town) -> None:
    one.write(
        "up_small/b.py", "from .targets import t0\nfrom .a import other as renamed"
    )
    on, off = one.python(
        "apply(); on = told(); ascend_shims.revert(); say([on, told()])"
    )
    assert on["patched"] == [
        {"path": PATCHED, "what": "one"},
        {"path": "up_small.b:t0", "what": "a reference that moved along"},
    ]
    assert on["differences"] == []
    assert (on["ok"], on["is_stock"]) == (True, False)
    assert (off["ok"], off["is_stock"], off["patched"]) == (True, True, [])
    assert on["digest"] == off["digest"]


LEFT: dict[str, tuple[str, str, str, str]] = {
    "a wrapper of somebody": (
        "plain = a.plain\na.plain = lambda x: plain(x)",
        "UP.a:plain",
        "other-object",
        "is <lambda>",
    ),
    "one that looks the same": (
        "import functools; plain = a.plain\n"
        "@functools.wraps(plain)\ndef f(x): return plain(x)\na.plain = f",
        "UP.a:plain",
        "other-object",
        "is wrapped by plain of <string>",
    ),
    "one on a method": (
        "a.Base.second = lambda self: 2",
        "UP.a:Base.second",
        "other-object",
        "is <lambda>",
    ),
    "one on a static method": (
        "a.Base.static = staticmethod(lambda x: x)",
        "UP.a:Base.static",
        "other-object",
        "is <lambda>",
    ),
    "other code": (
        "a.plain.__code__ = (lambda x: 1).__code__",
        "UP.a:plain",
        "other-code",
        "has the code of plain",
    ),
    "a function of our patches": (
        "import pp_small.one as p; a.leaked = p.patch",
        "UP.a:leaked",
        "other-object",
        "holds patch of pp_small.one",
    ),
    "a class of our patches": (
        "import pp_small.one as p; a.Held = p.Unset",
        "UP.a:Held",
        "other-object",
        "holds Unset of pp_small.one",
    ),
    "a wrapper of ours that was put elsewhere": (
        "apply(); a.leaked = targets.t0; w = [a.leaked]; ascend_shims.revert();"
        "a.leaked = w[0]",
        "UP.a:leaked",
        "other-object",
        "holds our wrapper for one",
    ),
    "nothing": ("del targets.t0", "UP.targets:t0", "gone", "is gone"),
}


@pytest.mark.parametrize("what", LEFT)
def test_what_nothing_accounts_for_is_a_difference(one: Town, what: str) -> None:
    code, path, kind, says = LEFT[what]
    told = one.python(f"{code}\nsay(told())")
    found = {(d["path"], d["kind"]): d["what"] for d in told["differences"]}
    assert list(found) == [(one.spelled(path), kind)]
    assert says in next(iter(found.values()))
    assert (told["ok"], told["is_stock"]) == (False, False)


def test_a_file_that_changed_under_the_process_is_told(one: Town) -> None:
    before, after = one.python("""
        import pathlib
        before = told()
        file = pathlib.Path(a.__file__)
        text = file.read_text()
        text = text.replace("cached(x): return x", "cached(x): return 2")
        file.write_text(text.replace("other(x): return x", "other(x): return 3"))
        say([before, told()])
        """)
    assert before["differences"] == []
    said = [(d["path"], d["kind"]) for d in after["differences"]]
    assert said == [
        ("up_small.a:other", "other-code"),
        ("up_small.a:cached", "other-code"),
    ]
    assert before["digest"] != after["digest"]


def test_a_file_that_cannot_be_read_is_told(one: Town) -> None:
    told = one.python("""
        import pathlib
        pathlib.Path(targets.__file__).unlink()
        say(told())
        """)
    assert list(told["unread"]) == ["up_small.targets"]


def test_upstream_may_patch_itself_and_decorate(one: Town) -> None:
    one.write(
        "up_small/evicted.py",
        """
import functools
from . import a

def wrapping(call):
    @functools.wraps(call)
    def inner(*args): return call(*args)
    return inner

a.annotated = wrapping(a.annotated)

@wrapping
def decorated(x): return x

if a:
    def either(): return 1
else:
    def either(): return 2

def twice(): return 1
def twice(): return 2

def passing(): return 1
del passing

def cached(x): return x

def cache():
    global cached
    cached = functools.lru_cache(cached)

cache()

class Slotted:
    __slots__ = ("x",)
    def __private(self): return 1
    @property
    def size(self): return 1
    @size.setter
    def size(self, value): pass
""",
    )
    assert one.python("say(told())")["differences"] == []


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


def test_the_room_may_be_imported_before_the_function_is_called(one: Town) -> None:
    told = one.python("import ascend_shims.verify.proof; say(told())")
    assert told["is_stock"]


def test_the_value_is_frozen_and_says_it_all(one: Town) -> None:
    told = one.python("""
        import dataclasses
        v = ascend_shims.verify()
        try:
            v.differences = ()
        except dataclasses.FrozenInstanceError:
            say([v.is_stock, v.ok, v.restart_needed, v.digest == told()["digest"]])
        """)
    assert told == [True, True, False, True]
