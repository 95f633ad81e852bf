"""One run of the suites on one testbed. The keyword libraries share it. It uses nothing of Robot Framework."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.wire import Wire
from podperf.errors import PodperfError, Unavailable
from podperf.experiments.claim import Claim, Finding
from podperf.experiments.comparison import ComparisonOutcome, VariantComparison
from podperf.experiments.host_share import CLUSTER, FURTHER_TRIAL, ROUNDS, TRIAL, ClusterWay
from podperf.experiments.rounds import CLAIM_ROUNDS, DURATION, WARMUP
from podperf.frames import AddressFamily
from podperf.kubernetes.settings import pods_of_tester
from podperf.kubernetes.tester import CHANGE
from podperf.methods import METHODS
from podperf.methods.ndrpdr import NdrPdr
from podperf.methods.reconfiguration import trial_seconds
from podperf.model import AddressedTraffic, Chain, Direction, FrameSize, TrafficProfile
from podperf.printable import printable
from podperf.records import Outcome, RecordWriter, TestRecord, earlier_durations, record_files, topology_digest
from podperf.report.command import summary, write_reports
from podperf.run.contenders import Contenders
from podperf.run.experiment import VariantCosts, VariantRounds, measure_claim
from podperf.run.host_share import HostShareRounds
from podperf.run.measurement import Measurement, SharedByTests, set_up
from podperf.run.session import Session
from podperf.run.test import EndOfTest, TestIdentity, TestInProgress, chain_record, way
from podperf.testbed.testbed import Testbed
from podperf.topology import MethodSettings

# Seconds, as measured on a virtual machine with two CPUs.
CHAIN = 3.0  # to build a chain, to check that frames cross it, and to take it down
BETWEEN_TRIALS = 0.2
LATENCY = 1.5
CPU_TIME = 1.0
CHECK = 0.2  # a test without traffic
BUILDS_OF_COST = 6.0  # the number of times that a counted machine builds a chain
COUNTED_CHAIN = 6.0  # to build a chain on a counted machine
SEARCH = 0.5  # share of its preset's time limit that a search takes
BARE_SEARCH = 0.2  # the same share on the bare path, where the tester is the limit

_COMPARISONS = {"finding", "published"}
_CONTENDERS = 2  # the number of chains that most claims compare
_OF_RESOURCES = 4  # the number of chains that claims of section 4.2 compare


def usual_duration(
    tags: Collection[str], method: MethodSettings, data_planes: Collection[str], counted: bool = False
) -> float:
    """Seconds of a test with these tags. Without telling tags, the test is taken for one that measures everything.

    `counted`: on a counted machine.
    """
    if counted:
        return BUILDS_OF_COST * COUNTED_CHAIN if set(data_planes) & set(tags) else CHECK
    mrr = method.mrr_trials * (method.mrr_trial_duration + BETWEEN_TRIALS)
    share = BARE_SEARCH if Wire.name in tags else SEARCH
    wanted = NdrPdr.by(method).preset
    search = share * wanted.search_duration_max + LATENCY + CPU_TIME
    if "loss-free-share" in tags:
        search = 2 * ROUNDS * (CHAIN / 2 + share * wanted.search_duration_max)
    if _COMPARISONS & set(tags):
        each = CHAIN / 2 + DURATION + WARMUP + BETWEEN_TRIALS
        of_resources = any(tag.startswith("sec-4.2.") for tag in tags)
        return CLAIM_ROUNDS * (_OF_RESOURCES if of_resources else _CONTENDERS) * each
    if found := [each for name, each in METHODS.items() if name.replace("_", "-") in tags]:
        further = wanted.further
        if "cluster-reconfiguration" in tags:
            further = replace(further, reconfiguration_trial=trial_seconds(further, CHANGE))
        seconds = (each.usual_seconds(further, BETWEEN_TRIALS, CHAIN) + each.searches * search for each in found)
        return CHAIN + sum(seconds)
    if "ndrpdr" in tags or not any(tag.startswith(("sec-", "appendix-", "mrr")) for tag in tags):
        return CHAIN + mrr + search + method.patience
    if "mrr" in tags or set(data_planes) & set(tags):
        turns = TRIAL + WARMUP + 2 * FURTHER_TRIAL + 3 * BETWEEN_TRIALS
        return CHAIN + mrr + (2 * ROUNDS * turns if "cluster-share" in tags else 0.0)
    return CHECK


class Run:
    """The tests of a run, one after the other. One of them runs at a time. `close` writes the reports."""

    def __init__(self, session: Session, version_under_test: str | None = None) -> None:
        """`version_under_test` is the user's name for the measured version. The records have it."""
        self.session = session
        self.version_under_test = version_under_test or None
        self.progress = session.progress
        self.shared = SharedByTests(session)
        self._test: TestInProgress | None = None
        self._measurement: Measurement | None = None
        self._lost: list[str] = []  # messages about records that are missing in the results folder

    @property
    def current(self) -> TestInProgress:
        """The test that runs now."""
        if self._test is None:
            raise PodperfError("no chain is set up: call `Set Up Chain` first")
        return self._test

    @property
    def measurement(self) -> Measurement:
        """The measurement of the chain that is set up now."""
        if self._measurement is None:
            raise PodperfError("no chain is set up: call `Set Up Chain` first")
        return self._measurement

    def open(self) -> None:
        """Take the machines. See `Session.open`."""
        self.session.open()

    def close(self) -> str:
        """Give the machine back and write the reports. Returns the summary table and the paths of the reports."""
        said = [*_give_back(self.session), *(f"podperf: {printable(each)}" for each in self._lost)]
        return "\n\n".join([*_reports(self.session), *said])

    def plan(self, tests: Sequence[TestIdentity]) -> None:
        """Show how long the run may take. `tests` are all tests of the run, in their order."""
        self.progress.run_begins(_expected_seconds(self.session, tests))

    def begin_test(
        self,
        identity: TestIdentity,
        chain: Chain,
        frame: FrameSize,
        directions: tuple[Direction, ...] | None = None,
        flows: int | None = None,
        family: AddressFamily | None = None,
        vlan: int | None = None,
        pods: Mapping[str, Any] | None = None,
    ) -> None:
        """Open the record of a test, build its chain, and check that frames cross it.

        With `pods`, the tester's ports are other two pods, which differ in these settings. Pods of earlier tests are
        deleted.
        """
        traffic = self._traffic(frame, directions, flows, family, vlan)
        test = self._begin(chain_record(identity, self.session.topology, chain, traffic), traffic)
        testbed = self.session.equipment.testbed.with_pods(pods or {}, alone=True)
        self._measurement = set_up(test, chain, traffic, self.session, testbed, self.shared)

    def tear_down_chain(self) -> None:
        """Take the chain down. Safe to repeat."""
        self._measurement = None
        if self._test is not None:
            self._test.take_down()

    def end_test(self, identity: TestIdentity, outcome: Outcome, reason: str = "") -> EndOfTest:
        """Close the record with the test's outcome. A test without a chain gets a record, too."""
        test = self._test or self._begin(identity.record(identity.name))
        self._test = self._measurement = None
        if outcome == "skipped" and test.record.traffic is not None:  # a skipped test needs no patience
            self.shared.patience.withdraw(self.session.topology.method.patience)
        ended = test.end(outcome, reason)
        self._lost += ended.problems if ended.lost else ()
        return ended

    def compare(self, identity: TestIdentity, claim: Claim) -> Finding:
        """Measure the contenders of a claim by turns, in a separate test, and judge the claim.

        Raises Unavailable before any measurement if the testbed cannot set a contender up.
        """
        traffics = {
            contender.name: self._traffic(contender.frame, flows=contender.flows) for contender in claim.contenders
        }
        frames = "-".join(dict.fromkeys(contender.frame.name for contender in claim.contenders))
        usual = traffics[claim.contenders[0].name]
        test = self._begin(identity.record(claim.name, frames, way(usual)), usual)
        contenders = Contenders(test, self.session.equipment, traffics, self.shared.limits)
        return measure_claim(claim, contenders, self.session.topology.method)

    def compare_variants(self, identity: TestIdentity, comparison: VariantComparison) -> ComparisonOutcome:
        """Measure the variants of a comparison in a separate test: by turns, or on a counted machine each in this boot.

        Raises Unavailable before any measurement if the testbed cannot set a variant up.
        """
        if comparison.machines_of_their_own:
            raise Unavailable(
                f"variants have topologies of their own: ./podperf compare {comparison.path} measures them"
            )
        if self.session.topology.counts_instructions:
            return self.begin_costs(identity, comparison).measure()
        return self.begin_rounds(identity, comparison).measure()

    def measure_host_share(self, identity: TestIdentity, way: ClusterWay) -> ComparisonOutcome:
        """Measure pods of a cluster, by turns with pods in the networks of the same nodes.

        The shares are figures of the record. Pods of earlier tests are deleted.

        Raises Unavailable before any measurement if the cluster has no such pods, or allows none.
        """
        topology, testbed = self.session.topology, self.session.equipment.testbed
        traffic = self._traffic(way.frame, None, way.flows, way.family)
        test = self._begin(chain_record(identity, topology, CLUSTER, traffic), traffic)
        settings = pods_of_tester(topology)
        if settings is None:
            raise Unavailable(f"a share of the nodes' own network needs a cluster, and {topology.path} names none")
        host = settings.for_row(2, host_network=True)
        pods = testbed.with_pods(host, alone=True).tester_with_ports().describe()["pods"].values()
        nodes = [pod["node"] for pod in pods][: settings.varied(way.pods).nodes]
        comparison = way.beside_host(host, nodes)
        return HostShareRounds(
            test, comparison, traffic, self.session, self.shared, further=way.further
        ).measure_share()

    def begin_rounds(self, identity: TestIdentity, comparison: VariantComparison) -> VariantRounds:
        """Open the record of a test that measures variants by turns."""
        return VariantRounds(*self._begin_variants(identity, comparison), self.session, self.shared)

    def begin_costs(self, identity: TestIdentity, comparison: VariantComparison, *words: str) -> VariantCosts:
        """Open the record of a test of variants on a counted machine. `words` are parts of the record's name."""
        return VariantCosts(*self._begin_variants(identity, comparison, *words), self.session, self.shared)

    def _begin_variants(
        self, identity: TestIdentity, comparison: VariantComparison, *words: str
    ) -> tuple[TestInProgress, VariantComparison, TrafficProfile]:
        traffic = self._traffic(comparison.frame, comparison.directions, comparison.flows)
        record = identity.record(comparison.name, *words, traffic.frame.name, way(traffic))
        return self._begin(record, traffic), comparison, traffic

    def _traffic(
        self,
        frame: FrameSize,
        directions: tuple[Direction, ...] | None = None,
        flows: int | None = None,
        family: AddressFamily | None = None,
        vlan: int | None = None,
    ) -> TrafficProfile:
        try:
            return self.session.topology.traffic.profile(frame, directions, flows, family, vlan)
        except ValueError as error:
            raise PodperfError(str(error)) from error

    def _begin(self, record: TestRecord, traffic: TrafficProfile | None = None) -> TestInProgress:
        if self._test is not None:
            raise PodperfError("this test has measured already, and its record is of that: give each chain a test")
        if traffic is not None:
            self.session.take_lost_machines_again()
        equipment, topology = self.session.equipment, self.session.topology
        record.topology, record.environment = topology, equipment.environment
        record.version_under_test = self.version_under_test
        if traffic is not None:
            record.traffic, record.placement = AddressedTraffic(traffic), equipment.placement
            workers = record.chain.workers if record.chain else 1
            record.environment = equipment.environment_for(len(traffic.directions), workers)
        self.shared.patience.grant(0.0 if traffic is None else topology.method.patience)
        writer = RecordWriter(self.session.results / "records", record)  # with the facts that are known now
        self._test = TestInProgress(record, writer, self.progress, equipment.quietness, self.shared.patience)
        return self._test


