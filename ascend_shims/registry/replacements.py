"""Rules about the patches package: what an entry names is there, and no more.

Nothing is imported, neither a patch module nor a parent of its package: the
modules are found as an import would find them and their text is searched for
the name. A full parse would be surer and costs more than the rest of loading.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.machinery import ModuleSpec
from importlib.util import decode_source
from pathlib import Path
from typing import Any

from .outline import Finding, Outline, OutlinedGap, Text
from .problems import nearest, shown

__all__ = ["findings", "source_of"]

_DEFINED = re.compile(
    r"^(?:async[ \t]+def|def|class)[ \t]+(\w+)|^(\w+)[ \t]*(?::[^=\n]+)?=(?!=)",
    re.MULTILINE,
)
_IMPORTED = r"(?m)^from[ \t]+[\w.]+[ \t]+import[ \t]*(\([^)]*\)|[^\n(]*)"


_OWN = (
    "if it is in a package of your own, write `package: your_patches` at the top of "
    "the registry, add `{module}.py` to that package, and allow it by "
    "ASCEND_SHIMS_ALLOW=your_patches"
)
"""What to do where a registry does not say whose patches it names."""


def findings(outline: Outline, *, complete: bool) -> Iterator[Finding]:
    """`complete`: the registry claims to list every module of its package."""
    package = outline.package
    gaps = [gap for gap in outline.patched if any(_named(gap))]
    if package is None or not (gaps or complete):
        return
    locations = list(outline.folders) or _locate(package.value)
    if locations is None:
        yield Finding(
            package.place,
            f"the package `{shown(package.value)}` cannot be found",
            "install it, put the folder that it is in on PYTHONPATH, or correct "
            "`package`",
        )
        return
    fix = _OWN if package.is_default and not complete else None
    if fix and outline.home:
        fix = f"write `package: {outline.home}` at the top of the registry"
    ids = Counter(gap.id.value for gap in gaps if gap.id)
    misplaced = None if package.is_default else _misplaced(package, locations, gaps)
    if misplaced:
        yield misplaced
        gaps = []
    elif not package.is_default and len(ids) == 1:
        fix = "its names are expected there: add `{module}.py`, or correct `package`"
    for gap in gaps:
        # Of several of one id nobody knows whose module it is.
        if gap.id and ids[gap.id.value] == 1:
            yield from _missing(gap, package.value, locations, fix)
    if complete and all(gap.id for gap in outline.patched):
        known = {gap.module for gap in outline.patched}
        for module in sorted(_modules(locations) - known):
            yield Finding(
                ("gaps",),
                f"`{module}.py` in `{package.value}` has no entry",
                f"add a gap `{module.replace('_', '-')}`, or remove the file",
                on_key=True,
            )


def _misplaced(
    package: Text, locations: list[str], gaps: list[OutlinedGap]
) -> Finding | None:
    """That the package is the wrong one, and not each of several gaps."""
    modules = [gap.module for gap in gaps if gap.module]
    there = (_find(f"{package.value}.{one}", locations) for one in modules)
    if len(modules) < len(gaps) or any(there):
        return None
    meant = _having(modules, package.value, locations)
    if meant is None and len(modules) < 2:
        return None
    return Finding(
        package.place,
        f"no gap has its module in the package `{shown(package.value)}`",
        f"did you mean `{shown(meant)}`?"
        if meant
        else "correct `package`, or add a module for each gap, such as "
        f"`{modules[0]}.py`",
    )


def _having(modules: list[str], package: str, locations: list[str]) -> str | None:
    """A package right beneath, around or beside this one that has all the modules."""
    parent = package.rpartition(".")[0]
    places = [(package, locations), (parent, _locate(parent) or [])]
    for name, folders in places:
        for folder in map(Path, folders):
            for one in (folder, *sorted(folder.glob("*/"))):
                if one.name.isidentifier() and all(
                    (one / f"{module}.py").is_file() for module in modules
                ):
                    return name if one == folder else f"{name}.{one.name}"
    return None


def source_of(package: str, module: str) -> tuple[str, str] | None:
    """Path and text of a module of the patches package; `None` where it has none."""
    locations = _locate(package)
    name = f"{package}.{module}"
    spec = _find(name, locations) if locations is not None else None
    if spec is None:
        return None
    try:
        source = _text(spec)
    except (AttributeError, ImportError, OSError, SyntaxError, UnicodeError):
        return None
    return None if source is None else (spec.origin or name, source)


def _text(spec: ModuleSpec) -> str | None:
    """A module's source; `None` where there is none. Raises whatever its loader
    does."""
    loader: Any = spec.loader
    if hasattr(loader, "get_source"):
        source: str | None = loader.get_source(spec.name)
        return source
    # An import hook that stands before the real loader may know bytes alone: pytest
    # has one for every package that brings a plugin.
    return decode_source(loader.get_data(spec.origin))


def _named(gap: OutlinedGap) -> Iterator[Text]:
    """Every name that an entry expects in its module."""
    for patch in gap.patches:
        if patch.replacement:
            yield patch.replacement
        yield from patch.copies


def _missing(
    gap: OutlinedGap, package: str, locations: list[str], fix: str | None
) -> Iterator[Finding]:
    if gap.id is None:
        return
    module = f"{package}.{gap.module}"
    spec = _find(module, locations)
    if spec is None:
        yield Finding(
            gap.id.place,
            f"the module `{module}` does not exist",
            (fix or "its names are expected there: add `{module}.py`").format(
                module=gap.module
            ),
        )
        return
    try:
        source = _text(spec)
    except (AttributeError, ImportError, OSError, SyntaxError, UnicodeError) as error:
        reason = shown(error)
        yield Finding(
            gap.id.place, f"the module `{module}` cannot be read: {reason}", "repair it"
        )
        return
    if source is None:
        return  # compiled code only
    try:
        compile(source, module, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        reason = shown(getattr(error, "msg", error))
        line = getattr(error, "lineno", None)
        at = f", line {line}" if line else ""
        yield Finding(
            gap.id.place,
            f"the module `{module}` is not Python{at}: {reason}",
            f"repair {shown(spec.origin)}",
        )
        return
    defined = _definitions(source)
    for name in _named(gap):
        if name.value in defined or name.value in _imports(source):
            continue
        meant = nearest(name.value, defined)
        yield Finding(
            name.place,
            f"`{shown(name.value)}` is not defined in `{module}`",
            f"did you mean `{meant}`?" if meant else "define it at the top level",
        )


def _definitions(source: str) -> set[str]:
    return {a or b for a, b in _DEFINED.findall(source)}


def _imports(source: str) -> set[str]:
    names: set[str] = set()
    for clause in re.findall(_IMPORTED, re.sub(r"#[^\n]*", "", source)):
        for item in clause.strip("() \t\n").split(","):
            names.update(item.split()[-1:])
    return names


def _locate(package: str) -> list[str] | None:
    """The directories of a package, without importing it or its parents."""
    locations: list[str] | None = None
    parts = package.split(".")
    if not all(part.isidentifier() for part in parts):
        return None
    for length in range(1, len(parts) + 1):
        name = ".".join(parts[:length])
        loaded = getattr(sys.modules.get(name), "__path__", None)
        if loaded is None:
            spec = _find(name, locations)
            loaded = spec.submodule_search_locations if spec else None
        if loaded is None:
            return None
        locations = list(loaded)
    return locations


def _find(name: str, locations: Iterable[str] | None) -> ModuleSpec | None:
    """What `importlib.util.find_spec` does, which would import the parents."""
    for finder in sys.meta_path:
        find_spec = getattr(finder, "find_spec", None)
        spec = find_spec(name, locations) if find_spec else None
        if isinstance(spec, ModuleSpec):
            return spec
    return None


def _modules(locations: Iterable[str]) -> set[str]:
    """The modules in a package's directories; `_private` ones serve the others."""
    found = set()
    for location in map(Path, locations):
        if not location.is_dir():
            continue
        for entry in location.iterdir():
            is_module = entry.suffix == ".py" or (entry / "__init__.py").exists()
            if is_module and entry.stem.isidentifier() and entry.stem[0] != "_":
                found.add(entry.stem)
    return found
