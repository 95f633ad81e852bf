"""One run of the suites on one testbed: what the keyword libraries share, and nothing of Robot Framework."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from secrets import randbits
from typing import Any

from podperf.cleanup import put_back
from podperf.cpu_speed import CpuSpeeds
from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.wire import Wire
from podperf.environment import collect, interface_details
from podperf.errors import PodperfError, Unavailable
from podperf.figures import count
from podperf.findings import Claim, Finding
from podperf.findings import judge as judge_claim
from podperf.hosts.local import LocalHost
from podperf.isolation import refuse_shared_ports
from podperf.methods.base import Method, MethodResult
from podperf.methods.comparison import Comparison
from podperf.methods.latency import LatencyAtShare, LatencyResult
from podperf.methods.mrr import Mrr, MrrResult
from podperf.methods.ndrpdr import NdrPdr, SearchResult
from podperf.methods.presets import preset
from podperf.methods.trials import Patience, ValidTrials
from podperf.metrics import of_goal, of_mrr
from podperf.model import Chain, Direction, FrameSize, Traffic
from podperf.noise import total
from podperf.placement import place, read_cpus, remarks
from podperf.progress import Progress
from podperf.quietness import Quietness
from podperf.records import Outcome, TestRecord
from podperf.report.command import summary, write_reports
from podperf.run_lock import RunLock
from podperf.test_in_progress import TestIdentity, TestInProgress
from podperf.testbed import Testbed, addressed
from podperf.testers.base import TesterLimits
from podperf.testers.calibration import calibrate
from podperf.testers.software import Engine
from podperf.topology import Metric, Topology, load_topology
from podperf.verdicts import Measured, Metrics, Verdict, applicable, judge

TrafficKind = tuple[FrameSize, tuple[Direction, ...], int]  # what the tester's limits depend on: all but the addresses


class Run:
    """The testbed, its calibration, and the test that runs now. A context manager: leaving it writes the reports."""

    def __init__(self, topology: Path, results: Path, progress: Progress | None = None) -> None:
        self.topology: Topology = load_topology(topology, DATA_PLANES)
        self.results = results
        self.progress = progress or Progress()
        self._host = LocalHost()
        self._undo = ExitStack()
        self._limits: dict[tuple[TrafficKind, Engine], TesterLimits] = {}
        self._baselines: dict[TrafficKind, Metrics] = {}
        self._test: TestInProgress | None = None
        self._patience = Patience(0)

    def open(self) -> None:
        """Take the machine: one run at a time, and nothing of an earlier one in the way."""
        self._undo.enter_context(RunLock())
        for leftover in put_back(self._host):
            self.progress.note(f"removed what an earlier run left: {leftover}")
        refuse_shared_ports(self.topology, self._host)
        cpus = read_cpus(self._host)
        self.placement = place(self.topology, cpus)
        self.testbed = Testbed(self.topology, self.placement, self._host)
        # The tester's CPUs come last: after reading its speed one stays on a CPU, and those of the SUT may be pollers'.
        measuring = (*self.placement.sut, *self.placement.tester)
        self._quietness = Quietness(measuring, speeds=CpuSpeeds(measuring))
        ways = len(self.topology.traffic.directions)
        self.environment = {**collect(self._host), "placement_remarks": remarks(self.placement, cpus, ways)}

    def close(self) -> str:
        """Give the machine back and write the reports; returns the summary table and where the reports are."""
        self._undo.close()
        if not any((self.results / "records").glob("*")):
            return "no test was measured, so there is nothing to report"
        report = write_reports(self.results)
        return f"{summary(self.results)}\n\nConformance: {report}"

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
        record = identity.record(chain.data_plane, count(chain.pods, "pod"), inside, frame.name, _way(traffic))
        kind = DATA_PLANES.get(chain.data_plane)
        record.model = kind.model if kind else None
        record.chain = replace(chain, forwarder=chain.forwarder or kind.forwarders[0]) if kind else chain
        record.thresholds = applicable(self.topology.thresholds, chain, frame)
        test = self._begin(record, traffic)
        sut = test.undo.enter_context(self.testbed.build(chain, frame))
        record.traffic = addressed(traffic, sut)
        sut.probe(record.traffic)
        record.data_plane = sut.data_plane.describe()
        record.tester = sut.tester.describe()
        record.limits = self._limits_for(traffic, record.tester["engine"])
        record.interfaces = {name: interface_details(host, name) for name, host in sut.port_hosts.items()}
        speeds = [each["speed_bits_per_second"] for each in record.interfaces.values()]
        record.link_bits_per_second = min(speeds) if all(speeds) else None
        test.sut = sut

    def compare(self, identity: TestIdentity, claim: Claim) -> Finding:
        """Measure the chains of a claim beside each other, in a test of its own, and judge the claim.

        Unavailable, before anything is measured, when this testbed cannot offer one of the chains.
        """
        traffic = self._traffic(claim.frame)
        record = identity.record(claim.name, claim.frame.name, _way(traffic))
        test = self._begin(record, traffic)
        for chain in claim.chains:
            if chain.data_plane not in DATA_PLANES:
                raise Unavailable(f"this version of podperf has no data plane {chain.data_plane!r}")
            self.testbed.demand(chain)
        record.limits = self._limits_for(traffic, self.topology.tester.engine)
        described: dict[str, Mapping[str, Any]] = {}

        @contextmanager
        def standing(chain: Chain) -> Iterator[ValidTrials]:
            with self.testbed.build(chain, claim.frame) as sut:
                sut.probe(addressed(traffic, sut))
                if str(chain) not in described:
                    described[str(chain)] = sut.data_plane.describe()
                    record.data_plane, record.tester = described, sut.tester.describe()
                yield test.trials(sut, str(chain))

        result = Comparison().run({str(each): partial(standing, each) for each in claim.chains}, seed=randbits(32))
        record.methods = {"comparison": {"claim": claim.name, **result.as_record()}}
        finding = judge_claim(claim, [result.rates(str(each)) for each in claim.chains], result.noisy_trials)
        record.findings = [finding]
        return finding

    def _traffic(
        self, frame: FrameSize, directions: tuple[Direction, ...] | None = None, flows: int | None = None
    ) -> Traffic:
        usual = self.topology.traffic
        return Traffic(frame, directions or usual.directions, flows or usual.flows)

    def _begin(self, record: TestRecord, traffic: Traffic | None = None) -> TestInProgress:
        record.topology, record.traffic = self.topology, traffic
        if traffic is not None:
            record.placement, record.environment = self.placement, self.environment
            # What one test leaves of its patience is the next one's: the neighbours of a machine come and go.
            self._patience = Patience(self._patience.left + self.topology.method.patience)
        self._test = TestInProgress.begin(record, self.results, self.progress, self._quietness, self._patience)
        return self._test

    def _limits_for(self, traffic: Traffic, engine: Engine) -> TesterLimits:
        kind = _kind_of(traffic)
        if (kind, engine) not in self._limits:
            with self.testbed.bare_path(traffic.frame, engine) as bare:
                limits = self._limits[kind, engine] = calibrate(bare.tester, traffic)
            limit = Measured(limits.maximum_load, lower_bound=True)
            self._baselines[kind] = {"mrr": limit, "pdr": limit}
        return self._limits[kind, engine]

    def measure_mrr(self) -> MrrResult:
        """Maximum receive rate, as the topology asks for it."""
        settings = self.topology.method
        result = self._measure(Mrr(settings.mrr_trials, settings.mrr_trial_duration))
        assert isinstance(result, MrrResult)
        self.current.keep("mrr", of_mrr(result))
        return result

    def search_ndr_and_pdr(self) -> SearchResult:
        """NDR and PDR in one search, by the topology's preset, and latency at half the PDR."""
        result = self._measure(NdrPdr(preset(self.topology.method.search)))
        assert isinstance(result, SearchResult)
        goals: dict[Metric, str] = {"ndr": "NDR", "pdr": "PDR"}
        for metric, name in goals.items():
            goal = result.goal(name)
            measured = of_goal(goal) if goal else None
            if measured is not None:
                self.current.keep(metric, measured)
        return result

    def measure_latency(self) -> None:
        """Latency at half the PDR. PodperfError when there is no PDR to take half of."""
        record = self.current.record
        pdr = record.metrics.get("pdr")
        if pdr is None or pdr.upper_bound:
            raise PodperfError("latency is measured at half the PDR, and no PDR was found")
        result = self._measure(LatencyAtShare(pdr.value))
        assert isinstance(result, LatencyResult)
        if result.latency is not None:
            record.latency, record.latency_of = result.latency, result.statement
            self.current.keep("latency_p50", Measured(result.latency.percentile(50)))
            self.current.keep("latency_p99", Measured(result.latency.percentile(99)))

    def judge(self) -> Verdict:
        """The figures of this test against the testbed's thresholds."""
        record = self.current.record
        assert record.chain is not None and record.traffic is not None
        noise = total(self.current.noises)
        baseline = self._baselines.get(_kind_of(record.traffic))
        record.verdict = judge(
            self.topology.thresholds,
            record.chain,
            record.traffic.frame,
            record.metrics,
            baseline,
            noise=noise.reason if noise else None,
        )
        if record.chain.data_plane == Wire.name:  # measured at length, it is a better baseline than the calibration
            self._baselines[_kind_of(record.traffic)] = {**(baseline or {}), **record.metrics}
        return record.verdict

    def readable(self) -> str:
        """What the current test has found so far, as HTML for Robot Framework's log; empty when there is no trial."""
        return self._test.readable() if self._test is not None else ""

    def tear_down_chain(self) -> None:
        """Take the chain down. Safe to repeat."""
        if self._test is not None:
            self._test.take_down()

    def end_test(self, identity: TestIdentity, outcome: Outcome, reason: str = "") -> str:
        """Close the record, with how the test ended; returns its rates in a line. Without a chain it gets one, too."""
        test = self._test or self._begin(identity.record(identity.name))
        self._test = None
        return test.end(outcome, reason)

    def _measure(self, method: Method) -> MethodResult:
        test = self.current
        assert test.sut is not None
        result = method.run(test.trials(test.sut, method.name))
        test.record.methods = {**test.record.methods, method.name: result.as_record()}
        return result


def _kind_of(traffic: Traffic) -> TrafficKind:
    return traffic.frame, traffic.directions, traffic.flows


def _way(traffic: Traffic) -> str:
    """How the traffic differs from the usual, for the record's name."""
    words = ["both-ways"] if len(traffic.directions) > 1 else []
    return "-".join([*words, *([f"{traffic.flows}-flows"] if traffic.flows > 1 else [])])
