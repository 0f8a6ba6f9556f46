"""What goes wrong with other references to what is patched, one test a way."""

from __future__ import annotations

import importlib
import inspect
import pickle
import sys
from types import ModuleType
from typing import Any

import pytest

from ascend_shims.states import State

from .world import P, World

UP = """
    def f(x): return x
    class C:
        def m(self, x): return x
        @staticmethod
        def s(x): return x
        @classmethod
        def c(cls, x): return x
"""


def test_a_name_imported_before_follows_there_and_back(world: World) -> None:
    """`from up import f` before the patch keeps the stock function (and after undo
    keeps the patched one)."""
    world.upstream(UP, b="from UP.a import f as g\n").gap("one", P("a:f"))
    a, b = world.import_("a"), world.import_("b")
    user = world.user(
        """
        from UP.a import f
        class Holder:
            kept = f
            class Inner:
                kept = staticmethod(f)
        """
    )
    before = world.snapshot()
    world.apply()
    assert (b.g(1), user.f(1), user.Holder.kept(1)) == (10, 10, 10)
    assert world.rebound() == ["UP.b:g", "USER_0:Holder.kept", "USER_0:f"]
    world.revert()
    assert before.differences(world.snapshot()) == []
    assert user.f is b.g is a.f
    assert world.rebound() == []


def test_a_name_imported_while_patched_goes_back_too(world: World) -> None:
    """The same for an import between apply and undo."""
    world.upstream(UP).gap("one", P("a:f"))
    a = world.import_()
    stock = a.f
    world.apply()
    user = world.user("from UP.a import f\n")
    assert user.f(1) == 10
    world.revert()
    assert user.f is stock


@pytest.mark.parametrize("owner", ["C", "Heir"])
@pytest.mark.parametrize("name", ["m", "s", "c"])
def test_a_member_taken_while_patched_goes_back_too(
    world: World, owner: str, name: str
) -> None:
    """The same for a member of a class, its own or an inherited one."""
    world.upstream(UP + "    class Heir(C): pass\n")
    world.gap("one", P(f"a:{owner}.{name}"))
    world.gap("two", P(f"a:{owner}.{name}", "plus_one"))
    a = world.import_()
    it = getattr(a, owner)()
    stock = getattr(it if name == "m" else getattr(a, owner), name)
    world.apply(only=["one"])
    user = world.user("")
    user.taken = getattr(it if name == "m" else getattr(a, owner), name)
    user.table = [user.taken]
    user.function = vars(getattr(a, owner))[name]
    assert user.taken(1) == 10
    world.apply()
    assert user.taken(1) == 11
    assert user.table[0](1) == 11
    world.apply(only=["two"])
    assert user.taken(1) == 2
    world.revert()
    assert user.taken(1) == 1
    assert user.table[0](1) == 1
    assert user.taken == stock
    assert user.function is vars(a.C)[name]
    assert world.rebound() == []


@pytest.mark.parametrize("name", ["s", "c"])
def test_a_function_taken_out_of_a_class_follows(world: World, name: str) -> None:
    """The same for a static or class method that a module took out of its class."""
    world.upstream(UP).gap("one", P(f"a:C.{name}"))
    world.import_()
    user = world.user(f"from UP.a import C\ntaken = C.{name}\n")
    before = world.snapshot()
    world.apply()
    assert user.taken(1) == 10
    world.revert()
    assert before.differences(world.snapshot()) == []


def test_a_bound_method_in_a_module_comes_back_as_the_very_object(world: World) -> None:
    """The same for a bound method; binding anew would make another object."""
    world.upstream(UP).gap("one", P("a:C.m")).gap("two", P("a:C.m", "plus_one"))
    world.import_()
    user = world.user("from UP.a import C\nbound = C().m\n")
    very = user.bound
    world.apply(off=["two"])
    assert user.bound(1) == 10
    assert user.bound.__self__ is very.__self__
    world.apply()
    assert user.bound(1) == 11
    world.apply(off=["one"])
    assert user.bound(1) == 2
    world.revert()
    assert user.bound is very


