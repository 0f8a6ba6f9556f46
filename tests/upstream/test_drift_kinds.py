"""Kinds of change that upstream makes, and what each does to who relies on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import pytest

from ascend_shims.upstream.compare import judge
from ascend_shims.upstream.contract import How, Reliance
from ascend_shims.upstream.tree import Tree

TreeOf = Callable[..., Tree]
Files = str | Mapping[str, str]


class Row(NamedTuple):
    about: str
    old: Files
    new: Files
    symbol: str
    how: How
    kind: str
    breakage: str | None = None
    moved_to: str | None = None


DRAW = """
def draw_sample(logits, temperature):
    noise = gumbel_noise(logits)
    return argmax_rows(logits / temperature + noise)
"""

DRAFTER = """
from up.draw import draw_sample
class Drafter:
    def step(self, logits):
        return draw_sample(logits, 1)
"""

HOOKS = """
class Manager:
    def take_blocks(self, n): return n
class Coordinator:
    def __init__(self): self.managers = Manager()
    def take_blocks(self, n): return self.managers.take_blocks(n)
def run(coordinator: Coordinator):
    return coordinator.take_blocks(1)
"""

LAYERS = """
class Base:
    def __init__(self, n, bias=True): self.n = n
class Plain(Base):
    def __init__(self, n, bias=True): super().__init__(n, bias)
class Split(Base):
    def __init__(self, n, bias=True): super().__init__(n, bias)
def build():
    return Plain(1), {split}
