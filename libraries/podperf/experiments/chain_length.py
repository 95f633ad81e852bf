"""Computes the rate of a data plane by the length of its chain, and the share that each further pod takes. Pure.

docs/chain-length.md explains the figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from podperf.experiments.ratio_interval import CONFIDENCE, ratio_interval
from podperf.figures import percent
from podperf.metrics import Measured
from podperf.model import Chain


@dataclass(frozen=True)
class ChainLengths:
    """Chains of one data plane that differ only in their number of pods, the shortest first.

    `rates` has the median rate of each length, in frames/s and direction. A further pod takes the share `estimate` of
    the rate, from `low` to `high`: the mean over the pods between the shortest and the longest chain. A negative share
    is a gain. An end is infinite if the tester was the limit on this side.
    """

    data_plane: str
    pods: tuple[int, ...]
    rates: tuple[float, ...]
    low: float
    estimate: float
    high: float

    @property
    def words(self) -> str:
        """The share of a further pod, as a sentence."""
        low, high = ("open" if math.isinf(each) else percent(each) for each in (self.low, self.high))
        return (
            f"from {self.pods[0]} to {self.pods[-1]} pods, each further pod takes {percent(self.estimate)} of the rate "
            f"({percent(CONFIDENCE)} interval {low} to {high})"
        )


def by_length(
    chains: Sequence[Chain], rates: Sequence[Sequence[Measured]], error: float = 1 - CONFIDENCE
) -> ChainLengths | None:
    """The rates of these chains by their length. `rates` has the rates of each chain in all rounds.

    None unless the chains differ in their number of pods, and in nothing else, and each has one. Raises PodperfError if
    a chain forwarded nothing in a round.
    """
    lengths = {each.pods for each in chains}
    alike = len({replace(each, pods=0) for each in chains}) == 1
    if not alike or len(lengths) != len(chains) or len(chains) < 2 or 0 in lengths:
        return None
    ordered = sorted(zip(chains, rates, strict=True), key=lambda each: each[0].pods)
    (shortest, fast), (longest, slow) = ordered[0], ordered[-1]
    ratio = ratio_interval(slow, fast, error)
    further = longest.pods - shortest.pods
    return ChainLengths(
        shortest.data_plane,
        tuple(chain.pods for chain, _ in ordered),
        tuple(median(each.value for each in found) for _, found in ordered),
        _share(ratio.high, further),
        _share(ratio.estimate, further),
        _share(ratio.low, further) if ratio.low else math.inf,
    )


def _share(ratio: float, further: int) -> float:
    """The share of the rate that each of `further` pods takes, if all of them together leave `ratio` of it."""
    return 1 - math.pow(ratio, 1 / further)
