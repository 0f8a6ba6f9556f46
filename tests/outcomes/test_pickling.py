"""What travels when something patched is pickled, and what it does where it arrives.

By reference it is whatever the receiver has under that name. By value it is what was
sent. Neither takes the toolkit along.
"""

from __future__ import annotations

import copy
import functools
import pickle
from collections.abc import Callable
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import pytest

import ascend_shims

from ..engine.world import P, World

THINGS: dict[str, Callable[[Any], Any]] = {
    "function": lambda a: a.f,
    "method of a class": lambda a: functools.partial(a.C.m, a.C()),
    "bound method": lambda a: a.C().m,
    "static method": lambda a: a.C.s,
    "method of a subclass": lambda a: a.Sub().m,
    "partial": lambda a: functools.partial(a.f, 1),
    "callable object": lambda a: a.cached,
}
CLASS_METHODS: dict[str, Callable[[Any], Any]] = {
    "class method": lambda a: a.C.k,
    "class method of a subclass": lambda a: a.Sub.k,
}
OBJECTS: dict[str, Callable[[Any], Any]] = {
    "class": lambda a: a.C,
    "instance": lambda a: a.C(3),
    "instance of a subclass": lambda a: a.Sub(3),
}

RECEIVE = """
{first}
import pickle
for sent in {sent!r}:
    print(pickle.loads(bytes.fromhex(sent))(), end=" ")
for sent in {objects!r}:
    one = pickle.loads(bytes.fromhex(sent))
    one = one(3) if isinstance(one, type) else one
    print(one.m(), one.p, type(one).__module__ == "UP.a", end=" ")
"""
FIRST = {
    "on": "import ascend_shims\nascend_shims.apply()",
    "off": "import ascend_shims",
    "absent": "import sys\nsys.modules['ascend_shims'] = None",
}


@pytest.mark.parametrize("receiver", FIRST)
@pytest.mark.parametrize("sender", ["on", "reverted", "off"])
@pytest.mark.parametrize("how", [pickle, cloudpickle], ids=["pickle", "cloudpickle"])
def test_by_reference_it_is_what_the_receiver_has(
    up: World, how: Any, sender: str, receiver: str
) -> None:
    a = up.import_()
    if sender != "off":
        ascend_shims.apply()
        assert a.f() == a.C().m() == a.cached() == 10
    if sender == "reverted":
        ascend_shims.revert()
    # cloudpickle sends every class method by value, whether patched or not.
    things = THINGS if how is cloudpickle else {**THINGS, **CLASS_METHODS}
    pickles = [how.dumps(make(a)) for make in things.values()]
    objects = [how.dumps(make(a)) for make in OBJECTS.values()]
    assert all(b"ascend" not in one for one in [*pickles, *objects])
    code = RECEIVE.format(
        first=FIRST[receiver],
        sent=[one.hex() for one in pickles],
        objects=[one.hex() for one in objects],
    )
    number = "10" if receiver == "on" else "1"
    other = "30 30" if receiver == "on" else "3 3"
    expected = [*[number] * len(things), *[f"{other} True"] * len(OBJECTS)]
    assert up.run(code) == " ".join([*expected, ""])


@pytest.mark.parametrize(
    "make", (THINGS | CLASS_METHODS).values(), ids=THINGS | CLASS_METHODS
)
def test_a_copy_is_what_was_copied(up: World, make: Callable[[Any], Any]) -> None:
    a = up.import_()
    ascend_shims.apply()
    one = make(a)
    copies = (
        copy.copy(one),
        copy.deepcopy(one),
        copy.deepcopy({"deep": [one]})["deep"][0],
    )
    assert [each() for each in copies] == [10, 10, 10]
    ascend_shims.revert()
    assert [each() for each in copies] == [1, 1, 1]


def test_copies_of_functions_and_classes_are_the_very_objects(up: World) -> None:
    a = up.import_()
    ascend_shims.apply()
    for one in (a.f, a.C, a.C.m, a.C.s):
        assert copy.copy(one) is one
        assert copy.deepcopy([one])[0] is one
    instance = copy.deepcopy(a.Sub(3))
    assert (type(instance), instance.m(), instance.p) == (a.Sub, 30, 30)


MAIN = """
import sys, pickle, cloudpickle
{first}
import UP.a
from UP.a import f
def mine(x):
    return f(x) + UP.a.C(x).m()
def outer(call):
    return lambda x: call(x) + 1
sent = [cloudpickle.dumps(one) for one in (mine, outer(f), outer(UP.a.C.s))]
assert not any(b"ascend" in one for one in sent)
print([mine(1), outer(f)(1)], [one.hex() for one in sent])
"""


