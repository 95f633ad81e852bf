"""A device under test whose truth is known, for the tests and the benchmarks of the searches. Takes no real time."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from podperf.methods.trials import ChangedTrial
from podperf.model import (
    BOTH_DIRECTIONS,
    AddressedTraffic,
    DirectionResult,
    FrameSize,
    Latency,
    Overload,
    TrafficProfile,
    Trial,
    TrialResult,
)
from podperf.testers.base import UNPACED

_FRAME = FrameSize.parse(64)
_ONE_MICROSECOND = 999  # histogram index of a bucket at about 1 µs


@dataclass
class SimulatedDut:
    """A TrialSource: a queue of `buffer` frames before a server of `capacity` frames/s, separate for each direction.

    The server stalls, as on a VM beside other machines. Stalls arrive as a Poisson process and last an exponential
    time. During a stall, the queue fills at the offered load. Frames that do not fit into the queue are lost. `drift`
    is the relative standard deviation of the capacity from trial to trial. `congestion` is the share of its capacity
    that the server loses under ten times its capacity (work on frames that are dropped later), and in proportion below
    that load. The server of the second direction has the share `weaker` of the capacity. At the second `changes_at`,
    the capacity becomes `changes_to`. `random_loss` is the ratio of frames that are lost one by one at any load.
    `clock` is the simulated time.
    """

    capacity: float
    maximum_load: float = 4.5e6
    buffer: int = 0
    stalls_per_second: float = 0.0
    stall: float = 0.0  # seconds, mean
    drift: float = 0.0
    congestion: float = 0.0
    base_loss: float = 0.0  # ratio lost at any load
    random_loss: float = 0.0
    changes_at: float = math.inf
    changes_to: float = 0.0
    directions: int = 1
    weaker: float = 1.0
    overhead: float = 0.1  # seconds a trial around the sending
    recovery: float = 0.0  # seconds behind an overload in which every frame is lost
    outage: float = 0.0  # seconds behind the next change in which every frame is lost; a change may set it
    seed: int = 0
    now: float = 0.0
    trials: list[TrialResult] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def clock(self) -> float:
        """Simulated seconds since the start."""
        return self.now

    def measure(self, load: float, duration: float) -> TrialResult:
        """One trial."""
        load = self.maximum_load if load == UNPACED else load
        traffic = AddressedTraffic(TrafficProfile(_FRAME, BOTH_DIRECTIONS[: self.directions]))
        steady = self.capacity if self.now < self.changes_at else self.changes_to
        capacity = steady * max(0.0, self._random.gauss(1.0, self.drift))
        if load > capacity > 0:
            capacity *= 1.0 - self.congestion * min(1.0, (load / capacity - 1.0) / 9.0)
        directions = tuple(
            self._direction(direction, load, duration, capacity * share)
            for direction, share in zip(traffic.directions, (1.0, self.weaker), strict=False)
        )
        result = TrialResult(Trial(traffic, load, duration), self.now, directions, elapsed=duration + self.overhead)
        self.now += result.elapsed
        self.trials.append(result)
        return result

    def burst(self, frames: int) -> TrialResult:
        """A trial of so many frames at the maximum load."""
        return self.measure(self.maximum_load, frames / self.maximum_load)

    def after_overload(self, overload: Overload, load: float, duration: float) -> TrialResult:
        """A trial with an overload. If that lost frames, `recovery` seconds more lose all frames."""
        first = self.measure(overload.load, overload.duration)
        second = self.measure(load, duration)
        lost = min(math.ceil(load * self.recovery), second.sent) if first.lost else 0
        trial = Trial(first.trial.traffic, load, duration, overload=overload)
        directions = tuple(
            replace(
                before,
                intended=before.sent + after.sent,
                sent=before.sent + after.sent,
                received=before.received + after.received - lost,
                duration=overload.duration + duration,
                last_lost=before.sent + lost - 1 if first.lost else None,
            )
            for before, after in zip(first.directions, second.directions, strict=True)
        )
        return replace(first, trial=trial, directions=directions)

    def during(self, make: Callable[[ExitStack], None], load: float, duration: float) -> ChangedTrial:
        """A trial in whose middle `make` changes something, and `outage` seconds of frames are lost if it says so."""
        self.outage = 0.0
        with ExitStack() as undo:
            make(undo)
            result, before = self.measure(load, duration), round(load * duration / 2)
        gap = min(math.ceil(load * self.outage), result.directions[0].sent - before)
        directions = tuple(
            replace(
                each,
                received=max(0, each.received - gap),
                last_lost=before + gap - 1 if gap else each.sent - 1 if each.lost else None,
            )
            for each in result.directions
        )
        return ChangedTrial(replace(result, directions=directions), before / load, 0.01)

    def _direction(self, direction: object, load: float, duration: float, capacity: float) -> DirectionResult:
        sent = round(load * duration)
        lost = max(0, sent - math.ceil(capacity * duration) - self.buffer)  # the steady overload
        lost += math.ceil(sent * self.base_loss)
        for _ in range(self._poisson(self.stalls_per_second * duration)):
            stalled = self._random.expovariate(1 / self.stall) if self.stall else 0.0
            lost += max(0, round(load * stalled) - self.buffer)
        received = sent - min(sent, lost)
        received -= min(received, self._poisson(received * self.random_loss))
        latency = Latency(1000, 1000.0, 1000, {_ONE_MICROSECOND: received}) if received else None
        return DirectionResult(direction, sent, sent, received, 0, 0, 0, duration, latency=latency)  # type: ignore[arg-type]

    def _poisson(self, mean: float) -> int:
        count, left = 0, self._random.expovariate(1.0)
        while left < mean:
            count += 1
            left += self._random.expovariate(1.0)
        return count
