"""`ascend_shims.verify()`: a running process against the files on disk."""

from __future__ import annotations

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
    assert told["proved"]
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
        {"path": "up_small.b:t0", "what": "a reference that moved along"},
        {"path": PATCHED, "what": "one"},
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
    "a class of somebody": (
        "class Other: pass\na.Held = Other",
        "UP.a:Held",
        "other-object",
        "is the class Other",
    ),
    "a class's heir": (
        "a.Held = type('Held', (a.Held,), {})",
        "UP.a:Held",
        "other-object",
        "is the class Held",
    ),
    "a mock of a class": (
        "from unittest import mock; a.Held = mock.MagicMock()",
        "UP.a:Held",
        "other-object",
        "is a MagicMock",
    ),
    "a value for a class": (
        "a.Held = 3",
        "UP.a:Held",
        "other-object",
        "is a int",
    ),
    "no class": ("del a.Held", "UP.a:Held", "gone", "is gone; the file defines it"),
    "another base": (
        "class Other: pass\na.Heir.__bases__ = (Other, a.Elder)",
        "UP.a:Heir<mro>",
        "new",
        "has the class Other",
    ),
    "a method that is inherited": (
        "a.Sub.second = lambda self: 3",
        "UP.a:Sub.second",
        "new",
        "is <lambda>",
    ),
    "a method that Python has": (
        "a.Base.__getattribute__ = lambda self, name: 3",
        "UP.a:Base.__getattribute__",
        "new",
        "is <lambda>",
    ),
    "a name of somebody": (
        "a.added = lambda: 3",
        "UP.a:added",
        "new",
        "is <lambda>",
    ),
    "an import of something else": (
        "b.renamed = lambda x: x",
        "UP.b:renamed",
        "other-object",
        "is <lambda>",
    ),
    "an import of Python's": (
        "b.renamed = print",
        "UP.b:renamed",
        "other-object",
        "is a buil",
    ),
    "a value for an import": (
        "b.renamed = 3",
        "UP.b:renamed",
        "other-object",
        "is a int",
    ),
    "another where a decorator made one": (
        "a.cached = lambda x: x",
        "UP.a:cached",
        "other-object",
        "is <lambda>",
    ),
    "one around what a decorator made": (
        "import functools; cached = a.cached\n"
        "@functools.wraps(cached)\ndef f(x): return cached(x)\na.cached = f",
        "UP.a:cached",
        "other-object",
        "is wrapped by cached of <string>",
    ),
    "another module": (
        "import types; sys.modules['UP.b'] = types.ModuleType('UP.b')",
        "UP.b",
        "other-object",
        "is another module in sys.modules than in UP",
    ),
    "nothing": ("del targets.t0", "UP.targets:t0", "gone", "is gone"),
}


@pytest.mark.parametrize("what", LEFT)
def test_what_nothing_accounts_for_is_a_difference(one: Town, what: str) -> None:
    code, path, kind, says = LEFT[what]
    told = one.python(f"{code}\nsay(told())")
    found = {(d["path"], d["kind"]): d["what"] for d in told["differences"]}
    assert list(found) == [(one.spelled(path), kind)]
    assert one.spelled(says) in next(iter(found.values()))
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


def test_what_only_looks_names_up_where_a_patch_is_is_no_difference(one: Town) -> None:
    """A kernel that a compiler made keeps its module's globals, and calls nothing."""
    one.write(
        "up_small/b.py",
        """
from .a import plain, other as renamed
from .targets import t0

class Kernel:
    def __init__(self, fn): self.fn, self.names = fn, fn.__globals__

@Kernel
def kernel(x): return t0(x)

class Holding:
    def __init__(self, fn): self.fn, self.uses = fn, [t0]

@Holding
def holding(x): return t0(x)
""",
    )
    told = one.python("""
        apply(); b.holding.uses[0] = targets.t0; say(told())
        """)
    assert told["differences"] == []
    assert {"path": "up_small.b:holding", "what": "a reference to one's wrapper"} in (
        told["patched"]
    )
    assert "up_small.b:kernel" not in {entry["path"] for entry in told["patched"]}


def test_where_nothing_of_upstream_is_loaded_nothing_is_proved(one: Town) -> None:
    told = one.python("""
        for name in [n for n in sys.modules if n.partition(".")[0] == "UP"]:
            del sys.modules[name]
        say([told(), str(ascend_shims.verify())])
        """)
    said, text = told
    assert (said["proved"], said["ok"], said["is_stock"]) == (False, False, False)
    assert said["compared"]["modules"] == 0
    assert text == "Nothing of upstream is loaded here, so nothing was proved."


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
