"""Computes the ratio of two chains' figures and its interval. Pure. docs/findings.md explains both."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from podperf.errors import PodperfError
from podperf.figures import count, percent
from podperf.metrics import Measured

CONFIDENCE = 0.95

Where = Literal["above", "below", "within", "unclear"]


@dataclass(frozen=True)
class RatioInterval:
    """The ratio of two chains' figures: the estimate, and the interval that contains the true ratio.

    `confidence` is the real one of the interval. It is at least the wanted one.
    """

    low: float
    estimate: float
    high: float
    confidence: float


def ratio_interval(one: Sequence[Measured], other: Sequence[Measured], error: float = 1 - CONFIDENCE) -> RatioInterval:
    """The ratio of one chain's figures to another's, measured pair by pair: Hodges and Lehmann's estimate and interval.

    It inverts Wilcoxon's signed-rank test on the logarithms of the ratios. The order within each pair was random. So
    under any assumed ratio, the sign of each deviation is a fair coin, for every kind of noise, and the distribution is
    exact.

    The interval misses the true ratio with a probability of `error` at most. It is open on the side of a figure that is
    a bound. Raises PodperfError if a figure is 0, which has no ratio, and if there are too few pairs for `error`.
    """
    estimate = ratio_estimate(one, other)
    pairs = list(zip(one, other, strict=True))
    left_out, confidence = _tail(len(pairs), error)
    return RatioInterval(
        math.exp(_walsh_averages([_log_ratio(each.least, beside.most) for each, beside in pairs])[left_out]),
        estimate,
        math.exp(_walsh_averages([_log_ratio(each.most, beside.least) for each, beside in pairs])[-1 - left_out]),
        confidence,
    )


def ratio_estimate(one: Sequence[Measured], other: Sequence[Measured]) -> float:
    """The estimate of `ratio_interval`. One pair is enough for it. Raises PodperfError if a figure is 0."""
    if any(each.value <= 0 for each in (*one, *other)):
        raise PodperfError("a chain forwarded nothing in one of the trials, so there is no ratio to judge")
    logs = [_log_ratio(each.value, beside.value) for each, beside in zip(one, other, strict=True)]
    return math.exp(median(_walsh_averages(logs)))


def where(low: float, high: float, least: float, most: float) -> Where:
    """Where an interval lies beside the range from `least` to `most`. Unclear: partly within the range."""
    if low > most:
        return "above"
    if high < least:
        return "below"
    return "within" if least <= low and high <= most else "unclear"


def least_error(pairs: int) -> float:
    """The least error of an interval from this number of pairs: that of the interval from the lowest to the highest."""
    return 2.0 ** (1 - pairs)


def real_error(pairs: int, error: float) -> float:
    """The error that an interval really has if `error` is allowed. It is smaller, as the values are those of ranks."""
    return 1 - _tail(pairs, error)[1]


def _log_ratio(one: float, other: float) -> float:
    if one == 0 or math.isinf(other):
        return -math.inf
    return math.inf if other == 0 or math.isinf(one) else math.log(one / other)


def _walsh_averages(values: Sequence[float]) -> list[float]:
    """The means of all pairs of values, in ascending order. Each value also makes a pair with itself."""
    return sorted((one + other) / 2 for one, other in itertools.combinations_with_replacement(values, 2))


@functools.cache
def _tail(pairs: int, error: float) -> tuple[int, float]:
    """The number of Walsh averages outside the interval on each side, and the resulting confidence."""
    left_out = sum(1 for each in _errors(pairs) if each <= error)
    if left_out == 0:
        needed = next(each for each in itertools.count(1) if least_error(each) <= error)
        raise PodperfError(
            f"{count(pairs, 'pair')} of trials cannot give {percent(1 - error)} confidence: {needed} can"
        )
    return left_out - 1, 1 - _errors(pairs)[left_out - 1]


@functools.cache
def _errors(pairs: int) -> list[float]:
    """The probability, under the true ratio, that 0, 1, 2 ... averages or fewer lie beyond it on one of the sides."""
    ways = [1]  # ways[w]: of the 2^pairs choices of signs, those whose positive ranks add up to w
    for rank in range(1, pairs + 1):
        longer = ways + [0] * rank
        for total, number in enumerate(ways):
            longer[total + rank] += number
        ways = longer
    return [both / 2.0 ** (pairs - 1) for both in itertools.accumulate(ways)]
