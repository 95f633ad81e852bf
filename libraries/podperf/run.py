"""One run of the suites on one testbed: what the keyword libraries share, and nothing of Robot Framework."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from secrets import randbits
from typing import Any

from podperf.cleanup import put_back
from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.wire import Wire
from podperf.errors import PodperfError, Unavailable
from podperf.figures import count
from podperf.hosts.base import Host
from podperf.hosts.environment import collect, interface_details, podperf_version
from podperf.hosts.local import LocalHost
from podperf.hosts.ssh_login import take_password
from podperf.kernel.cpus import read_cpus
from podperf.methods import method
from podperf.methods.base import Method, MethodResult
from podperf.methods.comparison import Comparison
from podperf.methods.durations import usual_duration
from podperf.methods.latency import LatencyAtShare, LatencyResult
from podperf.methods.mrr import MrrResult
from podperf.methods.ndrpdr import NdrPdr, SearchResult
from podperf.methods.trials import Patience, ValidTrials, await_quietness
from podperf.metrics import METRICS, RATE, RATIO, Measured, Metrics, Need
from podperf.model import Chain, Direction, FrameSize, Traffic, line_rate
from podperf.progress import Progress
from podperf.quietness.machines import watch
from podperf.quietness.watch import Quietness
from podperf.records import Outcome, RecordWriter, TestRecord, earlier_durations, set_aside, topology_digest
from podperf.report.command import summary, write_reports
from podperf.test_in_progress import Ended, TestIdentity, TestInProgress
from podperf.testbed.access import behind_ssh, lock, machines_of
from podperf.testbed.machines import FurtherWorker, further_workers
from podperf.testbed.placement import nic_node, place, remarks
from podperf.testbed.run_lock import RUN, RunLock
from podperf.testbed.scenarios import Placed
from podperf.testbed.system_under_test import SystemUnderTest, addressed
from podperf.testbed.testbed import Testbed
from podperf.testers.base import TesterLimits
from podperf.testers.calibration import calibrate, calibrate_sending, check_clock
from podperf.topology import Engine, Topology, load_topology
from podperf.verdicts.findings import Contender, Finding, Order
from podperf.verdicts.findings import judge as judge_order
from podperf.verdicts.thresholds import Verdict, applicable, judge
from podperf.virtual_worker.boot import boot

NOT_BELIEVED = "NDR is not judged, findings are inconclusive, and each row says what its other figures are worth"

TrafficKind = tuple[FrameSize, tuple[Direction, ...], int]  # what the tester's limits depend on: all but the addresses


class Run:
    """The testbed, its calibration, and the test that runs now. `close` writes the reports."""

    def __init__(
        self, topology: Path, results: Path, progress: Progress | None = None, password: str | None = None
    ) -> None:
        """`password` is for machines of which the topology says so. Without it the environment's is used, and taken
        out of there."""
        take_password()
        self.topology: Topology = load_topology(topology, DATA_PLANES)
        self.results = results
        self.progress = progress or Progress()
        self.clock = time.monotonic  # what the tester's clock is held against
        self._host = LocalHost()
        self._password = password
        self._machines: tuple[Host, ...] = ()  # of tester, worker and further workers
        self._losses: list[int] = []  # of connections to those behind SSH, when they were taken
        self._undo = ExitStack()
        self._limits: dict[tuple[TrafficKind, Engine], TesterLimits] = {}
        self._right_clocks: set[Engine] = set()  # of testers whose clock was held against this machine's
        self._baselines: dict[TrafficKind, Metrics] = {}
        self._baseline_records: dict[TrafficKind, str] = {}  # where a test has measured them, its record
        self._test: TestInProgress | None = None
        self._patience = Patience(0)
        self._lost: list[str] = []  # what is to be said of records that are not in the results folder

    def open(self) -> None:
        """Take the machines: one run at a time, and nothing of an earlier one in the way. All of them, or none."""
        try:
            self._open()
        except BaseException:
            self._undo.close()
            raise

    def _open(self) -> None:
        if self.topology.uses_this_machine and os.geteuid() != 0:
            raise PodperfError(
                "measuring on this machine needs root, for network namespaces and BPF programs: run it with sudo"
            )
        self._undo.enter_context(RunLock(RUN, self.progress.note))
        if earlier := set_aside(self.results):
            self.progress.note(f"records of an earlier run lay in {self.results}; they are in {earlier.name} now")
        self._undo.callback(put_back, self._host, keep=True)  # whatever a signal kept from being taken down
        for leftover in put_back(self._host):
            self.progress.note(f"removed what an earlier run left: {leftover}")
        if self.topology.worker.connection == "virtual":
            self.topology = boot(self._host, self.progress.note, self._undo).as_lab(self.topology)
        self._machines = machines_of(self.topology, self._host, self._undo, self._password)
        self._take_machines()

    def _take_machines(self) -> None:
        undo = self._undo.enter_context(ExitStack())
        self._give_machines_back = undo.close
        tester, worker, *others = self._machines
        for machine in behind_ssh(self._machines):
            lock(machine, undo, RUN, self.progress.note)
            undo.callback(put_back, machine, keep=True)  # as for this machine
            for leftover in put_back(machine):
                self.progress.note(f"removed what an earlier run left on {machine.name}: {leftover}")
        apart = worker is not tester
        cpus = read_cpus(tester)
        self.worker_cpus = read_cpus(worker) if apart else cpus
        node = nic_node(worker, self.topology.worker)
        self.placement = place(self.topology, cpus, self.worker_cpus if apart else None, node)
        further = further_workers(self.topology, cpus, others)
        self.testbed = Testbed(self.topology, self.placement, tester, worker, further)
        self.testbed.refuse_shared_ports()
        self.testbed.refuse_unpinnable()
        undo.callback(self.testbed.close)
        self._quietness = self._watch(self.placement.sut, undo)
        self.environment = {
            **collect(worker),
            "podperf": podperf_version(self._host),
            **({"tester": collect(tester)} if apart else {}),
            **({"further_workers": {each.host.name: _facts(each) for each in further}} if further else {}),
        }
        self._losses = [each.losses for each in behind_ssh(self._machines)]

    def _take_lost_machines_again(self) -> None:
        """What held a machine ended with the connection to it, and what a test had set up there still stands."""
        machines = behind_ssh(self._machines)
        if [each.losses for each in machines] != self._losses:
            self.progress.note("an SSH connection was lost: logging in again")
            for machine in machines:
                machine.log_in_again()
            with suppress(PodperfError):
                self._give_machines_back()
            self._take_machines()

    def _watch(self, sut: Sequence[int], undo: ExitStack, workers: int = 1) -> Quietness:
        """Watches the tester's CPUs, these of the system under test, and those of what more workers there are."""
        tester, worker = self._machines[:2]
        own = () if self.topology.tester.runs_already else self.placement.tester
        if worker is not tester:
            beyond: Quietness | None = None
            for each in reversed(self.testbed.further[: workers - 1]):
                beyond = watch(each.host, each.placement.sut, undo, worker=beyond)
            return watch(tester, own, undo, worker=watch(worker, sut, undo, worker=beyond))
        # The tester's CPUs come last: after reading its speed one stays on a CPU, and those of the SUT may be pollers'.
        return watch(tester, (*sut, *own), undo)

    def close(self) -> str:
        """Give the machine back and write the reports; returns the summary table and where the reports are."""
        said = []
        try:
            self._undo.close()
        except Exception as error:  # nor has a signal, which Robot Framework makes one of, a part in what was measured
            said.append(f"podperf: {error}; once: sudo ./podperf clean {self.topology.path}")
        said += [f"podperf: {each}" for each in self._lost]
        return "\n\n".join([*self._reports(), *said])

    def _reports(self) -> list[str]:
        if not any((self.results / "records").glob("*")):
            return ["no test was measured, so there is nothing to report"]
        try:
            report = f"Conformance: {write_reports(self.results)}"
        except PodperfError as error:
            report = f"podperf: {error}"
        return [summary(self.results, self.progress.stream), report]

    def plan(self, tests: Sequence[TestIdentity]) -> None:
        """All tests of the run, in their order: tell whoever watches how long they may take."""
        earlier = earlier_durations(self.results, topology_digest(self.topology))
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
            test.quietness = self._watch(self.placement.sut, test.undo, chain.workers)
        sut = test.undo.enter_context(self.testbed.build(chain, frame, traffic.directions))
        record.traffic = addressed(traffic, sut)
        sut.probe(record.traffic)
        record.data_plane = sut.describe()
        record.tester = sut.tester.describe()
        record.interfaces = _interfaces(sut)
        record.link_bits_per_second = _link_speed(record.interfaces)
        record.limits = self._limits_on(record.link_bits_per_second, traffic, record.tester["engine"])
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
        if workers > 1 or not cpus <= set(self.placement.sut):
            test.quietness = self._watch(sorted(cpus), test.undo, workers)
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
                    limits[name] = self._limits_on(_link_speed(on_path), traffics[name], record.tester["engine"])
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
            return Placed(self.placement)
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
        record.topology, record.traffic, record.environment = self.topology, traffic, self.environment
        patience = Patience(0)
        if traffic is not None:
            self._take_lost_machines_again()
            said = remarks(self.placement, self.worker_cpus, len(traffic.directions))
            record.placement, record.environment = self.placement, {**self.environment, "placement_remarks": said}
            # What one test leaves of its patience is the next one's: the neighbours of a machine come and go.
            patience = self._patience = Patience(self._patience.left + self.topology.method.patience)
        writer = RecordWriter(self.results / "records", record)  # with what is known of the test by now
        self._test = TestInProgress(record, writer, self.progress, self._quietness, patience)
        return self._test

    def _limits_for(self, traffic: Traffic, engine: Engine) -> TesterLimits:
        """What the tester can do with such traffic. One that showed a fault is tried again in each test.

        As long as it is the same fault, the first figures stay, so that all rows say the same.
        """
        kind = _kind_of(traffic)
        known = self._limits.get((kind, engine))
        if known is None or known.faults:
            await_quietness(self._quietness, self._patience, self.progress.waiting)
            limits = self._calibrated(traffic, engine).held_to(self.topology.tester.maximum_load)
            if known is None or limits.kinds_of_faults != known.kinds_of_faults:
                self._limits[kind, engine] = limits
                if limits.faults:
                    self.progress.note(f"{limits.doubt}. {NOT_BELIEVED}")
        return self._limits[kind, engine]

    def _calibrated(self, traffic: Traffic, engine: Engine) -> TesterLimits:
        if self.topology.tester.has_ports_of_its_own:
            most = self.topology.tester.maximum_load
            return calibrate_sending(self.testbed.tester_with_ports(), traffic, most=most)
        with self.testbed.bare_path(traffic.frame, engine) as bare:
            if engine not in self._right_clocks:
                fault = check_clock(bare.tester, traffic, self.clock)
                if fault is not None:
                    return calibrate(bare.tester, traffic, known=(fault,))
                self._right_clocks.add(engine)
            return calibrate(bare.tester, traffic)

    def _limits_on(self, link: float | None, traffic: Traffic, engine: Engine) -> TesterLimits:
        """The same on a link of so many bit/s: what does not fit on it is no loss of the system under test."""
        limits = self._limits_for(traffic, engine)
        if link and (rate := line_rate(link, traffic.frame)) < limits.maximum_load:
            return limits.held_to(rate, "the line rate of the link")
        return limits

    def measure_mrr(self) -> MrrResult:
        """Maximum receive rate, as the topology asks for it."""
        result = self._measure(method("mrr", self.topology.method))
        assert isinstance(result, MrrResult)
        self.current.delivered_load = result.delivered_load
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
        return result

    def measure_latency(self) -> bool:
        """Latency at half the PDR, or the NDR where the preset seeks no PDR. False when there is no load to halve."""
        record = self.current.record
        latency = LatencyAtShare.below(record.metrics)
        if latency is None:
            return False
        result = self._measure(latency)
        assert isinstance(result, LatencyResult)
        record.latency, record.latency_of = result.latency, result.statement
        return True

    def judge(self) -> Verdict:
        """The figures of this test against the testbed's thresholds."""
        record = self.current.record
        assert record.chain is not None and record.traffic is not None
        kind = _kind_of(record.traffic)
        baseline = _baseline_of(record.limits, self._baselines.get(kind, {}))
        if any(each.unit == RATIO for each in record.thresholds):
            record.baseline = self._baseline_records.get(kind)
        record.verdict = judge(
            record.thresholds,
            record.traffic.frame,
            record.metrics,
            baseline,
            noise=record.why_noisy(),
            doubts=record.limits.doubts if record.limits else {},
        )
        if record.chain.data_plane == Wire.name:  # measured at length, it is a better baseline than the calibration
            self._baselines[kind] = record.metrics
            self._baseline_records[kind] = record.id
        return record.verdict

    def tear_down_chain(self) -> None:
        """Take the chain down. Safe to repeat."""
        if self._test is not None:
            self._test.take_down()

    def end_test(self, identity: TestIdentity, outcome: Outcome, reason: str = "") -> Ended:
        """Close the record, with how the test ended. Without a chain it gets one, too."""
        test = self._test or self._begin(identity.record(identity.name))
        self._test = None
        if outcome == "skipped" and test.record.traffic is not None:  # it had no use for its patience
            self._patience = Patience(max(0.0, self._patience.left - self.topology.method.patience))
        ended = test.end(outcome, reason)
        self._lost += ended.problems if ended.lost else ()
        return ended

    def _measure(self, method: Method, limits: TesterLimits | None = None) -> MethodResult:
        test = self.current
        assert test.sut is not None
        result = method.run(test.trials(test.sut, method.name, limits=limits))
        test.record.methods = {**test.record.methods, method.name: result.as_record()}
        test.keep(result.metrics)
        return result


