"""Public reports of classes A, B and C, each with what it says to try.

A: patches that are not applied, or too late. B: what broke after an upgrade.
C: what could not be undone, or leaked. The number of the report is in the name.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import pytest
import wrapt

import ascend_shims
from ascend_shims import plugin
from ascend_shims.engine.table import RestoreError
from ascend_shims.environment import Device
from ascend_shims.environment.versions import Fit, fit
from ascend_shims.states import State
from ascend_shims.switches import NAMES, SwitchError, read_switches

from . import fresh
from .engine.conftest import failure, own_process, world  # noqa: F401
from .engine.failing import Failure
from .engine.world import P, World
from .test_process import NO_UPSTREAM

# ruff: noqa: F811 - the fixtures are imported by their names

F = "def f(x=1): return x\n"
RAY = "VLLM_RAY_EXTRA_ENV_VAR_PREFIXES_TO_COPY"


@pytest.fixture
def up(own_process: World) -> World:
    return own_process


def one_gap(up: World) -> World:
    up.upstream(F).gap("one", P("a:f"))
    up.registry_file()
    return up


def run(up: World, *words: str, cwd: Path | None = None) -> str:
    env = {"PYTHONPATH": str(up.root), "PYTHONDONTWRITEBYTECODE": "1"}
    return fresh.run(*words, env=env, cwd=cwd or up.root)


# A: not applied, or too late

CHILDREN = """
import multiprocessing, sys
import child

if __name__ == "__main__":
    for method in ("spawn", "forkserver", "fork"):
        context = multiprocessing.get_context(method)
        with context.Pool(1) as pool:
            print(method, pool.apply(child.work))
"""


def test_a07_children_of_every_kind_are_patched_without_knowing(up: World) -> None:
    """A child that never imports the toolkit, under `shims run`."""
    one_gap(up)
    up.write("child.py", "def work():\n    import UP.a\n    return UP.a.f()\n")
    up.write("main.py", CHILDREN)
    shims = [sys.executable, "-m", "ascend_shims", "run"]
    command = ["--", sys.executable, "main.py"]
    assert run(up, *shims, *command) == "spawn 10\nforkserver 10\nfork 10\n"
    off = run(up, *shims, "--disable", "one", *command)
    assert off == "spawn 1\nforkserver 1\nfork 1\n"


def test_a07_a_child_can_be_patched_from_its_own_entry_point(up: World) -> None:
    """The same without `shims run`, by the call that vLLM makes in each process."""
    one_gap(up)
    up.write(
        "child.py",
        "def work():\n    from ascend_shims.plugin import register\n"
        "    register()\n    import UP.a\n    return UP.a.f()\n",
    )
    up.write("main.py", CHILDREN)
    assert run(up, sys.executable, "main.py") == "spawn 10\nforkserver 10\nfork 10\n"


def test_a08_a_child_that_is_half_initialised_is_not_disturbed(up: World) -> None:
    """It loads plugins while the top package is still executing, and answers on
    standard output."""
    up.upstream(
        F,
        init="""
        from ascend_shims.plugin import register
        register()
        def __getattr__(name):
            raise ImportError("a lazy name was asked for")
        """,
    )
    up.gap("one", P("a:f"))
    up.registry_file()
    code = """
import pickle, sys
import UP
function, path = pickle.loads(bytes.fromhex(%r))
sys.stdout.buffer.write(pickle.dumps(function([1])))
"""
    sent = pickle.dumps((len, "somewhere")).hex()
    done = subprocess.run(
        [sys.executable, "-B", "-c", up.spelled(code % sent)],
        env={**os.environ, "PYTHONPATH": str(up.root)},
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert pickle.loads(done.stdout) == 1
    assert done.stderr == b""


def test_a09_everything_we_document_reaches_ray_workers(up: World) -> None:
    """Only variables of chosen prefixes are copied."""
    one_gap(up)
    ascend_shims.apply()
    prefixes = [part.strip() for part in os.environ[RAY].split(",")]
    assert all(any(name.startswith(p) for p in prefixes) for name in NAMES)


WORKER = """
    class Worker:
        def m(self): return 1
        def n(self): return self.m() + 1
