"""Latency at a load well below the system's highest rate. There it is the latency of the path, and not of full queues.

FD.io CSIT reports latency at shares of the PDR for the same reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podperf.figures import percent
from podperf.metrics import METRICS, Measured, Metrics
from podperf.model import Latency, TrialResult
from podperf.testers.base import TrialSource

ONE_WAY = ("latency_p50", "latency_p99", "delay_variation")
ROUND_TRIP = ("round_trip_p50", "round_trip_p99", "round_trip_variation")
_RATES = ("pdr", "ndr")  # the load is a share of the first of these that was found


@dataclass(frozen=True)
class LatencyResult:
    """One trial. Its load was `share` of the rate `of`. `unfinished`: this rate comes from an unfinished search.

    `doubt` is about this rate, and so about the load.
    """

    trial: TrialResult
    share: float
    of: str
    unfinished: bool = False
    doubt: str = ""

    @property
    def metrics(self) -> Metrics:
        """Median, 99th percentile and delay variation."""
        return self.figures()

    def figures(self, suffix: str = "") -> Metrics:
        """The metrics, with `suffix` behind their names. Unfinished if the rate is, because thresholds mean a share of
        the true rate."""
        latency, variation = self.latency, self.trial.delay_variation
        if latency is None or variation is None:
            return {}
        names = ROUND_TRIP if self.trial.trial.round_trip else ONE_WAY
        found = dict(zip(names, (latency.percentile(50), latency.percentile(99), variation), strict=True))
        return {
            f"{name}{suffix}": Measured(figure, unfinished=self.unfinished, doubt=self.doubt)
            for name, figure in found.items()
        }

    @property
    def latency(self) -> Latency | None:
        """Latency of all frames of the trial, or None if none came back."""
        return self.trial.latency

    @property
    def missing(self) -> Mapping[str, str]:
        """The reason why the latency is not known although frames came back. Empty if it is known."""
        reason = self.trial.impossible_latency
        return {f"latency at {percent(self.share)} of {self.of}": f"not known: {reason}"} if reason else {}

    @property
    def statement(self) -> str:
        """The result in words."""
        ways = "round trips, " if self.trial.trial.round_trip else ""
        return f"{ways}{self.trial.trial.duration:g} s at {self.share:.0%} of the {self.of}"

    def as_record(self) -> Mapping[str, Any]:
        """Load, loss, percentiles and delay variation. The record of the trial has the histogram."""
        return {
            "method": "latency",
            "statement": self.statement,
            "share": self.share,
            "of": self.of,
            "load": self.trial.trial.load,
            "loss_ratio": self.trial.loss_ratio,
            "latency": self.latency and self.latency.as_record(),
            "delay_variation_ns": self.trial.delay_variation,
            "missing": dict(self.missing),
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
    doubt: str = ""

    @classmethod
    def below(cls, metrics: Metrics) -> LatencyAtShare | None:
        """At half the PDR, or at half the NDR without a PDR. None without a rate that the system carries."""
        found = [rate for rate in _RATES if rate in metrics and not metrics[rate].upper_bound]
        if not found:
            return None
        return cls.of_rate(metrics[found[0]], METRICS[found[0]].label)

    @classmethod
    def of_rate(cls, rate: Measured, label: str) -> LatencyAtShare:
        """At half of this rate."""
        of = f"{label} of an unfinished search" if rate.unfinished else label
        doubt = f"measured at a share of the {label}, which is in doubt" if rate.doubt else ""
        return cls(rate.value, of, rate.unfinished, doubt=doubt)

    def run(self, source: TrialSource) -> LatencyResult:
        """Measure."""
        trial = source.measure(self.rate * self.share, self.duration)
        return LatencyResult(trial, self.share, self.of, self.unfinished, self.doubt)
