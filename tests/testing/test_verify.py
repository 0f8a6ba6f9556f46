"""`--shims-verify`: the test that leaves a trace fails, and no other does."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

from .project import Project

pytest_plugins = ["pytester"]

HEAD = """
    import importlib, os, sys, threading, unittest.mock
    import importlib.machinery
    import ascend_shims, pytest
    from ascend_shims.testing import Shims

    def fake(word):
        return "fake"

    class Finder:
        @classmethod
        def find_spec(cls, name, path=None, target=None):
            return None
"""

LEAKS = {
    "a wrapper kept by the test itself": (
        "ascend_shims.apply(registry='gaps.yaml'); kept = [core.answer];"
        "ascend_shims.revert(); sys.modules[__name__].kept = kept[0]",
        ["test_it:kept: refers to a wrapper of shims before answer of madeup.core"],
    ),
    "a plain function": (
        "core.answer = fake",
        ["madeup.core:answer: is another object, fake of test_it"],
    ),
    "a mock": (
        "unittest.mock.patch('madeup.core.answer').start()",
        ["madeup.core:answer: is another object, a MagicMock of unittest.mock"],
    ),
    "upstream's own function in another's place": (
        "core.answer = core.question",
        ["madeup.core:answer: is another object, question of madeup.core"],
    ),
    "a method of a base on its heir": (
        "core.Heir.say = core.Speaker.say",
        ["madeup.core:Heir.say: is new, Speaker.say of madeup.core"],
    ),
    "a method": (
        "core.Speaker.say = lambda self, word: 'no'",
        ["madeup.core:Speaker.say: is another object, *<lambda> of test_it"],
    ),
    "a name deleted": ("del core.question", ["madeup.core:question: is gone"]),
    "another order": (
        "vars(core)['answer'] = vars(core).pop('answer')",
        ["madeup.core: its names stand in another order"],
    ),
    "a reload": (
        "importlib.reload(user); importlib.reload(core)",
        [
            "madeup.core:fill: is another object of the same code",
            "madeup.core:two: is another object of the same code",
            "madeup.core:answer: is another object of the same code",
            "madeup.core:question: is another object of the same code",
            "madeup.core:Speaker: is another object, Speaker of madeup.core",
            "madeup.core:Heir: is another object, Heir of madeup.core",
        ],
    ),
    "a module thrown out": (
        "del sys.modules['madeup.user']",
        ["madeup.user: is gone from sys.modules"],
    ),
    "a module imported anew": (
        "del sys.modules['madeup.user']; import madeup.user",
        ["madeup.user: is another module"],
    ),
    "a finder": (
        "sys.meta_path.insert(0, Finder)",
        ["sys.meta_path: test_it.Finder is new"],
    ),
    "a finder taken away": (
        "sys.meta_path.remove(importlib.machinery.BuiltinImporter)",
        ["sys.meta_path: *BuiltinImporter is gone"],
    ),
    "a path hook": (
        "sys.path_hooks.append(fake)",
        ["sys.path_hooks: test_it.fake is new"],
    ),
    "a variable": (
        "os.environ['ASCEND_SHIMS_GUARD'] = 'guard.yaml'",
        ["os.environ['ASCEND_SHIMS_GUARD']: was not set, is 'guard.yaml'"],
    ),
    "a patch of what the test has imported": (
        "import madeup.late; madeup.late.helper = fake",
        ["madeup.late:helper: is fake of test_it"],
    ),
    "what the test has imported, gone": (
        "import madeup.late; del madeup.late.helper",
        ["madeup.late:helper: is gone"],
    ),
    "a module imported under a patch": (
        "core.answer, found = fake, core.answer; import madeup.late;"
        "core.answer = found",
        ["madeup.late:answer: is fake of test_it"],
    ),
    "shims left applied": (
        "ascend_shims.apply(registry='gaps.yaml')",
        [
            "madeup.core:answer: is another object, a wrapper of shims before answer *",
            "madeup.user:answer: is another object, a wrapper of shims before answer *",
            "sys.meta_path: ascend_shims.engine.hooks._Finder is new",
            "threads: ascend-shims-responder is running",
            "os.environ['ASCEND_SHIMS_REGISTRY']: was not set, is '*.yaml'",
            "os.environ['VLLM_RAY_EXTRA_ENV_VAR_PREFIXES_TO_COPY']: was not set, *",
        ],
    ),
}


@pytest.fixture
def leaky(project: Project) -> Project:
    project.ini("shims_registry = gaps.yaml")
    return project


def told(result: pytest.RunResult) -> dict[str, list[str]]:
    """By test: the lines of its error at teardown, without the first."""
    found: dict[str, list[str]] = {}
    for line in result.outlines:
        # Where CI is set, pytest repeats whole messages there.
        if " short test summary info " in line:
            break
        if line.startswith("__") and " ERROR at teardown of " in line:
            name = line.strip("_ ").rpartition(" ")[2]
        elif line == "--shims-verify: this test has left":
            found[name] = []
        elif line.startswith("  ") and found:
            found[name].append(line.strip())
    return found


def test_every_leak_fails_its_test_and_is_named(leaky: Project) -> None:
    """In one run, each with an upstream of its own: who comes after one that leaks is
    not taken for it."""
    packages = [f"up{number}" for number in range(len(LEAKS))]
    imports = "".join(f"    import {up}.core, {up}.user\n" for up in packages)
    tests = [HEAD, imports]
    for up, (body, _) in zip(packages, LEAKS.values(), strict=True):
        leaky.upstream(up)
        leaky.registry(f"{up}.yaml", [up], f"{up}.core:answer")
        text = body.replace("madeup", up).replace("gaps.yaml", f"{up}.yaml")
        tests.append(
            f"""
    def test_{up}():
        from {up} import core, user
        {text}

    def test_after_{up}(shims):
        pass
    """
        )
    leaky.registry("gaps.yaml", packages, "up0.core:answer")
    leaky.write("test_it.py", "".join(tests))
    result = leaky.run("--shims-verify", "test_it.py")
    found = told(result)
    for up, (leak, (_, said)) in zip(packages, LEAKS.items(), strict=True):
        lines = sorted(line.replace("madeup", up).replace("[", "[[]") for line in said)
        seen = found.pop(f"test_{up}", [])
        assert len(seen) == len(lines), (leak, seen)
        assert all(map(fnmatchcase, seen, lines)), (leak, seen)
    assert found == {}
    passed = 2 * len(LEAKS)
    assert result.parseoutcomes() == {"passed": passed, "errors": len(LEAKS)}


HARMLESS = {
    "nothing": "pass",
    "an import": "import madeup.late",
    "an import of everybody": "import json.tool, xmlrpc.client, wave",
    "state": "core.LIMIT = 4; core.count = 1; core.Speaker.limit = 5; core.hook = None",
    "the fixture": "shims.apply(registry='gaps.yaml'); assert core.answer('a') == 'A'",
    "an import while applied": "shims.apply(registry='gaps.yaml'); import madeup.late;"
    "assert madeup.late.answer('a') == 'A'",
    "the fixture and a failure": "shims.apply(registry='gaps.yaml'); assert 0",
    "monkeypatch": "monkeypatch.setattr(core, 'answer', fake);"
    "monkeypatch.setenv('ASCEND_SHIMS_DISABLE', 'loud')",
    "what upstream does itself": "import madeup.lazy; assert core.extra() == 1",
    "what upstream fills in": "core.fill(); assert core.filled() == 2",
    "a variable of somebody": "os.environ['SOMETHING'] = '1'",
    "a thread of somebody": "threading.Timer(9, print).start()",
}


def test_what_is_no_trace_is_none(leaky: Project) -> None:
    tests = [HEAD]
    packages = [f"up{number}" for number in range(len(HARMLESS))]
    for up, body in zip(packages, HARMLESS.values(), strict=True):
        leaky.upstream(up)
        leaky.registry(f"{up}.yaml", [up], f"{up}.core:answer")
        text = body.replace("madeup", up).replace("gaps.yaml", f"{up}.yaml")
        tests.append(
            f"""
    def test_{up}(shims, monkeypatch):
        from {up} import core, user
        {text}
    """
        )
    leaky.registry("gaps.yaml", packages, "up0.core:answer")
    leaky.write("test_it.py", "".join(tests))
    result = leaky.run("--shims-verify", "test_it.py")
    failing = sum("assert 0" in body for body in HARMLESS.values())
    assert failing == 1
    passed = len(HARMLESS) - failing
    assert result.parseoutcomes() == {"passed": passed, "failed": failing}


WIDE = f"""{HEAD}
    from madeup import core

    @pytest.fixture(scope="{{scope}}", params=[1, 2])
    def applied(request):
        shims = sys.kept = Shims.context()
        shims.__enter__().apply(registry="gaps.yaml")
        yield
        if "{{leaks}}" != "yes":
            shims.__exit__(None, None, None)

    class TestIt:
        def test_without(self):
            assert core.answer("a") == "a"

        def test_with(self, applied):
            assert core.answer("a") == "A"

        def test_late(self, request):
            request.getfixturevalue("late")

    @pytest.fixture(scope="module")
    def late():
        core.question, found = fake, core.question
        yield
        core.question = found
