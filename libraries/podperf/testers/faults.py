"""What a tester does wrong by itself, told from its trials on a bare path. Pure.

A tester that loses, copies or spoils frames does so at every load and every time. A noisy moment does not last: sooner
or later a trial at a lower load is faultless. So a fault is what shows in trial after trial, and faultless trials clear
the tester as soon as they had enough frames to show the fault.
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
TELLING = 3.0  # frames that faultless trials should have shown, to clear the tester by showing none: e^-3 is 5 %
LEAST_TRIALS = 4  # that show a fault, before a tester is called faulty
LEAST_SHARE = 0.75  # of all trials: those are what shows it; at a low load a rare loss may leave a trial out
CLOCK_TOLERANCE = 0.01  # of a duration


class FaultKind(StrEnum):
    """What a tester can do wrong by itself."""

    LOSES = "loses"
    COUNTS_TWICE = "counts twice"
    SENDS_TWICE = "sends twice"
    CORRUPTS = "corrupts"
    CLOCK = "clock"


# No threshold can be held against a figure with this need. A fault moves any other figure by no more than its ratio.
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
    """One fault of a tester. `ratio` is the least share of frames in any trial; of a clock, how far it is off.

    `sentence` says it in words, with the evidence.
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
        """The names of the metrics that no threshold can be held against."""
        return frozenset(each.name for each in METRICS.values() if _SPOILT[self.kind] in each.needs)


_COUNTED: Mapping[FaultKind, Callable[[DirectionResult], int]] = MappingProxyType(
    {
        # A copy takes the place of a frame that was to be sent, and a corrupted one is not received: neither is lost.
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
    """True while these trials on a bare path show a fault of which none of them clears the tester."""
    return not trials or any(_least(kind, trials) for kind in _COUNTED)


def faults_in(trials: Sequence[TrialResult]) -> tuple[Fault, ...]:
    """The faults that these valid trials on a bare path show again and again."""
    return tuple(fault for kind in _COUNTED if (fault := _fault(kind, trials)))


def _fault(kind: FaultKind, trials: Sequence[TrialResult]) -> Fault | None:
    least, shown = _least(kind, trials), sum(1 for each in trials if _count(kind, each))
    if not least or shown < max(LEAST_TRIALS, LEAST_SHARE * len(trials)):
        return None
    where = f"each of {shown} trials" if shown == len(trials) else f"{shown} of {len(trials)} trials"
    sentence = f"the tester itself {_WORDS[kind]}: at least {percent(least)} in {where} on the bare path"
    return Fault(kind, least, sentence)


def _least(kind: FaultKind, trials: Sequence[TrialResult]) -> float:
    """The least share of frames that are wrong in this way, of the trials with any; 0 where the others clear it.

    They clear the tester if by that share they should have had TELLING such frames, and have none.
    """
    least = min((found / each.sent for each in trials if each.sent and (found := _count(kind, each))), default=0.0)
    faultless = sum(each.sent for each in trials if not _count(kind, each))
    return 0.0 if faultless * least >= TELLING else least


def _count(kind: FaultKind, trial: TrialResult) -> int:
    return sum(map(_COUNTED[kind], trial.directions))


def own_loss(trials: Sequence[TrialResult]) -> tuple[float | None, float | None]:
    """The least loss ratio of these valid trials, and the most that the tester's own can be with 95 % confidence.

    The second is None unless a trial was without loss: of k trials of n frames one is, for any larger ratio p, with a
    probability of no more than 1 - (1 - e^-np)^k = 5 %.
    """
    if not trials:
        return None, None
    lossless = max((each.sent for each in trials if not each.lost), default=0)
    if not lossless:
        return min(each.loss_ratio for each in trials), None
    return 0.0, -math.log(1 - CONFIDENCE ** (1 / len(trials))) / lossless


@dataclass(frozen=True)
class Timed:
    """A trial's duration as the tester tells it, and by this machine's monotonic clock with all that is around it."""

    told: float
    took: float

    @property
    def around(self) -> float:
        """Seconds around the sending; of a clock that runs wrong also what it is off by."""
        return self.took - self.told


def clock_error(short_ones: Sequence[Timed], long_ones: Sequence[Timed]) -> float:
    """By how much more than told the time goes on, as a share: 0.02 for a clock that counts 1 s while 1.02 s pass.

    The time around a trial does not depend on its length, and noise only adds to it: the least of each kind counts.
    """
    least_short, least_long = (min(each, key=lambda timed: timed.around) for each in (short_ones, long_ones))
    return (least_long.around - least_short.around) / (least_long.told - least_short.told)


def clock_fault(short_ones: Sequence[Timed], long_ones: Sequence[Timed]) -> Fault | None:
    """The fault of a clock that runs wrong by more than the tolerance, and more than noise explains.

    None, too, for fewer than two of a kind. The noise of a kind is how far its least time around a trial is from the
    next one.
    """
    if min(len(short_ones), len(long_ones)) < 2:
        return None
    error, noise = clock_error(short_ones, long_ones), 0.0
    for kind in (short_ones, long_ones):
        least, next_one = sorted(each.around for each in kind)[:2]
        noise += next_one - least
    if abs(error) <= CLOCK_TOLERANCE + noise / (long_ones[0].told - short_ones[0].told):
        return None
    off = 1 / (1 + error) - 1  # of what it tells
    way = "fast" if off > 0 else "slow"
    return Fault(
        FaultKind.CLOCK,
        abs(off),
        f"the tester's clock runs {percent(round(abs(off), 4))} {way} by this machine's clock, "
        f"in each of {len(long_ones)} trials",
    )
