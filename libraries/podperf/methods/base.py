"""The method seam: a method asks for trials and turns them into a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

from podperf.methods.presets import FurtherSettings
from podperf.methods.trials import ChangedTrial
from podperf.metrics import Measured, Metrics
from podperf.model import AddressedTraffic, Direction, DirectionResult, Overload, TrialResult
from podperf.testbed.system_under_test import SystemUnderTest
from podperf.testers.base import Ability, TesterLimits, TrialSource


def loss_ratios(trials: Sequence[TrialResult]) -> Mapping[Direction, float]:
    """Lost over sent in all these trials, by direction."""
    ways = zip(*(trial.directions for trial in trials), strict=True)
    return {way[0].direction: sum(each.lost for each in way) / max(1, sum(each.sent for each in way)) for way in ways}


def time_to_last_lost(direction: DirectionResult, before: float, load: float) -> float:
    """Seconds to the last lost frame from the moment when `before` frames were due, at this `load` after that moment.

    0 if no frame was lost after this moment. Exact to one gap between frames.
    """
    if direction.last_lost is None or not direction.lost:
        return 0.0
    return max(0.0, direction.last_lost + 1 - before) / load


def judged_by(directions: int) -> Mapping[str, str]:
    """For a record: the direction that a figure describes. Empty if trials have one direction."""
    return {"judged_by": "the worse direction"} if directions > 1 else {}


class MethodResult(Protocol):
    """The result of a method."""

    @property
    def metrics(self) -> Metrics:
        """The figures of the result, by their names in `podperf.metrics.METRICS`."""

    def as_record(self) -> Mapping[str, Any]:
        """The result in JSON types for the record: values, bounds, and all parameters of the method."""


Result_co = TypeVar("Result_co", bound=MethodResult, covariant=True)


class Method(Protocol[Result_co]):
    """One way of measuring, with its parameters fixed."""

    @property
    def name(self) -> str:
        """The name of the method in records and on the screen."""

    def run(self, source: TrialSource) -> Result_co:
        """Measure. Raises PodperfError if there is no trustworthy result."""


class ChainSource(TrialSource, Protocol):
    """The source of trials across the chain of a test. It also sends bursts, overloads before a trial, and while
    something changes."""

    def burst(self, frames: int) -> TrialResult:
        """One valid trial of this number of frames in each direction, as fast as the tester can send."""

    def after_overload(self, overload: Overload, load: float, duration: float) -> TrialResult:
        """One valid trial of `duration` seconds at this load, with the overload before it."""

    def during(self, make: Callable[[ExitStack], None], load: float, duration: float) -> ChangedTrial:
        """One valid trial of `duration` seconds at this load. In its middle `make` changes something, until the end."""


@dataclass(frozen=True)
class StandingInstance:
    """A chain that is set up. `seconds` is the time from the begin of its set-up until frames crossed it."""

    source: TrialSource
    seconds: float


class MeasuredChain(Protocol):
    """The chain of a running test, as a method beside MRR and the search sees it."""

    sut: SystemUnderTest
    traffic: AddressedTraffic

    @property
    def further_settings(self) -> FurtherSettings:
        """The settings by the topology's preset."""

    @property
    def metrics(self) -> Metrics:
        """The figures that the test has so far."""

    def known_limits(self) -> TesterLimits:
        """The tester's limits. Raises Unavailable on a counted machine, where no rate is measured."""

    def demand(self, ability: Ability) -> None:
        """Raises Unavailable if the tester does not have this ability, or on a counted machine."""

    def searched(self, name: str) -> Measured | None:
        """This rate of the search, which runs unless the test has it. None if the search finds no load that passes."""

    def latency(self) -> Any:
        """The result of the method `latency`, or None without a rate."""

    def trials(self, phase: str) -> ChainSource:
        """Trials of this phase across the chain."""

    def tell(self, text: str) -> None:
        """Show the user what the test does now."""

    def instances(self, phase: str) -> Callable[[], AbstractContextManager[StandingInstance]]:
        """Takes the chain down. Each call of the answer sets it up anew for the time of the context.

        Raises Unavailable for a variant of a comparison, which is set up anew in each round anyway.
        """


@dataclass(frozen=True)
class MethodTable:
    """What the report shows of a method: a title, words below it, and a table. Without `heads` it has two columns.

    The columns from `numbers` on are numbers.
    """

    title: str
    rows: Sequence[Sequence[str]]
    heads: Sequence[str] = ()
    words: str = ""
    numbers: int = 1


class FurtherResult(MethodResult, Protocol):
    """The result of a method beside MRR and the search."""

    @property
    def said(self) -> Sequence[str]:
        """The result in lines for the log of a test."""


FurtherResult_co = TypeVar("FurtherResult_co", bound=FurtherResult, covariant=True)


class FurtherMethod(Protocol[FurtherResult_co]):
    """A method beside MRR and the search. Its class has all that the run, the forecast and the report ask."""

    name: ClassVar[str]
    """In records, in `Metric.method`, and with hyphens as a tag."""

    searches: ClassVar[bool]
    """Whether the search for NDR and PDR goes first."""

    @classmethod
    def on(cls, chain: MeasuredChain, amount: float | None = None) -> FurtherResult_co | None:
        """The result with the settings of the topology's preset. None if the search finds no load that passes.

        `amount` takes the place of the setting that says how long or how often. A method can have further choices.
        """

    @staticmethod
    def usual_seconds(settings: FurtherSettings, between: float, set_up: float) -> float:
        """How long it takes, without the search: `between` two trials, and to set a chain up."""

    @staticmethod
    def table(found: Mapping[str, Any]) -> MethodTable:
        """The table of the method's part of a record (`as_record`)."""
