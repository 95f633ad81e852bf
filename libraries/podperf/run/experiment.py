"""An experiment in one test: several chains by turns, for a claim or for a comparison of a user."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from secrets import randbits
from typing import Any

from podperf.dataplanes import DATA_PLANES, with_forwarder
from podperf.errors import PodperfError, Unavailable
from podperf.experiments.claim import Claim, Finding
from podperf.experiments.comparison import (
    ComparisonOutcome,
    EndOfComparison,
    VariantComparison,
    VariantResult,
    exact_outcome,
)
from podperf.experiments.contender import Contender, PublishedQuantity, beside_published
from podperf.experiments.rounds import ClaimRounds, RoundsSoFar, measure_variants
from podperf.figures import count, signed
from podperf.methods.cost import ONLY_COST, Cost, CostResult
from podperf.methods.ndrpdr import NdrPdr, SearchResult
from podperf.metrics import Measured
from podperf.model import TrafficProfile
from podperf.noise import total
from podperf.records import Figures
from podperf.run.contenders import Contenders
from podperf.run.cost import closed_loops
from podperf.run.measurement import Measurement, SharedByTests, measure_by_method
from podperf.run.session import Session
from podperf.run.test import TestInProgress
from podperf.testbed.system_under_test import addressed
from podperf.testers.base import UNPACED
from podperf.topology import MethodSettings

WARM_UP = 0.1  # seconds of a trial of MRR that do not count
_SENT_BY_PODS = (
    "the CPU of the sending pod does the network's work for each frame, beside the tester's own, which is the same in "
    "all variants: where the pod sends all that it can, the figure is the rate of sending through this network"
)
NO_COST = "cost is compared on a counted machine only (topologies/counted.yaml)"


# --- claims -----------------------------------------------------------------------------------------------------------


def measure_claim(claim: Claim, contenders: Contenders, settings: MethodSettings) -> Finding:
    """Measure the contenders of a claim by turns, and judge the claim. Published figures get those of here beside them.

    Raises Unavailable before any measurement if the testbed cannot set a contender up.
    """
    contenders.equipment.refuse_cost_only()
    contenders.prepare(claim.contenders)
    record, rounds = contenders.test.record, ClaimRounds(claim, randbits(32))
    set_ups = {contender.name: partial(contenders.trials, contender) for contender in claim.contenders}
    finding = rounds.run(set_ups, lambda: contenders.doubt)
    record.limits = contenders.limits[claim.contenders[0].name]
    traffics = contenders.traffics
    setting = {
        "placements": {name: each.as_record() for name, each in contenders.placed.items()},
        "frames": {name: each.frame.name for name, each in traffics.items()},  # a trial's `phase` has the name
        "flows": {name: each.flows for name, each in traffics.items()},
        "cpus_of_neighbours": contenders.cpus_of_neighbours,
        "limits_of_pods": contenders.limits_of_pods,
        "limits_of_neighbours": contenders.limits_of_neighbours,
        "memory": {
            name: {process: pages.as_record() for process, pages in found.items()}
            for name, found in contenders.memory.items()
        },
    }
    record.methods = {"comparison": {"claim": claim.name, **rounds.as_record(), **setting}}
    record.findings = [finding]
    measured = {contender.name: rounds.rates(contender.name) for contender in claim.contenders}
    if beside := quantities_beside(claim.contenders, measured, contenders, settings):
        record.methods = {**record.methods, "published": beside}
    return finding


def quantities_beside(
    published: Sequence[Contender],
    rates: Mapping[str, Sequence[Measured]],
    contenders: Contenders,
    settings: MethodSettings,
) -> Mapping[str, Any]:
    """Each contender's figure beside the published one, in JSON types. Empty if they are from no published table.

    `rates` are those of the rounds. An NDR is searched once for each contender, with the loss goal of the document;
    its chain is set up again for it. Other quantities are the median of the rounds.
    """
    quantity = published[0].quantity
    if quantity is None:
        return {}
    rows, searches = [], {}
    for contender in published:
        name, rate, measured_as = contender.name, _middle(rates[contender.name]), "MRR"
        if quantity.searched_with(contender.frame):
            result = _search(quantity, contender, contenders, settings)
            searches[name] = result.as_record()
            goal = result.goal("NDR")
            if goal is not None and goal.measured is not None:
                rate, measured_as = goal.measured, "NDR"
        link = contenders.links.get(name)
        row = beside_published(quantity, name, contender.figure, contender.frame, rate, link)
        rows.append({**asdict(row), "frame": row.frame.name, "measured_as": measured_as})
    return {
        "quantity": quantity.name,
        "unit": quantity.unit,
        "frame": quantity.frame.name if quantity.frame else None,
        "loss_ratio": quantity.loss_ratio,
        "sought_loss_ratio": quantity.sought_loss_ratio if searches else None,
        "words": quantity.words,
        "rows": rows,
        "searches": searches,
    }


def _search(
    quantity: PublishedQuantity, contender: Contender, contenders: Contenders, settings: MethodSettings
) -> SearchResult:
    limits = contenders.limits[contender.name]
    contenders.test.phase = f"{contender.name}, NDR"
    try:
        with contenders.trials(contender) as source:
            search = NdrPdr.by(settings)
            ndr = replace(search.preset.goals[0], name="NDR", loss_ratio=quantity.sought_loss_ratio)
            preset = replace(search.preset, goals=(ndr,)).for_tester(contenders.shortest_trial)
            withheld = {ndr.name: limits.doubt_of_rates} if limits.cannot_tell(ndr.loss_ratio) else {}
            return NdrPdr(preset, contenders.test.patience.clock, withheld).run(source)
    finally:
        contenders.test.phase = ""


def _middle(rates: Sequence[Measured]) -> Measured:
    return Measured.median_of([rate.value for rate in rates], lower_bound=any(rate.lower_bound for rate in rates))


# --- comparisons of users ---------------------------------------------------------------------------------------------


@dataclass
class _VariantTest:
    """A test that measures the variants of a comparison."""

    test: TestInProgress
    comparison: VariantComparison
    traffic: TrafficProfile
    session: Session
    shared: SharedByTests

    def __post_init__(self) -> None:
        counted = self.session.topology.counts_instructions
        self.started = time.time()
        self._metric = self.comparison.metric_on(counted=counted)
        self._relevant = self.comparison.relevant_on(counted=counted)
        wanted, usual = self.comparison, self.session.topology.traffic
        self._traffics = {
            each.name: usual.profile(wanted.frame, wanted.directions, wanted.flows, each.family, each.vlan)
            for each in wanted.variants
        }
        limits = None if counted else self.shared.limits
        self._contenders = Contenders(self.test, self.session.equipment, self._traffics, limits)


@dataclass
class VariantRounds(_VariantTest):
    """The rounds of a comparison in one test. `found` are the rounds so far, also after an interruption."""

    found: RoundsSoFar | None = None
    _noisy: dict[str, int] = field(default_factory=dict)
    _doubts: dict[str, str] = field(default_factory=dict)  # by variant: the newest doubt about a figure

    def measure(self) -> ComparisonOutcome:
        """Measure all variants by turns. The record of the test gets the result, too.

        Raises Unavailable before any measurement if the testbed cannot measure the comparison.
        """
        self.session.equipment.refuse_cost_only()
        if self._metric.method == Cost.name:
            raise Unavailable(NO_COST)
        comparison = self.comparison
        self._contenders.prepare(comparison.variants)
        measures = {variant.name: partial(self._figure, variant) for variant in comparison.variants}
        doubt, seed = (lambda: self._contenders.doubt), randbits(32)
        try:
            measure_variants(self._metric, self._relevant, comparison.rounds, measures, seed, doubt, self._on_round)
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
        found, first = self.found, self.comparison.variants[0]
        variants = tuple(
            VariantResult(
                variant,
                tuple(one.get(variant.name) for one in found.rounds),
                None if variant is first else found.judgement(variant.name),
                self.test.record.id,
                self.session.topology.name,
                self._noisy.get(variant.name, 0),
            )
            for variant in self.comparison.variants
        )
        noisy, figures = sum(self._noisy.values()), sum(map(len, found.rounds))
        noise = [f"the machine was noisy at {noisy} of {count(figures, 'figure')}"] if noisy else []
        doubts = [f"a figure of {name} is in doubt: {doubt}" for name, doubt in self._doubts.items()]
        sent_by_pods = [_SENT_BY_PODS] if any(variant.tester for variant in self.comparison.variants) else []
        ended: EndOfComparison = "doubt" if found.doubt else "decided" if found.decided else "all rounds"
        return ComparisonOutcome(
            self.comparison,
            self._metric,
            self._relevant,
            variants,
            "interrupted" if interrupted else ended,
            self.started,
            time.time(),
            tuple(map(tuple, found.rounds)),
            found.looked,
            found.seed,
            (*sent_by_pods, *noise, *doubts),
            "; ".join(filter(None, (found.doubt, *doubts))),
        )

    def _on_round(self, found: RoundsSoFar) -> None:
        self.found = found
        self.test.progress.reached(told(found))

    def _figure(self, variant: Contender) -> Measured:
        """The figure of one set-up. All its trials are in the record, with the variant's name as their phase."""
        name, metric, settings = variant.name, self._metric, self.session.topology.method
        settings = replace(settings, mrr_trials=1, mrr_trial_duration=self.comparison.trial_seconds)
        with self._contenders.standing(variant) as sut:
            limits, there = self._contenders.limits[name], addressed(self._traffics[name], sut)
            test = replace(self.test, apart=(found := Figures()), undo=ExitStack(), phase=name)
            if metric.method == "mrr":
                test.trials(sut, name, there, limits).measure(UNPACED, WARM_UP)
            self._measure(variant, Measurement(test, sut, there, limits, settings, self.shared.baselines, _no_cost))
        figure = found.metrics.get(metric.name)
        if figure is None:
            reasons = (found.methods.get(metric.method) or {}).get("missing") or {}
            why = "; ".join(dict.fromkeys(reasons.values())) or "the trials found none in this round"
            raise PodperfError(f"variant {name!r} has no {metric.label}: {why}")
        if variant.tester:
            figure = replace(figure, lower_bound=False)
        if figure.doubt:
            self._doubts[name] = figure.doubt
        if (noise := total(found.noises.values())) is not None:
            self._noisy[name] = self._noisy.get(name, 0) + noise.noisy
            self.test.note_noise(name, noise)
        return figure

    def _measure(self, variant: Contender, measurement: Measurement) -> None:
        """Measure the metric of this variant, which is set up. Its figure goes into the measurement."""
        measure_by_method(measurement, self._metric.method)


