"""Finds the faults of a tester in its trials on a bare path. Pure.

A tester that loses, copies or corrupts frames does so at every load and at any time. A noisy moment ends, so that
sooner or later a trial at a lower load has no error. So an error is a fault if trial after trial shows it. Trials
without an error clear the tester if they have enough frames to show the fault.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from types import MappingProxyType

from podperf.figures import percent
from podperf.metrics import METRICS, Need
from podperf.model import DirectionResult, TrialResult

CONFIDENCE = 0.95
TELLING = 3.0  # wrong frames to expect in trials that clear the tester because they have none: e^-3 is 5 %
LEAST_TRIALS = 4  # least number of trials that must show a fault
LEAST_SHARE = 0.75  # least share of trials that must show it; at a low load a trial may miss a rare loss
CLOCK_TOLERANCE = 0.007  # of a duration; so an error of 1 % is found beside noise, in both ways
SLOWEST_BARE_PATH = (
    1_000_000  # ns that the fastest frame of a trial takes there at most; usually it takes some microseconds
)


class FaultKind(StrEnum):
    """The kinds of a tester's faults."""

    LOSES = "loses"
    COUNTS_TWICE = "counts twice"
    SENDS_TWICE = "sends twice"
    CORRUPTS = "corrupts"
    STAMPS = "stamps"
    CLOCK = "clock"


# No threshold can judge a figure with this need. A fault changes any other figure by at most its ratio.
_SPOILT: Mapping[FaultKind, Need] = MappingProxyType(
    {
        FaultKind.LOSES: Need.NO_LOSS,
        FaultKind.COUNTS_TWICE: Need.COUNT,
        FaultKind.SENDS_TWICE: Need.NO_LOSS,
        FaultKind.CORRUPTS: Need.NO_LOSS,
        FaultKind.STAMPS: Need.STAMPS,
        FaultKind.CLOCK: Need.CLOCK,
    }
)


@dataclass(frozen=True)
class Fault:
    """One fault of a tester. `sentence` describes it, with the evidence.

    `ratio` is the lowest share of wrong frames in any trial, or the relative error of a clock.
    """

    kind: FaultKind
    ratio: float
    sentence: str

    @property
    def looks_like_loss(self) -> float:
        """The share of frames that a trial across a system under test misses because of this fault."""
        missed = (FaultKind.LOSES, FaultKind.SENDS_TWICE, FaultKind.CORRUPTS)
        return self.ratio if self.kind in missed else 0.0

    @property
    def spoils(self) -> frozenset[str]:
        """The names of the metrics that no threshold can judge."""
        return frozenset(metric.name for metric in METRICS.values() if _SPOILT[self.kind] in metric.needs)


_COUNTED: Mapping[FaultKind, Callable[[DirectionResult], int]] = MappingProxyType(
    {
        # A copy replaces a frame that should have been sent, and a corrupted frame is not received. Neither is lost.
        FaultKind.LOSES: lambda each: max(0, each.lost - each.corrupted - each.duplicated),
        FaultKind.COUNTS_TWICE: lambda each: max(0, each.received - each.sent),
        FaultKind.SENDS_TWICE: lambda each: each.duplicated,
        FaultKind.CORRUPTS: lambda each: each.corrupted,
    }
)


def _wrongly_stamped(trial: TrialResult) -> int:
    """Frames with a latency that a bare path cannot have. A stall makes some frames slow, and never all of them."""
    if trial.impossible_latency:
        return trial.received
    late = (
        direction
        for direction in trial.directions
        if direction.latency and direction.latency.minimum > SLOWEST_BARE_PATH
    )
    return sum(each.received for each in late)


_WORDS: Mapping[FaultKind, str] = MappingProxyType(
    {
        FaultKind.LOSES: "loses frames",
        FaultKind.COUNTS_TWICE: "counts frames twice",
        FaultKind.SENDS_TWICE: "sends or counts copies of frames",
        FaultKind.CORRUPTS: "corrupts frames",
        FaultKind.STAMPS: "stamps frames with wrong times",
    }
)


def suspected(trials: Sequence[TrialResult]) -> bool:
    """True while these trials on a bare path show a fault, and no trial clears the tester of it."""
    return not trials or any(_least(kind, trials) for kind in _WORDS)


