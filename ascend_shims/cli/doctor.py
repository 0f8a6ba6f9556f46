"""`shims doctor`: is everything here as shims need it, and what to do where not."""

from __future__ import annotations

import contextlib
import io
import json
import os
import platform
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import __file__ as _package_file
from .. import __version__
from ..words import is_english, said
from ..words.counting import counted
from ..words.folding import ends
from .here import print_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from ..doctor.diagnosis import Diagnosis
    from ..doctor.finding import Finding
    from ..doctor.redaction import Redaction

__all__ = ["command"]

_COMMAND = re.compile(r"\b(export|unset|source|delete|shims) (?=\S)")
_NO_BREAK = "\ue000"
"""Stands for a space at which no line ends: Python takes the real one for any other."""
_STYLES = {"problem": "bold red", "notice": "yellow", "ok": "green"}


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, schema 1.")
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write FILE, a .tar.gz for a ticket, without secrets.",
)
@click.option("--force", is_flag=True, help="Replace FILE where it is there already.")
def command(as_json: bool, report: Path | None, force: bool) -> int:
    """Is everything here as shims need it, and what to do where not.

    Looks at this interpreter and this machine: our plugin, vLLM, torch, torch_npu,
    CANN, the device, switches, running processes, Ray. Neither vLLM nor torch is
    imported here; where torch_npu is installed, another process tries it.

    Exit 1 if there is a problem; notices are no problems.

    \b
    Examples:
      shims doctor                        problems first, each with its fix
      shims doctor --report shims.tar.gz  and a bundle for a ticket
    """
    if force and report is None:
        raise click.UsageError(
            "--force is for --report FILE: name FILE, or leave out --force"
        )
    if report is not None:
        from ..doctor.bundle import check_target

        check_target(report, force=force)
    diagnosis = _diagnosis()
    written = _write(diagnosis, report, force=force) if report else None
    if as_json:
        print_json(diagnosis.as_dict())
    else:
        _print(diagnosis, written)
    if as_json and written:
        click.echo(written, err=True)
    return 0 if diagnosis.ok else 1


def _diagnosis() -> Diagnosis:
    from ..doctor.diagnosis import diagnose
    from ..doctor.looking.everything import Given, look
    from ..errors import ConfigurationError
    from ..process import the_process
    from ..switches import read_switches

    # What is wrong with the environment is a finding here, and no misuse.
    switches = read_switches(os.environ)
    errors: tuple[str, ...] = ()
    plan = None
    try:
        plan = the_process().plan(switches)
    except ConfigurationError as error:
        errors = tuple(str(error).splitlines())
    given = Given(
        dict(os.environ), switches, plan, errors, __version__, str(_package_file)
    )
    return diagnose(look(given))


def _print(diagnosis: Diagnosis, written: str | None) -> None:
    from .render import console

    out = console()
    findings = diagnosis.findings
    python = diagnosis.seen.python
    _line(out, f"Python {python['version']} · {python['executable']}", "dim")
    for verdict, heading in (("problem", "PROBLEMS"), ("notice", "NOTICES")):
        _print_urgent(out, heading, [f for f in findings if f.verdict == verdict])
    _print_fine(out, [f for f in findings if f.verdict == "ok"])
    out.print()
    if written:
        _line(out, written)
    _line(out, _tally(diagnosis), "bold" if diagnosis.ok else "bold red")
    _line(out, _next(diagnosis), "dim")


def _print_urgent(out: Console, heading: str, findings: list[Finding]) -> None:
    """Each with its code, what was seen, and the fix."""
    from rich.text import Text

    if not findings:
        return
    out.print()
    _line(out, heading, _STYLES[findings[0].verdict])
    for one in findings:
        _block(out, Text("  "), Text(one.code, "bold"))
        _block(out, Text("    "), Text(said(_sentence(one.seen))))
        fix = Text.assemble((said("Fix: "), "green"), said(one.fix))
        _block(out, Text("    "), fix)


def _print_fine(out: Console, findings: list[Finding]) -> None:
    """An area's name beside the first of it; the others beneath it."""
    from rich.text import Text

    if not findings:
        return
    out.print()
    _line(out, "FINE", _STYLES["ok"])
    width = max(len(one.area) for one in findings)
    last = None
    for one in findings:
        area = one.area if one.area != last else ""
        _block(out, Text(f"  {area:<{width}}  ", "dim"), Text(said(one.seen)))
        last = one.area


