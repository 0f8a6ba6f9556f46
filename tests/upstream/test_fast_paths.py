"""What was written to be fast says what the plain way says."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascend_shims
from ascend_shims.upstream.corpus import has_word, reads_attribute
from ascend_shims.upstream.facts.body import statements
from ascend_shims.upstream.facts.nodes import parts_of

_FILES = sorted(Path(ascend_shims.__file__).parent.rglob("*.py"))


@given(
    st.text("a_1 .\n(", max_size=24).map(str.encode),
    st.sampled_from([b"a", b"a1", b"_a", b"aa"]),
)
def test_words_are_those_of_the_regular_expression(text: bytes, word: bytes) -> None:
    assert has_word(text, word) == bool(
        re.search(rb"(?<!\w)" + word + rb"(?!\w)", text)
    )
    assert reads_attribute(text, word) == bool(
        re.search(rb"\.\s*" + word + rb"\b", text)
    )


@pytest.mark.parametrize("path", _FILES[::12], ids=lambda path: path.stem)
def test_a_body_without_anything_to_normalise_is_dumped_as_it_is(path: Path) -> None:
    kept = (ast.Assign, ast.Return, ast.If, ast.For, ast.Raise, ast.AugAssign)
    dropped = (ast.AnnAssign, ast.Pass, ast.arg, ast.alias, ast.FunctionDef)
    for statement in ast.walk(ast.parse(path.read_text())):
        inner = list(ast.walk(statement))
        talk = any(
            isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant) for n in inner
        )
        if isinstance(statement, kept) and not talk:
            if any(isinstance(n, dropped) for n in inner):
                continue
            block = ast.Module([statement], [])
            assert statements(block) == [ast.dump(statement)]


@pytest.mark.parametrize("path", _FILES[::12], ids=lambda path: path.stem)
def test_every_part_is_met_once(path: Path) -> None:
    tree = ast.parse(path.read_text())
    left_out = (ast.expr_context, ast.operator, ast.cmpop, ast.alias)
    met = [id(n) for n in parts_of(tree) if not isinstance(n, left_out)]
    there = [id(n) for n in ast.walk(tree) if not isinstance(n, left_out)]
    assert sorted(met) == sorted(there)
