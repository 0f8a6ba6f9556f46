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


# Scopes that nest

MANY = """
    import functools

    def wrapped(word):
        return word

    def decorated(word):
        return word

    async def replaced(word):
        return word

    @functools.lru_cache
    def cached(word):
        return word

    class Base:
        def inherited(self, word):
            return word

    class Many(Base):
        @staticmethod
        def static(word):
            return word

        @property
        def given(self):
            return "word"
"""
LAID = {
    "wrapped": ("wrapped", "wrap", "def shout(call, word): return call(word) * 2"),
    "decorated": (
        "decorated",
        "decorate",
        "def shout(function): return lambda word: function(word) * 2",
    ),
    "replaced": ("replaced", "replace", "async def shout(word): return word * 2"),
    "cached": ("cached", "wrap", "def shout(call, word): return call(word) * 2"),
    "inherited": ("Many.inherited", "wrap", "def shout(call, *a): return call(*a)"),
    "static": ("Many.static", "wrap", "def shout(call, word): return call(word)"),
    "given": ("Many.given", "wrap", "def shout(call, self): return call(self)"),
    "added": ("added", "add", "def shout(word): return word"),
}
NESTED = f"""{HEAD}
    from madeup import core, many, user
    from madeup.core import answer
    from madeup.many import wrapped

    @pytest.fixture(scope="{{scope}}", autouse=True)
    def applied():
        with Shims.context() as shims:
            yield shims.apply(registry="gaps.yaml")

    class TestIt:
        def test_revert(self, shims):
            shims.revert()
            assert (core.answer("a"), many.wrapped("a")) == ("a", "a")

        def test_one_less(self, shims):
            shims.apply(registry="gaps.yaml", disable=["loud"])
            assert (core.answer("a"), many.wrapped("a")) == ("a", "aa")

        def test_disabled(self, shims):
            with shims.disabled("wrapped"):
                assert (core.answer("a"), many.wrapped("a")) == ("A", "a")
            ascend_shims.revert()

        def test_twice_and_raising(self, shims):
            shims.revert()
            shims.apply(registry="gaps.yaml")
            shims.apply(registry="gaps.yaml", disable=["wrapped"])
            raise LookupError

        def test_as_before(self):
            assert (core.answer("a"), user.answer("a"), answer("a")) == ("A", "A", "A")
            assert (many.wrapped("a"), wrapped("a")) == ("aa", "aa")
            assert many.added("a") == "a"
"""


@pytest.fixture
def many(leaky: Project) -> Project:
    """A gap for each kind of target and of patch."""
    leaky.write("madeup/many.py", MANY)
    for gap, (target, kind, source) in LAID.items():
        leaky.gap(gap, f"madeup.many:{target}", "shout", kind=kind, source=source)
    return leaky


@pytest.mark.parametrize("scope", ["class", "module", "session"])
def test_what_is_laid_again_as_it_was_is_no_trace(many: Project, scope: str) -> None:
    many.write("test_it.py", NESTED.format(scope=scope))
    many.write("test_later.py", "def test_later(): pass\n")
    result = many.run("--shims-verify", "test_it.py", "test_later.py")
    assert result.parseoutcomes() == {"passed": 5, "failed": 1}


WITHIN = {
    "one gap less": (
        "ascend_shims.apply(registry='gaps.yaml', disable=['loud'])",
        [
            "madeup.core:answer: is another object, answer of madeup.core",
            "madeup.user:answer: is another object, answer of madeup.core",
            "os.environ['ASCEND_SHIMS_DISABLE']: was not set, is 'loud'",
        ],
    ),
    "none": (
        "ascend_shims.revert()",
        [
            "madeup.core:answer: is another object, answer of madeup.core",
            "madeup.user:answer: is another object, answer of madeup.core",
            "madeup.core:question: is another object, question of madeup.core",
            "os.environ['ASCEND_SHIMS_REGISTRY']: was '*', is not set",
            "os.environ['VLLM_RAY_EXTRA_ENV_VAR_PREFIXES_TO_COPY']: was *",
            "sys.meta_path: ascend_shims.engine.hooks._Finder is gone",
        ],
    ),
    "a wrapper of before, which has stepped aside": (
        "kept = core.answer\n"
        "        ascend_shims.revert()\n"
        "        ascend_shims.apply(registry='gaps.yaml')\n"
        "        core.answer = kept",
        [
            "madeup.core:answer: is a wrapper of shims before answer of madeup.core, "
            "which has stepped aside"
        ],
    ),
    "a wrapper in front of another": (
        "core.answer = core.question",
        ["madeup.core:answer: is another wrapper of shims before question of madeup.*"],
    ),
}


@pytest.mark.parametrize("leak", WITHIN)
def test_a_trace_within_a_wider_scope_is_one_of_its_test(
    leaky: Project, leak: str
) -> None:
    """And of nobody else: at the end of the wider scope it is gone."""
    body, said = WITHIN[leak]
    leaky.gap("again", "madeup.core:question", "shout")
    leaky.write(
        "test_it.py",
        f"""{HEAD}
    from madeup import core, user

    @pytest.fixture(scope="module")
    def applied():
        found = core.answer, core.question, user.answer
        with Shims.context() as shims:
            yield shims.apply(registry="gaps.yaml")
        core.answer, core.question, user.answer = found

    def test_before(applied):
        pass

    def test_it(applied):
        {body}

    def test_later(applied):
        pass
    """,
    )
    result = leaky.run("--shims-verify", "test_it.py")
    assert result.parseoutcomes() == {"passed": 3, "errors": 1}
    (seen,) = told(result).values()
    lines = sorted(line.replace("[", "[[]") for line in said)
    assert len(seen) == len(lines), seen
    assert all(map(fnmatchcase, seen, lines)), seen