def test_what_the_interpreter_shares_is_no_reference(world: World) -> None:
    """The same must not happen to a `None`, a number, a text or an empty tuple that
    is only equal by being shared."""
    values = {"none": "None", "one": "1", "yes": "True", "text": "'x'", "empty": "()"}
    world.upstream("\n".join(f"{name} = {v}" for name, v in values.items()) + "\n")
    code = "\n".join(f"new_{name} = object()" for name in values) + "\n"
    patches = [P(f"a:{name}", f"new_{name}", kind="replace") for name in values]
    world.gap("one", *patches, code=code)
    a = world.import_()
    user = world.user("\n".join(f"{name} = {v}" for name, v in values.items()) + "\n")
    mine = dict(vars(user))
    before = world.snapshot()
    world.apply()
    assert all(type(vars(a)[name]) is object for name in values)
    assert all(vars(user)[name] is mine[name] for name in values)
    assert world.rebound() == []
    world.revert()
    assert before.differences(world.snapshot()) == []


def test_a_value_that_is_known_elsewhere_stays_there_at_the_undo(world: World) -> None:
    """The same the other way round: the replacement is somebody else's object."""
    world.upstream("hook = None\ndef f(x): return x\n")
    world.gap("one", P("a:hook", "hook", kind="replace"), code="hook = list.append\n")
    a = world.import_()
    user = world.user("from UP.a import hook\nmine = list.append\n")
    world.apply()
    assert user.hook is None
    assert a.hook is list.append
    world.revert()
    assert a.hook is None
    assert user.mine is list.append


def test_the_patches_own_references_stay_stock(world: World) -> None:
    """The same for the patches package, which means upstream's own by the name."""
    world.upstream(UP)
    world.gap(
        "one",
        P("a:f", "mine"),
        code="from UP.a import f\ndef mine(call, x): return -f(x)\n".replace(
            "UP", world.up
        ),
    )
    a = world.import_()
    world.apply()
    assert a.f(1) == -1


HOLDERS = {
    "a default": "def held(x, f=f): return f(x)",
    "a keyword default": "def held(x, *, f=f): return f(x)",
    "an annotation": "def held(x: f): return x",
    "an annotation that was read": ("def held(x: f): return x\nheld.__annotations__"),
    "an attribute of a function": "def held(x): return x\nheld.f = f",
    "a closure": "def make(f):\n    return lambda x: f(x)\nheld = make(f)",
    "a partial": "import functools\nheld = functools.partial(f, 1)",
    "a partial in a list": "import functools\nheld = [functools.partial(f, 1)]",
    "a table": "held = {'key': f}",
    "a list": "held = [f]",
    "a tuple": "held = (f,)",
    "a table in a table": "held = {'outer': {'key': f}}",
    "a table in a class": "class Held:\n    table = {'key': f}",
    "an object": "class Held:\n    pass\nheld = Held()\nheld.f = f",
    "an object with slots": (
        "class Held:\n    __slots__ = ('f',)\nheld = Held()\nheld.f = f"
    ),
    "a method wrapper": (
        "import functools\nclass Held:\n    m = functools.partialmethod(f)"
    ),
    "a dataclass factory": (
        "import dataclasses\n@dataclasses.dataclass\nclass Held:\n"
        "    x: list = dataclasses.field(default_factory=f)"
    ),
    "a list that holds itself": "held = [f]\nheld.append(held)",
    "tables that hold each other": (
        "held, other = {'key': f}, {}\nheld['other'] = other\nother['held'] = held"
    ),
    "a single dispatch": (
        "import functools\n@functools.singledispatch\ndef held(x): return x\n"
        "held.register(int, f)"
    ),
}
NAMED = {
    "a default": ["a default of USER_0:held"],
    "a keyword default": ["a default of USER_0:held"],
    "an annotation": ["an annotation of USER_0:held"],
    "an annotation that was read": ["an annotation of USER_0:held"],
    "an attribute of a function": ["USER_0:held.f"],
    "a closure": ["the closure of USER_0:make.<locals>.<lambda>"],
    "a partial": ["a functools.partial USER_0:held"],
    "a partial in a list": ["a functools.partial in the list USER_0:held"],
    "a table": ["USER_0:held['key']"],
    "a list": ["the list USER_0:held"],
    "a tuple": ["the tuple USER_0:held"],
    "a table in a table": ["USER_0:held['outer']['key']"],
    "a table in a class": ["USER_0:Held.table['key']"],
    "an object": ["attribute f of an object of USER_0.Held"],
    "an object with slots": ["an object of USER_0.Held"],
    "a method wrapper": ["a functools.partialmethod USER_0:Held.m"],
    "a list that holds itself": ["the list USER_0:held"],
    "tables that hold each other": [
        "USER_0:held['key']",
        "USER_0:other['held']['key']",
    ],
    "a dataclass factory": [
        "an object of dataclasses.Field",
        "the closure of USER_0:Held.__init__",
    ],
    "a single dispatch": [
        f"<class 'int'> in the closure of functools:singledispatch.<locals>.{name}"
        for name in ("dispatch", "register")
    ],
}


