"""Sizes of test frames, and mixes of sizes."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.model import IMIX, MOST_SIZES, FrameSize


@pytest.mark.parametrize(
    ("text", "name", "sequence"),
    [
        ("64", "64B", (64,)),
        (1518.0, "1518B", (1518,)),
        ("9018 B", "9018B", (9018,)),
        ("imix", "IMIX", IMIX.sequence),
        ("IMIX_v4_1", "IMIX_v4_1", IMIX.sequence),
        ("aaaabbbc", "aaaabbbc", (64, 64, 64, 64, 128, 128, 128, 256)),
        ("gi", "gi", (1518, 9000)),
        ("3x64,1x570", "3x64,1x570", (64, 64, 570, 64)),
    ],
)
def test_a_size_or_a_mix_is_read(text: str | float, name: str, sequence: tuple[int, ...]) -> None:
    assert FrameSize.parse(text) == FrameSize(name, sequence)


@pytest.mark.parametrize(
    "text", ["a", "aaj", "aaz", "a" * 65, "64,570", "3x64", "63", "9023", "40x64,30x570", "0x64,0x570"]
)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"frame size|a mix has"):
        FrameSize.parse(text)


WEIGHTS = st.dictionaries(st.integers(64, 9022), st.integers(1, 20), min_size=2, max_size=3)


@given(WEIGHTS)
def test_a_mix_has_the_weights_and_no_size_in_one_burst(weights: dict[int, int]) -> None:
    found = FrameSize.parse(",".join(f"{number}x{size}" for size, number in weights.items()))
    assert Counter(found.sequence) == weights and len(found.sequence) <= MOST_SIZES
    for size, number in weights.items():
        half = found.sequence[: len(found.sequence) // 2].count(size)
        assert abs(half - number / 2) <= len(weights)
