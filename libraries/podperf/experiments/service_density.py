"""Compares chains beside each other on shared ports: the rate of each, and whether all have the same rate. Pure.

docs/service-density.md explains the figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Literal

from podperf.experiments.ratio_interval import CONFIDENCE, ratio_interval
from podperf.figures import percent, short
from podperf.metrics import Measured
from podperf.model import Chain

Rates = Sequence[Sequence[float]]
"""The rate of each chain, in frames/s and direction, for each round."""


@dataclass(frozen=True)
class Layout:
    """`chains` chains of `pods` pods. Rates are medians over the rounds, in frames/s and direction.

    `rates` has the rate of each chain. `fairness` is Jain's index. `slowest` is the rate of the slowest chain divided
    by that of the fastest one, from `low` to `high`. `limited`: the tester was the limit, so no chain had to lose
    frames.
    """

    chains: int
    pods: int
    total: float
    rates: tuple[float, ...]
    fairness: float
    low: float
    slowest: float
    high: float
    limited: bool
    common_pod: bool = False

    @property
    def name(self) -> str:
        """`2x1`: two chains of one pod. `2x2-common`: two chains of two pods, of which the last one is the same."""
        return f"{self.chains}x{self.pods}{'-common' if self.common_pod else ''}"

    @classmethod
    def of(cls, chain: Chain, rounds: Rates, *, limited: bool, error: float = 1 - CONFIDENCE) -> Layout:
        """The layout of these rounds."""
        each = [[rates[number] for rates in rounds] for number in range(chain.chains)]
        medians = tuple(map(median, each))
        low, slowest, high = 1.0, 1.0, 1.0
        if chain.chains > 1:
            by_speed = sorted(each, key=lambda rates: (median(rates), fmean(rates)))
            low, slowest, high = _share(by_speed[0], by_speed[-1], error)
        total, fairness = median(map(sum, rounds)), median(map(fairness_of, rounds))
        return cls(chain.chains, chain.pods, total, medians, fairness, low, slowest, high, limited, chain.common_pod)

    def verdict(self, relevant_difference: float) -> Literal["confirmed", "refuted", "inconclusive"]:
        """Whether the slowest chain is as fast as the fastest one, except for a difference that does not count."""
        least = 1 / (1 + relevant_difference)
        if self.high < least:
            return "refuted"
        return "confirmed" if self.low >= least and not self.limited else "inconclusive"

    @property
    def words(self) -> str:
        """The rate of the slowest chain, as a sentence."""
        return (
            f"{self.name}: Jain's index {short(self.fairness)}, the slowest chain has {percent(self.slowest)} of the "
            f"fastest one's rate ({percent(CONFIDENCE)} interval {percent(self.low)} to {percent(self.high)})"
        )


@dataclass(frozen=True)
class ServiceDensity:
    """The layouts of one data plane, as they were measured by turns."""

    data_plane: str
    layouts: tuple[Layout, ...]


def fairness_of(rates: Sequence[float]) -> float:
    """Jain's index (DEC-TR-301, 1984): 1 if all rates are the same, 1/n if one of n chains has everything."""
    most = max(rates)
    if not most:
        return 1.0
    shares = [rate / most for rate in rates]
    return math.fsum(shares) ** 2 / (len(shares) * math.fsum(share**2 for share in shares))


def _share(slow: Sequence[float], fast: Sequence[float], error: float) -> tuple[float, float, float]:
    """The ratio of the slow chain's rates to the fast one's, between its bounds. The lower one is 0 if a rate is 0."""
    if min(*slow, *fast) <= 0:
        estimate = median(slow) / median(fast) if median(fast) else 1.0
        return 0.0, estimate, 1.0 if estimate else 0.0
    found = ratio_interval([Measured(each) for each in slow], [Measured(each) for each in fast], error)
    return found.low, found.estimate, found.high
