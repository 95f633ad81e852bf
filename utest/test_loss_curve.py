"""The loss curve: falling loads until two trials in a row lose nothing."""

from __future__ import annotations

import json
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.errors import TrialNotDelivered
from podperf.methods.loss_curve import LossCurve, shares
from podperf.metrics import Measured
from podperf.model import TrialResult
from simulated_dut import SimulatedDut

CURVE = LossCurve(0.5, 1000.0)


def test_steps_are_at_most_a_tenth_of_the_maximum() -> None:
    found = list(islice(shares(), 40))
    assert found[:11] == pytest.approx([1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.09])
    assert all(0 < one - other <= 0.1 + 1e-12 for one, other in pairwise(found))


@given(capacity=st.floats(3e3, 3e6), maximum=st.floats(1e6, 5e6))
def test_the_curve_ends_after_two_loads_below_the_capacity(capacity: float, maximum: float) -> None:
    result = CURVE.run(SimulatedDut(capacity, maximum))
    losses = [point.loss_ratio for point in result.points]
    assert losses == sorted(losses, reverse=True)
    assert losses[-2:] == [0, 0] and all(losses[:-2])
    found = result.metrics["loss_free_load"]
    # a frame more or less fits into a trial
    assert found.value <= capacity + 4 and not found.unfinished and not found.upper_bound
    assert found.lower_bound == (len(losses) == 2)
    assert found.high is None or (found.high >= capacity - 4 and found.high == result.points[-3].load)


def test_a_device_that_loses_frames_at_every_load_has_an_upper_bound() -> None:
    result = CURVE.run(SimulatedDut(1e5, base_loss=0.001))
    lowest = result.points[-1].load
    assert 1000 <= lowest < 2000
    assert result.metrics == {"loss_free_load": Measured(lowest, high=lowest, upper_bound=True)}
    assert "before two loads without loss" in result.as_record()["incomplete"]


def test_a_single_trial_without_loss_at_the_end_is_no_end() -> None:
    result = LossCurve(0.5, 95e3).run(SimulatedDut(1e5, 1e6))
    assert result.metrics["loss_free_load"] == Measured(1e5, 1e5, 2e5, unfinished=True)


def test_a_stall_of_the_machine_costs_no_point() -> None:
    """Every tenth trial of half a second has a stall that loses frames. With one trial a point, 81 of 100 curves end at
    the capacity."""
    duts = [SimulatedDut(3.05e5, 1e6, 256, stalls_per_second=0.2, stall=0.02, seed=seed) for seed in range(100)]
    curves = [CURVE.run(dut) for dut in duts]
    assert sum(each.metrics["loss_free_load"].value == 3e5 for each in curves) >= 93
    for point in (each for curve in curves for each in curve.points):
        assert len(point.trials) == (3 if len({trial.lost > 0 for trial in point.trials}) == 2 else 2)
        assert point.lossless == (sum(trial.lost == 0 for trial in point.trials) == 2)


class Hesitant(SimulatedDut):
    """A tester that does not deliver more than 700 000 frames/s today."""

    def measure(self, load: float, duration: float) -> TrialResult:
        if load > 7e5 + 1:
            raise TrialNotDelivered("too slow", 7e5)
        return super().measure(load, duration)


def test_a_load_that_the_tester_cannot_send_has_no_point() -> None:
    result = CURVE.run(Hesitant(5e5, 1e6))
    assert result.not_delivered == pytest.approx((1e6, 9e5, 8e5))
    assert result.points[0].share == pytest.approx(0.7)
    record = json.loads(json.dumps(result.as_record()))
    assert (record["incomplete"], len(record["points"]), record["trial_duration"]) == (None, 4, 0.5)


def test_a_tester_that_delivers_nothing_ends_the_method() -> None:
    with pytest.raises(TrialNotDelivered, match="too slow"):
        LossCurve(0.5, 8e5).run(Hesitant(5e5, 1e6))
    with pytest.raises(TrialNotDelivered, match="below the curve's lowest load"):
        CURVE.run(SimulatedDut(1.0, 10.0))
