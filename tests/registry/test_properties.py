"""Any registry survives the way through YAML; any mistake is found in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ascend_shims.registry import (
    Condition,
    Gap,
    Needs,
    Patch,
    Registry,
    RegistryError,
    Reliance,
    Sign,
)
from ascend_shims.registry.document import compose
from ascend_shims.registry.structure import examine

LoadText = Callable[[str], Registry]

IDS = ("alpha", "beta", "gamma-ray", "delta", "e2-4")
NAMES = ("one", "two", "Three", "four", "five", "borrowed", "renamed")

quick = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

# PyYAML writes its own line breaks into plain files and reads them back as spaces.
characters = st.characters(
    exclude_categories=["Cs"], exclude_characters="\x85\u2028\u2029"
)
texts = st.text(characters, min_size=1, max_size=30)
prose = st.lists(texts, max_size=2).map(tuple)
gap_ranges = st.sampled_from([{}, {"up": ">=0.27,<0.40"}, {"torch_npu": "~=2.9"}])
patch_ranges = st.sampled_from(
    [{}, {"up": "<0.30"}, {"up": "!=0.28", "torch": "==2.*"}]
)
reliance_ranges = st.sampled_from([{}, {"up": "==0.28.*"}])
dotted = st.from_regex(r"[A-Za-z_]\w{0,8}(\.[a-z_]\w{0,8}){0,2}", fullmatch=True)
symbols = st.builds("up.{}:{}".format, dotted, dotted)


def choices(struct: type[msgspec.Struct], field: str) -> st.SearchStrategy[Any]:
    """The values of a field that may have a few only."""
    fields = {f.name: f for f in msgspec.structs.fields(struct)}
    return st.sampled_from(fields[field].type.__args__)


names = st.from_regex(r"\*?[a-z_]\w{0,6}\*?", fullmatch=True)
paths = st.from_regex(r"\*?[a-z_]\w{0,6}(\.[a-z_]\w{0,4}\*?){0,2}", fullmatch=True)


@st.composite
def conditions(draw: st.DrawFn) -> Condition:
    key = draw(st.sampled_from(PREDICATES))
    value: Any
    if key == "exists":
        value = draw(st.booleans())
    else:
        pattern = paths if key.startswith("reads") else names
        value = draw(pattern | st.lists(pattern, min_size=1, max_size=3).map(tuple))
    one = draw(symbols)
    if draw(st.booleans()) and not key.startswith("takes"):
        one = one.partition(":")[0]
    many = (one, *draw(st.lists(symbols, max_size=2)))
    return Condition(symbol=draw(st.sampled_from([one, many])), **{key: value})


PREDICATES = [name for name in Condition.__struct_fields__ if name != "symbol"]
probes = st.lists(
    st.builds(
        Sign,
        says=texts,
        all=st.lists(conditions(), min_size=1, max_size=3).map(tuple),
    ),
    max_size=2,
).map(tuple)


@st.composite
def patches(draw: st.DrawFn, number: int) -> Patch:
    # No two patches of a registry share a target, or they would need an order.
    one, other = f"up.m{number}:{draw(dotted)}", f"up.m{number}.n:{draw(dotted)}"
    targets: list[str | tuple[str, ...]] = [one, (one,), (one, other)]
    return Patch(
        target=draw(st.sampled_from(targets)),
        kind=draw(choices(Patch, "kind")),
        replacement=draw(st.sampled_from(NAMES)),
        versions=draw(patch_ranges),
        scope=draw(choices(Patch, "scope")),
        relies_on=draw(
            st.lists(
                st.builds(
                    Reliance,
                    symbol=symbols,
                    how=choices(Reliance, "how"),
                    versions=reliance_ranges,
                    by_keyword=st.booleans(),
                    copy=st.none() | st.sampled_from(NAMES),
                ),
                max_size=2,
            ).map(tuple)
        ),
        waits_for=draw(st.none() | st.sampled_from(["up", "up.late"])),
        swap_is_safe=draw(st.none() | texts),
    )


@st.composite
def registries(draw: st.DrawFn) -> Registry:
    ids = draw(st.permutations(IDS).map(lambda order: order[:3]))
    gaps = []
    for number, gap_id in enumerate(draw(st.sampled_from([ids, ids[:1], ids[:2]]))):
        others = (
            st.lists(st.sampled_from(ids[:number]), unique=True)
            if number
            else (st.just([]))
        )
        status = draw(choices(Gap, "status"))
        numbers = range(number * 10, number * 10 + draw(st.integers(0, 2)))
        own = () if status == "retired" else tuple(draw(patches(n)) for n in numbers)
        gaps.append(
            Gap(
                id=gap_id,
                title=draw(texts),
                status=status,
                kind=draw(choices(Gap, "kind")),
                why=draw(texts),
                remove_when=draw(texts),
                versions=draw(gap_ranges),
                default=draw(choices(Gap, "default")),
                needs=Needs(device=draw(st.booleans()), gaps=tuple(draw(others))),
                after=tuple(draw(others)),
                patches=own,
                unpatched=None if own else draw(texts),
                removal_probe=() if status == "retired" else draw(probes),
                downstream=draw(prose),
                references=draw(prose),
            )
        )
    return Registry(
        schema=1,
        upstreams=("up", "torch"),
        package="stand_in.patches",
        gaps=tuple(gaps),
    )


def plain(registry: Registry) -> Any:
    return msgspec.json.decode(msgspec.json.encode(registry))


@quick
@given(
    registry=registries(),
    style=st.fixed_dictionaries(
        {
            "default_flow_style": st.sampled_from([True, False, None]),
            "sort_keys": st.booleans(),
            "allow_unicode": st.booleans(),
            "width": st.sampled_from([20, 80, 10_000]),
        }
    ),
)
def test_a_registry_survives_the_way_through_yaml(
    registry: Registry, style: dict[str, Any], load_text: LoadText
) -> None:
    text = yaml.safe_dump(plain(registry), **style)
    assert load_text(text) == registry


@quick
@given(registry=registries())
def test_defaults_may_be_left_out(registry: Registry, load_text: LoadText) -> None:
    data = plain(registry)
    for gap in data["gaps"]:
        for key in [key for key, value in gap.items() if value in (None, [], {})]:
            del gap[key]
    assert load_text(yaml.safe_dump(data)) == registry


KEYS = {
    kind: {field.name: field.required for field in msgspec.structs.fields(kind)}
    for kind in (Registry, Gap, Needs, Patch, Reliance, Sign, Condition)
}
Place = tuple[Any, ...]


def mappings(data: dict[str, Any]) -> Iterator[tuple[Place, dict[str, bool]]]:
    """Where the structs of a registry lie in its data, with their keys."""
    yield (), KEYS[Registry]
    for number, gap in enumerate(data["gaps"]):
        place = ("gaps", number)
        yield place, KEYS[Gap]
        yield (*place, "needs"), KEYS[Needs]
        for index, sign in enumerate(gap["removal_probe"]):
            yield (*place, "removal_probe", index), KEYS[Sign]
            for which in range(len(sign["all"])):
                yield (*place, "removal_probe", index, "all", which), KEYS[Condition]
        for index, patch in enumerate(gap["patches"]):
            yield (*place, "patches", index), KEYS[Patch]
            for which in range(len(patch["relies_on"])):
                yield (*place, "patches", index, "relies_on", which), KEYS[Reliance]


def at(data: Any, place: Place) -> Any:
    for step in place:
        data = data[step]
    return data


def node_at(text: str, place: Place) -> yaml.Node:
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    assert node is not None
    for step in place:
        if isinstance(step, int):
            node = node.value[step]
        else:
            node = next(value for key, value in node.value if key.value == step)
    return node


def place_of(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


# Aliases would move the place of a part that occurs twice.
class Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


@quick
@given(registry=registries(), data=st.data())
def test_a_key_that_is_gone_is_missed_where_it_was(
    registry: Registry, data: st.DataObject, load_text: LoadText
) -> None:
    content = plain(registry)
    place, keys = data.draw(
        st.sampled_from([m for m in mappings(content) if any(m[1].values())])
    )
    gone = data.draw(st.sampled_from([key for key, needed in keys.items() if needed]))
    del at(content, place)[gone]
    text = yaml.dump(content, Dumper=Plain, sort_keys=False)
    with pytest.raises(RegistryError) as caught:
        load_text(text)
    line, column = place_of(node_at(text, place))
    assert f"gap_registry.yaml:{line}:{column}: `{gone}` is missing" in str(
        caught.value
    )


@quick
@given(
    registry=registries(),
    data=st.data(),
    change=st.sampled_from(
        [
            lambda key: key + "s",
            lambda key: key[1:],
            lambda key: key[:1] + key[2:] + "x",
            lambda key: key.upper(),
            lambda key: f"{key[1]}{key[0]}{key[2:]}",
        ]
    ),
)
def test_a_key_that_is_renamed_is_found_and_the_right_one_offered(
    registry: Registry,
    data: st.DataObject,
    change: Callable[[str], str],
    load_text: LoadText,
) -> None:
    content = plain(registry)
    place, keys = data.draw(st.sampled_from(list(mappings(content))))
    right = data.draw(st.sampled_from(list(keys)))
    wrong = change(right)
    mapping = at(content, place)
    renamed = {wrong if key == right else key: mapping[key] for key in list(mapping)}
    mapping.clear()
    mapping.update(renamed)
    text = yaml.dump(content, Dumper=Plain, sort_keys=False)
    with pytest.raises(RegistryError) as caught:
        load_text(text)
    node = node_at(text, place)
    key = next(key for key, _ in node.value if key.value == wrong)
    found = [p for p in caught.value.problems if (p.line, p.column) == place_of(key)]
    assert [problem.message for problem in found][:1] == [f"unknown key `{wrong}`"]
    if len(right) > 4 and wrong != right.upper():
        assert [problem.fix for problem in found][:1] == [f"did you mean `{right}`?"]


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.28, "", "wrap", "open", "on", "up.m:f", "alpha", "1", "1.0"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["up", "id", "gaps"]), inner, max_size=2)
    ),
    max_leaves=4,
)


def every_place(data: Any, place: Place = ()) -> Iterator[Place]:
    yield place
    if isinstance(data, dict):
        for key, value in data.items():
            yield from every_place(value, (*place, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from every_place(value, (*place, index))


@settings(quick, max_examples=100)
@given(registry=registries(), data=st.data(), value=values)
def test_the_walk_accepts_what_msgspec_accepts(
    registry: Registry, data: st.DataObject, value: Any
) -> None:
    content = plain(registry)
    place = data.draw(st.sampled_from(list(every_place(content))))
    if place:
        at(content, place[:-1])[place[-1]] = value
    else:
        content = value
    document = compose(yaml.dump(content, Dumper=Plain), "f.yaml")
    assert document.data == content
    examined = examine(document)
    try:
        msgspec.convert(content, Registry)
    except msgspec.ValidationError:
        assert examined.problems
        return
    assert examined.problems == ()
    assert examined.data == content
