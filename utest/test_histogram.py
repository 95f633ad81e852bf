"""The histogram of latencies: its percentiles fit the measured values, and its export has the same content."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from podperf.model import (
    LONGEST_LATENCY_NS,
    Direction,
    DirectionResult,
    Latency,
    TrialResult,
    bucket_index,
    bucket_lower_ns,
    bucket_upper_ns,
)
from podperf.records.json_values import to_hdr

PRECISION = Fraction(1, 128)  # of a value: two significant digits
highest_index = next(index for index in range(10_000) if bucket_upper_ns(index) >= LONGEST_LATENCY_NS)


@given(st.dictionaries(st.integers(1, highest_index - 1), st.integers(1, 2**31), min_size=1, max_size=20))
def test_every_bucket_comes_back_from_the_export(counts: dict[int, int]) -> None:
    latency = Latency(bucket_lower_ns(min(counts)), 0.0, bucket_upper_ns(max(counts)), counts)
    histogram = HdrHistogram.decode(to_hdr(latency))
    assert histogram.get_total_count() == sum(counts.values())
    for index, count in counts.items():
        assert histogram.get_count_at_value(bucket_lower_ns(index)) == count
        assert histogram.get_count_at_value(bucket_upper_ns(index)) == count


def histogram(values: list[int]) -> Latency:
    """The tester's histogram of these latencies, in ns."""
    counts = Counter(map(bucket_index, values))
    return Latency(min(values), sum(values) / len(values), max(values), counts)


@given(st.integers(0, 2**40))
def test_a_value_lies_in_its_bucket_and_buckets_are_as_narrow_as_they_say(value: int) -> None:
    low, high = bucket_lower_ns(bucket_index(value)), bucket_upper_ns(bucket_index(value))
    assert low <= value <= high
    assert high - low <= low * PRECISION


@given(
    st.lists(st.integers(0, 2**40) | st.integers(5_000, 20_000), min_size=1, max_size=300),
    st.sampled_from([50, 90, 99, 99.9]) | st.integers(0, 100),
)
def test_a_percentile_is_that_of_the_sorted_values_to_the_precision_of_a_bucket(
    values: list[int], percent: float
) -> None:
    rank = max(1, math.ceil(len(values) * Fraction(str(percent)) / 100))
    exact = sorted(values)[rank - 1]
    found = histogram(values).percentile(percent)
    assert exact <= found <= min(max(values), exact * (1 + PRECISION))


@given(st.lists(st.integers(5_000, 2**40), min_size=1, max_size=3000), st.integers(0, 2**40))
def test_the_delay_variation_is_the_range_without_the_slowest_frames_and_a_constant_delay_is_no_part_of_it(
    values: list[int], more: int
) -> None:
    sorted_values = sorted(values)
    exact = sorted_values[math.ceil(len(values) * Fraction("0.999")) - 1] - sorted_values[0]
    found, later = histogram(values).variation, histogram([value + more for value in values]).variation
    assert exact <= found <= exact + max(values) * PRECISION
    assert abs(later - found) <= (max(values) + more) * PRECISION


@given(*[st.lists(st.integers(0, 2**40), min_size=1, max_size=50)] * 2)
def test_the_delay_variation_of_a_trial_is_that_of_the_direction_that_varies_more(
    one: list[int], other: list[int]
) -> None:
    ways = [
        DirectionResult(way, 1, 1, 1, 0, 0, 0, 1.0, latency=histogram(values))
        for way, values in zip(Direction, (one, other), strict=True)
    ]
    trial = TrialResult(None, 0.0, tuple(ways))  # type: ignore[arg-type]
    assert trial.delay_variation == max(histogram(one).variation, histogram(other).variation)
    assert TrialResult(None, 0.0, ()).delay_variation is None  # type: ignore[arg-type]


@given(*[st.lists(st.integers(0, 2**40), min_size=1, max_size=50)] * 2)
def test_latencies_taken_together_are_those_of_all_values(one: list[int], other: list[int]) -> None:
    both, expected = histogram(one).merged(histogram(other)), histogram(one + other)
    assert both.counts == expected.counts
    assert (both.minimum, both.maximum) == (expected.minimum, expected.maximum)
    assert math.isclose(both.mean, expected.mean, abs_tol=1e-9)
