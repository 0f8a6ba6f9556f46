"""One table: what upstream was, what it became, how we rely on it, the verdict."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import NamedTuple

import pytest

from ascend_shims.upstream.compare import judge
from ascend_shims.upstream.contract import How, Reliance
from ascend_shims.upstream.facts.signature import Signature, signature_of
from ascend_shims.upstream.tree import Tree


class Row(NamedTuple):
    about: str
    old: str | Mapping[str, str]
    new: str | Mapping[str, str]
    symbol: str
    how: str
    kind: str
    breakage: str | None = None
    moved_to: str | None = None
    by_keyword: bool = False


F = "def f(a, b=1, c=2):\n    return a + b + c\n"

BODY = """
    scale = compute_scale(values, dtype)
    total = accumulate_rows(values * scale)
    return normalise_rows(total, scale)
"""

MANAGER = """
class Base:
    def run(self, tokens):
        return self.take(tokens)
    def take(self, tokens):
        return tokens
class Manager(Base):
    pass
"""

CALLS = [
    Row("untouched", F, F, "up.m:f", "calls", "identical"),
    Row("a comment", F, "# SPDX\n\n" + F, "up.m:f", "calls", "identical"),
    Row(
        "quotes and layout (E05)",
        "def f(a):\n    return {'k': a}\n",
        'def f(\n    a,\n):\n    """Doc."""\n    return {"k": a}  # x\n',
        "up.m:f",
        "calls",
        "cosmetic",
    ),
    Row(
        "annotation spelling (E05)",
        "from typing import Optional\ndef f(a: Optional[int]) -> 'list[int]': return a",
        "from typing import List\ndef f(a: int | None) -> List[int]: return a",
        "up.m:f",
        "calls",
        "cosmetic",
    ),
    Row(
        "operator",
        F,
        F.replace("a + b", "a - b"),
        "up.m:f",
        "calls",
        "compatible",
    ),
    Row(
        "default value (E04)",
        F,
        F.replace("b=1", "b=None"),
        "up.m:f",
        "calls",
        "compatible",
    ),
    Row(
        "inserted in the middle (E02)",
        F,
        "def f(a, x=0, b=1, c=2): return a",
        "up.m:f",
        "calls",
        "broken",
        "parameters-reordered",
    ),
    Row(
        "inserted in the middle, keywords promised (E02)",
        F,
        "def f(a, x=0, b=1, c=2): return a",
        "up.m:f",
        "calls",
        "compatible",
        by_keyword=True,
    ),
    Row(
        "appended (E02)",
        F,
        "def f(a, b=1, c=2, d=3): return a",
        "up.m:f",
        "calls",
        "compatible",
    ),
    Row(
        "keyword-only with default (E02)",
        F,
        "def f(a, b=1, c=2, *, d=3): return a",
        "up.m:f",
        "calls",
        "compatible",
    ),
    Row(
        "required added",
        F,
        "def f(a, d, b=1, c=2): return a",
        "up.m:f",
        "calls",
        "broken",
        "required-parameter-added",
    ),
    Row(
        "removed",
        F,
        "def f(a, b=1): return a",
        "up.m:f",
        "calls",
        "broken",
        "parameter-removed",
    ),
    Row(
        "renamed",
        F,
        "def f(a, b=1, last=2): return a",
        "up.m:f",
        "calls",
        "broken",
        "parameter-renamed",
    ),
    Row(
        "reordered with equal arity",
        "def f(a, b): return a",
        "def f(b, a): return a",
        "up.m:f",
        "calls",
        "broken",
        "parameters-reordered",
    ),
    Row(
        "absorbed by **kwargs",
        F,
        "def f(a, **kwargs): return a",
        "up.m:f",
        "calls",
        "compatible",
    ),
    Row(
        "became a coroutine",
        F,
        "async " + F,
        "up.m:f",
        "calls",
        "broken",
        "kind-changed",
    ),
    Row(
        "two values became three",
        "def f(): return 1, 2",
        "def f(): return 1, 2, 3",
        "up.m:f",
        "calls",
        "broken",
        "returns-changed",
    ),
    Row(
        "other elements",
        "def f() -> list[tuple[str, int]]: return []",
        "def f() -> list[Request]: return [Request()]",
        "up.m:f",
        "calls",
        "broken",
        "returns-changed",
    ),
    Row(
        "may be None now",
        "def f() -> int: return 1",
        "def f() -> int | None: return None",
        "up.m:f",
        "calls",
        "review",
        "returns-changed",
    ),
    Row(
        "no longer a ValueError",
        "class E(ValueError): pass",
        "class E(Exception): pass",
        "up.m:E",
        "calls",
        "broken",
        "base-changed",
    ),
    Row(
        "only the implementation counts among overloads (E03)",
        "from typing import overload\n@overload\ndef f(a: int): ...\n@overload\n"
        "def f(a: str): ...\ndef f(a): return a",
        "from typing import overload\n@overload\ndef f(a: int): ...\n@overload\n"
        "def f(a: str): ...\ndef f(a, b): return a",
        "up.m:f",
        "calls",
        "broken",
        "required-parameter-added",
    ),
    Row(
        "overloads only (E03)",
        "from typing import overload\n@overload\ndef f(a: int): ...\n@overload\n"
        "def f(a: str): ...\n",
        "from typing import overload\n@overload\ndef f(a: int): ...\n@overload\n"
        "def f(a: str): ...\nx = 1\n",
        "up.m:f",
        "calls",
        "identical",
    ),
    Row(
        "inherited from a base in another module",
        {
            "up/b.py": "class B:\n def m(self, a): return a\n",
            "up/m.py": "from up.b import B\nclass C(B): pass\n",
        },
        {
            "up/c.py": "class A:\n def m(self, a): return a\n",
            "up/b.py": "from .c import A\nclass B(A): pass\n",
            "up/m.py": "from up.b import B\nclass C(B): pass\n",
        },
        "up.m:C.m",
        "calls",
        "compatible",
    ),
]

REPLACES = [
    Row(
        "optional and not passed",
        "def f(a): return a\ndef g(): return f(1)",
        "def f(a, b=1): return a\ndef g(): return f(1)",
        "up.m:f",
        "replaces_function",
        "cosmetic_or_compatible",
    ),
    Row(
        "optional and passed by keyword",
        "def f(a): return a\ndef g(): return f(1)",
        "def f(a, b=1): return a\ndef g(): return f(1, b=2)",
        "up.m:f",
        "replaces_function",
        "broken",
        "optional-parameter-passed",
    ),
    Row(
        "passed through a variable that holds it",
        "def f(a): return a\ndef g(): return f(1)",
        "def f(a, b=1): return a\ndef g(x):\n h = f if x else None\n return h(1, b=2)",
        "up.m:f",
        "replaces_function",
        "broken",
        "optional-parameter-passed",
    ),
    Row(
        "passed through a partial",
        "def f(a): return a\ndef g(): return f(1)",
        "from functools import partial\ndef f(a, b=1): return a\n"
        "def g(): return partial(f, b=2)",
        "up.m:f",
        "replaces_function",
        "broken",
        "optional-parameter-passed",
    ),
    Row(
        "passed under another module's alias",
        {"up/m.py": "def f(a): return a", "up/u.py": "from up.m import f\nf(1)"},
        {
            "up/m.py": "def f(a, b=1): return a",
            "up/u.py": "from up.m import f as g\ndef h():\n    g(1, b=2)",
        },
        "up.m:f",
        "replaces_function",
        "broken",
        "optional-parameter-passed",
    ),
    Row(
        "passed through the module",
        {"up/m.py": "def f(a): return a", "up/u.py": "from up import m\nm.f(1)"},
        {
            "up/m.py": "def f(a, b=1): return a",
            "up/u.py": "from up import m\nm.f(1, b=2)",
        },
        "up.m:f",
        "replaces_function",
        "broken",
        "optional-parameter-passed",
    ),
    Row(
        "another function of that name is called with more",
        {"up/m.py": "def f(a): return a\nf(1)", "up/u.py": "def f(a, b): ...\n"},
        {
            "up/m.py": "def f(a, b=1): return a\nf(1)",
            "up/u.py": "def f(a, b): ...\nf(1, b=2)",
        },
        "up.m:f",
        "replaces_function",
        "cosmetic_or_compatible",
    ),
    Row(
        "kernel launched with a grid",
        "@jit\ndef k(a, n): pass\ndef g(): k[(1,)](1, 2, num_warps=4)",
        "@jit\ndef k(a, b, n): pass\ndef g(): k[(1,)](1, 3, 2, num_warps=4)",
        "up.m:k",
        "replaces_function",
        "broken",
        "required-parameter-added",
    ),
    Row(
        "positions shift silently",
        "def f(kv, backends, n): return n\ndef g(): f(1, 2, 3)",
        "def f(groups, n, kv): return n\ndef g(): f(1, 2, 3)",
        "up.m:f",
        "replaces_function",
        "broken",
        "parameter-renamed",
    ),
    Row(
        "one token of a private body",
        "def k(p, o):\n    return p[o]\ndef g(): k(1, 2)",
        "def k(p, o):\n    return p[o + 1]\ndef g(): k(1, 2)",
        "up.m:k",
        "replaces_function",
        "review",
        "body-changed",
    ),
    Row(
        "only logging and assertions",
        "def k(p):\n    return p\ndef g(): k(1)",
        "def k(p):\n    assert p\n    logger.info('x')\n    return p\ndef g(): k(1)",
        "up.m:k",
        "replaces_function",
        "compatible",
    ),
    Row(
        "renamed, the old name left as an alias",
        "def old_name(a): return a\ndef g(): return old_name(1)",
        "def new_name(a): return a\nold_name = new_name\ndef g(): return new_name(1)",
        "up.m:old_name",
        "replaces_function",
        "broken",
        "not-looked-up",
        "up.m:new_name",
    ),
    Row(
        "the importing module stopped looking it up",
        {
            "up/d.py": "def f(a): return a",
            "up/m.py": "from up.d import f\ndef g(): return f(1)",
        },
        {
            "up/d.py": "def f(a): return a",
            "up/m.py": "from up.d import f\n",
            "up/n.py": "from up.d import f\ndef g(): return f(1)",
        },
        "up.m:f",
        "replaces_function",
        "broken",
        "not-looked-up",
        "up.n:f",
    ),
    Row(
        "method gone",
        "class C:\n    def m(self): return 1\n    def n(self): return self.m()",
        "class C:\n    def n(self): return 1",
        "up.m:C.m",
        "replaces_function",
        "broken",
        "removed",
    ),
    Row(
        "renamed in the module",
        "def lse(values, dtype):" + BODY + "def g(): return lse(1, 2)",
        "def logsumexp(values, dtype):" + BODY + "def g(): return logsumexp(1, 2)",
        "up.m:lse",
        "replaces_function",
        "broken",
        "renamed",
        "up.m:logsumexp",
    ),
    Row(
        "relocated package with a re-export in both places",
        {
            "up/old/__init__.py": "from .ops import chunk_rule\n",
            "up/old/ops.py": "def chunk_rule(values, dtype):" + BODY,
            "up/u.py": "from up.old import chunk_rule\nchunk_rule(1, 2)",
        },
        {
            "up/new/__init__.py": "from .ops import chunk_rule\n",
            "up/new/ops.py": "def chunk_rule(values, dtype):" + BODY,
            "up/u.py": "from up.new import chunk_rule\nchunk_rule(1, 2)",
        },
        "up.old:chunk_rule",
        "replaces_function",
        "broken",
        "moved",
        "up.new:chunk_rule",
    ),
    Row(
        "wrapping does not mind another body",
        "def f(a): return a\ndef g(): return f(1)",
        "def f(a, b=2): return a * b\ndef g(): return f(1, b=3)",
        "up.m:f",
        "wraps_function",
        "compatible",
    ),
    Row(
        "wrapping a coroutine needs to know",
        "def f(a): return a\ndef g(): return f(1)",
        "async def f(a): return a\nasync def g(): return await f(1)",
        "up.m:f",
        "wraps_function",
        "broken",
        "kind-changed",
    ),
]

OVERRIDES = [
    Row(
        "a caller passes the new optional parameter",
        MANAGER,
        MANAGER.replace("take(self, tokens)", "take(self, tokens, align=1)").replace(
            "self.take(tokens)", "self.take(tokens, align=2)"
        ),
        "up.m:Manager.take",
        "overrides_method",
        "broken",
        "optional-parameter-passed",
    ),
    Row(
        "no caller passes it",
        MANAGER,
        MANAGER.replace("take(self, tokens)", "take(self, tokens, align=1)"),
        "up.m:Manager.take",
        "overrides_method",
        "compatible",
    ),
    Row(
        "an unknown receiver passes it",
        MANAGER,
        MANAGER.replace("take(self, tokens)", "take(self, tokens, align=1)")
        + "def go(many):\n    for one in many:\n        one.take(1, align=3)\n",
        "up.m:Manager.take",
        "overrides_method",
        "broken",
        "optional-parameter-passed",
    ),
    Row(
        "a receiver of another class passes it",
        MANAGER + "class Other:\n    def take(self, tokens, align): ...\n",
        MANAGER.replace("take(self, tokens)", "take(self, tokens, align=1)", 1)
        + "class Other:\n    def take(self, tokens, align): ...\n"
        + "def go(other: Other):\n    other.take(1, align=3)\n",
        "up.m:Manager.take",
        "overrides_method",
        "compatible",
    ),
    Row(
        "super() no longer takes it",
        "class B:\n    def p(self, a): return a\ndef g(b): b.p(1)",
        "class B:\n    def p(self, a, n): return a\ndef g(b): b.p(1, 2)",
        "up.m:B.p",
        "overrides_method",
        "broken",
        "required-parameter-added",
    ),
    Row(
        "leading parameter dropped",
        "class B:\n    def p(self, layer, a): return a\ndef g(b): b.p(0, 1)",
        "class B:\n    def p(self, a): return a\ndef g(b): b.p(1)",
        "up.m:B.p",
        "overrides_method",
        "broken",
        "parameter-removed",
    ),
    Row(
        "nothing calls it any more",
        "class B:\n    def p(self): return 1\ndef g(b): b.p()",
        "class B:\n    def p(self): return 1\ndef g(b): b.q()",
        "up.m:B.p",
        "overrides_method",
        "broken",
        "not-called",
    ),
    Row(
        "required became optional, callers still pass it",
        "class B:\n    def p(self, *, a): return 1\ndef g(b): b.p(a=1)",
        "class B:\n    def p(self, *, a=None): return 1\ndef g(b): b.p(a=1)",
        "up.m:B.p",
        "overrides_method",
        "compatible",
    ),
    Row(
        "another result",
        "class B:\n    def p(self) -> tuple[int, int]: return q()\ndef g(b): b.p()",
        "class B:\n    def p(self) -> tuple[int, int, int]: return q()\n"
        "def g(b): b.p()",
        "up.m:B.p",
        "overrides_method",
        "broken",
        "returns-changed",
    ),
    Row(
        "the same inputs, another sum",
        "class B:\n    def p(self, n): return n // 2\ndef g(b): b.p(1)",
        "class B:\n    def p(self, n): return n // 2 + n % 2\ndef g(b): b.p(1)",
        "up.m:B.p",
        "overrides_method",
        "review",
        "body-changed",
    ),
    Row(
        "only extended",
        "class B:\n    def p(self, n): return n // 2\ndef g(b): b.p(1)",
        "class B:\n    def p(self, n):\n        self.log.add(n)\n"
        "        return n // 2\n"
        "def g(b): b.p(1)",
        "up.m:B.p",
        "overrides_method",
        "compatible",
    ),
    Row(
        "property became a field",
        "class B:\n    @property\n    def size(self): return 1\ndef g(b): b.size",
        "@dataclass\nclass B:\n    size: int = 1\ndef g(b): b.size",
        "up.m:B.size",
        "overrides_method",
        "broken",
        "kind-changed",
    ),
    Row(
        "class became a factory",
        "class B:\n    def p(self): ...",
        "def B(): ...",
        "up.m:B",
        "overrides_method",
        "broken",
        "kind-changed",
    ),
    Row(
        "another base",
        "class A: ...\nclass B(A):\n    def p(self): ...",
        "class A: ...\nclass N: ...\nclass B(N): ...",
        "up.m:B",
        "overrides_method",
        "broken",
        "base-changed",
    ),
    Row(
        "renamed method",
        "class B:\n    def post(self, values, dtype):"
        + BODY.replace("\n    ", "\n        ")
        + "\n",
        "class B:\n    def post_sampled(self, values, dtype):"
        + BODY.replace("\n    ", "\n        ")
        + "\n",
        "up.m:B.post",
        "overrides_method",
        "broken",
        "renamed",
        "up.m:B.post_sampled",
    ),
    Row(
        "class moved and renamed, the old name survives as its base",
        {
            "up/attn.py": "class Attn:\n    def project(self, values, dtype):"
            + BODY.replace("\n    ", "\n        ")
            + "\n    def split_heads(self, values): return values.split_by_head()\n"
        },
        {
            "up/gdn/__init__.py": "",
            "up/gdn/base.py": "class Attn:\n    def register(self): ...\n",
            "up/gdn/qwen.py": "from up.gdn.base import Attn\nclass QwenAttn(Attn):\n"
            "    def project(self, values, dtype):"
            + BODY.replace("\n    ", "\n        ")
            + "\n    def split_heads(self, values): return values.split_by_head()\n",
        },
        "up.attn:Attn",
        "overrides_method",
        "broken",
        "renamed",
        "up.gdn.qwen:QwenAttn",
    ),
    Row(
        "constructed with a new keyword",
        "class L:\n    def __init__(self, n): self.n = n\ndef g(): return L(1)",
        "class L:\n    def __init__(self, n, tp=False): self.n = n\n"
        "def g(): return L(1, tp=True)",
        "up.m:L.__init__",
        "subclass_init_signature",
        "broken",
        "optional-parameter-passed",
    ),
    Row(
        "a known optional parameter gets its first caller",
        "class L:\n    def __init__(self, n, tp=False): self.n = n\n"
        "def g(): return L(1)",
        "class L:\n    def __init__(self, n, tp=False): self.n = n\n"
        "def g(): return L(1, tp=True)",
        "up.m:L.__init__",
        "subclass_init_signature",
        "broken",
        "optional-parameter-passed",
    ),
    Row(
        "one more attribute that nobody reads",
        "class L:\n    def __init__(self, n): self.n = n\ndef g(): return L(1)",
        "class L:\n    def __init__(self, n):\n        self.n = n\n        self.k = 1\n"
        "def g(): return L(1)",
        "up.m:L.__init__",
        "subclass_init_signature",
        "compatible",
    ),
    Row(
        "an inherited method begins to read what only the constructor sets",
        "class L:\n    def __init__(self, n): self.n = n\ndef g(): return L(1)",
        "class L:\n    def __init__(self, n): self.n = n\n"
        "    def m(self): return self.n\ndef g(): return L(1)",
        "up.m:L.__init__",
        "subclass_init_signature",
        "review",
        "body-changed",
    ),
    Row(
        "the constructor is inherited from another module now",
        "class L:\n    def __init__(self, n): self.n = n\ndef g(): return L(1)",
        {
            "up/b.py": "class B:\n    def __init__(self, n): self.n = n\n",
            "up/m.py": "from .b import B\nclass L(B): pass\ndef g(): return L(1)",
        },
        "up.m:L.__init__",
        "subclass_init_signature",
        "compatible",
    ),
]

NAMES = [
    Row(
        "moved, re-export left behind",
        "def f(a): return a",
        {"up/n.py": "def f(a): return a", "up/m.py": "from up.n import f"},
        "up.m:f",
        "imports_name",
        "compatible",
    ),
    Row(
        "incidental re-export dropped",
        {"up/n.py": "class Method: x = 1", "up/m.py": "from up.n import Method"},
        {"up/n.py": "class Method: x = 1", "up/m.py": ""},
        "up.m:Method",
        "imports_name",
        "broken",
        "moved",
        "up.n:Method",
    ),
    Row(
        "another module's private alias",
        {"up/n.py": "class Batch: x = 1", "up/m.py": "from up.n import Batch as GB"},
        {"up/n.py": "class Batch: x = 1", "up/m.py": "import up.n"},
        "up.m:GB",
        "imports_name",
        "broken",
        "renamed",
        "up.n:Batch",
    ),
    Row(
        "moved without a re-export",
        {"up/m.py": "def expert_map(values, dtype):" + BODY},
        {"up/m.py": "", "up/k.py": "def expert_map(values, dtype):" + BODY},
        "up.m:expert_map",
        "imports_name",
        "broken",
        "moved",
        "up.k:expert_map",
    ),
    Row("removed", F, "", "up.m:f", "imports_name", "broken", "removed"),
    Row(
        "constant removed",
        "table = {}",
        "other = {}",
        "up.m:table",
        "imports_name",
        "broken",
        "removed",
    ),
    Row(
        "seen by type checkers only",
        {"up/n.py": "class T: ...", "up/m.py": "from up.n import T"},
        {
            "up/n.py": "class T: ...",
            "up/m.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
            "    from up.n import T",
        },
        "up.m:T",
        "imports_name",
        "broken",
        "moved",
        "up.n:T",
    ),
    Row(
        "try/except pair",
        "from torch import f",
        "try:\n    from torch import f\nexcept ImportError:\n    f = None",
        "up.m:f",
        "imports_name",
        "identical",
    ),
    Row(
        "lazy table of names",
        {
            "up/n.py": "class T: ...",
            "up/m.py": "TABLE = {'T': 'up.n:T'}\ndef __getattr__(name): ...",
        },
        {
            "up/k.py": "class T: ...",
            "up/m.py": "TABLE = {'T': 'up.k:T'}\ndef __getattr__(name): ...",
        },
        "up.m:T",
        "imports_name",
        "compatible",
    ),
    Row(
        "class became a function",
        "class T: ...",
        "def T(): ...",
        "up.m:T",
        "imports_name",
        "review",
        "kind-changed",
    ),
    Row(
        "attribute of the instance gone",
        "class C:\n    def __init__(self): self.pin = 1",
        "PIN = 1\nclass C:\n    def __init__(self): ...",
        "up.m:C.pin",
        "reads_attribute",
        "broken",
        "attribute-removed",
    ),
    Row(
        "field renamed",
        "@config\nclass C:\n    a: int\n    hash_block: int | None = None\n    z: int",
        "@config\nclass C:\n    a: int\n    match_block: int | None = None\n    z: int",
        "up.m:C.hash_block",
        "reads_attribute",
        "broken",
        "renamed",
        "up.m:C.match_block",
    ),
    Row(
        "set later than by the constructor",
        "class C:\n    def __init__(self): self.k = 1",
        "class C:\n    def __init__(self): ...\n    def load(self): self.k = 1",
        "up.m:C.k",
        "reads_attribute",
        "review",
        "body-changed",
    ),
    Row(
        "field became a property",
        "@dataclass\nclass C:\n    k: int",
        "class C:\n    @property\n    def k(self): return 1",
        "up.m:C.k",
        "reads_attribute",
        "compatible",
    ),
]

CLASSES = [
    Row(
        "required field",
        "@dataclass\nclass B:\n    a: int",
        "@dataclass\nclass B:\n    a: int\n    b: int",
        "up.m:B",
        "dataclass_fields",
        "broken",
        "fields-changed",
    ),
    Row(
        "field gone",
        "@dataclass\nclass B:\n    a: int\n    b: int",
        "@dataclass\nclass B:\n    a: int",
        "up.m:B",
        "dataclass_fields",
        "broken",
        "fields-changed",
    ),
    Row(
        "first defaulted field, under a subclass with required ones",
        "@dataclass\nclass B:\n    a: int",
        "@dataclass\nclass B:\n    a: int\n    b: int = 1",
        "up.m:B",
        "dataclass_fields",
        "broken",
        "fields-changed",
    ),
    Row(
        "one more defaulted field",
        "@dataclass\nclass B:\n    a: int = 0",
        "@dataclass\nclass B:\n    a: int = 0\n"
        "    b: list = field(default_factory=list)",
        "up.m:B",
        "dataclass_fields",
        "compatible",
    ),
    Row(
        "keyword-only default",
        "@dataclass\nclass B:\n    a: int",
        "@dataclass\nclass B:\n    a: int\n    b: int = field(default=1, kw_only=True)",
        "up.m:B",
        "dataclass_fields",
        "compatible",
    ),
    Row(
        "class binding, new keyword",
        "class B:\n    def __init__(self, a): ...\ndef g(): return B(1)",
        "class B:\n    def __init__(self, a, b=1): ...\ndef g(): return B(1, b=2)",
        "up.m:B.__init__",
        "replaces_class_binding",
        "broken",
        "optional-parameter-passed",
    ),
    Row(
        "class binding, two merged into one in the same module",
        {
            "up/d.py": "class Prefill:\n    def grab(self, values, dtype):"
            + BODY.replace("\n    ", "\n        "),
            "up/m.py": "from up.d import Prefill\ndef g(): return Prefill()",
        },
        {
            "up/d.py": "class Manager:\n    def grab(self, values, dtype):"
            + BODY.replace("\n    ", "\n        "),
            "up/m.py": "from up.d import Manager\ndef g(): return Manager()",
        },
        "up.m:Prefill",
        "replaces_class_binding",
        "broken",
        "renamed",
        "up.m:Manager",
    ),
    Row(
        "class binding no longer used",
        "class B: ...\ndef g(): return B()",
        "class B: ...\ndef g(): return 1",
        "up.m:B",
        "replaces_class_binding",
        "broken",
        "not-looked-up",
    ),
]

TABLE = [*CALLS, *REPLACES, *OVERRIDES, *NAMES, *CLASSES]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.how}: {row.about}")
def test_verdict(row: Row, tree_of: Callable[..., Tree]) -> None:
    reliance = Reliance(row.symbol, row.how, row.by_keyword)  # type: ignore[arg-type]
    verdict = judge(reliance, tree_of(row.old), tree_of(row.new, "up 2.0"))
    kinds = {row.kind}
    if row.kind == "cosmetic_or_compatible":
        kinds = {"cosmetic", "compatible"}
    assert verdict.kind in kinds, verdict.sentence
    assert verdict.breakage == row.breakage, verdict.sentence
    assert verdict.moved_to == row.moved_to, verdict.sentence
    assert verdict.sentence
    assert (verdict.confidence > 0) == (row.moved_to is not None)


# What a known replacement takes decides, not what the baseline took ---------------

GROWN = "def f(a, b=1): return a\ndef g(): return f(1, b=2)"


def parameters(text: str) -> Signature:
    node = ast.parse(f"def f({text}): ...").body[0]
    assert isinstance(node, ast.FunctionDef)
    return signature_of(node)


@pytest.mark.parametrize(
    ("how", "replacement", "kind"),
    [
        ("replaces_function", "*args, **kwargs", "compatible"),
        ("replaces_function", "a, b=1", "compatible"),
        ("replaces_function", "a, **kwargs", "compatible"),
        ("replaces_function", "a", "broken"),
        ("wraps_function", "*args, **kwargs", "compatible"),
        ("wraps_function", "a", "broken"),
    ],
)
def test_the_replacement_decides(
    how: How, replacement: str, kind: str, tree_of: Callable[..., Tree]
) -> None:
    old = tree_of("def f(a): return a\ndef g(): return f(1)")
    reliance = Reliance("up.m:f", how, replacement=parameters(replacement))
    assert judge(reliance, old, tree_of(GROWN)).kind == kind


def test_a_replacement_may_have_been_short_all_along(
    tree_of: Callable[..., Tree],
) -> None:
    old = tree_of("def f(a, b=1): return a\ndef g(): return f(1)")
    reliance = Reliance("up.m:f", "replaces_function", replacement=parameters("a"))
    assert judge(reliance, old, old).kind == "identical"
    assert judge(reliance, old, tree_of(GROWN)).kind == "broken"
    assert judge(Reliance("up.m:f", "replaces_function"), old, old).kind == "identical"


def test_long_lists_are_forwarded_rather_than_spelled_out(
    tree_of: Callable[..., Tree],
) -> None:
    names = ", ".join(f"p{n}=0" for n in range(30))
    old = tree_of(f"def f({names}): ...\ndef g(): f(p1=1)")
    new = tree_of(f"def f({names}, q=0): ...\ndef g(): f(p1=1, q=2)")
    verdict = judge(Reliance("up.m:f", "replaces_function"), old, new)
    assert (verdict.kind, verdict.breakage) == ("review", "optional-parameter-passed")
    spelled = Reliance("up.m:f", "replaces_function", replacement=parameters(names))
    assert judge(spelled, old, new).kind == "broken"


def test_fixed_upstream(tree_of: Callable[..., Tree]) -> None:
    """E21: a gap that upstream closed is reported, whatever else changed."""
    tree = tree_of(F)
    reliance = Reliance("up.m:f", "replaces_function")
    fixed = judge(reliance, tree, tree_of(""), still_needed=lambda _: False)
    assert (fixed.kind, fixed.breakage) == ("fixed-upstream", None)
    still = judge(reliance, tree, tree_of(""), still_needed=lambda new: "up.m" in new)
    assert still.kind == "broken"


def test_no_baseline_is_never_equal(tree_of: Callable[..., Tree]) -> None:
    """E10: what cannot be seen is said to be unknown, never to be the same."""
    reliance = Reliance("up.m:f", "calls")
    unknown = judge(reliance, tree_of(""), tree_of(F))
    assert (unknown.kind, unknown.breakage) == ("review", "unreadable")
    neither = judge(reliance, tree_of(""), tree_of(""))
    assert (neither.kind, neither.breakage) == ("broken", "removed")
