"""Thresholds from runs: the bound that a further run misses once in so many runs, if nothing changes. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from podperf.history.changes import LEAST
from podperf.history.judgement import comparable
from podperf.history.runs import PastRun, test_of
from podperf.history.student import quantile
from podperf.history.trends import Row, rows_of
from podperf.metrics import Metric
from podperf.model import FrameSize
from podperf.records import Record


@dataclass(frozen=True)
class Bound:
    """The bound of one metric for the tests that a threshold's selectors choose; `amount` is in the record's unit.

    It is None where there are fewer than LEAST figures of equal fingerprint that can be judged.
    """

    metric: Metric
    data_plane: str
    pods: int
    frame: FrameSize
    tests: tuple[str, ...]
    runs: int
    median: float = 0.0
    deviation: float = 0.0  # a share of the median
    amount: float | None = None


def _amount(figures: Sequence[float], metric: Metric, once_in: int) -> float:
    """The bound. A counted figure may differ from the others by its resolution, also if all others are equal."""
    least, resolution = metric.quantity.more_is_better, metric.quantity.resolution
    amount = prediction(figures, once_in, least=least)
    if resolution is None:
        return amount
    reach = resolution.of(statistics.median(figures))
    return min(amount, min(figures) - reach) if least else max(amount, max(figures) + reach)


def prediction(figures: Sequence[float], once_in: int, *, least: bool) -> float:
    """The bound that the next figure misses with a probability of 1 / `once_in`, if all are of one normal population.

    `least` asks for the lower bound. The bound is never below 0.
    """
    mean, deviation = statistics.fmean(figures), statistics.stdev(figures)
    reach = quantile(1 - 2 / once_in, len(figures) - 1) * deviation * math.sqrt(1 + 1 / len(figures))
    return max(0.0, mean - reach) if least else mean + reach


def bounds(runs: Sequence[PastRun], once_in: int) -> list[Bound]:
    """One for each metric and each choice of data plane, pods and frame.

    Tests that the selectors cannot tell apart, such as those of two forwarders, have one bound: the weakest of theirs.
    """
    newest = {test_of(each): each for run in runs for each in run.records}
    found: dict[tuple[str, str, int, str], list[Bound]] = {}
    for row in rows_of(runs):
        record = newest[row.testbed, row.suite, row.name]
        if record["chain"] and record["traffic"]:
            for metric in row.trends:
                each = _bound(row, metric, record, once_in)
                found.setdefault((each.data_plane, metric.name, each.pods, each.frame.name), []).append(each)
    return [_weakest(each) for each in found.values()]


def _bound(row: Row, metric: Metric, record: Record, once_in: int) -> Bound:
    points = row.trends[metric]
    figures = [each.judged for each in comparable(points) if each.judged is not None] if points else []
    frame, chain = record["traffic"]["frame"], record["chain"]
    size = FrameSize(frame["name"], tuple(frame["sequence"]))
    bound = Bound(metric, chain["data_plane"], chain["pods"], size, (row.name,), len(figures))
    if len(figures) < LEAST:
        return bound
    median = statistics.median(figures)
    return replace(
        bound,
        median=median,
        deviation=statistics.stdev(figures) / median,
        amount=_amount(figures, metric, once_in),
    )


def _weakest(several: Sequence[Bound]) -> Bound:
    known = [each for each in several if each.amount is not None]
    if len(known) < len(several):
        return next(each for each in several if each.amount is None)
    choose = min if several[0].metric.quantity.more_is_better else max
    return choose(known, key=lambda each: each.amount or 0.0)
