"""Where the code went that looked a name up through one module's binding of it.

A patch of an imported name follows the importing code, not the definition: that
stays where it is while its caller moves to a module with a binding of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from ascend_shims.upstream.facts.resolve import in_module, local_names
from ascend_shims.upstream.facts.symbol import Symbol, find, split
from ascend_shims.upstream.lookups import users
from ascend_shims.upstream.tree import Tree

__all__ = ["new_binding"]


def new_binding(
    symbol: Symbol, new: Tree, target: str, follow: Callable[[Symbol], str | None]
) -> str | None:
    """The name, `module:name`, by which that code reaches `target` now.

    `target` is what the name leads to in the new release; `follow` tells where a
    definition went that is gone from its place.
    """
    home, parts = split(symbol.name)
    module, names = split(target)
    definition = in_module(new, module, names[0])
    if definition is None or len(parts) > 1:
        return None
    votes: Counter[str] = Counter()
    for place in _homes(symbol, new, home, parts[0], follow):
        if place not in (home, module):
            votes[place] += 1
    for place, _ in votes.most_common():
        parsed = new.module(place)
        if parsed is None:
            continue
        bound = local_names(new, parsed, definition) & parsed.scope.names.keys()
        if bound:
            name = parts[0] if parts[0] in bound else min(bound)
            return f"{place}:{name}"
    return None


def _homes(
    symbol: Symbol,
    new: Tree,
    home: str,
    name: str,
    follow: Callable[[Symbol], str | None],
) -> Iterator[str]:
    """The modules that hold, now, what used the name in its old module."""
    parsed = symbol.tree.module(home)
    if parsed is None:
        return
    for qualname in users(parsed, name):
        parts = qualname.split(".")
        # A method may be inherited from another module by now, its class may have
        # moved, or both.
        for end in range(len(parts), 0, -1):
            asked = f"{home}:{'.'.join(parts[:end])}"
            found = find(new, asked)
            if found is not None:
                bases = found.cls.mro if found.kind == "class" and found.cls else ()
                yield from dict.fromkeys(
                    [found.module, *(c.module.name for c in bases)]
                )
                break
        else:
            gone = find(symbol.tree, f"{home}:{parts[0]}")
            to = follow(gone) if gone is not None else None
            if to is not None:
                yield split(to)[0]
