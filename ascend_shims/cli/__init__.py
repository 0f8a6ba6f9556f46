"""The `shims` command.

Each command lives in a module of its own and is imported when it is called, so
that starting `shims` costs little and imports neither vLLM nor torch.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading
from typing import NoReturn

from ..words import preferred, said, speaking

__all__ = ["entry", "main"]


def entry() -> NoReturn:
    """The program `shims`: what `main` returns is its exit code."""
    code = main()
    running = (one for one in threading.enumerate() if one.daemon)
    if any(one.name.startswith("shims-") for one in running):
        # It still waits for the network, and would go on in an interpreter that is
        # being taken apart, which crashes now and then.
        for stream in filter(None, (sys.stdout, sys.stderr)):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def main(arguments: list[str] | None = None) -> int:
    """Run `shims`. Returns 0 if all is well, 1 for findings, 2 where it cannot go on.

    A message about an error ends with its code, which `shims explain` takes.
    """
    if sys.stdout is None:
        # Closed by whoever started us: what is said goes nowhere.
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Where the encoding lacks a character, it is replaced, not raised.
        sys.stdout.reconfigure(errors="replace")
    try:
        with speaking(preferred(os.environ, sys.stdout, sys.stderr)):
            return _run(arguments)
    except KeyboardInterrupt:
        print("shims: interrupted", file=sys.stderr)
        return 130


def _run(arguments: list[str] | None) -> int:
    import click

    from ..errors import CANNOT_GO_ON, ConfigurationError, ShimsError, code_of
    from .app import shims
    from .speech import say, show_error, tell

    try:
        code = shims.main(arguments, prog_name="shims", standalone_mode=False) or 0
        sys.stdout.flush()
    except click.exceptions.Abort:
        say("shims: interrupted", err=True)
        return 130
    except click.ClickException as error:
        # Usage errors are click's own, say how to call, and have a code of their own.
        cause = error.__cause__
        shown = error
        if isinstance(cause, ShimsError) and not isinstance(error, click.UsageError):
            shown = click.ClickException(f"{said(error.message)} [{code_of(cause)}]")
        show_error(shown)
        return error.exit_code
    except ShimsError as error:
        # Each line is about something of its own, and found by its code.
        hint = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
        for line in str(error).splitlines():
            told = said(f"{line}{hint}")
            tell(f"shims: {told} [{code_of(error)}]")
        return 2 if isinstance(error, ConfigurationError) else 1
    except BrokenPipeError:
        # The reader of our output has seen enough; there is nobody to tell.
        sys.stderr.close()
        return 0
    except OSError as error:
        tell(f"shims: cannot go on: {error} [{CANNOT_GO_ON}]")
        sys.stdout = None  # nothing more can be said there
        return 2
    return int(code)
