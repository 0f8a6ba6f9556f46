"""Rules that hold for any source: style changes nothing, an operator does."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from textwrap import dedent

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ascend_shims.upstream.compare import judge
from ascend_shims.upstream.contract import Reliance
from ascend_shims.upstream.facts.annotations import normal, tuple_arity
from ascend_shims.upstream.facts.signature import (
    Parameter,
    Shape,
    Signature,
    shape_of,
    signature_of,
)
from ascend_shims.upstream.snippets import call_shapes
from ascend_shims.upstream.tree import Tree

TreeOf = Callable[..., Tree]

SOURCE = dedent(
    '''
    """Module docstring."""

    import os
    import sys
    from typing import Optional, Union

    from up.other import helper, thing


    class Base:
        """Has a docstring."""

        limit: Optional[int] = None

        def __init__(self, size: int, name: str = 'x') -> None:
            """Sets up."""
            self.size = size
            self.name = name

        def step(self, tokens: 'list[int]', scale: Union[int, None] = 2) -> int:
            total = 0
            for token in tokens:
                if token > self.size and token != 3:
                    total += token * scale  # weighted
            return helper(total) - 1


    @dataclass
    class Batch:
        rows: int
        names: list[str] = field(default_factory=list)


    def run(base: Base, tokens: list[int]) -> Optional[int]:
        """Runs."""
        value = base.step(tokens, scale=4)
        return value if value <= 10 else None


    RESULT = run(Base(1, name='y'), [1])
    BATCH = Batch(rows=1)
    '''
)

RELIANCES = [
    Reliance("up.m:run", "replaces_function"),
    Reliance("up.m:run", "wraps_function"),
    Reliance("up.m:run", "calls"),
    Reliance("up.m:Base.step", "overrides_method"),
    Reliance("up.m:Base.step", "replaces_function"),
    Reliance("up.m:Base.__init__", "subclass_init_signature"),
    Reliance("up.m:Base.size", "reads_attribute"),
    Reliance("up.m:Base.limit", "reads_attribute"),
    Reliance("up.m:Base", "replaces_class_binding"),
    Reliance("up.m:Batch", "dataclass_fields"),
    Reliance("up.m:Base", "imports_name"),
]


def header(text: str) -> str:
    return "# SPDX-License-Identifier: Apache-2.0\n# Copyright\n\n" + text


def formatted(text: str) -> str:
    return ast.unparse(ast.parse(text))


def documented(text: str) -> str:
    return re.sub(r'"""[^"]+"""', '"""Other words, and more of them."""', text)


def commented(text: str) -> str:
    return text.replace("total = 0\n", "total = 0  # starts here\n        # then\n")


def imports_reordered(text: str) -> str:
    text = text.replace("import os\nimport sys\n", "import sys\nimport os\n")
    return text.replace("helper, thing", "thing, helper")


def annotations_respelled(text: str) -> str:
    text = text.replace("Optional[int]", "int | None").replace(
        "'list[int]'", "List[int]"
    )
    return text.replace("Union[int, None]", "'None | int'")


def quotes(text: str) -> str:
    return text.replace("'x'", '"x"').replace("'y'", '"y"')


STYLES = [
    header,
    formatted,
    documented,
    commented,
    imports_reordered,
    annotations_respelled,
    quotes,
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(styles=st.lists(st.sampled_from(STYLES), min_size=1, max_size=5))
def test_style_changes_no_verdict(styles: list[Callable[[str], str]], tree_of: TreeOf):
    text = SOURCE
    for style in styles:
        text = style(text)
    old, new = tree_of(SOURCE), tree_of(text, "up 2.0")
    verdicts = [judge(reliance, old, new) for reliance in RELIANCES]
    assert {verdict.kind for verdict in verdicts} <= {"identical", "cosmetic"}
    assert all(verdict.breakage is None for verdict in verdicts)


@pytest.mark.parametrize(
    ("was", "becomes", "symbol"),
    [
        ("token > self.size", "token >= self.size", "up.m:Base.step"),
        ("token * scale", "token + scale", "up.m:Base.step"),
        (" and token", " or token", "up.m:Base.step"),
        ("helper(total) - 1", "helper(total) - 2", "up.m:Base.step"),
        ("value <= 10", "value < 10", "up.m:run"),
    ],
)
def test_an_operator_does(was: str, becomes: str, symbol: str, tree_of: TreeOf) -> None:
    changed = formatted(SOURCE.replace(was, becomes))
    assert was in SOURCE
    old, new = tree_of(SOURCE), tree_of(changed, "up 2.0")
    verdict = judge(Reliance(symbol, "replaces_function"), old, new)
    assert (verdict.kind, verdict.breakage) == ("review", "body-changed")
    others = [r for r in RELIANCES if not r.symbol.startswith(symbol)]
    kinds = {judge(reliance, old, new).kind for reliance in others}
    assert kinds <= {"identical", "cosmetic", "compatible"}


@pytest.mark.parametrize("reliance", RELIANCES, ids=str)
def test_hints_suffice_where_they_name_the_callers(
    reliance: Reliance, tree_of: TreeOf
) -> None:
    old, new = tree_of(SOURCE), tree_of(header(SOURCE))
    assert judge(reliance, old, new, hints=["up.m"]) == judge(reliance, old, new)


def test_hints_limit_what_is_read(tree_of: TreeOf) -> None:
    old = {"up/m.py": "def f(a): ...", "up/u.py": "from up.m import f\nf(1)"}
    new = {
        "up/m.py": "def f(a, b=1): ...",
        "up/u.py": "from up.m import f\nf(1)",
        "up/v.py": "from up.m import f\nf(1, b=2)",
    }
    reliance = Reliance("up.m:f", "replaces_function")
    assert judge(reliance, tree_of(old), tree_of(new)).kind == "broken"
    tree = tree_of(new)
    assert judge(reliance, tree_of(old), tree, hints=["up.u"]).kind == "compatible"
    verdict = judge(reliance, tree_of(old), tree_of(new), hints=["up.v"])
    assert verdict.evidence == ("up/v.py:2",)


def test_fingerprints_outlive_lines_and_releases(tree_of: TreeOf) -> None:
    old = tree_of("def f(a): ...\ndef g(): f(1)")
    broken = "def f(a, b): ...\ndef g(): f(1, 2)"
    reliance = Reliance("up.m:f", "replaces_function")
    one = judge(reliance, old, tree_of(broken, "up 2.0"))
    other = judge(reliance, old, tree_of(header(broken), "up 3.0"))
    assert one.kind == other.kind == "broken"
    assert one.fingerprint == other.fingerprint
    assert one.new is not None
    assert other.new is not None
    assert (one.new.line, other.new.line) == (1, 4)
    gone = judge(reliance, old, tree_of("", "up 2.0"))
    assert gone.fingerprint != one.fingerprint


# Binding agrees with Python's own ------------------------------------------------

NAMES = st.sampled_from("abcd")


@st.composite
def functions(draw: st.DrawFn) -> str:
    names = draw(st.permutations("abcd"))
    positional = draw(st.integers(0, 3))
    only = draw(st.integers(0, positional))
    defaults = draw(st.integers(0, positional))
    parts = []
    for index, name in enumerate(names[:positional]):
        has_default = index >= positional - defaults
        parts.append(f"{name}=0" if has_default else name)
        if index + 1 == only:
            parts.append("/")
    variadic = draw(st.booleans())
    last = draw(st.sampled_from(["", f"{names[3]}", f"{names[3]}=0"]))
    if variadic:
        parts.append("*args")
    elif last:
        parts.append("*")
    if last:
        parts.append(last)
    if draw(st.booleans()):
        parts.append("**kwargs")
    return f"def f({', '.join(parts)}): ..."


@settings(deadline=None)
@given(
    text=functions(),
    count=st.integers(0, 4),
    keywords=st.lists(NAMES, max_size=3, unique=True),
)
def test_refusal_agrees_with_python(text: str, count: int, keywords: list[str]) -> None:
    namespace: dict[str, Callable[..., None]] = {}
    exec(text, namespace)
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.FunctionDef)
    try:
        # Not `Signature.bind`: Python 3.11 gets `def f(a=0, /, **k)` wrong.
        namespace["f"](*[0] * count, **dict.fromkeys(keywords, 0))
        binds = True
    except TypeError:
        binds = False
    shape = Shape(count, tuple(keywords))
    assert (signature_of(node).refusal(shape) is None) == binds
    usual = signature_of(node).usual_call()
    assert signature_of(node).refusal(usual) is None


def test_stars_fill_what_is_missing() -> None:
    signature = Signature(
        (
            Parameter("a", "positional_or_keyword"),
            Parameter("b", "positional_or_keyword"),
            Parameter("c", "keyword_only"),
        )
    )
    assert signature.refusal(Shape(0, ("c",), star=True)) is None
    assert signature.refusal(Shape(0, star=True)) == "`c` is not passed"
    assert signature.refusal(Shape(0, double_star=True)) is None
    assert signature.refusal(Shape(0, ("d",), double_star=True)) is not None


# Text and syntax agree -----------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("f(1, x=2)", [Shape(1, ("x",))]),
        ("def f(a): ...\nclass f(b): ...", []),
        ("k[(1, 2)](1, 2, num_warps=4)", []),
        ("f(')', \"(\", '''\n)''')  # f(1", [Shape(3), None]),
        ("f(\n  # it's a comment )\n  a,\n)", [Shape(1)]),
        ("f(g(f(1, 2)))", [Shape(1), Shape(2)]),
        ("off(1); f.x(1)", []),
        ("o.f(*a, **k)", [Shape(0, star=True, double_star=True)]),
    ],
)
def test_call_shapes(text: str, shapes: list[Shape | None]) -> None:
    assert list(call_shapes(text.encode(), "f")) == shapes


