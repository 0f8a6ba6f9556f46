"""The processes of this machine that run vLLM, and whether they carry shims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ..switches import read_switches
from .finding import Finding, notice, ok, problem

__all__ = ["Told", "VllmProcess", "WatchSeen", "judge_processes"]

_AREA = "processes"
_YOUNG = 60
"""Seconds in which a process may not have come to its plugins yet."""
_LISTED = 6
"""Processes that one sentence names."""
_VARIABLES = 3
"""Variables that it names."""


@dataclass(frozen=True, slots=True)
class VllmProcess:
    """A process that runs vLLM, as the kernel shows it."""

    pid: int
    title: str
    """Without arguments, which may hold secrets."""
    age: float
    is_own: bool = True
    """Whether this user may ask it."""
    same_network: bool = True
    """Whether it is where it could be heard: the same network namespace."""
    switches: Mapping[str, str] | None = None
    """Variables of ours in its environment, and VLLM_PLUGINS; None if unreadable."""
    site: str | None = None
    """The folder that its vLLM is loaded from, where that can be told."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a process with shims said of itself."""

    pid: int
    role: str = "?"
    plan: str | None = None
    faults: tuple[str, ...] = ()
    problem: str = ""
    switches: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class WatchSeen:
    """All of them, and what this environment would give."""

    vllm: tuple[VllmProcess, ...] = ()
    told: tuple[Told, ...] = ()
    plan: str | None = None
    """None where there is none, since the registry cannot be used."""
    wants: bool = False
    """Whether this environment would patch anything."""
    switches: Mapping[str, str] = field(default_factory=dict)
    """This process's own, as in `VllmProcess`."""
    site: str | None = None


def judge_processes(seen: WatchSeen) -> Iterator[Finding]:
    told = {one.pid for one in seen.told}
    silent = [one for one in seen.vllm if one.pid not in told]
    if not seen.told and not silent:
        yield ok(_AREA, "no-process", "no running process carries shims or runs vLLM")
        return
    yield from _answers(seen)
    grouped: dict[tuple[str, str, str, str], list[VllmProcess]] = {}
    for one in silent:
        grouped.setdefault(_judgement(seen, one), []).append(one)
    for (verdict, code, why, fix), processes in grouped.items():
        said = f"{_listed((p.pid, p.title) for p in processes)}: {why}"
        if verdict == "ok":
            yield ok(_AREA, code, said)
        else:
            make = problem if verdict == "problem" else notice
            yield make(_AREA, code, said, fix)


def _judgement(seen: WatchSeen, one: VllmProcess) -> tuple[str, str, str, str]:
    """Verdict, code, what is so, and what to do."""
    if not one.is_own:
        return (
            "notice",
            "process-not-ours",
            "another user runs vLLM, who alone can ask whether it carries shims",
            "run shims doctor as that user",
        )
    if not one.same_network:
        return (
            "notice",
            "process-elsewhere",
            "runs vLLM in another network namespace, where it cannot be asked",
            "run shims doctor in that container",
        )
    if not seen.wants:
        said = "runs vLLM with nothing of ours, as this environment would have it"
        return "ok", "process-stock", said, ""
    if one.age < _YOUNG:
        return (
            "notice",
            "process-young",
            "runs vLLM without shims, but has only just started",
            "ask again in a minute: shims doctor",
        )
    why = _why_stock(seen, one)
    if why:
        said, fix = why
        return (
            "notice",
            "process-without-shims",
            f"runs vLLM without shims: {said}",
            fix,
        )
    return (
        "problem",
        "process-without-shims",
        "runs vLLM without shims, though this environment would apply some",
        "mend what is named above and start it anew, or start it with: shims run -- "
        "COMMAND",
    )


def _why_stock(seen: WatchSeen, one: VllmProcess) -> tuple[str, str] | None:
    """What of a process explains that it carries none, and what to do about it."""
    if one.site and seen.site and one.site != seen.site:
        return (
            f"its vLLM is that of {one.site}",
            "ask the interpreter that has it: PYTHON -m ascend_shims doctor",
        )
    if one.switches is None:
        return None
    plugins = one.switches.get("VLLM_PLUGINS")
    if plugins is not None and "ascend_shims" not in plugins.split(","):
        return f"its VLLM_PLUGINS is {plugins!r}", "start it anew without VLLM_PLUGINS"
    changed = _different(seen.switches, one.switches)
    if changed:
        return f"its environment has {changed}", "start it anew from this environment"
    return None


def _different(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """How the switches of another environment differ, `NAME=value, no NAME`.

    What says nothing of a plan does not count: a language, a name or value that is not
    understood, an empty one.
    """
    ours, theirs = (read_switches(one).as_environment() for one in (ours, theirs))
    names = sorted({*ours, *theirs})
    said = [
        f"{name}={theirs[name]}" if name in theirs else f"no {name}"
        for name in names
        if ours.get(name) != theirs.get(name)
    ]
    rest = len(said) - _VARIABLES
    return ", ".join([*said[:_VARIABLES], *([f"{rest} more"] if rest > 0 else [])])


def _answers(seen: WatchSeen) -> Iterator[Finding]:
    for one in seen.told:
        if one.problem:
            yield notice(
                _AREA,
                "process-silent",
                f"PID {one.pid} carries shims and does not tell: {one.problem}",
                "ask again: shims status",
            )
        if one.faults:
            yield problem(
                _AREA,
                "process-fault",
                f"PID {one.pid} ({one.role}) lacks what was wanted: "
                f"{', '.join(one.faults)}",
                f"shims show {one.faults[0].partition(' ')[0]}",
            )
        if one.plan is not None and seen.plan not in (None, one.plan):
            yield _other_plan(seen, one)
    same = [o for o in seen.told if o.plan is not None and o.plan == seen.plan]
    if same:
        listed = _listed((one.pid, one.role) for one in same)
        yield ok(_AREA, "process-same-plan", f"{listed}: the plan of this environment")


def _other_plan(seen: WatchSeen, one: Told) -> Finding:
    said = (
        f"PID {one.pid} ({one.role}) runs plan {one.plan}, and this environment gives "
        f"{seen.plan}"
    )
    if one.switches is None:
        return notice(_AREA, "process-other-plan", said, "compare them: shims status")
    changed = _different(seen.switches, one.switches)
    if changed:
        return notice(
            _AREA,
            "process-other-plan",
            f"{said}; it was started with {changed}",
            "nothing, if that is meant; else start it anew from this environment",
        )
    # It may have decided for itself, or be of another toolkit, registry or vLLM.
    return notice(
        _AREA,
        "process-other-plan",
        f"{said}, though both have the same switches: it decided for itself "
        "(apply(…)), or is of another installation",
        "compare them: shims status",
    )


def _listed(processes: Iterable[tuple[int, str]]) -> str:
    """`PID 7 (worker 0), 8 (worker 1) and 4 more`."""
    every = [f"{pid} ({title})" for pid, title in processes]
    shown, rest = every[:_LISTED], len(every) - _LISTED
    more = f" and {rest} more" if rest > 0 else ""
    return f"PID {', '.join(shown)}{more}"
