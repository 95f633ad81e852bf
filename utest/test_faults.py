"""A tester's own errors are found from its trials on a bare path, and are told apart from noise."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.model import Direction, DirectionResult, FrameSize, TrafficProfile, Trial, TrialResult
from podperf.testers.base import UNPACED, TesterLimits
from podperf.testers.calibration import calibrate, calibrate_sending, check_clock
from podperf.testers.faults import Fault, FaultKind, faults_in, own_loss, suspected

TRAFFIC = TrafficProfile(FrameSize.parse(64))


def trial(sent: int, *, lost: int = 0, duplicated: int = 0, corrupted: int = 0, twice: int = 0) -> TrialResult:
    """A trial on a bare path with this many wrong frames."""
    received = sent - lost - corrupted + twice
    each = DirectionResult(Direction.LEFT_TO_RIGHT, sent, sent, received, duplicated, 0, corrupted, 1.0)
    return TrialResult(Trial(TRAFFIC, sent, 1.0), 0.0, (each,))


def noise(seed: int, mean: float) -> Callable[[], float]:
    """Seconds around one trial after the other: 25 ms, and more by chance."""
    chance = random.Random(seed)
    return lambda: 0.025 + chance.expovariate(1 / mean)


class FaultyTester:
    """On a bare path, in simulated time: `wrong` makes the frames of a trial wrong, and its clock runs by `factor`."""

    shortest_trial = 0.0
    broken = False
    ceiling = 1e6

    def __init__(self, wrong: Callable[[int, Trial], TrialResult] = lambda sent, _: trial(sent)) -> None:
        self.wrong = wrong
        self.factor, self.around = 1.0, lambda: 0.03
        self.now = 0.0
        self.trials: list[Trial] = []

    def clock(self) -> float:
        return self.now

    def measure(self, asked: Trial) -> TrialResult:
        self.trials.append(asked)
        load = self.ceiling if asked.load == UNPACED else min(asked.load, self.ceiling)
        (counted,) = self.wrong(round(load * asked.duration), asked).directions
        self.now += asked.duration / self.factor + self.around()
        each = DirectionResult(
            counted.direction,
            counted.intended,
            counted.sent,
            counted.received,
            counted.duplicated,
            0,
            counted.corrupted,
            asked.duration,
        )
        return TrialResult(asked, 0.0, (each,))

    def describe(self) -> dict[str, object]:
        return {}

    def close(self) -> None:
        return


def kinds(limits: TesterLimits) -> list[FaultKind]:
    return [each.kind for each in limits.faults]


@pytest.mark.parametrize(
    ("wrong", "kind", "said"),
    [
        (lambda sent, _: trial(sent, lost=sent // 1000), FaultKind.LOSES, "the tester itself loses frames"),
        (lambda sent, _: trial(sent, twice=sent // 1000), FaultKind.COUNTS_TWICE, "counts frames twice"),
        (lambda sent, _: trial(sent, duplicated=sent // 1000), FaultKind.SENDS_TWICE, "copies of frames"),
        (
            lambda sent, _: trial(sent, lost=sent // 1000, duplicated=sent // 1000),
            FaultKind.SENDS_TWICE,
            "copies of frames",
        ),
        (lambda sent, _: trial(sent, corrupted=sent // 1000), FaultKind.CORRUPTS, "corrupts frames"),
    ],
)
def test_what_a_tester_does_wrong_in_every_trial_is_its_fault(
    wrong: Callable[[int, Trial], TrialResult], kind: FaultKind, said: str
) -> None:
    tester = FaultyTester(wrong)
    limits = calibrate(tester, TRAFFIC)
    assert kinds(limits) == [kind]
    assert limits.faults[0].ratio == pytest.approx(0.001, rel=0.05)
    assert said in limits.doubt and "in each of 12 trials on the bare path" in limits.doubt
    assert limits.cannot_tell(0.0) and not limits.cannot_tell(0.005)
    assert "ndr" in limits.doubts


@given(seed=st.integers(0, 10_000))
def test_one_frame_in_a_thousand_lost_by_chance_is_noticed(seed: int) -> None:
    chance = random.Random(seed)

    def losing(sent: int, _: Trial) -> TrialResult:
        mean = sent / 1000
        return trial(sent, lost=min(sent, max(0, round(chance.gauss(mean, math.sqrt(mean))))))

    assert kinds(calibrate(FaultyTester(losing), TRAFFIC)) == [FaultKind.LOSES]


def test_a_sound_tester_on_a_quiet_machine_has_one_trial() -> None:
    tester = FaultyTester()
    limits = calibrate(tester, TRAFFIC)
    assert limits.faults == () and limits.own_loss_ratio == 0
    assert [each.load for each in tester.trials].count(limits.maximum_load / 2) == 1
    assert limits.own_loss_bound == pytest.approx(3.0 / (limits.maximum_load / 2 * 0.3), rel=0.01), "the rule of three"
    assert not limits.cannot_tell(0.0) and not limits.doubts


@given(seed=st.integers(0, 10_000), stalls=st.floats(0.5, 3.0))
def test_a_noisy_machine_is_no_fault_of_the_tester(seed: int, stalls: float) -> None:
    """Half a millisecond is a usual stall. At low loads, a receive ring of 256 frames holds the frames of a stall."""
    chance = random.Random(seed)

    def stalled(sent: int, asked: Trial) -> TrialResult:
        rate, lost = sent / asked.duration, 0
        for _ in range(round(chance.expovariate(1 / stalls))):
            lost += max(0, round(rate * chance.expovariate(1 / 0.0005)) - 256)
        return trial(sent, lost=min(lost, sent // 200))

    limits = calibrate(FaultyTester(stalled), TRAFFIC)
    assert limits.faults == ()


def test_a_stall_in_the_first_trials_is_no_fault() -> None:
    left = [40, 300]

    def stalled(sent: int, asked: Trial) -> TrialResult:
        paced_low = 0 < asked.load < 600_000
        return trial(sent, lost=left.pop() if left and paced_low else 0)

    limits = calibrate(FaultyTester(stalled), TRAFFIC)
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


@pytest.mark.parametrize(("factor", "said"), [(1.02, "2 % fast"), (1 / 1.02, "1.96 % slow"), (0.9, "10 % slow")])
def test_a_clock_that_runs_wrong_is_noticed_beside_noise(factor: float, said: str) -> None:
    for seed in range(20):
        tester = FaultyTester()
        tester.factor, tester.around = factor, noise(seed, 0.002)
        fault = check_clock(tester, TRAFFIC, tester.clock)
        assert fault is not None and fault.kind is FaultKind.CLOCK
        assert fault.ratio == pytest.approx(abs(factor - 1), abs=0.006)
    tester = FaultyTester()
    tester.factor = factor
    fault = check_clock(tester, TRAFFIC, tester.clock)
    assert fault is not None and said in fault.sentence


def test_a_clock_that_runs_wrong_is_noticed_where_the_time_around_a_trial_goes_in_steps() -> None:
    """The kernel takes 24 to 36 ms to end a trial. A few quick ends among slow ones look like noise at first."""
    chance = random.Random(1)
    tester = FaultyTester()
    tester.factor, tester.around = 1 / 1.02, lambda: 0.024 if chance.random() < 0.2 else 0.036 + chance.random() / 250
    assert sum(check_clock(tester, TRAFFIC, tester.clock) is not None for _ in range(200)) >= 195


def test_a_right_clock_costs_four_seconds_at_most_and_stays_right_beside_noise() -> None:
    tester = FaultyTester()
    assert check_clock(tester, TRAFFIC, tester.clock) is None
    assert tester.now < 3.6
    for seed in range(300):
        tester.around = noise(seed, 0.01)
        assert check_clock(tester, TRAFFIC, tester.clock) is None


def test_what_a_losing_tester_waits_for_its_frames_is_no_fault_of_its_clock() -> None:
    """After a trial with a lost frame the tester waits 50 ms longer. Long trials must not lose more often than short
    ones."""
    chance = random.Random(1)
    tester = FaultyTester()
    waits = [0.0]

    def losing(sent: int, _: Trial) -> TrialResult:
        lost = sum(chance.random() < 0.001 for _ in range(sent))
        waits.append(0.05 if lost else 0.0)
        return trial(sent, lost=lost)

    tester.wrong, tester.around = losing, lambda: 0.03 + waits.pop()
    assert all(check_clock(tester, TRAFFIC, tester.clock) is None for _ in range(20))
    tester.factor = 1.02
    assert sum(check_clock(tester, TRAFFIC, tester.clock) is not None for _ in range(20)) >= 19


def test_a_clock_is_also_judged_before_frames_have_a_way_back() -> None:
    """A tester with ports of its own has no bare path: without a system under test, every frame is lost."""
    tester = FaultyTester(lambda sent, _: trial(sent, lost=sent))
    assert check_clock(tester, TRAFFIC, tester.clock) is None
    tester.factor = 1.02
    fault = check_clock(tester, TRAFFIC, tester.clock)
    assert fault is not None and fault.kind is FaultKind.CLOCK
    assert calibrate_sending(tester, TRAFFIC, most=5000, known=(fault,)).faults == (fault,)
    assert calibrate_sending(tester, TRAFFIC, known=(fault,)).faults == (fault,)


def test_of_a_tester_that_sends_nothing_no_clock_is_judged() -> None:
    tester = FaultyTester(lambda _, asked: trial(0))
    assert check_clock(tester, TRAFFIC, tester.clock) is None
