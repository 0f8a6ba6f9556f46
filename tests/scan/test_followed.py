"""Targets that are followed: stars, parameters, functions that give them, loops."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ascend_shims.scan.scanning import scan

Write = Callable[..., Path]
NEW = "def new(*a): ...\n"


def told(found: Any) -> set[tuple[int, str | None]]:
    """Line and target of every patch of `plug/m.py`."""
    return {(f.line, f.target) for f in found.patches if f.path == "plug/m.py"}


def targets(found: Any) -> set[str | None]:
    return {target for _, target in told(found)}


STARS = {
    "of upstream": ("from vllm.a.b import *", "vllm.a.b:Engine.step"),
    "of the code's own": ("from .compat import *", "vllm.a.b:Engine.step"),
    "with `__all__`": ("from .listed import *", "vllm.a.b:Engine.step"),
    "through two": ("from .twice import *", "vllm.a.b:Engine.step"),
    "after another import": ("from vllm.c import f\nfrom .compat import *", None),
}
OWN = {
    "plug/compat.py": "from vllm.a.b import Engine\n",
    "plug/listed.py": "from .compat import Engine\nx = 1\n__all__ = ['Engine']\n",
    "plug/twice.py": "from .listed import *\n",
}


@pytest.mark.parametrize("how", STARS)
def test_a_star_is_followed(scanned: Any, how: str) -> None:
    imports, _ = STARS[how]
    found = scanned({**OWN, "plug/m.py": f"{imports}\nEngine.step = None\n"})
    assert targets(found) == {"vllm.a.b:Engine.step"}


def test_a_star_brings_what_is_public_and_bound_nowhere_else(scanned: Any) -> None:
    code = (
        "from vllm.a.b import *\n"
        "def f(layer):\n    for one in layer:\n        one.x = 1\n"
        "class Engine: ...\nEngine.step = None\n_hidden.x = 1\nprint.x = 1\n"
    )
    assert targets(scanned(code)) == set()
    private = {"plug/c.py": "import vllm.a.b as _b\n", "plug/m.py": ""}
    private["plug/m.py"] = "from .c import *\n_b.f = 1\n"
    assert targets(scanned(private)) == set()


def test_several_stars_leave_several_targets(scanned: Any) -> None:
    code = "from vllm.a import *\nfrom vllm.b import *\nEngine.step = None"
    (one,) = scanned(code).patches
    assert (one.target, one.candidates) == (
        "vllm.b:Engine.step",
        ("vllm.a:Engine.step",),
    )


FOLLOWED: dict[str, tuple[str, set[str | None]]] = {
    "a function that gives a module": (
        "def get():\n    import vllm.a.b as m\n    return m\n"
        "get().Engine.step = new\nkept = get()\nkept.f = new",
        {"vllm.a.b:Engine.step", "vllm.a.b:f"},
    ),
    "a function that gives what it gets": (
        "from vllm.a.b import Engine\ndef same(x):\n    return x\n"
        "same(Engine).step = new",
        {"vllm.a.b:Engine.step"},
    ),
    "a class that keeps what it gets": (
        "from vllm.a.b import Engine\nclass P:\n"
        "    def __init__(self, cls): self.cls = cls\n"
        "    def install(self):\n        self.cls.step = new\n"
        "P(Engine).install()",
        {"vllm.a.b:Engine.step"},
    ),
    "a decorator, whatever it is called": (
        "from vllm.a.b import Engine\ndef on(cls):\n    def give(fn):\n"
        "        setattr(cls, fn.__name__, fn)\n        return fn\n    return give\n"
        "@on(Engine)\ndef step(self): ...",
        {"vllm.a.b:Engine.step"},
    ),
    "a decorator without arguments": (
        "from vllm.a.b import Engine\n"
        "def on(fn):\n    setattr(Engine, fn.__name__, fn)\n"
        "@on\ndef step(self): ...",
        {"vllm.a.b:Engine.step"},
    ),
    "the name of a function": (
        "from vllm.a.b import Engine\nsetattr(Engine, Engine.step.__name__, new)\n"
        "setattr(Engine, new.__name__, new)",
        {"vllm.a.b:Engine.step", "vllm.a.b:Engine.new"},
    ),
    "a helper called replace": (
        "import importlib\ndef replace(path, value):\n"
        "    mod, _, name = path.rpartition('.')\n"
        "    setattr(importlib.import_module(mod), name, value)\n"
        "replace('vllm.a.b.f', new)",
        {"vllm.a.b:f"},
    ),
    "keywords": (
        "from vllm.a.b import Engine\ndef put(cls, **values):\n"
        "    for name, value in values.items():\n        setattr(cls, name, value)\n"
        "put(Engine, step=new, stop=new)",
        {"vllm.a.b:Engine.step", "vllm.a.b:Engine.stop"},
    ),
    "several at once": (
        "import vllm.a.b as m, vllm.a.c as n\ndef put(*modules):\n"
        "    for one in modules:\n        one.f = new\nput(m, n)",
        {"vllm.a.b:f", "vllm.a.c:f"},
    ),
    "a helper for sys.modules": (
        "import sys\ndef put(name, module):\n    sys.modules.update({name: module})\n"
        "put('vllm.a.b', new)",
        {"vllm.a:b"},
    ),
    "sys.modules, joined": (
        "import sys\nsys.modules |= {'vllm.a.b': new}",
        {"vllm.a:b"},
    ),
    "a relative name": (
        "import importlib\nimportlib.import_module('.b', 'vllm.a').f = new",
        {"vllm.a.b:f"},
    ),
    "partial": (
        "from functools import partial\nimport vllm.a.b as m\n"
        "partial(setattr, m, 'f')(new)\nput = partial(setattr, m)\nput('g', new)",
        {"vllm.a.b:f", "vllm.a.b:g"},
    ),
    "setattr by another name": (
        "import vllm.a.b as m\n_set = setattr\n_set(m, 'f', new)\n"
        "setattr(m, *('g', new))",
        {"vllm.a.b:f", "vllm.a.b:g"},
    ),
    "lambda": (
        "import vllm.a.b as m\nput = lambda x: setattr(x, 'f', new)\nput(m)",
        {"vllm.a.b:f"},
    ),
    "comprehension": (
        "import vllm.a.b as m\n[setattr(m, n, new) for n in ('f', 'g')]",
        {"vllm.a.b:f", "vllm.a.b:g"},
    ),
    "words": (
        "import vllm.a.b as m\nfor n in 'f g'.split():\n    setattr(m, n, new)\n"
        "for n in ('h',):\n    setattr(m, '_%s' % n, new)",
        {"vllm.a.b:f", "vllm.a.b:g", "vllm.a.b:_h"},
    ),
    "the module of a method": (
        "from vllm.a.b import Engine\nEngine.step.__globals__['logger'] = new",
        {"vllm.a.b:logger"},
    ),
    "a list that grows": (
        "import vllm.a.b as m\nall_ = []\nall_.append((m.Engine, 'step'))\n"
        "for cls, name in all_:\n    setattr(cls, name, new)",
        {"vllm.a.b:Engine.step"},
    ),
}


@pytest.mark.parametrize("what", FOLLOWED)
def test_what_is_followed(scanned: Any, what: str) -> None:
    code, expected = FOLLOWED[what]
    assert targets(scanned(NEW + code)) == expected


def test_names_in_another_module(scanned: Any) -> None:
    files = {
        "plug/names.py": (
            "import vllm.a.b as m\nALL = ['f', 'g']\nWHAT = (m.Engine,)\n"
            "TABLE = {'h': 1}\n"
        ),
        "plug/m.py": (
            "from .names import ALL, WHAT, m\nfrom . import names\n"
            "for n in ALL:\n    setattr(m, n, 1)\n"
            "for c in names.WHAT:\n    c.step = 1\n"
            "setattr(m, unknown(), 1)\n"
            "for n, v in names.TABLE.items():\n    setattr(m, n, v)\n"
        ),
    }
    found = scanned(files)
    assert told(found) == {
        (4, "vllm.a.b:f"),
        (4, "vllm.a.b:g"),
        (6, "vllm.a.b:Engine.step"),
        (7, None),
        (9, "vllm.a.b:h"),
    }
    assert [f.unresolved for f in found.patches if f.line == 7] == [
        "an attribute of `vllm.a.b` whose name is not written out"
    ]


PATCHES = {
    "plug/base.py": (
        "import importlib\n"
        "class Base:\n"
        "    target_module = target_class = None\n"
        "    def _theirs(self, module):\n"
        "        return getattr(module, self.target_class, None)\n"
        "class Manager:\n"
        "    def run(self, patch: Base):\n"
        "        module = importlib.import_module(patch.target_module)\n"
        "        patch.apply(module)\n"
    ),
    "plug/m.py": (
        "from .base import Base\n"
        "class Ours(Base):\n"
        "    target_module = 'vllm.a.b'\n"
        "    target_class = 'Engine'\n"
        "    def apply(self, module):\n"
        "        Engine = self._theirs(module)\n"
        "        def step(self): ...\n"
        "        Engine.step = step\n"
        "        setattr(module, 'f', step)\n"
        "        self._more(module)\n"
        "        for method in self.methods:\n"
        "            method(Engine)\n"
        "    def _more(self, module):\n"
        "        module.g = self\n"
        "    def fourth(self, Engine):\n"
        "        Engine.stop = lambda self: None\n"
    ),
}


def test_a_base_class_hands_over_what_each_class_names(scanned: Any) -> None:
    found = scanned(PATCHES)
    assert told(found) == {
        (8, "vllm.a.b:Engine.step"),
        (9, "vllm.a.b:f"),
        (14, "vllm.a.b:g"),
        (16, "vllm.a.b:Engine.stop"),
    }
    assert {f.within for f in found.patches} == {
        "Ours.apply",
        "Ours._more",
        "Ours.fourth",
    }


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("def f(Engine):\n    Engine.step = new", "`step` of `Engine`"),
        ("def f(cls, x):\n    setattr(cls, 'step', new)", "`step` of `cls`"),
        ("def f(sched_mod):\n    sched_mod.g = new", "`g` of `sched_mod`"),
        ("def patch_it(what):\n    setattr(what, 'g', new)", "`g` of `what`"),
    ],
)
def test_a_parameter_that_nobody_spells(scanned: Any, code: str, what: str) -> None:
    (one,) = scanned(NEW + code).patches
    assert (one.target, one.unresolved) == (
        None,
        f"{what}, a parameter that no call here spells",
    )


def test_the_one_class_of_that_name_is_meant(scanned: Any) -> None:
    files = {
        "plug/other.py": "from vllm.a.b import Engine\n",
        "plug/m.py": NEW + "def f(Engine):\n    Engine.step = new\n",
    }
    assert targets(scanned(files)) == {"vllm.a.b:Engine.step"}


@pytest.mark.parametrize(
    "code",
    [
        "def f(obj):\n    obj.step = new",
        "def f(Engine):\n    Engine.size = 1",
        "import torch\ndef f(module: torch.nn.Module):\n    module.forward = new",
        "class A: ...\ndef f(cls):\n    cls.step = new\nf(A)",
        "def f(cls):\n    cls.step = new\n    return cls\n@f\nclass A: ...",
        "class A:\n    @classmethod\n    def f(cls):\n        cls.step = new",
        "def f(fn):\n    fn.mark = new",
        "def f(obj, all_):\n    for k, v in all_.items():\n        setattr(obj, k, v)",
        "def f():\n    return make()\nf().x = new",
        "from vllm.a.b import Engine\ndef f():\n    return Engine()\nf().step = new",
    ],
)
def test_of_ordinary_code_nothing_is_told(scanned: Any, code: str) -> None:
    assert targets(scanned(NEW + code)) == set()


@pytest.mark.parametrize(
    "code",
    [
        "from vllm import _custom_ops as ops\ndef f(x, y):\n    return ops.add(x, y)",
        "from vllm import _custom_ops as ops\nops.update(x)",
        "import torch_npu\ntorch_npu.npu_ops.add(x)",
        "from kernels import registry\nregistry.pop(x)",
        "import sys\nsys.argv = []\nsys.stdout = f\nsys.excepthook = f",
        "from vllm.a.b import Engine\nEngine.__doc__ += 'x'",
    ],
)
def test_what_is_called_like_a_table_or_meant_to_be_set(
    scanned: Any, code: str
) -> None:
    assert targets(scanned(code)) == set()


def test_a_text_that_is_only_looked_at(scanned: Any) -> None:
    code = (
        "import inspect, ast\nimport vllm.a.b as m\n"
        "text = inspect.getsource(m.f)\n"
        "exec('print(1)')\n"
        "tree = ast.parse(inspect.getsource(m.g))\n"
        "exec(compile(tree, '', 'exec'), {})\n"
        "def run(text):\n    exec(text)\n"
        "run(inspect.getsource(m.h).replace('a', 'b'))\n"
    )
    found = scanned(code)
    assert {(f.form, f.target) for f in found.found} == {
        ("source-read", "vllm.a.b:f"),
        ("source-text", "vllm.a.b:g"),
        ("source-text", "vllm.a.b:h"),
    }


RELIED = {
    "getattr": (
        "import vllm.a.b as m\ngetattr(m, '_f')()\nx = getattr(m, '_g', None)",
        {("private-call", "vllm.a.b:_f"), ("private-read", "vllm.a.b:_g")},
    ),
    "annotation": (
        "from vllm.a.b import Engine\n"
        "def f(x: Engine, y: 'Engine'):\n    x._go()\n    return y._table",
        {("private-call", "vllm.a.b:Engine._go")}
        | {("private-read", "vllm.a.b:Engine._table")},
    ),
    "type": (
        "from vllm.a.b import Engine\ndef step(self): ...\n"
        "Ours = type('Ours', (Engine,), {'step': step, 'size': 1})",
        {
            ("subclass", "vllm.a.b:Engine"),
            ("override", "vllm.a.b:Engine.step"),
            ("override", "vllm.a.b:Engine.size"),
        },
    ),
    "a method that is taken away": (
        "from vllm.a.b import Engine\nclass Ours(Engine):\n    step = None",
        {("subclass", "vllm.a.b:Engine"), ("override", "vllm.a.b:Engine.step")},
    ),
}


@pytest.mark.parametrize("what", RELIED)
def test_what_is_relied_on_too(scanned: Any, what: str) -> None:
    code, expected = RELIED[what]
    assert {(f.form, f.target) for f in scanned(code).found} == expected


def test_a_namespace_package_below_src_is_the_codes_own(write: Write) -> None:
    files = {
        "src/plug/part/__init__.py": "",
        "src/plug/part/a.py": "class A: ...\n",
        "src/plug/part/b.py": (
            "from plug.part.a import A\nimport vllm.a.b as m\nA.x = 1\nm.f = 1\n"
        ),
    }
    root = write(files)
    for named in (root, root / "src" / "plug" / "part"):
        assert [f.target for f in scan([named]).patches] == ["vllm.a.b:f"]


@pytest.mark.parametrize("marked", [True, False])
def test_the_rest_of_a_package_is_read_and_not_told(write: Write, marked: bool) -> None:
    files = {
        "plug/__init__.py": "",
        "plug/compat.py": "import vllm.a.b as m\nm.f = 1\n",
        "plug/tools.py": (
            "from .compat import m\n"
            "def put(name, value):\n    setattr(m, name, value)\n"
        ),
        "plug/part/b.py": (
            "from plug.compat import m\nfrom ..tools import put\nm.g = 1\nput('h', 1)\n"
        ),
    }
    if marked:
        files["plug/part/__init__.py"] = ""
    root = write(files)
    found = scan([root / "plug" / "part"])
    assert {f.target for f in found.patches} == {"vllm.a.b:g", "vllm.a.b:h"}
    assert {Path(f.path).name for f in found.found} == {"b.py"}
    assert found.files == 1 + marked


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("def f[T](x: T) -> T:\n    return x\n", (3, 12)),
        ("type X = int\n", (3, 12)),
        ('x = f"{"a"}"\n', (3, 12)),
        ("class A[T = int]: ...\n", (3, 13)),
        ("try:\n    pass\nexcept OSError, ValueError:\n    pass\n", (3, 14)),
        ('x = t"a"\n', (3, 14)),
    ],
)
def test_the_version_that_a_newer_file_needs(
    tmp_path: Path, text: str, version: tuple[int, int]
) -> None:
    (tmp_path / "m.py").write_text(text)
    (tmp_path / "plain.py").touch()
    found = scan([tmp_path])
    if sys.version_info[:2] >= version:
        assert found.skipped == ()
        return
    (skipped,) = found.skipped
    mine = ".".join(map(str, sys.version_info[:2]))
    assert skipped.reason.startswith(f"is written for Python {version[0]}.{version[1]}")
    assert skipped.reason.endswith(f"and this is {mine}; scan with that version")
