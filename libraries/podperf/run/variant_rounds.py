"""Measures the variants of a comparison by turns, in one test."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import partial
from secrets import randbits

from podperf.comparisons import Variant, VariantComparison
from podperf.comparisons.result import ComparisonOutcome, of_rounds
from podperf.comparisons.rounds import Rounds, RoundsSoFar
from podperf.errors import PodperfError, Unavailable
from podperf.figures import count, signed
from podperf.metrics import Measured
from podperf.model import TrafficProfile
from podperf.run.contenders import Contenders
from podperf.run.kept import Kept
from podperf.run.session import Session
from podperf.run.test_in_progress import TestInProgress
from podperf.run.variant_chains import VariantChains
from podperf.run.variant_figure import NO_COST, figure_of


@dataclass
class VariantRounds:
    """The rounds of a comparison in one test. `found` are the rounds so far, also after an interruption."""

    test: TestInProgress
    comparison: VariantComparison
    traffic: TrafficProfile
    session: Session
    kept: Kept
    found: RoundsSoFar | None = None
    started: float = field(default_factory=time.time)
    _noisy: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._metric = self.comparison.metric_on(counted=False)
        self._contenders = Contenders(self.test, self.kept.limits)
        self._chains = VariantChains(self.test, self.traffic, self.session.equipment)

    def measure(self) -> ComparisonOutcome:
        """Measure all variants by turns. The record of the test gets the result, too.

        Raises Unavailable before any measurement if the testbed cannot measure the comparison.
        """
        self.session.equipment.refuse_cost_only()
        if self._metric.method == "cost":
            raise Unavailable(NO_COST)
        comparison = self.comparison
        self._chains.prepare(comparison.variants)
        measures = {each.name: partial(self._figure, each) for each in comparison.variants}
        rounds = Rounds(self._metric, comparison.relevant_on(counted=False), comparison.rounds)
        try:
            rounds.run(measures, randbits(32), lambda: self._contenders.doubt, self._on_round)
        finally:
            if self.found is not None:
                record = self.test.record
                record.limits = self._contenders.limits.get(comparison.variants[0].name)
                record.methods = {"variants": self.outcome(interrupted=bool(self.found.open)).to_json()}
        return self.outcome()

    def outcome(self, *, interrupted: bool = False) -> ComparisonOutcome:
        """The result of the rounds so far. PodperfError before the end of the first round."""
        if self.found is None:
            raise PodperfError("not one round was measured, so there is nothing to report")
        noisy, figures = sum(self._noisy.values()), sum(len(each.figures) for each in self.found.rounds)
        return of_rounds(
            self.found,
            self.comparison,
            self._metric,
            self.comparison.relevant_on(counted=False),
            self.session.topology.name,
            self.test.record.id,
            self._noisy,
            self.started,
            time.time(),
            interrupted=interrupted,
            remarks=[f"the machine was noisy at {noisy} of {count(figures, 'figure')}"] if noisy else [],
        )

    def _on_round(self, found: RoundsSoFar) -> None:
        self.found = found
        self.test.progress.round_ended(told(found))

    def _figure(self, variant: Variant) -> Measured:
        name, settings = variant.name, self.session.topology.method
        settings = replace(settings, mrr_trials=1, mrr_trial_duration=self.comparison.trial_seconds)
        with self._contenders.standing(name, self.traffic, partial(self._chains.built, variant)) as sut:
            limits = self._contenders.limits[name]
            figure, noise = figure_of(name, self._metric, self.test, sut, self.traffic, limits, settings, self.kept)
        if noise is not None:
            self._noisy[name] = self._noisy.get(name, 0) + noise.noisy
            self.test.note_noise(name, noise)
        return figure


def told(found: RoundsSoFar) -> str:
    """The rounds so far in a line for the terminal."""
    changes = []
    for name in found.variants[1:]:
        change = found.judgement(name).change
        changes.append(f"{name} {change.words if change else signed(found.estimate(name))}")
    return f"round {len(found.rounds)} of at most {found.most}: {', '.join(changes)}"
