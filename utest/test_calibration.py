"""The tester's limits and faults, found on simulated bare paths."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.errors import PodperfError
from podperf.metrics import METRICS
from podperf.model import BOTH_DIRECTIONS, DirectionResult, Latency, Trial, TrialResult, bucket_index
from podperf.testers.base import UNPACED, TesterLimits
from podperf.testers.calibration import OWN_TRIALS, calibrate, calibrate_sending, check_clock
from podperf.testers.faults import Fault, FaultKind, faults_in, own_loss, suspected
from simulated_tester import Counts, SimulatedTester
from traffic import TRAFFIC, counted, traffic_of


def delivers(share: Callable[[float], float]) -> Counts:
    """The counts of a tester to which this share comes back, by the load in frames/s."""
    return lambda sent, trial: counted(sent, round(sent * share(sent / trial.duration)))


@given(ceiling=st.floats(1e4, 1e7))
def test_the_ceiling_is_a_little_under_what_the_tester_can_do(ceiling: float) -> None:
    limits = calibrate(SimulatedTester(ceiling), TRAFFIC)
    assert limits.maximum_load == pytest.approx(0.95 * ceiling, rel=0.01)
    assert limits.own_loss_ratio == 0
    assert limits.source == "calibration on the bare path"


def test_the_testers_own_latency_is_measured_at_loads_up_to_half_the_ceiling() -> None:
    class Stamping(SimulatedTester):
        """A frame takes 300 ns, and longer at a higher load."""

        def measure(self, trial: Trial) -> TrialResult:
            result = super().measure(trial)
            taken = 300 + round(trial.load / 1e4)
            latency = Latency(taken, taken, taken, {bucket_index(taken): result.received})
            return replace(
                result, directions=tuple(replace(direction, latency=latency) for direction in result.directions)
            )

    own = calibrate(Stamping(1e6), TRAFFIC).own_latencies
    assert [(each.load, each.p50_ns) for each in own] == [(1e4, 301), (1e5, 310)]


@given(ceiling=st.floats(1e5, 1e7), share=st.floats(0.3, 0.9))
def test_a_receiver_that_is_slower_than_the_sender_sets_the_ceiling(ceiling: float, share: float) -> None:
    limit = share * ceiling
    found = calibrate(SimulatedTester(ceiling, delivers(lambda load: min(1.0, limit / load))), TRAFFIC).maximum_load
    assert 0.94 * limit <= found <= 1.01 * limit


def test_the_loss_at_half_the_ceiling_and_below_is_the_testers_own() -> None:
    tester = SimulatedTester(1e6, delivers(lambda load: 0.999))
    limits = calibrate(tester, TRAFFIC)
    assert limits.own_loss_ratio == pytest.approx(0.001, rel=0.01)
    loads = [each.load for each in tester.trials[-12:]]
    assert loads[0] == limits.maximum_load / 2
    assert loads == sorted(loads, reverse=True) and min(loads) < loads[0] / 3
    assert min(each.load * each.duration for each in tester.trials[-12:]) >= 20_000


def test_a_loss_at_half_the_ceiling_that_a_lower_load_has_not_is_not_the_testers_own() -> None:
    limits = calibrate(SimulatedTester(1e6, delivers(lambda load: 0.999 if load > 3e5 else 1.0)), TRAFFIC)
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
    tester = SimulatedTester()
    measure = tester.measure

    def disturbed(trial: Trial) -> TrialResult:
        tester.ceiling = 2e5 if len(tester.trials) < 2 else 1e6
        return measure(trial)

    tester.measure = disturbed  # type: ignore[method-assign]
    assert calibrate(tester, TRAFFIC).maximum_load == pytest.approx(0.95e6, rel=0.01)


@pytest.mark.parametrize("spoilt", [9, 4 * 13])
def test_readings_that_the_machine_spoils_are_left_out_and_replaced(spoilt: int) -> None:
    tester = SimulatedTester()
    tester.counts = delivers(lambda load: 0.5 if len(tester.trials) <= spoilt else 1.0)
    assert calibrate(tester, TRAFFIC).maximum_load == pytest.approx(0.95e6, rel=0.01)


def test_calibration_is_short() -> None:
    tester = SimulatedTester()
    calibrate(tester, traffic_of(64, BOTH_DIRECTIONS))
    assert sum(trial.duration for trial in tester.trials) <= 1.5


def test_a_path_that_gives_nothing_back_is_an_error() -> None:
    with pytest.raises(PodperfError, match="no frame came back"):
        calibrate(SimulatedTester(1e6, delivers(lambda load: 0.0)), TRAFFIC)


def test_a_clock_that_is_known_to_run_wrong_explains_that_no_load_is_delivered() -> None:
    clock = Fault(FaultKind.CLOCK, 0.02, "the tester's clock runs 2 % fast")
    with pytest.raises(PodperfError, match="delivers no load on the bare path; the tester's clock runs 2 % fast"):
        calibrate(SimulatedTester(1e6, delivers(lambda load: 0.9)), TRAFFIC, known=(clock,))
    assert calibrate(SimulatedTester(), TRAFFIC, known=(clock,)).faults == (clock,)


def test_a_tester_that_needs_long_trials_gets_them() -> None:
    tester = SimulatedTester()
    tester.shortest_trial = 0.5
    calibrate(tester, TRAFFIC)
    assert min(each.duration for each in tester.trials) >= 0.5


def test_without_a_bare_path_the_ceiling_is_what_is_sent_and_the_own_loss_is_unknown() -> None:
    limits = calibrate_sending(SimulatedTester(1e6, delivers(lambda load: 0.0)), TRAFFIC)
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
    tester = SimulatedTester()
    limits = calibrate_sending(tester, TRAFFIC, most=5000).held_to(5000)
    assert {each.load for each in tester.trials} == {5000}
    assert (limits.maximum_load, limits.held) == (5000, True), "and no later trial is sent as fast as the tester can"
    slow = calibrate_sending(SimulatedTester(1000), TRAFFIC, most=5000)
    assert slow.maximum_load == pytest.approx(950, rel=0.01)


# --- faults: a tester's own errors on a bare path, told apart from noise ----------------------------------------------


def lossy(sent: int, lost: int) -> DirectionResult:
    return counted(sent, sent - lost)


def trial(sent: int, lost: int = 0) -> TrialResult:
    """A trial on a bare path that loses so many frames."""
    return TrialResult(Trial(TRAFFIC, sent, 1.0), 0.0, (lossy(sent, lost),))


def noise(seed: int, mean: float) -> Callable[[], float]:
    """Seconds around one trial after the other: 25 ms, and more by chance."""
    chance = random.Random(seed)
    return lambda: 0.025 + chance.expovariate(1 / mean)


def kinds(limits: TesterLimits) -> list[FaultKind]:
    return [fault.kind for fault in limits.faults]


@pytest.mark.parametrize(
    ("wrong", "kind", "said"),
    [
        (lambda sent, _: lossy(sent, sent // 1000), FaultKind.LOSES, "the tester itself loses frames"),
        (lambda sent, _: lossy(sent, -(sent // 1000)), FaultKind.COUNTS_TWICE, "counts frames twice"),
        (lambda sent, _: counted(sent, duplicated=sent // 1000), FaultKind.SENDS_TWICE, "copies of frames"),
        (lambda sent, _: counted(sent, sent - sent // 1000, duplicated=sent // 1000), FaultKind.SENDS_TWICE, "copies"),
        (lambda sent, _: counted(sent, sent - sent // 1000, corrupted=sent // 1000), FaultKind.CORRUPTS, "corrupts"),
    ],
)
def test_what_a_tester_does_wrong_in_every_trial_is_its_fault(wrong: Counts, kind: FaultKind, said: str) -> None:
    tester = SimulatedTester(counts=wrong)
    limits = calibrate(tester, TRAFFIC)
    assert kinds(limits) == [kind]
    assert limits.faults[0].ratio == pytest.approx(0.001, rel=0.05)
    assert said in limits.doubt and "in each of 12 trials on the bare path" in limits.doubt
    assert limits.cannot_tell(0.0) and not limits.cannot_tell(0.005)
    assert "ndr" in limits.doubts


def all_take(sent: int, least: int, most: int) -> DirectionResult:
    """All frames take between so many nanoseconds on the bare path."""
    return counted(sent, latency=Latency(least, (least + most) / 2, most, {1: sent}))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda sent, _: all_take(sent, 57_000_000_000, 58_000_000_000),
        lambda sent, _: all_take(sent, 2_000_000, 2_100_000),
        lambda sent, _: counted(sent, negative_latencies=sent),
        lambda sent, _: counted(sent, negative_latencies=sent // 100),
    ],
    ids=["longer than the trial", "long on a bare path", "all negative", "some negative"],
)
def test_wrong_stamps_spoil_latencies_and_no_rate(wrong: Counts) -> None:
    limits = calibrate(SimulatedTester(counts=wrong), TRAFFIC)
    assert kinds(limits) == [FaultKind.STAMPS]
    assert "the tester itself stamps frames with wrong times" in limits.doubt
    assert "at least 100 % in each of 12 trials" in limits.doubt
    assert limits.doubt == limits.doubt_of_latencies and not limits.doubt_of_rates and not limits.cannot_tell(0.0)
    stamped = ("latency_", "delay_variation", "round_trip_", "host_share_round_trip")
    assert set(limits.doubts) == {metric for metric in METRICS if metric.startswith(stamped)}


def test_a_stall_of_the_machine_is_no_wrong_stamp() -> None:
    limits = calibrate(SimulatedTester(counts=lambda sent, _: all_take(sent, 400, 90_000_000)), TRAFFIC)
    assert limits.faults == ()


@given(seed=st.integers(0, 10_000))
def test_one_frame_in_a_thousand_lost_by_chance_is_noticed(seed: int) -> None:
    chance = random.Random(seed)

    def losing(sent: int, _: Trial) -> DirectionResult:
        mean = sent / 1000
        return lossy(sent, min(sent, max(0, round(chance.gauss(mean, math.sqrt(mean))))))

    assert kinds(calibrate(SimulatedTester(counts=losing), TRAFFIC)) == [FaultKind.LOSES]


def test_a_sound_tester_on_a_quiet_machine_has_one_trial() -> None:
    tester = SimulatedTester()
    limits = calibrate(tester, TRAFFIC)
    assert limits.faults == () and limits.own_loss_ratio == 0
    assert [each.load for each in tester.trials].count(limits.maximum_load / 2) == 1
    assert limits.own_loss_bound == pytest.approx(3.0 / (limits.maximum_load / 2 * 0.3), rel=0.01), "the rule of three"
    assert not limits.cannot_tell(0.0) and not limits.doubts


@given(seed=st.integers(0, 10_000), stalls=st.floats(0.5, 3.0))
def test_a_noisy_machine_is_no_fault_of_the_tester(seed: int, stalls: float) -> None:
    """Half a millisecond is a usual stall. At low loads, a receive ring of 256 frames holds the frames of a stall."""
    chance = random.Random(seed)

    def stalled(sent: int, asked: Trial) -> DirectionResult:
        rate, lost = sent / asked.duration, 0
        for _ in range(round(chance.expovariate(1 / stalls))):
            lost += max(0, round(rate * chance.expovariate(1 / 0.0005)) - 256)
        return lossy(sent, min(lost, sent // 200))

    limits = calibrate(SimulatedTester(counts=stalled), TRAFFIC)
    assert limits.faults == ()


def test_a_stall_in_the_first_trials_is_no_fault() -> None:
    left = [40, 300]

    def stalled(sent: int, asked: Trial) -> DirectionResult:
        paced_low = 0 < asked.load < 600_000
        return lossy(sent, left.pop() if left and paced_low else 0)

    limits = calibrate(SimulatedTester(counts=stalled), TRAFFIC)
    assert limits.faults == () and limits.own_loss_ratio == 0
    assert not left and limits.own_loss_bound is not None


def test_a_faultless_trial_of_too_few_frames_clears_nobody() -> None:
    losing = [trial(100_000, lost=10) for _ in range(11)]
    assert [each.kind for each in faults_in([*losing, trial(20_000)])] == [FaultKind.LOSES], "it should have lost two"
    assert "at least 0.01 % in 11 of 12 trials" in faults_in([*losing, trial(20_000)])[0].sentence
    assert faults_in([*losing, trial(40_000)]) == () and not suspected([*losing, trial(40_000)])


def test_too_few_trials_are_no_verdict() -> None:
    assert faults_in([]) == () and faults_in([trial(100_000, lost=100)] * 3) == ()
    assert own_loss([]) == (None, None)


def test_a_tester_that_loses_more_than_the_pdr_allows_cannot_tell_that_either() -> None:
    limits = TesterLimits(1e6, 0.006, "", faults=(Fault(FaultKind.LOSES, 0.006, "it loses"),))
    assert limits.cannot_tell(0.005) and not limits.cannot_tell(0.01)


@pytest.mark.parametrize(("factor", "said"), [(1.02, "2 % fast"), (1 / 1.02, "2 % slow"), (0.9, "10 % slow")])
def test_a_clock_that_runs_wrong_is_noticed_beside_noise(factor: float, said: str) -> None:
    for seed in range(20):
        tester = SimulatedTester()
        tester.factor, tester.around = factor, noise(seed, 0.002)
        fault = check_clock(tester, TRAFFIC, tester.clock)
        assert fault is not None and fault.kind is FaultKind.CLOCK
        assert fault.ratio == pytest.approx(abs(factor - 1), abs=0.006)
    tester = SimulatedTester()
    tester.factor = factor
    fault = check_clock(tester, TRAFFIC, tester.clock)
    assert fault is not None and said in fault.sentence


def steps(chance: random.Random) -> Callable[[], float]:
    """Seconds around a trial, as on a real machine: the kernel takes 16 to 36 ms to end it, in steps of 4 ms."""
    ends = (16, 20, 20, 24, 24, 24, 24, 24, 28, 28, 28, 32, 32, 36, 36)
    return lambda: (chance.choice(ends) + chance.random()) / 1000


@pytest.mark.parametrize("factor", [1.01, 0.99, 1.015, 0.985])
def test_a_slow_clock_is_noticed_as_a_fast_one_and_told_by_its_figure(factor: float) -> None:
    chance = random.Random(3)
    tester = SimulatedTester()
    tester.factor, tester.around = factor, steps(chance)
    faults = [check_clock(tester, TRAFFIC, tester.clock) for _ in range(100)]
    assert sum(each is not None for each in faults) >= 95
    for fault in filter(None, faults):
        assert fault.ratio == pytest.approx(abs(factor - 1), abs=0.004)
        assert ("fast" if factor > 1 else "slow") in fault.sentence
        told, off = (float(each) / 100 for each in re.findall(r"([0-9.]+) %", fault.sentence))
        assert told - off <= abs(factor - 1) <= told + off, "the sentence says how exact its figure is"


def test_a_clock_that_runs_wrong_is_noticed_where_the_time_around_a_trial_goes_in_steps() -> None:
    """The kernel takes 24 to 36 ms to end a trial. A few quick ends among slow ones look like noise at first."""
    chance = random.Random(1)
    tester = SimulatedTester()
    tester.factor, tester.around = 1 / 1.02, lambda: 0.024 if chance.random() < 0.2 else 0.036 + chance.random() / 250
    assert sum(check_clock(tester, TRAFFIC, tester.clock) is not None for _ in range(200)) >= 195


def test_a_right_clock_costs_four_seconds_at_most_and_stays_right_beside_noise() -> None:
    tester = SimulatedTester()
    assert check_clock(tester, TRAFFIC, tester.clock) is None
    assert tester.now < 3.6
    for seed in range(300):
        tester.around = noise(seed, 0.01)
        assert check_clock(tester, TRAFFIC, tester.clock) is None


def test_what_a_losing_tester_waits_for_its_frames_is_no_fault_of_its_clock() -> None:
    """After a trial with a lost frame the tester waits 50 ms longer. Long trials must not lose more often than short
    ones."""
    chance = random.Random(1)
    tester = SimulatedTester()
    waits = [0.0]

    def losing(sent: int, _: Trial) -> DirectionResult:
        lost = sum(chance.random() < 0.001 for _ in range(sent))
        waits.append(0.05 if lost else 0.0)
        return lossy(sent, lost)

    tester.counts, tester.around = losing, lambda: 0.03 + waits.pop()
    assert all(check_clock(tester, TRAFFIC, tester.clock) is None for _ in range(20))
    tester.factor = 1.02
    assert sum(check_clock(tester, TRAFFIC, tester.clock) is not None for _ in range(20)) >= 19


def test_a_clock_is_also_judged_before_frames_have_a_way_back() -> None:
    """A tester with ports of its own has no bare path: without a system under test, every frame is lost."""
    tester = SimulatedTester(counts=lambda sent, _: lossy(sent, sent))
    assert check_clock(tester, TRAFFIC, tester.clock) is None
    tester.factor = 1.02
    fault = check_clock(tester, TRAFFIC, tester.clock)
    assert fault is not None and fault.kind is FaultKind.CLOCK
    assert calibrate_sending(tester, TRAFFIC, most=5000, known=(fault,)).faults == (fault,)
    assert calibrate_sending(tester, TRAFFIC, known=(fault,)).faults == (fault,)


def test_of_a_tester_that_sends_nothing_no_clock_is_judged() -> None:
    tester = SimulatedTester(counts=lambda _, asked: counted(0))
    assert check_clock(tester, TRAFFIC, tester.clock) is None
