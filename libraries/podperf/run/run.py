"""One run of the suites on one testbed. The keyword libraries share it. It uses nothing of Robot Framework."""

from __future__ import annotations

from collections.abc import Sequence

from podperf.comparisons import Comparison
from podperf.comparisons.result import ComparisonResult
from podperf.errors import PodperfError, Unavailable
from podperf.model import Chain, Direction, FrameSize, TrafficProfile
from podperf.printable import printable
from podperf.records import Outcome, RecordWriter, TestRecord
from podperf.report.command import summary, write_reports
from podperf.run.comparison import compare
from podperf.run.ended import Ended
from podperf.run.expected import expected_seconds
from podperf.run.identity import TestIdentity, chain_record, way
from podperf.run.kept import Kept
from podperf.run.measurement import Measurement
from podperf.run.session import Session
from podperf.run.set_up import set_up
from podperf.run.test_in_progress import TestInProgress
from podperf.run.variants import VariantsTest, exact_result
from podperf.verdicts.findings import Finding, Order


class Run:
    """The tests of a run, one after the other. `close` writes the reports."""

    def __init__(self, session: Session, version_under_test: str | None = None) -> None:
        """`version_under_test` is the user's name of what is measured, for the records."""
        self.session = session
        self.version_under_test = version_under_test or None
        self.progress = session.progress
        self.kept = Kept(session)
        self._test: TestInProgress | None = None
        self._measurement: Measurement | None = None
        self._lost: list[str] = []  # messages about records that are missing in the results folder

    def open(self) -> None:
        """Take the machines. See `Session.open`."""
        self.session.open()

    def close(self) -> str:
        """Give the machine back and write the reports. Returns the summary table and the paths of the reports."""
        said = []
        try:
            self.session.close()
        except Exception as error:  # Robot Framework makes an exception of a signal, too: the reports are still due
            said.append(f"podperf: {printable(str(error))}; once: sudo ./podperf clean {self.session.topology.path}")
        said += [f"podperf: {printable(each)}" for each in self._lost]
        return "\n\n".join([*self._reports(), *said])

    def _reports(self) -> list[str]:
        results = self.session.results
        if not any((results / "records").glob("*")):
            return ["no test was measured, so there is nothing to report"]
        try:
            report = f"Conformance: {write_reports(results)}"
        except PodperfError as error:
            report = f"podperf: {error}"
        return [summary(results, self.progress.stream), report]

    def plan(self, tests: Sequence[TestIdentity]) -> None:
        """Show how long the run may take. `tests` are all tests of the run, in their order."""
        self.progress.run_begins(expected_seconds(self.session, tests))

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

    def begin_test(
        self,
        identity: TestIdentity,
        chain: Chain,
        frame: FrameSize,
        directions: tuple[Direction, ...] | None = None,
        flows: int | None = None,
    ) -> None:
        """Open the record of a test, build its chain, and check that frames cross it."""
        traffic = self._traffic(frame, directions, flows)
        test = self._begin(chain_record(identity, self.session.topology, chain, traffic), traffic)
        self._measurement = set_up(test, chain, traffic, self.session, self.kept)

    def compare(self, identity: TestIdentity, order: Order) -> Finding:
        """Measure the contenders of an order by turns, in a separate test, and judge the order.

        Raises Unavailable before any measurement if the testbed cannot set a contender up.
        """
        traffics = {str(each): self._traffic(each.frame) for each in order.contenders}
        frames = "-".join(dict.fromkeys(each.frame.name for each in order.contenders))
        usual = traffics[str(order.contenders[0])]
        test = self._begin(identity.record(order.name, frames, way(usual)), usual)
        return compare(test, order, traffics, self.session.equipment, self.kept.limits)

    def compare_variants(self, identity: TestIdentity, comparison: Comparison) -> ComparisonResult:
        """Measure the variants of a comparison in a separate test: by turns, or on a counted machine each in this boot.

        Raises Unavailable before any measurement if the testbed cannot set a variant up.
        """
        if comparison.machines_of_their_own:
            raise Unavailable(
                f"variants have topologies of their own: ./podperf compare {comparison.path} measures them"
            )
        test = self.begin_comparison(identity, comparison)
        if not self.session.topology.counts_instructions:
            return test.in_rounds()
        result = exact_result(comparison, [test.figure_of(each) for each in comparison.variants], test.started)
        test.test.record.methods = {**test.test.record.methods, "variants": result.to_json()}
        return result

    def begin_comparison(self, identity: TestIdentity, comparison: Comparison, *words: str) -> VariantsTest:
        """Open the record of a test of variants. `words` are parts of the record's name."""
        traffic = self._traffic(comparison.frame, comparison.directions, comparison.flows)
        record = identity.record(comparison.name, *words, traffic.frame.name, way(traffic))
        return VariantsTest(self._begin(record, traffic), comparison, traffic, self.session, self.kept)

    def tear_down_chain(self) -> None:
        """Take the chain down. Safe to repeat."""
        self._measurement = None
        if self._test is not None:
            self._test.take_down()

    def end_test(self, identity: TestIdentity, outcome: Outcome, reason: str = "") -> Ended:
        """Close the record with the test's outcome. A test without a chain gets a record, too."""
        test = self._test or self._begin(identity.record(identity.name))
        self._test = self._measurement = None
        if outcome == "skipped" and test.record.traffic is not None:  # a skipped test needs no patience
            self.kept.patience.withdraw(self.session.topology.method.patience)
        ended = test.end(outcome, reason)
        self._lost += ended.problems if ended.lost else ()
        return ended

    def _traffic(
        self, frame: FrameSize, directions: tuple[Direction, ...] | None = None, flows: int | None = None
    ) -> TrafficProfile:
        usual = self.session.topology.traffic
        try:
            return TrafficProfile(frame, directions or usual.directions, usual.flows if flows is None else flows)
        except ValueError as error:
            raise PodperfError(str(error)) from error

    def _begin(self, record: TestRecord, traffic: TrafficProfile | None = None) -> TestInProgress:
        if self._test is not None:
            raise PodperfError("this test has measured already, and its record is of that: give each chain a test")
        if traffic is not None:
            self.session.take_lost_machines_again()
        equipment, topology = self.session.equipment, self.session.topology
        record.topology, record.traffic, record.environment = topology, traffic, equipment.environment
        record.version_under_test = self.version_under_test
        if traffic is not None:
            record.placement = equipment.placement
            record.environment = equipment.environment_for(len(traffic.directions))
        self.kept.patience.grant(0.0 if traffic is None else topology.method.patience)
        writer = RecordWriter(self.session.results / "records", record)  # with the facts that are known now
        self._test = TestInProgress(record, writer, self.progress, equipment.quietness, self.kept.patience)
        return self._test
