"""`shims audit`: what loaded modules hold, against what their sources define."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

UPSTREAM = {
    "up/__init__.py": """
        import importlib

        def __getattr__(name):
            return importlib.import_module("up.lazy")
    """,
    "up/lazy.py": "",
    "up/other.py": """
        def helper(x):
            return x

        class Tool:
            def use(self):
                return 1

        LIMIT = 3
    """,
    "up/deco.py": """
        import functools

        def traced(function):
            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                return function(*args, **kwargs)
            return wrapper

        def rebuilt(cls):
            original = cls.run
            def run(self):
                return original(self)
            cls.run = run
            cls.extra = lambda self: 2
            return cls

        class Making(type):
            def __new__(mcs, name, bases, held):
                held["run"] = lambda self: 2
                held.pop("lost", None)
                return super().__new__(mcs, name, bases, held)

        class Registered:
            def __init_subclass__(cls, **kwargs):
                cls.named = classmethod(lambda cls: cls.__name__)
    """,
    "up/core.py": """
        from __future__ import annotations

        import abc
        import contextlib
        import dataclasses
        import enum
        import functools
        import typing
        from typing import TYPE_CHECKING, NamedTuple, Protocol

        from up.deco import Making, Registered, rebuilt, traced
        from up.other import *
        from up.other import helper as aid, LIMIT

        if TYPE_CHECKING:
            from collections.abc import Callable

        try:
            from nowhere import fast
        except ImportError as problem:
            fast = None

        for _step in range(2):
            pass
        count = 0
        cache = None
        table = {"f": len}
        shout = str.upper

        def answer(word, tone="flat"):
            def inner():
                return word
            return inner()

        async def wait():
            return 1

        @traced
        def decorated():
            return 1

        @functools.lru_cache(maxsize=2)
        def cached():
            return 1

        @contextlib.contextmanager
        def scope():
            yield

        @typing.overload
        def many(x: int) -> int: ...
        @typing.overload
        def many(x: str) -> str: ...
        def many(x):
            return x

        def fill():
            global cache, maker
            cache = {}
            maker = answer

        def gone():
            pass
        del gone

        nan, zero = float("nan"), lambda x=-0.0: (x, float("nan"), {1, 2})

        class Plain:
            size = 1

            def run(self):
                return [x for x in range(3)]

            def __private(self):
                return 1

            @property
            def area(self):
                return 1

            @area.setter
            def area(self, value):
                pass

            @staticmethod
            def static():
                return 1

            @classmethod
            def made(cls):
                return cls()

            @functools.cached_property
            def slow(self):
                return 1

            def __init_subclass__(cls):
                pass

            class Inner:
                def deep(self):
                    return 1

        @dataclasses.dataclass(slots=True, order=True)
        class Record:
            x: int = 1

            def doubled(self):
                return self.x * 2

        class Colour(enum.Enum):
            RED = 1

            def name_of(self):
                return self.name

        class Point(NamedTuple):
            x: int

            def far(self):
                return self.x

        class Speaks(Protocol):
            def speak(self) -> str: ...

        class Base(abc.ABC):
            @abc.abstractmethod
            def must(self): ...

        class Served(abc.ABC):
            def first(self):
                return 1

            def second(self, x=1, *, y=(2, -1.5), z=[], w=LIMIT):
                return 2

        class Wild(metaclass=Making):
            def run(self):
                return 1

            def lost(self):
                return 1

        class Shape(typing.Generic[typing.TypeVar("T")]):
            def draw(self):
                return 1

        @rebuilt
        class Rebuilt:
            def run(self):
                return 1

        class Known(Registered):
            def run(self):
                return 1
    """,
}
MADE_LATE = """
    import up.core
    up.core.fill()
"""
EVIL = """
    import functools
    import unittest.mock
    import up.core
    import up.other

    def stand_in(*args, **kwargs):
        return None

    def wrapped(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs)
        return wrapper

    class Better(up.core.Plain):
        pass

    class Other:
        pass
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for name, text in UPSTREAM.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(textwrap.dedent(text))
    return tmp_path


