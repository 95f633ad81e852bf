"""Valid trials only: between a method and the tester. And what several of them say together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from podperf.errors import TesterLimit
from podperf.model import Latency, Traffic, Trial, TrialResult
from podperf.quietness import Quietness
from podperf.testers.base import Tester, TesterLimits

MAXIMUM_REPEATS = 3
TRIAL_OVERHEAD = 0.1  # seconds around the sending (start, drain, reading of counters): an estimate, for time left only


def ignore(_result: TrialResult) -> None:
    """An observer for those who need none."""


class ValidTrials:
    """A TrialSource over a tester with fixed traffic.

    `on_trial` sees every trial as soon as it ended, the invalid ones too, before anything is decided about it: what it
    writes down is complete whatever happens next. With `quietness`, every result carries the noise around it.
    """

    def __init__(
        self,
        tester: Tester,
        traffic: Traffic,
        limits: TesterLimits,
        on_trial: Callable[[TrialResult], None] = ignore,
        quietness: Quietness | None = None,
    ) -> None:
        self.maximum_load = limits.maximum_load
        self._tester, self._traffic = tester, traffic
        self._on_trial, self._quietness = on_trial, quietness

    def measure(self, load: float, duration: float) -> TrialResult:
        """One valid trial; an invalid one is repeated up to three times. TesterLimit when none of them was valid."""
        trial = Trial(self._traffic, load, duration)
        for _ in range(1 + MAXIMUM_REPEATS):
            result = self._watched(trial)
            self._on_trial(result)
            if result.invalid is None:
                return result
        raise TesterLimit(
            f"the tester could not deliver a trial of {duration:g} s at {load:,.0f} frames/s in "
            f"{1 + MAXIMUM_REPEATS} attempts; the last time: {result.invalid}; "
            "free the tester's CPUs, or calibrate again to lower its maximum load"
        )

    def _watched(self, trial: Trial) -> TrialResult:
        if self._quietness is None:
            return self._tester.measure(trial)
        self._quietness.start()
        result = self._tester.measure(trial)
        return replace(result, noise=self._quietness.stop())


def merged_latency(results: Iterable[TrialResult]) -> Latency | None:
    """Latency of all these trials and directions taken together, or None when nothing was received."""
    merged: Latency | None = None
    for result in results:
        latency = result.latency
        if latency is not None:
            merged = latency if merged is None else merged.merged(latency)
    return merged


def latency_record(latency: Latency | None) -> Mapping[str, Any] | None:
    """Minimum, mean, percentiles and maximum in ns as JSON-serialisable data. The histogram stays with its trial."""
    if latency is None:
        return None
    percentiles = {f"p{percent:g}": latency.percentile(percent) for percent in (50.0, 90.0, 99.0, 99.9)}
    return {"minimum": latency.minimum, "mean": latency.mean, **percentiles, "maximum": latency.maximum}
