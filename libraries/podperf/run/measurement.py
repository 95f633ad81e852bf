"""Sets up the chain of one test, and measures it by each method. The figures go into the record of the test."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from podperf.errors import PodperfError, TrialNotDelivered, Unavailable
from podperf.hosts.host_facts import interface_details
from podperf.kernel.full_tables import FullTable, since
from podperf.methods import METHODS
from podperf.methods.base import FurtherMethod, FurtherResult, Method, MethodResult, StandingInstance
from podperf.methods.cost import ONLY_COST, CostResult
from podperf.methods.cpu_time import TRAIN, CpuTimeAtShare, not_delivered
from podperf.methods.latency import LatencyAtShare, LatencyResult
from podperf.methods.mrr import Mrr, MrrResult
from podperf.methods.ndrpdr import NdrPdr, SearchResult
from podperf.methods.presets import FurtherSettings, preset
from podperf.methods.trials import Patience, ValidTrials
from podperf.metrics import METRICS, Measured, Metrics
from podperf.model import AddressedTraffic, Chain, TrafficProfile
from podperf.records import TestRecord, badly_delivered, trials_of
from podperf.run.cost import BarePaths, measure_cost
from podperf.run.limits import Baselines, KnownLimits
from podperf.run.session import Session
from podperf.run.test import TestInProgress
from podperf.testbed.system_under_test import SystemUnderTest, addressed
from podperf.testbed.testbed import Testbed
from podperf.testers.base import Ability, TesterLimits
from podperf.thresholds import ThresholdVerdict
from podperf.topology import MethodSettings

Build = Callable[[], AbstractContextManager[SystemUnderTest]]
Result = TypeVar("Result", bound=MethodResult)
Further = TypeVar("Further", bound=FurtherResult)


@dataclass
class Measurement:
    """A chain between the tester's ports, in a running test. Methods see it as MeasuredChain.

    A counted machine measures only `cost`, and its tester has no limits. `delivered_load` is infinite before MRR is
    measured. `build` sets the chain up again, for the time of a context; None for a variant of a comparison.
    """

    test: TestInProgress
    sut: SystemUnderTest
    traffic: AddressedTraffic
    limits: TesterLimits | None
    settings: MethodSettings
    baselines: Baselines
    cost: Callable[[], CostResult]
    delivered_load: float = math.inf
    build: Build | None = None

    def mrr(self) -> MrrResult:
        """Maximum receive rate, with the trials of the topology."""
        result = self.measure(Mrr.by(self.settings))
        self.delivered_load = result.delivered_load
        return result

    def ndr_and_pdr(self) -> SearchResult:
        """NDR and PDR in one search, by the topology's preset."""
        search, limits = NdrPdr.by(self.settings), self.known_limits()
        adapted = search.preset.for_tester(self.sut.tester.shortest_trial)
        withheld = {goal.name: limits.doubt_of_rates for goal in adapted.goals if limits.cannot_tell(goal.loss_ratio)}
        search = replace(search, preset=adapted, clock=self.test.patience.clock, withheld=withheld)
        # If the tester has not delivered a load in this test, it will not deliver it in the search. The calibration may
        # have been better.
        limits = replace(limits, maximum_load=min(limits.maximum_load, self.delivered_load))
        result, found = search.run(self.trials(search.name, limits)), self.test.figures
        found.decisive_noises = {**found.decisive_noises, search.name: result.noises}
        self.keep(search.name, result)
        return result

    def latency(self) -> LatencyResult | None:
        """Latency at half the PDR, or at half the NDR if the preset seeks no PDR. None without such a rate.

        Between two clocks it is the round-trip time.
        """
        found, limits = self.test.figures, self.known_limits()
        latency, round_trip = LatencyAtShare.below(found.metrics), self.sut.tester.facts.returns_frames
        if latency is None:
            return None
        source = self.test.trials(self.sut, latency.name, self.traffic, limits, round_trip=round_trip)
        result = self.keep(latency.name, latency.run(source))
        if not round_trip:
            found.latency, found.latency_of = result.latency, result.statement
        return result

    def cpu_time(self) -> bool:
        """CPU time a frame, at the load of latency. False without such a load, if nothing is under test, or without a
        delivered trial."""
        cpu_time = CpuTimeAtShare.below(self.test.figures.metrics)
        by_tester = self.sut.tester.facts.reads_cpu_time
        clock = None if by_tester else self.sut.cpu_clock()
        if cpu_time is None or (clock is None and not by_tester):
            return False
        source = self.test.trials(self.sut, cpu_time.name, self.traffic, self.known_limits(), clock, TRAIN)
        try:
            self.keep(cpu_time.name, cpu_time.run(source))
        except TrialNotDelivered as error:  # the rates of the test are worth no less
            found = self.test.figures
            found.methods = {**found.methods, cpu_time.name: not_delivered(error)}
            return False
        return True

    @property
    def further_settings(self) -> FurtherSettings:
        """The settings by the topology's preset. The rounds of a comparison repeat application traffic, so that each
        of them has one run."""
        found = preset(self.settings.search).further
        return replace(found, application_runs=1) if self.build is None else found

    @property
    def metrics(self) -> Metrics:
        """The figures that the test has so far."""
        return self.test.figures.metrics

    def by(self, method: type[FurtherMethod[Further]], amount: float | None = None, **choices: Any) -> Further | None:
        """The result of a method beside MRR and the search; see there. It goes into the record."""
        result = method.on(self, amount, **choices)
        return None if result is None else self.keep(method.name, result)

    def demand(self, ability: Ability) -> None:
        self.known_limits()
        self.sut.tester.facts.demand(ability)

    def tell(self, text: str) -> None:
        self.test.progress.reached(text)

    def instances(self, phase: str) -> Callable[[], AbstractContextManager[StandingInstance]]:
        if (build := self.build) is None:
            raise Unavailable("each round of a comparison sets its variants up anyway")
        self.test.take_down()
        return lambda: self._instance(phase, build)

    @contextmanager
    def _instance(self, phase: str, build: Build) -> Iterator[StandingInstance]:
        with build() as sut:
            began = time.monotonic()
            there = addressed(self.traffic.profile, sut)
            sut.probe(there)
            seconds = sut.set_up_seconds + time.monotonic() - began
            yield StandingInstance(self.test.trials(sut, phase, there, self.known_limits()), seconds)

    def searched(self, name: str) -> Measured | None:
        found = self.test.figures
        if NdrPdr.name not in found.methods:
            self.ndr_and_pdr()
        metrics = found.metrics
        return metrics[name] if name in metrics and not metrics[name].upper_bound else None

    def drop_thresholds_of_other_methods(self) -> None:
        """Leave only those thresholds to `judge` whose metrics belong to the methods that this test has measured."""
        record = self.test.record
        record.thresholds = [
            threshold for threshold in record.thresholds if METRICS[threshold.metric].method in record.methods
        ]

    def judge(self) -> ThresholdVerdict:
        """The verdict on this test's figures by the testbed's thresholds, and on how its frames arrived."""
        most = max(goal.loss_ratio for goal in NdrPdr.by(self.settings).preset.goals)
        bad = badly_delivered(trials_of(self.test.writer.trials), self.traffic.flows, most)
        own = self.limits is not None and self.limits.delivers_badly
        return self.baselines.judge(self.test.record, "" if own else bad)

    def measure(self, method: Method[Result], limits: TesterLimits | None = None) -> Result:
        """The result of this method, with these limits or the tester's. Its figures go into the record."""
        return self.keep(method.name, method.run(self.trials(method.name, limits)))

    def trials(self, phase: str, limits: TesterLimits | None = None) -> ValidTrials:
        """Trials of this phase across the chain, with these limits or the tester's."""
        return self.test.trials(self.sut, phase, self.traffic, limits or self.known_limits())

    def keep(self, method: str, result: Result) -> Result:
        """Keep a result of this method, and its figures, in the record. Returns the result."""
        found = self.test.figures
        found.methods = {**found.methods, method: result.as_record()}
        self.test.keep(bounds(result.metrics) if self.sut.programs_at_ends else result.metrics)
        return result

    def known_limits(self) -> TesterLimits:
        if self.limits is None:
            raise Unavailable(ONLY_COST)
        return self.limits


