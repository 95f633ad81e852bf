"""Describes a comparison: the values of its file, and its result, also if it was interrupted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from podperf.dataplanes import with_forwarder
from podperf.experiments.before_after import VariantJudgement, VariantVerdict, judge_exact
from podperf.experiments.contender import Contender
from podperf.experiments.ratio_interval import CONFIDENCE
from podperf.experiments.rounds import Looked
from podperf.metrics import METRICS, Measured, Metric
from podperf.model import Direction, FrameSize

RELEVANT, RELEVANT_COST = 0.05, 0.001  # shares. A counted machine repeats a figure within a few instructions


@dataclass(frozen=True)
class VariantComparison:
    """The values of a comparison file. Its variants are compared with the first one.

    `path` is None if podperf made the comparison itself. `metric` and `relevant` (a share) are None if the file leaves
    them to the testbed. `trial_seconds` are those of a trial of MRR.
    """

    path: Path | None
    name: str
    description: str
    variants: tuple[Contender, ...]
    frame: FrameSize
    flows: int | None = None
    directions: tuple[Direction, ...] | None = None
    topology: Path | None = None
    metric: Metric | None = None
    relevant: float | None = None
    rounds: int = 40
    trial_seconds: float = 0.5

    def metric_on(self, *, counted: bool) -> Metric:
        """The metric on a counted machine, or on another testbed."""
        return self.metric or METRICS["cost" if counted else "mrr"]

    def relevant_on(self, *, counted: bool) -> float:
        """A difference counts if it is larger than this share."""
        return self.relevant if self.relevant is not None else RELEVANT_COST if counted else RELEVANT

    @property
    def machines_of_their_own(self) -> bool:
        """Whether any variant names its own topology."""
        return any(variant.topology for variant in self.variants)


SCHEMA_VERSION = 1
EndOfComparison = Literal["decided", "all rounds", "doubt", "exact", "interrupted"]


@dataclass(frozen=True)
class VariantResult:
    """The figures of one variant: one for each round, None after the variant was decided, or one on a counted machine.

    `record` is the id of the record with the trials. `noisy` counts figures from a noisy machine. The first variant has
    no `judgement`.
    """

    variant: Contender
    figures: tuple[Measured | None, ...]
    judgement: VariantJudgement | None
    record: str
    topology: str
    noisy: int = 0

    @property
    def measured(self) -> list[Measured]:
        """The figures without gaps."""
        return [figure for figure in self.figures if figure is not None]

    def as_record(self) -> dict[str, Any]:
        """In JSON types."""
        judged = self.judgement
        return {
            "name": self.variant.name,
            "chain": asdict(with_forwarder(self.variant.chain)),
            "placement": str(self.variant.placement) or None,
            **({"traffic": self.variant.traffic} if self.variant.traffic else {}),
            **({"tester": dict(self.variant.tester)} if self.variant.tester else {}),
            "hooks": [hook.as_record() for hook in self.variant.hooks],
            "topology": self.topology,
            "record": self.record,
            "figures": [None if figure is None else figure.value for figure in self.figures],
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

    `ended`: each variant has a verdict; all rounds were measured; the tester is not believed; one exact figure of each
    variant is enough; or the user interrupted the comparison.
    """

    comparison: VariantComparison
    metric: Metric
    relevant: float
    variants: tuple[VariantResult, ...]
    ended: EndOfComparison
    started: float
    finished: float
    orders: tuple[tuple[str, ...], ...] = ()
    looked: tuple[Looked, ...] = ()
    seed: int | None = None
    remarks: tuple[str, ...] = field(default=())
    doubt: str = ""  # why the figures may not describe the variants

    @property
    def exact(self) -> bool:
        """Whether the figures have no noise."""
        return self.ended == "exact" or (self.seed is None and self.ended == "interrupted")

    @property
    def verdict(self) -> VariantVerdict:
        """The worst verdict on a variant."""
        found = [variant.judgement.verdict for variant in self.variants if variant.judgement is not None]
        return min(found, key=list(VariantVerdict).index, default=VariantVerdict.UNDECIDED)

    @property
    def sentence(self) -> str:
        """The judgement on each variant, the first one's name before it if there are several."""
        told = [(variant.variant.name, variant.judgement) for variant in self.variants if variant.judgement is not None]
        first = self.comparison.variants[0].name
        return "; ".join(f"{name} beside {first}: {judged.sentence}" for name, judged in told) or "nothing was measured"

    def to_json(self) -> dict[str, Any]:
        """The document, in JSON types only (comparison.schema.json)."""
        return {
            "schema_version": SCHEMA_VERSION,
            "name": self.comparison.name,
            "description": self.comparison.description,
            "path": None if self.comparison.path is None else str(self.comparison.path),
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
            "variants": [variant.as_record() for variant in self.variants],
            "orders": [list(order) for order in self.orders],
            "looks": [_looked(each) for each in self.looked],
            "remarks": list(self.remarks),
        }


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
    ended: EndOfComparison = "interrupted" if interrupted else "exact"
    return ComparisonOutcome(comparison, metric, relevant, tuple(judged), ended, started, time.time())


def _looked(found: Looked) -> dict[str, Any]:
    return {"variant": found.variant, "error": found.look.error, **_judgement(found.judgement)}


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
