"""The time of the measuring CPUs that other work took during a measurement. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from statistics import fmean
from typing import Any

# Shares of the measuring CPUs' time above which a measurement counts as noisy.
STOLEN_LIMIT = 0.01
FOREIGN_LIMIT = 0.05
# Below these shares of a CPU's best speed, figures also describe foreign work. Slow memory costs forwarding less than
# slow computing does: see benchmarks/quietness_gauges.py.
WORK_LIMIT = 0.8
MEMORY_LIMIT = 0.7
OTHER_PROCESSES = "went to other processes"
NAMED = 3  # processes that the reason names at most


@dataclass(frozen=True)
class Speed:
    """The speed of the slowest CPU at computing, and of the slowest one at copying memory, as shares of their best."""

    work: float = 1.0
    memory: float = 1.0

    @property
    def shortfalls(self) -> list[str]:
        """The speeds that are too low for trustworthy figures, in words."""
        found = []
        if self.work < WORK_LIMIT:
            found.append(f"the slowest ran at {self.work:.0%} of its best speed")
        if self.memory < MEMORY_LIMIT:
            found.append(f"memory was at {self.memory:.0%} of its best speed")
        return found


@dataclass(frozen=True)
class Noise:
    """Other work on the measuring CPUs during one or more windows. Amounts are CPU seconds. Two values can be added.

    `foreign` has the time of each foreign process on the measuring CPUs, by "name (pid)". Tester, system under test and
    the suite itself are not foreign. The kernel counts in ticks of `resolution` seconds. So an amount of one window can
    be wrong by one tick.
    """

    cpus: tuple[int, ...]
    window: float  # seconds of wall clock
    stolen: float
    foreign: Mapping[str, float]
    context_switches: int
    run_queue: int  # threads that wanted a CPU just before or just after (the larger number), without podperf's own
    resolution: float
    speed: Speed | None = None  # the mean; None: unknown
    # On the machines of the workers in the same window, from left to right; empty if the worker's is this one.
    workers: tuple[Noise, ...] = ()

    @property
    def capacity(self) -> float:
        """CPU seconds that the measuring CPUs had."""
        return max(1e-9, self.window * len(self.cpus))

    @property
    def stolen_ratio(self) -> float:
        """Share of the measuring CPUs' time that the hypervisor gave to other machines."""
        return self.stolen / self.capacity

    @property
    def foreign_ratio(self) -> float:
        """Share of the measuring CPUs' time that other processes took."""
        return sum(self.foreign.values()) / self.capacity

    @property
    def noisy(self) -> bool:
        """True if the figures of these windows may describe foreign work and not the SUT."""
        return self.reason is not None

    @property
    def reason(self) -> str | None:
        """One sentence about the disturbance of the measurement, or None."""
        if not self.workers:
            return self._own_reason
        names = ["tester", "worker", *(f"worker {number}" for number in range(2, len(self.workers) + 1))]
        reasons = [each._own_reason for each in (self, *self.workers)]
        return "; ".join(f"{name}, {said}" for name, said in zip(names, reasons, strict=True) if said) or None

    @property
    def _own_reason(self) -> str | None:
        found = []
        if self.stolen > STOLEN_LIMIT * self.capacity + self.resolution:
            found.append(f"{self.stolen_ratio:.1%} of the time was stolen by the hypervisor")
        if sum(self.foreign.values()) > FOREIGN_LIMIT * self.capacity + self.resolution:
            busiest = sorted(self.foreign, key=lambda name: -self.foreign[name])[:NAMED]
            found.append(f"{self.foreign_ratio:.0%} of the time {OTHER_PROCESSES}: {', '.join(busiest)}")
        if self.speed is not None:
            found += self.speed.shortfalls
        return f"CPU {', '.join(map(str, self.cpus))}: {' and '.join(found)}" if found else None

    def __add__(self, other: Noise) -> Noise:
        """Both windows together. They must be of the same CPUs of the same machines."""
        foreign = dict(self.foreign)
        for name, seconds in other.foreign.items():
            foreign[name] = foreign.get(name, 0.0) + seconds
        return Noise(
            self.cpus,
            self.window + other.window,
            self.stolen + other.stolen,
            foreign,
            self.context_switches + other.context_switches,
            max(self.run_queue, other.run_queue),
            max(self.resolution, other.resolution),
            mean_speed((each.speed, each.window) for each in (self, other)),
            tuple(each for both in zip_longest(self.workers, other.workers) if (each := total(both)) is not None),
        )

    def as_record(self) -> Mapping[str, Any]:
        """The figures and the verdict as JSON-serialisable data."""
        return {
            "noisy": self.noisy,
            "reason": self.reason,
            "cpus": list(self.cpus),
            "window": self.window,
            "stolen_ratio": self.stolen_ratio,
            "foreign_ratio": self.foreign_ratio,
            "foreign": dict(self.foreign),
            "context_switches": self.context_switches,
            "run_queue": self.run_queue,
            "speed": self.speed and self.speed.work,
            "memory_speed": self.speed and self.speed.memory,
        }


def mean_speed(weighed: Iterable[tuple[Speed | None, float]]) -> Speed | None:
    """The weighted mean of the known speeds."""
    known = [(speed, max(1e-9, weight)) for speed, weight in weighed if speed is not None]
    if not known:
        return None
    speeds, weights = zip(*known, strict=True)
    return Speed(fmean((each.work for each in speeds), weights), fmean((each.memory for each in speeds), weights))


def why_noisy(phases: Mapping[str, Noise]) -> str | None:
    """The reason why figures of these phases may describe foreign work, or None.

    Each phase is judged separately. A search has short trials, and the long trials of MRR would hide their noise.
    """
    noisy = {name: noise.reason for name, noise in phases.items() if noise.noisy}
    together = total(phases.values())
    if together is not None and together.noisy and len(noisy) in {0, len(phases)}:
        return together.reason  # all phases are noisy, or only their sum is: name no phase
    return "; ".join(f"{name}: {reason}" for name, reason in noisy.items()) or None


def total(noises: Iterable[Noise | None]) -> Noise | None:
    """All windows together, or None if none was watched."""
    found: Noise | None = None
    for noise in noises:
        if noise is not None:
            found = noise if found is None else found + noise
    return found
