"""The `shims` command.

Each command lives in a module of its own and is imported when it is called, so
that starting `shims` costs little and imports neither vLLM nor torch.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run `shims`. Returns 0 if all is well, 1 for findings, 2 for misuse."""
    import click

    from ..errors import ConfigurationError
    from .app import shims

    try:
        return shims.main(arguments, prog_name="shims", standalone_mode=False) or 0
    except click.exceptions.Abort:
        click.echo("shims: interrupted", err=True)
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except ConfigurationError as error:
        for line in str(error).splitlines():
            click.echo(f"shims: {line}", err=True)
        return 2
    except BrokenPipeError:
        # The reader of our output has seen enough; there is nobody to tell.
        sys.stderr.close()
        return 0
