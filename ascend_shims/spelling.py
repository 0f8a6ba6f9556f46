"""What the value of a variable looks like, for those that a plan does not read.

Each is read by somebody who takes the default where he does not understand it, in a
process that nobody looks at. So it is looked at here, where a person asks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["DETECTORS", "FALSE", "TRUE", "misspelled"]

TRUE = ("1", "true", "yes", "on")
FALSE = ("0", "false", "no", "off")
_SWITCH = (*TRUE, *FALSE)

DETECTORS = ("nonfinite-logits", "repeated-tokens", "low-acceptance")
"""What the guard has that needs no settings. It is not asked for them: that would load
what no other process needs."""

_DETECTOR = "|".join(DETECTORS)
_LISTS = {
    "ASCEND_SHIMS_ALLOW": "package",
    "ASCEND_SHIMS_ASSUME": "version",
    "ASCEND_SHIMS_DISABLE": "gap",
    "ASCEND_SHIMS_GUARD_DETECTORS": "detector",
    "ASCEND_SHIMS_ONLY": "gap",
    "ASCEND_SHIMS_REGISTRIES": "registry",
}
"""What is listed by each variable that holds a list."""

_FORMS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        (
            "ASCEND_SHIMS_RANKS",
            "ASCEND_SHIMS_SIM_CHECKS",
            "ASCEND_SHIMS_SIM_HAZARDS",
            "ASCEND_SHIMS_SIM_QUICK",
            "ASCEND_SHIMS_SUPER_KERNEL",
        ),
        ("|".join(_SWITCH), f"one of {', '.join(_SWITCH)}"),
    ),
    "ASCEND_SHIMS_ALLOW": (
        r"[\w.]+(\s*,\s*[\w.]+)*,?",
        "packages, separated by commas",
    ),
    # A word alone would be a folder of that name, wherever one happens to be.
    "ASCEND_SHIMS_CACHE": (r"off|.*[/~.].*", "off, or a path such as ./cache"),
    "ASCEND_SHIMS_GUARD": (
        r"[\w.]+:[\w.]+|.*[/.].*",
        "a settings file, or package.module:Class",
    ),
    "ASCEND_SHIMS_GUARD_DETECTORS": (
        rf"\s*({_DETECTOR})(\s*,\s*({_DETECTOR}))*\s*,?",
        f"a list of {', '.join(DETECTORS)}",
    ),
    "ASCEND_SHIMS_RANKS_PATIENCE": (r"\d+(\.\d*)?|\.\d+", "a number of seconds"),
    "ASCEND_SHIMS_SIM_MEMORY": (
        r"\d+(\.\d+)?\s*[kmgt]?(i?b)?",
        "a number of bytes, or one with a unit such as 512MiB",
    ),
}
"""What a value looks like, in small letters, and how that is said."""


def misspelled(environ: Mapping[str, str]) -> list[str]:
    """Complaints about values that nobody will understand who reads them."""
    given = {
        name: value
        for name in sorted({*_FORMS, *_LISTS})
        if (value := environ.get(name, "").strip())
    }
    empty = [name for name in given if name in _LISTS and not given[name].strip(", ")]
    return [
        *(
            f"{name}={given[name]} names no {_LISTS[name]}; the default holds"
            for name in empty
        ),
        *(
            f"{name}={value} is not understood ({_FORMS[name][1]}); the default holds"
            for name, value in given.items()
            if name in _FORMS
            and name not in empty
            and not re.fullmatch(_FORMS[name][0], value.lower(), re.DOTALL)
        ),
    ]
