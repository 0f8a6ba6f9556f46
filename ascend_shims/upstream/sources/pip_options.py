"""The options that pip would use here, from its variables and its files.

Follows pip's documentation ("Configuration"): global, user and site file, then the
file that `PIP_CONFIG_FILE` names, then `PIP_*` variables, later ones overriding
earlier ones as a whole. A section named after a command overrides `[global]`.
"""

from __future__ import annotations

import configparser
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from .errors import BadSource

__all__ = ["configuration_files", "default_index", "pip_options"]

_SECTIONS = ("global", "install", "download")
"""Fetching a release is pip's `download`, whose options most people set, if not
for all commands, for `install`."""

_MACHINE = Path("/etc/pip.conf")

_ALIASES = {
    "default-timeout": "timeout",
    "pypi-url": "index-url",
}


def _in_home(environ: Mapping[str, str]) -> Iterator[Path]:
    home = environ.get("HOME", "")
    if home:
        yield Path(home, ".pip", "pip.conf")
    base = environ.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else "")
    if base:
        yield Path(base, "pip", "pip.conf")


def configuration_files(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The files pip would read, existing or not, weakest first."""
    chosen = environ.get("PIP_CONFIG_FILE", "")
    if chosen == os.devnull:
        return ()
    folders = environ.get("XDG_CONFIG_DIRS") or "/etc/xdg"
    files = [Path(f, "pip", "pip.conf") for f in folders.split(":") if f]
    files.append(_MACHINE)
    # A file chosen by variable stands in for the user's own.
    if not (chosen and Path(chosen).exists()):
        files.extend(_in_home(environ))
    files.append(Path(sys.prefix, "pip.conf"))
    if chosen:
        files.append(Path(chosen))
    return tuple(files)


def _option(name: str) -> str:
    plain = name.lower().replace("_", "-").removeprefix("--")
    return _ALIASES.get(plain, plain)


def _read(file: Path) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    try:
        text = file.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise BadSource(f"cannot read pip's configuration {file}: {error}") from error
    try:
        parser.read_string(text)
    except configparser.Error as error:
        # The parser's own message quotes the line, which may hold a password.
        line = getattr(error, "lineno", None)
        where = f"{file}:{line}" if line else str(file)
        raise BadSource(f"{where} is not a pip configuration file") from None
    return {
        _option(name): value
        for section in _SECTIONS
        if parser.has_section(section)
        for name, value in parser.items(section)
        if value
    }


def pip_options(environ: Mapping[str, str]) -> dict[str, str]:
    """Option to value, as written: `{"index-url": …, "extra-index-url": …}`.

    Raises:
        BadSource: a configuration file cannot be read.
    """
    options: dict[str, str] = {}
    for file in configuration_files(environ):
        options.update(_read(file))
    for name, value in environ.items():
        if name.startswith("PIP_") and value:
            options[_option(name[4:])] = value
    return options


def default_index() -> tuple[str, str] | None:
    """The index that pip uses when nobody names one, and its host of files.

    None where this interpreter has no pip. The addresses are pip's to say, so
    that a redistributor's pip with another default means the same here.
    """
    try:
        from pip._internal.models.index import PyPI
    except ImportError:
        return None
    return PyPI.simple_url, PyPI.file_storage_domain
