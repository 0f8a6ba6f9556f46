"""What the default guard looks for and where it reports, as frozen values.

Settings come from a file, from the environment, or from both:

    ASCEND_SHIMS_GUARD=/etc/guard.yaml              what to look for
    ASCEND_SHIMS_GUARD_DETECTORS=nonfinite-logits   more, with default settings
    ASCEND_SHIMS_GUARD_REPORT=/var/log/guard.jsonl  where to, over the file's path

The file is YAML or JSON:

    detectors:
      nonfinite-logits: {action: stop}
      repeated-tokens: {repeats: 16, longest_period: 4}
    report: {path: /var/log/guard.jsonl, max_bytes: 1000000}
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import yaml

from ..errors import ConfigurationError

__all__ = [
    "DETECTORS",
    "Action",
    "DetectorSettings",
    "Detectors",
    "ForbiddenText",
    "GuardConfigurationError",
    "LowAcceptance",
    "NonfiniteLogits",
    "RepeatedTokens",
    "ReportSettings",
    "Settings",
    "named_settings",
    "parse_settings",
    "read_settings",
]

Action = Literal["report", "stop"]
_Positive = Annotated[int, msgspec.Meta(ge=1)]
_Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]


class GuardConfigurationError(ConfigurationError):
    """The guard's settings cannot be used."""


class DetectorSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What every detector has."""

    action: Action = "report"
    """`stop`: all ranks also raise `GuardStopped` before the same later step."""


class NonfiniteLogits(DetectorSettings, frozen=True):
    """NaN or infinity among the logits."""

    allow_negative_infinity: bool = False
    """For models that mask tokens with minus infinity themselves."""


class RepeatedTokens(DetectorSettings, frozen=True):
    """A request repeats one group of tokens again and again."""

    repeats: Annotated[int, msgspec.Meta(ge=2)] = 32
    """How often the group has to occur in a row."""
    longest_period: Annotated[int, msgspec.Meta(ge=1, le=64)] = 4
    """The longest group, in tokens."""


class LowAcceptance(DetectorSettings, frozen=True):
    """Verification turns down nearly all draft tokens of a request."""

    minimum: _Share = 0.1
    """The share of draft tokens below which it is reported."""
    window: _Positive = 256
    """Draft tokens that are judged together."""


class ForbiddenText(DetectorSettings, frozen=True, kw_only=True):
    """Output text matches a pattern. Needs the model's tokenizer."""

    patterns: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    """Regular expressions."""
    window: _Positive = 64
    """How many of the latest tokens are looked at together."""

    def __post_init__(self) -> None:
        for pattern in self.patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"pattern {pattern!r}: {error}") from None


class Detectors(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"
):
    """The detectors that are on."""

    nonfinite_logits: NonfiniteLogits | None = None
    repeated_tokens: RepeatedTokens | None = None
    low_acceptance: LowAcceptance | None = None
    forbidden_text: ForbiddenText | None = None

    def chosen(self) -> dict[str, DetectorSettings]:
        """Settings by detector name."""
        return {
            field.encode_name: settings
            for field in msgspec.structs.fields(type(self))
            if (settings := getattr(self, field.name)) is not None
        }


DETECTORS = tuple(field.encode_name for field in msgspec.structs.fields(Detectors))
"""Names of all detectors."""


class ReportSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where findings go, and how much of them."""

    path: str | None = None
    """A file of JSON lines. None: the log of this process."""
    max_bytes: _Positive = 16 * 1024 * 1024
    max_lines: _Positive = 10_000
    prompt: bool = False
    """Whether a line may carry the request's prompt."""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything the default guard is told."""

    detectors: Detectors = Detectors()
    report: ReportSettings = ReportSettings()

    @property
    def acts(self) -> bool:
        """Whether any detector may stop the engine."""
        return any(d.action == "stop" for d in self.detectors.chosen().values())


def _unknown_detector(name: object) -> GuardConfigurationError:
    near = difflib.get_close_matches(str(name), DETECTORS, n=1)
    hint = f", did you mean `{near[0]}`?" if near else ""
    return GuardConfigurationError(
        f"unknown detector `{name}`{hint} There are: {', '.join(DETECTORS)}"
    )


def _spelled_out(detectors: Any) -> Any:
    """`[name, …]`, `name:` and `name: true` mean a detector's default settings."""
    if isinstance(detectors, list) and all(isinstance(n, str) for n in detectors):
        detectors = dict.fromkeys(detectors)
    if not isinstance(detectors, Mapping):
        return detectors
    for name in detectors:
        if name not in DETECTORS:
            raise _unknown_detector(name)
    return {
        name: {} if settings is None or settings is True else settings
        for name, settings in detectors.items()
        if settings is not False
    }


def parse_settings(data: object) -> Settings:
    """Settings from what a file holds. Raises `GuardConfigurationError`."""
    if data is None:
        return Settings()
    if isinstance(data, Mapping) and data.get("detectors") is not None:
        data = {**data, "detectors": _spelled_out(data["detectors"])}
    try:
        return msgspec.convert(data, Settings)
    except msgspec.ValidationError as error:
        raise GuardConfigurationError(str(error)) from None


def named_settings(names: str) -> Settings:
    """Settings that switch on the detectors of a comma list."""
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    return parse_settings({"detectors": wanted})


def read_settings(path: Path) -> Settings:
    """Settings of a YAML or JSON file. Raises `GuardConfigurationError`."""
    try:
        return parse_settings(yaml.safe_load(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise GuardConfigurationError(f"{path}: {error.strerror}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise GuardConfigurationError(f"{path}: {error}") from error
