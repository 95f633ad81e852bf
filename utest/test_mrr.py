"""MRR: figures over trials at the tester's maximum load."""

from __future__ import annotations

import json
import statistics
from dataclasses import replace

import pytest

from podperf.errors import PodperfError
from podperf.methods.mrr import Mrr
from simulated_dut import SimulatedDut


def test_figures_of_a_drifting_device() -> None:
    dut = SimulatedDut(250_000, maximum_load=1e6, drift=0.05, directions=2, seed=7)
    result = Mrr(trials=5, duration=1.0).run(dut)
    rates = [trial.received / 2 for trial in dut.trials]  # its directions are equal
    assert result.rates == pytest.approx(rates)
    assert result.rate == pytest.approx(statistics.median(rates))
    assert result.mean == pytest.approx(statistics.fmean(rates))
    assert result.deviation == pytest.approx(statistics.pstdev(rates))
    assert result.relative_spread == pytest.approx((max(rates) - min(rates)) / statistics.median(rates))
    assert result.loss_ratio == pytest.approx(1 - sum(rates) / 5e6)
    assert not result.tester_limited
    record = json.loads(json.dumps(result.as_record()))
    assert set(record["rates_by_direction"]) == {"left-to-right", "right-to-left"}
    assert record["trial_count"] == 5 and record["latency"]["p50_ns"] == 1000


def test_the_slower_direction_counts_and_the_mean_hides_nothing() -> None:
    dut = SimulatedDut(500_000, maximum_load=1e6, drift=0.1, directions=2, weaker=0.01, seed=3)
    result = Mrr(trials=5, duration=1.0).run(dut)
    slower = [trial.directions[1].received for trial in dut.trials]
    assert result.rates == pytest.approx(slower) and result.rate < 6000
    assert result.loss_ratio == pytest.approx(1 - sum(slower) / 5e6)
    assert not result.tester_limited
    both = [sum(way.received for way in trial.directions) for trial in dut.trials]
    assert result.metrics["mrr"].aggregate == pytest.approx(statistics.median(both))
    assert result.as_record()["judged_by"] == "the worse direction"


def test_one_direction_that_loses_a_little_more_than_the_tester_may() -> None:
    """The mean of 0 and 1.5 % would say that the tester was the limit."""
    result = Mrr(2, 1.0).run(SimulatedDut(1e6, maximum_load=1e6, directions=2, weaker=0.985))
    result = replace(result, maximum_load=1.1e6)
    assert result.loss_ratio == pytest.approx(0.015) and not result.tester_limited


def test_a_device_that_gives_all_back_that_a_slow_moment_of_the_tester_sent() -> None:
    """The calibration was faster. The received rate is still no figure of the device."""
    result = replace(Mrr(2, 0.5).run(SimulatedDut(2e6, maximum_load=1e6)), maximum_load=1.5e6)
    assert result.rate < 0.95 * result.maximum_load and result.tester_limited


def test_a_device_as_fast_as_the_tester() -> None:
    result = Mrr(2, 0.5).run(SimulatedDut(2e6, maximum_load=1e6))
    assert result.tester_limited and result.loss_ratio == 0


def test_a_device_that_passes_nothing() -> None:
    result = Mrr(2, 0.5).run(SimulatedDut(0.0, maximum_load=1e6))
    assert (result.rate, result.relative_spread, result.loss_ratio, result.latency) == (0, 0, 1, None)
    json.dumps(result.as_record())


def test_impossible_parameters() -> None:
    with pytest.raises(PodperfError, match="1 or more trials"):
        Mrr(trials=0)
