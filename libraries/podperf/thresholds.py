"""Judges figures by the testbed's thresholds. Pure.

Rates are in frames per second and per direction, latencies in nanoseconds. A threshold is in the unit of its topology.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from podperf.figures import percent, short
from podperf.metrics import METRICS, RATIO, Measured, Metrics
from podperf.model import Chain, FrameSize
from podperf.topology import Threshold


class Status(StrEnum):
    """The verdict on one threshold, or on all thresholds of a test."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"  # the result is only a bound, or unfinished, and the limit is beyond it
    NOT_JUDGED = "not judged"  # the result or the baseline to compare with is missing
    NO_THRESHOLD = "no threshold"  # frames crossed, and the topology has no limit for their rate


@dataclass(frozen=True)
class ThresholdOutcome:
    """One threshold and its verdict. `measured` and `limit` are in `unit`; None: unknown."""

    metric: str
    unit: str
    status: Status
    sentence: str
    measured: float | None = None
    limit: float | None = None


@dataclass(frozen=True)
class ThresholdVerdict:
    """All thresholds of one test together."""

    status: Status
    sentence: str
    outcomes: tuple[ThresholdOutcome, ...] = ()

    @property
    def failed(self) -> bool:
        """True if the test must fail."""
        return self.status is Status.FAILED


def applicable(thresholds: Sequence[Threshold], chain: Chain, frame: FrameSize) -> tuple[Threshold, ...]:
    """The thresholds whose selectors (data plane, pods, frame) all match. An unset selector matches everything."""
    return tuple(
        threshold
        for threshold in thresholds
        if threshold.data_plane in (None, chain.data_plane)
        and threshold.pods in (None, chain.pods)
        and (threshold.frame is None or threshold.frame.sequence == frame.sequence)
    )


def judge(
    thresholds: Sequence[Threshold],
    frame: FrameSize,
    metrics: Metrics,
    baseline: Metrics | None,
    *,
    noise: str | None = None,
    doubts: Mapping[str, str] = MappingProxyType({}),
    badly_delivered: str = "",
) -> ThresholdVerdict:
    """The verdict on one test's figures by the thresholds that apply to it.

    `baseline` has the same run's figures of the bare path (`wire`) at the same frame size; None: there are none.
    `noise` is the reason why the machine was not quiet, or None. A failure on a noisy machine stays a failure, and its
    sentence has the reason. `doubts` has, by metric, the reason why a figure does not describe the system. Such a
    figure is not judged, and neither is a figure with a doubt of its own. `badly_delivered` says that too many frames
    arrived in another way than they were sent. The test fails then, whatever its figures are.
    """
    doubts = {**{name: each.doubt for name, each in metrics.items() if each.doubt}, **doubts}
    outcomes = tuple(
        _judge_one(threshold, frame, metrics, baseline, noise, doubts.get(threshold.metric)) for threshold in thresholds
    )
    if badly_delivered:
        missed = [outcome.sentence for outcome in outcomes if outcome.status is Status.FAILED]
        return ThresholdVerdict(Status.FAILED, "; ".join([badly_delivered, *missed]), outcomes)
    if not outcomes:
        none = "no threshold applies: frames crossed, and their number is not judged"
        return ThresholdVerdict(Status.NO_THRESHOLD, none)
    found = {outcome.status for outcome in outcomes}
    # One failure decides. A threshold that was not judged does not pass, and does not change the verdict of the others.
    severity = (Status.FAILED, Status.INCONCLUSIVE, Status.PASSED, Status.NOT_JUDGED)
    status = next(each for each in severity if each in found)
    said = {status, Status.NOT_JUDGED}
    sentences = [outcome.sentence for outcome in outcomes if outcome.status in said and outcome.metric not in doubts]
    doubted: dict[str, dict[str, None]] = {}  # names of metrics, once each, by the doubt about them
    for outcome in outcomes:
        if outcome.metric in doubts:
            doubted.setdefault(doubts[outcome.metric], {})[METRICS[outcome.metric].label] = None
    sentences += [f"{', '.join(names)} not judged: {doubt}" for doubt, names in doubted.items()]
    return ThresholdVerdict(status, "; ".join(sentences), outcomes)


def _judge_one(
    threshold: Threshold,
    frame: FrameSize,
    metrics: Metrics,
    baseline: Metrics | None,
    noise: str | None,
    doubt: str | None,
) -> ThresholdOutcome:
    name = METRICS[threshold.metric].label
    limit = threshold.minimum if threshold.minimum is not None else threshold.maximum

    def not_judged(why: str) -> ThresholdOutcome:
        sentence = f"{name} not judged: {why}"
        return ThresholdOutcome(threshold.metric, threshold.unit, Status.NOT_JUDGED, sentence, limit=limit)

    if limit is None:
        return not_judged("the threshold names neither a minimum nor a maximum")
    if doubt is not None:
        return not_judged(doubt)
    result = metrics.get(threshold.metric)
    if result is None:
        return not_judged(f"this test has no {name}")
    reference = None
    if threshold.unit == RATIO:
        reference = (baseline or {}).get(threshold.metric)
        if reference is None or reference.value <= 0:
            return not_judged(f"baseline missing (no {name} of `wire` at {frame.name} in this run)")
        if reference.unfinished or reference.upper_bound or reference.doubt:
            unsure = "has a doubtful result" if reference.doubt else "found no load that passes"
            why = "was not finished" if reference.unfinished else unsure
            return not_judged(f"baseline not known (the search for the {name} of `wire` {why})")

    least, measured, most = (
        in_unit(each, threshold, frame, reference) for each in (result.least, result.value, result.most)
    )
    at_least = threshold.minimum is not None
    # A bound proves only one side. It can show that the real figure is high enough or too high, not how high it is.
    met, missed = (least >= limit, most < limit) if at_least else (most <= limit, least > limit)
    status = Status.PASSED if met else Status.FAILED if missed else Status.INCONCLUSIVE

    asked = f"{'at least' if at_least else 'at most'} {_amount(limit, threshold.unit)} was asked for"
    sentence = f"{name} {result.bounded(_amount(measured, threshold.unit))}, {asked}: {status}"
    if status is Status.INCONCLUSIVE:
        sentence += f", {_why_open(result)}"
    if status is Status.FAILED and noise:
        sentence += f" (the machine was noisy: {noise})"
    return ThresholdOutcome(threshold.metric, threshold.unit, status, sentence, measured, limit)


def _why_open(result: Measured) -> str:
    """The reason why a figure that is a bound cannot show whether a limit is met."""
    if result.lower_bound:
        return "the figure is a lower bound"
    return "the search was not finished" if result.unfinished else "below the lowest load that was tried"


def in_unit(value: float, threshold: Threshold, frame: FrameSize, baseline: Measured | None = None) -> float:
    """An amount of the threshold's metric in the threshold's unit. A ratio needs the baseline."""
    if threshold.unit == RATIO:
        if baseline is None:
            raise ValueError("a ratio needs the baseline's figure")
        return value / baseline.value
    units = METRICS[threshold.metric].quantity.units
    return next(unit for unit in units if unit.name == threshold.unit).of(value, frame)


def _amount(value: float, unit: str) -> str:
    return f"{percent(value)} of the baseline" if unit == RATIO else f"{short(value)} {unit}"
