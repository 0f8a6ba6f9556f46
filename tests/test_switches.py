"""What the user chose, read from the environment and handed on to children."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_shims.guard import config
from ascend_shims.spelling import DETECTORS
from ascend_shims.spelling import FALSE as FALSE_WORDS
from ascend_shims.spelling import TRUE as TRUE_WORDS
from ascend_shims.switches import NAMES, Switches, read_switches

GAPS = ["cos-sin", "kv-cache", "runtime-guard"]

TRUE = ["1", "true", "True", "TRUE", "yes", "on", " 1 ", "On"]
FALSE = ["0", "false", "False", "no", "off", " off ", "OFF"]


@pytest.mark.parametrize("value", ["", " ", "auto", "AUTO", " auto "])
def test_auto_is_the_default(value: str) -> None:
    switches = read_switches({"ASCEND_SHIMS": value})
    assert (switches.mode, switches.complaints) == ("auto", ())
    assert switches.choice("cos-sin").on is None
    assert read_switches({}) == read_switches({"ASCEND_SHIMS": value})


@pytest.mark.parametrize("value", TRUE)
def test_on_in_any_spelling(value: str) -> None:
    switches = read_switches({"ASCEND_SHIMS": value, "ASCEND_SHIMS_STRICT": value})
    assert (switches.mode, switches.strict, switches.complaints) == ("on", True, ())
    choice = switches.choice("cos-sin")
    assert (choice.on, choice.said_by) == (True, "ASCEND_SHIMS=on")


@pytest.mark.parametrize("value", FALSE)
def test_off_in_any_spelling(value: str) -> None:
    switches = read_switches({"ASCEND_SHIMS": value, "ASCEND_SHIMS_STRICT": value})
    assert (switches.mode, switches.strict, switches.complaints) == ("off", False, ())
    choice = switches.choice("cos-sin")
    assert (choice.on, choice.said_by) == (False, "ASCEND_SHIMS=off")


@pytest.mark.parametrize("value", ["2", "ja", "maybe", "offf", "-1"])
@pytest.mark.parametrize("name", ["ASCEND_SHIMS", "ASCEND_SHIMS_STRICT"])
def test_a_value_that_means_nothing_is_told_and_the_default_holds(
    name: str, value: str
) -> None:
    switches = read_switches({name: value})
    assert (switches.mode, switches.strict) == ("auto", False)
    assert len(switches.complaints) == 1
    meant = {"offf": "off", "-1": "1"}.get(value)
    near = f"; did you mean {meant!r}?" if meant else ""
    words = "1, true, yes, on, 0, false, no, off"
    words += ", auto" if name == "ASCEND_SHIMS" else ""
    assert switches.complaints[0] == (
        f"{name}={value} is not understood{near} (one of {words}); the default holds"
    )


@pytest.mark.parametrize(
    ("name", "value", "near"),
    [
        ("ASCEND_SHIMS_DEVICE", "npus", "npu"),
        ("ASCEND_SHIMS_DEVICE", "simulated", "sim"),
        ("ASCEND_SHIMS_DEVICE", "cuda:0", None),
        ("ASCEND_SHIMS_PREFER", "shim", "shims"),
        ("ASCEND_SHIMS_LANG", "zhcn", None),
        ("ASCEND_SHIMS_LANG", "zh_TW", "zh_CN"),
    ],
)
def test_a_word_that_does_not_exist_is_told_with_the_nearest(
    name: str, value: str, near: str | None
) -> None:
    switches = read_switches({name: value})
    assert (switches.device, switches.prefer) == ("auto", "plugin")
    assert len(switches.complaints) == 1
    words = {
        "ASCEND_SHIMS_DEVICE": "auto, npu, sim, none",
        "ASCEND_SHIMS_PREFER": "plugin, shims",
        "ASCEND_SHIMS_LANG": "en, zh_CN",
    }
    asked = f"; did you mean '{near}'?" if near else ""
    assert switches.complaints[0] == (
        f"{name}={value} is not understood{asked} (one of {words[name]}); "
        "the default holds"
    )


@pytest.mark.parametrize(
    "value", ["en", "C", "en_GB.UTF-8", "zh", " zh-Hans ", "zh_cn"]
)
def test_a_language_that_there_are_words_in_is_no_complaint(value: str) -> None:
    assert read_switches({"ASCEND_SHIMS_LANG": value}).complaints == ()


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("ASCEND_SHIMS_DISABEL", "ASCEND_SHIMS_DISABLE"),
        ("ASCEND_SHIMS_STRICTLY", "ASCEND_SHIMS_STRICT"),
        ("ASCEND_SHIMS_REGSTRY", "ASCEND_SHIMS_REGISTRY"),
        ("ASCEND_SHIMS_REGISTRES", "ASCEND_SHIMS_REGISTRIES"),
        ("ASCEND_SHIMS_GUARD_REPROT", "ASCEND_SHIMS_GUARD_REPORT"),
        ("ASCEND_SHIMS_SIM_HAZARD", "ASCEND_SHIMS_SIM_HAZARDS"),
    ],
)
def test_a_variable_that_does_not_exist_is_told_with_the_nearest(
    name: str, near: str
) -> None:
    switches = read_switches({name: "x"})
    assert switches.complaints == (
        f"{name} is not a variable of ascend-shims; did you mean '{near}'?",
    )


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("RANKS", "of", "one of 1, true, yes, on, 0, false, no, off"),
        ("RANKS", " Off ", None),
        ("RANKS_PATIENCE", "abc", "a number of seconds"),
        ("RANKS_PATIENCE", "-1", "a number of seconds"),
        ("RANKS_PATIENCE", "2.5", None),
        ("RANKS_PATIENCE", ".5", None),
        ("SIM_MEMORY", "lots", "a number of bytes, or one with a unit such as 512MiB"),
        ("SIM_MEMORY", "1.5g", None),
        ("SIM_MEMORY", "2 GiB", None),
        ("SIM_MEMORY", "1024", None),
        ("SIM_CHECKS", "2", "one of 1, true, yes, on, 0, false, no, off"),
        ("SIM_HAZARDS", "x", "one of 1, true, yes, on, 0, false, no, off"),
        ("SIM_QUICK", "maybe", "one of 1, true, yes, on, 0, false, no, off"),
        ("SIM_QUICK", "0", None),
        ("SUPER_KERNEL", "3", "one of 1, true, yes, on, 0, false, no, off"),
        ("ALLOW", "a b", "packages, separated by commas"),
        ("ALLOW", "a.b, c ,d", None),
        ("ALLOW", "a,", None),
        ("RANKS", "  ", None),
        ("CACHE", "of", "off, or a path such as ./cache"),
        ("CACHE", "OFF", None),
        ("CACHE", "/var/cache/shims", None),
        ("CACHE", "~/cache", None),
        ("CACHE", ".cache", None),
        ("GUARD", "nonfinite", "a settings file, or package.module:Class"),
        ("GUARD", "guard.yaml", None),
        ("GUARD", "/etc/guard", None),
        ("GUARD", "acme.guard:Guard", None),
        (
            "GUARD_DETECTORS",
            "nan",
            "a list of nonfinite-logits, repeated-tokens, low-acceptance",
        ),
        ("GUARD_DETECTORS", "nonfinite-logits , repeated-tokens,", None),
    ],
)
def test_values_that_others_read_are_looked_at_too(
    name: str, value: str, expected: str | None
) -> None:
    complaints = read_switches({f"ASCEND_SHIMS_{name}": value}).complaints
    if expected is None:
        assert complaints == ()
        return
    assert complaints == (
        f"ASCEND_SHIMS_{name}={value.strip()} is not understood ({expected}); "
        "the default holds",
    )


@pytest.mark.parametrize("name", ["FOO", "GAPS", "OFF", "QQQ"])
def test_what_all_names_begin_with_makes_none_alike(name: str) -> None:
    assert read_switches({f"ASCEND_SHIMS_{name}": "x"}).complaints == (
        f"ASCEND_SHIMS_{name} is not a variable of ascend-shims",
    )


def test_every_value_that_is_taken_is_told() -> None:
    told = re.findall(r"[a-z0-9]+", NAMES["ASCEND_SHIMS"])
    assert {"auto", *TRUE_WORDS, *FALSE_WORDS} <= set(told)


@pytest.mark.parametrize("name", ["ASCEND_SHIM", "ASCEND_SHIM_DISABLE"])
def test_a_name_that_is_nearly_ours_is_told(name: str) -> None:
    (said,) = read_switches({name: "off"}).complaints
    meant = name.replace("SHIM", "SHIMS")
    assert said == f"{name} is not a variable of ascend-shims; did you mean '{meant}'?"


def test_variables_of_others_are_none_of_our_business() -> None:
    environ = {"ASCEND_HOME": "x", "VLLM_USE_V1": "1", "ASCEND_SHIMSX": "1"}
    environ["ASCEND_SHIMS_GUARD_REPORT"] = "nan"
    assert read_switches(environ).complaints == ()


def test_lists_take_spaces_and_empty_parts() -> None:
    switches = read_switches(
        {"ASCEND_SHIMS_DISABLE": " cos-sin , ,kv-cache,", "ASCEND_SHIMS_ONLY": "  "}
    )
    assert switches.disable == {"cos-sin", "kv-cache"}
    assert switches.only is None
    assert switches.choice("cos-sin").said_by == "ASCEND_SHIMS_DISABLE"
    assert switches.choice("runtime-guard").on is None


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("ALLOW", "package"),
        ("ASSUME", "version"),
        ("DISABLE", "gap"),
        ("GUARD_DETECTORS", "detector"),
        ("ONLY", "gap"),
        ("REGISTRIES", "registry"),
    ],
)
def test_a_list_of_nothing_is_told_and_the_default_holds(name: str, what: str) -> None:
    switches = read_switches({f"ASCEND_SHIMS_{name}": " , ,"})
    assert switches.complaints == (
        f"ASCEND_SHIMS_{name}=, , names no {what}; the default holds",
    )
    assert (switches.only, switches.namespaces) == (None, None)


def test_detectors_that_need_no_settings_are_those_of_the_guard() -> None:
    for name in config.DETECTORS:
        try:
            config.named_settings(name)
        except config.GuardConfigurationError:
            assert name not in DETECTORS
        else:
            assert name in DETECTORS


@pytest.mark.parametrize(
    ("named", "hint"),
    [
        ("*", "ASCEND_SHIMS=off leaves all off, and without a list all are meant"),
        ("all", "ASCEND_SHIMS=off leaves all off, and without a list all are meant"),
        ("cos-sin kv-cache", "separate gaps by commas: cos-sin,kv-cache"),
        ("cos-sin nonsense", "did you mean 'cos-sin'?"),
        ("acme/lod", "did you mean 'acme/loud'?"),
        ("acme/*x", "did you mean 'acme/*'?"),
        ("nothing-alike", "there are cos-sin, kv-cache, acme/loud"),
    ],
)
def test_what_was_meant_by_the_name_of_no_gap(named: str, hint: str) -> None:
    known = ["cos-sin", "kv-cache", "acme/loud"]
    switches = read_switches({"ASCEND_SHIMS_DISABLE": named})
    assert switches.unknown(known) == (
        f"ASCEND_SHIMS_DISABLE names the gap {named!r}, which is not in the registry; "
        f"{hint}",
    )


def test_only_is_off_for_all_others() -> None:
    switches = read_switches({"ASCEND_SHIMS_ONLY": "cos-sin"})
    assert switches.choice("cos-sin").on is True
    assert switches.choice("kv-cache").on is False
    assert switches.choice("kv-cache").said_by == "ASCEND_SHIMS_ONLY"


def test_off_and_disable_win_over_only_and_on() -> None:
    switches = read_switches(
        {
            "ASCEND_SHIMS": "on",
            "ASCEND_SHIMS_ONLY": "cos-sin,kv-cache",
            "ASCEND_SHIMS_DISABLE": "cos-sin",
        }
    )
    assert switches.choice("cos-sin").on is False
    assert switches.choice("kv-cache").on is True
    off = read_switches({"ASCEND_SHIMS": "0", "ASCEND_SHIMS_ONLY": "cos-sin"})
    assert off.choice("cos-sin").on is False


def test_versions_to_assume() -> None:
    switches = read_switches(
        {
            "ASCEND_SHIMS_ASSUME": "vllm=0.28.0, torch_npu==2.13.0 ,"
            "vllm_ascend = 0.19.1rc2, a b=1"
        }
    )
    assert switches.assume == {
        "vllm": "0.28.0",
        "torch_npu": "2.13.0",
        "vllm_ascend": "0.19.1rc2",
    }
    assert len(switches.complaints) == 1


@pytest.mark.parametrize(
    "part",
    ["vllm", "vllm=", "=0.28", "vllm=dev", "vllm=0.1.dev1", "v llm=1", "vllm>=1"],
)
def test_what_is_no_version_to_assume_is_told(part: str) -> None:
    switches = read_switches({"ASCEND_SHIMS_ASSUME": part})
    assert switches.assume == {}
    assert switches.complaints == (
        f"ASCEND_SHIMS_ASSUME: {part!r} is not a package and a version; "
        "write it like vllm=0.28.0",
    )


def test_unknown_gaps_are_named_with_who_said_so_and_the_nearest() -> None:
    switches = read_switches(
        {"ASCEND_SHIMS_DISABLE": "kv-cach,cos-sin", "ASCEND_SHIMS_ONLY": "zzz,cos-sin"}
    )
    assert switches.unknown(GAPS) == (
        "ASCEND_SHIMS_DISABLE names the gap 'kv-cach', which is not in the registry; "
        "did you mean 'kv-cache'?",
        "ASCEND_SHIMS_ONLY names the gap 'zzz', which is not in the registry; "
        f"there are {', '.join(GAPS)}",
    )


def test_what_is_off_stays_off_when_more_is_said() -> None:
    base = read_switches({"ASCEND_SHIMS_DISABLE": "cos-sin"})
    more = base.narrowed(only=["cos-sin", "kv-cache"], said_by="apply()")
    assert more.choice("cos-sin").on is False
    assert more.choice("cos-sin").said_by == "ASCEND_SHIMS_DISABLE"
    assert more.choice("kv-cache").on is True
    assert more.choice("runtime-guard").said_by == "apply()"
    again = more.narrowed(only=["runtime-guard", "kv-cache"], said_by="apply()")
    assert again.only == frozenset({"kv-cache"})
    again = more.narrowed(disable=["kv-cache"], said_by="revert()")
    assert again.choice("kv-cache").said_by == "revert()"
    assert again.choice("cos-sin").said_by == "ASCEND_SHIMS_DISABLE"


@pytest.mark.parametrize(
    ("env", "api"), [*itertools.product([None, "0", "1"], [None, True, False])]
)
def test_strict_from_the_call_wins(env: str | None, api: bool | None) -> None:
    base = read_switches({"ASCEND_SHIMS_STRICT": env} if env else {})
    asked = base.narrowed(strict=api, said_by="apply()")
    assert asked.strict is (api if api is not None else env == "1")


SAID: list[tuple[Switches, dict[str, str]]] = [
    (Switches(), {}),
    (Switches(mode="off"), {"ASCEND_SHIMS": "off"}),
    (Switches(mode="on", only=frozenset()), {"ASCEND_SHIMS": "off"}),
    (
        Switches(only=frozenset({"kv-cache", "cos-sin"})),
        {"ASCEND_SHIMS_ONLY": "cos-sin,kv-cache"},
    ),
    (
        Switches(disable=frozenset({"kv-cache", "cos-sin"}), strict=True),
        {"ASCEND_SHIMS_DISABLE": "cos-sin,kv-cache", "ASCEND_SHIMS_STRICT": "1"},
    ),
    (
        Switches(device="sim", prefer="shims", registry=Path("/a/b.yaml")),
        {
            "ASCEND_SHIMS_DEVICE": "sim",
            "ASCEND_SHIMS_PREFER": "shims",
            "ASCEND_SHIMS_REGISTRY": "/a/b.yaml",
        },
    ),
    (
        Switches(allow=frozenset({"their_patches", "my.patches"})),
        {"ASCEND_SHIMS_ALLOW": "my.patches,their_patches"},
    ),
    (
        Switches(assume={"vllm": "0.28.0", "torch_npu": "2.13.0"}),
        {"ASCEND_SHIMS_ASSUME": "vllm=0.28.0,torch_npu=2.13.0"},
    ),
]


@pytest.mark.parametrize(("switches", "variables"), SAID)
def test_a_value_in_variables(switches: Switches, variables: dict[str, str]) -> None:
    assert switches.as_environment() == variables


def test_a_registry_from_the_call_wins() -> None:
    base = read_switches({"ASCEND_SHIMS_REGISTRY": "/a/b.yaml"})
    assert base.narrowed(said_by="apply()").registry == Path("/a/b.yaml")
    other = base.narrowed(registry=Path("/c.yaml"), said_by="apply()")
    assert other.registry == Path("/c.yaml")
    assert (base.registry_is_inherited, other.registry_is_inherited) == (True, False)
    assert base.narrowed(said_by="apply()").registry_is_inherited
    assert not Switches().registry_is_inherited


def test_what_is_allowed_adds_up() -> None:
    base = read_switches({"ASCEND_SHIMS_ALLOW": " a.b , c,"})
    assert base.allow == frozenset({"a.b", "c"})
    assert base.complaints == ()
    more = base.narrowed(allow=["d", "c"], said_by="apply()")
    assert more.allow == frozenset({"a.b", "c", "d"})
    assert read_switches({}).allow == frozenset()


def test_more_is_put_on_top_and_taken_off_again() -> None:
    more = Switches().narrowed(disable=["cos-sin", "kv-cache"], said_by="revert()")
    assert more.widened(["cos-sin", "never"]).disable == frozenset({"kv-cache"})
    assert more.widened([]) == more


gaps = st.sampled_from(GAPS)
words = st.fixed_dictionaries(
    {},
    optional={
        "ASCEND_SHIMS": st.sampled_from(["", "auto", "1", "0", "on", "off", "x"]),
        "ASCEND_SHIMS_DISABLE": st.lists(gaps, max_size=3).map(", ".join),
        "ASCEND_SHIMS_ONLY": st.lists(gaps, max_size=3).map(",".join),
        "ASCEND_SHIMS_STRICT": st.sampled_from(["", "1", "0", "yes", "maybe"]),
        "ASCEND_SHIMS_REGISTRY": st.sampled_from(["", "/a/b.yaml", " rel.yaml "]),
        "ASCEND_SHIMS_ALLOW": st.sampled_from(["", "a", " b.c , a,"]),
        "ASCEND_SHIMS_DEVICE": st.sampled_from(["", "auto", "npu", "sim", "none", "x"]),
        "ASCEND_SHIMS_PREFER": st.sampled_from(["", "plugin", "shims", "x"]),
        "ASCEND_SHIMS_ASSUME": st.sampled_from(
            ["", "vllm=0.28.0", "vllm=0.28,a=1", "x"]
        ),
    },
)


def meaning(switches: Switches) -> tuple[object, ...]:
    """What a child must decide alike."""
    choices = tuple(switches.choice(gap).on for gap in GAPS)
    return (
        choices,
        switches.strict,
        switches.registry,
        switches.device,
        switches.prefer,
        dict(switches.assume),
    )


@settings(deadline=None)
@given(
    words,
    st.none() | st.lists(gaps, max_size=3),
    st.lists(gaps, max_size=3),
    st.none() | st.booleans(),
)
def test_a_child_reads_what_its_parent_meant(
    environ: dict[str, str],
    only: list[str] | None,
    disable: list[str],
    strict: bool | None,
) -> None:
    base = read_switches(environ)
    parent = base.narrowed(only=only, disable=disable, strict=strict, said_by="apply()")
    said = parent.as_environment()
    assert set(said) <= set(NAMES)
    child = read_switches(said)
    assert child.complaints == ()
    assert meaning(child) == meaning(parent)
    for gap in GAPS:
        if base.choice(gap).on is False:
            assert parent.choice(gap).on is False
        if gap in disable or (only is not None and gap not in only):
            assert parent.choice(gap).on is False


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from([*NAMES, "ASCEND_SHIMS_X"]), st.text(max_size=12))
)
def test_no_text_is_an_error(environ: dict[str, str]) -> None:
    switches = read_switches(environ)
    assert switches.choice("cos-sin").on in (None, True, False)


def test_the_registry_is_a_path() -> None:
    switches = read_switches({"ASCEND_SHIMS_REGISTRY": "  /a/b.yaml "})
    assert switches.registry == Path("/a/b.yaml")
    assert read_switches({"ASCEND_SHIMS_REGISTRY": " "}).registry is None


def test_no_variable_of_ours_starts_like_vllms() -> None:
    """vLLM warns of, or refuses, names of its own that it does not know."""
    assert all(name.startswith("ASCEND_SHIMS") for name in NAMES)


# Registries of plugins


@pytest.mark.parametrize(
    ("said", "namespaces"),
    [
        (None, None),
        ("", None),
        ("all", None),
        ("none", frozenset()),
        ("acme", {"acme"}),
        (" acme , other ", {"acme", "other"}),
        ("acme,none", {"acme", "none"}),
        ("all,acme", {"all", "acme"}),
    ],
)
def test_which_registries_are_wanted(
    said: str | None, namespaces: set[str] | None
) -> None:
    environ = {} if said is None else {"ASCEND_SHIMS_REGISTRIES": said}
    switches = read_switches(environ)
    assert (switches.namespaces, switches.complaints) == (namespaces, ())
    again = read_switches(switches.as_environment())
    assert again.namespaces == switches.namespaces


@pytest.mark.parametrize(
    ("namespaces", "said"),
    [
        (None, None),
        (frozenset(), "none"),
        ({"acme"}, "acme"),
        ({"other", "acme"}, "acme,other"),
    ],
)
def test_how_they_travel(namespaces: set[str] | None, said: str | None) -> None:
    wanted = None if namespaces is None else frozenset(namespaces)
    environ = Switches(namespaces=wanted).as_environment()
    assert environ.get("ASCEND_SHIMS_REGISTRIES") == said


SPACED = ["cos-sin", "acme/fast", "acme/deep/er", "other/one"]


@pytest.mark.parametrize(
    ("named", "complaint"),
    [
        ("acme/fast", None),
        ("acme/*", None),
        ("acme/deep/*", None),
        ("other/*", None),
        ("cos-sin/*", "did you mean 'cos-sin'?"),
        ("acem/*", "did you mean 'acme/*'?"),
        ("acme/fats", "did you mean 'acme/fast'?"),
        ("/*", "did you mean 'acme/*'?"),
        ("zzz", "there are cos-sin, acme/fast, acme/deep/er, other/one"),
    ],
)
def test_a_gap_or_namespace_that_there_is_not(
    named: str, complaint: str | None
) -> None:
    said = read_switches({"ASCEND_SHIMS_DISABLE": named}).unknown(SPACED)
    if complaint is None:
        assert said == ()
        return
    assert said == (
        f"ASCEND_SHIMS_DISABLE names the gap {named!r}, which is not in the registry; "
        f"{complaint}",
    )


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ({"a/x"}, {"a/*"}, {"a/x"}),
        ({"a/*"}, {"a/x"}, {"a/x"}),
        ({"a/*", "b"}, {"a/x", "b"}, {"a/x", "b"}),
        ({"a/*"}, {"b/*"}, set()),
        ({"a/*"}, {"a/*"}, {"a/*"}),
    ],
)
def test_two_lists_of_what_to_apply(
    one: set[str], other: set[str], both: set[str]
) -> None:
    switches = Switches(only=frozenset(one), said_by={"only": "x"})
    assert switches.narrowed(only=other, said_by="y").only == both


def test_who_named_the_registry_is_told() -> None:
    switches = read_switches({"ASCEND_SHIMS_REGISTRY": "/x.yaml"})
    assert switches.registry_is_inherited
    named = switches.narrowed(registry=Path("/y.yaml"), said_by="apply()")
    assert (named.registry, named.said_by["registry"]) == (Path("/y.yaml"), "apply()")
    assert not named.registry_is_inherited


@pytest.mark.parametrize("said", ["vllm=0.28.0", "vllm==0.28.0", "vllm = 0.28.0"])
def test_a_version_to_assume(said: str) -> None:
    assert read_switches({"ASCEND_SHIMS_ASSUME": said}).assume == {"vllm": "0.28.0"}


def test_the_nearest_word_is_one() -> None:
    (said,) = read_switches({"ASCEND_SHIMS": "ofn"}).complaints
    assert said.count("did you mean") == 1
    assert "did you mean 'on'?" in said or "did you mean 'off'?" in said
