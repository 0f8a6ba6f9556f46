"""Plain values as texts that are the same in every process."""

from __future__ import annotations

import pytest

from ascend_shims.verify.inventory.plain import note_memory, scalar

HERE = object()
NOWHERE = 0x1234_5678_9ABC
"""Nothing is mapped so low in the upper half of what a process may have."""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<C object at {:#x}>", "'<C object at <address>>'"),
        ("<C object at {:#x}> and <D at {:#x}>", None),
        ("at {:#x}", "'at <address>'"),
    ],
)
def test_an_object_in_a_text_has_no_address(text: str, said: str | None) -> None:
    """Whether it is one of this process or was written down long ago."""
    note_memory()
    mine = scalar(text.format(id(HERE), id(HERE)))
    theirs = scalar(text.format(NOWHERE, NOWHERE))
    assert mine == theirs
    assert said in (mine, None)


def test_a_number_is_an_address_where_it_lies_in_memory() -> None:
    note_memory()
    assert scalar(id(HERE)) == "an address"
    assert scalar(NOWHERE) == str(NOWHERE)
    assert scalar(f"{id(HERE):#x}") == "'<address>'"
    assert scalar(f"{NOWHERE:#x}") == f"'{NOWHERE:#x}'"
    assert scalar(7) == "7"
