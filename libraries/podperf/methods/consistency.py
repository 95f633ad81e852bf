"""Do the trials of a search agree with its result, and does its zero-loss rate mean anything? Pure arithmetic.

Loads are in frames per second and direction.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from podperf.figures import kpps, percent
from podperf.noise import Noise

CHANCE = 0.05  # a majority is clear if a fair coin gives it, or a larger one, with at most this probability
LOOKS = 5  # this many trials in a row are a clear majority

_CHANGED = 1.1  # the speed of the machine has changed if one mean is this multiple of the other

LEAST_LOST = 5  # frames lost at the lower and at the higher loads: fewer say nothing about their ratios
LIKE = 2.0  # the loss ratios of lower and higher loads are alike within this factor
LEAST_RANGE = 2.0  # the highest load is at least this multiple of the lowest one
LEAST_REGULAR = 0.7  # share of the trials whose loss is explained by single frames that are lost at random
_EXPLAINED, _REFUTED = 2.0, 3.0  # four and six standard deviations of the square root of a Poisson variable


@dataclass(frozen=True)
class Seen:
    """A trial of the goal's full length, good or bad by the goal. `again`: it repeated a bound after the search."""

    load: float
    good: bool
    again: bool = False
    noise: Noise | None = None


@dataclass(frozen=True)
class Contradiction:
    """A clear majority of the trials beyond a bound contradicts the bound.

    `faster`: `against` of `trials` trials at or above the upper `bound` were good. Otherwise `against` of `trials`
    trials at or below the lower `bound` were bad. Their loads were `lowest` to `highest`.
    """

    faster: bool
    bound: float
    against: int
    trials: int
    lowest: float
    highest: float

    @property
    def chance(self) -> float:
        """The probability that a fair coin gives such a majority, or a larger one."""
        return chance_of_majority(self.against, self.trials)

    def in_words(self, seen: Iterable[Seen]) -> str:
        """A sentence, with the change of the machine's speed if that explains the contradiction."""
        trials = list(seen)
        loads = " to ".join(dict.fromkeys((kpps(self.lowest), kpps(self.highest))))
        first, then = ("upper", "good") if self.faster else ("lower", "bad")
        return (
            f"the {first} bound is {kpps(self.bound)} kpps, but {self.against} of {self.trials} trials at {loads} kpps "
            f"were {then}; {self._changed(trials)}"
        )

    def _changed(self, trials: Sequence[Seen]) -> str:
        """The part that changed its speed: the machine, if the trials at the bound and those beyond it tell."""
        at_bound = [trial for trial in trials if trial.load == self.bound and not trial.again]
        beyond = [trial for trial in trials if self.lowest <= trial.load <= self.highest and trial not in at_bound]
        now, before = _speeds(beyond), _speeds(at_bound)
        for name, speed in now.items():
            if (speed > before[name] * _CHANGED) if self.faster else (speed * _CHANGED < before[name]):
                there = f"{name} was at {before[name]:.0%} of its best speed at the bound"
                return f"{there}, and at {speed:.0%} in these trials"
        return f"the system under test became {'faster' if self.faster else 'slower'} during the search"


def _speeds(trials: Sequence[Seen]) -> Mapping[str, float]:
    """The mean speeds of the slowest machine, as shares of its best. 1 if they are unknown."""
    machines = [(trial.noise, *trial.noise.workers) for trial in trials if trial.noise is not None]
    known = [speeds for noises in machines if (speeds := [noise.speed for noise in noises if noise.speed is not None])]
    return {
        "the slowest CPU": fmean(min(speed.work for speed in speeds) for speeds in known) if known else 1.0,
        "memory": fmean(min(speed.memory for speed in speeds) for speeds in known) if known else 1.0,
    }


def chance_of_majority(against: int, trials: int) -> float:
    """The probability of at least `against` heads when a fair coin is thrown `trials` times."""
    return float(sum(math.comb(trials, heads) for heads in range(against, trials + 1)) / 2**trials)


