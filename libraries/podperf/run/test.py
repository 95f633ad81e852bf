"""The test that runs now: its identity, its record with trials and figures, the undo steps of its set-up, its end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Self

from podperf.dataplanes import DATA_PLANES, with_forwarder
from podperf.errors import PodperfError
from podperf.figures import count
from podperf.kernel.thread_time import ThreadClock
from podperf.methods.trials import Patience, ValidTrials
from podperf.metrics import METRICS, Metrics
from podperf.model import CABLE, AddressedTraffic, Chain, TrafficProfile, TrialResult
from podperf.noise import Noise
from podperf.progress import Progress
from podperf.quietness.watch import Quietness
from podperf.records import Figures, NotWritten, Outcome, Record, RecordWriter, TestRecord, record_id, sections_of
from podperf.report.record_view import embed_html
from podperf.report.results import verdict_word
from podperf.report.summary import figures_line
from podperf.testbed.system_under_test import SystemUnderTest
from podperf.testers.base import TesterLimits
from podperf.thresholds import applicable
from podperf.topology import Topology


@dataclass(frozen=True)
class TestIdentity:
    """A test as Robot Framework knows it. `log` is its place in Robot's log, or None without a log."""

    __test__ = False  # not a pytest class

    name: str
    suite: str
    tags: Sequence[str] = ()
    log: str | None = None

    def record(self, *words: str) -> TestRecord:
        """An empty record of this test. The section and `words` make the record's name."""
        section = next(iter(sections_of(self.tags)), "")
        return TestRecord(record_id(section, *words), self.name, self.suite, self.tags, log=self.log)


def chain_record(identity: TestIdentity, topology: Topology, chain: Chain, traffic: TrafficProfile) -> TestRecord:
    """The record of a test before its set-up: the requested chain, and its thresholds."""
    inside = chain.forwarder or ""
    where = count(chain.workers, "worker") if chain.workers > 1 else ""
    where += f"-{chain.join}" if chain.join != CABLE else ""
    ends = str(chain.ends) if chain.ends.in_pods else ""
    words = (chain.data_plane, count(chain.pods, "pod"), where, ends, inside, traffic.frame.name, way(traffic))
    record, kind = identity.record(*words), DATA_PLANES.get(chain.data_plane)
    record.model = kind.model if kind else None
    record.chain = with_forwarder(chain)
    record.thresholds = applicable(topology.thresholds, chain, traffic.frame)
    return record


def way(traffic: TrafficProfile) -> str:
    """The difference of the traffic from the usual one, for the record's name."""
    words = ["both-ways"] if len(traffic.directions) > 1 else []
    words += [f"{traffic.flows}-flows"] if traffic.flows > 1 else []
    return "-".join([*words, *re.findall(r"\w+", traffic.headers.words)])


@dataclass(frozen=True)
class EndOfTest:
    """The end of a test, for the console and for Robot's log: the word in the table, the row's figures in a line, and
    all trials."""

    verdict: str
    figures: str = ""
    html: str = ""
    problems: tuple[str, ...] = ()  # errors at the end of the test, a sentence each
    lost: bool = False  # whether the record is missing in the run's folder

    @classmethod
    def of(cls, record: Record, problems: Sequence[PodperfError]) -> Self:
        """The end of the test with this record, and the problems that came after it."""
        lost = any(isinstance(problem, NotWritten) for problem in problems)
        return cls(
            # Without the record, the table has only the trials of the test, which do not show that the test has ended.
            verdict="interrupted" if lost else verdict_word(record),
            figures=figures_line(record),
            html=embed_html(record) if record.trials else "",
            problems=tuple(map(str, problems)),
            lost=lost,
        )


@dataclass
class TestInProgress:
    """The set-up and the figures of one test so far."""

    __test__ = False

    record: TestRecord
    writer: RecordWriter
    progress: Progress
    quietness: Quietness | None
    patience: Patience
    undo: ExitStack = field(default_factory=ExitStack)
    phase: str = ""  # of its trials; empty: the names of their methods
    apart: Figures | None = None  # takes the figures of this measurement; None: the record of the test does

    @property
    def figures(self) -> Figures:
        """The figures so far."""
        return self.record if self.apart is None else self.apart

    def trials(
        self,
        sut: SystemUnderTest,
        phase: str,
        traffic: AddressedTraffic,
        limits: TesterLimits,
        clock: ThreadClock | None = None,
        train: int = 1,
        round_trip: bool = False,
    ) -> ValidTrials:
        """Trials of this phase across this system under test. Each one is recorded when it ends.

        With `clock`, each trial has the CPU time that the clock reads around it. `train` frames leave together.
        With `round_trip`, the far end sends each frame back.
        """
        return ValidTrials(
            sut.tester,
            traffic,
            limits,
            partial(self.trial_ended, sut, self.phase or phase),
            self.quietness,
            self.patience,
            self.progress.waiting,
            clock,
            train,
            round_trip,
        )

    def trial_ended(self, sut: SystemUnderTest, phase: str, result: TrialResult) -> None:
        """Write a trial down, and show it. PodperfError when a part of the chain is gone."""
        self.writer.trial(result, phase)
        if result.invalid is None and result.noise is not None:
            self.note_noise(phase, result.noise)
        self.progress.trial(phase, result)
        sut.check()  # a trial across a chain with a dead part is worthless

    def note_noise(self, phase: str, noise: Noise) -> None:
        """Add the noise around a valid trial to the noise of its phase."""
        before = self.figures.noises
        self.figures.noises = {**before, phase: before[phase] + noise if phase in before else noise}

    def keep(self, metrics: Metrics) -> None:
        """Keep these figures. The trials that decided them have ended, and their noise is known."""
        found = self.figures
        noisy = {name: each.on_noisy_machine() for name, each in metrics.items() if found.noisy(METRICS[name])}
        found.metrics = {**found.metrics, **metrics, **noisy}

    def take_down(self) -> None:
        """Undo the set-up. Safe to repeat."""
        self.undo.close()

    def end(self, outcome: Outcome, reason: str) -> EndOfTest:
        """Close the record, with how the test ended."""
        record, problems = self.record, []
        try:
            self.take_down()
        except PodperfError as error:
            problems.append(error)
        finally:
            record.outcome, record.reason, record.waited = outcome, reason, self.patience.spent
            try:
                self.writer.finish(record)
            except PodperfError as error:
                problems.append(error)
        return EndOfTest.of(Record.of(record.to_json(self.writer.trials)), problems)