"""


@pytest.mark.parametrize("by_value", [False, True], ids=["subclass", "whole module"])
@pytest.mark.parametrize("toolkit", ["applied", "installed", "absent"])
def test_a11_a_class_that_travels_by_value_works_or_says_why(
    up: World, toolkit: str, by_value: bool
) -> None:
    up.upstream(WORKER).gap("one", P("a:Worker.m"))
    up.registry_file()
    a = up.import_()
    ascend_shims.apply()
    sub: Any = type("Sub", (a.Worker,), {"__module__": "__main__"})
    for name, value in vars(a.Worker).items():
        if callable(value) and not name.startswith("__"):
            setattr(sub, name, value)
    assert sub().n() == 11
    if by_value:
        cloudpickle.register_pickle_by_value(a)
    try:
        sent = cloudpickle.dumps(sub).hex()
    finally:
        if by_value:
            cloudpickle.unregister_pickle_by_value(a)
    first = {
        "applied": "import ascend_shims\nascend_shims.apply()\n",
        "installed": "",
        "absent": "import sys\nsys.modules['ascend_shims'] = None\n",
    }[toolkit]
    code = f"{first}import pickle\nprint(pickle.loads(bytes.fromhex({sent!r}))().n())\n"
    # By reference it is what the child makes of it; by value it is what was sent.
    expected = "11" if by_value or toolkit == "applied" else "2"
    assert up.run(code) == f"{expected}\n"


def test_a15_registering_imports_nothing_of_upstream(up: World) -> None:
    """With the registry that comes with the toolkit, and everything asked for."""
    code = f"""{NO_UPSTREAM}
import os
del os.environ["ASCEND_SHIMS_REGISTRY"]
from ascend_shims.plugin import register
import ascend_shims
before = len(sys.meta_path)
register()
gaps = [gap for gap in ascend_shims.status().gaps if gap.state == "pending"]
print(len(sys.meta_path) - before, len(gaps) >= 3)
print([name for name in ("vllm", "torch") if name in sys.modules])
"""
    said = up.run(code, ASCEND_SHIMS_DEVICE="sim", ASCEND_SHIMS_ASSUME="vllm=0.32.0")
    assert said == "1 True\n[]\n"


COPY_STATUS = """
import json, ascend_shims
ascend_shims.apply()
import UP.a
found = ascend_shims.status().as_dict()["environment"]
shown = found["distributions"]["UP"]
print(json.dumps([found["python"], shown["version"], shown["file"], UP.a.f()]))
"""


@pytest.mark.parametrize("versions", [("0.28.0", "0.31.0"), ("0.28.0", "0.28.0")])
def test_a17_and_a18_two_copies_are_told_apart(
    up: World, tmp_path: Path, versions: tuple[str, str]
) -> None:
    """One in the working directory, one on the path, even with the same version."""
    one_gap(up)
    up.write("UP/_version.py", f"__version__ = '{versions[0]}'\n")
    other = tmp_path / "elsewhere"
    (other / up.up).mkdir(parents=True)
    for name in ("__init__.py", "a.py"):
        (other / up.up / name).write_text((up.root / up.up / name).read_text())
    (other / up.up / "_version.py").write_text(f"__version__ = '{versions[1]}'\n")
    code = up.spelled(COPY_STATUS)
    here = json.loads(run(up, sys.executable, "-c", code, cwd=Path("/")))
    there = json.loads(run(up, sys.executable, "-c", code, cwd=other))
    assert here == [
        sys.executable,
        versions[0],
        str(up.root / up.up / "__init__.py"),
        10,
    ]
    assert there == [
        sys.executable,
        versions[1],
        str(other / up.up / "__init__.py"),
        10,
    ]


def test_a18_the_process_itself_is_what_is_looked_at(up: World) -> None:
    """Not what was written, and not another process's copy."""
    one_gap(up)
    a = up.import_()
    ascend_shims.apply()
    assert ascend_shims.status().state("one") is State.APPLIED
    a.f = lambda x=1: x
    assert ascend_shims.status().state("one") is State.BURIED
    importlib.reload(a)
    assert ascend_shims.status().state("one") is State.APPLIED
    assert a.f() == 10


