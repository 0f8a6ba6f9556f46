"""What this process tells the ones that it starts: its switches, as variables."""

from __future__ import annotations

import os

from .switches import Switches

__all__ = ["Exports"]

_RAY = "VLLM_RAY_EXTRA_ENV_VAR_PREFIXES_TO_COPY"
"""vLLM's own variable: prefixes of the variables that its Ray workers are given."""


class Exports:
    """What we changed in `os.environ`, so that it can be put back exactly."""

    def __init__(self) -> None:
        self._found: dict[str, str | None] = {}
        self._said: dict[str, str | None] = {}

    def _yield(self) -> None:
        """Let go of what somebody else has set since: that is theirs."""
        for name, said in list(self._said.items()):
            if os.environ.get(name) != said:
                del self._said[name], self._found[name]

    def as_found(self) -> dict[str, str]:
        """The environment as it would be without us."""
        self._yield()
        environ = dict(os.environ)
        for name, value in self._found.items():
            _set(environ, name, value)
        return environ

    def clear(self) -> None:
        self._yield()
        for name, value in self._found.items():
            _set(os.environ, name, value)
        self._found.clear()
        self._said.clear()

    def say(self, base: Switches, switches: Switches) -> None:
        """Make the environment say `switches`, touching only what differs."""
        found = self.as_found()
        wanted = {name: found.get(name) for name in self._found}
        if switches != base:
            said = switches.as_environment()
            before = base.as_environment()
            for name in {*said, *before}:
                if said.get(name) != before.get(name):
                    wanted[name] = said.get(name)
        prefixes = [p for p in found.get(_RAY, "").split(",") if p.strip()]
        if "ASCEND_SHIMS" not in map(str.strip, prefixes):
            wanted[_RAY] = ",".join([*prefixes, "ASCEND_SHIMS"])
        for name, value in wanted.items():
            self._found.setdefault(name, found.get(name))
            try:
                _set(os.environ, name, value)
            finally:
                # Also where that was refused: what is there now is not somebody else's.
                self._said[name] = os.environ.get(name)


def _set(
    environ: dict[str, str] | os._Environ[str], name: str, value: str | None
) -> None:
    if value is None:
        environ.pop(name, None)
    else:
        environ[name] = value
