"""What the detectors find, and what they leave alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ascend_shims.guard.config import (
    Detectors,
    DetectorSettings,
    ForbiddenText,
    GuardConfigurationError,
    LowAcceptance,
    NonfiniteLogits,
    RepeatedTokens,
)
from ascend_shims.guard.detectors import (
    Acceptance,
    Forbidden,
    LogitsDetector,
    Nonfinite,
    Repetition,
    TokenDetector,
    build,
)
from ascend_shims.guard.protocol import Batch

KINDS = {"nan": torch.nan, "inf": torch.inf, "-inf": -torch.inf}


def judged(
    logits: torch.Tensor, batch: Batch, **settings: Any
) -> dict[str | None, dict[str, Any]]:
    detector = Nonfinite(NonfiniteLogits(**settings))
    before = logits.clone()
    found = dict(detector.judge(detector.measure(logits), batch))
    assert torch.equal(logits.nan_to_num(7), before.nan_to_num(7))
    return {request: dict(evidence) for request, evidence in found.items()}


class TestNonfinite:
    @given(
        rows=st.lists(st.integers(1, 4), min_size=1, max_size=5),
        bad=st.lists(
            st.tuples(
                st.integers(0, 19), st.integers(0, 10), st.sampled_from(sorted(KINDS))
            ),
            max_size=8,
        ),
        dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float16]),
        allow=st.booleans(),
    )
    def test_counts_each_kind_by_request(
        self,
        rows: list[int],
        bad: list[tuple[int, int, str]],
        dtype: torch.dtype,
        allow: bool,
    ) -> None:
        total = sum(rows)
        logits = torch.randn(total, 11).to(dtype)
        expected: dict[tuple[int, int], str] = {}
        for row, column, kind in bad:
            logits[row % total, column] = KINDS[kind]
            expected[row % total, column] = kind
        starts = [sum(rows[:index]) for index in range(len(rows) + 1)]
        names = [f"r{index}" for index in range(len(rows))]
        found = judged(logits, Batch(names, starts, ()), allow_negative_infinity=allow)

        wrong = {
            cell for cell, kind in expected.items() if not (allow and kind == "-inf")
        }
        for index, name in enumerate(names):
            first, last = starts[index], starts[index + 1]
            own = sorted({row for row, _ in wrong if first <= row < last})
            if not own:
                assert name not in found
                continue
            counts = {
                kind: sum(
                    1 for cell, k in expected.items() if cell[0] in own and k == kind
                )
                for kind in KINDS
            }
            assert found[name] == {**counts, "rows": [row - first for row in own]}

    def test_rows_that_belong_to_nobody_known(self) -> None:
        logits = torch.zeros(3, 4)
        logits[1] = torch.nan
        everything = {"nan": 4, "inf": 0, "-inf": 0, "rows": [1]}
        for starts in ((), (0, 1, 2)):
            batch = Batch(("a", "b"), starts, ())
            assert judged(logits, batch) == {
                None: {**everything, "requests": ["a", "b"]}
            }

    def test_a_request_without_rows(self) -> None:
        logits = torch.full((1, 2), torch.inf)
        found = judged(logits, Batch(("prefilling", "b"), (0, 0, 1), ()))
        assert found == {"b": {"nan": 0, "inf": 2, "-inf": 0, "rows": [0]}}

    def test_no_rows_at_all(self) -> None:
        assert judged(torch.zeros(0, 4), Batch((), (0,), ())) == {}

    def test_counts_beyond_the_range_of_small_types(self) -> None:
        found = judged(
            torch.full((1, 70_000), torch.nan).half(), Batch(("a",), (0, 1), ())
        )
        assert found["a"]["nan"] == 70_000


def repeats(
    tokens: Sequence[int], repeats: int, longest: int, chunks: Sequence[int] = (1,)
) -> list[dict[str, Any]]:
    """What is found while the tokens arrive in chunks of the given sizes."""
    detector = Repetition(RepeatedTokens(repeats=repeats, longest_period=longest))
    found, position, turn = [], 0, 0
    while position < len(tokens):
        size = chunks[turn % len(chunks)]
        evidence = detector.observe("a", tokens[position : position + size], 0)
        if evidence is not None:
            found.append(dict(evidence))
        position, turn = position + size, turn + 1
    return found


def has_repetition(tokens: Sequence[int], count: int, longest: int) -> bool:
    """The definition, by brute force."""
    return any(
        tokens[start : start + period] * count == tokens[start : start + period * count]
        for period in range(1, longest + 1)
        for start in range(len(tokens) - period * count + 1)
    )


class TestRepetition:
    @given(
        tokens=st.lists(st.integers(0, 2), max_size=40),
        count=st.integers(2, 5),
        longest=st.integers(1, 4),
        chunks=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    )
    def test_finds_what_the_definition_says(
        self, tokens: list[int], count: int, longest: int, chunks: list[int]
    ) -> None:
        found = repeats(tokens, count, longest, chunks)
        assert bool(found) == has_repetition(tokens, count, longest)

    def test_evidence(self) -> None:
        assert repeats([9, 1, 2, 1, 2, 1, 2], 3, 4) == [
            {"tokens": [1, 2], "repeats": 3, "output_tokens": 7}
        ]

    def test_the_shortest_period_is_named(self) -> None:
        assert repeats([5] * 12, 3, 4)[0]["tokens"] == [5]

    def test_a_run_is_said_once_and_again_after_it_broke(self) -> None:
        assert len(repeats([5] * 50, 3, 4)) == 1
        assert len(repeats([5] * 5 + [1, 2, 3] + [5] * 5, 3, 4)) == 2

    def test_requests_are_apart_and_forgotten(self) -> None:
        detector = Repetition(RepeatedTokens(repeats=3, longest_period=1))
        assert detector.observe("a", [1, 1], 0) is None
        assert detector.observe("b", [1], 0) is None
        detector.forget("a")
        detector.forget("nobody")
        assert detector.observe("a", [1], 0) is None
        assert detector.observe("b", [1, 1], 0) is not None

    def test_steps_without_tokens_cost_nothing(self) -> None:
        detector = Repetition(RepeatedTokens())
        assert detector.observe("prefilling", [], 0) is None
        assert not detector._runs


class TestAcceptance:
    @given(
        steps=st.lists(
            st.integers(1, 4).flatmap(
                lambda d: st.tuples(st.just(d), st.integers(0, d))
            ),
            min_size=1,
            max_size=60,
        ),
        window=st.integers(1, 30),
        minimum=st.floats(0, 1),
    )
    def test_judges_whole_windows(
        self, steps: list[tuple[int, int]], window: int, minimum: float
    ) -> None:
        detector = Acceptance(LowAcceptance(window=window, minimum=minimum))
        proposed = accepted = 0
        for drafts, kept in steps:
            evidence = detector.observe("a", [0] * (kept + 1), drafts)
            proposed, accepted = proposed + drafts, accepted + kept
            low = proposed >= window and accepted < minimum * proposed
            assert (evidence is not None) == low
            if evidence is not None:
                assert (evidence["proposed"], evidence["accepted"]) == (
                    proposed,
                    accepted,
                )
            if proposed >= window:
                proposed = accepted = 0

    def test_steps_that_verify_nothing_do_not_count(self) -> None:
        detector = Acceptance(LowAcceptance(window=1, minimum=1.0))
        assert detector.observe("a", [1], 0) is None
        assert detector.observe("a", [], 3) is None
        assert not detector._tally
        assert detector.observe("a", [1], 3) is not None


class TestForbidden:
    @staticmethod
    def decode(tokens: Sequence[int]) -> str:
        return "".join(chr(token) for token in tokens)

    def feed(self, detector: Forbidden, text: str) -> list[list[str]]:
        found = [detector.observe("a", [ord(letter)]) for letter in text]
        return [evidence["patterns"] for evidence in found if evidence is not None]

    def test_each_pattern_once_a_request(self) -> None:
        settings = ForbiddenText(patterns=("secret", r"\d{3}"))
        detector = Forbidden(settings, self.decode)
        assert self.feed(detector, "a secret, the secret 12 345 678") == [
            ["secret"],
            [r"\d{3}"],
        ]
        assert detector.observe("b", [ord(letter) for letter in "secret"]) == {
            "patterns": ["secret"]
        }
        detector.forget("a")
        assert self.feed(detector, "secret") == [["secret"]]

    def test_only_the_window_is_decoded(self) -> None:
        lengths: list[int] = []

        def decode(tokens: Sequence[int]) -> str:
            lengths.append(len(tokens))
            return self.decode(tokens)

        detector = Forbidden(ForbiddenText(patterns=("ab",), window=4), decode)
        assert self.feed(detector, "a1234b") == []
        assert max(lengths) == 4

    def test_without_a_tokenizer_it_says_so(self) -> None:
        detector = Forbidden(ForbiddenText(patterns=("x",)), None)
        with pytest.raises(GuardConfigurationError, match="tokenizer"):
            detector.observe("a", [1])


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        (NonfiniteLogits(), LogitsDetector),
        (RepeatedTokens(), TokenDetector),
        (LowAcceptance(), TokenDetector),
        (ForbiddenText(patterns=("x",)), TokenDetector),
    ],
)
def test_every_setting_has_a_detector_of_its_name(
    settings: DetectorSettings, kind: type
) -> None:
    detector = build(settings, lambda: None)
    other = {LogitsDetector: TokenDetector, TokenDetector: LogitsDetector}[kind]
    assert isinstance(detector, kind)
    assert not isinstance(detector, other)
    field = detector.name.replace("-", "_")
    assert Detectors(**{field: settings}).chosen() == {detector.name: settings}


def test_settings_of_nothing_known_are_refused() -> None:
    with pytest.raises(GuardConfigurationError):
        build(DetectorSettings(), lambda: None)