def _no_cost() -> CostResult:
    raise Unavailable(NO_COST)


def told(found: RoundsSoFar) -> str:
    """The rounds so far in a line for the terminal."""
    changes = []
    for name in found.variants[1:]:
        change = found.judgement(name).change
        changes.append(f"{name} {change.words if change else signed(found.estimate(name))}")
    return f"round {len(found.rounds)} of at most {found.most}: {', '.join(changes)}"


class VariantCosts(_VariantTest):
    """Variants of a comparison in one test, one after the other, on one boot of a counted machine."""

    def measure(self) -> ComparisonOutcome:
        """Measure all variants in this boot. The record of the test gets the result, too."""
        found = [self.figure_of(variant) for variant in self.comparison.variants]
        outcome, record = exact_outcome(self.comparison, found, self.started), self.test.record
        record.methods = {**record.methods, "variants": outcome.to_json()}
        return outcome

    def figure_of(self, variant: Contender, *, alone: bool = False) -> VariantResult:
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
            part = {"comparison": self.comparison.name, **found.as_record()}
            record.methods = {**record.methods, "variant": part}
        return found

    def _cost_of(self, variant: Contender) -> CostResult:
        if self._metric.method != Cost.name:
            raise Unavailable(ONLY_COST)
        self._contenders.prepare([variant])
        test, testbed, traffic = self.test, self.session.equipment.testbed, self._traffics[variant.name]
        profiler = self.session.profiler
        if profiler is None:
            raise Unavailable(NO_COST)
        bare = self.shared.bare_paths.beside(variant.chain, test, testbed, traffic, profiler)
        build = partial(self._contenders.standing, variant)
        builds, missing = Cost.of(traffic).run(partial(closed_loops, test, build, traffic, variant.name, profiler))
        return CostResult.beside(bare, builds, missing)
