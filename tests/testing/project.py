"""A downstream project with an upstream, gaps, and tests of its own."""

from __future__ import annotations

import os
from textwrap import dedent

import pytest

__all__ = ["Project"]

GAP = """
  - id: {id}
    title: A gap of a test
    status: {status}
    kind: workaround
    why: a test
    remove_when: it has passed
    needs: {{device: {device}, gaps: [{needs}]}}
    versions: {{madeup: "{versions}"}}
"""
PATCH = '    patches: [{{target: "{target}", kind: {kind}, replacement: {code}}}]\n'

CORE = """
    LIMIT = 3

    def answer(word):
        return word

    def question(word):
        return answer(word) + "?"

    class Speaker:
        def say(self, word):
            return answer(word)

    class Heir(Speaker):
        pass

    filled = None

    def two():
        return 2

    def fill():
        global filled
        filled = two
"""
LATE = """
    from {name}.core import answer

    def helper():
        return answer("late")
"""
LAZY = """
    from {name} import core

    def extra():
        return 1

    core.extra = extra
"""
LOUD = """
    def shout(call, word):
        return call(word).upper()

    def nothing(call):
        return call()
"""


class Project:
    """Files of a project, and pytest run in it."""

    def __init__(
        self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.pytester = pytester
        self.root = pytester.path
        self._gaps = "schema: 1\nupstreams: [madeup]\npackage: gaps\ngaps:\n"
        for name in [n for n in os.environ if n.startswith(("ASCEND_", "VLLM_"))]:
            monkeypatch.delenv(name)
        # The entry point may or may not be known to this environment: it is named.
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        monkeypatch.setenv("ASCEND_SHIMS_ALLOW", "gaps")
        monkeypatch.setenv("ASCEND_SHIMS_ALLOW", "gaps")
        self.upstream("madeup")
        self.write("gaps/__init__.py", "")
        self.gap("loud", "madeup.core:answer", "shout")
        self.ini()

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))

    def upstream(self, name: str) -> None:
        """Another upstream package of that name."""
        self.write(f"{name}/__init__.py", "__version__ = '1.2.0'\n")
        self.write(f"{name}/core.py", CORE)
        self.write(f"{name}/user.py", f"from {name}.core import answer\n")
        self.write(f"{name}/late.py", LATE.format(name=name))
        self.write(f"{name}/lazy.py", LAZY.format(name=name))

    def registry(self, file: str, upstreams: list[str], target: str) -> None:
        """A registry of one gap."""
        head = f"schema: 1\nupstreams: [{', '.join(upstreams)}]\npackage: gaps\ngaps:\n"
        gap = GAP.format(
            id="loud", status="open", device="false", needs="", versions=""
        )
        gap = gap.replace('{madeup: ""}', "{}")
        self.write(
            file, head + gap + PATCH.format(target=target, kind="wrap", code="shout")
        )

    def gap(
        self,
        gap: str,
        target: str | None,
        code: str = "",
        *,
        kind: str = "wrap",
        source: str = LOUD,
        status: str = "open",
        device: str = "false",
        needs: str = "",
        versions: str = ">=1",
    ) -> None:
        """Add a gap to the registry; without a target, one without a patch."""
        self._gaps += GAP.format(
            id=gap, status=status, device=device, needs=needs, versions=versions
        )
        if target is None:
            self._gaps += "    unpatched: a test without one\n"
        else:
            self._gaps += PATCH.format(target=target, kind=kind, code=code)
            self.write(f"gaps/{gap.replace('-', '_')}.py", source)
        self.write("gaps.yaml", self._gaps)

    def ini(self, *lines: str) -> None:
        said = "\n".join(["[pytest]", "pythonpath = .", *lines])
        (self.root / "pytest.ini").write_text(f"{said}\n")

    def run(self, *arguments: str) -> pytest.RunResult:
        plugin = ("-p", "ascend_shims.testing.plugin", "-p", "no:cacheprovider")
        return self.pytester.runpytest_subprocess(*plugin, *arguments)

    def outcomes(self, *arguments: str) -> dict[str, int]:
        return self.run(*arguments).parseoutcomes()
