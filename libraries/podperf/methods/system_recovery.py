"""System recovery: for how long a system still loses frames after an overload (RFC 2544 section 26.5).

The tester sends 110 % of the throughput (the NDR), and then 50 % of that load without a gap. The recovery time is that
from the change to the last lost frame. The number of this frame tells when it was due, exact to one gap between frames.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from podperf.metrics import Measured, Metrics
from podperf.model import DirectionResult, Overload, TrialResult

NAME = "system_recovery"
OVERLOAD_SHARE = 1.1  # of the throughput
AFTERWARDS_SHARE = 0.5  # of the overload


class OverloadSource(Protocol):
    """The source of trials that begin with an overload."""

    maximum_load: float  # frames/s and direction

    def after_overload(self, overload: Overload, load: float, duration: float) -> TrialResult:
        """One valid trial of `duration` seconds at this load, with the overload before it."""


@dataclass(frozen=True)
class Recovery:
    """One trial. `seconds` pass from the change of the load to the last lost frame; 0: no frame was lost behind it.

    `ended`: the last tenth of the time behind the overload lost nothing, so the system has recovered. `overloaded`: the
    trial lost frames at all.
    """

    seconds: float
    ended: bool
    overloaded: bool
    lost: int

    @classmethod
    def of(cls, trial: TrialResult) -> Recovery:
        """The recovery in the slowest direction of a trial."""
        found = [_seconds(trial, each) for each in trial.directions]
        longest = max(found, default=0.0)
        return cls(longest, longest <= 0.9 * trial.trial.duration, trial.lost > 0, trial.lost)


def _seconds(trial: TrialResult, direction: DirectionResult) -> float:
    overload = trial.trial.overload
    if overload is None or direction.last_lost is None or not direction.lost:
        return 0.0
    behind = direction.last_lost + 1 - round(overload.load * overload.duration)
    return max(0, behind) / trial.trial.load


@dataclass(frozen=True)
class SystemRecoveryResult:
    """All trials. Loads are in frames/s and direction. `throughput` is the NDR, which may be `unfinished`."""

    recoveries: tuple[Recovery, ...]
    throughput: float
    overload: Overload
    load: float  # behind the overload
    duration: float  # of this load, in seconds
    unfinished: bool = False

    @property
    def missing(self) -> Mapping[str, str]:
        """The reason why there is no figure. Empty if there is one."""
        if not any(each.overloaded for each in self.recoveries):
            reason = f"no overload: nothing was lost at {self.overload.load:,.0f} frames/s in any trial"
            return {"recovery time": f"not found: {reason}"}
        return {}

    @property
    def metrics(self) -> Metrics:
        """The mean of the trials that were overloaded. A lower bound if frames were lost until the end of one."""
        found = [each for each in self.recoveries if each.overloaded]
        if not found:
            return {}
        times = [each.seconds for each in found]
        bound = not all(each.ended for each in found)
        figure = Measured(statistics.fmean(times), min(times), max(times), bound, unfinished=self.unfinished)
        return {"recovery_time": figure}

    def as_record(self) -> Mapping[str, Any]:
        """The time of each trial, and the parameters."""
        return {
            "method": NAME,
            "source": "RFC 2544 section 26.5",
            "recoveries": [
                {"seconds": each.seconds, "ended": each.ended, "overloaded": each.overloaded, "lost": each.lost}
                for each in self.recoveries
            ],
            "missing": dict(self.missing),
            "throughput": self.throughput,
            "overload": self.overload.load,
            "overload_share": self.overload.load / self.throughput,
            "overload_duration": self.overload.duration,
            "load": self.load,
            "duration": self.duration,
            "resolution": 1 / self.load,
        }


@dataclass(frozen=True)
class SystemRecovery:
    """`trials` trials with `overload` seconds of overload, and then `duration` seconds at half of it."""

    throughput: float  # frames/s and direction
    trials: int
    overload: float
    duration: float
    unfinished: bool = False
    name: str = NAME

    def run(self, source: OverloadSource) -> SystemRecoveryResult:
        """Measure. The overload is at most the maximum load, as in the RFC at most the rate of the medium."""
        load = min(OVERLOAD_SHARE * self.throughput, source.maximum_load)
        overload, after = Overload(load, self.overload), AFTERWARDS_SHARE * load
        found = [Recovery.of(source.after_overload(overload, after, self.duration)) for _ in range(self.trials)]
        return SystemRecoveryResult(tuple(found), self.throughput, overload, after, self.duration, self.unfinished)
