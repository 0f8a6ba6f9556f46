"""Installed plugins with registries of their own, as files in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

__all__ = ["GAP", "HEAD", "install"]

HEAD = "schema: 1\nupstreams: [madeup]\npackage: acme_npu.shims\ngaps:\n"
GAP = """\
  - id: fast-rope
    title: Ropes are faster
    status: open
    kind: workaround
    why: They are slow.
    remove_when: They are fast.
    needs: {device: false}
    patches:
      - {target: "madeup.core:answer", kind: wrap, replacement: exclaim}
"""
_CODE = """\
def exclaim(call, word):
    return call(word) + '!'
"""


def install(
    site: Path,
    namespace: str = "acme",
    *,
    package: str = "acme_npu.shims",
    text: str | None = HEAD + GAP,
    modules: Mapping[str, str] = {"fast_rope": _CODE},
    distribution: str = "acme_npu-1.0",
    entry: str | None = None,
) -> Path:
    """Put a plugin there; the result is its registry's path.

    Importing its top-level package is an error: nothing has to.
    """
    folder = site.joinpath(*package.split("."))
    folder.mkdir(parents=True, exist_ok=True)
    top = site / package.partition(".")[0] / "__init__.py"
    top.touch()
    (folder / "__init__.py").touch()
    for name, code in modules.items():
        (folder / f"{name}.py").write_text(dedent(code))
    info = site / f"{distribution}.dist-info"
    info.mkdir(exist_ok=True)
    name, _, version = distribution.partition("-")
    said = (
        f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n"
    )
    (info / "METADATA").write_text(said)
    line = f"{namespace} = {entry or package}"
    (info / "entry_points.txt").write_text(f"[ascend_shims.registries]\n{line}\n")
    registry = folder / "gap_registry.yaml"
    if text is not None:
        registry.write_text(text)
    return registry