"""


@pytest.mark.parametrize("scope", ["class", "module", "session"])
def test_fixtures_of_wider_scopes_leave_no_trace_in_a_test(
    leaky: Project, scope: str
) -> None:
    leaky.write("test_it.py", WIDE.format(scope=scope, leaks="no"))
    assert leaky.outcomes("--shims-verify", "test_it.py") == {"passed": 4}


@pytest.mark.parametrize("scope", ["class", "module", "session"])
def test_a_fixture_of_a_wider_scope_that_leaks_is_told_at_its_end(
    leaky: Project, scope: str
) -> None:
    leaky.write("test_it.py", WIDE.format(scope=scope, leaks="yes"))
    leaky.write("test_later.py", "def test_later(): pass\n")
    result = leaky.run("--shims-verify", "test_it.py", "test_later.py")
    counts = result.parseoutcomes()
    assert counts == {"passed": 5, "errors": 1}
    result.stdout.fnmatch_lines([f"--shims-verify: this {scope} has left"])


def test_a_fixture_of_a_conftest_that_leaks_counts_as_the_tests(leaky: Project) -> None:
    leaky.write(
        "conftest.py",
        """
        import pytest
        @pytest.fixture(autouse=True)
        def leak(request):
            yield
            if request.node.name == "test_it":
                import madeup.core
                madeup.core.answer = len
        """,
    )
    leaky.write(
        "test_it.py",
        f"{HEAD}\n    import madeup.core\n    def test_it(): pass\n"
        "    def test_b(): pass\n",
    )
    result = leaky.run("--shims-verify", "test_it.py")
    assert result.parseoutcomes() == {"passed": 2, "errors": 1}
    result.stdout.fnmatch_lines(
        ["*ERROR at teardown of test_it*", "  madeup.core:answer: is another object, *"]
    )


def test_each_process_of_xdist_verifies_its_own(leaky: Project) -> None:
    leaky.write(
        "test_it.py",
        f"""{HEAD}
    from madeup import core

    @pytest.mark.parametrize("number", range(8))
    def test_it(number, shims):
        shims.apply(registry="gaps.yaml")
        if number == 3:
            core.LIMIT, core.question = 9, fake
    """,
    )
    result = leaky.run("--shims-verify", "-p", "xdist", "-n", "2", "test_it.py")
    assert result.parseoutcomes() == {"passed": 8, "errors": 1}
    result.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test_it?3?*",
            "  madeup.core:question: is another object, fake of test_it",
        ]
    )


def test_without_the_option_nothing_is_looked_at(leaky: Project) -> None:
    leaky.write(
        "test_it.py",
        f"{HEAD}\n    from madeup import core\n    def test_it(): core.answer = 1\n",
    )
    assert leaky.outcomes("test_it.py") == {"passed": 1}


def test_unittest_is_verified_as_well(leaky: Project) -> None:
    leaky.write(
        "test_it.py",
        f"""{HEAD}
    from madeup import core

    class TestIt(unittest.TestCase):
        def test_good(self):
            pass
        def test_leak(self):
            core.answer = fake
    """,
    )
    assert leaky.outcomes("--shims-verify", "test_it.py") == {"passed": 2, "errors": 1}


def test_a_registry_that_cannot_be_used_is_a_usage_error(leaky: Project) -> None:
    (leaky.root / "gaps.yaml").write_text("schema: 1\n")
    result = leaky.run("--shims-verify")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*gaps.yaml*upstreams*"])
