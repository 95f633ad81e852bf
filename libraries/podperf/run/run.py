"""One run of the suites on one testbed: what the keyword libraries share, and nothing of Robot Framework."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from secrets import randbits
from typing import Any

from podperf.dataplanes import DATA_PLANES
from podperf.errors import PodperfError, Unavailable
from podperf.figures import count
from podperf.hosts.environment import interface_details
from podperf.methods import method
from podperf.methods.base import Method, MethodResult
from podperf.methods.comparison import Comparison
from podperf.methods.durations import usual_duration
from podperf.methods.latency import LatencyAtShare, LatencyResult
from podperf.methods.metrics import of_goal, of_mrr
from podperf.methods.mrr import MrrResult
from podperf.methods.ndrpdr import NdrPdr, SearchResult
from podperf.methods.trials import Patience, ValidTrials
from podperf.model import Chain, Direction, FrameSize, Traffic
from podperf.records import Outcome, RecordWriter, TestRecord, earlier_durations, topology_digest
from podperf.report.command import summary, write_reports
from podperf.run.baselines import Baselines
from podperf.run.limits import KnownLimits
from podperf.run.session import Session
from podperf.run.test_in_progress import Ended, TestIdentity, TestInProgress
from podperf.testbed.placement import remarks
from podperf.testbed.scenarios import Placed
from podperf.testbed.system_under_test import SystemUnderTest, addressed
from podperf.testbed.testbed import Testbed
from podperf.testers.base import TesterLimits
from podperf.topology import Metric, Topology
from podperf.verdicts.findings import Contender, Finding, Order
from podperf.verdicts.findings import judge as judge_order
from podperf.verdicts.thresholds import METRIC_NAMES, Measured, Verdict, applicable


class Run:
    """The testbed, its calibration, and the test that runs now. `close` writes the reports."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.progress = session.progress
        self._test: TestInProgress | None = None
        self._patience = Patience()
        self.limits = KnownLimits(session, self._patience)
        self._baselines = Baselines()
        self._lost: list[str] = []  # what is to be said of records that are not in the results folder

    @property
    def topology(self) -> Topology:
        """The topology of the run."""
        return self.session.topology

    @property
    def testbed(self) -> Testbed:
        """The testbed in use."""
        return self.session.equipment.testbed

    def open(self) -> None:
        """Take the machines: one run at a time, and nothing of an earlier one in the way. All of them, or none."""
        self.session.open()

    def close(self) -> str:
        """Give the machine back and write the reports; returns the summary table and where the reports are."""
        said = []
        try:
            self.session.close()
        except Exception as error:  # nor has a signal, which Robot Framework makes one of, a part in what was measured
            said.append(f"podperf: {error}; once: sudo ./podperf clean {self.topology.path}")
        said += [f"podperf: {each}" for each in self._lost]
        return "\n\n".join([*self._reports(), *said])

    def _reports(self) -> list[str]:
        if not any((self.session.results / "records").glob("*")):
            return ["no test was measured, so there is nothing to report"]
        try:
            report = f"Conformance: {write_reports(self.session.results)}"
        except PodperfError as error:
            report = f"podperf: {error}"
        return [summary(self.session.results, self.progress.stream), report]

    def plan(self, tests: Sequence[TestIdentity]) -> None:
        """All tests of the run, in their order: tell whoever watches how long they may take."""
        earlier = earlier_durations(self.session.results, topology_digest(self.topology))
        offered = {each: self._offers(each) for each in DATA_PLANES if any(each in test.tags for test in tests)}

        def expected(test: TestIdentity) -> float:
            planes = [each for each in offered if each in test.tags]
            if not all(offered[each] for each in planes):
                return 0.0
            return earlier.get(test.name, usual_duration(test.tags, self.topology.method, planes))

        self.progress.run_begins([expected(each) for each in tests])

    def _offers(self, data_plane: str) -> bool:
        """Whether this testbed can have it at all: what else a test needs is found when it runs."""
        with suppress(PodperfError):
            self.testbed.demand(Chain(data_plane, DATA_PLANES[data_plane].least_pods))
            return True
        return False

    @property
    def current(self) -> TestInProgress:
        """The test that runs now."""
        if self._test is None:
            raise PodperfError("no chain is set up: call `Set Up Chain` first")
        return self._test

    def begin_test(
        self,
        identity: TestIdentity,
        chain: Chain,
        frame: FrameSize,
        directions: tuple[Direction, ...] | None = None,
        flows: int | None = None,
    ) -> None:
        """Open the record of a test, build its chain and see frames cross it."""
        traffic = self._traffic(frame, directions, flows)
        inside = chain.forwarder or ""
        where = count(chain.workers, "worker") if chain.workers > 1 else ""
        record = identity.record(chain.data_plane, count(chain.pods, "pod"), where, inside, frame.name, _way(traffic))
        kind = DATA_PLANES.get(chain.data_plane)
        record.model = kind.model if kind else None
        record.chain = replace(chain, forwarder=chain.forwarder or kind.forwarders[0]) if kind else chain
        record.thresholds = applicable(self.topology.thresholds, chain, frame)
        test = self._begin(record, traffic)
        if chain.workers > 1:
            self.testbed.demand(chain)
            test.quietness = self.session.equipment.watch(
                self.session.equipment.placement.sut, test.undo, chain.workers
            )
        sut = test.undo.enter_context(self.testbed.build(chain, frame, traffic.directions))
        record.traffic = addressed(traffic, sut)
        sut.probe(record.traffic)
        record.data_plane = sut.describe()
        record.tester = sut.tester.describe()
        record.interfaces = _interfaces(sut)
        record.link_bits_per_second = _link_speed(record.interfaces)
        record.limits = self.limits.on_link(record.link_bits_per_second, traffic, record.tester["engine"])
        test.sut = sut

    def compare(self, identity: TestIdentity, order: Order) -> Finding:
        """Measure the contenders of an order beside each other, in a test of its own, and judge it.

        Unavailable, before anything is measured, when this testbed cannot offer one of them.
        """
        traffics = {str(each): self._traffic(each.frame) for each in order.contenders}
        frames = "-".join(dict.fromkeys(each.frame.name for each in order.contenders))
        usual = traffics[str(order.contenders[0])]
        record = identity.record(order.name, frames, _way(usual))
        test = self._begin(record, usual)
        for contender in order.contenders:
            if contender.chain.data_plane not in DATA_PLANES:
                raise Unavailable(f"this version of podperf has no data plane {contender.chain.data_plane!r}")
            self.testbed.demand(contender.chain)
        placed = {str(each): self._placed(each) for each in order.contenders}
        cpus = {cpu for each in placed.values() for cpu in each.cpus}
        workers = max(each.chain.workers for each in order.contenders)
        if workers > 1 or not cpus <= set(self.session.equipment.placement.sut):
            test.quietness = self.session.equipment.watch(sorted(cpus), test.undo, workers)
        limits: dict[str, TesterLimits] = {}
        doubts: dict[str, None] = {}  # in the order in which they were raised
        described: dict[str, Mapping[str, Any]] = {}

        @contextmanager
        def standing(contender: Contender) -> Iterator[ValidTrials]:
            name = str(contender)
            ways = traffics[name].directions
            with self.testbed.build_placed(placed[name], contender.chain, contender.frame, ways) as sut:
                sut.probe(addressed(traffics[name], sut))
                if name not in described:
                    described[name] = sut.describe()
                    record.data_plane, record.tester = described, sut.tester.describe()
                    on_path = _interfaces(sut)
                    named = {f"{name}: {interface}": each for interface, each in on_path.items()}
                    record.interfaces = {**record.interfaces, **named}
                    limits[name] = self.limits.on_link(_link_speed(on_path), traffics[name], record.tester["engine"])
                    doubts.update(dict.fromkeys(filter(None, [limits[name].doubt])))
                yield test.trials(sut, name, traffics[name], limits[name])

        result = Comparison().run({str(each): partial(standing, each) for each in order.contenders}, randbits(32))
        record.limits = limits[str(order.contenders[0])]
        setting = {
            "placements": {name: asdict(each) for name, each in placed.items()},
            "frames": {name: each.frame.name for name, each in traffics.items()},  # a trial's `phase` has the name
        }
        record.methods = {"comparison": {"claim": order.name, **result.as_record(), **setting}}
        rates = [result.rates(str(each)) for each in order.contenders]
        finding = judge_order(order, rates, result.noisy_trials, doubt="; ".join(doubts))
        record.findings = [finding]
        return finding

    def _placed(self, contender: Contender) -> Placed:
        if contender.scenario is None:
            return Placed(self.session.equipment.placement)
        return self.testbed.place_scenario(contender.scenario, contender.chain)

    def _traffic(
        self, frame: FrameSize, directions: tuple[Direction, ...] | None = None, flows: int | None = None
    ) -> Traffic:
        usual = self.topology.traffic
        try:
            return Traffic(frame, directions or usual.directions, usual.flows if flows is None else flows)
        except ValueError as error:
            raise PodperfError(str(error)) from error

    def _begin(self, record: TestRecord, traffic: Traffic | None = None) -> TestInProgress:
        if self._test is not None:
            raise PodperfError("this test has measured already, and its record is of that: give each chain a test")
        record.topology, record.traffic, record.environment = self.topology, traffic, self.session.equipment.environment
        self._patience.grant(0.0 if traffic is None else self.topology.method.patience)
        if traffic is not None:
            self.session.take_lost_machines_again()
            said = remarks(
                self.session.equipment.placement, self.session.equipment.worker_cpus, len(traffic.directions)
            )
            record.placement, record.environment = (
                self.session.equipment.placement,
                {**self.session.equipment.environment, "placement_remarks": said},
            )
        writer = RecordWriter(self.session.results / "records", record)  # with what is known of the test by now
        self._test = TestInProgress(record, writer, self.progress, self.session.equipment.quietness, self._patience)
        return self._test

    def measure_mrr(self) -> MrrResult:
        """Maximum receive rate, as the topology asks for it."""
        result = self._measure(method("mrr", self.topology.method))
        assert isinstance(result, MrrResult)
        self.current.delivered_load = result.delivered_load
        self.current.keep("mrr", of_mrr(result))
        return result

    def search_ndr_and_pdr(self) -> SearchResult:
        """NDR and PDR in one search, by the topology's preset."""
        search, test = method("ndrpdr", self.topology.method), self.current
        assert isinstance(search, NdrPdr) and test.sut is not None and test.record.limits is not None
        preset, limits = search.preset.for_tester(test.sut.tester.shortest_trial), test.record.limits
        withheld = {each.name: limits.doubt for each in preset.goals if limits.cannot_tell(each.loss_ratio)}
        search = replace(search, preset=preset, clock=self._patience.clock, withheld=withheld)
        # Whatever the calibration found: what the tester has not delivered in this test, it will not in its search.
        result = self._measure(search, replace(limits, maximum_load=min(limits.maximum_load, test.delivered_load)))
        assert isinstance(result, SearchResult)
        goals: dict[Metric, str] = {"ndr": "NDR", "pdr": "PDR"}
        for metric, name in goals.items():
            goal = result.goal(name)
            measured = of_goal(goal) if goal else None
            if measured is not None:
                self.current.keep(metric, measured)
        return result

    def measure_latency(self) -> bool:
        """Latency at half the PDR, or the NDR where the preset seeks no PDR. False when there is no load to halve."""
        record = self.current.record
        rates: tuple[Metric, ...] = ("pdr", "ndr")
        found = [each for each in rates if each in record.metrics and not record.metrics[each].upper_bound]
        if not found:
            return False
        rate, name = record.metrics[found[0]], METRIC_NAMES[found[0]]
        of = f"{name} of an unfinished search" if rate.unfinished else name
        result = self._measure(LatencyAtShare(rate.value, of))
        assert isinstance(result, LatencyResult)
        if result.latency is not None:
            record.latency, record.latency_of = result.latency, result.statement
            metrics: dict[Metric, float] = {"latency_p50": 50, "latency_p99": 99}
            for metric, percent in metrics.items():
                # At half of a rate that is not known it is not what a threshold on it means.
                self.current.keep(metric, Measured(result.latency.percentile(percent), unfinished=rate.unfinished))
        return True

    def judge(self) -> Verdict:
        """The figures of this test against the testbed's thresholds."""
        return self._baselines.judge(self.current.record)

    def tear_down_chain(self) -> None:
        """Take the chain down. Safe to repeat."""
        if self._test is not None:
            self._test.take_down()

    def end_test(self, identity: TestIdentity, outcome: Outcome, reason: str = "") -> Ended:
        """Close the record, with how the test ended. Without a chain it gets one, too."""
        test = self._test or self._begin(identity.record(identity.name))
        self._test = None
        if outcome == "skipped" and test.record.traffic is not None:  # it had no use for its patience
            self._patience.withdraw(self.topology.method.patience)
        ended = test.end(outcome, reason)
        self._lost += ended.problems if ended.lost else ()
        return ended

    def _measure(self, method: Method, limits: TesterLimits | None = None) -> MethodResult:
        test = self.current
        assert test.sut is not None
        result = method.run(test.trials(test.sut, method.name, limits=limits))
        test.record.methods = {**test.record.methods, method.name: result.as_record()}
        return result


def _link_speed(interfaces: Mapping[str, Mapping[str, Any]]) -> float | None:
    """That of the slowest port, in bit/s; None where none has one, as veth."""
    speeds = [each.get("speed_bits_per_second") for each in interfaces.values()]
    return min((float(each) for each in speeds if each), default=None)


def _interfaces(sut: SystemUnderTest) -> dict[str, dict[str, Any]]:
    """The interfaces at both ends of a chain that stands, by their names, and those at the other ends of their cables.

    The tester's stay with the kernel where DPDK takes the worker's away.
    """
    ends = {
        name: interface_details(port.host, port.interface) | {"received_by": port.received_by}
        for name, port in sut.ports.items()
    }
    return ends | {f"tester {name}": interface_details(host, name) for name, host in sut.tester_ports.items()}


def _way(traffic: Traffic) -> str:
    """How the traffic differs from the usual, for the record's name."""
    words = ["both-ways"] if len(traffic.directions) > 1 else []
    return "-".join([*words, *([f"{traffic.flows}-flows"] if traffic.flows > 1 else [])])
