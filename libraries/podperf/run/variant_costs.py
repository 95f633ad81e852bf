"""Measures the variants of a comparison on a counted machine, one after the other."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial

from podperf.comparisons import Variant, VariantComparison
from podperf.comparisons.result import ComparisonOutcome, VariantResult, exact_outcome
from podperf.dataplanes import DATA_PLANES, with_forwarder
from podperf.errors import PodperfError, Unavailable
from podperf.methods import ONLY_COST, CostResult
from podperf.methods.cost import Cost
from podperf.model import TrafficProfile
from podperf.run.contenders import Contenders
from podperf.run.cost import closed_loops
from podperf.run.kept import Kept
from podperf.run.session import Session
from podperf.run.test_in_progress import TestInProgress
from podperf.run.variant_chains import VariantChains


@dataclass
class VariantCosts:
    """Variants of a comparison in one test, on one boot of a counted machine."""

    test: TestInProgress
    comparison: VariantComparison
    traffic: TrafficProfile
    session: Session
    kept: Kept
    started: float = field(default_factory=time.time)

    def __post_init__(self) -> None:
        self._metric = self.comparison.metric_on(counted=True)
        self._contenders = Contenders(self.test, None)
        self._chains = VariantChains(self.test, self.traffic, self.session.equipment)

    def measure(self) -> ComparisonOutcome:
        """Measure all variants in this boot. The record of the test gets the result, too."""
        found = [self.figure_of(each) for each in self.comparison.variants]
        outcome, record = exact_outcome(self.comparison, found, self.started), self.test.record
        record.methods = {**record.methods, "variants": outcome.to_json()}
        return outcome

    def figure_of(self, variant: Variant, *, alone: bool = False) -> VariantResult:
        """The cost of one variant. Raises PodperfError if the wanted burst has no figure.

        A variant that is `alone` in the test gives its figures to the record, as every other chain does.
        """
        cost, record = self._cost_of(variant), self.test.record
        name = Cost.name if alone else f"{Cost.name} of {variant.name}"
        record.methods = {**record.methods, name: cost.as_record()}
        if alone:
            record.chain = with_forwarder(variant.chain)
            record.model = DATA_PLANES[variant.chain.data_plane].model
            self.test.keep(cost.metrics)
        if self._metric.name not in cost.metrics:
            why = "; ".join(cost.missing.values())
            raise PodperfError(f"variant {variant.name!r} has no {self._metric.label}: {why}")
        figure = cost.metrics[self._metric.name]
        found = VariantResult(variant, (figure,), None, record.id, self.session.topology.name)
        if alone:
            record.methods = {
                **record.methods,
                "variant": {"comparison": self.comparison.name, **found.as_record()},
            }
        return found

    def _cost_of(self, variant: Variant) -> CostResult:
        if self._metric.method != Cost.name:
            raise Unavailable(ONLY_COST)
        self._chains.prepare([variant])
        test, testbed, traffic = self.test, self.session.equipment.testbed, self.traffic
        profiler = self.session.profiler
        if profiler is None:
            raise Unavailable("cost is compared on a counted machine only (topologies/counted.yaml)")
        bare = self.kept.bare_paths.beside(variant.chain, test, testbed, traffic, profiler)
        build = partial(self._contenders.standing, variant.name, traffic, partial(self._chains.built, variant))
        builds, missing = Cost.of(traffic).run(partial(closed_loops, test, build, traffic, variant.name, profiler))
        return CostResult.beside(bare, builds, missing)