CONFTEST = """
import ascend_shims, pytest

@pytest.fixture(scope="session", autouse=True)
def shims():
    {early}
    ascend_shims.apply()
    yield
    ascend_shims.revert()
"""


def test_a19_a_test_module_collected_before_the_fixture_is_patched(up: World) -> None:
    """Its own global, imported by name at its top, follows."""
    one_gap(up)
    tests = up.root / "tests"
    tests.mkdir()
    (tests / "conftest.py").write_text(CONFTEST.format(early=""))
    test = up.spelled("from UP.a import f\n\ndef test_it():\n    assert f(1) == 10\n")
    (tests / "test_it.py").write_text(test)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    assert "1 passed" in run(up, *words)
    # The other order: applied before the test module is imported.
    (tests / "conftest.py").write_text("import ascend_shims\nascend_shims.apply()\n")
    assert "1 passed" in run(up, *words)


@pytest.mark.parametrize(
    ("value", "on"),
    [
        ("", None),
        ("0", False),
        ("1", True),
        ("false", False),
        ("False", False),
        ("no", False),
        ("off", False),
        (" 1 ", True),
        ("on", True),
        ("2", None),
    ],
)
def test_a20_a_switch_means_the_same_everywhere(
    up: World, monkeypatch: pytest.MonkeyPatch, value: str, on: bool | None
) -> None:
    up.upstream(F).gap("one", P("a:f"))
    up.gap("two", P("a:f", "plus_one"), default="off", after=("one",))
    up.registry_file()
    monkeypatch.setenv("ASCEND_SHIMS", value)
    switches = read_switches(os.environ)
    assert switches.choice("two").on is on
    assert bool(switches.complaints) == (value == "2")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ascend_shims.apply()
    assert up.import_().f() == {None: 10, False: 1, True: 11}[on]
    asked = subprocess.run(
        [sys.executable, "-m", "ascend_shims", "status", "--json", "--all"],
        env={**os.environ, "PYTHONPATH": str(up.root)},
        capture_output=True,
        text=True,
        check=False,
    )
    if value == "2":
        assert asked.returncode == 2
        assert "ASCEND_SHIMS=2 is not understood" in asked.stderr
        return
    # It is 1 where any process on the machine has a gap that is not in force.
    assert asked.returncode in (0, 1)
    gaps = json.loads(asked.stdout)["gaps"]
    expected = {None: ["pending", "off"], False: ["off", "off"]}
    assert [g["state"] for g in gaps] == expected.get(on, ["pending", "pending"])


def test_a20_an_unknown_gap_is_told_with_the_nearest(up: World) -> None:
    one_gap(up)
    with pytest.raises(SwitchError, match="did you mean 'one'"):
        ascend_shims.apply(disable=["ome"])
    os.environ["ASCEND_SHIMS_DISABLE"] = "ome"
    try:
        with pytest.warns(UserWarning, match="did you mean 'one'"):
            ascend_shims.apply()
    finally:
        del os.environ["ASCEND_SHIMS_DISABLE"]


@pytest.mark.parametrize("plugins", ["ascend", "ascend, shims", "", None])
def test_a21_the_call_works_whatever_plugins_vllm_is_told_to_load(
    up: World, monkeypatch: pytest.MonkeyPatch, plugins: str | None
) -> None:
    one_gap(up)
    if plugins is not None:
        monkeypatch.setenv("VLLM_PLUGINS", plugins)
    ascend_shims.apply()
    assert up.import_().f() == 10


# B: broke after an upgrade


