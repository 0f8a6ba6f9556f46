"""Every way in which a patch has been seen to leave something behind, as code.

Each leak is what the patch of one gap does besides patching; `revert()` knows nothing
of it. `UP` is the made-up upstream, `kept` what the patch stands in front of.
"""

from __future__ import annotations

from .leak import Leak
from .process_leaks import PROCESS_LEAKS

__all__ = ["LEAKS", "SOURCES", "Leak"]

SOURCES = {
    "__init__": """
import colorsys, json, queue, socket, subprocess, textwrap, time
from . import a, b, evicted, lazy, listed, reloaded, targets
""",
    "a": """
import enum, functools, abc, dataclasses
from typing import Any

LIMIT = 3
nothing = None
TABLE = ["one", "two"]
WORDS = {"x", "y"}

def plain(x): return x
def other(x): return x
def with_default(x, call=plain, *, key=plain): return call(x)
def annotated(x: plain): return x

def closing(call):
    def inner(x): return call(x)
    return inner
closed = closing(plain)

@functools.lru_cache
def cached(x): return x

@functools.wraps(plain)
def wrapped(x): return plain(x)

partial = functools.partial(plain, 1)
DISPATCH = {"plain": plain, "other": other}

class Base:
    def method(self): return 1
    def second(self): return 2
    @staticmethod
    def static(x): return x
    @classmethod
    def named(cls): return cls.__name__
    @classmethod
    def made(cls): return cls.__name__
    @property
    def size(self): return 3

class Sub(Base): pass
class Swapped: pass
class Elder: pass
class Heir(Elder): pass
class Held: pass

class Abstract(abc.ABC): pass

class Colour(enum.Enum):
    RED = 1

@dataclasses.dataclass
class Data:
    items: list = dataclasses.field(default_factory=list)
    count: int = 0

INSTANCE = Base()
HELD = Held()
bound = INSTANCE.method
""",
    "b": "from .a import plain, other as renamed\n",
    "lazy": """
def __getattr__(name):
    if name.startswith("__"): raise AttributeError(name)
    return name
""",
    "reloaded": "def f(): pass\n",
    "evicted": "def f(): pass\n",
    "late": "def f(): pass\n",
    "listed": "import logging\nlog = logging.getLogger(__name__)\n",
}
"""The upstream's modules. `late` is not imported by what is compared."""


_COPIED = "own copy of what it inherits from UP.a:Base"

