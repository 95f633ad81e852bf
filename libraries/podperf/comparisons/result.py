"""The result of a comparison, also of one that was interrupted."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from podperf.comparisons.rounds import Looked, RoundsSoFar
from podperf.comparisons.values import Variant, VariantComparison
from podperf.dataplanes import with_forwarder
from podperf.metrics import Measured, Metric
from podperf.verdicts.before_after import VariantJudgement, VariantVerdict, judge_exact
from podperf.verdicts.ratio_interval import CONFIDENCE

SCHEMA_VERSION = 1
Ended = Literal["decided", "all rounds", "doubt", "exact", "interrupted"]


@dataclass(frozen=True)
class VariantResult:
    """The figures of one variant. `figures` has one for each round, None after the variant was decided.

    On a counted machine there is one figure. `record` is the id of the record with the trials. `noisy` counts figures
    from a noisy machine. The first variant has no `judgement`.
    """

    variant: Variant
    figures: tuple[Measured | None, ...]
    judgement: VariantJudgement | None
    record: str
    topology: str
    noisy: int = 0

    @property
    def measured(self) -> list[Measured]:
        """The figures without gaps."""
        return [each for each in self.figures if each is not None]

    def as_record(self) -> dict[str, Any]:
        """In JSON types."""
        judged = self.judgement
        return {
            "name": self.variant.name,
            "chain": asdict(with_forwarder(self.variant.chain)),
            "placement": str(self.variant.placement) or None,
            "hooks": [each.as_record() for each in self.variant.hooks],
            "topology": self.topology,
            "record": self.record,
            "figures": [None if each is None else each.value for each in self.figures],
            "lower_bounds": sum(each.lower_bound for each in self.measured),
            "noisy": self.noisy,
            "judgement": None if judged is None else _judgement(judged),
        }


def _judgement(judged: VariantJudgement) -> dict[str, Any]:
    change = judged.change
    decided = judged.verdict is VariantVerdict.NO_DIFFERENCE and change is not None
    return {
        "verdict": judged.verdict.value,
        "sentence": judged.sentence,
        "rounds": judged.rounds,
        "share": None if change is None else change.share,
        "low": None if change is None else _finite(change.low),
        "high": None if change is None else _finite(change.high),
        "no_difference_larger_than": change.largest if decided and change is not None else None,
    }


def _finite(share: float) -> float | None:
    """A share, or None at an open end of an interval."""
    return share if -1 < share < float("inf") else None


@dataclass(frozen=True)
class ComparisonOutcome:
    """A comparison with its verdicts. `relevant` is the change that counts, as a share. Times are seconds since 1970.

    `ended`: each variant has a verdict; all rounds were measured; the tester is not believed; the figures are
    exact, so that one of each variant is enough; or the user interrupted the comparison.
    """

    comparison: VariantComparison
    metric: Metric
    relevant: float
    variants: tuple[VariantResult, ...]
    ended: Ended
    started: float
    finished: float
    orders: tuple[tuple[str, ...], ...] = ()
    looked: tuple[Looked, ...] = ()
    seed: int | None = None
    remarks: tuple[str, ...] = field(default=())

    @property
    def exact(self) -> bool:
        """Whether the figures have no noise."""
        return self.ended == "exact" or (self.seed is None and self.ended == "interrupted")

    @property
    def verdict(self) -> VariantVerdict:
        """The worst verdict on a variant."""
        found = [each.judgement.verdict for each in self.variants if each.judgement is not None]
        return min(found, key=list(VariantVerdict).index, default=VariantVerdict.UNDECIDED)

    @property
    def sentence(self) -> str:
        """The judgement on each variant, the first one's name before it if there are several."""
        told = [(each.variant.name, each.judgement) for each in self.variants if each.judgement is not None]
        first = self.comparison.variants[0].name
        return "; ".join(f"{name} beside {first}: {judged.sentence}" for name, judged in told) or "nothing was measured"

    def to_json(self) -> dict[str, Any]:
        """The document, in JSON types only (result.schema.json)."""
        return {
            "schema_version": SCHEMA_VERSION,
            "name": self.comparison.name,
            "description": self.comparison.description,
            "path": str(self.comparison.path),
            "started": _moment(self.started),
            "finished": _moment(self.finished),
            "metric": self.metric.name,
            "unit": self.metric.quantity.key,
            "frame": self.comparison.frame.name,
            "relevant": self.relevant,
            "confidence": None if self.exact else CONFIDENCE,
            "verdict": self.verdict.value,
            "sentence": self.sentence,
            "ended": self.ended,
            "seed": self.seed,
            "most_rounds": None if self.exact else self.comparison.rounds,
            "variants": [each.as_record() for each in self.variants],
            "orders": [list(each) for each in self.orders],
            "looks": [_looked(each) for each in self.looked],
            "remarks": list(self.remarks),
        }


def of_rounds(
    found: RoundsSoFar,
    comparison: VariantComparison,
    metric: Metric,
    relevant: float,
    topology: str,
    record: str,
    noisy: Mapping[str, int],
    started: float,
    finished: float,
    *,
    interrupted: bool = False,
    remarks: Sequence[str] = (),
) -> ComparisonOutcome:
    """The result of interleaved rounds on one testbed."""
    first = comparison.variants[0].name
    variants = tuple(
        VariantResult(
            each,
            tuple(one.figures.get(each.name) for one in found.rounds),
            None if each.name == first else found.judgement(each.name),
            record,
            topology,
            noisy.get(each.name, 0),
        )
        for each in comparison.variants
    )
    ended: Ended = "doubt" if found.doubt else "decided" if found.decided else "all rounds"
    ended = "interrupted" if interrupted else ended
    orders = tuple(tuple(each.figures) for each in found.rounds)
    return ComparisonOutcome(
        comparison,
        metric,
        relevant,
        variants,
        ended,
        started,
        finished,
        orders,
        found.looked,
        found.seed,
        tuple(remarks),
    )


def exact_outcome(
    comparison: VariantComparison, found: Sequence[VariantResult], started: float, *, interrupted: bool = False
) -> ComparisonOutcome:
    """The result of figures without noise, one of each variant. An interrupted comparison has only some of them."""
    metric, relevant = comparison.metric_on(counted=True), comparison.relevant_on(counted=True)
    judged = [
        replace(each, judgement=judge_exact(metric, found[0].measured[0].value, each.measured[0].value, relevant))
        if number
        else each
        for number, each in enumerate(found)
    ]
    ended: Ended = "interrupted" if interrupted else "exact"
    return ComparisonOutcome(comparison, metric, relevant, tuple(judged), ended, started, time.time())


def _looked(found: Looked) -> dict[str, Any]:
    return {"variant": found.variant, "error": found.look.error, **_judgement(found.judgement)}


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