@pytest.mark.parametrize(
    ("assume", "states", "value"),
    [
        ("", ("applied", "missing-target"), 10),
        ("0.28.0", ("applied", "version-skipped"), 10),
        ("0.26.0", ("version-skipped", "missing-target"), 1),
    ],
)
def test_b03_and_b05_a_version_that_tells_nothing_is_not_an_old_one(
    up: World, monkeypatch: pytest.MonkeyPatch, assume: str, states: Any, value: int
) -> None:
    """The override decides, else the target itself, and nothing raises."""
    up.upstream(F, _version="__version__ = '0.1.dev1+g5e40263c3.empty'\n")
    up.gap("one", P("a:f"), versions={up.up: ">=0.27"})
    up.gap("two", P("a:gone"), versions={up.up: "<0.27"})
    up.registry_file()
    if assume:
        monkeypatch.setenv("ASCEND_SHIMS_ASSUME", f"{up.up}={assume}")
    plugin.register()
    assert up.import_().f() == value
    report = ascend_shims.status()
    assert (report.state("one"), report.state("two")) == states
    shown = report.environment.distributions[up.up].version
    assert shown == (assume or "0.1.dev1+g5e40263c3.empty")


def test_b05_a_development_build_whose_target_changed_is_refused(up: World) -> None:
    up.upstream("def f(x, new=None): return x\n", _version="__version__ = 'dev'\n")
    code = "def old(call, x): return call(x)\n"
    up.gap("one", P("a:f", "old"), versions={up.up: ">=0.27"}, code=code)
    up.registry_file()
    up.import_()
    report = ascend_shims.apply()
    assert report.state("one") is State.BROKEN_CONTRACT
    assert "parameter `new`" in report["one"].reason


@pytest.mark.parametrize("version", ["dev", "", "unknown", "0.28.0-cpu-nightly", None])
def test_b06_a_version_that_cannot_be_read_is_shown_and_is_no_error(
    up: World, version: str | None
) -> None:
    up.upstream(F, _version=f"__version__ = {version!r}\n")
    up.gap("one", P("a:f"), versions={up.up: ">=0.27"})
    up.registry_file()
    up.import_()
    report = ascend_shims.apply()
    assert report.state("one") is State.APPLIED
    shown = version or "of unknown version"
    assert report["one"].reason == (
        f"{up.up} {shown}: the version tells nothing, the target decides"
    )


def test_b07_versions_are_no_texts() -> None:
    assert fit("0.9.0", ">=0.11.0") is Fit.OUTSIDE
    assert fit("0.11.0", ">=0.9.0") is Fit.INSIDE
    assert fit("0.10.0", "<0.9") is Fit.OUTSIDE


def test_b09_gates_look_at_the_package_they_name_and_show_it_raw(up: World) -> None:
    """The other package's version is stale, and does not matter here."""
    plugin_name = f"{up.up}_ascend"
    up.upstream(F, _version="__version__ = '0.25.1+empty'\n")
    up.write(f"{plugin_name}/__init__.py", "")
    up.write(f"{plugin_name}/_version.py", "__version__ = '0.19.1rc2.dev1265'\n")
    up.gap("one", P("a:f"), versions={up.up: ">=0.25,<0.26"})
    up.gap("two", P("a:f"), versions={plugin_name: ">=0.19.1"}, after=("one",))
    up.registry_file()
    up.import_()
    report = ascend_shims.apply()
    assert (report.state("one"), report["one"].reason) == (
        State.APPLIED,
        f"{up.up} 0.25.1+empty",
    )
    assert report.state("two") is State.VERSION_SKIPPED
    assert "0.19.1rc2.dev1265 is outside" in report["two"].reason
    shown = report.environment.distributions
    assert shown[plugin_name].version == "0.19.1rc2.dev1265"


