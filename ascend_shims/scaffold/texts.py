"""What a new gap's files say before anybody has written into them."""

from __future__ import annotations

import os
from pathlib import Path
from textwrap import fill, indent

from ..environment.versions import parse
from .project import Place
from .target import Target

__all__ = ["entry_text", "head_text", "module_text", "replacement_of", "test_text"]

_HEAD = """\
schema: 1
upstreams: [{upstream}]  # the packages that targets may lie in
package: {package}  # where the code is, one module a gap
gaps:
"""

_ENTRY = """\
- id: {gap}
  title: Say in a few words what {gap} is about
  status: open
  kind: workaround  # or adaptation: meant to stay
  why: >-
    What upstream does, and why that is not right here.
  remove_when: >-
    What has to happen upstream for this entry to go.
  needs: {{device: false}}  # without it: only where there is an NPU
{after}{versions}  patches:
    - target: {target}
      kind: wrap
      replacement: {replacement}
"""

_MODULE = '''\
"""`{gap}`: say here what upstream does, and what this changes.

It may be imported from within an import of upstream, so it imports nothing of upstream
at its top level.
"""

from __future__ import annotations

from typing import Any


{function}'''

_FUNCTION = '''\
{head}
    """Around `{target}`:
    what lies beneath, unchanged so far.{signature}
    """
{body}'''

_CALLS = {
    "plain": ("def", "    return {call}\n"),
    "async": ("async def", "    return await {call}\n"),
    "generator": ("def", "    return (yield from {call})\n"),
    "async generator": (
        "async def",
        "    async for one in {call}:\n        yield one\n",
    ),
}

_TEST = '''\
"""The gap `{gap}`: it applies, and upstream's own object is back afterwards."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

GAP = "{gap}"
PROJECT = Path(__file__).parents[{up}]
REGISTRY = PROJECT / "{registry}"


@pytest.fixture(autouse=True)
def _project_is_importable(monkeypatch):
    monkeypatch.syspath_prepend(str(PROJECT{root}))


def held():
    """What stands upstream in the place that the gap patches."""
    owner = import_module("{module}"){owner}
    return vars(owner).get("{name}")


def test_it_applies_and_goes(shims):
    pytest.importorskip("{upstream}")
    stock = held()
    report = shims.apply(only=[GAP], registry=REGISTRY, allow=["{package}"])
    assert report.state(GAP) == "applied", report[GAP].reason
    assert held() is not stock
    shims.revert()
    assert held() is stock
'''


def head_text(place: Place, target: Target) -> str:
    """The beginning of a registry."""
    return _HEAD.format(upstream=target.package, package=place.package)


def replacement_of(target: Target) -> str:
    """The name of the wrapper."""
    return f"around_{target.qualname.rpartition('.')[2].strip('_')}"


def entry_text(gap: str, target: Target, after: list[str], dash: int) -> str:
    """The entry, its dash in column `dash`."""
    # Of a build without a version nobody can say what comes after it.
    version = parse(target.version)
    versions = f'  versions: {{{target.package}: ">={version}"}}\n' if version else ""
    text = _ENTRY.format(
        gap=gap,
        target=target.name,
        replacement=replacement_of(target),
        versions=versions,
        after=f"  after: [{', '.join(after)}]\n" if after else "",
    )
    return indent(text, " " * dash)


def module_text(gap: str, target: Target) -> str:
    """The patch module: one wrapper, which passes everything through."""
    word, body = _CALLS[target.call]
    first = f"{target.first}: Any, /, " if target.first else ""
    passed = f"{target.first}, " if target.first else ""
    arguments = f"call: Any, {first}*args: Any, **kwargs: Any"
    head = f"{word} {replacement_of(target)}({arguments}) -> Any:"
    if len(head) > 88:
        head = f"{word} {replacement_of(target)}(\n    {arguments}\n) -> Any:"
    function = _FUNCTION.format(
        head=head,
        target=target.name,
        signature=_told(target.signature),
        body=body.format(call=f"call({passed}*args, **kwargs)"),
    )
    return _MODULE.format(gap=gap, function=function)


def _told(signature: str | None) -> str:
    """How upstream writes the function, as a paragraph of a docstring."""
    if signature is None:
        return ""
    safe = signature.replace("\\", "\\\\").replace('"', "'")
    lines = fill(safe, 80, break_long_words=False, break_on_hyphens=False)
    return f"\n\n    Upstream has:\n\n{indent(lines, ' ' * 8)}"


def test_text(gap: str, target: Target, place: Place) -> str:
    """The test, which uses the pytest plugin's fixture `shims`."""
    project = Path(os.path.commonpath([place.tests, place.registry, place.root]))
    owner, _, name = target.qualname.rpartition(".")
    root = place.root.relative_to(project).as_posix()
    return _TEST.format(
        gap=gap,
        up=len(place.tests.relative_to(project).parts),
        registry=place.registry.relative_to(project).as_posix(),
        root="" if root == "." else f' / "{root}"',
        module=target.module,
        owner=f".{owner}" if owner else "",
        name=name,
        upstream=target.package,
        package=place.package,
    )
