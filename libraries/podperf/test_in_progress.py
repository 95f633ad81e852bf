"""The test that runs now: its record as it fills, every trial on disk as it ends, and what is to be taken down."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial

from podperf.errors import PodperfError
from podperf.methods.trials import Patience, ValidTrials
from podperf.model import Traffic, TrialResult
from podperf.noise import Noise
from podperf.progress import Progress
from podperf.quietness.watch import Quietness
from podperf.records import NotWritten, Outcome, RecordWriter, TestRecord, record_id, sections_of
from podperf.report.fragment import embed_html
from podperf.report.results import verdict_word
from podperf.report.summary import figures_line
from podperf.testbed.system_under_test import SystemUnderTest, addressed
from podperf.testers.base import TesterLimits
from podperf.topology import Metric
from podperf.verdicts.thresholds import Measured


@dataclass(frozen=True)
class TestIdentity:
    """Which test this is, as Robot Framework knows it; `log` is its place in Robot's log, where one is written."""

    __test__ = False  # not a pytest class

    name: str
    suite: str
    tags: Sequence[str] = ()
    log: str | None = None

    def record(self, *words: str) -> TestRecord:
        """An empty record of this test; with the section, `words` say what it measures."""
        section = next(iter(sections_of(self.tags)), "")
        return TestRecord(record_id(section, *words), self.name, self.suite, self.tags, log=self.log)


@dataclass(frozen=True)
class Ended:
    """How a test ended, for those who watch the run and those who read its log.

    `verdict` is its word in the table, `figures` are those of the table in a line, `html` shows them with every trial.
    """

    verdict: str
    figures: str = ""
    html: str = ""
    problems: tuple[str, ...] = ()  # what went wrong at the end, in a sentence each
    lost: bool = False  # its record is not among those of the run


@dataclass
class TestInProgress:
    """What one test has built and found so far.

    `delivered_load` is that of `MrrResult`, without limit until MRR is measured.
    """

    __test__ = False

    record: TestRecord
    writer: RecordWriter
    progress: Progress
    quietness: Quietness
    patience: Patience
    undo: ExitStack = field(default_factory=ExitStack)
    sut: SystemUnderTest | None = None
    delivered_load: float = math.inf

    def trials(
        self, sut: SystemUnderTest, phase: str, traffic: Traffic | None = None, limits: TesterLimits | None = None
    ) -> ValidTrials:
        """Trials across this system under test, each written down when it ends as one of this phase.

        Without `traffic` and `limits` they are those of the record.
        """
        traffic, limits = traffic or self.record.traffic, limits or self.record.limits
        assert traffic is not None and limits is not None
        return ValidTrials(
            sut.tester,
            addressed(traffic, sut),
            limits,
            partial(self._trial_ended, sut, phase),
            self.quietness,
            self.patience,
            self.progress.waiting,
        )

    def _trial_ended(self, sut: SystemUnderTest, phase: str, result: TrialResult) -> None:
        self.writer.trial(result, phase)
        if result.invalid is None and result.noise is not None:
            self.note_noise(phase, result.noise)
        self.progress.trial(phase, result)
        sut.check()  # a trial across a chain of which a part is gone says nothing

    def note_noise(self, phase: str, noise: Noise) -> None:
        """What disturbed a trial that counts."""
        before = self.record.noises
        self.record.noises = {**before, phase: before[phase] + noise if phase in before else noise}

    def keep(self, metric: Metric, measured: Measured) -> None:
        """A figure that was found."""
        self.record.metrics = {**self.record.metrics, metric: measured}

    def take_down(self) -> None:
        """Undo what was set up, after a last look at what its processes have counted. Safe to repeat."""
        sut, self.sut = self.sut, None
        with self.undo:  # whatever the look brings
            if sut is not None and sut.counts:
                with suppress(PodperfError, OSError):  # one that is gone stays described as it was when it stood
                    sut.check()
                    self.record.data_plane = sut.describe()

    def end(self, outcome: Outcome, reason: str) -> Ended:
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
        document = record.to_json(self.writer.trials)
        lost = [each for each in problems if isinstance(each, NotWritten)]
        return Ended(
            # Without its record the table finds but the trials of the test, and they do not say that it has ended.
            verdict="interrupted" if lost else verdict_word(document),
            figures=figures_line(document),
            html=embed_html(document) if self.writer.trials else "",
            problems=tuple(map(str, problems)),
            lost=bool(lost),
        )