@pytest.mark.parametrize("release", ["0.28", "0.32", "0.40"])
def test_b11_a_target_that_moves_is_found_and_its_importers_follow(
    up: World, release: str
) -> None:
    old, new = "prefill__decode", "autoregressive__manager"
    here = {"0.28": old, "0.32": new, "0.40": "unknown__place"}[release]
    dotted = here.replace("__", ".")
    up.upstream(
        f"from UP.{dotted} import Manager\nmade = Manager\ndef f(): return 1\n",
        **{here: "class Manager:\n    def m(self): return 1\n"},
    )
    candidates = tuple(f"{name.replace('__', '.')}:Manager.m" for name in (new, old))
    up.gap("one", P(candidates), P("a:f"))
    up.registry_file()
    a = up.import_()
    report = ascend_shims.apply()
    if release == "0.40":
        assert report.state("one") is State.MISSING_TARGET
        assert "there is no module" in report["one"].reason
        assert (a.Manager().m(), a.f()) == (1, 1)
        return
    assert report.state("one") is State.APPLIED
    assert report["one"].patches[0].target == f"{up.up}.{dotted}:Manager.m"
    assert (a.Manager().m(), a.made().m(), a.f()) == (10, 10, 10)


@pytest.mark.parametrize("kind", ["wrap", "replace"])
def test_b12_a_new_keyword_is_found_at_apply_time(up: World, kind: str) -> None:
    up.upstream("def f(a, b, new=0): return a\ndef call(): return f(1, 2, new=1)\n")
    first = "call, " if kind == "wrap" else ""
    up.gap("one", P("a:f", "old", kind=kind), code=f"def old({first}a, b): return 7\n")
    up.registry_file()
    a = up.import_()
    report = ascend_shims.apply()
    assert report.state("one") is State.BROKEN_CONTRACT
    assert "does not take parameter `new`" in report["one"].reason
    assert a.call() == 1


def test_b13_one_missing_module_costs_one_gap(
    up: World, caplog: pytest.LogCaptureFixture
) -> None:
    names = [f"m{number}" for number in range(1, 9)]
    up.upstream("", **{name: F for name in names if name != "m4"})
    for number, name in enumerate(names, 1):
        up.gap(f"gap-{number}", P(f"{name}:f"))
    up.registry_file()
    for name in names:
        if name != "m4":
            up.import_(name)
    report = ascend_shims.apply()
    states = {gap.id: gap.state for gap in report.gaps}
    assert states.pop("gap-4") is State.MISSING_TARGET
    assert set(states.values()) == {State.APPLIED}
    assert len(states) == 7
    named = [r.getMessage() for r in caplog.records if r.name == "ascend_shims"]
    assert len(named) == 1
    assert "gap-4" in named[0]
    assert f"there is no module {up.up}.m4" in named[0]


def test_b16_no_match_is_no_success(up: World) -> None:
    up.upstream(F)
    up.gap("one", P("a:gone")).gap("two", P("a:f", relies_on=(("a:gone", "calls"),)))
    up.registry_file()
    a = up.import_()
    for _ in range(2):
        report = ascend_shims.apply()
        assert report.state("one") is State.MISSING_TARGET
        assert report.state("two") is State.BROKEN_CONTRACT
        assert a.f() == 1


# C: could not be undone, or leaked


def test_c03_importing_the_toolkit_replaces_nothing(up: World) -> None:
    up.upstream(F, cuda="def stream(): return 1\n")
    code = """
import UP.cuda, UP.a
before = [(k, id(v)) for m in (UP, UP.cuda, UP.a) for k, v in vars(m).items()]
import ascend_shims, ascend_shims.plugin, ascend_shims.process
after = [(k, id(v)) for m in (UP, UP.cuda, UP.a) for k, v in vars(m).items()]
print(before == after)
"""
    assert up.run(code) == "True\n"


SPEC = """
    class Spec:
        def __init__(self, n=1): self.n = n
        def bytes(self): return self.n
    class Marker(Spec): pass
    def make(): return Spec()
"""


