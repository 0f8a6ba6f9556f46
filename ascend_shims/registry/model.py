"""What a gap registry says, as frozen values.

These types are the single definition of the file format: the loader
(`loading`), the editor schema (`schema`) and every reader derive from them. They
hold data only; what may be wrong with the data is the business of `check`.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

__all__ = [
    "SCHEMA",
    "Gap",
    "GapId",
    "How",
    "Needs",
    "Patch",
    "Registry",
    "Reliance",
    "Target",
]

SCHEMA = 1
"""The version of the file format that this toolkit reads."""

GapId = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$",
        description="A name of small letters, digits and `-`; gap `a-b` has its code "
        "in `patches/a_b.py`.",
    ),
]
Target = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$",
        description="A place upstream, written `package.module:Qual.name`.",
    ),
]
How = Literal[
    "wraps_function",
    "replaces_function",
    "overrides_method",
    "calls",
    "imports_name",
    "subclass_init_signature",
    "reads_attribute",
    "dataclass_fields",
    "replaces_class_binding",
]
"""The ways of relying on upstream; `upstream.contract` says what each means."""

_Text = Annotated[str, msgspec.Meta(min_length=1)]
_Name = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z_]\w*$", description="A plain Python name, without dots."
    ),
]
_Range = Annotated[
    str, msgspec.Meta(description="A PEP 440 range, for example `>=0.28,<0.29`.")
]
_Ranges = Annotated[
    dict[str, _Range],
    msgspec.Meta(description="Import package (`vllm`, `torch_npu`) to range."),
]


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Frozen and closed: what every part of a registry is."""


class Reliance(_Entry, frozen=True, kw_only=True):
    """One thing that a patch needs upstream to be, besides its target."""

    symbol: Target
    how: How
    versions: _Ranges = {}
    """Where this holds; empty: wherever the patch applies."""


class Patch(_Entry, frozen=True, kw_only=True):
    """One edit of one upstream binding."""

    target: Target | Annotated[tuple[Target, ...], msgspec.Meta(min_length=1)]
    """Where it lands; several: candidates, of which the first that exists is used."""

    kind: Literal["wrap", "decorate", "replace", "add"]
    """`wrap`: the replacement is called as `f(call, *args, **kwargs)`, `call`
    being what it stands in front of. `decorate`: it is called once, with the
    function to change, and returns the changed one. `replace`: it stands in the
    target's place. `add`: the target does not exist upstream and is created."""

    replacement: _Name
    """A module-level name of `patches/<gap>.py`."""

    versions: _Ranges = {}
    """Narrows the gap's own range for this patch."""

    scope: Literal["everywhere", "binding"] = "everywhere"
    """`everywhere`: other references to the same object follow. `binding`: this
    one name changes and every other reference stays stock."""

    lazy: bool = False
    """Upstream imports the target's module in some configurations only. Until
    then the gap counts as applied without this patch."""

    relies_on: tuple[Reliance, ...] = ()

    swap_is_safe: _Text | None = None
    """Why a class may be swapped here. Without it a swap of a class is refused."""

    @property
    def candidates(self) -> tuple[str, ...]:
        return (self.target,) if isinstance(self.target, str) else self.target


class Needs(_Entry, frozen=True, kw_only=True):
    """What has to be there before any patch of a gap makes sense."""

    device: bool = True
    gaps: tuple[GapId, ...] = ()


class Gap(_Entry, frozen=True, kw_only=True):
    """One difference between upstream and what Ascend needs."""

    id: GapId
    title: _Text
    status: Literal["open", "landed", "retired"]
    kind: Literal["workaround", "adaptation"]
    why: _Text
    remove_when: _Text
    """In words: when this entry can go, or for an adaptation why it stays."""

    versions: _Ranges = {}
    """The releases this gap claims to serve."""

    default: Literal["on", "off"] = "on"
    needs: Needs = Needs()
    after: tuple[GapId, ...] = ()
    """Gaps whose layers on a shared slot lie beneath ours."""

    patches: tuple[Patch, ...] = ()
    unpatched: _Text | None = None
    """Why there are no patches. Required where there are none."""

    removal_probe: _Name | None = None
    """A function of `patches/<gap>.py` that tells from source whether upstream
    still needs this."""

    downstream: tuple[_Text, ...] = ()
    """Where the downstream plugin closes the same gap, `module:Qual.name`."""

    references: tuple[_Text, ...] = ()

    @property
    def module(self) -> str:
        """Name of this gap's module inside the patches package."""
        return self.id.replace("-", "_")


class Registry(_Entry, frozen=True, kw_only=True):
    """A whole registry file."""

    schema: Literal[1]
    upstreams: Annotated[tuple[_Name, ...], msgspec.Meta(min_length=1)]
    """The import packages that targets may lie in."""

    package: str = "ascend_shims.patches"
    """The package that holds one module a gap."""

    watch: tuple[Reliance, ...] = ()
    """What else is relied on upstream, without a patch: drift checks it too."""

    gaps: Annotated[tuple[Gap, ...], msgspec.Meta(min_length=1)]

    def __contains__(self, gap_id: object) -> bool:
        return any(gap.id == gap_id for gap in self.gaps)

    def __getitem__(self, gap_id: str) -> Gap:
        """The gap of that id. Raises `KeyError`."""
        for gap in self.gaps:
            if gap.id == gap_id:
                return gap
        raise KeyError(gap_id)
