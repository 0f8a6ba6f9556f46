"""Every way of writing a patch, and what is none."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import only, rows

F, W, C, R = (
    "replaces_function",
    "wraps_function",
    "replaces_class_binding",
    "reads_attribute",
)

NEW = "def new(*args): ...\n"

FORMS: dict[str, tuple[str, set[tuple[str, str, str | None]]]] = {
    "module attribute": (
        "import vllm.a.b as m\n" + NEW + "m.f = new",
        {("assignment", F, "vllm.a.b:f")},
    ),
    "whole path": (
        "import vllm\n" + NEW + "vllm.a.b.f = new",
        {("assignment", F, "vllm.a.b:f")},
    ),
    "from import of a module": (
        "from vllm.a import b\n" + NEW + "b.f = new",
        {("assignment", F, "vllm.a.b:f")},
    ),
    "method": (
        "from vllm.a.b import Engine\n" + NEW + "Engine.step = new",
        {("assignment", F, "vllm.a.b:Engine.step")},
    ),
    "method, through the module": (
        "import vllm.a.b as m\n" + NEW + "m.Engine.step = new",
        {("assignment", F, "vllm.a.b:Engine.step")},
    ),
    "static method": (
        "from vllm.a.b import Engine\n" + NEW + "Engine.step = staticmethod(new)",
        {("assignment", F, "vllm.a.b:Engine.step")},
    ),
    "lambda": (
        "import vllm.a.b as m\nm.f = lambda: False",
        {("assignment", F, "vllm.a.b:f")},
    ),
    "class": (
        "import vllm.a.b as m\nclass Ours(m.Engine): ...\nm.Engine = Ours",
        {("assignment", C, "vllm.a.b:Engine")},
    ),
    "constant": (
        "import vllm.envs as e\ne.VLLM_X = False",
        {("assignment", R, "vllm.envs:VLLM_X")},
    ),
    "wrapper around the original": (
        "import torch\n"
        "def around(f): ...\n"
        "torch.cuda.mem_get_info = around(torch.cuda.mem_get_info)",
        {("assignment", W, "torch.cuda:mem_get_info")},
    ),
    "function that calls the saved original": (
        "import vllm.a.b as m\n"
        "kept = m.f\n"
        "def new(*a):\n    return kept(*a)\n"
        "m.f = new",
        {("assignment", W, "vllm.a.b:f")},
    ),
    "alias": (
        "import vllm\nm = vllm.a.b\n" + NEW + "m.f = new",
        {("assignment", F, "vllm.a.b:f")},
    ),
    "alias of an alias": (
        "import vllm.a.b as m\nn = m\nE = n.Engine\n" + NEW + "E.step = new",
        {("assignment", F, "vllm.a.b:Engine.step")},
    ),
    "in a function, with its own import": (
        NEW + "def apply():\n    import vllm.a.b as m\n    m.f = new",
        {("assignment", F, "vllm.a.b:f")},
    ),
    "name bound after the function": (
        NEW + "def apply():\n    m.f = new\nimport vllm.a.b as m",
        {("assignment", F, "vllm.a.b:f")},
    ),
    "class attribute": (
        "import vllm.a.b as m\n"
        + NEW
        + "class P:\n    target = m.Engine\n"
        + "    def apply(self):\n        self.target.step = new",
        {("assignment", F, "vllm.a.b:Engine.step")},
    ),
    "kept on an instance": (
        "import vllm.a.b as m\n"
        + NEW
        + "class P:\n    def __init__(self):\n        self.m = m\n"
        + "    def apply(self):\n        self.m.f = new",
        {("assignment", F, "vllm.a.b:f")},
    ),
    "import_module": (
        "import importlib\n"
        + NEW
        + "m = importlib.import_module('vllm.a.b')\nm.f = new",
        {("assignment", F, "vllm.a.b:f")},
    ),
    "import_module of parts": (
        "from importlib import import_module\n"
        + NEW
        + "base = 'vllm.a'\nimport_module(f'{base}.b').f = new",
        {("assignment", F, "vllm.a.b:f")},
    ),
    "sys.modules, by key": (
        "import sys\n" + NEW + "sys.modules['vllm.a.b'].f = new",
        {("assignment", F, "vllm.a.b:f")},
    ),
    "sys.modules.get": (
        "import sys\n"
        + NEW
        + "m = sys.modules.get('vllm.a.b')\nif m is not None:\n    m.f = new",
        {("assignment", F, "vllm.a.b:f")},
    ),
    "module of a class": (
        "import sys\nfrom vllm.a.b import Engine\n"
        + NEW
        + "sys.modules[Engine.__module__].f = new",
        {("assignment", F, "vllm.a.b:f")},
    ),
    "getattr with a constant": (
        "import vllm.a.b as m\n"
        + NEW
        + "E = getattr(m, 'Engine', None)\nif E:\n    E.step = new",
        {("assignment", F, "vllm.a.b:Engine.step")},
    ),
    "cast": (
        "from typing import Any, cast\nimport vllm.a.b as m\n"
        + NEW
        + "cast(Any, m.Engine).step = new",
        {("assignment", F, "vllm.a.b:Engine.step")},
    ),
    "tuple": (
        "import vllm.a.b as m\n" + NEW + "m.f, m.g = new, new",
        {("assignment", F, "vllm.a.b:f"), ("assignment", F, "vllm.a.b:g")},
    ),
    "chained": (
        "import vllm.a.b as m, vllm.a.c as n\n" + NEW + "m.f = n.f = new",
        {("assignment", F, "vllm.a.b:f"), ("assignment", F, "vllm.a.c:f")},
    ),
    "annotated": (
        "import vllm.a.b as m\nm.LIMIT: int = 3",
        {("assignment", R, "vllm.a.b:LIMIT")},
    ),
    "augmented": (
        "import vllm.a.b as m\nm.NAMES += ('ours',)",
        {("assignment", R, "vllm.a.b:NAMES")},
    ),
    "torch.cuda": (
        "import torch\ntorch.cuda.Event = torch.npu.Event",
        {("assignment", C, "torch.cuda:Event")},
    ),
    "standard library": (
        "import warnings\n" + NEW + "warnings.formatwarning = new",
        {("assignment", F, "warnings:formatwarning")},
    ),
    "setattr": (
        "import vllm.a.b as m\n" + NEW + "setattr(m, 'f', new)",
        {("setattr", F, "vllm.a.b:f")},
    ),
    "setattr with a constant's name": (
        "import vllm.a.b as m\n" + NEW + "NAME = 'f'\nsetattr(m, NAME, new)",
        {("setattr", F, "vllm.a.b:f")},
    ),
    "object.__setattr__": (
        "import vllm.a.b as m\n" + NEW + "object.__setattr__(m, 'f', new)",
        {("setattr", F, "vllm.a.b:f")},
    ),
    "type.__setattr__": (
        "from vllm.a.b import Engine\n" + NEW + "type.__setattr__(Engine, 'f', new)",
        {("setattr", F, "vllm.a.b:Engine.f")},
    ),
    "loop over names": (
        "import vllm.a.b as m\n" + NEW + "for n in ('f', 'g'):\n    setattr(m, n, new)",
        {("setattr", F, "vllm.a.b:f"), ("setattr", F, "vllm.a.b:g")},
    ),
    "loop over pairs": (
        "import vllm.a.b as m, vllm.a.c as n\n"
        + NEW
        + "for mod, name in [(m, 'f'), (n, 'g')]:\n    setattr(mod, name, new)",
        {("setattr", F, "vllm.a.b:f"), ("setattr", F, "vllm.a.c:g")},
    ),
    "loop over the items of a dictionary": (
        "import vllm.a.b as m\n"
        + NEW
        + "TABLE = {'f': new, 'g': new}\n"
        + "for name, value in TABLE.items():\n    setattr(m, name, value)",
        {("setattr", F, "vllm.a.b:f"), ("setattr", F, "vllm.a.b:g")},
    ),
    "loop over modules": (
        "import vllm.a.b as m, vllm.a.c as n\n"
        + NEW
        + "for mod in (m, n):\n    mod.f = new",
        {("assignment", F, "vllm.a.b:f"), ("assignment", F, "vllm.a.c:f")},
    ),
    "loop over names of modules": (
        "import sys\n"
        + NEW
        + "for name in ('vllm.a.b', 'vllm.a.c'):\n"
        + "    if name in sys.modules:\n        sys.modules[name].f = new",
        {("assignment", F, "vllm.a.b:f"), ("assignment", F, "vllm.a.c:f")},
    ),
    "zip": (
        "import vllm.a.b as m\n"
        + NEW
        + "for n, v in zip(['f', 'g'], [new, new]):\n    setattr(m, n, v)",
        {("setattr", F, "vllm.a.b:f"), ("setattr", F, "vllm.a.b:g")},
    ),
    "del": (
        "import vllm.a.b as m\ndel m.f",
        {("delete", R, "vllm.a.b:f")},
    ),
    "delattr": (
        "import vllm.a.b as m\ndelattr(m, 'f')",
        {("delete", R, "vllm.a.b:f")},
    ),
    "__dict__": (
        "import vllm.a.b as m\n" + NEW + "m.__dict__['f'] = new",
        {("namespace", F, "vllm.a.b:f")},
    ),
    "vars, updated": (
        "import vllm.a.b as m\n" + NEW + "vars(m).update({'f': new}, g=new)",
        {("namespace", F, "vllm.a.b:f"), ("namespace", F, "vllm.a.b:g")},
    ),
    "globals of a function": (
        "from vllm.a.b import f\n" + NEW + "f.__globals__['helper'] = new",
        {("namespace", F, "vllm.a.b:helper")},
    ),
    "a module put into sys.modules": (
        "import sys, types\nsys.modules['vllm.a.b'] = types.ModuleType('x')",
        {("sys-modules", R, "vllm.a:b")},
    ),
    "sys.modules.setdefault": (
        "import sys\nimport ours\nsys.modules.setdefault('vllm.a.b', ours)",
        {("sys-modules", R, "vllm.a:b")},
    ),
    "mock.patch": (
        "from unittest.mock import patch\n"
        "def go():\n    with patch('vllm.a.b.f', None):\n        pass",
        {("patch-call", R, "vllm.a.b:f")},
    ),
    "mock.patch of a module that was imported": (
        "from unittest import mock\n"
        + NEW
        + "mock.patch('vllm.a.b.Engine.step', new).start()",
        {("patch-call", F, "vllm.a.b:Engine.step")},
    ),
    "patch.object": (
        "from unittest.mock import patch\nimport vllm.a.b as m\n"
        + NEW
        + "patch.object(m.Engine, 'step', new).start()",
        {("patch-call", F, "vllm.a.b:Engine.step")},
    ),
    "patch.multiple": (
        "from unittest.mock import patch\n"
        + NEW
        + "patch.multiple('vllm.a.b', f=new).start()",
        {("patch-call", F, "vllm.a.b:f")},
    ),
    "patch.dict of sys.modules": (
        "import sys\nfrom unittest.mock import patch\n"
        "patch.dict(sys.modules, {'vllm.a.b': None}).start()",
        {("sys-modules", R, "vllm.a:b")},
    ),
    "wrapt, by name": (
        "import wrapt\ndef w(wrapped, instance, args, kwargs): ...\n"
        "wrapt.wrap_function_wrapper('vllm.a.b', 'Engine.step', w)",
        {("wrapt", W, "vllm.a.b:Engine.step")},
    ),
    "wrapt, by module": (
        "from wrapt import wrap_function_wrapper\nimport vllm.a.b as m\n"
        "def w(wrapped, instance, args, kwargs): ...\n"
        "wrap_function_wrapper(m, name='f', wrapper=w)",
        {("wrapt", W, "vllm.a.b:f")},
    ),
    "wrapt, decorator": (
        "import wrapt\n"
        "@wrapt.patch_function_wrapper('vllm.a.b', 'Engine.step')\n"
        "def w(wrapped, instance, args, kwargs): ...",
        {("wrapt", W, "vllm.a.b:Engine.step")},
    ),
    "when imported": (
        "import wrapt\n"
        + NEW
        + "@wrapt.when_imported('vllm.a.b')\ndef hook(module):\n    module.f = new",
        {("assignment", F, "vllm.a.b:f")},
    ),
    "post-import hook": (
        "import wrapt\n"
        + NEW
        + "def hook(module):\n    module.f = new\n"
        + "wrapt.register_post_import_hook(hook, 'vllm.a.b')",
        {("helper", F, "vllm.a.b:f")},
    ),
    "helper": (
        "import vllm.a.b as m\n"
        + NEW
        + "def put(module, name, value):\n    setattr(module, name, value)\n"
        + "put(m, 'f', new)\nput(m.Engine, name='step', value=new)",
        {("helper", F, "vllm.a.b:f"), ("helper", F, "vllm.a.b:Engine.step")},
    ),
    "helper that imports": (
        "import importlib\n"
        + NEW
        + "def put(path, value):\n"
        + "    module, name = path.rsplit('.', 1)\n"
        + "    setattr(importlib.import_module(module), name, value)\n"
        + "put('vllm.a.b.f', new)",
        {("helper", F, "vllm.a.b:f")},
    ),
    "decorator of the code's own, told by name": (
        "from .helpers import patch\n"
        "@patch('vllm.a.b')\ndef f(): ...\n"
        "@patch('vllm.a.b', 'Engine.step')\ndef step(self): ...",
        {("helper", F, "vllm.a.b:f"), ("helper", F, "vllm.a.b:Engine.step")},
    ),
    "such a decorator, called": (
        "from .helpers import patch\n"
        + NEW
        + "new = patch('vllm.a.b', 'f')(new)\nf = patch('vllm.a.c')(new)",
        {("helper", F, "vllm.a.b:f"), ("helper", F, "vllm.a.c:new")},
    ),
    "such a function, told by class": (
        "from .helpers import replace_method\nfrom vllm.a.b import Engine\n"
        + NEW
        + "replace_method(Engine, 'step', new)",
        {("helper", F, "vllm.a.b:Engine.step")},
    ),
    "a class laid over another": (
        "from .helpers import Patch\nfrom vllm.a.b import Engine\n"
        "class Ours(Patch[Engine]):\n"
        "    _kept_step = Engine.step\n"
        "    LIMIT = 3\n"
        "    def step(self): ...",
        {
            ("patch-class", F, "vllm.a.b:Engine._kept_step"),
            ("patch-class", R, "vllm.a.b:Engine.LIMIT"),
            ("patch-class", F, "vllm.a.b:Engine.step"),
        },
    ),
    "entries of a table": (
        "from vllm.a.b import _REGISTRY\nimport vllm.a.b as m\n"
        "_REGISTRY['x'] = 1\nm.SUPPORTED.append('y')\ndel m.NAMES['z']",
        {
            ("table", R, "vllm.a.b:_REGISTRY"),
            ("table", R, "vllm.a.b:SUPPORTED"),
            ("table", R, "vllm.a.b:NAMES"),
        },
    ),
    "code object": (
        "from vllm.a.b import f\n" + NEW + "f.__code__ = new.__code__",
        {("source-text", F, "vllm.a.b:f")},
    ),
    "code object, changed": (
        "from vllm.a.b import f\ncode = f.__code__.replace(co_consts=())",
        {("source-text", F, "vllm.a.b:f")},
    ),
    "source text, run anew": (
        "import inspect\nimport vllm.a.b as m\n"
        "def rewrite():\n"
        "    text = inspect.getsource(m.f).replace('a', 'b')\n"
        "    exec(compile(text, '', 'exec'), m.__dict__)",
        {("source-text", F, "vllm.a.b:f"), ("source-text", F, None)},
    ),
    "a name of every module": (
        "import sys\n"
        + NEW
        + "for module in list(sys.modules.values()):\n    setattr(module, 'f', new)",
        {("setattr", F, None)},
    ),
    "a module under a name that is handed in": (
        "import sys\ndef put(name, module):\n    sys.modules[name] = module",
        {("sys-modules", R, None)},
    ),
    "a name that is not written out": (
        "import vllm.a.b as m\n" + NEW + "setattr(m, input(), new)",
        {("setattr", F, None)},
    ),
    "of the class of an object": (
        "from vllm.a import current\ntype(current)._enum = 1",
        {("assignment", R, None)},
    ),
    "in a module that is called config": (
        "import vllm.config as c\n" + NEW + "c.f = new\nc.Engine.step = new",
        {
            ("assignment", F, "vllm.config:f"),
            ("assignment", F, "vllm.config:Engine.step"),
        },
    ),
    "match": (
        "import vllm.a.b as m\n"
        + NEW
        + "match input():\n    case 'x':\n        m.f = new",
        {("assignment", F, "vllm.a.b:f")},
    ),
    "while and with": (
        "import vllm.a.b as m\n"
        + NEW
        + "while True:\n    with open('x') as g:\n        m.f = new\n    break",
        {("assignment", F, "vllm.a.b:f")},
    ),
    "global": (
        NEW
        + "m = None\ndef load():\n    global m\n    import vllm.a.b as m\n"
        + "def apply():\n    m.f = new",
        {("assignment", F, "vllm.a.b:f")},
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_found_with_its_target(scanned: Any, form: str) -> None:
    code, expected = FORMS[form]
    assert rows(scanned(code)) == expected


NO_PATCH = {
    "of its own class": "class A: ...\nA.x = 1",
    "of its own module": "import plug.m as me\nme.x = 1",
    "of an instance": "from vllm.a.b import Engine\ne = Engine()\ne.step = None",
    "of a parameter": "def f(layer):\n    layer.weight = 1\nf(make())",
    "of self": "import vllm\nclass A(vllm.B):\n    def f(self):\n        self.x = 1",
    "a configuration": "import torch\ntorch._dynamo.config.cache_size_limit = 64",
    "a hidden configuration": (
        "from torch.fx.experimental import _config as c\nc.oblivious = True"
    ),
    "a backend's switch": "import torch\ntorch.backends.cudnn.benchmark = True",
    "the environment": "import os\nos.environ['X'] = '1'",
    "a counter": "from vllm.a.b import counter\ncounter.captured += 1",
    "a local table": "from vllm.a.b import f\nrows = {}\nrows['x'] = f",
    "for type checkers": (
        "from typing import TYPE_CHECKING\nimport vllm.a.b as m\n"
        "if TYPE_CHECKING:\n    m.f = None"
    ),
    "an official hook": (
        "from vllm.model_executor.custom_op import CustomOp\n"
        "from vllm import ModelRegistry\n"
        "@CustomOp.register_oot(name='X')\nclass X: ...\n"
        "ModelRegistry.register_model('M', 'plug.m:M')"
    ),
    "a replaced parameter": (
        "from vllm.a.utils import replace_parameter\n"
        "class L:\n    def f(self):\n        replace_parameter(self, 'w', self.w)"
    ),
    "another package's function called like it": (
        "from torch.fx import replace_pattern\nreplace_pattern(graph, a, b)"
    ),
    "a file that is loaded as a module": (
        "import sys\nfrom importlib.util import module_from_spec\n"
        "def load(name, spec):\n"
        "    module = module_from_spec(spec)\n    sys.modules[name] = module"
    ),
    "text": "x = 'vllm.a.b'.replace('a', 'b')",
}


@pytest.mark.parametrize("what", NO_PATCH)
def test_what_is_no_patch(scanned: Any, what: str) -> None:
    assert rows(scanned(NO_PATCH[what])) == set()


def test_with_upstreams_named_others_are_left_out(scanned: Any) -> None:
    code = "import torch, vllm.a.b as m\ntorch.f = 1\nm.g = 1"
    assert {t for _, _, t in rows(scanned(code, "torch"))} == {"torch:f"}
    assert {t for _, _, t in rows(scanned(code))} == {"torch:f", "vllm.a.b:g"}


def test_a_name_is_followed_through_the_code(scanned: Any) -> None:
    files = {
        "plug/compat.py": (
            "try:\n    from vllm.a.b import Engine\n"
            "except ImportError:\n    from vllm.old import Engine\n"
            "import vllm.a.c as stock\n"
        ),
        "plug/m.py": "from .compat import Engine, stock\nEngine.step = stock.g = f\n",
        "plug/s/n.py": "from .. import compat\ncompat.Engine.stop = f\ncompat.x = 1\n",
    }
    assert {t for _, _, t in rows(scanned(files))} == {
        "vllm.a.b:Engine.step",
        "vllm.a.c:g",
        "vllm.a.b:Engine.stop",
    }


def test_a_helper_may_lie_in_another_file(scanned: Any) -> None:
    files = {
        "plug/tools/__init__.py": "from .put import put\n",
        "plug/tools/put.py": (
            "def put(what, name, value, *, note=''):\n    setattr(what, name, value)\n"
        ),
        "plug/m.py": (
            "from plug.tools import put\nimport vllm.a.b as m\n"
            "# because\nput(m.Engine, 'step', lambda self: 1)\n"
        ),
    }
    one = only(scanned(files))
    assert (one.path, one.line, one.target) == ("plug/m.py", 4, "vllm.a.b:Engine.step")
    assert one.comment == "because"


def test_a_helper_that_nobody_spells_is_told(scanned: Any) -> None:
    code = (
        "import importlib\n"
        "def put(module, value):\n"
        "    importlib.import_module(module).f = value\n"
        "put(input(), 1)"
    )
    one = only(scanned(code))
    assert one.target is None
    assert one.unresolved == (
        "`f` of the module `module`, a parameter that no call here spells"
    )


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("del sys.modules['triton']", "the whole module `triton`"),
        (
            "setattr(m, x, 1)",
            "an attribute of `vllm.a.b` whose name is not written out",
        ),
        (
            "for n in list(sys.modules.values()):\n    n.f = 1",
            "`f` of every module that is loaded",
        ),
        ("type(m.now).f = 1", "`f` of the class that `vllm.a.b.now` is of"),
        (
            "exec(text, vars(m))",
            "whatever the text run in `vllm.a.b` defines",
        ),
        (
            "def put(name):\n    sys.modules[name].f = 1",
            "`f` of the module `name`, a parameter that no call here spells",
        ),
    ],
)
def test_why_there_is_no_target(scanned: Any, code: str, why: str) -> None:
    one = only(scanned(f"import sys\nimport vllm.a.b as m\n{code}"))
    assert (one.target, one.unresolved) == (None, why)


def test_the_replacement_and_its_parameters(scanned: Any) -> None:
    code = "import vllm.a.b as m\ndef new(a, b=1): ...\nm.f = new\nm.g = lambda x: x"
    one, two = scanned(code).patches
    assert (one.replacement, str(one.ours)) == ("new", "(a, b)")
    assert (two.replacement, str(two.ours)) == ("lambda x: x", "(x)")


@pytest.mark.parametrize(
    ("code", "comment"),
    [
        ("# It is slow.\nm.f = 1", "It is slow."),
        ("m.f = 1  # it is slow", "it is slow"),
        ("# One\n# two.\nm.f = 1", "One two."),
        ("# noqa: E402\n# why\nm.f = 1", "why"),
        ("m.f = 1  # type: ignore[attr-defined]", ""),
        (
            "def apply():\n    '''It is slow.\n\n    Very.'''\n    m.f = 1",
            "It is slow.",
        ),
        ("# It is faster.\ndef new(): ...\n\nm.f = new", "It is faster."),
        ("# For speed.\n@once\ndef apply():\n    m.f = 1", "For speed."),
    ],
)
def test_the_nearest_comment(scanned: Any, code: str, comment: str) -> None:
    assert only(scanned(f"import vllm.a.b as m\n\n{code}\n")).comment == comment


@pytest.mark.parametrize(
    ("code", "adds"),
    [
        ("m.Engine._patched = True", True),
        ("m.Engine._plug_step = f", True),
        ("m.Engine.f_for_the_plug = f", True),
        ("if not hasattr(m, 'f'):\n    m.f = f", True),
        ("if hasattr(m, 'f'):\n    m.f = f", False),
        ("m.Engine._kept = m.Engine.step", True),
        ("def mark(x):\n    x._seen = True\nmark(m.Engine)", True),
        ("m.f = f", False),
    ],
)
def test_a_name_that_upstream_need_not_have(
    scanned: Any, code: str, adds: bool
) -> None:
    """A mark, a new name, or one that has the code's own name in it."""
    assert only(scanned(f"import vllm.a.b as m\n{code}")).adds is adds