def bounds(metrics: Metrics) -> Metrics:
    """These figures of a chain whose rates include the work of programs at its ends. The data plane itself is as fast
    at least: such a rate is a lower bound, if the search found one."""
    return {
        name: replace(each, lower_bound=True)
        if METRICS[name].quantity.more_is_better and not each.upper_bound
        else each
        for name, each in metrics.items()
    }


def measure_by_method(measurement: Measurement, name: str) -> None:
    """Measure the metrics of this method (`podperf.metrics.Metric.method`). The figures go into the record."""
    MEASURES.get(name, MEASURES["latency"])(measurement)


MEASURES: Mapping[str, Callable[[Measurement], object]] = {
    "mrr": Measurement.mrr,
    "ndrpdr": Measurement.ndr_and_pdr,
    "latency": lambda measurement: (measurement.ndr_and_pdr(), measurement.latency()),
    "cpu_time": lambda measurement: (measurement.ndr_and_pdr(), measurement.cpu_time()),
    "cost": lambda measurement: measurement.cost(),
    **{name: partial(Measurement.by, method=each) for name, each in METHODS.items()},
}
"""How the metrics of a method are measured, by the method's name. All others take the trial of latency."""


class SharedByTests:
    """The common state of the tests of a run: unused patience, the tester's limits, figures of the bare path."""

    def __init__(self, session: Session) -> None:
        self.patience = Patience()
        self.limits = KnownLimits(session, self.patience)
        self.baselines = Baselines()
        self.bare_paths = BarePaths()


