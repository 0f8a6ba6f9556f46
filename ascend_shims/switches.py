"""The user's choices: what is on, what is off, and who said so.

They come from environment variables, from arguments of `apply()`, or from both;
the two are combined so that neither can switch on what the other switched off.
They leave again as environment variables, which is how they reach the
processes that this one starts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, get_args

import msgspec

from .environment.device import DeviceRequest
from .environment.versions import parse
from .errors import ConfigurationError
from .spelling import FALSE, TRUE, misspelled
from .words.language import NAMES as LANGUAGES
from .words.language import VARIABLE as LANGUAGE
from .words.language import is_known

__all__ = [
    "ELSEWHERE",
    "NAMES",
    "OF_COMMANDS",
    "Choice",
    "SwitchError",
    "Switches",
    "meant",
    "namespaces",
    "read_switches",
]

Mode = Literal["auto", "on", "off"]
Prefer = Literal["plugin", "shims"]

_OURS = re.compile(r"ASCEND_SHIMS?(_.*)?")
"""What a variable is called that is one of ours, or was meant to be."""
_PREFIX = re.compile(r"ASCEND_SHIMS?_?")
_REGISTRY = "ASCEND_SHIMS_REGISTRY"
_REGISTRIES = "ASCEND_SHIMS_REGISTRIES"
_ALL_REGISTRIES, _NO_REGISTRY = "all", "none"

NAMES = {
    "ASCEND_SHIMS": "auto (default); on, 1, true or yes: also gaps that are off by "
    "default; off, 0, false or no: none",
    "ASCEND_SHIMS_ALLOW": "packages that another registry may take patches from",
    "ASCEND_SHIMS_ASSUME": "versions to assume, vllm=0.28.0,torch_npu=2.13.0",
    "ASCEND_SHIMS_DEVICE": "auto (default), npu, sim or none",
    "ASCEND_SHIMS_DISABLE": "gaps to leave off, separated by commas",
    "ASCEND_SHIMS_ONLY": "gaps to apply, all others off",
    "ASCEND_SHIMS_PREFER": "plugin (default) or shims, where both close a gap",
    "ASCEND_SHIMS_REGISTRIES": "installed plugins' registries, all (default) or none",
    "ASCEND_SHIMS_REGISTRY": "path of another registry",
    "ASCEND_SHIMS_STRICT": "1: a gap that is wanted but not applied is an error",
}
"""Every variable that steers a plan, with what it means."""

OF_COMMANDS = frozenset(
    {
        "ASCEND_SHIMS_ALLOW_HOSTS",
        "ASCEND_SHIMS_BROWSER",
        "ASCEND_SHIMS_CACHE",
        "ASCEND_SHIMS_ENTERED",
        "ASCEND_SHIMS_LANG",
        "ASCEND_SHIMS_REF",
        "ASCEND_SHIMS_SOAK",
        "ASCEND_SHIMS_TORCH_INDEX",
        "ASCEND_SHIMS_URL",
    }
)
"""Variables of commands, tools and tests, which no process of vLLM reads."""

ELSEWHERE = OF_COMMANDS | {
    "ASCEND_SHIMS_GUARD",
    "ASCEND_SHIMS_GUARD_DETECTORS",
    "ASCEND_SHIMS_GUARD_REPORT",
    "ASCEND_SHIMS_RANKS",
    "ASCEND_SHIMS_RANKS_PATIENCE",
    "ASCEND_SHIMS_SIM_CHECKS",
    "ASCEND_SHIMS_SIM_HAZARDS",
    "ASCEND_SHIMS_SIM_MEMORY",
    "ASCEND_SHIMS_SIM_QUICK",
    "ASCEND_SHIMS_SUPER_KERNEL",
}
"""Variables that do not steer a plan: also those that the guard, the rig, the gap
npu-graph and the comparison of ranks read themselves."""


class SwitchError(ConfigurationError):
    """A switch names something that does not exist, or has a value it cannot have."""


class Choice(msgspec.Struct, frozen=True):
    """One gap's switch and who set it."""

    on: bool | None
    """None: nobody chose, the registry's default holds."""
    said_by: str


