"""A tester on a bare path, in simulated time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from podperf.model import DirectionResult, Trial, TrialResult
from podperf.testers.base import UNPACED
from podperf.testers.validity import Account, judged
from traffic import counted

Counts = Callable[[int, Trial], DirectionResult]
"""Counts a trial, in which so many frames were sent."""


class SimulatedTester:
    """Sends at most `ceiling` frames/s. Its clock runs by `factor`, and a trial takes `around` seconds more."""

    shortest_trial = 0.0
    broken = False

    def __init__(self, ceiling: float = 1e6, counts: Counts = lambda sent, _: counted(sent)) -> None:
        self.ceiling, self.counts = ceiling, counts
        self.factor, self.around, self.now = 1.0, lambda: 0.03, 0.0
        self.trials: list[Trial] = []

    def clock(self) -> float:
        return self.now

    def measure(self, trial: Trial) -> TrialResult:
        self.trials.append(trial)
        load = self.ceiling if trial.load == UNPACED else min(trial.load, self.ceiling)
        found = replace(self.counts(round(load * trial.duration), trial), duration=trial.duration)
        if trial.load != UNPACED:
            found = replace(found, intended=round(trial.load * trial.duration))
        # The duration has one gap behind the last frame, in which a tester does not wait.
        self.now += trial.duration * (1 - 1 / max(2, found.sent)) / self.factor + self.around()
        directions = tuple(replace(found, direction=direction) for direction in trial.traffic.directions)
        return judged(TrialResult(trial, 0.0, directions, elapsed=trial.duration + 0.03), Account())

    def describe(self) -> dict[str, object]:
        return {}

    def close(self) -> None:
        return