def _shims(site: Path, *words: str) -> Any:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("ASCEND_SHIMS")}
    root = str(Path(__file__).parents[1])
    return subprocess.run(
        [sys.executable, "-m", "ascend_shims", "audit", *words],
        env={**kept, "PYTHONPATH": f"{site}{os.pathsep}{root}"},
        cwd=site,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def audit(site: Path, *words: str, patch: str = "", code: int | None = None) -> Any:
    if patch:
        text = textwrap.dedent(EVIL) + textwrap.dedent(patch)
        (site / "evil.py").write_text(text)
        words = (*words, "--first", "evil")
    done = _shims(site, *words, "--json")
    assert done.returncode in (0, 1), done.stderr
    if code is not None:
        assert done.returncode == code
    return json.loads(done.stdout)


def rows(told: Any) -> list[tuple[str, str, str]]:
    return [(row["path"], row["what"], row["by"]) for row in told["rows"]]


def test_nothing_is_found_where_nothing_is_patched(site: Path) -> None:
    told = audit(site, "up", code=0)
    assert told["schema"] == 1
    assert rows(told) == []
    assert told["modules"] == ["up"]
    told = audit(site, "up.core", "--everything", code=0)
    assert rows(told) == []
    assert told["modules"] == ["up", "up.core", "up.deco", "up.other"]
    (site / "late.py").write_text(textwrap.dedent(MADE_LATE))
    assert rows(audit(site, "up.core", "--first", "late", code=0)) == []


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        (
            "up.core.answer = stand_in",
            [("up.core:answer", "replaced", "evil")],
        ),
        (
            "up.core.answer = wrapped(up.core.answer)",
            [("up.core:answer", "wrapped", "evil")],
        ),
        (
            "up.core.answer.__code__ = stand_in.__code__",
            [("up.core:answer", "replaced", "up.core")],
        ),
        (
            "up.core.answer = unittest.mock.MagicMock()",
            [("up.core:answer", "replaced", "unittest.mock")],
        ),
        ("up.core.answer = None", [("up.core:answer", "replaced", "")]),
        (
            "import wrapt\n"
            "def around(call, instance, args, kwargs):\n"
            "    return call(*args, **kwargs)\n"
            "wrapt.wrap_function_wrapper('up.core', 'answer', around)\n"
            "wrapt.wrap_function_wrapper('up.core', 'Plain.run', around)\n",
            [
                ("up.core:answer", "wrapped", "evil"),
                ("up.core:Plain.run", "wrapped", "evil"),
            ],
        ),
        (
            "up.core.decorated = wrapped(up.core.decorated)",
            [("up.core:decorated", "wrapped", "evil")],
        ),
        (
            "up.core.decorated.__closure__[0].cell_contents = stand_in",
            [("up.core:decorated", "wrapped", "evil")],
        ),
        ("up.core.cached = stand_in", [("up.core:cached", "replaced", "evil")]),
        ("up.core.many = stand_in", [("up.core:many", "replaced", "evil")]),
        ("up.core.shout = stand_in", [("up.core:shout", "replaced", "evil")]),
        ("up.core.cache = stand_in", [("up.core:cache", "replaced", "evil")]),
        ("up.core.novel = stand_in", [("up.core:novel", "added", "evil")]),
        ("del up.core.answer", [("up.core:answer", "missing", "")]),
        ("up.core.aid = stand_in", [("up.core:aid", "replaced", "evil")]),
        ("up.core.Tool = Other", [("up.core:Tool", "replaced", "evil")]),
        (
            "up.other.helper = stand_in",
            [
                ("up.core:helper", "stale", "up.other"),
                ("up.core:aid", "stale", "up.other"),
                ("up.other:helper", "replaced", "evil"),
            ],
        ),
        ("up.core.Plain = Better", [("up.core:Plain", "replaced", "evil")]),
        ("up.core.Plain.run = stand_in", [("up.core:Plain.run", "replaced", "evil")]),
        (
            "up.core.Plain.run = wrapped(up.core.Plain.run)",
            [("up.core:Plain.run", "wrapped", "evil")],
        ),
        (
            "up.core.Plain._Plain__private = stand_in",
            [("up.core:Plain._Plain__private", "replaced", "evil")],
        ),
        (
            "up.core.Plain.area = property(stand_in)",
            [("up.core:Plain.area", "replaced", "evil")],
        ),
        (
            "up.core.Plain.static = staticmethod(stand_in)",
            [("up.core:Plain.static", "replaced", "evil")],
        ),
        ("up.core.Plain.novel = stand_in", [("up.core:Plain.novel", "added", "evil")]),
        ("del up.core.Plain.made", [("up.core:Plain.made", "missing", "")]),
        (
            "up.core.Plain.run = unittest.mock.Mock()",
            [("up.core:Plain.run", "replaced", "unittest.mock")],
        ),
        (
            "up.core.Plain.Inner.deep = stand_in",
            [("up.core:Plain.Inner.deep", "replaced", "evil")],
        ),
        (
            "up.core.Record.doubled = stand_in",
            [("up.core:Record.doubled", "replaced", "evil")],
        ),
        (
            "up.core.Record.__init__ = stand_in",
            [("up.core:Record.__init__", "added", "evil")],
        ),
        (
            "up.core.Colour.name_of = stand_in",
            [("up.core:Colour.name_of", "replaced", "evil")],
        ),
        ("up.core.Point.far = stand_in", [("up.core:Point.far", "replaced", "evil")]),
        ("up.core.Known.run = stand_in", [("up.core:Known.run", "replaced", "evil")]),
        # The standard library's metaclasses and decorators leave alone what is there.
        ("del up.core.Served.first", [("up.core:Served.first", "missing", "")]),
        (
            "up.core.Served.first = up.core.Served.second",
            [("up.core:Served.first", "replaced", "up.core")],
        ),
        (
            "up.core.Colour.name_of = up.core.Plain.run",
            [("up.core:Colour.name_of", "replaced", "up.core")],
        ),
        ("del up.core.Record.doubled", [("up.core:Record.doubled", "missing", "")]),
        ("del up.core.Point.far", [("up.core:Point.far", "missing", "")]),
        ("del up.core.Shape.draw", [("up.core:Shape.draw", "missing", "")]),
        ("up.core.Wild.run = stand_in", [("up.core:Wild.run", "replaced", "evil")]),
        (
            "up.core.answer.__defaults__ = ('sharp',)",
            [("up.core:answer", "replaced", "")],
        ),
        ("up.core.answer.__defaults__ = None", [("up.core:answer", "replaced", "")]),
        (
            "up.core.Served.second.__kwdefaults__['y'] = (2, 1.5)",
            [("up.core:Served.second", "replaced", "")],
        ),
        (
            "up.core.Served.second.__kwdefaults__['x'] = 2",
            [("up.core:Served.second", "replaced", "")],
        ),
        (
            "up.core.decorated.__wrapped__.__defaults__ = (1,)",
            [("up.core:decorated", "replaced", "")],
        ),
        (
            "up.core.Rebuilt.run = stand_in",
            [("up.core:Rebuilt.run", "replaced", "evil")],
        ),
    ],
)
def test_each_kind_of_patch(
    site: Path, patch: str, expected: list[tuple[str, str, str]]
) -> None:
    told = audit(site, "up.core", "up.other", patch=patch, code=1)
    assert rows(told) == expected
    if "stand_in" in patch and expected[-1][2] == "evil":
        assert any(f"{site}/evil.py:" in row["where"] for row in told["rows"])


