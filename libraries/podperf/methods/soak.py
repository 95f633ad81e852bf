"""Soak: a load below the NDR for hours. At most how many frames are lost, and does any process grow?

The load goes in intervals, each a trial of its own, with a reading of memory behind it. Frames are lost in clumps. The
bound on the loss rate therefore takes the clumps into account, by the dispersion of the loss from interval to interval.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from podperf.figures import kpps, number, percent
from podperf.kernel.memory import kernel_memory, resident_memory
from podperf.methods.base import MeasuredChain, MethodTable
from podperf.methods.presets import FurtherSettings
from podperf.metrics import Measured, Metrics
from podperf.testbed.system_under_test import SystemUnderTest
from podperf.testers.base import TrialSource

NAME = "soak"
SHARE = 0.9  # of the NDR; the NDR itself is where loss begins
CONFIDENCE = 0.95
NORMAL = 1.6448536269514722  # a normal variable is below it with this confidence
FLAT_SHARE, FLAT_BYTES = 0.01, 256 * 1024  # memory that grows by no more than the larger of these is flat


@dataclass(frozen=True)
class MemoryReading:
    """Bytes of memory at one moment: resident memory of each process by its name, and of the kernel of each host."""

    processes: Mapping[str, int] = field(default_factory=dict)
    kernel: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Interval:
    """The frames of one interval, all directions, and the memory behind it. `ended` are seconds since the start."""

    sent: int
    lost: int
    ended: float
    memory: MemoryReading


def most_expected(lost: float, dispersion: float = 1.0) -> float:
    """The upper bound of the expected number of lost frames with 95 % confidence, if `lost` frames were lost.

    Poisson: the bound is 3.0 if none was lost (the rule of three), and otherwise Wilson and Hilferty's approximation of
    the chi-square quantile (to 0.5 %). The variance is `dispersion` times the mean, as with clumps of lost frames of
    that size.
    """
    if lost <= 0:
        return -math.log(1 - CONFIDENCE)
    events = lost / dispersion + 1
    return dispersion * events * (1 - 1 / (9 * events) + NORMAL / (3 * math.sqrt(events))) ** 3


def growth(amounts: Sequence[float]) -> float:
    """By how much the median of the last third of the amounts is above that of the first third."""
    third = max(1, len(amounts) // 3)
    return statistics.median(amounts[-third:]) - statistics.median(amounts[:third])


def is_flat(amounts: Sequence[float]) -> bool:
    """Whether memory does not grow by more than 1 %, or 256 KiB."""
    return growth(amounts) <= max(FLAT_BYTES, FLAT_SHARE * amounts[0])


@dataclass(frozen=True)
class SoakResult:
    """All intervals. `load` is frames/s and direction, and `ndr` the rate of which it is a share."""

    intervals: tuple[Interval, ...]
    load: float
    ndr: float
    interval: float  # seconds

    @property
    def sent(self) -> int:
        """Frames of all intervals and directions."""
        return sum(interval.sent for interval in self.intervals)

    @property
    def lost(self) -> int:
        """Frames that did not come back."""
        return sum(interval.lost for interval in self.intervals)

    @property
    def dispersion(self) -> float:
        """How many times its mean the variance of the loss is, from interval to interval. 1 or more."""
        losses = [interval.lost for interval in self.intervals]
        if len(losses) < 2 or not any(losses):
            return 1.0
        return max(1.0, statistics.variance(losses) / statistics.fmean(losses))

    @property
    def loss_bound(self) -> float:
        """The loss ratio that the system does not exceed, with 95 % confidence."""
        return min(1.0, most_expected(self.lost, self.dispersion) / self.sent) if self.sent else 1.0

    @property
    def series(self) -> Mapping[str, Sequence[int]]:
        """The memory of each process over time. Those that were not there all the time are left out."""
        readings = [interval.memory.processes for interval in self.intervals]
        names = set(readings[0]).intersection(*readings) if readings else set()
        return {name: [reading[name] for reading in readings] for name in sorted(names)}

    @property
    def kernel_series(self) -> Mapping[str, Sequence[int]]:
        """The kernel's memory on each host over time."""
        readings = [interval.memory.kernel for interval in self.intervals]
        names = set(readings[0]).intersection(*readings) if readings else set()
        return {name: [reading[name] for reading in readings] for name in sorted(names)}

    @property
    def missing(self) -> Mapping[str, str]:
        """The reason why no growth of memory is known. Empty if it is."""
        if self.series:
            return {}
        return {"memory growth": "not read: no process of the system under test handles frames, its kernel does"}

    @property
    def metrics(self) -> Metrics:
        """The bound on the loss, and the growth of all processes together. No growth without a process."""
        found = {"loss_bound": Measured(self.loss_bound, low=self.lost / self.sent if self.sent else None)}
        if series := self.series:
            totals = [float(sum(moment)) for moment in zip(*series.values(), strict=True)]
            found["memory_growth"] = Measured(growth(totals))
        return found

    @property
    def said(self) -> Sequence[str]:
        found = [
            f"{self.lost} of {self.sent:,} frames lost in {len(self.intervals)} intervals: at most "
            f"{percent(self.loss_bound)} with 95 % confidence"
        ]
        for name, amounts in self.series.items():
            words = "flat" if is_flat(amounts) else "growing"
            found.append(f"{name}: {amounts[0] >> 10:,} KiB to {amounts[-1] >> 10:,} KiB, {words}")
        return found

    def as_record(self) -> Mapping[str, Any]:
        """Loss by interval, memory over time, and the parameters."""
        return {
            "method": NAME,
            "source": "ETSI GS NFV-TST 009, long duration",
            "load": self.load,
            "share": SHARE,
            "of": self.ndr,
            "seconds": self.intervals[-1].ended if self.intervals else 0.0,
            "interval": self.interval,
            "sent": self.sent,
            "lost": self.lost,
            "lost_by_interval": [interval.lost for interval in self.intervals],
            "intervals_with_loss": sum(1 for interval in self.intervals if interval.lost),
            "loss_ratio": self.lost / self.sent if self.sent else None,
            "loss_bound": self.loss_bound,
            "confidence": CONFIDENCE,
            "dispersion": self.dispersion,
            "moments": [interval.ended for interval in self.intervals],
            "memory": _told(self.series),
            "kernel_memory": _told(self.kernel_series),
            "missing": dict(self.missing),
        }


