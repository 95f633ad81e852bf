"""Judges whether a variant of a chain is slower or faster than the first variant. Pure. docs/compare.md explains it.

The rounds are looked at several times, so that a comparison can end early. Each look has an interval of its own. The
errors of all looks add up to no more than 1 - CONFIDENCE. So all intervals together contain the true change with that
confidence, whenever the comparison ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import count as count_from

from podperf.experiments.ratio_interval import CONFIDENCE, least_error, ratio_interval, real_error, where
from podperf.figures import count, percent, signed
from podperf.metrics import Measured, Metric

FIRST_LOOK = 8  # rounds. With fewer, the interval needs an error that leaves little to the later looks
GROWTH = 1.5  # rounds of a look, as a multiple of the rounds of the look before


class VariantVerdict(StrEnum):
    """The verdict on a variant beside the first one, the worst first. `SLOWER` is also said of a higher cost."""

    SLOWER = "slower"
    UNDECIDED = "undecided"
    NO_DIFFERENCE = "no difference"
    FASTER = "faster"


@dataclass(frozen=True)
class Look:
    """A look at the first `rounds` rounds. Its interval may miss the true change with this `error`."""

    rounds: int
    error: float


def looks(most: int, comparisons: int = 1) -> tuple[Look, ...]:
    """The looks of at most `most` rounds, in which `comparisons` variants are each compared with the first one.

    The errors of ranks are steps. So each look has an equal part of the whole error, and the part that earlier looks
    could not use. A look whose part is too small for an interval is left out. Empty if `most` rounds are too few.
    """
    numbers = [most]
    while (fewer := round(numbers[0] / GROWTH)) >= FIRST_LOOK:
        numbers.insert(0, fewer)
    whole, used = (1 - CONFIDENCE) / comparisons, 0.0
    found = []
    for place, rounds in enumerate(numbers, start=1):
        allowed = whole * place / len(numbers) - used
        if least_error(rounds) <= allowed:
            used += real_error(rounds, allowed)
            found.append(Look(rounds, allowed))
    return tuple(found) if found and found[-1].rounds == most else ()


def fewest_rounds(comparisons: int = 1) -> int:
    """The fewest rounds that can give the confidence."""
    return next(each for each in count_from(1) if looks(each, comparisons))


@dataclass(frozen=True)
class Difference:
    """The change of a metric from the first variant to another one, as shares: -0.05 is 5 % less.

    The true change lies between `low` and `high`. Both are `share` if the figures are exact. An infinite end is open,
    because the tester was the limit.
    """

    low: float
    share: float
    high: float

    @property
    def largest(self) -> float:
        """No larger change is possible, with the confidence of the comparison."""
        return max(abs(self.low), abs(self.high))

    @property
    def exact(self) -> bool:
        """True if the figures have no noise."""
        return self.low == self.high

    @property
    def words(self) -> str:
        """`-5.1 % (-7 % to -3.2 %)`."""
        if self.exact:
            return signed(self.share)
        return f"{signed(self.share)} ({_end(self.low, -1.0)} to {_end(self.high, math.inf)})"


def _end(share: float, nothing: float) -> str:
    return "open" if share == nothing else signed(share)


@dataclass(frozen=True)
class VariantJudgement:
    """The verdict on a variant, and the change that it comes from. Without a change there are too few rounds so far."""

    verdict: VariantVerdict
    change: Difference | None
    rounds: int
    remark: str = ""

    @property
    def words(self) -> str:
        """The verdict; with the largest possible change if that is the verdict."""
        if self.verdict is VariantVerdict.NO_DIFFERENCE and self.change is not None:
            return (
                f"no difference larger than {percent(self.change.largest)}" if self.change.largest else "no difference"
            )
        return str(self.verdict)

    @property
    def sentence(self) -> str:
        """The verdict, the change with its interval, and the reason why nothing is decided."""
        change = [self.change.words] if self.change else []
        rounds = [count(self.rounds, "round")] if self.rounds > 1 else []
        return "; ".join([f"{self.words}: {', '.join([*change, *rounds])}", *filter(None, [self.remark])])


def judge(
    metric: Metric, first: Sequence[Measured], other: Sequence[Measured], relevant: float, error: float, doubt: str = ""
) -> VariantJudgement:
    """The verdict on `other` beside `first`, whose figures were measured pair by pair in random order.

    Slower, or faster: the whole interval lies beyond the `relevant` change (a share). No difference: it lies within it.
    Undecided: anything else, and always with a `doubt` about the tester, in words.
    """
    ratio = ratio_interval(other, first, error)
    change = Difference(ratio.low - 1, ratio.estimate - 1, ratio.high - 1)
    return _judged(metric, change, relevant, len(first), doubt)


def judge_exact(metric: Metric, first: float, other: float, relevant: float) -> VariantJudgement:
    """The verdict on figures without noise, one of each variant."""
    share = other / first - 1
    return _judged(metric, Difference(share, share, share), relevant, 1)


def _judged(metric: Metric, change: Difference, relevant: float, rounds: int, doubt: str = "") -> VariantJudgement:
    found = where(change.low, change.high, -relevant, relevant)
    if doubt or found == "unclear":
        why = doubt or _why_undecided(metric, change, relevant)
        return VariantJudgement(VariantVerdict.UNDECIDED, change, rounds, why)
    if found == "within":
        return VariantJudgement(VariantVerdict.NO_DIFFERENCE, change, rounds)
    better = (found == "above") == metric.quantity.more_is_better
    return VariantJudgement(VariantVerdict.FASTER if better else VariantVerdict.SLOWER, change, rounds)


def _why_undecided(metric: Metric, change: Difference, relevant: float) -> str:
    if math.isinf(change.high) or change.low == -1:
        return "the tester was the limit, so the true figures are not known"
    if change.low <= 0 <= change.high:
        return f"the rounds differ too much among themselves to tell whether there is a change of {percent(relevant)}"
    worse = (change.share < 0) == metric.quantity.more_is_better
    return f"{'slower' if worse else 'faster'}, but perhaps by less than the {percent(relevant)} that count"
