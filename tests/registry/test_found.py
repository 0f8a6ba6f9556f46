"""Registries that installed plugins bring: composed, and each faulty one by itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ascend_shims.registry import Registry, RegistryError, load
from ascend_shims.registry.found import (
    FoundRegistryError,
    check_found,
    load_all,
    namespace_at,
)
from ascend_shims.registry.joined import Joined

from .plugins import GAP, HEAD, install

BASE = """\
schema: 1
upstreams: [madeup, other]
package: base_patches
gaps:
  - id: loud
    title: T
    status: open
    kind: workaround
    why: W
    remove_when: R
    patches:
      - {target: "madeup.core:answer", kind: wrap, replacement: shout}
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of `sys.path` with a base registry and its package."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "base_patches").mkdir()
    (tmp_path / "base_patches" / "__init__.py").touch()
    (tmp_path / "base_patches" / "loud.py").write_text("def shout(call): ...\n")
    (tmp_path / "base.yaml").write_text(BASE)
    before = set(sys.modules)
    yield tmp_path
    assert not {m for m in set(sys.modules) - before if m.startswith("acme")}


def _load(site: Path, **options: Any) -> Registry:
    return load_all(site / "base.yaml", **options)


def _reasons(registry: Registry) -> list[str]:
    assert isinstance(registry, Joined)
    assert registry.found == ()
    return [one.reason for one in registry.unusable]


def test_without_plugins_it_is_the_base_itself(site: Path) -> None:
    assert _load(site) == load(site / "base.yaml")
    assert not isinstance(_load(site), Joined)


def test_gaps_of_both_ours_first(site: Path) -> None:
    path = install(site)
    both = _load(site)
    assert isinstance(both, Joined)
    assert [gap.id for gap in both.gaps] == ["loud", "acme/fast-rope"]
    assert both.upstreams == ("madeup", "other")
    assert both.packages == ("base_patches", "acme_npu.shims")
    assert [both.package_of(gap) for gap in both.gaps] == list(both.packages)
    assert [gap.module for gap in both.gaps] == ["loud", "fast_rope"]
    (found,) = both.found
    assert (found.namespace, found.distribution) == ("acme", "acme-npu 1.0")
    assert (found.path, both.unusable) == (str(path), ())


def test_several_in_the_order_of_their_namespaces(site: Path) -> None:
    for name in ("zeta", "acme"):
        install(
            site,
            name,
            package=f"{name}_npu.shims",
            text=HEAD.replace("acme", name) + GAP,
            distribution=f"{name}_npu-1.0",
        )
    ids = [gap.id for gap in _load(site).gaps]
    assert ids == ["loud", "acme/fast-rope", "zeta/fast-rope"]


def test_what_names_its_own_and_what_names_ours(site: Path) -> None:
    gap = GAP.replace("{device: false}", "{device: false, gaps: [slow-rope, loud]}")
    gap = gap.replace("    patches:", "    after: [slow-rope, loud]\n    patches:")
    slow = GAP.replace("fast-rope", "slow-rope")
    code = "def exclaim(call): ...\n"
    install(site, text=HEAD + slow + gap, modules=dict.fromkeys(_MODULES, code))
    fast = _load(site)["acme/fast-rope"]
    assert fast.needs.gaps == ("acme/slow-rope", "loud")
    assert fast.after == ("acme/slow-rope", "loud")


_MODULES = ("fast_rope", "slow_rope")


@pytest.mark.parametrize(
    ("namespaces", "expected"),
    [
        (None, ["acme", "beta"]),
        (["acme", "beta"], ["acme", "beta"]),
        (["beta"], ["beta"]),
        ([], []),
    ],
)
def test_some_may_be_left_out(
    namespaces: list[str] | None, expected: list[str], site: Path
) -> None:
    install(site)
    text = HEAD.replace("acme", "beta") + GAP
    install(
        site,
        "beta",
        package="beta_npu.shims",
        text=text,
        distribution="beta-2",
    )
    both = _load(site, namespaces=namespaces)
    assert [one.namespace for one in getattr(both, "found", ())] == expected
    assert len(both.gaps) == 1 + len(expected)


def test_one_that_is_the_base_is_there_already(site: Path) -> None:
    path = install(site)
    assert [gap.id for gap in load_all(path).gaps] == ["fast-rope"]
    assert namespace_at(path) == "acme"
    assert namespace_at(site / "base.yaml") is None


def test_the_bases_companions_go_with_its_gaps(site: Path) -> None:
    install(
        site,
        text=HEAD + GAP.replace("    patches:", "    traced: the rope\n    patches:"),
    )
    both = load_all(None)
    gap = both["acme/fast-rope"]
    names = [one.id for one in both.companions_of(gap)]
    assert {"compile-key", "rank-agreement"} <= set(names)
    assert both.package_of(both.companions[0]) == "ascend_shims.patches"


# What is wrong with one keeps that one out

Break = Callable[[Path], Any]


def _write(text: str | bytes) -> Break:
    def change(site: Path) -> None:
        path = install(site)
        path.write_bytes(text.encode() if isinstance(text, str) else text)

    return change


def _twice(site: Path) -> None:
    install(site)
    install(site, distribution="acme_fork-2.0")


def _bare_folder(site: Path) -> None:
    install(site)
    (site / "acme_npu" / "shims" / "__init__.py").unlink()


