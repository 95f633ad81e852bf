"""Loss curve: the loss ratio at falling loads, from all that the tester can send (RFC 2544 section 26.3).

The RFC wants steps of 10 % of the maximum rate or finer ones, until two trials in a row lose nothing. A data plane may
carry less than 10 % of what a tester sends. So the steps below 10 % are finer: 9 %, 8 %, ... 1 %, 0.9 %, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from podperf.errors import TrialNotDelivered
from podperf.methods.base import TrialSource
from podperf.metrics import Measured, Metrics
from podperf.model import TrialResult

NAME = "loss_curve"
ENOUGH_WITHOUT_LOSS = 2  # trials in a row


def shares() -> Iterator[float]:
    """The loads as shares of the maximum, without end: 1, 0.9, ... 0.1, 0.09, ... 0.01, 0.009."""
    yield 1.0
    for power in count(1):
        yield from (tenths / 10**power for tenths in range(9, 0, -1))


@dataclass(frozen=True)
class LossPoint:
    """One trial of the curve. `share` is that of the maximum load."""

    share: float
    trial: TrialResult

    @property
    def load(self) -> float:
        """The load that was asked for, in frames/s and direction."""
        return self.trial.trial.load

    @property
    def lossless(self) -> bool:
        """Whether every frame came back."""
        return self.trial.lost == 0

    def as_record(self) -> Mapping[str, Any]:
        """Loads, counts and loss."""
        return {
            "share": self.share,
            "load": self.load,
            "achieved_load": self.trial.achieved_load,
            "sent": self.trial.sent,
            "lost": self.trial.lost,
            "loss_ratio": self.trial.loss_ratio,
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
        """The highest load from which on nothing was lost. An upper bound if the lowest load of the curve lost frames.

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

    def as_record(self) -> Mapping[str, Any]:
        """The points, and the parameters."""
        finished = len(self.without_loss) >= ENOUGH_WITHOUT_LOSS
        return {
            "method": NAME,
            "source": "RFC 2544 section 26.3",
            "points": [each.as_record() for each in self.points],
            "not_delivered": list(self.not_delivered),
            "incomplete": None if finished else "the curve ended at its lowest load, before two trials without loss",
            "maximum_load": self.maximum_load,
            "trial_duration": self.trial_duration,
        }


@dataclass(frozen=True)
class LossCurve:
    """Trials of `duration` seconds at falling loads, until two in a row lose nothing, or below `minimum_load`."""

    duration: float
    minimum_load: float  # frames/s and direction
    name: str = NAME

    def run(self, source: TrialSource) -> LossCurveResult:
        """Measure. A load that the tester cannot deliver has no point. TrialNotDelivered if it delivers none."""
        points: list[LossPoint] = []
        not_delivered: list[float] = []
        failure: TrialNotDelivered | None = None
        for share in shares():
            load = share * source.maximum_load
            ended = [each.lossless for each in points[-ENOUGH_WITHOUT_LOSS:]] == [True] * ENOUGH_WITHOUT_LOSS
            if ended or load < self.minimum_load:
                break
            try:
                points.append(LossPoint(share, source.measure(load, self.duration)))
            except TrialNotDelivered as error:
                failure = error
                not_delivered.append(load)
        if not points:
            raise failure or TrialNotDelivered(
                f"the tester's maximum of {source.maximum_load:,.0f} frames/s is below the curve's lowest load, "
                f"{self.minimum_load:,.0f} frames/s"
            )
        duration = points[0].trial.trial.duration  # some testers need longer trials
        return LossCurveResult(tuple(points), source.maximum_load, duration, tuple(not_delivered))
