"""Judges whether measurements confirm or refute a claim about chains. Pure.

A claim orders two or more chains by their rates. Each chain is measured once in each round, in random order. A round
gives a ratio for every two neighbours of the order. The ratios of all rounds give an interval
(podperf.verdicts.ratio_interval).
docs/findings.md explains how sure a verdict is.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal, Protocol

from podperf.figures import count, percent, short
from podperf.metrics import Measured
from podperf.model import Chain, FrameSize, PageSize, l1_bit_rate
from podperf.testbed.scenarios import Scenario
from podperf.verdicts.chain_length import ChainLengths, by_length
from podperf.verdicts.published_quantity import PublishedQuantity
from podperf.verdicts.ratio_interval import CONFIDENCE, RatioInterval, ratio_interval
from podperf.verdicts.service_density import ServiceDensity

MOST_SENTENCES = 5  # with more comparisons, only those that were not confirmed have a sentence each

FindingVerdict = Literal["confirmed", "refuted", "inconclusive"]


@dataclass(frozen=True)
class Contender:
    """One side of a comparison: a chain, the frames sent across it, and the placement of its parts.

    Without a `scenario` the parts have the testbed's usual placement, and without `pages` memory in the usual pages.
    Without `flows` the topology's number of flows is sent. `label` is the name in the publication, and `figure` the
    published figure, of the kind `quantity`.
    """

    chain: Chain
    frame: FrameSize
    scenario: Scenario | None = None
    label: str = ""
    figure: float | None = None
    flows: int | None = None
    quantity: PublishedQuantity | None = None
    pages: PageSize | None = None

    def __str__(self) -> str:
        return self.label or str(self.chain)


class Order(Protocol):
    """Contenders, and the claim that some forward more than others. If their frames differ, bit rates are compared."""

    @property
    def name(self) -> str:
        """The name of the order."""

    @property
    def text(self) -> str:
        """The claim, in the words of its source."""

    @property
    def source(self) -> str | None:
        """The document that makes the claim, and the place in it. None: podperf itself expects it."""

    @property
    def contenders(self) -> Sequence[Contender]:
        """The contenders to measure."""

    @property
    def pairs(self) -> Sequence[tuple[int, int]]:
        """The claimed pairs of contenders: the first of each pair forwards more than the second."""

    @property
    def relevant_difference(self) -> float:
        """A difference counts if the rates differ by more than this share (0.05: 5 %)."""

    @property
    def expects_difference(self) -> bool:
        """Whether the claim is that rates differ. If not, it is that no pair of contenders differs relevantly."""

    @property
    def their_figures(self) -> str:
        """The source's own figures in words, or empty."""

    @property
    def caveat(self) -> str:
        """Other differences between the contenders."""


@dataclass(frozen=True)
class PairRatio:
    """The first contender of a claimed pair forwards `estimate` times as much as the second one.

    The true ratio lies between `low` and `high`. An end is infinite, or 0, if the tester was the limit on this side.
    """

    first: str
    second: str
    low: float
    estimate: float
    high: float


@dataclass(frozen=True)
class Finding:
    """A claim, and the verdict of a test's measurements on it.

    `source` is the document that makes the claim, and the place in it. None: podperf itself expects it. `chain_lengths`
    has the rates by the number of pods, if the claim is about chains that differ in nothing else. `ratios` has a ratio
    for each claimed pair. `service_density` has the rates of chains beside each other.
    """

    claim: str
    verdict: FindingVerdict
    detail: str
    source: str | None = None
    chain_lengths: ChainLengths | None = None
    ratios: tuple[PairRatio, ...] = ()
    service_density: ServiceDensity | None = None


def judge(order: Order, rates: Sequence[Sequence[Measured]], noisy_trials: int = 0, *, doubt: str = "") -> Finding:
    """The verdict. `rates` has the rates of each contender in all rounds, in frames/s and direction.

    Confirmed: in every pair the first forwards relevantly more than the second. Refuted: in at least one pair it
    forwards relevantly less. A claim that nothing differs is confirmed if no pair can differ relevantly, and refuted if
    one does. With a `doubt` about the tester (in words), the verdict is neither.
    """
    contenders = order.contenders
    bits = [_bit_rates(each, found) for each, found in zip(contenders, rates, strict=True)]
    compared = [_compare(order, bits, pair) for pair in order.pairs]
    severity: tuple[FindingVerdict, ...] = ("refuted", "inconclusive", "confirmed")
    verdict = "inconclusive" if doubt else min((each for each, _ in compared), key=severity.index)

    lengths = _by_length(contenders, rates)
    sentences = [*filter(None, [doubt]), *_told(compared)]
    if lengths is not None:
        sentences.append(lengths.words)
    frames = ", ".join(dict.fromkeys(each.frame.name for each in contenders))
    rounds = count(len(rates[0]), "interleaved round")
    sentences.append(f"{rounds} of {frames} frames; more than {percent(order.relevant_difference)} counts")
    if noisy_trials:
        sentences.append(f"the machine was noisy in {noisy_trials} of {count(len(rates) * len(rates[0]), 'trial')}")
    figures = [each.figure for each in contenders if each.figure is not None]
    if len(figures) == len(contenders) > 2:
        agreement = rank_correlation(figures, [median(each.value for each in found) for found in bits])
        sentences.append(f"rank correlation with their figures (Kendall's tau) {short(agreement)}")
    if order.caveat:
        sentences.append(order.caveat)
    if order.their_figures:
        sentences.append(f"their figures: {order.their_figures}")
    ratios = tuple(_ratio(order, bits, pair) for pair in order.pairs)
    return Finding(order.text, verdict, "; ".join(sentences), order.source, lengths, ratios)