def test_default_values_that_are_not_spelled_out_may_change(site: Path) -> None:
    """Lists are filled as programs run, and names are what they are at the time."""
    patch = """
        held = up.core.Served.second.__kwdefaults__
        held["z"].append(1)
        held["w"] = 4
    """
    assert rows(audit(site, "up.core", "up.other", patch=patch, code=0)) == []


def test_what_is_ours_is_said_to_be(site: Path) -> None:
    (site / "registry.yaml").write_text(
        textwrap.dedent("""
        schema: 1
        upstreams: [up]
        package: ours
        gaps:
          - id: loud
            title: Answers loudly
            status: open
            kind: workaround
            why: Callers are hard of hearing.
            remove_when: They hear.
            needs: {device: false}
            patches:
              - {target: "up.core:answer", kind: wrap, replacement: shout}
        """)
    )
    (site / "ours").mkdir()
    (site / "ours" / "__init__.py").write_text("")
    (site / "ours" / "loud.py").write_text(
        "def shout(call, *args, **kwargs):\n    return call(*args, **kwargs)\n\n\n"
        "def plain():\n    pass\n"
    )
    # What the toolkit puts there has a mark; what is in a gap's module is the gap's.
    (site / "applied.py").write_text(
        "import ascend_shims\nimport up.core\n"
        "ascend_shims.apply(registry='registry.yaml', allow=['ours'])\n"
        "import ours.loud\nup.core.cached = ours.loud.plain\n"
    )
    words = ("up.core", "--first", "applied", "--registry", "registry.yaml")
    told = audit(site, *words, code=0)
    assert [(r["path"], r["what"], r["gap"]) for r in told["rows"]] == [
        ("up.core:answer", "wrapped", "loud"),
        ("up.core:cached", "replaced", "loud"),
    ]
    done = _shims(site, *words)
    assert "wrapped  up.core:answer  ours, loud" in done.stdout
    assert "0 names are not what their source defines, 2 are ours" in done.stdout


def test_another_interpreter_without_the_toolkit(site: Path) -> None:
    """Isolated from this one's packages; the standard library is there."""
    bare = site / "bare"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    bare.chmod(0o755)
    told = audit(site, "json.decoder", "--python", str(bare), code=0)
    assert told["modules"] == ["json.decoder"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("up/core.py",), "'up/core.py' is no module"),
        (("up", "--python", "/nowhere"), "/nowhere is no interpreter"),
        (("up", "--python", "/bin/true"), "/bin/true gave no answer"),
        ((), "Missing argument"),
    ],
)
def test_misuse(site: Path, words: tuple[str, ...], why: str) -> None:
    done = _shims(site, *words)
    assert done.returncode == 2
    assert why in done.stderr


def test_modules_that_cannot_be_compared(site: Path) -> None:
    (site / "bad.py").write_text("1/0\n")
    told = audit(site, "bad", "sys", "up.core", code=1)
    assert told["problems"] == {"bad": "ZeroDivisionError: division by zero"}
    assert told["without_source"] == ["sys"]
    assert told["modules"] == ["up.core"]


@pytest.mark.vllm
def test_real_vllm_is_what_its_source_defines(tmp_path: Path) -> None:
    """All modules that Model Runner V2 imports, unpatched: 477 in 0.28.0."""
    words = ("vllm.v1.worker.gpu.model_runner", "--everything")
    told = audit(tmp_path, *words, code=0)
    assert told["rows"] == []
    assert len(told["modules"]) > 400
