"""The test that runs now: its record, its trials on the disk, and the undo steps of its set-up."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

from podperf.errors import PodperfError
from podperf.methods.trials import CpuClock, Patience, ValidTrials
from podperf.metrics import Metrics
from podperf.model import TrafficProfile, TrialResult
from podperf.noise import Noise
from podperf.progress import Progress
from podperf.quietness.watch import Quietness
from podperf.records import Outcome, RecordWriter, TestRecord
from podperf.run.ended import Ended
from podperf.testbed.system_under_test import SystemUnderTest, addressed
from podperf.testers.base import TesterLimits


@dataclass
class TestInProgress:
    """The set-up and the figures of one test so far."""

    __test__ = False

    record: TestRecord
    writer: RecordWriter
    progress: Progress
    quietness: Quietness
    patience: Patience
    undo: ExitStack = field(default_factory=ExitStack)
    phase: str = ""  # of its trials; empty: the names of their methods

    def trials(
        self,
        sut: SystemUnderTest,
        phase: str,
        traffic: TrafficProfile,
        limits: TesterLimits,
        clock: CpuClock | None = None,
        train: int = 1,
    ) -> ValidTrials:
        """Trials of this phase across this system under test. Each trial is recorded when it ends.

        With `clock`, each trial has the CPU time that the clock reads around it. `train` frames leave together.
        """
        return ValidTrials(
            sut.tester,
            addressed(traffic, sut),
            limits,
            partial(self.trial_ended, sut, self.phase or phase),
            self.quietness,
            self.patience,
            self.progress.waiting,
            clock,
            train,
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
        before = self.record.noises
        self.record.noises = {**before, phase: before[phase] + noise if phase in before else noise}

    def keep(self, metrics: Metrics) -> None:
        """Keep these figures in the record."""
        self.record.metrics = {**self.record.metrics, **metrics}

    def take_down(self) -> None:
        """Undo the set-up. Safe to repeat."""
        self.undo.close()

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
        return Ended.of(record.to_json(self.writer.trials), problems)