class Switches(msgspec.Struct, frozen=True):
    """All choices that were made, as a value."""

    mode: Mode = "auto"
    only: frozenset[str] | None = None
    disable: frozenset[str] = frozenset()
    strict: bool = False
    registry: Path | None = None
    namespaces: frozenset[str] | None = None
    """Registries of installed plugins to take; None: all."""
    allow: frozenset[str] = frozenset()
    """Packages that a registry may take its patches from, besides ours."""
    device: DeviceRequest = "auto"
    prefer: Prefer = "plugin"
    assume: Mapping[str, str] = msgspec.field(default_factory=dict)
    said_by: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Who made a choice, by field, and by gap id for `disable`."""
    complaints: tuple[str, ...] = ()
    """What was written that cannot be understood; the defaults stand instead."""

    def choice(self, gap: str) -> Choice:
        """What was chosen for one gap."""
        if self.mode == "off":
            return Choice(False, self.said_by["mode"])
        off = _naming(gap, self.disable)
        if off is not None:
            return Choice(False, self.said_by[off])
        if self.only is not None:
            named = _naming(gap, self.only) is not None
            return Choice(named, self.said_by["only"])
        if self.mode == "on":
            return Choice(True, self.said_by["mode"])
        return Choice(None, "default")

    @property
    def registry_is_inherited(self) -> bool:
        """Whether a variable names the registry, and not the program itself."""
        return self.said_by.get("registry") == _REGISTRY

    def unknown(self, gaps: Iterable[str]) -> tuple[str, ...]:
        """A complaint for each gap that is named and is not one of `gaps`."""
        known = list(gaps)
        listed = f"; there are {', '.join(known)}"
        spaces = namespaces(known)
        named = [*sorted(self.disable), *sorted(self.only or ())]
        return tuple(
            f"{self.said_by.get(name, self.said_by.get('only'))} names the gap "
            f"{name!r}, which is not in the registry"
            f"{_meant(name, [*known, *sorted(spaces)]) or listed}"
            for name in named
            if name not in known and name not in spaces
        )

    def narrowed(
        self,
        *,
        only: Iterable[str] | None = None,
        disable: Iterable[str] = (),
        strict: bool | None = None,
        registry: Path | None = None,
        allow: Iterable[str] = (),
        said_by: str,
    ) -> Switches:
        """These switches with further ones on top. What is off stays off."""
        off = frozenset(disable)
        wanted = None if only is None else frozenset(only)
        who = dict(self.said_by)
        who.update(dict.fromkeys(off - self.disable, said_by))
        if registry is not None:
            who["registry"] = said_by
        if wanted is not None:
            who["only"] = said_by
        if wanted is not None and self.only is not None:
            wanted = _common(wanted, self.only)
        return msgspec.structs.replace(
            self,
            only=self.only if wanted is None else wanted,
            disable=self.disable | off,
            strict=self.strict if strict is None else strict,
            registry=registry or self.registry,
            allow=self.allow | frozenset(allow),
            said_by=who,
        )

    def widened(self, gaps: Iterable[str]) -> Switches:
        """These switches without the choice to have `gaps` off."""
        return msgspec.structs.replace(self, disable=self.disable - frozenset(gaps))

    def as_environment(self) -> dict[str, str]:
        """The variables that say the same as this value. Defaults are left out."""
        said = {
            "ASCEND_SHIMS": "" if self.mode == "auto" else self.mode,
            "ASCEND_SHIMS_DISABLE": ",".join(sorted(self.disable)),
            "ASCEND_SHIMS_STRICT": "1" if self.strict else "",
            _REGISTRY: str(self.registry or ""),
            _REGISTRIES: ""
            if self.namespaces is None
            else ",".join(sorted(self.namespaces)) or _NO_REGISTRY,
            "ASCEND_SHIMS_ALLOW": ",".join(sorted(self.allow)),
            "ASCEND_SHIMS_DEVICE": "" if self.device == "auto" else self.device,
            "ASCEND_SHIMS_PREFER": "" if self.prefer == "plugin" else self.prefer,
            "ASCEND_SHIMS_ASSUME": ",".join(
                f"{package}={version}" for package, version in self.assume.items()
            ),
        }
        if self.only is not None and not self.only:
            # An empty list reads as "not set", so "none" is said by the mode.
            said["ASCEND_SHIMS"] = "off"
        elif self.only is not None:
            said["ASCEND_SHIMS_ONLY"] = ",".join(sorted(self.only))
        return {name: value for name, value in said.items() if value}


_ALL = "/*"
"""Behind a namespace: all gaps of that registry."""


def _naming(gap: str, names: frozenset[str]) -> str | None:
    """The one of `names` that means a gap: itself, or its namespace with all in it."""
    if gap in names:
        return gap
    namespace = gap.rpartition("/")[0]
    every = f"{namespace}{_ALL}"
    return every if namespace and every in names else None


def namespaces(gaps: Iterable[str]) -> frozenset[str]:
    """What stands for all gaps of a namespace, for each of those that there are."""
    return frozenset(f"{gap.rpartition('/')[0]}{_ALL}" for gap in gaps if "/" in gap)


def meant(names: Iterable[str], gaps: Iterable[str]) -> frozenset[str]:
    """Of `gaps` those that `names` mean, each by itself or by its namespace."""
    named = frozenset(names)
    return frozenset(gap for gap in gaps if _naming(gap, named))


def _common(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    """What both lists name, each by gaps or by namespaces."""
    here = {name for name in one if _naming(name, other)}
    return frozenset(here | {name for name in other if _naming(name, one)})


_CLOSE = 0.6
"""How much of two short words is alike where one is mistaken for the other."""


def _near(word: str, words: Iterable[str], cutoff: float) -> str | None:
    import difflib

    return next(iter(difflib.get_close_matches(word, list(words), 1, cutoff)), None)


def _asked(near: str | None) -> str:
    return f"; did you mean {near!r}?" if near else ""


def _near_value(value: str, words: Iterable[str]) -> str | None:
    """The one of `words` that a value begins with, or is close to."""
    listed = list(words)
    begun = (word for word in listed if len(word) > 2 and value.startswith(word))
    return next(begun, None) or _near(value, listed, _CLOSE)


def _near_name(name: str, names: Iterable[str]) -> str | None:
    """The one of `names` that is close: what all begin with makes none alike."""
    tails = {_PREFIX.sub("", one): one for one in names}
    near = _near(_PREFIX.sub("", name), tails, _CLOSE)
    return None if near is None else tails[near]


def _meant(name: str, known: list[str]) -> str:
    """What was meant by the name of a gap that is none, as the end of a complaint."""
    if name in ("*", "all"):
        return "; ASCEND_SHIMS=off leaves all off, and without a list all are meant"
    parts = name.split()
    if len(parts) > 1 and set(parts) <= set(known):
        return f"; separate gaps by commas: {','.join(parts)}"
    return _asked(_near(name, known, 0.5))


def _list(value: str) -> frozenset[str]:
    return frozenset(part.strip() for part in value.split(",") if part.strip())


class _Reader:
    """Reads one variable at a time and keeps what it could not understand."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.complaints: list[str] = []

    def text(self, name: str) -> str:
        return self._environ.get(name, "").strip()

    def word(self, name: str, words: tuple[str, ...]) -> str:
        """One of `words`, or the first of them where nothing usable is said."""
        value = self.text(name).lower()
        if not value or value in words:
            return value or words[0]
        self.complain(name, value, words)
        return words[0]

    def complain(self, name: str, value: str, words: Iterable[str]) -> None:
        listed = ", ".join(words)
        self.complaints.append(
            f"{name}={value} is not understood{_asked(_near_value(value, words))} "
            f"(one of {listed}); the default holds"
        )

    def truth(self, name: str, default: str, also: tuple[str, ...]) -> str:
        """`on`, `off`, or one of `also`; `default` where nothing usable is said."""
        value = self.text(name).lower()
        if value in TRUE:
            return "on"
        if value in FALSE:
            return "off"
        if value and value not in also:
            self.complain(name, value, (*TRUE, *FALSE, *also))
            return default
        return value or default


