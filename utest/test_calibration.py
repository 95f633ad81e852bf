"""The tester's limits, found on simulated bare paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.errors import PodperfError
from podperf.model import BOTH_DIRECTIONS, DirectionResult, FrameSize, TrafficProfile, Trial, TrialResult
from podperf.testers.base import UNPACED
from podperf.testers.calibration import OWN_TRIALS, calibrate, calibrate_sending
from podperf.testers.faults import Fault, FaultKind

TRAFFIC = TrafficProfile(FrameSize.parse(64))


class SimulatedTester:
    """Sends at most `ceiling` frames/s; `delivered(load)` is the share that comes back."""

    shortest_trial = 0.0
    broken = False

    def __init__(self, ceiling: float, delivered: Callable[[float], float] = lambda load: 1.0) -> None:
        self.ceiling, self.delivered = ceiling, delivered
        self.trials: list[Trial] = []

    def measure(self, trial: Trial) -> TrialResult:
        self.trials.append(trial)
        load = self.ceiling if trial.load == UNPACED else min(trial.load, self.ceiling)
        sent = round(load * trial.duration)
        received = round(sent * self.delivered(load))
        each = [DirectionResult(d, sent, sent, received, 0, 0, 0, trial.duration) for d in trial.traffic.directions]
        invalid = "too slow" if load < 0.99 * trial.load else None
        return TrialResult(trial, 0.0, tuple(each), invalid=invalid)

    def describe(self) -> Mapping[str, Any]:
        return {}

    def close(self) -> None:
        return


@given(ceiling=st.floats(1e4, 1e7))
def test_the_ceiling_is_a_little_under_what_the_tester_can_do(ceiling: float) -> None:
    limits = calibrate(SimulatedTester(ceiling), TRAFFIC)
    assert limits.maximum_load == pytest.approx(0.95 * ceiling, rel=0.01)
    assert limits.own_loss_ratio == 0
    assert limits.source == "calibration on the bare path"


@given(ceiling=st.floats(1e5, 1e7), share=st.floats(0.3, 0.9))
def test_a_receiver_that_is_slower_than_the_sender_sets_the_ceiling(ceiling: float, share: float) -> None:
    limit = share * ceiling
    found = calibrate(SimulatedTester(ceiling, lambda load: min(1.0, limit / load)), TRAFFIC).maximum_load
    assert 0.94 * limit <= found <= 1.01 * limit


def test_the_loss_at_half_the_ceiling_and_below_is_the_testers_own() -> None:
    tester = SimulatedTester(1e6, lambda load: 0.999)
    limits = calibrate(tester, TRAFFIC)
    assert limits.own_loss_ratio == pytest.approx(0.001, rel=0.01)
    loads = [each.load for each in tester.trials[-12:]]
    assert loads[0] == limits.maximum_load / 2
    assert loads == sorted(loads, reverse=True) and min(loads) < loads[0] / 3
    assert min(each.load * each.duration for each in tester.trials[-12:]) >= 20_000


def test_a_loss_at_half_the_ceiling_that_a_lower_load_has_not_is_not_the_testers_own() -> None:
    limits = calibrate(SimulatedTester(1e6, lambda load: 0.999 if load > 3e5 else 1.0), TRAFFIC)
    assert limits.own_loss_ratio == 0 and limits.faults == ()


class StalledAtHalf(SimulatedTester):
    """The first `stalls` trials at a load clearly below the ceiling are invalid, and lose half of their frames."""

    def __init__(self, stalls: int) -> None:
        super().__init__(1e6)
        self.stalls = stalls

    def measure(self, trial: Trial) -> TrialResult:
        if trial.load == UNPACED or trial.load > 0.6 * self.ceiling or not self.stalls:
            return super().measure(trial)
        self.stalls -= 1
        (each,) = super().measure(trial).directions
        stalled = replace(each, sent=each.sent // 2, received=each.received // 4)
        return TrialResult(trial, 0.0, (stalled,), invalid="a stall")


def test_an_invalid_trial_says_nothing_about_the_testers_own_loss() -> None:
    assert calibrate(StalledAtHalf(3), TRAFFIC).own_loss_ratio == 0


def test_nothing_is_said_of_the_loss_where_no_trial_at_half_the_ceiling_is_valid() -> None:
    limits = calibrate(StalledAtHalf(OWN_TRIALS), TRAFFIC)
    assert (limits.own_loss_ratio, limits.own_loss_bound, limits.faults) == (None, None, ())


def test_one_bad_reading_does_not_set_the_ceiling() -> None:
    tester = SimulatedTester(1e6)
    measure = tester.measure

    def disturbed(trial: Trial) -> TrialResult:
        tester.ceiling = 2e5 if len(tester.trials) < 2 else 1e6
        return measure(trial)

    tester.measure = disturbed  # type: ignore[method-assign]
    assert calibrate(tester, TRAFFIC).maximum_load == pytest.approx(0.95e6, rel=0.01)


def test_a_reading_that_fails_altogether_is_left_out() -> None:
    tester = SimulatedTester(1e6)
    tester.delivered = lambda load: 0.5 if len(tester.trials) <= 9 else 1.0
    assert calibrate(tester, TRAFFIC).maximum_load == pytest.approx(0.95e6, rel=0.01)


def test_a_machine_that_spoils_the_first_readings_gets_more_of_them() -> None:
    tester = SimulatedTester(1e6)
    tester.delivered = lambda load: 0.5 if len(tester.trials) <= 4 * 13 else 1.0
    assert calibrate(tester, TRAFFIC).maximum_load == pytest.approx(0.95e6, rel=0.01)


def test_calibration_is_short() -> None:
    tester = SimulatedTester(1e6)
    calibrate(tester, TrafficProfile(FrameSize.parse(64), BOTH_DIRECTIONS))
    assert sum(trial.duration for trial in tester.trials) <= 1.5


def test_a_path_that_gives_nothing_back_is_an_error() -> None:
    with pytest.raises(PodperfError, match="no frame came back"):
        calibrate(SimulatedTester(1e6, lambda load: 0.0), TRAFFIC)


def test_a_path_that_never_delivers_is_an_error() -> None:
    with pytest.raises(PodperfError, match="delivers no load"):
        calibrate(SimulatedTester(1e6, lambda load: 0.9), TRAFFIC)


def test_a_clock_that_is_known_to_run_wrong_explains_that_no_load_is_delivered() -> None:
    clock = Fault(FaultKind.CLOCK, 0.02, "the tester's clock runs 2 % fast")
    with pytest.raises(PodperfError, match="delivers no load on the bare path; the tester's clock runs 2 % fast"):
        calibrate(SimulatedTester(1e6, lambda load: 0.9), TRAFFIC, known=(clock,))
    assert calibrate(SimulatedTester(1e6), TRAFFIC, known=(clock,)).faults == (clock,)


def test_a_tester_that_needs_long_trials_gets_them() -> None:
    tester = SimulatedTester(1e6)
    tester.shortest_trial = 0.5
    calibrate(tester, TRAFFIC)
    assert min(each.duration for each in tester.trials) >= 0.5


def test_without_a_bare_path_the_ceiling_is_what_is_sent_and_the_own_loss_is_unknown() -> None:
    limits = calibrate_sending(SimulatedTester(1e6, lambda load: 0.0), TRAFFIC)
    assert limits.maximum_load == pytest.approx(0.95e6, rel=0.01)
    assert limits.own_loss_ratio is None
    assert "no bare path" in limits.source


class SlowPath(SimulatedTester):
    """The kernel does the work of the path in the sender's time. Unpaced, the tester tells a rate that is too high, and
    each paced trial sends one frame less than planned."""

    def __init__(self, ceiling: float, told: float) -> None:
        super().__init__(ceiling)
        self.told = told

    def measure(self, trial: Trial) -> TrialResult:
        result = super().measure(trial)
        (each,) = result.directions
        if trial.load == UNPACED:
            return replace(result, directions=(replace(each, duration=each.sent / self.told),))
        intended = round(trial.load * trial.duration)
        sent = min(each.sent, intended - 1)
        invalid = None if sent >= 0.99 * intended else "the tester sent too few frames"
        return replace(result, directions=(replace(each, intended=intended, sent=sent),), invalid=invalid)


@pytest.mark.parametrize("told", [1.0, 1.5, 1000.0])
@pytest.mark.parametrize("ceiling", [100.0, 1000.0, 1e5])
def test_a_slow_path_has_a_rate(ceiling: float, told: float) -> None:
    found = calibrate_sending(SlowPath(ceiling, told * ceiling), TRAFFIC).maximum_load
    assert 0.5 * ceiling < found < ceiling


def test_a_tester_that_sends_nothing_is_not_calibrated() -> None:
    with pytest.raises(PodperfError, match="delivers no load"):
        calibrate_sending(SimulatedTester(0.0), TRAFFIC)


def test_a_testbed_that_must_not_have_all_is_not_given_more_to_find_what_the_tester_sends() -> None:
    tester = SimulatedTester(1e6)
    limits = calibrate_sending(tester, TRAFFIC, most=5000).held_to(5000)
    assert {each.load for each in tester.trials} == {5000}
    assert (limits.maximum_load, limits.held) == (5000, True), "and no later trial is sent as fast as the tester can"
    slow = calibrate_sending(SimulatedTester(1000), TRAFFIC, most=5000)
    assert slow.maximum_load == pytest.approx(950, rel=0.01)
