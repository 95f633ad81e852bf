"""The tests of a run, of which one runs at a time: each is begun, and ends with its record."""

from __future__ import annotations

from podperf.errors import PodperfError
from podperf.model import Direction, FrameSize, TrafficProfile
from podperf.printable import printable
from podperf.records import Outcome, RecordWriter, TestRecord
from podperf.run.ended import Ended
from podperf.run.identity import TestIdentity
from podperf.run.kept import Kept
from podperf.run.measurement import Measurement
from podperf.run.session import Session
from podperf.run.test_in_progress import TestInProgress


class TestSequence:
    """The test that runs now, if any, and the values that it leaves to the next one."""

    __test__ = False  # not a pytest class

    def __init__(self, session: Session, version_under_test: str | None = None) -> None:
        """`version_under_test` is the user's name for the measured version. The records have it."""
        self.session = session
        self.version_under_test = version_under_test or None
        self.progress = session.progress
        self.kept = Kept(session)
        self._test: TestInProgress | None = None
        self._measurement: Measurement | None = None
        self._lost: list[str] = []  # messages about records that are missing in the results folder

    @property
    def lost(self) -> list[str]:
        """Messages about records that are missing in the results folder."""
        return [f"podperf: {printable(each)}" for each in self._lost]

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
            workers = record.chain.workers if record.chain else 1
            record.environment = equipment.environment_for(len(traffic.directions), workers)
        self.kept.patience.grant(0.0 if traffic is None else topology.method.patience)
        writer = RecordWriter(self.session.results / "records", record)  # with the facts that are known now
        self._test = TestInProgress(record, writer, self.progress, equipment.quietness, self.kept.patience)
        return self._test