def _by_length(contenders: Sequence[Contender], rates: Sequence[Sequence[Measured]]) -> ChainLengths | None:
    """The rates by the number of pods, if frames and placements of all contenders are the same."""
    if len({(each.frame, each.scenario) for each in contenders}) > 1:
        return None
    return by_length([each.chain for each in contenders], rates)


def _bit_rates(contender: Contender, rates: Sequence[Measured]) -> list[Measured]:
    return [replace(each, value=l1_bit_rate(each.value, contender.frame)) for each in rates]


def _ratio(order: Order, rates: Sequence[Sequence[Measured]], pair: tuple[int, int]) -> PairRatio:
    first, second = pair
    ratio = ratio_interval(rates[first], rates[second])
    one, other = (str(order.contenders[index]) for index in pair)
    return PairRatio(one, other, ratio.low, ratio.estimate, ratio.high)


def _compare(order: Order, rates: Sequence[Sequence[Measured]], pair: tuple[int, int]) -> tuple[FindingVerdict, str]:
    first, second = pair
    ratio = ratio_interval(rates[first], rates[second])
    judged = _judge_ratio if order.expects_difference else _judge_equal
    verdict, why = judged(ratio, 1 + order.relevant_difference)
    one, other = (order.contenders[index] for index in pair)
    return verdict, (
        f"{one} forwards {short(ratio.estimate)} times as much as {other} "
        f"({percent(CONFIDENCE)} interval {_bounds(ratio)}){why}"
    )


def _told(compared: Sequence[tuple[FindingVerdict, str]]) -> list[str]:
    if len(compared) <= MOST_SENTENCES:
        return [sentence for _, sentence in compared]
    found = Counter(verdict for verdict, _ in compared)
    summed = ", ".join(f"{found[verdict]} {verdict}" for verdict in ("confirmed", "inconclusive", "refuted"))
    others = [sentence for verdict, sentence in compared if verdict != "confirmed"]
    return [f"of {len(compared)} pairs {summed}", *others]


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Kendall's tau-b: 1 for the same order, -1 for the opposite order, 0 if one of them has no order."""
    pairs = list(itertools.combinations(range(len(one)), 2))
    signs = [(_sign(one[i] - one[j]), _sign(other[i] - other[j])) for i, j in pairs]
    untied = math.sqrt(math.prod(sum(abs(each[side]) for each in signs) for side in (0, 1)))
    return sum(a * b for a, b in signs) / untied if untied else 0.0


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _judge_ratio(ratio: RatioInterval, least: float) -> tuple[FindingVerdict, str]:
    if ratio.low > least:
        return "confirmed", ""
    if ratio.high < 1 / least:
        return "refuted", ": it is the other way round"
    if 1 / least <= ratio.low and ratio.high <= least:
        return "inconclusive", f": no relevant difference, none larger than {_largest(ratio)}"
    if ratio.low > 1 or ratio.high < 1:
        return "inconclusive", ": the difference may be too small to count"
    return "inconclusive", ": the trials differ too much among themselves to tell"


def _judge_equal(ratio: RatioInterval, least: float) -> tuple[FindingVerdict, str]:
    if 1 / least <= ratio.low and ratio.high <= least:
        return "confirmed", f": no difference larger than {_largest(ratio)}"
    if ratio.low > least or ratio.high < 1 / least:
        return "refuted", ": they differ"
    return "inconclusive", ": the trials differ too much among themselves to tell"


def _largest(ratio: RatioInterval) -> str:
    """The largest difference that the interval leaves possible, rounded up to a tenth of a per cent."""
    return percent(math.ceil((max(ratio.high, 1 / ratio.low) - 1) * 1000) / 1000)


def _bounds(ratio: RatioInterval) -> str:
    if ratio.low == 0 or math.isinf(ratio.high):  # the tester was the limit
        low = "open" if ratio.low == 0 else short(ratio.low)
        return f"{low} to {'open' if math.isinf(ratio.high) else short(ratio.high)}, as far as the tester reaches"
    return f"{short(ratio.low)} to {short(ratio.high)}"
