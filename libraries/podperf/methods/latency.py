"""Latency at a load well below the system's highest rate. There it is the latency of the path, and not of full queues.

FD.io CSIT reports latency at shares of the PDR for the same reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podperf.methods.base import TrialSource
from podperf.methods.trials import latency_record
from podperf.metrics import METRICS, Measured, Metrics
from podperf.model import Latency, TrialResult

_PERCENTILES = {"latency_p50": 50.0, "latency_p99": 99.0}
_RATES = ("pdr", "ndr")  # the load is a share of the first of these that was found


@dataclass(frozen=True)
class LatencyResult:
    """One trial. Its load was `share` of the rate `of`. `unfinished`: this rate comes from an unfinished search."""

    trial: TrialResult
    share: float
    of: str
    unfinished: bool = False

    @property
    def metrics(self) -> Metrics:
        """Median and 99th percentile. Unfinished if the rate is, because thresholds mean a share of the true rate."""
        latency = self.latency
        if latency is None:
            return {}
        return {
            name: Measured(latency.percentile(percent), unfinished=self.unfinished)
            for name, percent in _PERCENTILES.items()
        }

    @property
    def latency(self) -> Latency | None:
        """Latency of all frames of the trial, or None if none came back."""
        return self.trial.latency

    @property
    def statement(self) -> str:
        """The result in words."""
        return f"{self.trial.trial.duration:g} s at {self.share:.0%} of the {self.of}"

    def as_record(self) -> Mapping[str, Any]:
        """Load, loss and percentiles. The record of the trial has the histogram."""
        return {
            "method": "latency",
            "statement": self.statement,
            "share": self.share,
            "of": self.of,
            "load": self.trial.trial.load,
            "loss_ratio": self.trial.loss_ratio,
            "latency": latency_record(self.latency),
        }


@dataclass(frozen=True)
class LatencyAtShare:
    """One trial of `duration` seconds at `share` of a given rate (frames/s and direction), which is called `of`."""

    rate: float
    of: str
    unfinished: bool = False  # the rate `of` comes from a search that was cut short
    share: float = 0.5
    duration: float = 1.0
    name: str = "latency"

    @classmethod
    def below(cls, metrics: Metrics) -> LatencyAtShare | None:
        """At half the PDR, or at half the NDR without a PDR. None without a rate that the system carries."""
        found = [each for each in _RATES if each in metrics and not metrics[each].upper_bound]
        if not found:
            return None
        rate, label = metrics[found[0]], METRICS[found[0]].label
        of = f"{label} of an unfinished search" if rate.unfinished else label
        return cls(rate.value, of, rate.unfinished)

    def run(self, source: TrialSource) -> LatencyResult:
        """Measure."""
        trial = source.measure(self.rate * self.share, self.duration)
        return LatencyResult(trial, self.share, self.of, self.unfinished)