def test_launches_in_text() -> None:
    text = b"f[(1, n)](a, b, BLOCK=1, num_warps=4)\nf[0]\n"
    assert list(call_shapes(text, "f")) == [Shape(2, ("BLOCK",))]


@settings(deadline=None)
@given(st.lists(st.sampled_from(["f(1)", "f(a, b=f())", "x = [f(*a)]", "g('f(')"])))
def test_text_finds_every_call_that_syntax_finds(lines: list[str]) -> None:
    text = "\n".join(lines)
    parsed = [
        shape_of(node)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "f"
    ]
    found = [shape for shape in call_shapes(text.encode(), "f") if shape is not None]
    assert sorted(map(str, found)) == sorted(map(str, parsed))


@pytest.mark.parametrize(
    ("spellings", "one"),
    [
        (
            ["Optional[int]", "int | None", "'None | int'", "Union[None, int]"],
            "int | None",
        ),
        (
            ["List[torch.Tensor]", "list[Tensor]", "'list[torch.Tensor]'"],
            "list[Tensor]",
        ),
        (["Annotated[int, 'x']", "int"], "int"),
        (["Union[int, str, None]", "str | Optional[int]"], "int | str | None"),
        (["Callable[[int], None]"], "Callable[[int], None]"),
    ],
)
def test_one_spelling(spellings: list[str], one: str) -> None:
    nodes = [ast.parse(text, mode="eval").body for text in spellings]
    assert {normal(node) for node in nodes} == {one}


@pytest.mark.parametrize(
    ("annotation", "arity"),
    [
        ("tuple[int, list[int]]", 2),
        ("tuple[dict[str, int]]", 1),
        ("tuple[int, ...]", None),
        ("tuple[int, int] | None", None),
        ("list[int]", None),
        (None, None),
    ],
)
def test_tuple_arity(annotation: str | None, arity: int | None) -> None:
    assert tuple_arity(annotation) == arity
