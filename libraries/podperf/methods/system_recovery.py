"""System recovery: for how long a system still loses frames after an overload (RFC 2544 section 26.5).

The tester sends 110 % of the throughput (the NDR), and then 50 % of that load without a gap. The recovery time is that
from the change to the last lost frame. The number of this frame tells when it was due, exact to one gap between frames.

Frames can be lost at that load without an overload, too: by stalls of the machine, or by a system that loses frames at
every load. Then the last lost frame says nothing about the overload. So control trials at the same load go by turns
with these trials: the first one before them, and one after each.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from podperf.figures import count, kpps, milliseconds, percent
from podperf.methods.base import ChainSource, MeasuredChain, MethodTable, time_to_last_lost
from podperf.methods.presets import FurtherSettings
from podperf.metrics import Measured, Metrics
from podperf.model import DirectionResult, Overload, TrialResult
from podperf.testers.base import Ability

NAME = "system_recovery"
OVERLOAD_SHARE = 1.1  # of the throughput
AFTERWARDS_SHARE = 0.5  # of the overload


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
        found = [_seconds(trial, direction) for direction in trial.directions]
        longest = max(found, default=0.0)
        return cls(longest, longest <= 0.9 * trial.trial.duration, trial.lost > 0, trial.lost)


def _seconds(trial: TrialResult, direction: DirectionResult) -> float:
    overload = trial.trial.overload
    before = 0 if overload is None else round(overload.load * overload.duration)
    return time_to_last_lost(direction, before, trial.trial.load)


@dataclass(frozen=True)
class SystemRecoveryResult:
    """All trials. Loads are in frames/s and direction. `throughput` is the NDR, which may be `unfinished`.

    `controls` are the trials at `load` without an overload. The first one that lost frames is the last trial.
    """

    recoveries: tuple[Recovery, ...]
    throughput: float
    overload: Overload
    load: float  # behind the overload
    duration: float  # of this load, in seconds
    controls: tuple[TrialResult, ...]
    unfinished: bool = False

    @property
    def missing(self) -> Mapping[str, str]:
        """The reason why there is no figure. Empty if there is one."""
        if self.controls[-1].lost:
            reason = (
                f"{self.controls[-1].lost} of {count(self.controls[-1].sent, 'frame')} were lost at "
                f"{self.load:,.0f} frames/s without an overload, too (control trial {len(self.controls)})"
            )
            return {"recovery time": f"not judged: {reason}"}
        if not any(recovery.overloaded for recovery in self.recoveries):
            reason = f"no overload: nothing was lost at {self.overload.load:,.0f} frames/s in any trial"
            return {"recovery time": f"not found: {reason}"}
        return {}

    @property
    def metrics(self) -> Metrics:
        """The mean of the trials that were overloaded. A lower bound if frames were lost until the end of one."""
        found = [recovery for recovery in self.recoveries if recovery.overloaded]
        if self.missing:
            return {}
        times = [each.seconds for each in found]
        bound = not all(each.ended for each in found)
        figure = Measured(statistics.fmean(times), min(times), max(times), bound, unfinished=self.unfinished)
        return {"recovery_time": figure}

    @property
    def said(self) -> Sequence[str]:
        return [f"{milliseconds(recovery.seconds)}, {recovery.lost} frames lost" for recovery in self.recoveries]

    def as_record(self) -> Mapping[str, Any]:
        """The time of each trial, and the parameters."""
        return {
            "method": NAME,
            "source": "RFC 2544 section 26.5",
            "recoveries": [
                {
                    "seconds": recovery.seconds,
                    "ended": recovery.ended,
                    "overloaded": recovery.overloaded,
                    "lost": recovery.lost,
                }
                for recovery in self.recoveries
            ],
            "controls": [{"sent": control.sent, "lost": control.lost} for control in self.controls],
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
    """`trials` trials with `overload` seconds of overload, and then `duration` seconds at half of it.

    Control trials take `duration` seconds. The first one that loses frames ends the method.
    """

    throughput: float  # frames/s and direction
    trials: int
    overload: float
    duration: float
    unfinished: bool = False
    name: ClassVar[str] = NAME
    searches: ClassVar[bool] = True

    @classmethod
    def on(cls, chain: MeasuredChain, amount: float | None = None) -> SystemRecoveryResult | None:
        """See FurtherMethod. `amount`: trials."""
        chain.demand(Ability.OVERLOAD)
        if (ndr := chain.searched("ndr")) is None:
            return None
        each = chain.further_settings
        trials = each.recovery_trials if amount is None else round(amount)
        return cls(ndr.value, trials, each.overload, each.after_overload, ndr.unfinished).run(chain.trials(NAME))

    @staticmethod
    def usual_seconds(settings: FurtherSettings, between: float, set_up: float) -> float:
        return settings.recovery_trials * (settings.overload + 2 * (settings.after_overload + between))

    @staticmethod
    def table(found: Mapping[str, Any]) -> MethodTable:
        rows = [
            (str(place), milliseconds(each["seconds"]) if each["overloaded"] else "no loss", str(each["lost"]))
            for place, each in enumerate(found["recoveries"], 1)
        ]
        overload = f"{found['overload_duration']:g} s at {kpps(found['overload'])} kpps"
        of_ndr, after = percent(found["overload_share"]), f"{found['duration']:g} s at {kpps(found['load'])} kpps"
        title = f"System recovery ({found['source']}): {overload} ({of_ndr} of the NDR), then {after}"
        words = _controls(found["controls"]) if "controls" in found else ""
        return MethodTable(title, rows, ("Trial", "Until the last lost frame", "Lost frames"), words)

    def run(self, source: ChainSource) -> SystemRecoveryResult:
        """Measure. The overload is at most the maximum load, as in the RFC at most the rate of the medium."""
        load = min(OVERLOAD_SHARE * self.throughput, source.maximum_load)
        overload, after = Overload(load, self.overload), AFTERWARDS_SHARE * load
        recoveries, controls = list[Recovery](), [source.measure(after, self.duration)]
        while len(recoveries) < self.trials and not controls[-1].lost:
            recoveries.append(Recovery.of(source.after_overload(overload, after, self.duration)))
            controls.append(source.measure(after, self.duration))
        return SystemRecoveryResult(
            tuple(recoveries), self.throughput, overload, after, self.duration, tuple(controls), self.unfinished
        )


def _controls(controls: Sequence[Mapping[str, Any]]) -> str:
    last = controls[-1]
    lost = f"{last['lost']} of {last['sent']} frames lost in the last one" if last["lost"] else "no loss"
    return f"Control trials at the same load without an overload: {len(controls)}, {lost}."
