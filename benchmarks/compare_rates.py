"""How often `podperf compare` gives which verdict, on simulated machines whose true change is known.

    .venv/bin/python benchmarks/compare_rates.py [SIMULATIONS]

Each simulation is a whole comparison of two variants with the default rounds: its looks, its early end, its verdict.
The output is the table of docs/compare.md.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from statistics import fmean

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.experiments.before_after import VariantVerdict
from podperf.experiments.rounds import measure_variants
from podperf.metrics import METRICS, Measured

SIMULATIONS = 1000
RELEVANT, MOST_ROUNDS = 0.05, 40
SECONDS = 2.0  # of a figure: set-up, warm-up and trial
TRIAL = 0.5  # seconds, at the end of them
CHANGES = (0.0, -0.02, -0.05, -0.08, -0.10, -0.20)
FIRST, OTHER = "before", "after"


@dataclass(frozen=True)
class Kind:
    """A kind of machine. Figures differ by `jitter` (standard deviation, a share). `slow` is the speed in slow blocks,
    which last for `blocks` seconds. All speeds change by the share `drift` each second."""

    name: str
    jitter: float
    slow: float = 1.0
    blocks: tuple[float, float] = (1.0, 1.0)
    drift: float = 0.0


MACHINES = (
    Kind("steady, 1 %", 0.01),
    Kind("steady, 3 %", 0.03),
    Kind("steady, 10 %", 0.10),
    Kind("speed flips to 60 % for 5 to 60 s", 0.02, 0.6, (5.0, 60.0)),
    Kind("speed flips to 60 % for 0.5 to 10 s", 0.02, 0.6, (0.5, 10.0)),
)


@dataclass
class Machine:
    """A machine in simulated time."""

    kind: Kind
    seed: int
    now: float = 0.0
    _ends: float = 0.0
    _speed: float = 1.0
    _chance: Random = field(init=False)

    def __post_init__(self) -> None:
        self._chance = Random(self.seed)

    def figure(self, capacity: float) -> Measured:
        """Set a chain of this capacity (frames/s) up, and measure its rate."""
        self.work(SECONDS - TRIAL)
        return Measured(self.rate(capacity, TRIAL))

    def rate(self, capacity: float, seconds: float) -> float:
        """The rate of a chain of this capacity during so many seconds."""
        return capacity * self.work(seconds) * math.exp(self._chance.gauss(0, self.kind.jitter))

    def work(self, seconds: float) -> float:
        """Let time go by; returns the mean speed of that time."""
        done, end = 0.0, self.now + seconds
        while self.now < end:
            if self.now >= self._ends:
                self._ends = self.now + self._chance.uniform(*self.kind.blocks)
                self._speed = self._chance.choice((1.0, self.kind.slow))
            step = min(end, self._ends) - self.now
            done += step * self._speed * math.exp(self.kind.drift * self.now)
            self.now += step
        return done / seconds


@dataclass(frozen=True)
class Outcome:
    """The end of one simulated comparison. `covered`: the interval of each look contained the true change."""

    verdict: VariantVerdict
    rounds: int
    covered: bool


def compare(kind: Kind, change: float, seed: int) -> Outcome:
    """One comparison of two variants. The second one's capacity differs by `change` (a share)."""
    machine = Machine(kind, seed)
    measures = {FIRST: partial(machine.figure, 3e5), OTHER: partial(machine.figure, 3e5 * (1 + change))}
    found = measure_variants(METRICS["mrr"], RELEVANT, MOST_ROUNDS, measures, seed)
    changes = [each.judgement.change for each in found.looked]
    covered = all(each is not None and each.low <= change <= each.high for each in changes)
    return Outcome(found.judgement(OTHER).verdict, len(found.rounds), covered)


def rates(kind: Kind, change: float, simulations: int) -> tuple[Counter[VariantVerdict], float, float]:
    """The number of each verdict, the mean number of rounds, and how often an interval missed the true change."""
    outcomes = [compare(kind, change, seed) for seed in range(simulations)]
    missed = sum(not each.covered for each in outcomes) / simulations
    return Counter(each.verdict for each in outcomes), fmean(each.rounds for each in outcomes), missed


def main(simulations: int) -> None:
    """Print the table."""
    print(
        f"{simulations} comparisons a row; a change of more than {RELEVANT:.0%} counts; at most {MOST_ROUNDS} rounds\n"
    )
    verdicts = (VariantVerdict.SLOWER, VariantVerdict.NO_DIFFERENCE, VariantVerdict.UNDECIDED, VariantVerdict.FASTER)
    heads = ("machine", "true change", *map(str, verdicts), "rounds", "interval missed it")
    print(f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
    for kind in MACHINES:
        for change in CHANGES:
            found, rounds, missed = rates(kind, change, simulations)
            shares = [f"{100 * found[each] / simulations:.1f} %" for each in verdicts]
            print(f"| {kind.name} | {100 * change:g} % | {' | '.join(shares)} | {rounds:.0f} | {100 * missed:.1f} % |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else SIMULATIONS)
