"""Compares chains in interleaved rounds, because the speed of a machine changes from one second to the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from random import Random
from typing import Any

from podperf.methods.base import TrialSource
from podperf.metrics import Measured
from podperf.model import TrialResult
from podperf.testers.base import UNPACED, limited_by_tester

Contender = Callable[[], AbstractContextManager[TrialSource]]
"""Sets a chain up, and takes it down again at the end of the context."""


@dataclass(frozen=True)
class Round:
    """One trial of each contender, by name. `order` is the order in which they were measured."""

    order: tuple[str, ...]
    trials: Mapping[str, TrialResult]


@dataclass(frozen=True)
class ComparisonResult:
    """All rounds. Rates are the receive rates of unpaced trials, in frames/s and direction."""

    contenders: tuple[str, ...]
    rounds: tuple[Round, ...]
    maximum_loads: Mapping[str, float]  # the tester's maximum load across each contender
    seed: int

    @property
    def trial_duration(self) -> float:
        """The planned seconds of a trial. Some testers need longer trials than those of `Comparison`."""
        return self.rounds[0].trials[self.contenders[0]].trial.duration

    def rates(self, contender: str) -> list[Measured]:
        """The rate of this contender in each round; a lower bound if it is near the tester's maximum or its load."""
        most = self.maximum_loads[contender]
        found = [(trial.receive_rate, trial.loss_ratio) for trial in (each.trials[contender] for each in self.rounds)]
        return [Measured(rate, lower_bound=limited_by_tester(rate, loss, most)) for rate, loss in found]

    def rates_by_group(self, contender: str) -> list[tuple[float, ...]]:
        """The rate of each of this contender's chains in each round."""
        return [each.trials[contender].rates_by_group for each in self.rounds]

    @property
    def noisy_trials(self) -> int:
        """The number of trials on a noisy machine."""
        trials = [trial for each in self.rounds for trial in each.trials.values()]
        return sum(1 for trial in trials if trial.noise is not None and trial.noise.noisy)

    def as_record(self) -> Mapping[str, Any]:
        """Rates of each contender by round, the order of each round, and the parameters."""
        return {
            "method": "comparison",
            "rates": {name: [each.value for each in self.rates(name)] for name in self.contenders},
            "orders": [list(each.order) for each in self.rounds],
            "noisy_trials": self.noisy_trials,
            "maximum_loads": dict(self.maximum_loads),
            "trial_duration": self.trial_duration,
            "seed": self.seed,
        }


@dataclass(frozen=True)
class Comparison:
    """`rounds` rounds, each with one unpaced trial of `duration` seconds for every contender in random order.

    Two trials in a row meet nearly the same state of the machine. The random order favours no contender where the state
    differs. A chain is set up anew for each trial, because one set-up may be faster by its addresses or hash seeds.
    `warmup` seconds before the trial do not count.
    """

    rounds: int = 10
    duration: float = 0.5
    warmup: float = 0.1
    name: str = "comparison"

    def run(self, contenders: Mapping[str, Contender], seed: int) -> ComparisonResult:
        """Measure. The same `seed` gives the same orders."""
        lot, names = Random(seed), tuple(contenders)
        rounds, maximum_loads = [], {}
        for _ in range(self.rounds):
            order: Sequence[str] = lot.sample(names, len(names))
            trials = {}
            for name in order:
                with contenders[name]() as source:
                    source.measure(UNPACED, self.warmup)
                    trials[name] = source.measure(UNPACED, self.duration)
                    maximum_loads[name] = source.maximum_load
            rounds.append(Round(tuple(order), trials))
        return ComparisonResult(names, tuple(rounds), maximum_loads, seed)