@pytest.mark.parametrize("where", HOLDERS)
@pytest.mark.parametrize("nature", ["def", "async def", "generator"])
def test_what_keeps_the_old_object_is_named(
    world: World, where: str, nature: str
) -> None:
    """Bound methods, defaults, `functools.partial`, dispatch tables, dataclass
    factories, annotations, pydantic cores keep the old object."""
    source = {"generator": "def f(x): yield x\n"}.get(
        nature, f"{nature} f(x): return x\n"
    )
    world.upstream(source).gap("one", P("a:f", "through"))
    world.import_()
    user = world.user(f"from UP.a import f\n{HOLDERS[where]}\n")
    world.apply()
    stale = world.stale()
    assert stale == [f"UP.a:f is held by {place}" for place in NAMED[where]]
    world.revert()
    assert world.stale() == []
    del user


def test_a_bound_method_in_a_list_is_named(world: World) -> None:
    """The same for a bound method."""
    world.upstream(UP).gap("one", P("a:C.m"))
    world.import_()
    user = world.user("from UP.a import C\nhooks = [C().m]\n")
    world.apply()
    assert user.hooks[0](1) == 1
    assert world.stale() == [
        "UP.a:C.m is held by a bound method in the list USER_0:hooks"
    ]


@pytest.mark.parametrize("kind", ["wrap", "decorate", "replace"])
@pytest.mark.parametrize("nature", ["def", "async def", "generator"])
@pytest.mark.parametrize("target", ["a:f", "a:C.m", "a:C.s", "a:C.c", "a:C.p", "b:f"])
def test_what_we_hold_ourselves_is_not_named(
    world: World, kind: str, nature: str, target: str
) -> None:
    """The same must not be said of the patches and the toolkit themselves."""
    name = target.rpartition(".")[2].rpartition(":")[2]
    begin = "def" if nature == "generator" else nature
    does = "yield x" if nature == "generator" else "return x"
    world.upstream(
        f"""
        {begin} f(x=1): {does}
        class C:
            {begin} m(self, x=1): {does}
            @staticmethod
            {begin} s(x=1): {does}
            @classmethod
            {begin} c(cls, x=1): {does}
            @property
            def p(self): return 1
        """,
        b="from UP.a import f\n",
    )
    first = {"m": "self, ", "c": "cls, "}.get(name, "")
    mine = (
        "def mine(self): return 2"
        if name == "p"
        else f"{begin} mine({first}x=1): {does}"
    )
    code = {
        "wrap": "def mine(call, *args, **kw): return call(*args, **kw)\n",
        "decorate": (
            "import functools\ndef mine(function):\n"
            "    kept = function\n"
            f"    {mine.replace('mine', 'inner')}\n"
            "    inner.kept = lambda: kept\n"
            "    return functools.wraps(function)(inner)\n"
        ),
        "replace": f"{mine}\n",
    }[kind]
    world.gap("one", P(target, "mine", kind=kind), code=code)
    world.import_("a")
    world.import_("b")
    for _ in range(2):
        world.apply()
        assert world.state() is State.APPLIED, world.reason()
        assert world.stale() == []
        world.revert()


def test_a_wrapper_that_was_kept_does_what_the_slot_does(world: World) -> None:
    """The same for what was taken while patched: it follows every later change."""
    world.upstream(UP).gap("one", P("a:f")).gap("two", P("a:f", "plus_one"))
    world.import_()
    world.apply(only=["one"])
    user = world.user("from UP.a import f\ntable = {'f': f}\n")
    seen = []
    for only in (["one"], ["one", "two"], ["two"], [], ["one"], ["one", "two"], []):
        world.apply(only=only)
        seen.append(user.table["f"](1))
        assert seen[-1] == user.f(1)
        assert world.stale() == []
    assert seen == [10, 11, 2, 1, 10, 11, 1]


