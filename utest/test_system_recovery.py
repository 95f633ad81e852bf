"""System recovery: the time from the end of an overload to the last lost frame."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.methods.system_recovery import Recovery, SystemRecovery
from podperf.methods.trials import ValidTrials
from podperf.model import Direction, DirectionResult, Overload, Trial, TrialResult
from podperf.testers import base
from podperf.testers.software import request_line
from podperf.testers.validity import Account, judged
from simulated_dut import SimulatedDut
from traffic import TRAFFIC


@given(throughput=st.floats(1e4, 8e5), recovery=st.floats(0, 0.8))
def test_the_time_is_the_true_one_to_one_frame(throughput: float, recovery: float) -> None:
    result = SystemRecovery(throughput, 3, 1.0, 1.0).run(SimulatedDut(throughput, 1e6, recovery=recovery))
    assert result.overload.load == pytest.approx(1.1 * throughput)
    assert result.load == pytest.approx(0.55 * throughput)
    found = result.metrics["recovery_time"]
    assert found.value == pytest.approx(recovery, abs=2 / result.load)
    assert not found.lower_bound and not result.missing
    assert json.loads(json.dumps(result.as_record()))["overload_share"] == pytest.approx(1.1)


def test_an_overload_is_at_most_the_maximum_load() -> None:
    result = SystemRecovery(1e6, 1, 1.0, 1.0).run(SimulatedDut(9e5, 1e6))
    assert (result.overload.load, result.load) == (1e6, 5e5)


def test_without_loss_there_was_no_overload() -> None:
    result = SystemRecovery(1e5, 2, 1.0, 1.0).run(SimulatedDut(2e5, 1e6))
    assert result.metrics == {}
    assert "nothing was lost at 110,000 frames/s" in result.missing["recovery time"]


def test_a_system_that_loses_frames_at_half_load_as_well_has_no_recovery_time() -> None:
    """The last lost frame of a trial is anywhere then, and says nothing about the overload."""
    result = SystemRecovery(1e5, 3, 1.0, 1.0).run(SimulatedDut(1e5, 1e6, base_loss=0.0001))
    assert result.metrics == {} and result.recoveries == ()
    assert result.missing["recovery time"] == (
        "not judged: 6 of 55000 frames were lost at 55,000 frames/s without an overload, too (control trial 1)"
    )


def test_stalls_of_the_machine_are_no_recovery() -> None:
    dut = SimulatedDut(1e5, 1e6, buffer=256, stalls_per_second=0.5, stall=0.05, seed=1)
    result = SystemRecovery(1e5, 10, 1.0, 1.0).run(dut)
    assert result.metrics == {} and result.missing["recovery time"].startswith("not judged: ")
    assert 0 < len(result.recoveries) < 10 and len(result.controls) == len(result.recoveries) + 1


def test_controls_go_by_turns_with_the_trials() -> None:
    dut = SimulatedDut(1e5, 1e6, recovery=0.1)
    result = SystemRecovery(1e5, 2, 1.0, 1.0).run(dut)
    assert [trial.trial.load for trial in dut.trials] == pytest.approx([55e3, 110e3, 55e3, 55e3, 110e3, 55e3, 55e3])
    assert result.as_record()["controls"] == [{"sent": 55_000, "lost": 0}] * 3


def test_a_system_that_does_not_recover_is_a_lower_bound() -> None:
    result = SystemRecovery(1e5, 2, 1.0, 1.0).run(SimulatedDut(1e5, 1e6, recovery=0.95))
    assert result.metrics["recovery_time"].lower_bound


def one(lost: int, last_lost: int | None, direction: Direction = Direction.LEFT_TO_RIGHT) -> DirectionResult:
    return DirectionResult(direction, 3000, 3000, 3000 - lost, 0, 0, 0, 2.0, last_lost=last_lost)


def trial_of(*directions: DirectionResult) -> TrialResult:
    return TrialResult(Trial(TRAFFIC, 1000.0, 1.0, overload=Overload(2000.0, 1.0)), 0.0, directions)


@pytest.mark.parametrize(
    ("lost", "last_lost", "seconds"),
    [
        (0, None, 0.0),
        (0, 2100, 0.0),  # reordered, and not lost
        (5, 1999, 0.0),  # the last frame of the overload
        (5, 2000, 0.001),
        (5, 2499, 0.5),
        (1000, 2999, 1.0),
    ],
)
def test_the_frame_tells_the_time(lost: int, last_lost: int | None, seconds: float) -> None:
    found = Recovery.of(trial_of(one(lost, last_lost)))
    assert found == Recovery(seconds, seconds <= 0.9, lost > 0, lost)


def test_the_slowest_direction_counts() -> None:
    both = one(5, 2009), one(5, 2499, Direction.RIGHT_TO_LEFT)
    assert Recovery.of(trial_of(*both)).seconds == 0.5


MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")


def test_the_request_names_both_loads_and_the_trial_is_judged_by_their_mean() -> None:
    trial = Trial(TRAFFIC, 1000.0, 1.0, overload=Overload(2000.0, 3.0))
    assert " overload=2000.000000 overload-duration=3.000000" in request_line(
        trial, 0.05, ("02:00:00:00:00:01", "02:00:00:00:00:02")
    )
    assert (trial.mean_load, trial.longest) == (1750.0, 4.0)
    counted = DirectionResult(Direction.LEFT_TO_RIGHT, 7000, 7000, 7000, 0, 0, 0, 4.0)
    assert judged(TrialResult(trial, 0.0, (counted,)), Account()).invalid is None
    slow = replace(counted, duration=4.2)
    assert "95.2%" in str(judged(TrialResult(trial, 0.0, (slow,)), Account()).invalid)


class Noting:
    """A tester that notes the trials."""

    shortest_trial = 0.5
    broken = False

    def __init__(self) -> None:
        self.asked: list[Trial] = []

    def measure(self, trial: Trial) -> TrialResult:
        self.asked.append(trial)
        return TrialResult(trial, 0.0, (one(0, None),))


def test_the_source_asks_the_tester_for_both_parts() -> None:
    tester, overload = Noting(), Overload(2000.0, 1.0)
    limits = base.TesterLimits(1e6, 0.0, "calibration on the bare path")
    ValidTrials(tester, TRAFFIC, limits).after_overload(overload, 1000.0, 1.0)  # type: ignore[arg-type]
    assert tester.asked == [Trial(TRAFFIC, 1000.0, 1.0, overload=overload)]
