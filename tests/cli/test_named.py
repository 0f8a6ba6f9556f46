"""What is named on a command line, and what is said where there is no such thing."""

from __future__ import annotations

from typing import Any

import click
import pytest

from ascend_shims.cli.named import OneOf, gap_named, gaps_named
from ascend_shims.upstream.watched import Role

IDS = ["cos-sin", "kv-cache", "acme/fast-rope", "acme/deep/er"]


@pytest.mark.parametrize(
    ("names", "meant"),
    [
        ([], []),
        (["kv-cache"], ["kv-cache"]),
        (["acme/*"], ["acme/fast-rope"]),
        (["acme/deep/*", "cos-sin"], ["acme/deep/er", "cos-sin"]),
    ],
)
def test_what_names_mean(names: list[str], meant: list[str]) -> None:
    assert gaps_named(names, IDS) == set(meant)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("kv-cach", "no gap is called 'kv-cach'; did you mean kv-cache?"),
        ("KV-CACHE", "no gap is called 'KV-CACHE'; did you mean kv-cache?"),
        ("fast-rope", "no gap is called 'fast-rope'; did you mean acme/fast-rope?"),
        ("zzz", f"no gap is called 'zzz'; there are {', '.join(IDS)}"),
    ],
)
def test_a_name_of_none(name: str, said: str) -> None:
    with pytest.raises(click.BadParameter) as one:
        gap_named(name, IDS)
    assert one.value.format_message() == f"Invalid value for 'GAP': {said}"
    with pytest.raises(click.BadParameter) as several:
        gaps_named(["kv-cache", name], IDS)
    assert several.value.format_message() == f"Invalid value for '--gap': {said}"


def test_what_is_said_of_a_name_may_be_another_thing() -> None:
    with pytest.raises(click.BadParameter, match="zzz is nothing; there are a"):
        gaps_named(["zzz"], ["a"], unknown=lambda name: f"{name} is nothing")


@pytest.mark.parametrize(
    ("besides", "said"),
    [
        ({}, "there are a, b, c, d"),
        ({"d": "watch"}, "there are a, b, c; watched without a patch: d"),
        (
            {"b": "companion", "d": "watch", "c": "companion"},
            "there are a; companions of gaps: b, c; watched without a patch: d",
        ),
        (dict.fromkeys("abcd", "watch"), "watched without a patch: a, b, c, d"),
    ],
)
def test_what_is_no_gap_is_not_called_one(besides: dict[str, Role], said: str) -> None:
    assert gaps_named(["d"], "abcd", besides=besides) == {"d"}
    with pytest.raises(click.BadParameter) as error:
        gaps_named(["zzz"], "abcd", besides=besides)
    assert error.value.message == f"no gap is called 'zzz'; {said}"


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("aplied", "'aplied' is none of these; did you mean applied?"),
        ("zzz", "'zzz' is not one of 'applied', 'off'."),
    ],
)
def test_of_a_misspelled_word_the_nearest_is_told_alone(word: str, said: str) -> None:
    choice = OneOf(["applied", "off"])
    assert choice.convert("off", None, None) == "off"
    with pytest.raises(click.BadParameter) as error:
        choice.convert(word, None, None)
    assert error.value.message == said


@pytest.mark.parametrize("command", ["show", "verify"])
def test_every_command_says_the_same_of_a_gap_that_there_is_not(
    command: str, shims: Any
) -> None:
    done = shims(command, "lod")
    assert done.returncode == 2
    said = "Invalid value for 'GAP': no gap is called 'lod'; did you mean loud?"
    assert said in done.stderr
