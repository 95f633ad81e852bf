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
from types import MappingProxyType

from podperf.figures import percent
from podperf.metrics import METRICS, Need
from podperf.model import DirectionResult, TrialResult

CONFIDENCE = 0.95
TELLING = 3.0  # wrong frames to expect in trials that clear the tester because they have none: e^-3 is 5 %
LEAST_TRIALS = 4  # least number of trials that must show a fault
LEAST_SHARE = 0.75  # least share of trials that must show it; at a low load a trial may miss a rare loss
CLOCK_TOLERANCE = 0.01  # of a duration


class FaultKind(StrEnum):
    """The kinds of a tester's faults."""

    LOSES = "loses"
    COUNTS_TWICE = "counts twice"
    SENDS_TWICE = "sends twice"
    CORRUPTS = "corrupts"
    CLOCK = "clock"


# No threshold can judge a figure with this need. A fault changes any other figure by at most its ratio.
_SPOILT: Mapping[FaultKind, Need] = MappingProxyType(
    {
        FaultKind.LOSES: Need.NO_LOSS,
        FaultKind.COUNTS_TWICE: Need.COUNT,
        FaultKind.SENDS_TWICE: Need.NO_LOSS,
        FaultKind.CORRUPTS: Need.NO_LOSS,
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
        return frozenset(each.name for each in METRICS.values() if _SPOILT[self.kind] in each.needs)


_COUNTED: Mapping[FaultKind, Callable[[DirectionResult], int]] = MappingProxyType(
    {
        # A copy replaces a frame that should have been sent, and a corrupted frame is not received. Neither is lost.
        FaultKind.LOSES: lambda each: max(0, each.lost - each.corrupted - each.duplicated),
        FaultKind.COUNTS_TWICE: lambda each: max(0, each.received - each.sent),
        FaultKind.SENDS_TWICE: lambda each: each.duplicated,
        FaultKind.CORRUPTS: lambda each: each.corrupted,
    }
)

_WORDS: Mapping[FaultKind, str] = MappingProxyType(
    {
        FaultKind.LOSES: "loses frames",
        FaultKind.COUNTS_TWICE: "counts frames twice",
        FaultKind.SENDS_TWICE: "sends or counts copies of frames",
        FaultKind.CORRUPTS: "corrupts frames",
    }
)


def suspected(trials: Sequence[TrialResult]) -> bool:
    """True while these trials on a bare path show a fault, and no trial clears the tester of it."""
    return not trials or any(_least(kind, trials) for kind in _COUNTED)


def faults_in(trials: Sequence[TrialResult]) -> tuple[Fault, ...]:
    """The faults that these valid trials on a bare path show repeatedly."""
    return tuple(fault for kind in _COUNTED if (fault := _fault(kind, trials)))


def _fault(kind: FaultKind, trials: Sequence[TrialResult]) -> Fault | None:
    least, shown = _least(kind, trials), sum(1 for each in trials if _count(kind, each))
    if not least or shown < max(LEAST_TRIALS, LEAST_SHARE * len(trials)):
        return None
    where = f"each of {shown} trials" if shown == len(trials) else f"{shown} of {len(trials)} trials"
    sentence = f"the tester itself {_WORDS[kind]}: at least {percent(least)} in {where} on the bare path"
    return Fault(kind, least, sentence)


def _least(kind: FaultKind, trials: Sequence[TrialResult]) -> float:
    """The lowest share of frames with this fault, among the trials that show it. 0 if the others clear the tester.

    They clear the tester if they have no such frame, although TELLING of them were to be expected by that share.
    """
    least = min((found / each.sent for each in trials if each.sent and (found := _count(kind, each))), default=0.0)
    faultless = sum(each.sent for each in trials if not _count(kind, each))
    return 0.0 if faultless * least >= TELLING else least


def _count(kind: FaultKind, trial: TrialResult) -> int:
    return sum(map(_COUNTED[kind], trial.directions))


def own_loss(trials: Sequence[TrialResult]) -> tuple[float | None, float | None]:
    """The lowest loss ratio of these valid trials, and the upper bound of the tester's own loss with 95 % confidence.

    The bound is None unless a trial had no loss. With any larger loss ratio p, at least one of k trials of n frames
    would have no loss with a probability of at most 1 - (1 - e^-np)^k = 5 %.
    """
    if not trials:
        return None, None
    lossless = max((each.sent for each in trials if not each.lost), default=0)
    if not lossless:
        return min(each.loss_ratio for each in trials), None
    return 0.0, -math.log(1 - CONFIDENCE ** (1 / len(trials))) / lossless


@dataclass(frozen=True)
class Timed:
    """A trial's duration by the tester, and by this machine's monotonic clock, which includes the time around it."""

    told: float
    took: float

    @property
    def around(self) -> float:
        """Seconds around the sending. With a wrong clock they contain the clock's error, too."""
        return self.took - self.told


def clock_error(short_ones: Sequence[Timed], long_ones: Sequence[Timed]) -> float:
    """The relative error of the tester's clock: 0.02 if it counts 1 s while 1.02 s pass.

    The time around a trial does not depend on its length, and noise only adds to it. So the lowest value of the short
    and of the long trials counts.
    """
    least_short, least_long = (min(each, key=lambda timed: timed.around) for each in (short_ones, long_ones))
    return (least_long.around - least_short.around) / (least_long.told - least_short.told)


def clock_fault(short_ones: Sequence[Timed], long_ones: Sequence[Timed]) -> Fault | None:
    """The fault of a clock whose error is larger than the tolerance and than the noise.

    None also for fewer than two short or two long trials. Noise is the difference between the two lowest times around a
    trial, of short and of long trials.
    """
    if min(len(short_ones), len(long_ones)) < 2:
        return None
    error, noise = clock_error(short_ones, long_ones), 0.0
    for kind in (short_ones, long_ones):
        least, next_one = sorted(each.around for each in kind)[:2]
        noise += next_one - least
    if abs(error) <= CLOCK_TOLERANCE + noise / (long_ones[0].told - short_ones[0].told):
        return None
    off = 1 / (1 + error) - 1  # as a share of the tester's time
    way = "fast" if off > 0 else "slow"
    return Fault(
        FaultKind.CLOCK,
        abs(off),
        f"the tester's clock runs {percent(round(abs(off), 4))} {way} by this machine's clock, "
        f"in each of {len(long_ones)} trials",
    )