"""

OPTIONS = "def f(a, b=1, c=2): return a\ndef g(): return f({call})\n"
INSERTED = "def f(a, x=0, b=1, c=2): return a\ndef g(): return f({call})\n"

BINDINGS = [
    Row(
        "the class that used it inherits that from another module now",
        {"up/draw.py": DRAW, "up/m.py": DRAFTER},
        {
            "up/draw.py": DRAW,
            "up/base.py": DRAFTER.replace("Drafter", "AnyDrafter"),
            "up/m.py": "from up.base import AnyDrafter\n"
            "class Drafter(AnyDrafter): ...\n",
        },
        "up.m:draw_sample",
        "replaces_function",
        "broken",
        "moved",
        "up.base:draw_sample",
    ),
    Row(
        "the module that used it was renamed",
        {"up/draw.py": DRAW, "up/m.py": DRAFTER},
        {"up/draw.py": DRAW, "up/drafting.py": DRAFTER},
        "up.m:draw_sample",
        "replaces_function",
        "broken",
        "moved",
        "up.drafting:draw_sample",
    ),
    Row(
        "its user left, and something else in the module uses it",
        {"up/draw.py": DRAW, "up/m.py": DRAFTER},
        {
            "up/draw.py": DRAW,
            "up/drafting.py": DRAFTER,
            "up/m.py": "from up.draw import draw_sample\n"
            "def warm_up(): draw_sample(1, 2)\n",
        },
        "up.m:draw_sample",
        "replaces_function",
        "broken",
        "not-looked-up",
        "up.drafting:draw_sample",
    ),
    Row(
        "one of its users left",
        {"up/draw.py": DRAW, "up/m.py": DRAFTER + "def x(): draw_sample(1, 2)\n"},
        {
            "up/draw.py": DRAW,
            "up/drafting.py": DRAFTER,
            "up/m.py": "from up.draw import draw_sample\ndef x(): draw_sample(1, 2)\n",
        },
        "up.m:draw_sample",
        "replaces_function",
        "identical",
    ),
    Row(
        "its users stayed and use a successor",
        {"up/draw.py": DRAW, "up/m.py": DRAFTER},
        {
            "up/draw.py": DRAW + DRAW.replace("draw_sample", "draw_samples_of"),
            "up/m.py": DRAFTER.replace("draw_sample", "draw_samples_of"),
        },
        "up.m:draw_sample",
        "replaces_function",
        "broken",
        "renamed",
        "up.m:draw_samples_of",
    ),
    Row(
        "named by a string only",
        {"up/m.py": "class W: ...\n", "up/u.py": "from up.m import W\nW()\n"},
        {"up/m.py": "class W: ...\n", "up/u.py": "worker = 'up.m.W'\n"},
        "up.m:W",
        "replaces_class_binding",
        "identical",
    ),
    Row(
        "called through a variable that holds the module",
        {"up/m.py": "def f(a): return a", "up/u.py": "from up import m\nm.f(1)"},
        {
            "up/m.py": "def f(a, b=1): return a",
            "up/u.py": "from up import m\nops = m\ndef g(): ops.f(1, b=2)",
        },
        "up.m:f",
        "replaces_function",
        "broken",
        "optional-parameter-passed",
    ),
]

METHODS = [
    Row(
        "only another class's method of that name is called",
        HOOKS,
        HOOKS.replace("return self.managers.take_blocks(n)", "return n"),
        "up.m:Manager.take_blocks",
        "overrides_method",
        "broken",
        "not-called",
    ),
    Row(
        "the receiver is not known any more",
        HOOKS,
        HOOKS.replace("self.managers = Manager()", "self.managers = make()"),
        "up.m:Manager.take_blocks",
        "overrides_method",
        "identical",
    ),
    Row(
        # One annotation for an attribute that holds one of two classes.
        "called on an attribute that is declared as another class",
        HOOKS,
        HOOKS.replace("self.managers = Manager()", "self.managers: Plain = Manager()")
        + "class Plain:\n    def take_blocks(self, n): return n\n",
        "up.m:Manager.take_blocks",
        "overrides_method",
        "identical",
    ),
    Row(
        "called by its name as a string",
        HOOKS,
        HOOKS.replace("self.managers.take_blocks(n)", "rpc('take_blocks', n)"),
        "up.m:Manager.take_blocks",
        "overrides_method",
        "identical",
    ),
    Row(
        "super() of a subclass of upstream's reaches no override",
        HOOKS,
        HOOKS.replace("return self.managers.take_blocks(n)", "return n")
        + "class Sub(Manager):\n"
        "    def take_blocks(self, n): return super().take_blocks(n)\n",
        "up.m:Manager.take_blocks",
        "overrides_method",
        "broken",
        "not-called",
    ),
    Row(
        "a mixin was added to the bases",
        "class A: ...\nclass B(A):\n    def p(self): ...\n",
        "class A: ...\nclass M: ...\nclass B(A, M):\n    def p(self): ...\n",
        "up.m:B",
        "overrides_method",
        "compatible",
    ),
    Row(
        "a base was added that has the methods now",
        "class A: ...\nclass B(A):\n    def p(self): ...\n",
        "class A: ...\nclass M:\n    def p(self): ...\nclass B(A, M): ...\n",
        "up.m:B",
        "overrides_method",
        "broken",
        "base-changed",
    ),
    Row(
        "an option of the whole family gets its first caller",
        LAYERS.format(split="Split(1, bias=False)"),
        LAYERS.format(split="Split(1, bias=False)").replace(
            "Plain(1)", "Plain(1, bias=False)"
        ),
        "up.m:Plain.__init__",
        "subclass_init_signature",
        "identical",
    ),
    Row(
        "an option that nobody passed gets its first caller",
        LAYERS.format(split="Split(1)"),
        LAYERS.format(split="Split(1)").replace("Plain(1)", "Plain(1, bias=False)"),
        "up.m:Plain.__init__",
        "subclass_init_signature",
        "broken",
        "optional-parameter-passed",
    ),
    Row(
        "a hook says by its annotation what is expected",
        "class H:\n    def hit(self) -> list[int]: raise NotImplementedError\n"
        "def g(h: H): h.hit()\n",
        "class H:\n    def hit(self) -> tuple[list[int], int]:\n"
        "        raise NotImplementedError\ndef g(h: H): h.hit()\n",
        "up.m:H.hit",
        "overrides_method",
        "broken",
        "returns-changed",
    ),
    Row(
        "the receiver is declared as a class that has no such method",
        "class Impl: ...\nclass Mla(Impl):\n    def mha(self, q): return q\n"
        "class Layer:\n    impl: Impl\n    def run(self): self.impl.mha(1)\n",
        "class Impl: ...\nclass Mla(Impl):\n    def mha(self, q, s=1): return q\n"
        "class Layer:\n    impl: Impl\n    def run(self): self.impl.mha(1, s=2)\n",
        "up.m:Mla.mha",
        "overrides_method",
        "broken",
        "optional-parameter-passed",
    ),
    Row(
        "a subclass inherits a constructor with more options",
        "class K:\n    def __init__(self, a): self.a = a\ndef g(): return K(1)\n",
        "class K:\n    def __init__(self, a, b=1): self.a = a\n"
        "def g(): return K(1, b=2)\n",
        "up.m:K",
        "overrides_method",
        "review",
        "optional-parameter-passed",
    ),
]

CALLS = [
    Row(
        "inserted among options that upstream passes by keyword",
        OPTIONS.format(call="1, c=3"),
        INSERTED.format(call="1, c=3"),
        "up.m:f",
        "calls",
        "review",
        "parameters-reordered",
    ),
    Row(
        "inserted among options that upstream passes by position",
        OPTIONS.format(call="1, 2, 3"),
        INSERTED.format(call="1, 0, 2, 3"),
        "up.m:f",
        "calls",
        "broken",
        "parameters-reordered",
    ),
    Row(
        "a method needs no instance any more",
        "class C:\n    def m(self, a): return a\n",
        "class C:\n    @staticmethod\n    def m(a): return a\n",
        "up.m:C.m",
        "calls",
        "compatible",
    ),
    Row(
        "a method needs an instance now",
        "class C:\n    @staticmethod\n    def m(a): return a\n",
        "class C:\n    def m(self, a): return a\n",
        "up.m:C.m",
        "calls",
        "broken",
        "kind-changed",
    ),
    Row(
        "two values became three, through a variable",
        "def f(a):\n    found = a, 1\n    return found\n",
        "def f(a):\n    found = a, 1, 2\n    return found\n",
        "up.m:f",
        "calls",
        "broken",
        "returns-changed",
    ),
    Row(
        "one value became two",
        "def f(a) -> Tensor:\n    return a\n",
        "def f(a) -> Tensor:\n    return a, norm(a)\n",
        "up.m:f",
        "calls",
        "broken",
        "returns-changed",
    ),
    Row(
        "only the annotation was put right",
        "def f(a) -> Backend:\n    return IndexBackend\n",
        "def f(a) -> type[Backend]:\n    return IndexBackend\n",
        "up.m:f",
        "calls",
        "cosmetic",
    ),
    Row(
        "one more kind of element inside a tuple",
        "def f(a) -> tuple[Tensor, int]:\n    return g(a)\n",
        "def f(a) -> tuple[Tensor | Other, int]:\n    return h(a)\n",
        "up.m:f",
        "calls",
        "review",
        "returns-changed",
    ),
    Row(
        "some results are of another type",
        "def f(a) -> Tensor | None:\n    return g(a)\n",
        "def f(a) -> Tensor | Other:\n    return h(a)\n",
        "up.m:f",
        "calls",
        "review",
        "returns-changed",
    ),
    Row(
        "another name of what upstream passes by keyword",
        "def f(a, limit): return a\ndef g(): return f(1, limit=2)\n",
        "def f(a, ceiling): return a\ndef g(): return f(1, ceiling=2)\n",
        "up.m:f",
        "calls",
        "broken",
        "parameter-renamed",
    ),
    Row(
        "another name of what upstream passes by position",
        "def f(a, limit): return a\ndef g(): return f(1, 2)\n",
        "def f(a, ceiling): return a\ndef g(): return f(1, 2)\n",
        "up.m:f",
        "calls",
        "review",
        "parameter-renamed",
    ),
]

DATA = [
    Row(
        "another type under the same name",
        "class C:\n    size: int = 0\n",
        "class C:\n    size: Buffer = None\n",
        "up.m:C.size",
        "reads_attribute",
        "broken",
        "returns-changed",
    ),
    Row(
        "may be None now",
        "class C:\n    size: int = 0\n",
        "class C:\n    size: int | None = None\n",
        "up.m:C.size",
        "reads_attribute",
        "review",
        "returns-changed",
    ),
    Row(
        "its annotation was added",
        "class C:\n    size = 0\n",
        "class C:\n    size: int = 0\n",
        "up.m:C.size",
        "reads_attribute",
        "cosmetic",
    ),
    Row(
        "fields gave way to a constructor that takes them",
        "@dataclass\nclass D:\n    a: int\n    b: int = 0\n",
        "class D:\n    def __init__(self, a, b=0, c=1): self.a = a\n",
        "up.m:D",
        "dataclass_fields",
        "compatible",
    ),
    Row(
        "fields gave way to a constructor that does not take them",
        "@dataclass\nclass D:\n    a: int\n    b: int = 0\n",
        "class D:\n    def __init__(self, a): self.a = a\n",
        "up.m:D",
        "dataclass_fields",
        "broken",
        "fields-changed",
    ),
]

CONSTANTS = [
    Row(
        f"a constant that changed, {how}",
        {"up/m.py": "A = 4\nclass C:\n    names = ('a', 'b')\n"},
        {"up/m.py": "A = 400\nclass C:\n    names = ('a',)\n"},
        symbol,
        how,
        "compatible",
    )
    for symbol in ("up.m:A", "up.m:C.names")
    for how in ("imports_name", "reads_attribute")
] + [
    Row(
        "a constant that is written otherwise",
        {"up/m.py": "A = ('a', 'b')\n"},
        {"up/m.py": "A = (\n    'a',\n    'b',  # both\n)\n"},
        "up.m:A",
        "imports_name",
        "cosmetic",
    ),
]

MOVES = [
    Row(
        "a function became a method",
        "def allocator_is_available():" + "\n    return allocator_state.loaded\n",
        {
            "up/m.py": "",
            "up/platform.py": "class Platform:\n"
            "    def allocator_is_available(self):\n"
            "        return allocator_state.loaded\n",
        },
        "up.m:allocator_is_available",
        "replaces_function",
        "broken",
        "moved",
        "up.platform:Platform.allocator_is_available",
    ),
    Row(
        "a method became a function",
        "class C:\n    def split_rows(self, rows):\n"
        "        return chunked_rows(rows, rows.width)\n",
        {
            "up/m.py": "class C: ...\n",
            "up/rows.py": "def split_rows(rows):\n"
            "    return chunked_rows(rows, rows.width)\n",
        },
        "up.m:C.split_rows",
        "calls",
        "broken",
        "moved",
        "up.rows:split_rows",
    ),
    Row(
        "another function of that name is no successor",
        "def gather(rows):\n    return [row for row in rows if row.is_valid()]\n",
        {"up/m.py": "", "up/x.py": "def gather(*, host, port, retries):\n    pass\n"},
        "up.m:gather",
        "imports_name",
        "broken",
        "removed",
    ),
    Row(
        "a constant moved to a module that had imported it",
        {"up/m.py": "LIMIT = 1 << 20\n", "up/n.py": "from up.m import LIMIT\n"},
        {"up/m.py": "", "up/n.py": "LIMIT = 1 << 20\n"},
        "up.m:LIMIT",
        "imports_name",
        "broken",
        "moved",
        "up.n:LIMIT",
    ),
    Row(
        "a constant moved, and another of its name is new as well",
        {"up/m.py": "LIMIT = 1 << 20\n"},
        {"up/m.py": "", "up/n.py": "LIMIT = 1 << 20\n", "up/k.py": "LIMIT = 3\n"},
        "up.m:LIMIT",
        "imports_name",
        "broken",
        "moved",
        "up.n:LIMIT",
    ),
    Row(
        "a constant got another name",
        "BLOCK_LIMIT = 1 << 20\n",
        "BLOCK_LIMIT_BYTES = 1 << 20\n",
        "up.m:BLOCK_LIMIT",
        "imports_name",
        "broken",
        "renamed",
        "up.m:BLOCK_LIMIT_BYTES",
    ),
    Row(
        "an attribute got another name",
        "class C:\n    def __init__(self, c): self.num_spec = c.tokens - 1\n",
        "class C:\n    def __init__(self, c): self.num_spec_steps = c.tokens - 1\n",
        "up.m:C.num_spec",
        "reads_attribute",
        "broken",
        "renamed",
        "up.m:C.num_spec_steps",
    ),
    Row(
        "a module moved with its package",
        {"up/ops/__init__.py": "", "up/ops/index.py": "def lens(): ...\n"},
        {
            "up/third/__init__.py": "",
            "up/third/ops/__init__.py": "",
            "up/third/ops/index.py": "def lens(): ...\n",
        },
        "up.ops:index",
        "imports_name",
        "broken",
        "moved",
        "up.third.ops:index",
    ),
    Row(
        "a private helper became public in another module",
        {"up/m.py": "def _split_rows(rows):\n    return chunked(rows, 1)\n"},
        {
            "up/m.py": "",
            "up/rows.py": "def split_rows(rows, size):\n"
            "    return chunked(rows, size)\n",
        },
        "up.m:_split_rows",
        "imports_name",
        "broken",
        "renamed",
        "up.rows:split_rows",
    ),
]

UNSEEN = [
    Row(
        "parameters swapped of what is handed on as a value",
        "def swap(a, b): return b, a\nTABLE = {'swap': swap}\n",
        "def swap(b, a): return b, a\nTABLE = {'swap': swap}\n",
        "up.m:swap",
        "replaces_function",
        "review",
        "parameters-reordered",
    ),
    Row(
        "one more required by whoever calls what is handed on",
        "def swap(a, b): return b, a\nTABLE = {'swap': swap}\n",
        "def swap(a, b, c): return b, a\nTABLE = {'swap': swap}\n",
        "up.m:swap",
        "replaces_function",
        "review",
        "required-parameter-added",
    ),
    Row(
        "an option more, of what is handed on as a value",
        "def swap(a, b): return b, a\nTABLE = {'swap': swap}\n",
        "def swap(a, b, c=1): return b, a\nTABLE = {'swap': swap}\n",
        "up.m:swap",
        "replaces_function",
        "compatible",
    ),
    Row(
        "a subclass of ours loses a base",
        "class Base: pass\nclass C(Base):\n    def __init__(self, a): self.a = a\n",
        "class Base: pass\nclass C:\n    def __init__(self, a): self.a = a\n",
        "up.m:C",
        "subclass_init_signature",
        "broken",
        "base-changed",
    ),
    Row(
        "a base between the two is no loss",
        "class Base: pass\nclass C(Base):\n    def __init__(self, a): self.a = a\n",
        "class Base: pass\nclass Between(Base): pass\n"
        "class C(Between):\n    def __init__(self, a): self.a = a\n",
        "up.m:C",
        "subclass_init_signature",
        "compatible",
    ),
]

TABLE = [*BINDINGS, *METHODS, *CALLS, *DATA, *CONSTANTS, *MOVES, *UNSEEN]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.about)
def test_kind(row: Row, tree_of: TreeOf) -> None:
    verdict = judge(
        Reliance(row.symbol, row.how), tree_of(row.old), tree_of(row.new, "up 2.0")
    )
    said = (verdict.kind, verdict.breakage, verdict.moved_to)
    assert said == (row.kind, row.breakage, row.moved_to), verdict.sentence


BASELINE_CALLERS = ["up.m"]


@pytest.mark.parametrize(
    "row",
    [row for row in TABLE if row.breakage in ("not-looked-up", "not-called")],
    ids=lambda row: row.about,
)
def test_knowing_the_callers_hides_nothing(row: Row, tree_of: TreeOf) -> None:
    """A check with a lock knows the callers of the baseline, and says the same."""
    reliance = Reliance(row.symbol, row.how)
    trees = tree_of(row.old), tree_of(row.new, "up 2.0")
    assert judge(reliance, *trees, hints=BASELINE_CALLERS) == judge(reliance, *trees)


def test_an_unreadable_module_is_named_with_its_line(tree_of: TreeOf) -> None:
    verdict = judge(
        Reliance("up.m:f", "calls"),
        tree_of("def f(a): return a\n"),
        tree_of("x = 1\ndef f(a: return a\n"),
    )
    assert (verdict.kind, verdict.breakage) == ("review", "unreadable")
    assert "up/m.py: cannot be parsed" in verdict.sentence
    assert "line 2" in verdict.sentence


@pytest.mark.parametrize(
    ("symbol", "meant"),
    [
        ("up.m:recieve", "up.m:receive"),
        ("up.m:Box.lenght", "up.m:Box.length"),
        ("up.n:receive", "up.m:receive"),
    ],
)
def test_a_misspelled_symbol_gets_the_nearest(
    symbol: str, meant: str, tree_of: TreeOf
) -> None:
    tree = tree_of("def receive(): ...\nclass Box:\n    length = 1\n")
    verdict = judge(Reliance(symbol, "imports_name"), tree, tree)
    assert (verdict.kind, verdict.breakage) == ("broken", "removed")
    assert verdict.sentence.endswith(f"; did you mean `{meant}`?")
