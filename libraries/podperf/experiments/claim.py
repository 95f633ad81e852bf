"""Judges whether measurements confirm or refute a claim about chains. Pure. docs/findings.md explains the verdicts.

Each contender is measured once in each round, in random order. A round gives a ratio for every claimed pair. The ratios
of all rounds give an interval.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import median
from typing import Literal

from podperf.errors import PodperfError
from podperf.experiments.chain_length import ChainLengths, by_length
from podperf.experiments.contender import Contender
from podperf.experiments.ratio_interval import CONFIDENCE, RatioInterval, Where, ratio_interval, where
from podperf.experiments.service_density import Layout, Rates, ServiceDensity
from podperf.figures import count, percent, short
from podperf.metrics import Measured
from podperf.model import l1_bit_rate

MOST_SENTENCES = 5  # with more comparisons, only those that were not confirmed have a sentence each

FindingVerdict = Literal["confirmed", "refuted", "inconclusive"]
Pairs = Sequence[tuple[int, int]]


class Expectation(StrEnum):
    """The statement of a claim about its contenders."""

    RANK = "the first of each pair forwards more than the second"
    ALIKE = "no pair differs relevantly"
    FAIR = "chains beside each other have the same rate, in each contender"


@dataclass(frozen=True)
class Claim:
    """A statement about contenders, and who makes it. If their frames differ, bit rates are compared.

    `source` is the document that makes the claim, with the place in it, and `text` has its words. None: podperf expects
    it. A difference counts if the rates differ by more than `relevant_difference` (0.05: 5 %). `their_figures` are the
    source's own figures in words, or empty. `caveat` names other differences between the contenders. Without
    `claimed_pairs`, each contender is compared with the next one.
    """

    name: str
    text: str
    contenders: tuple[Contender, ...]
    source: str | None = None
    relevant_difference: float = 0.05
    their_figures: str = ""
    caveat: str = ""
    expectation: Expectation = Expectation.RANK
    claimed_pairs: tuple[tuple[int, int], ...] | None = None

    def __post_init__(self) -> None:
        names = {contender.name for contender in self.contenders}
        if len(names) != len(self.contenders) or (len(names) < 2 and self.expectation is not Expectation.FAIR):
            raise PodperfError(f"{self.name}: a claim compares two or more different contenders")

    @property
    def pairs(self) -> Pairs:
        """The compared pairs of contenders."""
        if self.expectation is Expectation.FAIR:
            return ()
        return (
            tuple(itertools.pairwise(range(len(self.contenders)))) if self.claimed_pairs is None else self.claimed_pairs
        )


@dataclass(frozen=True)
class PairRatio:
    """The first contender of a claimed pair forwards `estimate` times as much as the second one; the truth lies from
    `low` to `high`.

    An end is infinite, or 0, if the tester was the limit on this side.
    """

    first: str
    second: str
    low: float
    estimate: float
    high: float


@dataclass(frozen=True)
class Finding:
    """A claim, and the verdict of a test's measurements on it. `source` is that of the claim.

    `chain_lengths` has the rates by the number of pods, if the contenders differ in nothing else. `ratios` has a ratio
    for each claimed pair. `service_density` has the rates of chains beside each other.
    """

    claim: str
    verdict: FindingVerdict
    detail: str
    source: str | None = None
    chain_lengths: ChainLengths | None = None
    ratios: tuple[PairRatio, ...] = ()
    service_density: ServiceDensity | None = None


def judge(
    claim: Claim,
    rates: Sequence[Sequence[Measured]],
    noisy_trials: int = 0,
    *,
    doubt: str = "",
    by_chain: Sequence[Rates] = (),
    error: float = 1 - CONFIDENCE,
) -> Finding:
    """The verdict. `rates` has the rates of each contender in all rounds, in frames/s and direction.

    Confirmed: every pair is as claimed. Refuted: at least one pair is not. A claim of fairness is judged by the rates
    of each chain, `by_chain`. With a `doubt` about the tester (in words), the verdict is neither. Each interval misses
    the true ratio with a probability of `error` at most.
    """
    if claim.expectation is Expectation.FAIR:
        return _judge_fairness(claim, rates, by_chain, doubt, error)
    contenders = claim.contenders
    bits = [_bit_rates(each, found) for each, found in zip(contenders, rates, strict=True)]
    ratios = [ratio_interval(bits[first], bits[second], error) for first, second in claim.pairs]
    names = [(contenders[first].name, contenders[second].name) for first, second in claim.pairs]
    compared = [_compare(claim, ratio, *pair) for ratio, pair in zip(ratios, names, strict=True)]
    verdict = "inconclusive" if doubt else _worst(each for each, _ in compared)

    lengths = _by_length(contenders, rates, error)
    sentences = [*filter(None, [doubt]), *_told(compared)]
    if lengths is not None:
        sentences.append(lengths.words)
    sentences.append(_rounds_told(claim, len(rates[0])))
    if noisy_trials:
        sentences.append(f"the machine was noisy in {noisy_trials} of {count(len(rates) * len(rates[0]), 'trial')}")
    figures = [contender.figure for contender in contenders if contender.figure is not None]
    if len(figures) == len(contenders) > 2:
        agreement = rank_correlation(figures, [median(each.value for each in found) for found in bits])
        sentences.append(f"rank correlation with their figures (Kendall's tau) {short(agreement)}")
    if claim.caveat:
        sentences.append(claim.caveat)
    if claim.their_figures:
        sentences.append(f"their figures: {claim.their_figures}")
    pairs = tuple(
        PairRatio(*pair, ratio.low, ratio.estimate, ratio.high) for ratio, pair in zip(ratios, names, strict=True)
    )
    return Finding(claim.text, verdict, "; ".join(sentences), claim.source, lengths, pairs)


def decided(claim: Claim, finding: Finding) -> bool:
    """Whether the intervals of all pairs, or of all layouts, tell. Further rounds are then not needed."""
    if finding.service_density is not None:
        layouts = [layout for layout in finding.service_density.layouts if layout.chains > 1]
        return all(layout.verdict(claim.relevant_difference) != "inconclusive" for layout in layouts)
    return all(_where(claim, ratio) != "unclear" for ratio in finding.ratios)


def _worst(verdicts: Iterable[FindingVerdict]) -> FindingVerdict:
    severity: tuple[FindingVerdict, ...] = ("refuted", "inconclusive", "confirmed")
    return min(verdicts, key=severity.index)


def _rounds_told(claim: Claim, rounds: int) -> str:
    frames = ", ".join(dict.fromkeys(contender.frame.name for contender in claim.contenders))
    turns = count(rounds, "interleaved round")
    return f"{turns} of {frames} frames; more than {percent(claim.relevant_difference)} counts"


def _judge_fairness(
    claim: Claim, rates: Sequence[Sequence[Measured]], by_chain: Sequence[Rates], doubt: str, error: float
) -> Finding:
    """Confirmed: in every contender the slowest chain has the rate of the fastest one, except for a difference that
    does not count. Refuted: in at least one contender it has less."""
    layouts = tuple(
        Layout.of(each.chain, found, limited=any(rate.lower_bound for rate in totals), error=error)
        for each, found, totals in zip(claim.contenders, by_chain, rates, strict=True)
    )
    beside = [layout for layout in layouts if layout.chains > 1]
    verdicts = [each.verdict(claim.relevant_difference) for each in beside]
    sentences = [*filter(None, [doubt]), *(each.words for each in beside)]
    if names := [each.name for each in beside if each.limited]:
        sentences.append(f"the tester was the limit with {', '.join(names)}, so that no chain had to lose frames")
    sentences.append(_rounds_told(claim, len(rates[0])))
    verdict: FindingVerdict = "inconclusive" if doubt else _worst(verdicts)
    density = ServiceDensity(claim.contenders[0].chain.data_plane, layouts)
    return Finding(claim.text, verdict, "; ".join(sentences), claim.source, service_density=density)


def _by_length(
    contenders: Sequence[Contender], rates: Sequence[Sequence[Measured]], error: float
) -> ChainLengths | None:
    """The rates by the number of pods, if frames and placements of all contenders are the same."""
    if len({(contender.frame, contender.placement) for contender in contenders}) > 1:
        return None
    return by_length([contender.chain for contender in contenders], rates, error)


def _bit_rates(contender: Contender, rates: Sequence[Measured]) -> list[Measured]:
    return [replace(rate, value=l1_bit_rate(rate.value, contender.frame)) for rate in rates]


def _where(claim: Claim, ratio: RatioInterval | PairRatio) -> Where:
    """Where a ratio lies beside those that do not count as a difference."""
    most = 1 + claim.relevant_difference
    return where(ratio.low, ratio.high, 1 / most, most)


def _compare(claim: Claim, ratio: RatioInterval, first: str, second: str) -> tuple[FindingVerdict, str]:
    verdict, why = _judged(claim, ratio)
    return verdict, (
        f"{first} forwards {short(ratio.estimate)} times as much as {second} "
        f"({percent(CONFIDENCE)} interval {_bounds(ratio)}){why}"
    )


def _judged(claim: Claim, ratio: RatioInterval) -> tuple[FindingVerdict, str]:
    alike = claim.expectation is Expectation.ALIKE
    match _where(claim, ratio):
        case "within" if alike:
            return "confirmed", f": no difference larger than {_largest(ratio)}"
        case "within":
            return "inconclusive", f": no relevant difference, none larger than {_largest(ratio)}"
        case "unclear" if not alike and (ratio.low > 1 or ratio.high < 1):
            return "inconclusive", ": the difference may be too small to count"
        case "unclear":
            return "inconclusive", ": the trials differ too much among themselves to tell"
        case "above" if not alike:
            return "confirmed", ""
    return "refuted", ": they differ" if alike else ": it is the other way round"


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
    untied = math.sqrt(math.prod(sum(abs(sign[side]) for sign in signs) for side in (0, 1)))
    return sum(a * b for a, b in signs) / untied if untied else 0.0


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _largest(ratio: RatioInterval) -> str:
    """The largest difference that the interval leaves possible, rounded up to a tenth of a per cent."""
    return percent(math.ceil((max(ratio.high, 1 / ratio.low) - 1) * 1000) / 1000)


def _bounds(ratio: RatioInterval) -> str:
    if ratio.low == 0 or math.isinf(ratio.high):  # the tester was the limit
        low = "open" if ratio.low == 0 else short(ratio.low)
        return f"{low} to {'open' if math.isinf(ratio.high) else short(ratio.high)}, as far as the tester reaches"
    return f"{short(ratio.low)} to {short(ratio.high)}"
