"""Measures the variants of a comparison in one test: by turns, or on a counted machine one after the other."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from secrets import randbits

from podperf.comparisons import Comparison, Variant
from podperf.comparisons.result import ComparisonResult, Ended, VariantResult, of_rounds
from podperf.comparisons.rounds import Rounds, RoundsSoFar
from podperf.cpu_lists import format_cpu_list
from podperf.cpu_plan import plan_cpus
from podperf.dataplanes import DATA_PLANES, with_forwarder
from podperf.dataplanes.wire import Wire
from podperf.errors import PodperfError, Unavailable
from podperf.figures import count, signed
from podperf.methods import ONLY_COST
from podperf.methods.cost import Cost, CostResult
from podperf.metrics import Measured, Metric
from podperf.model import TrafficProfile
from podperf.records import TestRecord
from podperf.run.contenders import Contenders
from podperf.run.cost import closed_loops
from podperf.run.hooks import run_after, run_before
from podperf.run.kept import Kept
from podperf.run.measurement import Measurement
from podperf.run.session import Session
from podperf.run.test_in_progress import TestInProgress
from podperf.testbed.scenarios import Placed
from podperf.testbed.system_under_test import SystemUnderTest, addressed
from podperf.testers.base import UNPACED
from podperf.verdicts.before_after import Judgement, judge_exact

WARM_UP = 0.1  # seconds of a trial of MRR that do not count


@dataclass
class VariantsTest:
    """The test that measures variants on the testbed of a session.

    `found` are the rounds so far, also after an interruption. Unavailable if the testbed cannot measure the comparison.
    """

    test: TestInProgress
    comparison: Comparison
    traffic: TrafficProfile
    session: Session
    kept: Kept
    found: RoundsSoFar | None = None
    _noisy: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._counted = self.session.topology.counts_instructions
        self.metric: Metric = self.comparison.metric_on(counted=self._counted)
        self.relevant = self.comparison.relevant_on(counted=self._counted)
        self.started = time.time()
        self._testbed = self.session.equipment.testbed
        self._contenders = Contenders(self.test, None if self._counted else self.kept.limits)
        self._placed: Mapping[str, Placed] = {}

    # --- in rounds ----------------------------------------------------------------------------------------------------

    def in_rounds(self) -> ComparisonResult:
        """Measure all variants by turns. The record of the test gets the result, too."""
        if self._counted:
            raise Unavailable(ONLY_COST)
        if self.metric.method == Cost.name:
            raise Unavailable("cost is compared on a counted machine only (topologies/counted.yaml)")
        self._prepare(self.comparison.variants)
        measures = {each.name: partial(self._measure, each) for each in self.comparison.variants}
        rounds = Rounds(self.metric, self.relevant, self.comparison.rounds)
        try:
            rounds.run(measures, randbits(32), lambda: self._contenders.doubt, self._on_round)
        finally:
            if self.found is not None:
                record = self.test.record
                record.limits = self._contenders.limits.get(self.comparison.variants[0].name)
                record.methods = {"variants": self.result(interrupted=bool(self.found.open)).to_json()}
        return self.result()

    def result(self, *, interrupted: bool = False) -> ComparisonResult:
        """The result of the rounds so far. PodperfError before the end of the first round."""
        if self.found is None:
            raise PodperfError("not one round was measured, so there is nothing to report")
        noisy, figures = sum(self._noisy.values()), sum(len(each.figures) for each in self.found.rounds)
        return of_rounds(
            self.found,
            self.comparison,
            self.metric,
            self.relevant,
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

    def _measure(self, variant: Variant) -> Measured:
        """The figure of one set-up of a variant. All its trials have the variant's name as their phase."""
        name = variant.name
        scratch = replace(self.test, record=TestRecord(name, name, ""), undo=ExitStack(), phase=name)
        topology, seconds = self.session.topology, self.comparison.trial_seconds
        settings = replace(topology.method, mrr_trials=1, mrr_trial_duration=seconds)
        with self._contenders.standing(name, self.traffic, partial(self._built, variant)) as sut:
            limits = self._contenders.limits[name]
            traffic = addressed(self.traffic, sut)
            if self.metric.method == "mrr":
                scratch.trials(sut, name, traffic, limits).measure(UNPACED, WARM_UP)
            measurement = Measurement(scratch, sut, traffic, limits, settings, self.kept.baselines, _no_cost)
            measurement.by_method(self.metric.method)
        for noise in scratch.record.noises.values():
            self._noisy[name] = self._noisy.get(name, 0) + noise.noisy
            self.test.note_noise(name, noise)
        found = scratch.record.metrics.get(self.metric.name)
        if found is None:
            raise PodperfError(f"variant {name!r} has no {self.metric.label}: the trials found none in this round")
        return found

    # --- on a counted machine -----------------------------------------------------------------------------------------

    def cost_of(self, variant: Variant) -> CostResult:
        """The cost of one variant on this counted machine."""
        if not self._counted or self.metric.method != Cost.name:
            raise Unavailable(ONLY_COST)
        self._prepare([variant])
        test, traffic = self.test, self.traffic
        bare = {} if variant.chain.data_plane == Wire.name else self.kept.bare_paths.of(test, self._testbed, traffic)
        build = partial(self._contenders.standing, variant.name, traffic, partial(self._built, variant))
        builds, missing = Cost().run(partial(closed_loops, test, build, traffic, variant.name))
        return CostResult(builds, bare, missing)

    def figure_of(self, variant: Variant, *, alone: bool = False) -> VariantResult:
        """The cost of one variant as part of a comparison. PodperfError if the wanted burst has no figure.

        A variant that is `alone` in the test gives its figures to the record, as every other chain does.
        """
        cost = self.cost_of(variant)
        record = self.test.record
        name = Cost.name if alone else f"{Cost.name} of {variant.name}"
        record.methods = {**record.methods, name: cost.as_record()}
        if alone:
            record.chain = with_forwarder(variant.chain)
            record.model = DATA_PLANES[variant.chain.data_plane].model
            self.test.keep(cost.metrics)
        if self.metric.name not in cost.metrics:
            raise PodperfError(
                f"variant {variant.name!r} has no {self.metric.label}: {'; '.join(cost.missing.values())}"
            )
        figure = cost.metrics[self.metric.name]
        return VariantResult(variant, (figure,), None, record.id, self.session.topology.name)

    # --- both ---------------------------------------------------------------------------------------------------------

    def _prepare(self, variants: tuple[Variant, ...] | list[Variant]) -> None:
        """Check that the testbed offers these variants, place them, and watch their CPUs."""
        for each in variants:
            self._testbed.demand(each.chain)
        equipment, record = self.session.equipment, self.test.record
        self._placed = {**self._placed, **{each.name: self._place(each) for each in variants}}
        known = {each.name: (with_forwarder(each.chain), self._placed[each.name]) for each in variants}
        record.contenders = {**record.contenders, **known}
        placed = [each.suts for each in self._placed.values()]
        suts = [set().union(*each) for each in zip_longest(*placed, fillvalue=set[int]())]
        self.test.quietness = equipment.watch(suts, self.test.undo)

    def _place(self, variant: Variant) -> Placed:
        wanted, equipment = variant.placement, self.session.equipment
        usual = equipment.placement
        if wanted.scenario is not None:
            return self._testbed.place_scenario(wanted.scenario, variant.chain)
        if wanted.cpus is None:
            return Placed(usual, self._testbed.cpu_plans(variant.chain))
        taken = () if usual.apart else usual.tester
        allowed = [cpu for cpu in equipment.cpus[0].usable if cpu not in taken]
        if variant.chain.workers > 1:
            raise Unavailable(f"variant {variant.name!r} names CPUs of one worker, and its chain is on several")
        if wrong := set(wanted.cpus) - set(allowed):
            raise Unavailable(
                f"variant {variant.name!r} cannot have CPU {format_cpu_list(wrong)}; allowed for the system under "
                f"test: {format_cpu_list(allowed) or 'none'}"
            )
        neighbour = tuple(cpu for cpu in allowed if cpu not in wanted.cpus)
        placement = replace(usual, sut=wanted.cpus, named_switch=wanted.switch_cpus or (), neighbour=neighbour)
        with_switch = DATA_PLANES[variant.chain.data_plane].switch_has_cpus
        return Placed(placement, [plan_cpus(placement, variant.chain.pods, with_switch=with_switch)])

    @contextmanager
    def _built(self, variant: Variant) -> Iterator[SystemUnderTest]:
        """The chain of a variant, with its hooks, while the context lasts."""
        chain, traffic = variant.chain, self.traffic
        first = partial(run_before, variant, self._testbed.workers[: chain.workers])
        placed = self._placed[variant.name]
        with (
            self._testbed.build_placed(placed, chain, traffic.frame, traffic.directions, first) as sut,
            ExitStack() as undo,
        ):
            run_after(variant, sut, undo)
            yield sut


def exact_result(
    comparison: Comparison, found: list[VariantResult], started: float, *, interrupted: bool = False
) -> ComparisonResult:
    """The result of figures without noise, one of each variant. An interrupted comparison has only some of them."""
    metric, relevant = comparison.metric_on(counted=True), comparison.relevant_on(counted=True)
    judged = [
        replace(each, judgement=_judged(metric, found[0], each, relevant)) if number else each
        for number, each in enumerate(found)
    ]
    ended: Ended = "interrupted" if interrupted else "exact"
    return ComparisonResult(comparison, metric, relevant, tuple(judged), ended, started, time.time())


def told(found: RoundsSoFar) -> str:
    """The rounds so far in a line for the terminal."""
    changes = []
    for name in found.variants[1:]:
        change = found.judgement(name).change
        changes.append(f"{name} {change.words if change else signed(found.estimate(name))}")
    return f"round {len(found.rounds)} of at most {found.most}: {', '.join(changes)}"


def _judged(metric: Metric, first: VariantResult, other: VariantResult, relevant: float) -> Judgement:
    return judge_exact(metric, first.measured[0].value, other.measured[0].value, relevant)


def _no_cost() -> CostResult:
    raise Unavailable("cost is compared on a counted machine only (topologies/counted.yaml)")