def _told(series: Mapping[str, Sequence[int]]) -> Mapping[str, Any]:
    return {
        name: {"bytes": list(amounts), "growth": growth(amounts), "flat": is_flat(amounts)}
        for name, amounts in series.items()
    }


@dataclass(frozen=True)
class Soak:
    """`duration` seconds at SHARE of the NDR, in intervals of `interval` seconds. `memory` reads the memory now."""

    ndr: float
    duration: float
    interval: float
    memory: Callable[[], MemoryReading]
    clock: Callable[[], float]
    name: ClassVar[str] = NAME
    searches: ClassVar[bool] = True

    @classmethod
    def on(cls, chain: MeasuredChain, amount: float | None = None) -> SoakResult | None:
        """See FurtherMethod. `amount`: seconds of sending."""
        if (ndr := chain.searched("ndr")) is None:
            return None
        settings, sut = chain.further_settings, chain.sut
        duration = settings.soak if amount is None else amount
        method = cls(ndr.value, duration, settings.soak_interval, lambda: read_memory(sut), time.monotonic)
        return method.run(chain.trials(NAME))

    @staticmethod
    def usual_seconds(settings: FurtherSettings, between: float, set_up: float) -> float:
        return settings.soak + settings.soak / settings.soak_interval * between

    @staticmethod
    def table(found: Mapping[str, Any]) -> MethodTable:
        lost, bound, confidence = found["lost"], percent(found["loss_bound"]), percent(found["confidence"])
        clumps = f"; loss in {found['intervals_with_loss']} of {len(found['moments'])} intervals" if lost else ""
        words = f"{lost} of {number(found['sent'])} frames lost{clumps}: at most {bound} with {confidence} confidence"
        rows = [
            (f"{of}{name}", *map(_mebibytes, (each["bytes"][0], max(each["bytes"]), each["bytes"][-1])), flat)
            for series, of in (("memory", ""), ("kernel_memory", "the kernel of "))
            for name, each in found[series].items()
            for flat in ["flat" if each["flat"] else "grows"]
        ]
        title = f"Soak ({found['source']}): {number(found['seconds'])} s at {kpps(found['load'])} kpps"
        return MethodTable(title, rows, ("Memory of", "first, MiB", "most, MiB", "last, MiB", ""), words)

    def run(self, source: TrialSource) -> SoakResult:
        """Measure."""
        load, began, intervals = min(SHARE * self.ndr, source.maximum_load), self.clock(), list[Interval]()
        sent_for = 0.0
        while sent_for < self.duration - 1e-9:
            trial = source.measure(load, min(self.interval, self.duration - sent_for))
            sent_for += trial.trial.duration
            intervals.append(Interval(trial.sent, trial.lost, self.clock() - began, self.memory()))
        return SoakResult(tuple(intervals), load, self.ndr, self.interval)


def read_memory(sut: SystemUnderTest) -> MemoryReading:
    """The memory of all processes of the system under test that handle frames, and of the kernel of each host."""
    processes: dict[str, int] = {}
    kernel: dict[str, int] = {}
    for place, part in enumerate(sut.parts):
        prefix = f"{part.worker}: " if place else ""
        for user in part.data_plane.cpu_users or ():
            found: Mapping[str, int] = resident_memory(user.host, user.threads())
            processes |= {f"{prefix}{name}": amount for name, amount in found.items()}
            if part.worker not in kernel and (amount := kernel_memory(user.host)) is not None:
                kernel[part.worker] = amount
    return MemoryReading(processes, kernel)


def _mebibytes(amount: float) -> str:
    return number(amount / 2**20)
