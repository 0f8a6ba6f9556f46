"""`shims show GAP`: everything that registry and processes know of one gap."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
import msgspec

from ..processes.client import ask_all
from ..registry.found import FoundRegistryError
from ..registry.joined import Joined, namespace_of
from ..states import State
from ..words import said
from ..words.folding import filled
from .completion import gap_ids
from .drifted import drifted
from .foreseen import foresee
from .here import assumed, own_plan, own_switches, print_json, registry_option
from .named import GapName, gap_named
from .upstream import again

if TYPE_CHECKING:
    from rich.text import Text

    from ..plan import PlannedGap, PlannedPatch
    from ..registry.model import Gap, Registry, Sign
    from ..report import RegistryReport
    from .render import ShimsConsole

__all__ = ["command"]


@click.command("show")
@click.argument("gap_id", metavar="GAP", type=GapName(), shell_complete=gap_ids)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, schema 1.")
@click.option(
    "--assume",
    multiple=True,
    metavar="PACKAGE=VERSION",
    callback=assumed,
    help="Plan for that version; nothing needs to be installed.",
)
@registry_option
def command(
    gap_id: str, as_json: bool, assume: dict[str, str], registry: Path | None
) -> int:
    """Everything about one gap: why, where, when it goes, and where it stands.

    \b
    Examples:
      shims show kv-cache
      shims show kv-cache --assume vllm=0.28.0  on another release
    """
    from ..process import the_process

    plan = own_plan(own_switches(assume, registry))
    ids = [gap.id for gap in plan.registry.gaps]
    if gap_id not in ids:
        _refuse_left_out(gap_id, plan.registry)
        _refuse_no_gap(gap_id, plan.registry)
        gap_named(gap_id, ids)
    report = the_process().report_on(plan)
    here = report.as_dict()
    here["gaps"] = [gap for gap in here["gaps"] if gap["id"] == gap_id]
    if not assume:
        foresee(here, plan)
    (mine,) = here["gaps"]
    page = {
        "schema": 1,
        "registry": msgspec.to_builtins(plan.registry[gap_id]),
        "brought_by": _brought_by(gap_id, report.registries),
        "here": mine,
        "probe": _probed(plan.registry[gap_id]),
        # Of an assumed release nothing is at hand that could be read.
        "drift": [] if assume else drifted(gap_id, registry),
        "processes": _elsewhere(gap_id),
    }
    if as_json:
        print_json(page)
    else:
        _print(plan[gap_id], page)
    return 1 if State(mine["state"]).is_fault else 0


def _refuse_left_out(gap_id: str, registry: Registry) -> None:
    """Raise `FoundRegistryError` where its whole registry cannot be used: no other
    gap is meant then."""
    unusable = registry.unusable if isinstance(registry, Joined) else ()
    for one in unusable:
        if one.namespace == namespace_of(gap_id):
            raise FoundRegistryError(str(one))


def _refuse_no_gap(name: str, registry: Registry) -> None:
    """Refuse a companion, or what is watched: say what it is, and what shows it."""
    from ..upstream.baselines import distribution_of
    from ..upstream.watched import UNPATCHED

    having = [
        gap.id
        for gap in registry.gaps
        if any(one.id == name for one in registry.companions_of(gap))
    ]
    if having:
        _refuse(
            f"{name} is no gap but a companion, which goes along with "
            f"{', '.join(having)}; see it with: shims show {having[0]}{again()}"
        )
    if name == UNPATCHED and registry.watch:
        packages = sorted({one.symbol.partition(".")[0] for one in registry.watch})
        release = f"{distribution_of(packages[0])}@latest"
        _refuse(
            f"{name} is no gap but what is relied on without a patch, in "
            f"{' and '.join(packages)}; see it with: shims drift --gap {name} "
            f"--against {release} --all{again()}"
        )


def _refuse(why: str) -> NoReturn:
    raise click.BadParameter(why, param_hint="'GAP'")


def _brought_by(
    gap_id: str, registries: Iterable[RegistryReport]
) -> dict[str, Any] | None:
    """Who brings its registry, and where that lies; None for a gap of the base."""
    namespace = namespace_of(gap_id)
    found = (
        one for one in registries if one.namespace == namespace and not one.problem
    )
    return next(map(msgspec.to_builtins, found), None)


def _elsewhere(gap_id: str) -> list[dict[str, Any]]:
    return [
        {**answer.report["process"], **gap}
        for answer in ask_all()
        if answer.report is not None
        for gap in answer.report["gaps"]
        if gap["id"] == gap_id
    ]


def _probed(gap: Gap) -> list[dict[str, Any]]:
    """What each sign of the removal probe says of the installed release."""
    packages = dict.fromkeys(sign.package for sign in gap.removal_probe)
    return [
        one
        for package in packages
        for one in _asked(
            package, [s for s in gap.removal_probe if s.package == package]
        )
    ]


def _asked(package: str, signs: list[Sign]) -> list[dict[str, Any]]:
    from ..upstream.probes import ask
    from ..upstream.sources import Sources, SourceUnavailable
    from ..upstream.tree import Tree

    try:
        tree = Tree(Sources(offline=True).open(f"installed:{package}"))
    except SourceUnavailable:
        return [
            {"says": s.says, "package": package, "seen": None, "told": []}
            for s in signs
        ]
    return [
        {
            "says": sign.says,
            "package": package,
            "release": tree.label,
            "seen": seen.truth,
            "told": [
                {"truth": t.truth, "words": t.words, "at": str(t.at) if t.at else None}
                for t in seen.told
            ],
        }
        for sign in signs
        for seen in (ask(sign, tree),)
    ]


def _print(planned: PlannedGap, page: dict[str, Any]) -> None:
    from .render import console, state_text

    gap, mine, brought = planned.gap, page["here"], page["brought_by"]
    out = console()
    out.print(f"[bold]{gap.id}[/bold]  {gap.title}")
    out.print(f"{gap.status} · {gap.kind}", style="dim")
    if brought:
        whose = f"{brought['distribution']}, {brought['path']}"
        out.print(whose, style="dim", markup=False, soft_wrap=True)
    out.print()
    _section(out, "Why", gap.why)
    _section(out, "Goes when", gap.remove_when)
    if gap.traced:
        _section(out, "Traced by torch.compile", gap.traced)
    if page["probe"]:
        _probe(out, gap, page["probe"])
    if page["drift"]:
        _drift(out, page["drift"])
    out.print("[bold]In a new process here[/bold]")
    out.print("  ", state_text(mine["state"]), f"  {mine['reason']}\n", sep="")
    patches = list(zip(mine["patches"], planned.all_patches, strict=True))
    _patches(out, "Patches", [one for one in patches if not one[1].companion])
    along = [one for one in patches if one[1].companion]
    _patches(out, "Patches of companions, which go along with it", along)
    if page["processes"]:
        out.print("[bold]Running processes[/bold]")
        for one in page["processes"]:
            where = f"  {one['pid']}  {one['role']}  "
            out.print(where, state_text(one["state"]), f"  {one['reason']}", sep="")
        out.print()
    needs = [*(["a device"] if gap.needs.device else []), *gap.needs.gaps]
    _list(out, "Needs", [*needs, *gap.needs.patched])
    _list(out, "Provided by, where installed", [p.symbol for p in gap.provided_by])
    _list(out, "Downstream closes it in", list(gap.downstream))
    _list(out, "References", list(gap.references))
    out.print(f"Switch it off: ASCEND_SHIMS_DISABLE={gap.id}", style="dim")


_SEEN = {
    "yes": ("seen", "cyan"),
    "no": ("not seen", "dim"),
    "unknown": ("cannot be told", "yellow"),
}


def _probe(out: ShimsConsole, gap: Gap, probe: list[dict[str, Any]]) -> None:
    landed = gap.status == "landed"
    out.print(
        f"[bold]{'Landed, as shows' if landed else 'No longer needed when'}[/bold]"
    )
    for sign in probe:
        out.print(f"  {sign['says']}", markup=False)
        if sign["seen"] is None:
            out.print(f"    {sign['package']} is not installed here", style="dim")
            continue
        words, style = _SEEN[sign["seen"]]
        out.print(f"    {words} in {sign['release']}", style=style)
        for told in sign["told"]:
            mark = {"yes": "+", "no": "-", "unknown": "?"}[told["truth"]]
            _indented(out, f"{mark} {told['words']}", 4, style="dim")
            if told["at"]:
                _indented(out, told["at"], 6, style="dim")
    out.print()


def _drift(out: ShimsConsole, rows: list[dict[str, Any]]) -> None:
    out.print("[bold]Drift[/bold]")
    for row in rows:
        if row["problem"]:
            out.print(f"  {row['problem']}", style="dim", markup=False)
            continue
        counted = ", ".join(f"{n} {kind}" for kind, n in row["verdicts"].items())
        out.print(f"  {counted}", markup=False)
        out.print(
            f"    {row['release']} against {row['baseline']}", style="dim", markup=False
        )
        for sentence in row["says"]:
            _indented(out, sentence, 4)
    out.print()


def _section(out: ShimsConsole, title: str, text: str) -> None:
    out.print(f"[bold]{title}[/bold]")
    words = said(" ".join(text.split()))
    if out.folds:
        words = "\n".join(filled(words, min(out.width, 100) - 2))
    out.print(textwrap.indent(words, "  ") + "\n", markup=False)


def _list(out: ShimsConsole, title: str, lines: list[str]) -> None:
    if not lines:
        return
    out.print(f"[bold]{title}[/bold]")
    for line in lines:
        _indented(out, line, 2)
    out.print()


def _indented(
    out: ShimsConsole,
    text: str,
    columns: int,
    *,
    style: str = "",
    state: Text | None = None,
) -> None:
    """A line whose further lines, if it is too long, stand a little behind it. A name
    that fits none is not broken: it is copied as a whole."""
    from rich.text import Text

    words = said(text)
    parts = filled(words, max(20, out.width - columns - 2)) if out.folds else [words]
    for number, part in enumerate(parts, start=1):
        indent = " " * (columns if number == 1 else columns + 2)
        line = Text.assemble(indent, (part, style))
        if state is not None and number == len(parts):
            beside = Text.assemble(line, "  ", state)
            if out.folds and beside.cell_len > out.width:
                out.print(line, soft_wrap=True)
                beside = Text.assemble(" " * (columns + 2), state)
            line = beside
        out.print(line, soft_wrap=True)


def _patches(
    out: ShimsConsole, title: str, patches: list[tuple[dict[str, Any], PlannedPatch]]
) -> None:
    if not patches:
        return
    out.print(f"[bold]{title}[/bold]")
    for patch, planned in patches:
        _patch(out, patch, planned)
    out.print()


def _patch(out: ShimsConsole, patch: dict[str, Any], planned: PlannedPatch) -> None:
    from .render import state_text

    spelled = planned.patch
    _indented(out, patch["target"], 2)
    ranges = ", ".join(f"{p} {r}" for p, r in spelled.versions.items())
    parts = [
        f"{patch['kind']} with {patch['replacement']}",
        f", of {planned.companion.id}" if planned.companion else "",
        ", this binding only" if spelled.scope == "binding" else "",
        f" on {ranges}" if ranges else "",
    ]
    # Each by itself: in another language they are sentences of their own.
    text = "".join(said(part) if part else "" for part in parts)
    _indented(out, text, 4, state=state_text(patch["state"]))
    if len(spelled.candidates) > 1 and patch["target"] in spelled.candidates:
        candidates = f"candidates: {', '.join(spelled.candidates)}"
        _indented(out, candidates, 4, style="dim")
    relied: dict[str, dict[str, list[str]]] = {}
    for reliance in spelled.relies_on:
        module, _, name = reliance.symbol.partition(":")
        relied.setdefault(module, {}).setdefault(reliance.how, []).append(name)
    for module, names_by_how in relied.items():
        _indented(out, f"relies on {module}", 4, style="dim")
        for how, names in names_by_how.items():
            _indented(out, f"{how}: {', '.join(filter(None, names))}", 6, style="dim")