def test_c04_instances_of_a_patched_class_are_pickled(up: World) -> None:
    """A swap of the class is refused; its methods are patched in place."""
    up.upstream(SPEC)
    up.gap("swap", P("a:Spec", "Spec", kind="replace"), code="class Spec: pass\n")
    up.gap("one", P("a:Spec.bytes"))
    up.registry_file()
    a = up.import_()
    user = up.user("from UP.a import Spec, make\n")
    old = user.make()
    report = ascend_shims.apply()
    assert report.state("swap") is State.BROKEN_CONTRACT
    for one in (old, user.make(), a.Spec()):
        assert pickle.loads(pickle.dumps(one)).bytes() == 10
        assert isinstance(one, a.Spec)
        assert isinstance(one, user.Spec)


def test_c05_a_class_that_validators_know_is_not_replaced(up: World) -> None:
    up.upstream(
        """
        import dataclasses, functools, typing
        import pydantic
        class Usage(pydantic.BaseModel):
            tokens: int = 1
            def total(self): return self.tokens
        class Response(pydantic.BaseModel):
            usage: Usage
        class Failure(Exception):
            def why(self): return 1
        @dataclasses.dataclass
        class Record:
            usage: Usage
        @functools.singledispatch
        def kind(value): return "other"
        @kind.register
        def _(value: Usage): return "usage"
        """
    )
    up.gap("swap", P("a:Usage", "Usage", kind="replace"), code="class Usage: pass\n")
    up.gap("one", P("a:Usage.total"), P("a:Failure.why"))
    up.registry_file()
    a = up.import_()
    report = ascend_shims.apply()
    assert report.state("swap") is State.BROKEN_CONTRACT
    assert "field types" in report["swap"].reason
    assert report.state("one") is State.APPLIED
    response = a.Response(usage=a.Usage(tokens=2))
    assert response.usage.total() == 20
    assert a.Response.model_validate({"usage": {"tokens": 3}}).usage.total() == 30
    import typing

    assert typing.get_type_hints(a.Record)["usage"] is a.Usage
    assert a.kind(a.Usage()) == "usage"
    with pytest.raises(a.Failure) as caught:
        raise a.Failure
    assert caught.value.why() == 10


def test_c06_subclasses_keep_their_base(up: World) -> None:
    up.upstream(SPEC)
    code = "class Spec:\n    def bytes(self): return 2\n"
    up.gap("swap", P("a:Spec", "Spec", kind="replace"), code=code)
    up.registry_file()
    a = up.import_()
    report = ascend_shims.apply()
    assert report.state("swap") is State.BROKEN_CONTRACT
    assert "subclasses (Marker)" in report["swap"].reason
    assert isinstance(a.Marker(), a.Spec)


KINDS = """
    import abc, functools
    class C(abc.ABC):
        __slots__ = ("slot", "__dict__")
        def plain(self, x=1): return x
        @staticmethod
        def static(x=1): return x
        @classmethod
        def bound(cls, x=1): return x
        @property
        def prop(self): return 1
        @functools.cached_property
        def cached(self): return 1
        @functools.lru_cache
        def memo(self, x=1): return x
        filled = functools.partialmethod(plain, 5)
        @abc.abstractmethod
        def abstract(self, x=1): return x
"""


@pytest.mark.parametrize(
    "name",
    [
        "plain",
        "static",
        "bound",
        "prop",
        "cached",
        "memo",
        "filled",
        "abstract",
        "slot",
    ],
)
def test_c09_every_kind_of_member_is_put_back_raw(up: World, name: str) -> None:
    up.upstream(KINDS)
    kind = "replace" if name == "slot" else "wrap"
    code = "slot = property(lambda self: 2)\n"
    replacement = "slot" if name == "slot" else "times_ten"
    up.gap("one", P(f"a:C.{name}", replacement, kind=kind), code=code)
    up.registry_file()
    cls = up.import_().C
    raw_before, order = vars(cls)[name], list(vars(cls))
    assert ascend_shims.apply().state("one") is State.APPLIED
    assert vars(cls)[name] is not raw_before
    ascend_shims.revert()
    assert vars(cls)[name] is raw_before
    assert list(vars(cls)) == order
    heir = type("Heir", (cls,), {"abstract": lambda _: 1})
    assert heir().static() == 1