def set_up(
    test: TestInProgress,
    chain: Chain,
    profile: TrafficProfile,
    session: Session,
    testbed: Testbed,
    shared: SharedByTests,
) -> Measurement:
    """Build the chain, check that frames cross it, and describe it in the record. It stays until the test's `undo`."""
    record, equipment = test.record, session.equipment
    if chain.workers > 1:
        testbed.demand(chain)
        test.quietness = equipment.watch([cpu_plan.sut for cpu_plan in testbed.cpu_plans(chain)], test.undo)
    again = partial(testbed.build, chain, profile.frame, profile.directions, headers=profile.headers)
    sut = test.undo.enter_context(again())
    record.traffic = traffic = addressed(profile, sut)
    sut.probe(traffic)
    record.cpu_plans, record.data_plane = sut.cpu_plans, sut.describe()
    record.second_model = sut.second_model
    record.tester = sut.tester.describe()
    record.interfaces = interfaces_of(sut)
    record.link_bits_per_second = link_speed(record.interfaces)
    if not session.topology.counts_instructions:  # where no rate is judged
        engine, link = sut.tester.facts.engine, record.link_bits_per_second
        record.limits = shared.limits.on_link(link, traffic, engine, testbed, chain.ends)
    test.undo.callback(_last_look, record, sut, sut.read_tables())
    cost = partial(measure_cost, test, sut, testbed, profile, shared.bare_paths, session.profiler)
    return Measurement(test, sut, traffic, record.limits, session.topology.method, shared.baselines, cost, build=again)


def _last_look(record: TestRecord, sut: SystemUnderTest, tables: Sequence[FullTable]) -> None:
    """Describe the data plane again before it is taken down, with the final counters of its processes and of tables
    that were full. `tables` are their counters before the measurement."""
    with suppress(PodperfError, OSError):
        asked = [each.name for each in sut.tester.facts.tables]
        record.full_tables = since(tables, sut.read_tables(), asked)
    if sut.counts:
        with suppress(PodperfError, OSError):  # if it has ended, the first description stays
            sut.check()
            record.data_plane = sut.describe()


def interfaces_of(sut: SystemUnderTest) -> dict[str, dict[str, Any]]:
    """The interfaces at both ends of a chain that is set up, and at the other ends of their cables, by name.

    DPDK takes the worker's interfaces away from the kernel. The tester's interfaces stay, and show the link's speed.
    """
    ends = {
        name: interface_details(port.host, port.interface) | {"received_by": port.received_by}
        for name, port in sut.ports.items()
    }
    return ends | {f"tester {name}": interface_details(host, name) for name, host in sut.tester_ports.items()}


def link_speed(interfaces: Mapping[str, Mapping[str, Any]]) -> float | None:
    """The speed of the slowest port, in bit/s. None if no port has a speed, for example veth."""
    speeds = [interface.get("speed_bits_per_second") for interface in interfaces.values()]
    return min((float(speed) for speed in speeds if speed), default=None)
