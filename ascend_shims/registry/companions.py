"""Rules about companions: each is for some gap, and what gaps count on is there."""

from __future__ import annotations

from collections.abc import Iterator

from .outline import Finding, Outline
from .problems import shown

__all__ = ["findings"]


def findings(outline: Outline) -> Iterator[Finding]:
    traced = [gap for gap in outline.gaps if gap.is_traced]
    own = any(one.goes_with == "traced-gaps" for one in outline.companions)
    served = own or outline.is_served
    for gap in traced:
        if not served:
            yield Finding(
                (*gap.place, "traced"),
                f"gap `{gap.name}` is traced, and no companion goes with traced gaps",
                "add the companion `compile-key`, as the registry that comes with the "
                "toolkit has it",
                on_key=True,
            )
        elif not gap.has_patches:
            yield Finding(
                (*gap.place, "traced"),
                f"gap `{gap.name}` is traced and has no patches",
                "remove `traced`",
                on_key=True,
            )
    yield from _shared_slots(outline)
    for one in outline.companions:
        if one.goes_with == "traced-gaps" and not traced:
            yield Finding(
                one.place,
                f"no gap has the companion `{one.name}`: none is traced",
                "say of a gap what of it is `traced`, or remove the companion",
            )


def _shared_slots(outline: Outline) -> Iterator[Finding]:
    """A companion has its slots for itself: its layers lie where its gaps' do."""
    owners: dict[str, str] = {}
    for one in outline.patched:
        targets = {t.value: t for patch in one.patches for t in patch.targets}
        for target, text in targets.items():
            if one in outline.companions and target in owners:
                yield Finding(
                    text.place,
                    f"`{shown(target)}` is patched by `{owners[target]}` too",
                    f"make it one patch, or let `{one.name}` patch another place",
                )
            owners.setdefault(target, one.name)
