"""The toolkit itself imported again, while the first one's patches are in force."""

from __future__ import annotations

import pytest

from ..engine.world import World

HEAD = """
import importlib, os, sys
import ascend_shims, UP.a
def values():
    return UP.a.f(), UP.a.C().m()
def evict():
    for name in [n for n in sys.modules if n.partition(".")[0] == "ascend_shims"]:
        del sys.modules[name]
def traces():
    from ascend_shims.processes.address import listening
    hooks = [f for f in sys.meta_path if type(f).__module__.startswith("ascend")]
    ray = os.environ.get("VLLM_RAY_EXTRA_ENV_VAR_PREFIXES_TO_COPY")
    return len(hooks), os.getpid() in listening(), ray
def of(report):
    return str(report.state("one")), "another copy" in report["one"].reason
before = dict(vars(UP.a)), dict(vars(UP.a.C)), traces()
print(of(ascend_shims.apply()), values())
"""
TAIL = """
assert [id(v) for v in vars(UP.a).values()] == [id(v) for v in before[0].values()]
assert [*vars(UP.a)] == [*before[0]] and [*vars(UP.a.C)] == [*before[1]]
print(values(), traces() == before[2])
"""


@pytest.mark.parametrize("module", ["", ".plugin", ".registry", ".report"])
def test_a_reload_of_what_keeps_no_state_changes_nothing(
    up: World, module: str
) -> None:
    """`importlib.reload(ascend_shims)`: the process behind it is the same."""
    said = up.run(
        f"""{HEAD}
import ascend_shims{module}
importlib.reload(ascend_shims{module})
print(of(ascend_shims.status()), of(ascend_shims.apply()), values())
ascend_shims.revert()
{TAIL}"""
    )
    assert said.splitlines() == [
        "('applied', False) (10, 10)",
        "('applied', False) ('applied', False) (10, 10)",
        "(1, 1) True",
    ]


AGAIN = {
    "evicted and imported anew": "evict()\nimport ascend_shims",
    "the process reloaded": "importlib.reload(sys.modules['ascend_shims.process'])",
}


@pytest.mark.parametrize("again", AGAIN)
def test_a_toolkit_imported_anew_says_whose_the_patches_are_and_takes_them_back(
    up: World, again: str
) -> None:
    said = up.run(
        f"""{HEAD}
{AGAIN[again]}
print(of(ascend_shims.status()), of(ascend_shims.apply()), values())
print(of(ascend_shims.revert()))
{TAIL}
print(of(ascend_shims.apply()), values())
ascend_shims.revert()
{TAIL}"""
    )
    assert said.splitlines() == [
        "('applied', False) (10, 10)",
        "('applied', True) ('applied', True) (10, 10)",
        "('reverted', False)",
        "(1, 1) True",
        "('applied', False) (10, 10)",
        "(1, 1) True",
    ]


def test_it_may_happen_again(up: World) -> None:
    """The one in the middle had only adopted them, and finds them lost."""
    anew = AGAIN["evicted and imported anew"]
    said = up.run(
        f"""{HEAD}
{anew}
ascend_shims.apply()
middle = ascend_shims
{anew}
print(of(ascend_shims.apply()), values())
ascend_shims.revert()
print(values(), str(middle.process.the_process().status().state("one")))
middle.process.the_process().revert(())
{TAIL}"""
    )
    assert said.splitlines()[1:] == [
        "('applied', True) (10, 10)",
        "(1, 1) lost",
        "(1, 1) True",
    ]


def test_one_that_never_applied_takes_back_what_the_other_had(up: World) -> None:
    said = up.run(
        f"{HEAD}\n{AGAIN['evicted and imported anew']}\nascend_shims.revert()\n{TAIL}"
    )
    assert said.splitlines()[1:] == ["(1, 1) True"]
