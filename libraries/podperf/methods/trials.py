"""Valid trials for methods: repeats invalid and disturbed trials of the tester."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace

from podperf.errors import TrialNotDelivered
from podperf.kernel.thread_time import ThreadClock
from podperf.model import AddressedTraffic, Overload, Trial, TrialResult
from podperf.noise import Speed
from podperf.quietness.watch import Quietness
from podperf.testers.base import UNPACED, Tester, TesterLimits
from podperf.testers.validity import disturbance, standstill, without_latency

MAXIMUM_REPEATS = 3
SHORTEST_BURST, MOST_TIMES = 0.01, 4.0  # seconds; times as long as at the tester's maximum load
GRACE = 10.0  # seconds of further trials that the tester may fail to deliver while the machine is noisy


def ignore(_seen: object) -> None:
    """An observer for those who need none."""


@dataclass(frozen=True)
class Clocks:
    """Two clocks at a moment, or the time between two moments by both, in seconds.

    The clock of `running` stands still while the machine is suspended.
    """

    running: float
    on_any_clock: float

    @classmethod
    def now(cls) -> Clocks:
        """Both clocks at this moment."""
        return cls(time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME))

    def __sub__(self, other: Clocks) -> Clocks:
        return Clocks(self.running - other.running, self.on_any_clock - other.on_any_clock)


@dataclass(frozen=True)
class ChangedTrial:
    """A trial in whose middle something was changed. The change took `seconds`.

    It began `began` seconds behind the first frame; None: the tester does not tell when that one left.
    """

    result: TrialResult
    began: float | None
    seconds: float


@dataclass
class Patience:
    """The seconds that a run may still spend on waiting for a quiet machine, and on repeating disturbed trials.

    A run has one Patience. Each test adds some seconds, and leaves unused seconds to the next test, because noise comes
    and goes. `spent` counts the seconds of the test that runs now.
    """

    left: float = 0.0
    spent: float = 0.0
    stood_still: float = 0.0  # seconds

    def grant(self, seconds: float) -> None:
        """A test begins. It may spend these seconds, and those that earlier tests have left."""
        self.left, self.spent = self.left + seconds, 0.0

    def withdraw(self, seconds: float) -> None:
        """Take a grant back from a test that did not need it."""
        self.left = max(0.0, self.left - seconds)

    def spend(self, seconds: float) -> bool:
        """Spend these seconds. False if fewer were left; none are left then."""
        enough = 0 < self.left >= seconds
        self.spent += min(seconds, self.left)
        self.left = max(0.0, self.left - seconds)
        return enough

    def clock(self) -> float:
        """A clock in seconds that stops while a test waits for quiet, and while a trial stands still.

        The time limit of a search uses this clock.
        """
        return time.monotonic() - self.spent - self.stood_still


def await_quietness(quietness: Quietness | None, patience: Patience, on_wait: Callable[[Speed], None]) -> None:
    """Wait until the measuring CPUs run near their best speed, while patience lasts."""
    if quietness is not None and patience.left:
        patience.spend(quietness.await_speed(patience.left, on_wait))


class ValidTrials:
    """A TrialSource over a tester with fixed traffic.

    `on_trial` gets every trial as soon as it has ended, also an invalid one, before anything is decided about it. So a
    record of all trials is complete in every case. With `quietness`, every result has the noise around it. With
    `clock`, every result has the CPU time of the system under test. `train` frames leave together, if the tester can.
    With `round_trip`, the far end sends each frame back.

    While `patience` lasts, a trial begins only if the measuring CPUs run near their best speed, and a disturbed trial
    is invalid. The counts of a trial do not influence this, so no result is preferred.
    """

    def __init__(
        self,
        tester: Tester,
        traffic: AddressedTraffic,
        limits: TesterLimits,
        on_trial: Callable[[TrialResult], None] = ignore,
        quietness: Quietness | None = None,
        patience: Patience | None = None,
        on_wait: Callable[[Speed], None] = ignore,
        clock: ThreadClock | None = None,
        train: int = 1,
        round_trip: bool = False,
    ) -> None:
        self.maximum_load = limits.maximum_load
        self._unpaced = limits.maximum_load if limits.held else UNPACED
        self._tester, self._traffic, self._no_latency = tester, traffic, limits.doubt_of_latencies
        self._on_trial, self._quietness = on_trial, quietness
        self._patience, self._on_wait = patience or Patience(), on_wait
        self._clock, self._train, self._round_trip = clock, train, round_trip

    def measure(self, load: float, duration: float) -> TrialResult:
        """One valid trial of `duration` seconds, or of the shortest duration that the tester measures well.

        A trial that the tester could not deliver is repeated up to three times, and on a noisy machine for ten more
        seconds, because a hypervisor may stop a CPU for a second. A disturbed trial is repeated while patience lasts.
        Raises TrialNotDelivered if no trial was delivered.
        """
        duration = max(duration, self._tester.shortest_trial)
        load = self._unpaced if load == UNPACED else load
        return self._valid(Trial(self._traffic, load, duration, train=self._train, round_trip=self._round_trip))

    def burst(self, frames: int) -> TrialResult:
        """One valid trial of `frames` frames in each direction, as fast as the tester can. Otherwise as `measure`."""
        return self._valid(Trial(self._traffic, self._unpaced, self._time_for(frames), frames=frames))

    def after_overload(self, overload: Overload, load: float, duration: float) -> TrialResult:
        """One valid trial of `duration` seconds at this load, with the overload before it. Otherwise as `measure`."""
        return self._valid(Trial(self._traffic, load, duration, overload=overload))

    def during(self, make: Callable[[ExitStack], None], load: float, duration: float) -> ChangedTrial:
        """One valid trial in whose middle `make` changes something. The change is undone after the trial.

        Otherwise as `measure`, but noise is no reason to repeat the trial: the change itself makes some.
        """
        changed: ChangedTrial | None = None

        def measure(trial: Trial) -> TrialResult:
            nonlocal changed
            with ExitStack() as undo, ThreadPoolExecutor(1) as beside:
                asked = time.monotonic()
                # A process that the change starts ends with the thread that starts it. So the tester has the other one.
                sending = beside.submit(self._timed, trial)
                time.sleep(duration / 2)
                began = time.monotonic()
                make(undo)
                seconds, result = time.monotonic() - began, sending.result()
                behind = None if result.preparation is None else began - asked - result.preparation
                changed = ChangedTrial(result, behind, seconds)
            return result

        result = self._valid(Trial(self._traffic, load, duration), measure)
        assert changed is not None
        return replace(changed, result=result)

    def _time_for(self, frames: int) -> float:
        """Seconds in which the tester surely sends this number of frames."""
        return max(SHORTEST_BURST, MOST_TIMES * frames / self.maximum_load)

    def _valid(self, trial: Trial, measure: Callable[[Trial], TrialResult] | None = None) -> TrialResult:
        attempts, grace, delivered = 0, GRACE, 0.0
        while attempts < 1 + MAXIMUM_REPEATS:
            result = self._watched(trial, measure or self._timed)
            why = None if measure else disturbance(result)
            disturbed = why is not None and self._patience.spend(result.elapsed)
            if disturbed:
                result = replace(result, invalid=why)
            self._on_trial(result)
            if result.invalid is None:
                return result
            delivered = max(delivered, result.achieved_load)
            if result.noise is not None and result.noise.noisy and not disturbed and grace > 0:
                grace -= max(trial.duration, result.elapsed)
            else:
                attempts += not disturbed
        asked = "as fast as it can" if trial.load == UNPACED else f"at {trial.load:,.0f} frames/s"
        raise TrialNotDelivered(
            f"the tester could not deliver a trial of {trial.longest:g} s {asked}, however often it was repeated; "
            f"the last time: {result.invalid}; "
            "free the tester's CPUs, or lower tester.maximum_load in the topology",
            delivered,
        )

    def _watched(self, trial: Trial, measure: Callable[[Trial], TrialResult]) -> TrialResult:
        if self._quietness is None:
            return measure(trial)
        await_quietness(self._quietness, self._patience, self._on_wait)
        self._quietness.start()
        result = measure(trial)
        return replace(result, noise=self._quietness.stop())

    def _timed(self, trial: Trial) -> TrialResult:
        began = Clocks.now()
        if self._clock is not None:
            self._clock.start()
        result = without_latency(self._tester.measure(trial), self._no_latency)
        if self._clock is not None:
            result = replace(result, cpu_time=self._clock.stop())
        took = Clocks.now() - began
        if (why := standstill(trial, took.on_any_clock)) is None:
            return result
        self._patience.stood_still += took.running - trial.longest
        return replace(result, invalid=why)
