"""Loss curve: the loss ratio at falling loads, from all that the tester can send (RFC 2544 section 26.3).

The RFC wants steps of 10 % of the maximum rate or finer ones, until two trials in a row lose nothing. A data plane may
carry less than 10 % of what a tester sends. So the steps below 10 % are finer: 9 %, 8 %, ... 1 %, 0.9 %, and so on.

A stall of the machine can lose frames in a single trial. So a point has two or three trials, and two of them must agree
on whether frames are lost at this load.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from statistics import fmean, median
from typing import Any, ClassVar

from podperf.errors import TrialNotDelivered
from podperf.figures import kpps, percent
from podperf.methods.base import MeasuredChain, MethodTable
from podperf.methods.presets import FurtherSettings
from podperf.metrics import Measured, Metrics
from podperf.model import TrialResult
from podperf.testers.base import TrialSource

NAME = "loss_curve"
ENOUGH_WITHOUT_LOSS = 2  # points in a row
AGREED = 2  # trials of a point
LOWEST_LOAD = 1000.0  # frames/s and direction, as that of the search
USUAL_TRIALS = 40  # two at most loads


def shares() -> Iterator[float]:
    """The loads as shares of the maximum, without end: 1, 0.9, ... 0.1, 0.09, ... 0.01, 0.009."""
    yield 1.0
    for power in count(1):
        yield from (tenths / 10**power for tenths in range(9, 0, -1))


@dataclass(frozen=True)
class LossPoint:
    """The trials at one load of the curve. `share` is that of the maximum load."""

    share: float
    trials: tuple[TrialResult, ...]

    @property
    def load(self) -> float:
        """The load that was asked for, in frames/s and direction."""
        return self.trials[0].trial.load

    @property
    def loss_ratio(self) -> float:
        """The median of the trials. 0 if two of them lost nothing."""
        return median(trial.loss_ratio for trial in self.trials)

    @property
    def lossless(self) -> bool:
        """Whether every frame came back, in two trials."""
        return self.loss_ratio == 0

    def as_record(self) -> Mapping[str, Any]:
        """Loads, counts and loss."""
        return {
            "share": self.share,
            "load": self.load,
            "achieved_load": fmean(trial.achieved_load for trial in self.trials),
            "sent": sum(trial.sent for trial in self.trials),
            "lost": sum(trial.lost for trial in self.trials),
            "loss_ratio": self.loss_ratio,
            "loss_ratios": [trial.loss_ratio for trial in self.trials],
        }


@dataclass(frozen=True)
class LossCurveResult:
    """The points of the curve, the highest load first. `not_delivered` are loads that the tester could not send."""

    points: tuple[LossPoint, ...]
    maximum_load: float
    trial_duration: float  # planned seconds of each trial
    not_delivered: tuple[float, ...] = ()

    @property
    def without_loss(self) -> tuple[LossPoint, ...]:
        """The points at the end of the curve that lost nothing, the highest load first."""
        found = len(self.points)
        while found and self.points[found - 1].lossless:
            found -= 1
        return self.points[found:]

    @property
    def metrics(self) -> Metrics:
        """The highest load without loss, if all lower loads have none. An upper bound if the lowest load lost frames.

        A lower bound if the tester could send no load that loses frames.
        """
        without = self.without_loss
        if not without:
            return {"loss_free_load": Measured(self.points[-1].load, high=self.points[-1].load, upper_bound=True)}
        above = self.points[: -len(without)]
        found = Measured(
            without[0].load,
            low=without[0].load,
            high=above[-1].load if above else None,
            lower_bound=not above,
            unfinished=len(without) < ENOUGH_WITHOUT_LOSS,
        )
        return {"loss_free_load": found}

    @property
    def said(self) -> Sequence[str]:
        points = self.points
        return [
            f"{kpps(point.load)} kpps ({percent(point.share)}): loss {percent(point.loss_ratio)}" for point in points
        ]

    def as_record(self) -> Mapping[str, Any]:
        """The points, and the parameters."""
        finished = len(self.without_loss) >= ENOUGH_WITHOUT_LOSS
        return {
            "method": NAME,
            "source": "RFC 2544 section 26.3",
            "points": [point.as_record() for point in self.points],
            "not_delivered": list(self.not_delivered),
            "incomplete": None if finished else "the curve ended at its lowest load, before two loads without loss",
            "maximum_load": self.maximum_load,
            "trial_duration": self.trial_duration,
        }


@dataclass(frozen=True)
class LossCurve:
    """Trials of `duration` seconds at falling loads, until two loads in a row lose nothing, or below `minimum_load`."""

    duration: float
    minimum_load: float  # frames/s and direction
    name: ClassVar[str] = NAME
    searches: ClassVar[bool] = False

    @classmethod
    def on(cls, chain: MeasuredChain, amount: float | None = None) -> LossCurveResult:
        """See FurtherMethod. `amount`: seconds of a trial."""
        return cls(amount or chain.further_settings.loss_curve_trial, LOWEST_LOAD).run(chain.trials(NAME))

    @staticmethod
    def usual_seconds(settings: FurtherSettings, between: float, set_up: float) -> float:
        return USUAL_TRIALS * (settings.loss_curve_trial + between)

    @staticmethod
    def table(found: Mapping[str, Any]) -> MethodTable:
        rows = [
            (kpps(point["load"]), percent(point["share"]), kpps(point["achieved_load"]), percent(point["loss_ratio"]))
            for point in found["points"]
        ]
        left_out = ", ".join(map(kpps, found["not_delivered"]))
        title = f"Loss curve ({found['source']}), trials of {found['trial_duration']:g} s; the loss is their median"
        heads = ("Load, kpps", "of the tester's maximum", "sent, kpps", "loss")
        words = f"The tester could not send {left_out} kpps." if left_out else ""
        return MethodTable(title, rows, heads, words, numbers=0)

    def run(self, source: TrialSource) -> LossCurveResult:
        """Measure. A load that the tester cannot deliver has no point. TrialNotDelivered if it delivers none."""
        points: list[LossPoint] = []
        not_delivered: list[float] = []
        failure: TrialNotDelivered | None = None
        for share in shares():
            load = share * source.maximum_load
            ended = [point.lossless for point in points[-ENOUGH_WITHOUT_LOSS:]] == [True] * ENOUGH_WITHOUT_LOSS
            if ended or load < self.minimum_load:
                break
            try:
                points.append(LossPoint(share, self._trials(source, load)))
            except TrialNotDelivered as error:
                failure = error
                not_delivered.append(load)
        if not points:
            raise failure or TrialNotDelivered(
                f"the tester's maximum of {source.maximum_load:,.0f} frames/s is below the curve's lowest load, "
                f"{self.minimum_load:,.0f} frames/s"
            )
        duration = points[0].trials[0].trial.duration  # some testers need longer trials
        return LossCurveResult(tuple(points), source.maximum_load, duration, tuple(not_delivered))

    def _trials(self, source: TrialSource, load: float) -> tuple[TrialResult, ...]:
        """Trials at this load, until two agree on whether frames are lost."""
        with_loss: list[TrialResult] = []
        without: list[TrialResult] = []
        while max(len(with_loss), len(without)) < AGREED:
            result = source.measure(load, self.duration)
            (with_loss if result.lost else without).append(result)
        return (*with_loss, *without)
