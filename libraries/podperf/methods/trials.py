"""Valid trials only: between a method and the tester. And what several of them say together."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from podperf.errors import TrialNotDelivered
from podperf.model import Latency, Traffic, Trial, TrialResult
from podperf.noise import Speed
from podperf.quietness.watch import Quietness
from podperf.testers.base import UNPACED, Tester, TesterLimits
from podperf.testers.validity import disturbance

MAXIMUM_REPEATS = 3
GRACE = 10.0  # seconds of further trials that the tester may fail to deliver while the machine is noisy


def ignore(_seen: object) -> None:
    """An observer for those who need none."""


@dataclass
class Patience:
    """Seconds that a run may yet spend on waiting for a quiet machine, and on repeating trials that were disturbed.

    One run has one: each test grants it some seconds, and leaves to the next test the seconds that it does not need, as
    the neighbours of a machine come and go. `spent` counts the seconds of the test that runs now.
    """

    left: float = 0.0
    spent: float = 0.0

    def grant(self, seconds: float) -> None:
        """A test begins: it may spend so many seconds on top of those that earlier tests left."""
        self.left, self.spent = self.left + seconds, 0.0

    def withdraw(self, seconds: float) -> None:
        """Take a grant back from a test that had no use for it."""
        self.left = max(0.0, self.left - seconds)

    def spend(self, seconds: float) -> bool:
        """Take so much from what is left. False when that was not there: it is gone, and so is all patience."""
        enough = 0 < self.left >= seconds
        self.spent += min(seconds, self.left)
        self.left = max(0.0, self.left - seconds)
        return enough

    def clock(self) -> float:
        """Seconds that pass while nothing is waited for: what a search's time limit goes by."""
        return time.monotonic() - self.spent


def await_quietness(quietness: Quietness | None, patience: Patience, on_wait: Callable[[Speed], None]) -> None:
    """Wait until the measuring CPUs run near their best speed, as long as there is patience."""
    if quietness is not None and patience.left:
        patience.spend(quietness.await_speed(patience.left, on_wait))


class ValidTrials:
    """A TrialSource over a tester with fixed traffic.

    `on_trial` sees every trial as soon as it ended, the invalid ones too, before anything is decided about it: what it
    writes down is complete whatever happens next. With `quietness`, every result carries the noise around it.

    While there is `patience`, a trial begins only when the measuring CPUs run near their best speed, and one that was
    disturbed is invalid. What a trial counted has no part in that, so no result is chosen over another.
    """

    def __init__(
        self,
        tester: Tester,
        traffic: Traffic,
        limits: TesterLimits,
        on_trial: Callable[[TrialResult], None] = ignore,
        quietness: Quietness | None = None,
        patience: Patience | None = None,
        on_wait: Callable[[Speed], None] = ignore,
    ) -> None:
        self.maximum_load = limits.maximum_load
        self._unpaced = limits.maximum_load if limits.held else UNPACED
        self._tester, self._traffic = tester, traffic
        self._on_trial, self._quietness = on_trial, quietness
        self._patience, self._on_wait = patience or Patience(), on_wait

    def measure(self, load: float, duration: float) -> TrialResult:
        """One valid trial, of `duration` or of the shortest that the tester can do well.

        One that the tester could not deliver is repeated up to three times, and for ten more seconds where the machine
        was noisy: a hypervisor may stop a CPU for one. A disturbed one is repeated as long as there is patience.
        TrialNotDelivered when the tester delivered none.
        """
        duration = max(duration, self._tester.shortest_trial)
        trial = Trial(self._traffic, self._unpaced if load == UNPACED else load, duration)
        attempts, grace, delivered = 0, GRACE, 0.0
        while attempts < 1 + MAXIMUM_REPEATS:
            result = self._watched(trial)
            why = disturbance(result)
            disturbed = why is not None and self._patience.spend(result.elapsed)
            if disturbed:
                result = replace(result, invalid=why)
            self._on_trial(result)
            if result.invalid is None:
                return result
            delivered = max(delivered, result.achieved_load)
            if result.noise is not None and result.noise.noisy and not disturbed and grace > 0:
                grace -= max(duration, result.elapsed)
            else:
                attempts += not disturbed
        asked = "as fast as it can" if trial.load == UNPACED else f"at {trial.load:,.0f} frames/s"
        raise TrialNotDelivered(
            f"the tester could not deliver a trial of {duration:g} s {asked}, however often it was repeated; "
            f"the last time: {result.invalid}; "
            "free the tester's CPUs, or lower tester.maximum_load in the topology",
            delivered,
        )

    def _watched(self, trial: Trial) -> TrialResult:
        if self._quietness is None:
            return self._tester.measure(trial)
        await_quietness(self._quietness, self._patience, self._on_wait)
        self._quietness.start()
        result = self._tester.measure(trial)
        return replace(result, noise=self._quietness.stop())


def latency_record(latency: Latency | None) -> Mapping[str, Any] | None:
    """Minimum, mean, percentiles and maximum in ns as JSON-serialisable data. The histogram stays with its trial."""
    if latency is None:
        return None
    percentiles = {f"p{percent:g}": latency.percentile(percent) for percent in (50.0, 90.0, 99.0, 99.9)}
    return {"minimum": latency.minimum, "mean": latency.mean, **percentiles, "maximum": latency.maximum}