def test_a_wrapper_that_was_kept_costs_no_more_the_older_it_gets(world: World) -> None:
    """The same without a chain of wrappers that grows with every change."""
    world.upstream(UP).gap("one", P("a:f")).gap("two", P("a:f", "plus_one"))
    a = world.import_()
    world.apply(only=["one"])
    kept = a.f
    limit = sys.getrecursionlimit()
    for _ in range(20):
        world.apply()
        world.apply(only=["one"])
    sys.setrecursionlimit(len(inspect.stack()) + 15)
    try:
        assert kept(1) == 10
    finally:
        sys.setrecursionlimit(limit)


def test_a_kept_wrapper_beneath_a_foreign_one_never_calls_itself(world: World) -> None:
    """The same where the way from the slot leads through the wrapper that was kept."""
    world.upstream(UP).gap("one", P("a:f"))
    a = world.import_()
    world.apply()
    kept = a.f
    a.f = lambda x: -kept(x)
    world.revert()
    assert a.f(1) == -1
    world.apply()
    assert a.f(1) == -10
    assert kept(1) == 1
    world.revert()
    assert a.f(1) == -1


def test_looking_for_references_fires_no_lazy_import(world: World) -> None:
    """A sweep with `hasattr` over `sys.modules` fires lazy imports."""
    world.upstream(UP, heavy="loaded = True\n").gap("one", P("a:f"))
    lazy = world.user(
        """
        import importlib
        asked = []
        def __getattr__(name):
            asked.append(name)
            return importlib.import_module("UP.heavy")
        """
    )

    class Fussy(ModuleType):
        def __getattribute__(self, name: str) -> Any:
            lazy.asked.append(name)
            return super().__getattribute__(name)

    class Proxy:
        def __getattr__(self, name: str) -> Any:
            lazy.asked.append(name)
            raise RuntimeError("asked")

        @property  # type: ignore[misc]
        def __class__(self) -> Any:
            lazy.asked.append("__class__")
            raise RuntimeError("asked")

    class Meta(type):
        def __eq__(self, other: object) -> bool:
            lazy.asked.append("__eq__")
            return False

        __hash__ = None  # type: ignore[assignment]

    world.import_()
    fussy = Fussy(f"{world.prefix}_fussy")
    sys.modules[fussy.__name__] = fussy
    sys.modules[f"{world.prefix}_proxy"] = Proxy()  # type: ignore[assignment]
    lazy.held, lazy.Unhashable = Proxy(), Meta("Unhashable", (), {})
    lazy.made = lazy.Unhashable()
    # Every import looks at these; what follows is ours alone.
    del lazy.asked[:]
    world.apply()
    world.state()
    world.stale()
    world.revert()
    asked = list(lazy.asked)
    del sys.modules[fussy.__name__], sys.modules[f"{world.prefix}_proxy"]
    assert asked == []
    assert f"{world.up}.heavy" not in sys.modules


def test_a_lazy_module_is_not_loaded_by_looking_at_it(world: World) -> None:
    """The same for the standard library's own lazy modules."""
    from importlib.util import LazyLoader, module_from_spec

    from ascend_shims.environment.modules import find_module

    world.upstream(UP, heavy="loaded = True\n").gap("one", P("a:f"))
    world.import_()
    spec = find_module(f"{world.up}.heavy")
    assert spec is not None
    assert spec.loader is not None
    spec.loader = LazyLoader(spec.loader)
    lazy = module_from_spec(spec)
    sys.modules[spec.name] = lazy
    spec.loader.exec_module(lazy)
    world.apply()
    world.stale()
    world.revert()
    assert "loaded" not in object.__getattribute__(lazy, "__dict__")


def test_the_same_module_under_two_names_is_one(world: World) -> None:
    """The same module found twice is patched and put back once."""
    world.upstream(UP).gap("one", P("a:f"))
    a = world.import_()
    sys.modules[f"{world.prefix}_again"] = a
    before = world.snapshot()
    world.apply()
    assert world.rebound() == []
    world.revert()
    assert before.differences(world.snapshot()) == []


