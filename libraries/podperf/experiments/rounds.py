"""Measures contenders by turns, in interleaved rounds, until every verdict is known or all rounds are measured."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from podperf.experiments.before_after import Look, VariantJudgement, VariantVerdict, judge, looks
from podperf.experiments.claim import Claim, Finding, decided
from podperf.experiments.claim import judge as judge_claim
from podperf.experiments.ratio_interval import CONFIDENCE, ratio_estimate
from podperf.metrics import Measured, Metric
from podperf.model import TrialResult
from podperf.testers.base import UNPACED, TrialSource, limited_by_tester

CLAIM_ROUNDS = 12  # at most, for a claim
DURATION, WARMUP = 0.5, 0.1  # seconds of a trial of a claim, and of the trial before it that does not count

Measure = Callable[[], Measured]
"""Sets a contender up, measures its figure, and takes the contender down."""

SetUp = Callable[[], AbstractContextManager[TrialSource]]
"""Sets a contender up, and takes it down again at the end of the context."""

Round = Mapping[str, Measured]
"""The figures of one round by contender, in the order in which they were measured."""


def by_turns(
    measures: Mapping[str, Measure],
    seed: int,
    most: int,
    comparisons: int,
    on_round: Callable[[Round, Look | None], Collection[str]],
) -> None:
    """At most `most` rounds, in which each contender is measured once, in an order drawn by lot with this `seed`.

    Two figures of a round meet nearly the same state of the machine, and the random order favours no contender. A
    contender is set up anew in each round, because one set-up may be faster by its addresses or hash seeds.

    `on_round` gets each round at its end, and a look if one is due (`before_after.looks` for this number of
    `comparisons`). It answers with the contenders of the next round. None: the experiment ends.
    """
    lot, planned = Random(seed), {look.rounds: look for look in looks(most, comparisons)}
    going: Collection[str] = tuple(measures)
    for number in range(1, most + 1):
        figures = {name: measures[name]() for name in lot.sample(tuple(going), len(going))}
        if not (going := on_round(figures, planned.get(number))):
            break


# --- claims -----------------------------------------------------------------------------------------------------------


@dataclass
class ClaimRounds:
    """The rounds of a claim: one unpaced trial of each contender in each round, until each pair is decided.

    Rates are receive rates in frames/s and direction. `error` is that of the last look.
    """

    claim: Claim
    seed: int
    most: int = field(default_factory=lambda: CLAIM_ROUNDS)
    rounds: list[Round] = field(default_factory=list)
    trials: dict[str, list[TrialResult]] = field(default_factory=dict)
    maximum_loads: dict[str, float] = field(default_factory=dict)
    error: float = 1 - CONFIDENCE

    def run(self, set_ups: Mapping[str, SetUp], doubt: Callable[[], str] = str) -> Finding:
        """Measure and judge. `doubt` are the reasons not to believe the tester so far. They end the rounds, too."""
        measures = {name: lambda name=name: self._measure(name, set_ups[name]) for name in set_ups}

        def on_round(figures: Round, look: Look | None) -> Collection[str]:
            self.rounds.append(figures)
            if look is None:
                return set_ups
            self.error = look.error
            why = doubt()
            return () if why or decided(self.claim, self.judged(why)) else set_ups

        by_turns(measures, self.seed, self.most, 1, on_round)
        return self.judged(doubt())

    def judged(self, doubt: str) -> Finding:
        """The finding of the rounds so far. With a `doubt` about the tester, it neither confirms nor refutes."""
        by_chain = [[trial.rates_by_group for trial in self.trials[name]] for name in self._names]
        rates = [self.rates(name) for name in self._names]
        return judge_claim(self.claim, rates, self.noisy_trials, doubt=doubt, by_chain=by_chain, error=self.error)

    def rates(self, contender: str) -> list[Measured]:
        """The rate of this contender in each round; a lower bound if it is near the tester's maximum or its load."""
        return [each[contender] for each in self.rounds]

    @property
    def noisy_trials(self) -> int:
        """The number of trials on a noisy machine."""
        trials = [trial for found in self.trials.values() for trial in found]
        return sum(1 for trial in trials if trial.noise is not None and trial.noise.noisy)

    def as_record(self) -> Mapping[str, Any]:
        """Rates of each contender by round, the order of each round, and the parameters."""
        return {
            "method": "comparison",
            "rates": {name: [rate.value for rate in self.rates(name)] for name in self._names},
            "orders": [list(each) for each in self.rounds],
            "noisy_trials": self.noisy_trials,
            "maximum_loads": self.maximum_loads,
            "trial_duration": next(iter(self.trials.values()))[0].trial.duration,  # some testers need longer trials
            "seed": self.seed,
        }

    @property
    def _names(self) -> list[str]:
        return [contender.name for contender in self.claim.contenders]

    def _measure(self, name: str, set_up: SetUp) -> Measured:
        with set_up() as source:
            source.measure(UNPACED, WARMUP)
            trial = source.measure(UNPACED, DURATION)
            self.maximum_loads[name] = source.maximum_load
        self.trials.setdefault(name, []).append(trial)
        rate, most = trial.receive_rate, self.maximum_loads[name]
        return Measured(rate, lower_bound=limited_by_tester(rate, trial.loss_ratio, most))


