"""A first registry, valid by the loader, as it is and with its patches taken in."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ascend_shims.registry import load
from ascend_shims.scan.draft import NothingToDraftError, draft
from ascend_shims.scan.found import Found, Gate

FILES = {
    "plug/patch_engine.py": """
        import vllm.a.b as m
        from plug.utils import vllm_version_is

        # Upstream asks for streams that we do not have.
        def step(self, x): ...
        m.Engine.step = step
        class Ours(m.Engine): ...
        # It is theirs.
        m.Engine = Ours
        if vllm_version_is("0.27.1"):
            m.f = lambda: 1
        if is_310p():
            m.g = step
        setattr(m, input(), step)
        m.TABLE["x"] = 1
        m.Engine._patched = True
    """,
    "plug/__init__.py": "import torch\nkept = torch.f\ntorch.f = lambda: kept()\n",
    "plug/second/patch_engine.py": "import vllm.a.b as m\nm.Engine.step = len\n",
    "plug/user.py": "from vllm.a.b import _hidden\n",
    "plug/either.py": """
        try:
            from vllm.new import Model
        except ImportError:
            from vllm.old import Model
        Model.load = len
    """,
}


def test_the_draft_is_valid_and_says_what_was_found(
    scanned: Any, tmp_path: Path
) -> None:
    found = scanned(FILES)
    text = draft([f for f in found.found if f.sure], claims={"vllm": ">=0.27"})
    (tmp_path / "draft.yaml").write_text(text)
    registry = load(tmp_path / "draft.yaml")

    assert [gap.id for gap in registry.gaps] == [
        "plug",
        "either",
        "patch-engine",
        "second-patch-engine",
    ]
    gap = registry["patch-engine"]
    assert gap.why == "Upstream asks for streams that we do not have. It is theirs."
    assert registry["plug"].why == "TODO: why plug/__init__.py changes upstream"
    assert gap.remove_when.startswith("TODO")
    assert gap.versions == {"vllm": ">=0.27"}
    assert set(registry.upstreams) == {"torch", "vllm"}
    watched = {
        (one.symbol, one.how, one.versions.get("vllm")) for one in registry.watch
    }
    assert ("vllm.a.b:Engine.step", "replaces_function", None) in watched
    assert ("vllm.a.b:f", "replaces_function", "==0.27.1") in watched
    assert ("vllm.a.b:_hidden", "imports_name", None) in watched
    assert ("torch:f", "wraps_function", None) in watched
    # What upstream does not have cannot be watched there.
    assert not any("_patched" in symbol for symbol, _, _ in watched)


def test_what_a_registry_cannot_say_is_told(scanned: Any) -> None:
    text = draft(scanned(FILES).patches)
    assert "# line 15: TODO: an attribute of `vllm.a.b` whose name is not" in text
    assert "# line 16: TODO: table of vllm.a.b:TABLE is no patch of a name" in text
    assert "# TODO: only where is_310p()" in text


def test_the_patches_taken_in_are_valid_too(
    scanned: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = draft(scanned(FILES).patches)
    taken = re.sub(r"(?m)^    unpatched: .*\n", "", text)
    taken = re.sub(r"(?m)^    # (?=patches:|  )", "    ", taken)
    taken = taken.replace("schema: 1", "schema: 1\npackage: taken_in")
    # Two files patch the same method, so that a person has to say which is beneath.
    taken = taken.replace(
        "  - id: second-patch-engine",
        "  - id: second-patch-engine\n    after: [patch-engine]",
    )
    home = tmp_path / "taken_in"
    home.mkdir()
    names = set(re.findall(r"replacement: (\w+)", taken))
    code = "".join(f"{name} = None\n" for name in names)
    for module in ("plug", "either", "patch_engine", "second_patch_engine"):
        (home / f"{module}.py").write_text(code)
    (home / "__init__.py").write_text("")
    (tmp_path / "draft.yaml").write_text(taken)
    monkeypatch.syspath_prepend(tmp_path)

    registry = load(tmp_path / "draft.yaml")
    patches = {
        (patch.target, patch.kind, patch.versions.get("vllm"))
        for gap in registry.gaps
        for patch in gap.patches
    }
    assert patches == {
        ("vllm.a.b:Engine.step", "replace", None),
        ("vllm.a.b:Engine", "replace", None),
        ("vllm.a.b:f", "replace", "==0.27.1"),
        ("vllm.a.b:g", "replace", None),
        ("vllm.a.b:Engine._patched", "add", None),
        ("torch:f", "wrap", None),
        (("vllm.new:Model.load", "vllm.old:Model.load"), "replace", None),
    }


def test_without_patches_there_is_no_draft(scanned: Any) -> None:
    with pytest.raises(NothingToDraftError, match="no patch was found"):
        draft(scanned("from vllm.a.b import _hidden").found)


_NAME = st.from_regex(r"\A_?[a-zA-Z][a-z0-9_]{0,5}\Z")
_TEXT = st.text(max_size=40)


@st.composite
def _founds(make: st.DrawFn) -> Found:
    names = ("vllm", *make(st.lists(_NAME, min_size=1, max_size=4)))
    gates = make(
        st.lists(
            st.builds(
                Gate,
                _TEXT,
                st.just("version"),
                st.just("vllm"),
                st.sampled_from(["==0.27.1", "<0.28", ">=0.28", "!=0.27.1"]),
            ),
            max_size=3,
        )
    )
    return Found(
        path=make(st.sampled_from(["a.py", "b/a.py", "b/1.py", "ä.py", "..py"])),
        line=make(st.integers(1, 999)),
        form=make(st.sampled_from(["assignment", "setattr", "table", "delete"])),
        how=make(st.sampled_from(["wraps_function", "replaces_function"])),
        names=names,
        target=make(st.sampled_from([None, f"vllm:{'.'.join(names[1:])}"])),
        unresolved=make(_TEXT),
        gates=tuple(gates),
        replacement=make(_TEXT),
        comment=make(_TEXT),
        adds=make(st.booleans()),
    )


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(found=st.lists(_founds(), min_size=1, max_size=6), claimed=st.booleans())
def test_any_draft_is_valid(tmp_path: Path, found: list[Found], claimed: bool) -> None:
    found.sort(key=lambda one: one.path)
    path = tmp_path / "draft.yaml"
    path.write_text(draft(found, claims={"vllm": ">=0.27"} if claimed else {}), "utf-8")
    assert len(load(path).gaps) == len({one.path for one in found})