def faults_in(trials: Sequence[TrialResult]) -> tuple[Fault, ...]:
    """The faults that these valid trials on a bare path show repeatedly."""
    return tuple(fault for kind in _WORDS if (fault := _fault(kind, trials)))


def _fault(kind: FaultKind, trials: Sequence[TrialResult]) -> Fault | None:
    least, shown = _least(kind, trials), sum(1 for trial in trials if _count(kind, trial))
    if not least or shown < max(LEAST_TRIALS, LEAST_SHARE * len(trials)):
        return None
    where = f"each of {shown} trials" if shown == len(trials) else f"{shown} of {len(trials)} trials"
    sentence = f"the tester itself {_WORDS[kind]}: at least {percent(least)} in {where} on the bare path"
    return Fault(kind, least, sentence)


def _least(kind: FaultKind, trials: Sequence[TrialResult]) -> float:
    """The lowest share of frames with this fault, among the trials that show it. 0 if the others clear the tester.

    They clear the tester if they have no such frame, although TELLING of them were to be expected by that share.
    """
    least = min((found / trial.sent for trial in trials if trial.sent and (found := _count(kind, trial))), default=0.0)
    faultless = sum(trial.sent for trial in trials if not _count(kind, trial))
    return 0.0 if faultless * least >= TELLING else least


def _count(kind: FaultKind, trial: TrialResult) -> int:
    return _wrongly_stamped(trial) if kind is FaultKind.STAMPS else sum(map(_COUNTED[kind], trial.directions))


def own_loss(trials: Sequence[TrialResult]) -> tuple[float | None, float | None]:
    """The lowest loss ratio of these valid trials, and the upper bound of the tester's own loss with 95 % confidence.

    The bound is None unless a trial had no loss. With any larger loss ratio p, at least one of k trials of n frames
    would have no loss with a probability of at most 1 - (1 - e^-np)^k = 5 %.
    """
    if not trials:
        return None, None
    lossless = max((trial.sent for trial in trials if not trial.lost), default=0)
    if not lossless:
        return min(trial.loss_ratio for trial in trials), None
    return 0.0, -math.log(1 - CONFIDENCE ** (1 / len(trials))) / lossless


@dataclass(frozen=True)
class Timed:
    """A trial's time of sending by the tester, and its whole duration by this machine's monotonic clock.

    `told` is the time from the first frame to the last one. The tester's own duration is one gap longer, in which the
    tester does not send.
    """

    told: float
    took: float

    @property
    def around(self) -> float:
        """Seconds around the sending. With a wrong clock they contain the clock's error, too."""
        return self.took - self.told


def clock_error(short_ones: Sequence[Timed], long_ones: Sequence[Timed]) -> tuple[float, float]:
    """The error of the tester's clock, 0.02 if it counts 1.02 s while 1 s passes, and how far the figure may be off.

    The time around a trial does not depend on its length, and noise only adds to it. So the quicker half of the short
    and of the long trials counts. The figure may be off by the differences within the two halves.
    """
    short_half, long_half = (
        sorted(one.around for one in ones)[: (len(ones) + 1) // 2] for ones in (short_ones, long_ones)
    )
    longer = long_ones[0].told - short_ones[0].told
    error = (fmean(long_half) - fmean(short_half)) / longer
    return 1 / (1 + error) - 1, sum(half[-1] - half[0] for half in (short_half, long_half)) / longer


def clock_fault(short_ones: Sequence[Timed], long_ones: Sequence[Timed]) -> Fault | None:
    """The fault of a clock whose error is larger than the tolerance and the noise together.

    The means of the halves differ by less than single trials: a quarter of these differences counts as noise. None also
    for fewer than two short or two long trials.
    """
    if min(len(short_ones), len(long_ones)) < 2:
        return None
    error, off = clock_error(short_ones, long_ones)
    if abs(error) <= CLOCK_TOLERANCE + off / 4:
        return None
    way = "fast" if error > 0 else "slow"
    inexact = f", give or take {percent(round(off, 3))}," if round(off, 3) else ""
    return Fault(
        FaultKind.CLOCK,
        abs(error),
        f"the tester's clock runs {percent(round(abs(error), 3))} {way}{inexact} by this machine's clock, "
        f"in {len(long_ones)} trials",
    )