@pytest.mark.parametrize("receiver", ["on", "off", "absent"])
@pytest.mark.parametrize("sender", ["on", "off"])
def test_a_function_of_main_travels_and_refers_to_upstream_by_name(
    up: World, sender: str, receiver: str
) -> None:
    """Its globals and closures hold wrappers of ours: references, as any function."""
    said = up.run(MAIN.format(first=FIRST[sender]))
    there, _, sent = said.partition("] ")
    assert there == ("[20, 11" if sender == "on" else "[2, 2")
    code = (
        f"{FIRST[receiver]}\nimport pickle\n"
        f"mine, outer, _ = [pickle.loads(bytes.fromhex(x)) for x in {sent.strip()}]\n"
        "print(mine(1), outer(1))\n"
    )
    assert up.run(code) == ("20 11\n" if receiver == "on" else "2 2\n")


@pytest.mark.parametrize("receiver", ["on", "off", "absent"])
def test_by_value_it_is_what_was_sent_and_never_an_engine(
    up: World, receiver: str
) -> None:
    """The replacement goes by reference, so the patches package has to be there."""
    a = up.import_()
    ascend_shims.apply()
    cloudpickle.register_pickle_by_value(a)
    try:
        sent = [cloudpickle.dumps(one) for one in (a.f, a.C.m, a.C.s, a.Sub.k)]
    finally:
        cloudpickle.unregister_pickle_by_value(a)
    for one in sent:
        assert len(one) < 4000
        assert b"Engine" not in one
        assert b"Mark" not in one
    texts = [one.hex() for one in sent]
    code = (
        f"{FIRST[receiver]}\nimport pickle, sys\n"
        f"f, m, s, k = [pickle.loads(bytes.fromhex(text)) for text in {texts}]\n"
        "class Own: x = 1\n"
        "print(f(), m(Own()), s(), k(), f.__module__)\n"
        "print('ascend_shims.engine' in sys.modules)\n"
    )
    assert up.run(code) == up.spelled(f"10 10 10 10 UP.a\n{receiver == 'on'}\n")


def test_by_value_where_the_patches_are_not_installed_says_so(up: World) -> None:
    a = up.import_()
    ascend_shims.apply()
    cloudpickle.register_pickle_by_value(a)
    try:
        sent = cloudpickle.dumps(a.f).hex()
    finally:
        cloudpickle.unregister_pickle_by_value(a)
    code = (
        "import pickle, sys\nsys.modules['PP.one'] = None\n"
        f"try: pickle.loads(bytes.fromhex({sent!r}))\n"
        "except ImportError as error: print(type(error).__name__, error)\n"
    )
    said = up.spelled("import of PP.one halted; None in sys.modules")
    assert up.run(code) == f"ModuleNotFoundError {said}\n"


def test_what_was_kept_of_before_or_after_is_no_longer_what_the_name_means(
    up: World,
) -> None:
    """As with any function that was replaced; by value it works all the same."""
    a = up.import_()
    stock = [a.f]
    ascend_shims.apply()
    wrapper = [a.f]
    with pytest.raises(pickle.PicklingError, match="not the same object"):
        pickle.dumps(stock[0])
    ascend_shims.revert()
    with pytest.raises(pickle.PicklingError, match="not the same object"):
        pickle.dumps(wrapper[0])
    assert pickle.loads(pickle.dumps(stock[0])) is a.f is stock[0]
    sent = cloudpickle.dumps(wrapper[0])
    assert b"Engine" not in sent
    code = f"import pickle\nprint(pickle.loads(bytes.fromhex({sent.hex()!r}))(7))\n"
    assert up.run(code) == "7\n"
    assert up.run(f"{FIRST['absent']}\n{code}") == "7\n"


def test_a_patch_of_one_binding_cannot_travel_by_the_name_of_the_stock_one(
    up: World,
) -> None:
    """What has that name is another object, for every other reference stays stock."""
    up.write("UP/b.py", "from UP.a import f\n")
    up.gaps.clear()
    up.gap("one", P("b:f", scope="binding"))
    up.registry_file()
    b = up.import_("b")
    ascend_shims.apply()
    with pytest.raises(pickle.PicklingError, match="not the same object"):
        pickle.dumps(b.f)
    sent = cloudpickle.dumps(b.f).hex()
    assert up.run(
        f"import pickle\nprint(pickle.loads(bytes.fromhex({sent!r}))(2))\n"
    ) == ("20\n")
    ascend_shims.revert()
    assert pickle.loads(pickle.dumps(b.f)) is b.f
