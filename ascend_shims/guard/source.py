"""Where the default guard's settings come from, and when they changed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from .config import (
    Detectors,
    GuardConfigurationError,
    Settings,
    named_settings,
    read_settings,
)

__all__ = ["DETECTORS_VARIABLE", "GUARD_VARIABLE", "REPORT_VARIABLE", "SettingsSource"]

GUARD_VARIABLE = "ASCEND_SHIMS_GUARD"
"""Path of a settings file, or `package.module:Class` of another guard."""
DETECTORS_VARIABLE = "ASCEND_SHIMS_GUARD_DETECTORS"
REPORT_VARIABLE = "ASCEND_SHIMS_GUARD_REPORT"

_Stamp = tuple[int, int, int]


def _stamp(path: Path) -> _Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


class SettingsSource:
    """Settings that follow their file.

    A file that cannot be used leaves the settings before it in force; why is
    said once for every version of the file.
    """

    interval = 1.0
    """Seconds between two looks at the file."""

    def __init__(
        self,
        path: Path | None = None,
        *,
        detectors: str = "",
        report: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._report = report
        self._clock = clock
        self._stamp: _Stamp | None = None
        self._complaints: list[str] = []
        self._base = self._named(detectors)
        self.settings = self._with_environment(Settings())
        """What holds now."""
        self.follows = path is not None
        if path is not None:
            self._look(path, first=True)
        self._next_look = clock() + self.interval

    @classmethod
    def from_environment(
        cls, environ: Mapping[str, str] = os.environ
    ) -> SettingsSource:
        where = environ.get(GUARD_VARIABLE, "").strip()
        return cls(
            Path(where) if where else None,
            detectors=environ.get(DETECTORS_VARIABLE, ""),
            report=environ.get(REPORT_VARIABLE) or None,
        )

    def due(self) -> bool:
        """Whether it is time to look at the file again. Costs one clock reading."""
        return self._clock() >= self._next_look

    def refresh(self) -> bool:
        """Look at the file; True where the settings are other ones now."""
        self._next_look = self._clock() + self.interval
        if self._path is None:
            return False
        before = self.settings
        self._look(self._path, first=False)
        return self.settings != before

    def complaints(self) -> list[str]:
        """What could not be used, each once."""
        told, self._complaints = self._complaints, []
        return told

    def _named(self, detectors: str) -> Settings:
        try:
            return named_settings(detectors)
        except GuardConfigurationError as error:
            self._complaints.append(f"{DETECTORS_VARIABLE}: {error}")
            return Settings()

    def _look(self, path: Path, *, first: bool) -> None:
        stamp = _stamp(path)
        if stamp == self._stamp and not first:
            return
        self._stamp = stamp
        try:
            self.settings = self._with_environment(read_settings(path))
        except GuardConfigurationError as error:
            self._complaints.append(str(error))
        except Exception as error:  # noqa: BLE001 - whatever a file may hold
            self._complaints.append(f"{path}: {error!r}")

    def _with_environment(self, settings: Settings) -> Settings:
        named = msgspec.structs.asdict(self._base.detectors)
        own = msgspec.structs.asdict(settings.detectors)
        detectors = Detectors(**{name: own[name] or named[name] for name in own})
        report = settings.report
        if self._report is not None:
            report = msgspec.structs.replace(report, path=self._report)
        return Settings(detectors=detectors, report=report)