def contradiction(seen: Iterable[Seen], lower: float | None, upper: float | None) -> Contradiction | None:
    """The clearest contradiction between the trials and these bounds of a goal, or None.

    The search has already weighed its own trials at a bound. At a bound, only a trial `again` counts.
    """
    trials = list(seen)
    above = [trial for trial in trials if upper is not None and (trial.load, trial.again) >= (upper, True)]
    below = [trial for trial in trials if lower is not None and (-trial.load, trial.again) >= (-lower, True)]
    found = [*_majorities(above, upper, faster=True), *_majorities(below, lower, faster=False)]
    best = min(found, key=lambda each: each.chance, default=None)
    return best if best is not None and best.chance <= CHANCE else None


def _majorities(trials: Sequence[Seen], bound: float | None, *, faster: bool) -> Iterable[Contradiction]:
    """The trials from the bound up to each load beyond it. Loads far beyond a wrong bound may agree with it again."""
    loads = sorted({trial.load for trial in trials}, reverse=not faster)
    against = count = 0
    for load in loads:
        here = [trial.good == faster for trial in trials if trial.load == load]
        against, count = against + sum(here), count + len(here)
        yield Contradiction(faster, bound or 0.0, against, count, min(loads[0], load), max(loads[0], load))


@dataclass(frozen=True)
class Counted:
    """The frames of a trial."""

    load: float
    sent: int
    lost: int


def constant_loss(trials: Iterable[Counted]) -> float | None:
    """The loss ratio if single frames are lost at random, at each of these loads alike. Otherwise None.

    A queue that overflows loses nothing below some load. A stall loses many frames of one trial, and none of the next
    one. The trials must be at loads that the system under test carries.
    """
    counted = [trial for trial in trials if trial.sent]
    regular = sorted(_regular(counted), key=lambda each: each.load)
    if not regular or len(regular) < LEAST_REGULAR * len(counted):
        return None
    # Stalls add to a constant loss. Nothing takes from it, so a single trial with too little loss refutes it.
    too_little = any(_excess(each, _ratio(regular)) < -_REFUTED for each in counted)
    if too_little or regular[-1].load < LEAST_RANGE * regular[0].load:
        return None
    low, high = _halves(regular)
    if min(_lost(low), _lost(high)) < LEAST_LOST or not 1 / LIKE <= _ratio(low) / _ratio(high) <= LIKE:
        return None
    return _ratio(regular)


def _halves(trials: Sequence[Counted]) -> tuple[Sequence[Counted], Sequence[Counted]]:
    """The first and the second half of the frames, in the order of these trials."""
    half, sent = sum(trial.sent for trial in trials) / 2, 0
    for index, each in enumerate(trials):
        sent += each.sent
        if sent >= half:
            return trials[:index], trials[index:]
    return trials, ()


def _regular(trials: Sequence[Counted]) -> list[Counted]:
    """The trials whose losses the mean of all of them explains, if single frames are lost at random.

    The search for the mean begins with the half of the frames that lost least, because stalls of the machine add to a
    loss.
    """
    low, high = _halves(sorted(trials, key=lambda each: each.lost / each.sent))
    kept = [*low, *high[:1]]
    for _ in trials:
        ratio = _ratio(kept)
        again = [trial for trial in trials if abs(_excess(trial, ratio)) <= _EXPLAINED]
        if again == kept:
            break
        kept = again
    return kept


def _excess(trial: Counted, ratio: float) -> float:
    """The difference from the expected loss, in a unit in which a Poisson variable has a deviation of a half."""
    return math.sqrt(trial.lost) - math.sqrt(trial.sent * ratio)


def _lost(trials: Sequence[Counted]) -> int:
    return sum(trial.lost for trial in trials)


def _ratio(trials: Sequence[Counted]) -> float:
    sent = sum(trial.sent for trial in trials)
    return _lost(trials) / sent if sent else 0.0


def loss_at_every_load(ratio: float) -> str:
    """A constant loss in words."""
    return f"frames are lost at every load ({percent(float(f'{ratio:.2g}'))})"


def depends_on_trial_length(ratio: float, goal: str) -> str:
    """The reason why the rate of a goal that permits less loss does not describe the system under test."""
    return (
        f"{loss_at_every_load(ratio)}: longer trials find a lower {goal}, so it is no property of the system under test"
    )