SPEC = """
    class Spec:
        size = 1
        def __init__(self, n): self.n = n
        def __eq__(self, other): return (type(self), self.n) == (type(other), other.n)
        def bytes(self): return self.n
    class Marker(Spec): pass
    def make(n): return Spec(n)
"""


def test_swapping_a_class_is_refused_with_its_reasons(world: World) -> None:
    """A class is swapped: pickling says "not the same object", `isinstance` on older
    subclasses fails, field validation breaks."""
    world.upstream(SPEC)
    world.gap("one", P("a:Spec", "Spec", kind="replace"), code="class Spec: pass\n")
    a = world.import_()
    stock = a.Spec
    world.apply()
    assert world.state() is State.BROKEN_CONTRACT
    for word in ("a:Spec is a class", "subclasses (Marker)", "swap_is_safe"):
        assert word in world.reason()
    assert a.Spec is stock


@pytest.mark.parametrize("kind", ["wrap", "decorate"])
def test_a_class_cannot_be_wrapped(world: World, kind: str) -> None:
    """The same for a function put in a class's place."""
    world.upstream(SPEC).gap("one", P("a:Spec", "through", kind=kind))
    world.import_()
    world.apply()
    assert world.state() is State.BROKEN_CONTRACT
    assert "patch its methods" in world.reason()


def test_a_method_patched_in_place_harms_no_pickle_and_no_isinstance(
    world: World,
) -> None:
    """The same, done right."""
    world.upstream(SPEC).gap("one", P("a:Spec.bytes"))
    a = world.import_()
    old = a.make(2)
    user = world.user("from UP.a import Spec, Marker, make\n")
    world.apply()
    assert (old.bytes(), user.make(3).bytes(), a.Marker(4).bytes()) == (20, 30, 40)
    assert pickle.loads(pickle.dumps(user.make(3))) == a.Spec(3)
    assert isinstance(a.Marker(1), a.Spec)
    assert isinstance(old, user.Spec)
    assert pickle.loads(pickle.dumps(a.Spec.bytes)) is a.Spec.bytes


def test_a_class_that_says_why_may_be_swapped_everywhere(world: World) -> None:
    """The same where the registry takes the responsibility."""
    world.upstream("class Spec:\n    size = 1\n")
    world.gap(
        "one",
        P("a:Spec", "Spec", kind="replace", swap_is_safe="nobody subclasses it"),
        code="class Spec:\n    size = 2\n",
    )
    a = world.import_()
    user = world.user("from UP.a import Spec\n")
    stock = a.Spec
    world.apply()
    assert (a.Spec.size, user.Spec.size) == (2, 2)
    world.revert()
    assert a.Spec is user.Spec is stock


def test_a_table_of_classes_is_patched_in_every_round(world: World) -> None:
    """The same for tables built before: the class in them is the one patched."""
    world.upstream(SPEC).gap("one", P("a:Spec.bytes"))
    a = world.import_()
    models = {"m": a.Spec}
    seen = []
    for _ in range(2):
        world.apply()
        seen.append(models["m"](1).bytes())
        world.revert()
        seen.append(models["m"](1).bytes())
    assert seen == [10, 1, 10, 1]


def test_the_order_of_import_and_apply_does_not_matter(world: World) -> None:
    """The same final bindings, whether apply comes before or after the imports."""
    world.upstream(UP, b="from UP.a import f, C\ng = f\ntaken = C.s\n")
    world.gap("one", P("a:f"), P("a:C.s"), P("b:g", "plus_one", scope="binding"))
    seen = []
    for early in (True, False):
        if early:
            world.apply()
        a, b = world.import_("a"), world.import_("b")
        if not early:
            world.apply()
        seen.append([a.f(1), b.f(1), b.g(1), b.taken(1), a.C().s(1)])
        world.revert()
        seen.append([a.f(1), b.f(1), b.g(1), b.taken(1), a.C().s(1)])
        for name in ("a", "b"):
            del sys.modules[f"{world.up}.{name}"]
        importlib.invalidate_caches()
    assert seen == [[10, 10, 11, 10, 10], [1] * 5] * 2
