"""Latency at a load well below what the system can take, where it is that of the path and not of full queues.

FD.io CSIT reports latency at shares of the PDR for the same reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podperf.methods.base import TrialSource
from podperf.methods.trials import latency_record
from podperf.model import Latency, TrialResult


@dataclass(frozen=True)
class LatencyResult:
    """One trial, and the share of which rate (`of`) its load was."""

    trial: TrialResult
    share: float
    of: str

    @property
    def latency(self) -> Latency | None:
        """Latency of all frames of the trial, or None when none came back."""
        return self.trial.latency

    @property
    def statement(self) -> str:
        """What was measured, in words."""
        return f"{self.trial.trial.duration:g} s at {self.share:.0%} of the {self.of}"

    def as_record(self) -> Mapping[str, Any]:
        """Load, loss and percentiles; the histogram stands with the trial."""
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
    share: float = 0.5
    duration: float = 1.0
    name: str = "latency"

    def run(self, source: TrialSource) -> LatencyResult:
        """Measure."""
        return LatencyResult(source.measure(self.rate * self.share, self.duration), self.share, self.of)
