"""CPU time a frame: the time that the system under test computes for one frame, at a load that it carries.

The method has no trial of its own. It takes the trial of latency, so that a test does not get longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podperf.cpu_time import CpuTime
from podperf.methods.latency import LatencyResult
from podperf.metrics import CPU_TIME, METRICS, Measured, Metrics

NAME = "cpu_time"


@dataclass(frozen=True)
class CpuTimeResult:
    """The CPU time in the trial of `at`, divided by the frames that came back."""

    at: LatencyResult

    @property
    def cpu_time(self) -> CpuTime:
        """The CPU time of the trial."""
        return self.at.trial.cpu_time or CpuTime(unread="not read: nobody read it around the trial")

    @property
    def nanoseconds(self) -> float | None:
        """Nanoseconds a frame. None if the time of a part is not known."""
        total, frames = self.cpu_time.total, self.at.trial.received
        return total / frames if total and frames else None

    @property
    def missing(self) -> str:
        """Why the time could not be read. Empty if it could, or if parts poll."""
        if self.cpu_time.unread or self.cpu_time.polling or self.nanoseconds is not None:
            return self.cpu_time.unread
        if not self.at.trial.received:
            return "no frame came back"
        return "the kernel counts no CPU time of its threads in /proc/THREAD/schedstat"

    @property
    def metrics(self) -> Metrics:
        """The figure, or none. Unfinished if the load is a share of an unfinished search."""
        found = self.nanoseconds
        return {} if found is None else {NAME: Measured(found, unfinished=self.at.unfinished)}

    def as_record(self) -> Mapping[str, Any]:
        """The figure, and each part of it."""
        frames, runs = max(1, self.at.trial.received), self.cpu_time.runs
        return {
            "method": NAME,
            "statement": self.at.statement,
            "share": self.at.share,
            "of": self.at.of,
            "load": self.at.trial.trial.load,
            "frames": self.at.trial.received,
            CPU_TIME.key: self.nanoseconds,
            "parts": {name: nanoseconds / frames for name, nanoseconds in self.cpu_time.parts.items()},
            "frames_per_run": self.at.trial.received / runs if runs else None,
            "polls": list(self.cpu_time.polling),
            "missing": {METRICS[NAME].label: f"not read: {self.missing}"} if self.missing else {},
        }
