"""Back-to-back frames: the longest burst without loss, and the buffer time by RFC 9004."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.methods.back_to_back import BackToBack, BackToBackResult, Burst
from podperf.methods.trials import ValidTrials
from podperf.metrics import Measured
from podperf.model import Trial, TrialResult
from podperf.testers import base
from podperf.testers.validity import Account, judged
from simulated_dut import SimulatedDut
from traffic import TRAFFIC, counted


@given(buffer=st.integers(1, 100_000), share=st.floats(0.01, 0.9))
def test_the_corrected_time_is_that_of_the_buffer_alone(buffer: int, share: float) -> None:
    maximum = 1e6
    result = BackToBack(2, 5.0, share * maximum).run(SimulatedDut(share * maximum, maximum, buffer=buffer))
    true = buffer / (1 - share)  # while the burst arrives, a share of it leaves
    assert all(true * 0.97 - 2 <= length <= true + 2 / (1 - share) + 1 for length in result.lengths)
    assert result.buffer_time == pytest.approx(buffer / maximum, rel=0.05, abs=4e-6)
    assert result.buffer_time is not None and result.implied_buffer_time is not None
    assert result.buffer_time < result.implied_buffer_time


@given(start=st.integers(1, 5000), longest=st.integers(1, 5000))
def test_a_device_as_fast_as_the_tester_ends_the_method(start: int, longest: int) -> None:
    dut = SimulatedDut(1e6, 1e6)
    result = BackToBack(10, longest / 1e6, 1e6).run(dut)
    assert result.lengths == (longest,) and result.limited
    assert result.metrics == {"back_to_back": Measured(longest, longest, longest, lower_bound=True)}
    assert len(dut.trials) < 20


def test_a_device_that_passes_nothing_has_bursts_of_no_frame() -> None:
    result = BackToBack(3, 0.1, None).run(SimulatedDut(0.0, 1e6))
    assert result.lengths == (0, 0, 0)
    assert (result.rate, result.buffer_time) == (None, None)
    assert json.loads(json.dumps(result.as_record()))["implied_buffer_time"] is None


def test_the_figures_of_all_repetitions() -> None:
    result = BackToBackResult((Burst(1000, 1e6), Burst(1100, 1.1e6), Burst(1200, 1e6)), 5000, 2e5)
    record = result.as_record()
    assert (record["mean"], record["deviation"], record["burst_rate"]) == (1100, 100, 1e6)
    assert record["implied_buffer_time"] == pytest.approx(1.1e-3)
    assert record["corrected_buffer_time"] == pytest.approx(1.1e-3 * 0.8)
    assert result.metrics["back_to_back"] == Measured(1100, 1000, 1200)


def test_without_a_throughput_below_the_bursts_there_is_no_corrected_time() -> None:
    assert BackToBackResult((Burst(10, 1e6),), 50, None).buffer_time is None
    assert BackToBackResult((Burst(10, 1e6),), 50, 2e6).buffer_time is None


class Counting:
    """A tester that notes the trials, and sends each of them."""

    shortest_trial = 0.0
    broken = False

    def __init__(self) -> None:
        self.asked: list[Trial] = []

    def measure(self, trial: Trial) -> TrialResult:
        self.asked.append(trial)
        return TrialResult(trial, 0.0, (counted(trial.frames, 5, duration=1e-3),))


@pytest.mark.parametrize(("held", "load"), [(False, base.UNPACED), (True, 1e6)])
def test_a_burst_is_unpaced_unless_the_load_is_held(held: bool, load: float) -> None:
    tester = Counting()
    limits = base.TesterLimits(1e6, 0.0, "the line rate of the link", held=held)
    ValidTrials(tester, TRAFFIC, limits).burst(500)  # type: ignore[arg-type]
    ValidTrials(tester, TRAFFIC, limits).burst(500_000)  # type: ignore[arg-type]
    assert tester.asked == [Trial(TRAFFIC, load, 0.01, frames=500), Trial(TRAFFIC, load, 2.0, frames=500_000)]


def test_a_burst_that_was_cut_short_is_invalid() -> None:
    trial = Trial(TRAFFIC, base.UNPACED, 0.01, frames=100)
    result = TrialResult(trial, 0.0, (counted(99, intended=100, duration=0.01),))
    assert judged(result, Account()).invalid == "the tester sent only 99 of 100 frames"