def _line(out: Console, text: str, style: str = "default") -> None:
    from rich.text import Text

    _block(out, Text(), Text(said(text), style))


def _block(out: Console, head: Text, text: Text) -> None:
    """A text beside its head, broken between words, with nothing behind its lines.

    A word that fits no line is not broken: it may be a path, which is copied.
    """
    from rich.text import Text

    rest = " " * head.cell_len
    width = max(20, out.width - head.cell_len)
    # A command and what it is about are copied together.
    text.plain = _COMMAND.sub(rf"\1{_NO_BREAK}", text.plain)
    for line in text.divide(ends(text.plain, width, whole=True)):
        line.plain = line.plain.replace(_NO_BREAK, " ")
        line.rstrip()
        out.print(Text.assemble(head, line), soft_wrap=True)
        head = Text(rest)


def _sentence(text: str) -> str:
    # It may begin with a name, a path or a variable, which stay as they are written.
    first = text.split(maxsplit=1)[0]
    plain = first.isalpha() and first.islower() and first != "torch"
    return f"{text[0].upper()}{text[1:]}." if plain else f"{text}."


def _tally(diagnosis: Diagnosis) -> str:
    counts = diagnosis.as_dict()["counts"]
    problems, notices = counts["problem"], counts["notice"]
    parts = [
        counted(problems, "1 problem", f"{problems or 'no'} problems"),
        counted(notices, "1 notice", f"{notices or 'no'} notices"),
        f"{counts['ok']} fine",
    ]
    return (", " if is_english() else "，").join(map(said, parts))


def _next(diagnosis: Diagnosis) -> str:
    """What one would want to do now."""
    if not diagnosis.ok:
        return "Next: mend the first problem, then: shims doctor"
    if diagnosis.seen.plan is not None and diagnosis.seen.processes.wants:
        return "Next: shims apply-check   (would it succeed here?)"
    return "Next: shims status   (what is open, and what is applied where)"


def _write(diagnosis: Diagnosis, path: Path, *, force: bool) -> str:
    from ..doctor.bundle import pack, write_bundle

    documents = _documents(diagnosis)
    data = pack(documents)
    write_bundle(path, data, force=force)
    many = len(documents)
    files = counted(many, "1 file", "{number} files")
    return (
        f"{path}: {files}, {len(data):,} bytes, readable for you alone. "
        "Secrets are taken out; look through it before you pass it on."
    )


def _documents(diagnosis: Diagnosis) -> dict[str, Any]:
    """What a support bundle holds, redacted."""
    from ..doctor.redaction import relevant

    redaction = _redaction()
    seen = diagnosis.seen
    plain = {
        "doctor.json": diagnosis.as_dict(),
        "status.json": _status(),
        "distributions.json": {
            "schema": 1,
            "distributions": [
                {
                    "name": one.name,
                    "version": one.version,
                    "editable": one.editable,
                    "folder": one.folder,
                }
                for one in seen.installed
            ],
        },
        "platform.json": {
            "schema": 1,
            "platform": platform.platform(),
            "machine": platform.machine(),
            "libc": " ".join(platform.libc_ver()),
            "python": sys.version,
            "cpus": os.cpu_count(),
        },
    }
    documents = {name: redaction.document(one) for name, one in plain.items()}
    documents["environment.json"] = {
        "schema": 1,
        "variables": {
            name: redaction.variable(name, value)
            for name, value in relevant(os.environ).items()
        },
    }
    return documents


def _status() -> dict[str, Any]:
    """What `shims status --all --json` says here."""
    from ..errors import ConfigurationError
    from .status import command as status

    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            status.main(["--all", "--json"], standalone_mode=False)
        answer: dict[str, Any] = json.loads(said.getvalue())
    except (ConfigurationError, click.ClickException) as error:
        return {"schema": 1, "error": str(error)}
    return answer


def _redaction() -> Redaction:
    import pwd

    from ..doctor.redaction import Redaction

    homes, user = [os.path.expanduser("~")], os.environ.get("USER", "")  # noqa: PTH111
    # A container may run as a user that has no entry.
    with contextlib.suppress(KeyError):
        entry = pwd.getpwuid(os.getuid())
        homes, user = [*homes, entry.pw_dir], entry.pw_name
    every = {*homes, *map(os.path.realpath, homes)}
    return Redaction(tuple(h for h in every if h.startswith("/") and h != "/"), user)