def _baseline_of(limits: TesterLimits | None, measured: Metrics) -> Metrics | None:
    """What the bare path does: as `measured` at length, else as the tester of this test was calibrated.

    Where the calibration found more, that counts: on a noisy machine a baseline is too low, and flatters what is held
    against it. A rate above what the load is held to (line rate, topology) counts as that: the path under test is
    offered no more.
    """
    if limits is None:
        return measured or None
    limit = Measured(limits.maximum_load, lower_bound=True)
    rates = [each for each in METRICS.values() if each.quantity is RATE]
    # The calibration lets a little loss pass, so it tells nothing about a rate without loss.
    calibrated = [each.name for each in rates if Need.NO_LOSS not in each.needs]
    found: dict[str, Measured] = {**dict.fromkeys(calibrated, limit), **measured}
    known = (each for each in calibrated if not (found[each].unfinished or found[each].upper_bound))
    found |= {each: limit for each in known if found[each].value < limit.value}
    if limits.held:
        found |= {each.name: limit for each in rates if each.name in found and found[each.name].value > limit.value}
    return found


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


def _facts(worker: FurtherWorker) -> dict[str, Any]:
    return {**collect(worker.host), "placement": asdict(worker.placement)}


def _kind_of(traffic: Traffic) -> TrafficKind:
    return traffic.frame, traffic.directions, traffic.flows


def _way(traffic: Traffic) -> str:
    """How the traffic differs from the usual, for the record's name."""
    words = ["both-ways"] if len(traffic.directions) > 1 else []
    return "-".join([*words, *([f"{traffic.flows}-flows"] if traffic.flows > 1 else [])])
