"""Companions in a registry: what may be said, and what is a mistake."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ascend_shims.registry import Problem, Registry, load

LoadText = Callable[[str], Registry]
Refuse = Callable[[str], tuple[Problem, ...]]

PROSE = "title: T, status: open, kind: workaround, why: W, remove_when: R"
OWN = "patches: [{target: 'up.mod:f', kind: wrap, replacement: one}]"


def registry(companions: str, alpha: str = f"traced: T, {OWN}") -> str:
    return f"""\
schema: 1
upstreams: [up, other]
package: stand_in.patches
companions: [{companions}]
gaps:
- {{id: alpha, {PROSE}, {alpha}}}
- {{id: delta, {PROSE}, unpatched: U}}
"""


def companion(
    target: str = "up.mod:key", goes_with: str = "traced-gaps", **fields: str
) -> str:
    made = {"id": "beta", "replacement": "one", "versions": "{}", **fields}
    return (
        f"{{id: {made['id']}, why: W, goes_with: {goes_with}, patches: [{{target: "
        f"'{target}', kind: wrap, replacement: {made['replacement']}, versions: "
        f"{made['versions']}}}]}}"
    )


def test_what_gaps_have(load_text: LoadText) -> None:
    both = (companion(), companion("up.mod:g", "every-gap", id="gamma-ray"))
    found = load_text(registry(", ".join(both)))
    assert [one.module for one in found.companions] == ["beta", "gamma_ray"]
    names = {gap.id: [one.id for one in found.companions_of(gap)] for gap in found.gaps}
    assert names == {"alpha": ["beta", "gamma-ray"], "delta": []}
    plain = load_text(registry(both[1], OWN))
    assert [one.id for one in plain.companions_of(plain["alpha"])] == ["gamma-ray"]


MISTAKES = {
    "nobody folds a traced gap in": (
        registry(companion(goes_with="every-gap")),
        "gap `alpha` is traced, and no companion goes with traced gaps; add the "
        "companion `compile-key`, as the registry that comes with the toolkit has it",
    ),
    "a traced gap without patches": (
        registry(companion(), "traced: T, unpatched: U"),
        "gap `alpha` is traced and has no patches; remove `traced`",
    ),
    "a companion of nobody": (
        registry(companion(), OWN),
        "no gap has the companion `beta`: none is traced; say of a gap what of it is "
        "`traced`, or remove the companion",
    ),
    "the slot of a gap": (
        registry(companion("up.mod:f")),
        "`up.mod:f` is patched by `alpha` too; make it one patch, or let `beta` patch "
        "another place",
    ),
    "the slot of another companion": (
        registry(f"{companion()}, {companion(id='gamma-ray')}"),
        "`up.mod:key` is patched by `beta` too; make it one patch, or let `gamma-ray` "
        "patch another place",
    ),
    "the id of a gap": (
        registry(companion(id="alpha")),
        "duplicate gap id `alpha`; give each gap its own",
    ),
    "a name that is not there": (
        registry(companion(replacement="three")),
        "`three` is not defined in `stand_in.patches.beta`; did you mean `Three`?",
    ),
    "a module that is not there": (
        registry(companion(id="gone")),
        "the module `stand_in.patches.gone` does not exist; its names are expected "
        "there: add `gone.py`",
    ),
    "outside the upstreams": (
        registry(companion("upp.mod:key")),
        "`upp.mod:key` is outside the upstreams; did you mean `up`?",
    ),
    "a range that never matches": (
        registry(companion(versions="{up: '>2,<1'}")),
        "`>2,<1` can never match; no version is inside; check the bounds",
    ),
    "gaps of no kind": (
        registry(companion(goes_with="some-gaps")),
        "`goes_with` cannot be `some-gaps`; did you mean `traced-gaps`?",
    ),
}


@pytest.mark.parametrize(("text", "said"), MISTAKES.values(), ids=MISTAKES)
def test_mistake(text: str, said: str, problems_of: Refuse) -> None:
    found = [f"{problem.message}; {problem.fix}" for problem in problems_of(text)]
    assert said in found
    assert len(found) == 1 or "some-gaps" in text
    assert all(problem.line for problem in problems_of(text))


TRACED = {
    "cos-sin",
    "kv-cache",
    "npu-graph",
    "extract-hidden-states",
    "profile-run-mc2",
}


def test_those_that_ship() -> None:
    found = load()
    assert {gap.id for gap in found.gaps if gap.traced} == TRACED
    have = {gap.id: [one.id for one in found.companions_of(gap)] for gap in found.gaps}
    assert have == {
        gap.id: ["compile-key"] * (gap.id in TRACED) + ["rank-agreement"]
        for gap in found.gaps
    }
    (key,) = found.companions[0].patches
    assert key.target == "vllm.config.vllm:VllmConfig.compute_hash"