@pytest.mark.parametrize("second", ["a:Slots.method", "a:Pattern.search", "a:gone"])
def test_c11_a_gap_that_fails_half_way_leaves_nothing(
    up: World, failure: Failure, second: str
) -> None:
    up.upstream(
        """
        from re import Pattern
        class Slots:
            def method(self): return 1
        def f(x=1): return x
        def g(x=1): return x
        """
    )
    up.gap("one", P("a:f"), P(second), P("a:g"))
    up.registry_file()
    up.import_()
    failure.names = {"method"}
    before = up.snapshot()
    report = ascend_shims.apply()
    assert report.state("one").is_fault
    assert before.held == up.snapshot().held
    failure.names = set()
    failure.writes.clear()
    ascend_shims.revert()
    ascend_shims.revert("one")
    assert failure.writes == []


def plain(function: Any) -> Any:
    @functools.wraps(function)
    def foreign(*args: Any) -> Any:
        return -function(*args)

    return foreign


@pytest.mark.parametrize(
    "foreign",
    [plain, lambda f: wrapt.FunctionWrapper(f, lambda w, _, a, k: -w(*a, **k))],
    ids=["plain", "wrapt"],
)
def test_c13_somebody_elses_patch_on_top_stays(up: World, foreign: Any) -> None:
    one_gap(up)
    a = up.import_()
    stock = vars(a)["f"]
    ascend_shims.apply()
    ours = vars(a)["f"]
    theirs = a.f = foreign(ours)
    assert ascend_shims.status().state("one") is State.BURIED
    report = ascend_shims.revert()
    assert vars(a)["f"] is theirs
    assert a.f(1) == -1
    assert report.state("one") is State.REVERTED
    assert "keeps its layer, which passes straight through" in report["one"].reason
    a.f = ours
    assert a.f(1) == 1
    ascend_shims.revert()
    assert vars(a)["f"] is stock
    # The other way round: theirs was first.
    theirs = a.f = foreign(stock)
    ascend_shims.apply()
    assert a.f(1) == -10
    ascend_shims.revert()
    assert vars(a)["f"] is theirs


def test_c15_a_reload_is_not_taken_for_patched(up: World) -> None:
    one_gap(up)
    a = up.import_()
    ascend_shims.apply()
    importlib.reload(a)
    assert (ascend_shims.status().state("one"), a.f()) == (State.APPLIED, 10)
    finders, sys.meta_path[:] = list(sys.meta_path), sys.meta_path[1:]
    importlib.reload(a)
    sys.meta_path[:] = finders
    fresh = a.f
    assert (ascend_shims.status().state("one"), a.f()) == (State.LOST, 1)
    ascend_shims.revert()
    assert a.f is fresh


@pytest.mark.parametrize("call", ["all", "one"])
@pytest.mark.parametrize("state", ["never applied", "skipped", "failed", "pending"])
def test_c17_undoing_what_is_not_applied_changes_nothing(
    up: World, failure: Failure, state: str, call: str
) -> None:
    up.upstream("class C: pass\n" + F)
    target = {"failed": "a:gone", "pending": "later:f"}.get(state, "a:f")
    versions = {up.up: "<0.1"} if state == "skipped" else {}
    up.upstream("class C: pass\n" + F, later=F, _version="__version__ = '0.28'\n")
    up.gap("one", P(target), versions=versions)
    up.registry_file()
    up.import_()
    before = up.snapshot()
    if state != "never applied":
        ascend_shims.apply()
    ascend_shims.revert(*(["one"] if call == "one" else []))
    assert failure.writes == []
    assert before.differences(up.snapshot()) == []