LEAKS = {
    # Undo.
    "an inherited method is left as an own copy": Leak(
        "a.Sub.method = a.Base.method", "UP.a:Sub.method", "copy-of-inherited", _COPIED
    ),
    "an inherited class method is left bound to the base": Leak(
        "a.Sub.made = a.Base.made", "UP.a:Sub.made", "copy-of-inherited", _COPIED
    ),
    "a static method comes back as a function": Leak(
        "a.Base.static = a.Base.static",
        "UP.a:Base.static",
        "plain-function",
        "was a staticmethod",
    ),
    "a class method comes back bound to its class": Leak(
        "a.Base.named = a.Base.named",
        "UP.a:Base.named",
        "bound-to-class",
        "bound to UP.a:Base",
    ),
    "what was missing is left as None": Leak(
        "a.missing = None", "UP.a:missing", "new", "None"
    ),
    "what was None is deleted": Leak(
        "del a.nothing", "UP.a:nothing", "gone", "it was None"
    ),
    "a wrapper stays": Leak(
        "a.other = lambda x: kept(x)", "UP.a:other", "other-object", "<lambda>"
    ),
    "a copy is put back": Leak(
        "import types; f = a.Base.second; a.Base.second = types.FunctionType("
        "f.__code__, f.__globals__)",
        "UP.a:Base.second",
        "other-object",
        "another object of the same code",
    ),
    "a foreign wrapper goes with it": Leak(
        "a.wrapped = a.wrapped.__wrapped__", "UP.a:wrapped", "other-object", "plain"
    ),
    "names come back in another order": Leak(
        "a.__dict__['LIMIT'] = a.__dict__.pop('LIMIT')", "UP.a", "order", "'LIMIT'"
    ),
    "a list comes back in another order": Leak(
        "a.TABLE.reverse()", "UP.a:TABLE", "order", "another order"
    ),
    "a name that __getattr__ serves becomes real": Leak(
        "lazy.served = lazy.served", "UP.lazy:served", "served-name-made-real"
    ),
    "an unset value is written": Leak(
        "a.LIMIT = Unset()", "UP.a:LIMIT", "other-kind", "Unset"
    ),
    "a plain value is changed": Leak(
        "a.TABLE.append('three')", "UP.a:TABLE", "new", "'three'"
    ),
    "an element is taken out": Leak(
        "a.WORDS.discard('x')", "UP.a:WORDS['x']", "gone", "'x'"
    ),
    # References.
    "an imported name keeps the wrapper": Leak(
        "b.renamed = wrapper", "UP.b:renamed", "other-object", "wrapper"
    ),
    "a default keeps it": Leak(
        "a.with_default.__defaults__ = (wrapper,)",
        "UP.a:with_default.__defaults__",
        "other-object",
    ),
    "a keyword default keeps it": Leak(
        "a.with_default.__kwdefaults__['key'] = wrapper",
        "UP.a:with_default.__kwdefaults__.key",
        "other-object",
        "wrapper",
    ),
    "a closure keeps it": Leak(
        "a.closed.__closure__[0].cell_contents = wrapper",
        "UP.a:closed.__closure__[0].cell_contents",
        "other-object",
        "wrapper",
    ),
    "a partial is rebuilt with it": Leak(
        "import functools; a.partial = functools.partial(wrapper, 1)",
        "UP.a:partial",
        "other-object",
    ),
    "a bound method is made anew": Leak(
        "a.bound = a.INSTANCE.method", "UP.a:bound", "other-object"
    ),
    "an entry of a table keeps it": Leak(
        "a.DISPATCH['plain'] = wrapper", "UP.a:DISPATCH.plain", "other-object"
    ),
    "a table has another order": Leak(
        "a.DISPATCH['plain'] = a.DISPATCH.pop('plain')", "UP.a:DISPATCH", "order"
    ),
    "a field's factory keeps it": Leak(
        "a.Data.__dataclass_fields__['items'].default_factory = wrapper",
        "UP.a:Data.__dataclass_fields__.items.default_factory",
        "other-kind",
        "wrapper",
    ),
    "a field's default is changed": Leak(
        "a.Data.__dataclass_fields__['count'].default = 7",
        "UP.a:Data.__dataclass_fields__.count.default",
        "other-value",
        "was 0 and is 7",
    ),
    "an annotation keeps it": Leak(
        "a.annotated.__annotations__['x'] = wrapper",
        "UP.a:annotated.__annotations__.x",
        "other-object",
    ),
    "an object keeps it": Leak(
        "a.INSTANCE.method = wrapper", "UP.a:INSTANCE.method", "new", "wrapper"
    ),
    "a class is swapped": Leak(
        "a.Swapped = type('Swapped', (a.Swapped,), {})",
        "UP.a:Swapped",
        "other-object",
        "Swapped",
    ),
    "a class gets another base": Leak(
        "a.Heir.__bases__ = (a.Base,)", "UP.a:Heir<mro>", "other-object"
    ),
    "an object gets another class": Leak(
        "a.HELD.__class__ = a.Sub", "UP.a:HELD", "other-class", "UP.a:Sub"
    ),
    "a class is registered with an abstract one": Leak(
        "a.Abstract.register(int)",
        "UP.a:Abstract<registered>[builtins:int]",
        "new",
        "int",
    ),
    # Functions that look the same.
    "a function gets other code": Leak(
        "a.plain.__code__ = a.annotated.__code__", "UP.a:plain.__code__", "other-object"
    ),
    "a mark is left on a function": Leak(
        "a.plain.patched = True", "UP.a:plain.__dict__", "other-kind"
    ),
    "a wrapper's chain is changed": Leak(
        "a.cached.__wrapped__ = wrapper",
        "UP.a:cached.__wrapped__",
        "other-object",
        "wrapper",
    ),
    "a property is rebuilt": Leak(
        "a.Base.size = property(a.Base.size.fget)",
        "UP.a:Base.size",
        "other-object",
        "of the same code",
    ),
    "a docstring is changed": Leak(
        "a.plain.__doc__ = 'patched'",
        "UP.a:plain.__doc__",
        "other-value",
        "was None and is 'patched'",
    ),
    "an enumeration's member is changed": Leak(
        "a.Colour.RED._value_ = 2", "UP.a:Colour.RED._value_", "other-value"
    ),
    **PROCESS_LEAKS,
}
