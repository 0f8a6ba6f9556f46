"""The fixture `shims` and `Shims.context()`, in the tests of a project."""

from __future__ import annotations

import pytest

from .project import Project

pytest_plugins = ["pytester"]

HEAD = """
    import os, sys
    import ascend_shims, pytest
    from ascend_shims.testing import Shims
    from ascend_shims.processes.address import listening

    def stock():
        from madeup import core, user
        names = [name for name in os.environ if name.startswith("ASCEND_SHIMS")]
        return (
            core.answer("tea") == user.answer("tea") == "tea"
            and names == ["ASCEND_SHIMS_ALLOW"]
            and not [f for f in sys.meta_path if "ascend" in type(f).__module__]
            and os.getpid() not in listening()
        )
"""


def test_it_applies_in_the_test_and_is_gone_in_the_next(project: Project) -> None:
    project.write(
        "test_it.py",
        f"""{HEAD}
    def test_first(shims):
        from madeup import core, user
        assert stock()
        report = shims.apply(registry="gaps.yaml")
        assert core.answer("tea") == user.answer("tea") == "TEA"
        assert report.state("loud") == shims.status().state("loud") == "applied"
        with shims.disabled("loud"):
            assert core.answer("tea") == "tea"
        assert shims.revert().state("loud") == "reverted"
        assert stock()
        shims.apply(only=["loud"], registry="gaps.yaml")
        assert shims.status().state("loud") == "applied"

    def test_next():
        assert stock()
    """,
    )
    assert project.outcomes() == {"passed": 2}


ENDS = {
    "a failing test": ("assert 0", "", {"failed": 1}),
    "a raising test": ("raise LookupError", "", {"failed": 1}),
    "an exit": ("raise SystemExit(3)", "", {"failed": 1}),
    "a skip": ("pytest.skip()", "", {"skipped": 1}),
    "a fixture that raises as it is set up": (
        "pass",
        "raise LookupError\n        yield",
        {"errors": 1},
    ),
    "a fixture that raises as it is taken down": (
        "pass",
        "yield\n        raise LookupError",
        {"passed": 1, "errors": 1},
    ),
    "a test that applies by itself": (
        "ascend_shims.apply(registry='gaps.yaml', disable=['loud'])",
        "",
        {"passed": 1},
    ),
}


@pytest.mark.parametrize("how", ENDS)
def test_it_is_reverted_however_the_test_ends(project: Project, how: str) -> None:
    body, fixture, expected = ENDS[how]
    project.write(
        "test_it.py",
        f"""{HEAD}
    @pytest.fixture
    def other(shims):
        shims.apply(registry="gaps.yaml")
        {fixture or "yield"}

    def test_first(shims, other):
        from madeup import core
        assert core.answer("tea") == "TEA"
        {body}

    def test_next():
        assert stock()
    """,
    )
    passed = expected.get("passed", 0) + 1
    assert project.outcomes() == {**expected, "passed": passed}


def test_what_the_test_never_applied_counts_as_never_applied(project: Project) -> None:
    """Also for vLLM's plugin, which leaves alone a program that has decided."""
    project.write(
        "test_it.py",
        f"""{HEAD}
    from ascend_shims.plugin import register

    @pytest.mark.parametrize("number", [1, 2])
    def test_it(shims, number, monkeypatch):
        import madeup.core
        monkeypatch.setenv("ASCEND_SHIMS_REGISTRY", "gaps.yaml")
        assert shims.status().state("loud") == "pending"
        assert "when upstream is imported" in shims.status()["loud"].reason
        register()
        assert shims.status().state("loud") == "applied"
        shims.revert()
        register()
        assert shims.status().state("loud") == "reverted"
    """,
    )
    assert project.outcomes() == {"passed": 2}


WIDE = f"""{HEAD}
    seen = []

    @pytest.fixture(scope="{{scope}}")
    def applied():
        with Shims.context() as shims:
            shims.apply(registry="gaps.yaml", only=["loud"])
            yield shims
        seen.append(stock())

    class TestIt:
        def test_first(self, applied):
            from madeup import core
            assert core.answer("tea") == "TEA"
            assert os.environ["ASCEND_SHIMS_ONLY"] == "loud"

        def test_inner_scope(self, applied, shims):
            from madeup import core
            shims.apply(registry="gaps.yaml", disable=["loud"])
            assert core.answer("tea") == "tea"
            assert os.environ["ASCEND_SHIMS_DISABLE"] == "loud"

        def test_inner_scope_that_reverts(self, applied, shims):
            from madeup import core
            shims.revert()
            assert stock()

        def test_as_before(self, applied):
            from madeup import core
            assert core.answer("tea") == "TEA"
            assert os.environ["ASCEND_SHIMS_ONLY"] == "loud"
            assert "ASCEND_SHIMS_DISABLE" not in os.environ
            assert ascend_shims.status().state("loud") == "applied"

    def teardown_module():
        assert stock()
        assert seen == {{seen}}
"""


@pytest.mark.parametrize("scope", ["class", "module", "session"])
def test_scopes_of_any_width_nest(project: Project, scope: str) -> None:
    seen = "[True]" if scope != "session" else "[]"
    text = WIDE.format(scope=scope, seen=seen)
    if scope == "session":
        text = text.replace(
            "        assert stock()\n        assert seen", "        assert seen"
        )
    project.write("test_it.py", text)
    project.write(
        "test_later.py", f"{HEAD}\n    def test_later():\n        assert stock()\n"
    )
    expected = {"passed": 5} if scope != "session" else {"passed": 4, "failed": 1}
    assert project.outcomes() == expected


def test_a_variable_that_is_set_meanwhile_stays_whose_it_is(project: Project) -> None:
    project.write(
        "test_it.py",
        f"""{HEAD}
    @pytest.mark.parametrize("order", ["before", "after"])
    def test_it(order, request):
        names = ["monkeypatch", "shims"]
        for name in names if order == "before" else reversed(names):
            request.getfixturevalue(name)
        monkeypatch, shims = map(request.getfixturevalue, names)
        monkeypatch.setenv("ASCEND_SHIMS_DISABLE", "loud")
        assert shims.apply(registry="gaps.yaml").state("loud") == "off"

    def test_next():
        assert stock()
    """,
    )
    assert project.outcomes() == {"passed": 3}


def test_it_works_in_the_processes_of_xdist(project: Project) -> None:
    project.write(
        "test_it.py",
        f"""{HEAD}
    @pytest.mark.parametrize("number", range(6))
    def test_it(shims, number):
        assert stock()
        shims.apply(registry="gaps.yaml")
        assert not stock()
    """,
    )
    assert project.outcomes("-p", "xdist", "-n", "2") == {"passed": 6}


def test_a_slot_that_cannot_be_put_back_is_an_error(project: Project) -> None:
    project.write(
        "test_it.py",
        f"""{HEAD}
    def test_first(shims, monkeypatch):
        import madeup.core
        shims.apply(registry="gaps.yaml")
        from ascend_shims.engine.slot import Slot
        Slot.write = None

    def test_next():
        pass
    """,
    )
    result = project.run()
    assert result.parseoutcomes() == {"passed": 2, "errors": 1}
    result.stdout.fnmatch_lines(["*RestoreError: madeup.core:answer could not be put*"])