def test_c22_a_compilers_marks_are_not_copied(up: World) -> None:
    """In an interpreter of its own: torch is large."""
    code = """
import functools, torch
from ascend_shims.engine.wrappers import Mark, stand_in_front
def f(x): return x + 1
def mark(wears): return Mark("one", "up:f", "a test", print, wears)
inner = torch._dynamo.disable(f)
double = functools.partial(lambda call, x: 2 * call(x), inner)
outer = stand_in_front(inner, double, owner=None, name="f", mark=mark).raw
x = torch.ones(1)
print(float(torch._dynamo.disable(outer)(x)), float(outer(x)))
marks = ("_torchdynamo", "get_compiler_config")
print([key for key in vars(outer) if key.startswith(marks)])
print(any(key.startswith("_torchdynamo") for key in vars(inner)))
"""
    assert up.run(code) == "4.0 4.0\n[]\nTrue\n"


def test_c23_two_settings_do_not_share_a_digest(up: World) -> None:
    """The part of a cache key that a set of patches is good for."""
    up.upstream(F).gap("one", P("a:f"))
    up.gap("two", P("a:f", "plus_one"), after=("one",))
    up.registry_file()
    digests = {
        ascend_shims.apply(only=only).plan for only in ([], ["one"], ["two"], None)
    }
    assert len(digests) == 4
    assert ascend_shims.apply(only=["one"]).plan in digests


def test_c24_a_module_keeps_its_own_loader(up: World) -> None:
    """More of it in the tests of the hooks."""
    one_gap(up)
    stock = up.import_()
    kinds = [type(stock.__loader__), type(stock.__spec__.loader)]
    del sys.modules[stock.__name__]
    ascend_shims.apply()
    a = up.import_()
    assert [type(a.__loader__), type(a.__spec__.loader)] == kinds
    assert "def f" in a.__loader__.get_source(a.__name__)
    assert a.f() == 10


def test_c25_a_type_that_cannot_change_is_told_before_anything_is_written(
    up: World, failure: Failure
) -> None:
    up.upstream("from re import Pattern\n" + F)
    up.gap("one", P("a:Pattern.search", "through")).gap("two", P("a:f"))
    up.registry_file()
    up.import_()
    report = ascend_shims.apply()
    assert report.state("one") is State.BROKEN_CONTRACT
    assert "is an immutable type" in report["one"].reason
    assert report.state("two") is State.APPLIED
    assert all("search" not in target for target in failure.writes)


def test_c27_old_references_are_patched_in_every_round(up: World) -> None:
    up.upstream("class M:\n    def run(self): return 1\n" + F)
    up.gap("one", P("a:M.run"), P("a:f"))
    up.registry_file()
    a = up.import_()
    models = {"m": a.M}
    user = up.user("from UP.a import f\n")
    for _ in range(3):
        ascend_shims.apply()
        assert (models["m"]().run(), user.f()) == (10, 10)
        assert models["m"] is a.M
        ascend_shims.revert()
        assert (models["m"]().run(), user.f()) == (1, 1)


@pytest.mark.parametrize("device", ["", "auto", "none"])
def test_c28_nothing_is_touched_on_other_hardware(
    up: World, monkeypatch: pytest.MonkeyPatch, failure: Failure, device: str
) -> None:
    up.upstream(F).gap("one", P("a:f"), device=True)
    up.registry_file()
    monkeypatch.setenv("ASCEND_SHIMS_DEVICE", device)
    up.import_()
    before = up.snapshot()
    report = ascend_shims.apply()
    assert report.state("one") is State.NOT_APPLICABLE
    assert report["one"].reason.startswith("no NPU: ")
    assert failure.writes == []
    assert before.differences(up.snapshot()) == []
    assert report.environment.device == Device("none", report.environment.device.reason)
    assert RestoreError.__doc__


def test_a_report_is_printed_a_line_a_gap(up: World) -> None:
    one_gap(up)
    report = ascend_shims.apply()
    assert str(report) == f"one: {report['one'].state}: {report['one'].reason}"
    ascend_shims.revert()
