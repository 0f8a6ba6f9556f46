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
    "Companion",
    "Condition",
    "Gap",
    "GapId",
    "How",
    "Needs",
    "Patch",
    "Provider",
    "Registry",
    "Reliance",
    "Sign",
    "Target",
]

SCHEMA = 1
"""The version of the file format that this toolkit reads."""

_END = r"$(?!\n)"
"""The end, also for Python, whose `$` lets a line break follow."""

GapId = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)*" + _END,
        description="A name of small letters, digits and `-`; gap `a-b` has its code "
        "in `patches/a_b.py`.",
    ),
]
Target = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*" + _END,
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

_Place = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*)?"
        + _END,
        description="A place upstream, written `package.module:Qual.name`, or "
        "`package.module` for the whole file.",
    ),
]
_NamePattern = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(?=[\w*]*[A-Za-z_])[A-Za-z_*][\w*]*" + _END,
        description="A name without dots, in which `*` stands for anything.",
    ),
]
_PathPattern = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(?=[\w*.]*[A-Za-z_])[A-Za-z_*][\w*]*(\.[A-Za-z_*][\w*]*)*" + _END,
        description="A name or the end of a dotted one, in which `*` stands for "
        "anything but a dot, for example `torch.cuda`.",
    ),
]
_Text = Annotated[str, msgspec.Meta(min_length=1)]
_Name = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z_]\w*" + _END,
        description="A plain Python name, without dots.",
    ),
]
_Module = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*" + _END,
        description="A module, written `package.module`.",
    ),
]
_Range = Annotated[
    str, msgspec.Meta(description="A PEP 440 range, for example `>=0.28,<0.29`.")
]
_Ranges = Annotated[
    dict[str, _Range],
    msgspec.Meta(description="Import package (`vllm`, `torch_npu`) to range."),
]


_NamePatterns = (
    _NamePattern | Annotated[tuple[_NamePattern, ...], msgspec.Meta(min_length=1)]
)
_PathPatterns = (
    _PathPattern | Annotated[tuple[_PathPattern, ...], msgspec.Meta(min_length=1)]
)
"""One pattern or several, of which one has to match."""


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Frozen and closed: what every part of a registry is."""


class Reliance(_Entry, frozen=True, kw_only=True):
    """One thing that a patch needs upstream to be, besides its target."""

    symbol: Target
    how: How
    """The way in which it is used, which tells what would break it."""

    versions: _Ranges = {}
    """Where this holds; empty: wherever the patch applies."""

    by_keyword: bool = False
    """Of `calls`: optional arguments are passed by keyword, so that a parameter
    inserted before them does no harm."""

    copy: _Name | None = None
    """The name in `patches/<gap>.py` whose body was copied from the symbol's: any
    change of meaning there is one to port."""


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

    waits_for: _Module | None = None
    """A module that must have been imported before, for whoever imports it puts
    something of its own in the target's place."""

    relies_on: tuple[Reliance, ...] = ()
    """What its code uses besides the target."""

    swap_is_safe: _Text | None = None
    """Why a class may be swapped here. Without it a swap of a class is refused."""

    @property
    def candidates(self) -> tuple[str, ...]:
        return (self.target,) if isinstance(self.target, str) else self.target


class Condition(_Entry, frozen=True, kw_only=True):
    """One fact about upstream's source text. Besides `symbol` it has one key.

    Except for `exists`, nothing can be said of a symbol that is not there: the
    condition then neither holds nor fails, and the probe has no answer.
    """

    symbol: _Place | Annotated[tuple[_Place, ...], msgspec.Meta(min_length=1)]
    """What is asked about; several: candidates, of which the first that exists
    is meant."""

    exists: bool | None = None
    """Whether the symbol is there at run time."""

    has: _NamePatterns | None = None
    """The class (its bases included) or file has a member of such a name."""

    has_no: _NamePatterns | None = None
    """The class or file has no member of such a name."""

    takes: _NamePatterns | None = None
    """The function, or what constructs the class, has such a parameter."""

    takes_no: _NamePatterns | None = None
    """It has no such parameter."""

    reads: _PathPatterns | None = None
    """The body of the function, class or file loads, calls or imports such a name."""

    reads_no: _PathPatterns | None = None
    """The body does not."""

    @property
    def candidates(self) -> tuple[str, ...]:
        return (self.symbol,) if isinstance(self.symbol, str) else self.symbol


class Sign(_Entry, frozen=True, kw_only=True):
    """One way in which upstream may no longer need a gap."""

    says: _Text
    """What upstream does then, in words: half a sentence without a full stop."""

    all: Annotated[tuple[Condition, ...], msgspec.Meta(min_length=1)]
    """Conditions which must all hold. They are about one package."""

    @property
    def package(self) -> str:
        """The top-level package that it is about."""
        return self.all[0].candidates[0].partition(":")[0].partition(".")[0]


