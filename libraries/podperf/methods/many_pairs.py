"""Many pairs: the rate of each of several pairs of ports that send at the same time, their sum, and their fairness.

The number of pairs doubles until the sum no longer grows. Each pair sends as fast as it can, as for MRR. If the
topology names the highest load of a trial, all pairs share it. Fairness is Jain's index (DEC-TR-301, 1984).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from podperf.errors import PodperfError
from podperf.experiments.service_density import fairness_of
from podperf.figures import count, kpps, milliseconds, number, percent, short
from podperf.methods.base import MeasuredChain, MethodTable
from podperf.methods.presets import FurtherSettings
from podperf.methods.trials import ignore
from podperf.metrics import Measured, Metrics
from podperf.model import AddressedTraffic, Trial, TrialResult
from podperf.testers.base import UNPACED, Pairs

NAME = "many_pairs"
SOURCE = "fairness: Jain's index, DEC-TR-301"
GROWTH = 0.05  # the sum grows if it is larger by more than this share than each earlier one
MOST_APART, ATTEMPTS = 0.5, 3  # of a trial, between the first and the last start; trials with later starts
PATIENCE = 2  # steps in a row without growth, after which the ramp ends
HEADS = (
    *("Pairs", "Sum, kpps", "Sums of all trials, kpps", "Smallest pair, kpps", "Largest pair, kpps"),
    *("Fairness", "Starts apart"),
)
HOW_TO_READ = (
    "Each pair sends from its left pod to its right one{load}. Jain's index is 1 if all pairs have the "
    "same rate, and 1/n if one of n pairs has everything. The pods share the CPUs of their nodes with the network: the "
    "sum is what both carry together."
)


@dataclass(frozen=True)
class PairsAtOnce:
    """One trial: the results of pairs that sent at the same time."""

    pairs: Sequence[TrialResult]

    @property
    def rates(self) -> list[float]:
        """Frames of each pair that arrived, per second of the trial. A sender may have a CPU for a part of it only."""
        return [each.received / max(each.duration, each.trial.duration) for each in self.pairs]

    @property
    def apart(self) -> float:
        """Seconds between the first and the last start."""
        began = [each.started for each in self.pairs]
        return max(began) - min(began)

    @property
    def total(self) -> float:
        return sum(self.rates)

    def as_record(self) -> Mapping[str, Any]:
        return {
            "pairs": len(self.pairs),
            "sum": self.total,
            "smallest": min(self.rates),
            "largest": max(self.rates),
            "fairness": fairness_of(self.rates),
            "apart": self.apart,
            "own_drops": sum(each.own_drops for each in self.pairs),
            "of_pairs": [
                {"sent": each.sent, "received": each.received, "seconds": each.duration, "rate": rate}
                for each, rate in zip(self.pairs, self.rates, strict=True)
            ],
        }


@dataclass(frozen=True)
class PairsStep:
    """The trials with one number of pairs."""

    trials: Sequence[PairsAtOnce]

    @property
    def median(self) -> PairsAtOnce:
        """The trial whose sum is the median."""
        return sorted(self.trials, key=lambda each: each.total)[len(self.trials) // 2]

    def as_record(self) -> Mapping[str, Any]:
        """The trial of the median, and the sums of all."""
        return {**self.median.as_record(), "sums": [each.total for each in self.trials]}


@dataclass(frozen=True)
class ManyPairsResult:
    """The steps of the ramp. `end` says why there are no more."""

    steps: Sequence[PairsStep]
    seconds: float  # of a trial
    end: str
    load: float | None = None  # of all pairs together, in frames/s; None: as fast as they can
    incomplete: str = ""  # why the next step gave no result, if this ended the ramp

    @property
    def best(self) -> PairsStep:
        """The step with the largest sum."""
        return max(self.steps, key=lambda each: each.median.total)

    @property
    def metrics(self) -> Metrics:
        sums = [each.total for each in self.best.trials]
        return {"pairs_rate": Measured(self.best.median.total, min(sums), max(sums))}

    @property
    def said(self) -> Sequence[str]:
        rows = (_row(each.as_record()) for each in self.steps)
        words = [
            f"{row[0]} pairs: {row[1]} kpps, smallest {row[3]}, largest {row[4]}, fairness {row[5]}" for row in rows
        ]
        return [*words, self.end]

    def as_record(self) -> Mapping[str, Any]:
        """Each step with the counts of each pair."""
        return {
            "method": NAME,
            "source": SOURCE,
            "steps": [each.as_record() for each in self.steps],
            "trials": len(self.steps[0].trials),
            "seconds": self.seconds,
            "load": self.load,
            "end": self.end,
            "incomplete": self.incomplete,
            "growth": GROWTH,
        }


@dataclass(frozen=True)
class ManyPairs:
    """`trials` trials of `seconds` seconds with each number of pairs. The ramp begins with `first` pairs, and goes on
    `to_the_end` or while the sum grows."""

    trials: int
    seconds: float
    first: int
    to_the_end: bool
    name: ClassVar[str] = NAME
    searches: ClassVar[bool] = False

    @classmethod
    def on(
        cls, chain: MeasuredChain, amount: float | None = None, *, first: int = 1, to_the_end: bool = False
    ) -> ManyPairsResult:
        """See FurtherMethod. `amount`: the largest number of pairs."""
        limits = chain.known_limits()
        settings = chain.further_settings
        most = settings.most_pairs if amount is None else round(amount)
        if not 1 <= first <= most:
            raise PodperfError(f"the ramp of pairs begins with 1 to {most} of them, not with {first}")
        load = limits.maximum_load if limits.held else None
        with chain.sut.tester.facts.pairs(chain.tell) as pairs:
            method = cls(settings.pairs_trials, settings.pairs_trial, first, to_the_end)
            return method.run(pairs, chain.traffic, most, load, chain.tell)

    @staticmethod
    def usual_seconds(settings: FurtherSettings, between: float, set_up: float) -> float:
        steps = len(list(ramp(1, settings.most_pairs)))
        return settings.most_pairs * set_up + steps * settings.pairs_trials * (settings.pairs_trial + between)

    @staticmethod
    def table(found: Mapping[str, Any]) -> MethodTable:
        rows = [_row(each) for each in found["steps"]]
        load = " as fast as it can" if found["load"] is None else f", and all together send {kpps(found['load'])} kpps"
        trials = count(found["trials"], "trial")
        words = (
            f"{HOW_TO_READ.format(load=load)} A row is the trial whose sum is the median of {trials} of "
            f"{number(found['seconds'])} s. {found['end']}"
        )
        if lost := sum(each["own_drops"] for each in found["steps"]):
            words += f" The counting pods themselves lost {count(lost, 'frame')}, as they had no CPU time for them."
        return MethodTable(f"Many pairs at once ({found['source']})", rows, HEADS, words, numbers=0)

    def run(
        self,
        pairs: Pairs,
        traffic: AddressedTraffic,
        most: int,
        load: float | None = None,
        tell: Callable[[str], None] = ignore,
    ) -> ManyPairsResult:
        """Measure. All pairs together have this load in frames/s. None: as fast as they can.

        If a step fails, for example because further pods do not start, the result is that of the steps before.
        """
        steps: list[PairsStep] = []
        incomplete = ""
        for number_of_pairs in ramp(self.first, most):
            trial = Trial(traffic, UNPACED if load is None else load / number_of_pairs, self.seconds)
            measured: list[PairsAtOnce] = []
            try:
                for _ in range(self.trials):
                    measured.append(at_once(pairs, trial, number_of_pairs))
                    tell(f"{count(number_of_pairs, 'pair')}: {kpps(measured[-1].total)} kpps")
            except PodperfError as error:
                if not steps:
                    raise
                incomplete = f"{count(number_of_pairs, 'pair')} gave no result: {error}"
                end = f"The ramp ends early: {incomplete}"
                break
            steps.append(PairsStep(measured))
            if not self.to_the_end and not grows([each.median.total for each in steps]):
                end = f"The ramp ends where the sum did not grow by more than {percent(GROWTH)} in {PATIENCE} steps."
                break
        else:
            end = f"The ramp ends with the {most} pairs of this row."
        return ManyPairsResult(steps, self.seconds, end, load, incomplete)


def at_once(pairs: Pairs, trial: Trial, number: int) -> PairsAtOnce:
    """One trial. PodperfError if the pairs do not send at the same time in any of ATTEMPTS trials."""
    for _ in range(ATTEMPTS):
        found = PairsAtOnce(pairs.measure(trial, number))
        if found.apart <= MOST_APART * trial.duration:
            return found
    raise PodperfError(
        f"the pairs did not send at the same time, their starts were {short(found.apart)} s apart: their nodes "
        "have too little CPU time for so many senders"
    )


def ramp(first: int, most: int) -> Iterator[int]:
    """The numbers of pairs: each twice the one before, and the largest one at the end."""
    while first < most:
        yield first
        first *= 2
    yield most


def grows(sums: Sequence[float]) -> bool:
    """Whether one of the last PATIENCE sums is larger than all before it."""
    if len(sums) <= PATIENCE:
        return True
    return max(sums[-PATIENCE:]) > (1 + GROWTH) * max(sums[:-PATIENCE])


def _row(step: Mapping[str, Any]) -> tuple[str, ...]:
    sums = step["sums"]
    return (
        str(step["pairs"]),
        kpps(step["sum"]),
        f"{kpps(min(sums))} to {kpps(max(sums))}",
        kpps(step["smallest"]),
        kpps(step["largest"]),
        short(step["fairness"]),
        milliseconds(step["apart"]),
    )
