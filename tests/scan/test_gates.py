"""Conditions, as text and as ranges."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import only

V = "vllm"

RANGES: list[tuple[str, dict[str, str]]] = [
    ("if vllm_version_is('0.27.1'):\n    m.f = 1", {V: "==0.27.1"}),
    ("if not vllm_version_is('0.27.1'):\n    m.f = 1", {V: "!=0.27.1"}),
    (
        "if vllm_version_is('0.27.1'):\n    pass\nelse:\n    m.f = 1",
        {V: "!=0.27.1"},
    ),
    (
        "if vllm_version_is('0.27.1'):\n    pass\n"
        "elif vllm_version_is('0.28.0'):\n    m.f = 1",
        {V: "!=0.27.1,==0.28.0"},
    ),
    ("if vllm.__version__ == '0.27.1':\n    m.f = 1", {V: "==0.27.1"}),
    ("if vllm.__version__.startswith('0.27.'):\n    m.f = 1", {V: "==0.27.*"}),
    ("if not vllm.__version__.startswith('0.27'):\n    m.f = 1", {V: "!=0.27.*"}),
    ("if Version(vllm.__version__) >= Version('0.28'):\n    m.f = 1", {V: ">=0.28"}),
    ("if Version('0.28') <= Version(vllm.__version__):\n    m.f = 1", {V: ">=0.28"}),
    ("if parse(vllm.__version__) < parse('0.28'):\n    m.f = 1", {V: "<0.28"}),
    ("if parse(version('vllm')).public > '0.28':\n    m.f = 1", {V: ">0.28"}),
    (
        "if importlib.metadata.version('torch') >= '2.5':\n    m.f = 1",
        {"torch": ">=2.5"},
    ),
    ("if vllm.__version_tuple__ >= (0, 28):\n    m.f = 1", {V: ">=0.28"}),
    ("if vllm.__version__ in ('0.27.1',):\n    m.f = 1", {V: "==0.27.1"}),
    ("if VLLM_VERSION >= '0.28':\n    m.f = 1", {V: ">=0.28"}),
    ("if vllm_version_at_least('0.28'):\n    m.f = 1", {V: ">=0.28"}),
    ("if is_vllm_version_before('0.28'):\n    m.f = 1", {V: "<0.28"}),
    ("if check_version('>=', '0.28'):\n    m.f = 1", {V: ">=0.28"}),
    (
        "if Version(vllm.__version__) >= Version('0.28') and x:\n    m.f = 1",
        {V: ">=0.28"},
    ),
    (
        "if not (vllm_version_is('0.27.1') or vllm_version_is('0.28.0')):\n    m.f = 1",
        {V: "!=0.27.1,!=0.28.0"},
    ),
    ("if vllm_version_is('0.27.1') or x:\n    m.f = 1", {}),
    ("OLD = vllm_version_is('0.27.1')\nif OLD:\n    m.f = 1", {V: "==0.27.1"}),
    ("OLD = vllm_version_is('0.27.1')\nif not OLD:\n    m.f = 1", {V: "!=0.27.1"}),
    (
        "def apply():\n    if not vllm_version_is('0.27.1'):\n        return\n"
        "    m.f = 1\napply()",
        {V: "==0.27.1"},
    ),
    (
        "def _apply():\n    m.f = 1\nif vllm_version_is('0.27.1'):\n    _apply()",
        {V: "==0.27.1"},
    ),
    (
        "def _apply():\n    m.f = 1\nif vllm_version_is('0.27.1'):\n    _apply()\n"
        "_apply()",
        {},
    ),
    (
        "if vllm_version_is('0.27.1'):\n    def apply():\n        m.f = 1",
        {V: "==0.27.1"},
    ),
    ("if some_version('odd'):\n    m.f = 1", {}),
    ("m.f = 1", {}),
    ("if vllm_version_is_not('0.28.0'):\n    m.f = 1", {V: "!=0.28.0"}),
    ("if not vllm_version_is_not('0.28.0'):\n    m.f = 1", {V: "==0.28.0"}),
    ("if vllm_newer_than('0.28'):\n    m.f = 1", {V: ">0.28"}),
    ("if is_vllm_at_least('0.28'):\n    m.f = 1", {V: ">=0.28"}),
    ("if is_torch_version('<', '2.9'):\n    m.f = 1", {"torch": "<2.9"}),
    ("if check_version('torch', '>=', '2.5'):\n    m.f = 1", {"torch": ">=2.5"}),
    ("if version_ge(vllm.__version__, '0.28'):\n    m.f = 1", {V: ">=0.28"}),
    ("if version_ge('0.28', vllm.__version__):\n    m.f = 1", {V: "<=0.28"}),
    (
        "from plug.u import vllm_version_ge as ge\nif ge('0.28'):\n    m.f = 1",
        {V: ">=0.28"},
    ),
    (
        "from vllm import __version__ as VV\nif Version(VV) < Version('0.28'):\n"
        "    m.f = 1",
        {V: "<0.28"},
    ),
    (
        "if vllm.version.__version_tuple__ >= (0, 28, 0):\n    m.f = 1",
        {V: ">=0.28.0"},
    ),
    ("if '0.27' <= vllm.__version__ < '0.30':\n    m.f = 1", {V: ">=0.27,<0.30"}),
    ("if (old := vllm_version_is('0.27.1')):\n    m.f = 1", {V: "==0.27.1"}),
    (
        "if vllm.__version__ in SpecifierSet('~=0.28.0'):\n    m.f = 1",
        {V: "==0.28.*,>=0.28.0"},
    ),
    # The numbers of a version are not ordered as versions are.
    ("if Version(vllm.__version__).release < (0, 29):\n    m.f = 1", {V: "<0.29"}),
    ("if Version(vllm.__version__).release <= (0, 29):\n    m.f = 1", {V: "<0.29"}),
    ("if Version(vllm.__version__).release > (0, 29):\n    m.f = 1", {V: ">=0.29"}),
    ("if Version(vllm.__version__).release == (0, 29):\n    m.f = 1", {}),
    (
        "if Version(vllm.__version__).release == (0, 29, 1):\n    m.f = 1",
        {V: "==0.29.1"},
    ),
    (
        "if Version(vllm.__version__).release[:2] == (0, 29):\n    m.f = 1",
        {V: "==0.29.*"},
    ),
    (
        "if Version(vllm.__version__).release[:2] > (0, 29):\n    m.f = 1",
        {V: ">=0.30"},
    ),
    (
        "if (VLLM_VERSION.major, VLLM_VERSION.minor) <= (0, 29):\n    m.f = 1",
        {V: "<0.30"},
    ),
    (
        "if tuple(map(int, vllm.__version__.split('.')[:2])) >= (0, 29):\n    m.f = 1",
        {V: ">=0.29"},
    ),
    (
        "if Version(vllm.__version__.split('+')[0]) >= Version('0.29'):\n    m.f = 1",
        {V: ">=0.29"},
    ),
    # Of one of several: the range that says the same.
    (
        "if vllm_version_is('0.28.0') or vllm_version_before('0.28.0'):\n    m.f = 1",
        {V: "<=0.28.0"},
    ),
    (
        "if not (vllm_version_ge('0.28') and not vllm_version_ge('0.28.0')):\n"
        "    m.f = 1",
        {},
    ),
    (
        "if vllm.__version__.startswith(('0.27.', '0.28.')):\n    m.f = 1",
        {V: ">=0.27,<0.29"},
    ),
    (
        "if not vllm_version_is('0.27.1', '0.28.0'):\n    m.f = 1",
        {V: "!=0.27.1,!=0.28.0"},
    ),
    ("if vllm.__version__ not in ('0.27', '0.28'):\n    m.f = 1", {V: "!=0.27,!=0.28"}),
    ("if vllm_version_is('0.27.1') or vllm.__version__ != '0.27.1':\n    m.f = 1", {}),
    # A function that is at hand is read.
    (
        "def between(low, high='0.30'):\n    'Whether.'\n"
        "    return Version(low) <= Version(vllm.__version__) < Version(high)\n"
        "if between('0.28'):\n    m.f = 1",
        {V: ">=0.28,<0.30"},
    ),
    (
        "def vllm_version_is(*names):\n    return vllm.__version__ not in names\n"
        "if vllm_version_is('0.28'):\n    m.f = 1",
        {V: "!=0.28"},
    ),
    # What is not certain is no range.
    ("if vllm.__version__.startswith('0.2'):\n    m.f = 1", {}),
    ("if vllm.__version__.split('.')[0] == '0':\n    m.f = 1", {}),
    ("if MIN_VLLM_VERSION >= Version('0.28'):\n    m.f = 1", {}),
    ("if python_version_at_least('3.10'):\n    m.f = 1", {}),
    ("if is_supported_vllm_version('0.28'):\n    m.f = 1", {}),
    ("if vllm_version_range('0.28', '0.30'):\n    m.f = 1", {}),
    ("if vllm_version_ge('0.28', '0.30'):\n    m.f = 1", {}),
    ("if vllm_version_is('0.28', strict=True):\n    m.f = 1", {}),
    ("if vllm_version_is(*known):\n    m.f = 1", {}),
    ("if vllm_version_is('main'):\n    m.f = 1", {}),
    ("if not_vllm_version('0.28'):\n    m.f = 1", {}),
    ("if VLLM_VERSION.minor >= 30:\n    m.f = 1", {}),
]


@pytest.mark.parametrize(("code", "ranges"), RANGES)
def test_the_range_of_a_gate(scanned: Any, code: str, ranges: dict[str, str]) -> None:
    head = "import vllm, importlib.metadata\nimport vllm.a.b as m\n"
    assert dict(only(scanned(head + code)).ranges) == ranges


@pytest.mark.parametrize(
    ("condition", "around"),
    [
        ("vllm_version_is('0.28.0', '0.32.0')", ">=0.28.0,<=0.32.0"),
        ("vllm_version_is('0.27.1') or vllm_version_is('0.28.0')", ">=0.27.1,<=0.28.0"),
        ("vllm.__version__ in ('0.27.0', '0.27.1')", ">=0.27.0,<=0.27.1"),
        ("vllm_version_in(['0.28.0', '0.30.0'])", ">=0.28.0,<=0.30.0"),
        ("vllm_version_before('0.28') and x or vllm_version_is('0.29')", "<=0.29"),
        ("not (vllm_version_ge('0.29') and not vllm_version_ge('0.31'))", ""),
    ],
)
def test_one_of_several_releases_is_within_a_range_and_stays_text(
    scanned: Any, condition: str, around: str
) -> None:
    """Nothing that is written in PEP 440 says that it is one of them."""
    code = f"import vllm\nimport vllm.a.b as m\nif {condition}:\n    m.f = 1"
    one = only(scanned(code))
    assert dict(one.ranges) == ({V: around} if around else {})
    assert [g.text for g in one.gates if g.kind == "other"] == [condition]


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        (
            "try:\n    m.f = 1\nexcept ImportError:\n    pass",
            "try",
            "try: … except ImportError",
        ),
        (
            "try:\n    import x\nexcept (ValueError, AttributeError):\n    m.f = 1",
            "try",
            "except ValueError, AttributeError",
        ),
        (
            "with contextlib.suppress(ImportError):\n    m.f = 1",
            "suppress",
            "contextlib.suppress(ImportError)",
        ),
        ("if hasattr(m, 'f'):\n    m.f = 1", "exists", "hasattr(m, 'f')"),
        ("if not hasattr(m, 'f'):\n    m.f = 1", "exists", "not hasattr(m, 'f')"),
        ("if is_310p():\n    m.f = 1", "other", "is_310p()"),
        ("if a > b:\n    pass\nelse:\n    m.f = 1", "other", "not (a > b)"),
        ("if False:\n    m.f = 1", "never", "False"),
        ("if True:\n    pass\nelse:\n    m.f = 1", "never", "not True"),
        ("match kind:\n    case 'x':\n        m.f = 1", "other", "kind is 'x'"),
    ],
)
def test_conditions_that_are_no_version(
    scanned: Any, code: str, kind: str, text: str
) -> None:
    one = only(scanned(f"import contextlib\nimport vllm.a.b as m\n{code}"))
    assert [(gate.kind, gate.text) for gate in one.gates] == [(kind, text)]


def test_a_try_that_catches_something_else_is_no_condition(scanned: Any) -> None:
    code = "import vllm.a.b as m\ntry:\n    m.f = 1\nexcept KeyError:\n    pass"
    assert only(scanned(code)).gates == ()


def test_a_file_is_under_the_conditions_of_all_its_imports(scanned: Any) -> None:
    files = {
        "plug/old.py": "import vllm.a.b as m\nm.f = 1\n",
        "plug/both.py": "import vllm.a.b as m\nm.g = 1\n",
        "plug/deep.py": "import vllm.a.b as m\nm.h = 1\n",
        "plug/chosen.py": "import plug.deep\n",
        "plug/m.py": """
            from plug.utils import vllm_version_is
            if vllm_version_is("0.27.1"):
                import plug.old
                from plug import both
                import plug.chosen
        """,
        "plug/n.py": "from plug import both\n",
    }
    ranges = {one.names[-1]: dict(one.ranges) for one in scanned(files).patches}
    assert ranges == {"f": {V: "==0.27.1"}, "g": {}, "h": {V: "==0.27.1"}}


def test_either_of_two_imports(scanned: Any) -> None:
    code = (
        "try:\n    import vllm.new.b as m\n"
        "except ImportError:\n    import vllm.old.b as m\nm.f = 1"
    )
    one = only(scanned(code))
    assert (one.target, one.candidates) == ("vllm.new.b:f", ("vllm.old.b:f",))


def test_a_class_of_either_of_two_imports(scanned: Any) -> None:
    code = (
        "try:\n    from vllm.new import Engine\n"
        "except ImportError:\n    from vllm.old import Engine\n"
        "Engine.step = Engine.stop = 1"
    )
    found = {one.target: one.candidates for one in scanned(code).patches}
    assert found == {
        "vllm.new:Engine.step": ("vllm.old:Engine.step",),
        "vllm.new:Engine.stop": ("vllm.old:Engine.stop",),
    }


def test_either_of_two_branches_is_both(scanned: Any) -> None:
    code = (
        "import vllm.a.b as b, vllm.a.c as c\n"
        "if x:\n    m = b\nelse:\n    m = c\nm.f = 1"
    )
    assert {f.target for f in scanned(code).patches} == {"vllm.a.b:f", "vllm.a.c:f"}
