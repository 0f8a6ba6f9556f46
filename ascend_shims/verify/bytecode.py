"""What the code of a module or class body binds, read from its instructions.

The code is at hand from Python's own cache, where parsing two thousand files would
take a minute.
"""

from __future__ import annotations

import opcode
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

__all__ = ["Body", "Defined", "is_function", "packages_of", "rebinds"]


@dataclass
class Defined:
    """What one name of a module or class body is bound to by a definition."""

    codes: list[CodeType] = field(default_factory=list)
    """Of the functions or class bodies of that name, in the order of the text."""
    is_plain: bool = True
    """Whether nothing but plain `def` statements without decorators binds the name."""


_OPTIMISED = 0x1  # CO_OPTIMIZED: functions have it, class bodies do not.


def is_function(code: CodeType) -> bool:
    return bool(code.co_flags & _OPTIMISED)


_MADE = tuple(
    opcode.opmap[name]
    for name in ("MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE")
    if name in opcode.opmap
)
_CACHE = opcode.opmap.get("CACHE", -1)
_EXTENDED = opcode.opmap["EXTENDED_ARG"]
_BINDS = (opcode.opmap["STORE_NAME"], opcode.opmap["STORE_GLOBAL"])
_DELETES = (opcode.opmap["DELETE_NAME"], opcode.opmap["DELETE_GLOBAL"])
_CHANGES = (*_BINDS, opcode.opmap["DELETE_GLOBAL"])
_CONSTANT = opcode.opmap["LOAD_CONST"]
_SMALL = opcode.opmap.get("LOAD_SMALL_INT")  # from 3.14 on
_IMPORTS, _FROM = opcode.opmap["IMPORT_NAME"], opcode.opmap["IMPORT_FROM"]
_RETURNS, _RAISES = (
    frozenset(number for name, number in opcode.opmap.items() if name.startswith(heads))
    for heads in (("RETURN_",), ("RAISE_", "RERAISE"))
)
_FORWARD = frozenset(n for n in opcode.hasjrel if "BACKWARD" not in opcode.opname[n])
_ABSOLUTE = frozenset(opcode.hasjabs)


class Body:
    """What the code of a module, or the bodies of a class, bind."""

    def __init__(self, bodies: list[CodeType], package: str = "") -> None:
        """`package`: what relative imports start from."""
        self._package = package
        self.defined: dict[str, Defined] = {}
        """What has a definition, by name."""
        self.times: Counter[str] = Counter()
        """So often a name is bound."""
        self.sure: set[str] = set()
        """Definitions that are made whenever the body runs, and not deleted there."""
        self.sources: dict[str, list[tuple[str, str]]] = {}
        """Names bound by nothing but `from … import`: modules, and names there."""
        self.stars: list[str] = []
        self.imported: set[str] = set()
        """Modules, and what may be one."""
        for constant in (constant for body in bodies for constant in body.co_consts):
            if isinstance(constant, CodeType) and constant.co_name.isidentifier():
                known = self.defined.setdefault(constant.co_name, Defined())
                known.codes.append(constant)
        deleted: set[str] = set()
        for body in bodies:
            self._read(body, deleted, len(bodies) == 1)
        self.sure -= deleted
        self.sources = {
            name: found
            for name, found in self.sources.items()
            if all(module for module, _ in found)
        }

    def _read(self, body: CodeType, deleted: set[str], only: bool) -> None:
        protected = _protected(body)
        reach, ended, last = 0, False, -1
        constants: list[Any] = [None, None]
        imported: tuple[str, str] | None = None
        for place, operation, argument, after in _operations(body):
            if operation in _FORWARD:
                reach = max(reach, after + 2 * argument)
            elif operation in _ABSOLUTE:
                reach = max(reach, 2 * argument)
            elif operation in _RETURNS:
                # What follows is jumped to, so there is another way.
                ended = True
            elif operation in _RAISES:
                ended = ended or reach <= place
            elif operation == _CONSTANT:
                constants = [constants[1], body.co_consts[argument]]
            elif operation == _SMALL:
                constants = [constants[1], argument]
            elif operation == _IMPORTS:
                module = self._absolute(body.co_names[argument], constants[0])
                imported = module, ""
                self.imported.add(module)
                if constants[1] == ("*",):
                    self.stars.append(module)
            elif operation == _FROM and imported is not None:
                imported = imported[0], body.co_names[argument]
                self.imported.add(".".join(imported))
            elif operation in _DELETES:
                deleted.add(body.co_names[argument])
                self._unplain(body.co_names[argument])
            elif operation in _BINDS:
                name = body.co_names[argument]
                is_from = last == _FROM and imported is not None
                self._bind(name, last in _MADE, imported if is_from else None)
                here = place >= reach and not any(a <= place < b for a, b in protected)
                if only and here and not ended and name in self.defined:
                    self.sure.add(name)
            last = operation

    def _bind(self, name: str, is_made: bool, source: tuple[str, str] | None) -> None:
        self.times[name] += 1
        if not is_made:
            self._unplain(name)
        # A name that something else binds as well has an empty source among its own.
        self.sources.setdefault(name, []).append(source or ("", ""))

    def _unplain(self, name: str) -> None:
        if name in self.defined:
            self.defined[name].is_plain = False

    def _absolute(self, name: str, level: Any) -> str:
        if type(level) is not int or level == 0:
            return name
        parts = self._package.split(".")
        base = ".".join(parts[: len(parts) - level + 1])
        return f"{base}.{name}" if name else base


def rebinds(body: CodeType, name: str) -> bool:
    """Whether a function of a module says `global name` and binds it."""
    for constant in body.co_consts:
        if not isinstance(constant, CodeType):
            continue
        if name in constant.co_names and is_function(constant):
            for _, operation, argument, _ in _operations(constant):
                if operation in _CHANGES and constant.co_names[argument] == name:
                    return True
        if rebinds(constant, name):
            return True
    return False


def packages_of(body: CodeType) -> set[str]:
    """Top-level packages that a module may import, in its functions, too.

    What functions import is told by the names in their code, among others.
    """
    found: set[str] = set()
    left = [body]
    while left:
        code = left.pop()
        found.update(name.partition(".")[0] for name in code.co_names)
        left += [one for one in code.co_consts if isinstance(one, CodeType)]
    return found


def _operations(body: CodeType) -> Iterator[tuple[int, int, int, int]]:
    """Place, operation and argument of each instruction, and where the next one is."""
    extended, code = 0, body.co_code
    end = len(code)
    for place in range(0, end, 2):
        operation = code[place]
        if operation == _EXTENDED:
            extended = (extended | code[place + 1]) << 8
        elif operation != _CACHE:
            after = place + 2
            while after < end and code[after] == _CACHE:
                after += 2
            yield place, operation, extended | code[place + 1], after
            extended = 0


def _protected(body: CodeType) -> list[tuple[int, int]]:
    """Where an exception does not leave the body: in a `try` or `with`."""
    numbers = _numbers(getattr(body, "co_exceptiontable", b""))
    found = []
    for start in numbers:
        length = next(numbers)
        next(numbers), next(numbers)
        found.append((2 * start, 2 * (start + length)))
    return found


def _numbers(table: bytes) -> Iterator[int]:
    """Six bits in each byte; one more bit says that the number goes on."""
    value = 0
    for byte in table:
        value = value << 6 | byte & 0x3F
        if not byte & 0x40:
            yield value
            value = 0