def _versions(reader: _Reader) -> dict[str, str]:
    versions = {}
    for part in sorted(_list(reader.text("ASCEND_SHIMS_ASSUME"))):
        package, _, version = (piece.strip() for piece in part.partition("="))
        if not package.isidentifier() or not parse(version.lstrip("=")):
            reader.complaints.append(
                f"ASCEND_SHIMS_ASSUME: {part!r} is not a package and a version; "
                "write it like vllm=0.28.0"
            )
            continue
        versions[package] = version.lstrip("=")
    return versions


def _strangers(environ: Mapping[str, str]) -> list[str]:
    known = [*NAMES, *sorted(ELSEWHERE)]
    return [
        f"{name} is not a variable of ascend-shims{_asked(_near_name(name, known))}"
        for name in sorted(environ)
        if _OURS.fullmatch(name) and name not in known
    ]


def read_switches(environ: Mapping[str, str]) -> Switches:
    """The choices that `environ` expresses.

    Never raises: what cannot be understood is in `complaints`, and the default
    stands in its place. An empty value is the same as none.
    """
    reader = _Reader(environ)
    mode = reader.truth("ASCEND_SHIMS", "auto", ("auto",))
    disable = _list(reader.text("ASCEND_SHIMS_DISABLE"))
    only = _list(reader.text("ASCEND_SHIMS_ONLY")) or None
    said_by = {
        "mode": f"ASCEND_SHIMS={mode}",
        "only": "ASCEND_SHIMS_ONLY",
        **dict.fromkeys(disable, "ASCEND_SHIMS_DISABLE"),
    }
    listed = _list(reader.text(_REGISTRIES))
    namespaces = None if listed <= {_ALL_REGISTRIES} else listed
    if listed == {_NO_REGISTRY}:
        namespaces = frozenset()
    registry = reader.text(_REGISTRY)
    if registry:
        said_by["registry"] = _REGISTRY
    spoken = reader.text(LANGUAGE)
    if spoken and not is_known(spoken):
        reader.complain(LANGUAGE, spoken, LANGUAGES)
    return Switches(
        mode=mode,  # type: ignore[arg-type]
        only=only,
        disable=disable,
        strict=reader.truth("ASCEND_SHIMS_STRICT", "off", ()) == "on",
        # From here on a change of directory does not matter.
        registry=Path(registry).absolute() if registry else None,
        namespaces=namespaces,
        allow=_list(reader.text("ASCEND_SHIMS_ALLOW")),
        device=reader.word("ASCEND_SHIMS_DEVICE", get_args(DeviceRequest)),  # type: ignore[arg-type]
        prefer=reader.word("ASCEND_SHIMS_PREFER", get_args(Prefer)),  # type: ignore[arg-type]
        assume=_versions(reader),
        said_by=said_by,
        complaints=(*_strangers(environ), *reader.complaints, *misspelled(environ)),
    )
