"""`provided_by` and `needs.patched`: what is said about a mistake in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascend_shims.registry import RegistryError, load

HEAD = "schema: 1\nupstreams: [up]\npackage: ascend_shims.patches\ngaps:\n"
GAP = (
    "- {id: cos-sin, title: T, status: open, kind: workaround, why: W, "
    "remove_when: R, versions: {up: '>=1,<3'}, unpatched: U, provided_by: "
)
MISTAKES = {
    "[{symbol: up.m:C.f}]": (
        "`up.m:C.f` is upstream's own and no plugin's; "
        "name a place in the plugin that closes the gap"
    ),
    "plug.m:f": "`provided_by` must be a list, not text; write `[plug.m:f]`",
    "[plug.m:f]": (
        "an item of `provided_by` must be a mapping, not text; write `key: value` lines"
    ),
    "[{}]": "`symbol` is missing; every provider has one",
    "[{symbol: plug.m}]": (
        "`symbol` cannot be `plug.m`; "
        "write a place upstream, written `package.module:Qual.name`"
    ),
    "[{symbol: plug.m:f, reads: a.b}]": (
        "`reads` cannot be `a.b`; write a plain Python name, without dots"
    ),
    "[{symbol: plug.m:f, raeds: a}]": "unknown key `raeds`; did you mean `reads`?",
    "[{symbol: plug.m:f, versions: {up: nine}}]": (
        "`nine` is not a range; write one of PEP 440, for example `>=0.28,<0.29`"
    ),
    "[{symbol: plug.m:f, versions: {up: '>=4'}}]": (
        "`>=4` lies outside the range of its gap, `<3,>=1`; "
        "no version is in both; correct one of them"
    ),
}


@pytest.mark.parametrize("written", MISTAKES)
def test_mistakes_are_told(written: str, tmp_path: Path) -> None:
    path = tmp_path / "gap_registry.yaml"
    path.write_text(f"{HEAD}{GAP}{written}}}\n")
    with pytest.raises(RegistryError) as caught:
        load(path)
    (problem,) = caught.value.problems
    assert f"{problem.message}; {problem.fix}" == MISTAKES[written]
    assert problem.line == 5


def test_a_need_of_patches_is_checked_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "gap_registry.yaml"
    path.write_text(f"{HEAD}{GAP}[], needs: {{patched: [cos-sine]}}}}\n")
    with pytest.raises(RegistryError, match="did you mean `cos-sin`"):
        load(path)