FAULTS: list[tuple[str, Break, str]] = [
    ("two of one name", _twice, "several bring one of that name; uninstall all but"),
    ("capital", lambda s: install(s, "Acme"), "'Acme' is no namespace"),
    ("slash", lambda s: install(s, "a/b"), "'a/b' is no namespace"),
    ("reserved", lambda s: install(s, "none"), "'none' is no namespace"),
    ("no package", lambda s: install(s, entry="acme_gone"), "no package acme_gone"),
    (
        "no parent",
        lambda s: install(s, entry="gone.shims"),
        "no package gone.shims, which the entry point of acme-npu 1.0 names; install",
    ),
    (
        "a module",
        lambda s: install(s, entry="acme_npu.shims.fast_rope"),
        "is a module, and the entry point of acme-npu 1.0 has to name a package",
    ),
    ("an object", lambda s: install(s, entry="acme_npu.shims:x"), "name the package"),
    ("nothing", lambda s: install(s, entry=" "), "name the package that holds"),
    ("bare folder", _bare_folder, "is a folder without __init__.py"),
    ("no registry", lambda s: install(s, text=None), "no gap_registry.yaml in"),
    ("no YAML", _write("gaps: ["), "not YAML"),
    ("not UTF-8", _write(b"\xff\xff"), "is not UTF-8; save it as UTF-8"),
    ("empty", _write(""), "is empty; a registry begins with `schema: 1`"),
    ("too large", _write("#" * (1 << 20) + HEAD + GAP), "is larger than 1024 KiB"),
    (
        "schema of tomorrow",
        _write((HEAD + GAP).replace("schema: 1", "schema: 2")),
        "this ascend-shims reads schema `1`: install the one that the registry is "
        "written for, or leave it out: ASCEND_SHIMS_REGISTRIES=none",
    ),
    ("a mistake", _write((HEAD + GAP).replace("title", "titel")), ":6:5: unknown key"),
    (
        "more mistakes",
        _write((HEAD + GAP).replace("title", "titel").replace("why", "wy")),
        "(1 more: python -m ascend_shims.registry ",
    ),
    (
        "no such gap",
        _write(HEAD + GAP.replace("false}", "false, gaps: [lod]}")),
        "no gap has the id `lod`; did you mean `loud`?",
    ),
    (
        "traced, and nothing keeps it apart",
        _write(HEAD + GAP.replace("    patches:", "    traced: x\n    patches:")),
        "no companion goes with traced gaps",
    ),
    (
        "no package said",
        _write((HEAD + GAP).replace("package: acme_npu.shims\n", "")),
        "write `package: acme_npu.shims` at the top of the registry",
    ),
    (
        "another's package",
        _write(
            (HEAD + GAP)
            .replace("acme_npu.shims", "base_patches")
            .replace("fast-rope", "loud")
            .replace("exclaim", "shout")
        ),
        "takes its patches from 'base_patches', which is not in 'acme_npu.shims'",
    ),
    (
        "no module",
        lambda s: install(s, modules={}),
        "the module `acme_npu.shims.fast_rope` does not exist",
    ),
]


@pytest.mark.parametrize(
    ("break_it", "said"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS]
)
def test_what_is_wrong_with_one_is_told_and_stops_no_other(
    break_it: Break, said: str, site: Path
) -> None:
    break_it(site)
    registry = _load(site)
    (reason,) = _reasons(registry)
    assert said in reason
    assert [gap.id for gap in registry.gaps] == ["loud"]
    with pytest.raises(FoundRegistryError) as caught:
        check_found(registry)
    assert str(caught.value).startswith("the registry '")
    assert reason in str(caught.value)


def test_an_import_hook_that_raises_is_told(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site)

    class Hook:
        def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
            if name.startswith("acme_npu"):
                raise ZeroDivisionError("a hook")

    monkeypatch.setattr(sys, "meta_path", [Hook(), *sys.meta_path])
    (reason,) = _reasons(_load(site))
    assert "cannot be looked for (ZeroDivisionError: a hook)" in reason


def test_a_package_elsewhere_may_be_allowed(site: Path) -> None:
    text = HEAD.replace("acme_npu.shims", "base_patches") + GAP
    install(site, text=text.replace("fast-rope", "loud").replace("exclaim", "shout"))
    registry = _load(site, allow=["base_patches"])
    assert [gap.id for gap in registry.gaps] == ["loud", "acme/loud"]


def test_beneath_its_package_is_inside(site: Path) -> None:
    install(site, text=None)
    deep = site / "acme_npu" / "shims" / "deep"
    deep.mkdir()
    (deep / "__init__.py").touch()
    (deep / "fast_rope.py").write_text("def exclaim(call): ...\n")
    text = HEAD.replace("acme_npu.shims", "acme_npu.shims.deep") + GAP
    (site / "acme_npu" / "shims" / "gap_registry.yaml").write_text(text)
    assert _load(site).packages == ("base_patches", "acme_npu.shims.deep")


@pytest.mark.parametrize(
    ("asked", "said"),
    [("acmee", "did you mean 'acme'?"), ("zzzzzz", "there are acme")],
)
def test_one_that_nobody_brings(asked: str, said: str, site: Path) -> None:
    install(site)
    registry = _load(site, namespaces=[asked])
    (reason,) = _reasons(registry)
    assert reason.startswith("ASCEND_SHIMS_REGISTRIES names it")
    assert reason.endswith(said)


def test_the_bases_own_mistakes_are_raised(site: Path) -> None:
    install(site)
    (site / "base.yaml").write_text("")
    with pytest.raises(RegistryError, match="is empty"):
        _load(site)