# --- comparisons of users ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Looked:
    """The judgement on a variant at one look."""

    variant: str
    look: Look
    judgement: VariantJudgement


@dataclass(frozen=True)
class RoundsSoFar:
    """All rounds up to now, and what the looks up to now have found."""

    variants: tuple[str, ...]  # the others are compared with the first one
    most: int
    seed: int
    rounds: tuple[Round, ...] = ()
    looked: tuple[Looked, ...] = ()
    doubt: str = ""  # why the tester is not believed: nothing will be decided then

    @property
    def open(self) -> tuple[str, ...]:
        """The variants that are measured in the next round: the undecided ones, and the first one beside them."""
        first, *others = self.variants
        left = [other for other in others if self.judgement(other).verdict is VariantVerdict.UNDECIDED]
        return (first, *left) if left and not self.doubt and len(self.rounds) < self.most else ()

    @property
    def decided(self) -> bool:
        """Whether there is a verdict on every variant."""
        return all(self.judgement(variant).verdict is not VariantVerdict.UNDECIDED for variant in self.variants[1:])

    def judgement(self, variant: str) -> VariantJudgement:
        """The latest judgement on a variant. Before the first look, nothing is decided."""
        found = [each.judgement for each in self.looked if each.variant == variant]
        return (
            found[-1] if found else VariantJudgement(VariantVerdict.UNDECIDED, None, len(self.rounds), "too few rounds")
        )

    def figures(self, variant: str) -> list[Measured]:
        """The figures of a variant, round by round."""
        return [each[variant] for each in self.rounds if variant in each]

    def beside(self, variant: str) -> list[Measured]:
        """The figures of the first variant in the same rounds."""
        return [each[self.variants[0]] for each in self.rounds if variant in each]

    def estimate(self, variant: str) -> float:
        """The change of a variant as far as it is known now, as a share; without an interval."""
        return ratio_estimate(self.figures(variant), self.beside(variant)) - 1


def measure_variants(
    metric: Metric,
    relevant: float,
    most: int,
    measures: Mapping[str, Measure],
    seed: int,
    doubt: Callable[[], str] = str,
    on_round: Callable[[RoundsSoFar], None] = lambda _: None,
) -> RoundsSoFar:
    """At most `most` rounds of variants. One that is decided is not measured any more.

    `relevant` (a share) is the change that counts. `doubt` are the reasons not to believe the tester so far. With one,
    the first look is the last. `on_round` gets all rounds at the end of each round.
    """
    found = RoundsSoFar(tuple(measures), most, seed)

    def ended(figures: Round, look: Look | None) -> Collection[str]:
        nonlocal found
        going, found = found.open, replace(found, rounds=(*found.rounds, figures))
        if look is not None:
            why = doubt()
            judged = {
                each: judge(metric, found.beside(each), found.figures(each), relevant, look.error, why)
                for each in going[1:]
            }
            looked = (Looked(each, look, judgement) for each, judgement in judged.items())
            found = replace(found, looked=(*found.looked, *looked), doubt=why)
        on_round(found)
        return found.open

    by_turns(measures, seed, most, len(measures) - 1, ended)
    return found