class Provider(_Entry, frozen=True, kw_only=True):
    """Where an installed plugin closes a gap by itself, so that nothing is patched."""

    symbol: Target
    """A function or class of the plugin, or a method or attribute of a class that it
    has in the place of upstream's."""

    reads: _Name | None = None
    """A name that its body loads, where it would be there without closing the gap."""

    versions: _Ranges = {}
    """Releases of upstream with which it closes the gap; empty: all."""


class Needs(_Entry, frozen=True, kw_only=True):
    """What has to be there before any patch of a gap makes sense."""

    device: bool = True
    """An NPU, or the rig."""

    gaps: tuple[GapId, ...] = ()
    """Gaps that must be closed, by patches or by the installed plugin."""

    patched: tuple[GapId, ...] = ()
    """Gaps that must be closed by patches: this one's code builds on theirs."""


class Gap(_Entry, frozen=True, kw_only=True):
    """One difference between upstream and what Ascend needs."""

    id: GapId
    title: _Text
    """What it is about, in a few words."""

    status: Literal["open", "landed", "retired"]
    """`open`: we still patch. `landed`: upstream does it itself. `retired`: gone."""

    kind: Literal["workaround", "adaptation"]
    """`workaround`: to be removed once upstream changes. `adaptation`: stays."""

    why: _Text
    """What upstream does, and why that is not right here."""

    remove_when: _Text
    """In words: when this entry can go, or for an adaptation why it stays."""

    versions: _Ranges = {}
    """The releases this gap claims to serve."""

    default: Literal["on", "off"] = "on"
    """`off`: only where it is asked for by name, or by `ASCEND_SHIMS=on`."""

    needs: Needs = Needs()
    """What has to be there before it makes sense."""

    after: tuple[GapId, ...] = ()
    """Gaps whose layers on a shared slot lie beneath ours."""

    traced: _Text | None = None
    """What of it code that `torch.compile` traces may meet. Compiled artifacts are
    then kept apart by whether this gap is in force, and in which version."""

    patches: tuple[Patch, ...] = ()
    """What it changes upstream: all together, or not at all."""

    unpatched: _Text | None = None
    """Why there are no patches. Required where there are none."""

    removal_probe: tuple[Sign, ...] = ()
    """Tells from upstream's source whether the gap is still needed. It is not as
    soon as one of these signs is seen. Of a landed gap: what shows that it landed."""

    provided_by: tuple[Provider, ...] = ()
    """Where an installed plugin closes the gap by itself; one of them is enough."""

    downstream: tuple[_Text, ...] = ()
    """Where the downstream plugin closes the same gap, `module:Qual.name`."""

    references: tuple[_Text, ...] = ()
    """Pull requests, issues and pages that say more."""

    @property
    def module(self) -> str:
        """Name of this gap's module inside the patches package."""
        return _module_of(self.id)


class Companion(_Entry, frozen=True, kw_only=True):
    """Patches that gaps take along: laid once for each gap that has them, applied
    and taken back together with it.

    Its code lies in the module of its id, as a gap's does. A replacement is given
    the id and the version of the gap that it is laid for, before all else.
    """

    id: GapId
    why: _Text
    goes_with: Literal["every-gap", "traced-gaps"]
    """The gaps that have it: all with patches, or those that say `traced`."""

    patches: Annotated[tuple[Patch, ...], msgspec.Meta(min_length=1)]

    @property
    def module(self) -> str:
        """Name of its module inside the patches package."""
        return _module_of(self.id)


def _module_of(entry_id: str) -> str:
    """A registry that was found beside another one has a namespace before its ids,
    and its modules have not."""
    return entry_id.rpartition("/")[2].replace("-", "_")


class Registry(_Entry, frozen=True, kw_only=True):
    """A whole registry file."""

    schema: Literal[1]
    upstreams: Annotated[tuple[_Name, ...], msgspec.Meta(min_length=1)]
    """The import packages that targets may lie in."""

    package: str = "ascend_shims.patches"
    """The package that holds one module a gap."""

    watch: tuple[Reliance, ...] = ()
    """What else is relied on upstream, without a patch: drift checks it too."""

    companions: tuple[Companion, ...] = ()
    """What gaps take along."""

    gaps: Annotated[tuple[Gap, ...], msgspec.Meta(min_length=1)]

    def companions_of(self, gap: Gap) -> tuple[Companion, ...]:
        """What a gap takes along wherever it is applied."""
        if not gap.patches:
            return ()
        return tuple(
            one
            for one in self.companions
            if one.goes_with == "every-gap" or gap.traced is not None
        )

    def package_of(self, _entry: Gap | Companion, /) -> str:
        """The package that holds the module of a gap or companion."""
        return self.package

    @property
    def packages(self) -> tuple[str, ...]:
        """Every package that modules lie in."""
        return (self.package,)

    def __contains__(self, gap_id: object) -> bool:
        return any(gap.id == gap_id for gap in self.gaps)

    def __getitem__(self, gap_id: str) -> Gap:
        """The gap of that id. Raises `KeyError`."""
        for gap in self.gaps:
            if gap.id == gap_id:
                return gap
        raise KeyError(gap_id)
