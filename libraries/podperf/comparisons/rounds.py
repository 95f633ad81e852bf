"""Measures variants in interleaved rounds, and ends when every variant is decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random

from podperf.metrics import Measured, Metric
from podperf.verdicts.before_after import Look, VariantJudgement, VariantVerdict, judge, looks
from podperf.verdicts.ratio_interval import ratio_estimate

Measure = Callable[[], Measured]
"""Sets a variant up, measures its figure, and takes the variant down."""


@dataclass(frozen=True)
class VariantRound:
    """The figures of one round by variant, in the order in which they were measured.

    A variant that an earlier round has decided is not measured any more.
    """

    figures: Mapping[str, Measured]


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
    rounds: tuple[VariantRound, ...] = ()
    looked: tuple[Looked, ...] = ()
    doubt: str = ""  # why the tester is not believed: nothing will be decided then

    @property
    def open(self) -> tuple[str, ...]:
        """The variants that are measured in the next round: the undecided ones, and the first one beside them."""
        first, *others = self.variants
        left = [each for each in others if self.judgement(each).verdict is VariantVerdict.UNDECIDED]
        return (first, *left) if left and not self.doubt and len(self.rounds) < self.most else ()

    @property
    def decided(self) -> bool:
        """Whether there is a verdict on every variant."""
        return all(self.judgement(each).verdict is not VariantVerdict.UNDECIDED for each in self.variants[1:])

    def judgement(self, variant: str) -> VariantJudgement:
        """The latest judgement on a variant. Before the first look, nothing is decided."""
        found = [each.judgement for each in self.looked if each.variant == variant]
        return (
            found[-1] if found else VariantJudgement(VariantVerdict.UNDECIDED, None, len(self.rounds), "too few rounds")
        )

    def figures(self, variant: str) -> list[Measured]:
        """The figures of a variant, round by round."""
        return [each.figures[variant] for each in self.rounds if variant in each.figures]

    def beside(self, variant: str) -> list[Measured]:
        """The figures of the first variant in the same rounds."""
        return [each.figures[self.variants[0]] for each in self.rounds if variant in each.figures]

    def estimate(self, variant: str) -> float:
        """The change of a variant as far as it is known now, as a share; without an interval."""
        return ratio_estimate(self.figures(variant), self.beside(variant)) - 1


@dataclass(frozen=True)
class Rounds:
    """At most `most` rounds, in which each open variant is measured once, in an order drawn by lot.

    Two figures of a round meet nearly the same state of the machine. The random order favours no variant where the
    state differs. `relevant` (a share) is the change that counts.
    """

    metric: Metric
    relevant: float
    most: int

    def run(
        self,
        measures: Mapping[str, Measure],
        seed: int,
        doubt: Callable[[], str] = str,
        on_round: Callable[[RoundsSoFar], None] = lambda _: None,
    ) -> RoundsSoFar:
        """Measure. The same `seed` gives the same orders. `doubt` are the reasons not to believe the tester so far.

        With a doubt, the comparison ends at its first look. `on_round` gets all rounds at the end of each round, so
        that an interrupted comparison can be reported.
        """
        lot, planned = Random(seed), {each.rounds: each for each in looks(self.most, len(measures) - 1)}
        found = RoundsSoFar(tuple(measures), self.most, seed)
        while open_variants := found.open:
            figures = {name: measures[name]() for name in lot.sample(open_variants, len(open_variants))}
            found = replace(found, rounds=(*found.rounds, VariantRound(figures)))
            if look := planned.get(len(found.rounds)):
                why = doubt()
                looked = (Looked(each, look, self._judge(found, each, look, why)) for each in open_variants[1:])
                found = replace(found, looked=(*found.looked, *looked), doubt=why)
            on_round(found)
        return found

    def _judge(self, found: RoundsSoFar, variant: str, look: Look, doubt: str) -> VariantJudgement:
        first, other = found.beside(variant), found.figures(variant)
        return judge(self.metric, first, other, self.relevant, look.error, doubt)
