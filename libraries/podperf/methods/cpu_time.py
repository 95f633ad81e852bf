"""CPU time a frame: the time that the system under test computes for one frame, at a load that it carries.

Frames come in trains. A thread that sleeps takes more time to wake up than a frame takes, and the time of frames that
come one by one is the time of waking up. A train shares it, as with a network card that moderates its interrupts.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from podperf.errors import TrialNotDelivered
from podperf.methods.latency import LatencyAtShare, LatencyResult
from podperf.metrics import CPU_TIME, METRICS, Measured, Metrics
from podperf.model import CpuTime, TrialResult
from podperf.testers.base import TrialSource

NAME = "cpu_time"
TRAIN = 32  # frames
NO_REST = "the tester tells no CPU time of its machines"
TICK = 10e6  # nanoseconds: the kernel tells the idle time of a machine in steps of this size
DURATION = 0.5  # seconds; the scheduler counts nanoseconds, so that a longer trial would tell no more


@dataclass(frozen=True)
class CpuTimeResult:
    """The CPU time in the trial of `at`, divided by the frames that came back."""

    at: LatencyResult
    idle: TrialResult | None = None  # of the same duration, with so few frames that they take no time worth mentioning

    @property
    def cpu_time(self) -> CpuTime:
        """The CPU time of the trial."""
        return self.at.trial.cpu_time or CpuTime(unread="nobody read it around the trial")

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
        return {} if found is None else {NAME: Measured(found, unfinished=self.at.unfinished, doubt=self.at.doubt)}

    @property
    def _rest_of_nodes(self) -> Mapping[str, Any] | None:
        """The CPU time of all else on the nodes, with and without frames, and their difference for each frame."""
        idle = self.idle and self.idle.cpu_time
        if not idle or idle.beside.keys() != self.cpu_time.beside.keys():
            return None
        frames = max(1, self.at.trial.received)
        return {
            name: {
                CPU_TIME.key: (busy - idle.beside[name]) / frames,
                "resolution": 2 * TICK / frames,
                "with_frames": busy,
                "without_frames": idle.beside[name],
            }
            for name, busy in self.cpu_time.beside.items()
        }

    def as_record(self) -> Mapping[str, Any]:
        """The figure, and each part of it."""
        frames, runs = max(1, self.at.trial.received), self.cpu_time.runs
        return {
            "method": NAME,
            "statement": self.at.statement,
            "share": self.at.share,
            "of": self.at.of,
            "load": self.at.trial.trial.load,
            "train": self.at.trial.trial.train,
            "frames": self.at.trial.received,
            CPU_TIME.key: self.nanoseconds,
            "parts": {name: nanoseconds / frames for name, nanoseconds in self.cpu_time.parts.items()},
            "frames_per_run": self.at.trial.received / runs if runs else None,
            "polls": list(self.cpu_time.polling),
            "rest_of_nodes": self._rest_of_nodes,
            "rest_of_nodes_unread": "" if self._rest_of_nodes else NO_REST,
            "missing": {METRICS[NAME].label: f"not read: {self.missing}"} if self.missing else {},
        }


def not_delivered(error: TrialNotDelivered) -> Mapping[str, Any]:
    """The result in the record, if the tester could not deliver the trial."""
    return {"method": NAME, "missing": {METRICS[NAME].label: f"not read: {error}"}}


@dataclass(frozen=True)
class CpuTimeAtShare:
    """One trial at the load of latency. Its source reads the CPU time around it, and sends trains."""

    at: LatencyAtShare
    name: str = NAME

    @classmethod
    def below(cls, metrics: Metrics) -> CpuTimeAtShare | None:
        """At half the PDR, or at half the NDR without a PDR. None without a rate that the system carries."""
        found = LatencyAtShare.below(metrics)
        return None if found is None else cls(replace(found, duration=DURATION))

    def run(self, source: TrialSource) -> CpuTimeResult:
        """Measure. If the trial has the CPU time of all else on the nodes, so has one of the same duration that sends
        next to nothing."""
        found = CpuTimeResult(self.at.run(source))
        if not found.cpu_time.beside:
            return found
        with suppress(TrialNotDelivered):  # the figure is worth no less
            return replace(found, idle=source.measure(2 * TRAIN / self.at.duration, self.at.duration))
        return found