def _give_back(session: Session) -> list[str]:
    """Give the machines back. Returns a message if that fails."""
    try:
        session.close()
    except Exception as error:  # Robot Framework makes an exception of a signal, too: the reports are still due
        return [f"podperf: {printable(str(error))}; once: sudo ./podperf clean {session.topology.path}"]
    return []


def _reports(session: Session) -> list[str]:
    """Write the reports. Returns the summary table and their paths."""
    results = session.results
    if not record_files(results / "records"):
        return ["there is no record, so there is nothing to report"]
    try:
        report = f"Conformance: {write_reports(results)}"
    except PodperfError as error:
        report = f"podperf: {error}"
    return [summary(results, session.progress.stream), report]


def _expected_seconds(session: Session, tests: Sequence[TestIdentity]) -> list[float]:
    """The expected seconds of each test, in the order of `tests`. A test that the testbed must skip takes none."""
    topology, testbed = session.topology, session.equipment.testbed
    earlier = earlier_durations(session.results, topology_digest(topology))
    offered = {
        data_plane: _offers(testbed, data_plane)
        for data_plane in DATA_PLANES
        if any(data_plane in test.tags for test in tests)
    }

    def expected(test: TestIdentity) -> float:
        planes = [each for each in offered if each in test.tags]
        if not all(offered[plane] for plane in planes):
            return 0.0
        return earlier.get(test.name, usual_duration(test.tags, topology.method, planes, topology.counts_instructions))

    return [expected(each) for each in tests]


def _offers(testbed: Testbed, data_plane: str) -> bool:
    """Whether the testbed can run the data plane. A test may need more than this, and checks it when it runs."""
    with suppress(PodperfError):
        testbed.demand(Chain(data_plane, DATA_PLANES[data_plane].least_pods))
        return True
    return False
