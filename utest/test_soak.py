"""Soak: the bound on the loss, and memory over time."""

from __future__ import annotations

import json
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podperf.kernel.memory import kernel_memory, resident_memory
from podperf.methods.soak import (
    CONFIDENCE,
    FLAT_BYTES,
    Interval,
    MemoryReading,
    Soak,
    SoakResult,
    growth,
    is_flat,
    most_expected,
)
from scripted_host import ScriptedHost
from simulated_dut import SimulatedDut


def at_most(count: int, mean: float) -> float:
    """The probability that a Poisson variable of this mean is at most `count`."""
    return sum(math.exp(each * math.log(mean) - mean - math.lgamma(each + 1)) for each in range(count + 1))


def test_without_loss_the_bound_is_the_rule_of_three() -> None:
    assert most_expected(0) == pytest.approx(3.0, abs=0.01)


@given(lost=st.integers(0, 2000))
def test_with_the_bound_so_little_loss_has_a_chance_of_five_per_cent(lost: int) -> None:
    assert at_most(lost, most_expected(lost)) == pytest.approx(1 - CONFIDENCE, abs=0.002)


@given(lost=st.integers(1, 10**6), clump=st.floats(1, 1000))
def test_clumps_make_the_bound_wider(lost: int, clump: float) -> None:
    assert lost < most_expected(lost) <= most_expected(lost, clump) * (1 + 1e-9)


@given(mean=st.floats(0.2, 20), clump=st.integers(1, 50), seed=st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_the_bound_holds_in_95_of_100_soaks_also_with_clumps(mean: float, clump: int, seed: int) -> None:
    chance, rounds, number, each = random.Random(seed), 200, 40, 100_000
    true = mean * clump / each / number

    def clumps() -> int:
        count, left = 0, chance.expovariate(1.0)
        while left < mean / number:
            count, left = count + 1, left + chance.expovariate(1.0)
        return count

    def held() -> bool:
        intervals = tuple(Interval(each, clump * clumps(), 1.0, MemoryReading()) for _ in range(number))
        return SoakResult(intervals, 1e5, 1e5, 1.0).loss_bound >= true or not any(one.lost for one in intervals)

    assert sum(held() for _ in range(rounds)) >= 0.85 * rounds


def soak(dut: SimulatedDut, memory: list[int]) -> SoakResult:
    readings = iter(memory)
    return Soak(1e5, len(memory) * 3.0, 3.0, lambda: MemoryReading({"testpmd (1)": next(readings)}), dut.clock).run(dut)


def test_the_load_is_below_the_ndr_and_goes_in_intervals() -> None:
    dut = SimulatedDut(1e6, 1e6, overhead=0.5)
    result = soak(dut, [2**20] * 10)
    assert [(trial.trial.load, trial.trial.duration) for trial in dut.trials] == [(9e4, 3.0)] * 10
    assert (result.sent, result.lost) == (2_700_000, 0)
    assert [interval.ended for interval in result.intervals] == pytest.approx([3.5 * each for each in range(1, 11)])
    assert result.metrics["loss_bound"].value == pytest.approx(-math.log(0.05) / 2_700_000)
    assert result.metrics["memory_growth"].value == 0


def test_the_last_interval_is_as_short_as_the_rest() -> None:
    dut = SimulatedDut(1e6, 1e6)
    Soak(1e5, 7.0, 3.0, MemoryReading, dut.clock).run(dut)
    assert [trial.trial.duration for trial in dut.trials] == [3.0, 3.0, 1.0]


def test_loss_in_one_interval_is_a_clump() -> None:
    intervals = tuple(Interval(10_000, 100 * (place == 3), 1.0, MemoryReading()) for place in range(10))
    result = SoakResult(intervals, 1e4, 1e4, 1.0)
    assert result.dispersion == pytest.approx(100)
    assert result.loss_bound == pytest.approx(100 * most_expected(1) / 100_000)
    record = json.loads(json.dumps(result.as_record()))
    assert (record["intervals_with_loss"], record["lost"], record["missing"]["memory growth"][:8]) == (
        1,
        100,
        "not read",
    )


@pytest.mark.parametrize(
    ("amounts", "grown"),
    [
        ([10**8] * 9, 0),
        ([10**8 + 10**6 * each for each in range(9)], 6 * 10**6),
        ([5 * 10**7, *[10**8] * 8], 0),  # one reading before all pages were touched
        ([10**8, 2 * 10**8, *[10**8] * 7], 0),  # one reading at a moment with more
    ],
)
def test_growth_is_from_the_first_third_to_the_last(amounts: list[int], grown: int) -> None:
    assert growth(amounts) == grown
    assert is_flat(amounts) == (grown == 0)


@given(amount=st.integers(0, 10**10), more=st.integers(0, 10**9))
def test_memory_is_flat_within_its_limit(amount: int, more: int) -> None:
    assert is_flat([amount] * 3 + [amount + more] * 3) == (more <= max(FLAT_BYTES, 0.01 * amount))


def test_a_process_that_was_not_there_all_the_time_has_no_series() -> None:
    first, then = MemoryReading({"a (1)": 1, "b (2)": 2}), MemoryReading({"a (1)": 3})
    result = SoakResult((Interval(1, 0, 1.0, first), Interval(1, 0, 2.0, then)), 1e4, 1e4, 1.0)
    assert result.series == {"a (1)": [1, 3]}


STATUS = """/proc/11/status:Name:\tlcore-worker-1
/proc/11/status:Tgid:\t10
/proc/11/status:VmRSS:\t    2048 kB
/proc/10/status:Name:\tdpdk-testpmd
/proc/10/status:Tgid:\t10
/proc/10/status:VmRSS:\t    2048 kB
/proc/7/status:Name:\tnapi/w-left-8193
/proc/7/status:Tgid:\t7
"""


def test_threads_of_one_process_count_once_and_those_of_the_kernel_not() -> None:
    host = ScriptedHost(answers={"grep -HE": STATUS, "grep ^SUnreclaim": "SUnreclaim:   100 kB\n"})
    assert resident_memory(host, [11, 10, 7]) == {"dpdk-testpmd (10)": 2048 * 1024}
    assert resident_memory(host, []) == {}
    assert kernel_memory(host) == 102_400
    assert kernel_memory(ScriptedHost(patient=True)) is None