# What is the same object and yet another

ALTERED = """
    import functools

    def plain(word, mark="?"):
        return word + mark

    def named(word, *, mark="?", rest=()):
        return word + mark

    def quiet(function):
        @functools.wraps(function)
        def inner(*args):
            return function(*args)
        return inner

    @quiet
    def beneath(word):
        return word

    @functools.lru_cache
    def cached(word):
        return word

    class Base:
        pass

    class Other:
        pass

    class Speaker(Base):
        def say(self, word):
            return word

        @property
        def given(self):
            return 1

        @given.setter
        def given(self, value):
            pass

        @classmethod
        def made(cls, word="tea"):
            return cls()
"""
ALTERATIONS = {
    "altered.plain.__code__ = (lambda word, mark: 1).__code__": "plain: has other code",
    "altered.plain.__defaults__ = ('!',)": "plain: has other defaults",
    "altered.plain.__defaults__ = None": "plain: has other defaults",
    "altered.plain.__kwdefaults__ = {'mark': 1}": "plain: has other keyword defaults",
    "altered.named.__kwdefaults__ = {'mark': '!', 'rest': ()}": (
        "named: has other keyword defaults"
    ),
    "altered.named.__kwdefaults__['mark'] = '!'": "named: has other keyword defaults",
    "del altered.named.__kwdefaults__['rest']": "named: has other keyword defaults",
    "altered.beneath.__wrapped__.__code__ = fake.__code__": "beneath: has other code",
    "altered.beneath.__code__ = enclosing().__code__": "beneath: has other code",
    "altered.cached.__wrapped__.__code__ = fake.__code__": "cached: has other code",
    "altered.Speaker.say.__code__ = fake.__code__": "Speaker.say: has other code",
    "vars(altered.Speaker)['given'].fset.__code__ = fake.__code__": (
        "Speaker.given: has other code"
    ),
    "vars(altered.Speaker)['made'].__func__.__defaults__ = ('rum',)": (
        "Speaker.made: has other defaults"
    ),
    "altered.Speaker.__bases__ = (altered.Other,)": "Speaker: has other bases",
}


@pytest.mark.parametrize("when", ["stock", "applied", "imported by the test"])
def test_what_is_altered_in_place_is_a_trace(leaky: Project, when: str) -> None:
    """It is told once, by the name that it has at home."""
    tests = [
        HEAD,
        """
    def enclosing():
        kept = 1
        return lambda *args: kept
    """,
    ]
    ups = {f"up{n}": alteration for n, alteration in enumerate(ALTERATIONS)}
    for up, alteration in ups.items():
        leaky.upstream(up)
        leaky.write(f"{up}/altered.py", ALTERED)
        leaky.write(f"{up}/again.py", f"from {up}.altered import *\n")
        imports, body = f"import {up}.again, {up}.altered", alteration
        if when == "applied":
            # The function beneath our wrapper is upstream's own, and altered.
            body = body.replace("plain.__", "plain.__wrapped__.__")
            body = f"shims.apply(registry='{up}.yaml'); {body}"
            leaky.registry(f"{up}.yaml", [up], f"{up}.altered:plain")
        if when != "imported by the test":
            tests.append(f"\n    {imports}\n")
        tests.append(
            f"""
    def test_{up}(shims):
        {imports}
        altered = {up}.altered
        {body}

    def test_after_{up}(shims):
        pass
    """
        )
    leaky.registry("gaps.yaml", list(ups), "up0.altered:named")
    leaky.write("gaps/loud.py", "def shout(call, *a, **k): return call(*a, **k)\n")
    leaky.write("test_it.py", "".join(tests))
    result = leaky.run("--shims-verify", "test_it.py")
    found = told(result)
    for up, alteration in ups.items():
        said = [f"{up}.altered:{ALTERATIONS[alteration]}"]
        assert found.pop(f"test_{up}", []) == said, alteration
    assert found == {}
    count = len(ALTERATIONS)
    assert result.parseoutcomes() == {"passed": 2 * count, "errors": count}


def test_what_is_put_back_or_equal_is_no_trace(leaky: Project) -> None:
    leaky.write("madeup/altered.py", ALTERED)
    leaky.write(
        "test_it.py",
        f"""{HEAD}
    import madeup.altered

    def test_put_back(monkeypatch):
        plain, named = madeup.altered.plain, madeup.altered.named
        monkeypatch.setattr(plain, "__code__", fake.__code__)
        monkeypatch.setattr(plain, "__defaults__", None)
        monkeypatch.setitem(named.__kwdefaults__, "mark", "!")
        assert (plain("tea"), named("tea")) == ("fake", "tea!")

    def test_equal():
        plain, named = madeup.altered.plain, madeup.altered.named
        plain.__code__ = plain.__code__.replace()
        plain.__defaults__ = tuple(list(plain.__defaults__))
        named.__kwdefaults__ = dict(reversed(named.__kwdefaults__.items()))
        madeup.altered.Speaker.__bases__ = (madeup.altered.Base,)

    def test_attributes():
        madeup.altered.plain.count = 1
        madeup.altered.plain.__doc__ = "said"
    """,
    )
    assert leaky.outcomes("--shims-verify", "test_it.py") == {"passed": 3}
