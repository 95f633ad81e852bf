"""Latency by load: one trial each at 10, 50 and 90 % of the PDR and at the NDR, as FD.io CSIT reports it.

At 10 % a frame meets empty queues and sleeping threads, at 90 % busy ones. The trial at 50 % is that of the method
`latency`, which many tests have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from podperf.methods.base import TrialSource
from podperf.methods.latency import LatencyAtShare, LatencyResult
from podperf.metrics import METRICS, Measured, Metrics

NAME = "latency_by_load"
SHARES = {"10": 0.1, "90": 0.9}  # of the rate of the method `latency`
AT_NDR = "ndr"
PERCENTILES = {"p50": 50.0, "p99": 99.0}


@dataclass(frozen=True)
class LatencyByLoadResult:
    """One result for each step, by the step's name: 10, 90, ndr. `at_half` is that of the method `latency`."""

    steps: Mapping[str, LatencyResult]
    at_half: LatencyResult

    @property
    def metrics(self) -> Metrics:
        """Median and 99th percentile of each step. Unfinished if the rate of the step is."""
        return {
            f"latency_{name}_at_{step}": Measured(latency.percentile(percent), unfinished=result.unfinished)
            for step, result in self.steps.items()
            if (latency := result.latency) is not None
            for name, percent in PERCENTILES.items()
        }

    @property
    def by_load(self) -> Sequence[LatencyResult]:
        """All four, the lowest load first."""
        return sorted((*self.steps.values(), self.at_half), key=lambda each: each.trial.trial.load)

    def as_record(self) -> Mapping[str, Any]:
        """Load, loss and percentiles of each step."""
        return {"method": NAME, "steps": [each.as_record() for each in self.by_load]}


@dataclass(frozen=True)
class LatencyByLoad:
    """The trials beside `at_half`, which is there already."""

    trials: Mapping[str, LatencyAtShare]
    at_half: LatencyResult
    name: str = NAME

    @classmethod
    def beside(cls, at_half: LatencyResult, metrics: Metrics, duration: float) -> LatencyByLoad | None:
        """At shares of the rate of which `at_half` has the half, and at the NDR. None without such a rate."""
        half = LatencyAtShare.below(metrics)
        if half is None:
            return None
        trials = {name: replace(half, share=share, duration=duration) for name, share in SHARES.items()}
        if (ndr := metrics.get("ndr")) is not None and not ndr.upper_bound:
            trials[AT_NDR] = LatencyAtShare(ndr.value, METRICS["ndr"].label, ndr.unfinished, 1.0, duration)
        return cls(trials, at_half)

    def run(self, source: TrialSource) -> LatencyByLoadResult:
        """Measure."""
        return LatencyByLoadResult({name: each.run(source) for name, each in self.trials.items()}, self.at_half)
