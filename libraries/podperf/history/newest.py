"""The figures of the newest run that differ from those of earlier runs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podperf.figures import count, signed
from podperf.history.judgement import Judgement, judge
from podperf.history.runs import PastRun, TestKey, test_of
from podperf.history.trends import Point, rows_of
from podperf.methods.functions import in_words
from podperf.metrics import Measured, Metric
from podperf.records import Record

LEAST_SHARE = 0.1  # of a figure that is compared with one earlier figure only. Two runs of one system differ by less
LEAST_WITHOUT_SPREAD = 0.5  # the same, if the figures have no spread of their own: percentiles of latency


@dataclass(frozen=True)
class DifferenceFromEarlier:
    """A figure that differs from earlier ones by this share. `certainty` says from which, and how sure that is.

    `low` and `high` are the ends of the interval around the share, where there are enough runs for one.
    """

    metric: Metric
    share: float
    certainty: str
    low: float | None = None
    high: float | None = None

    @property
    def worse(self) -> bool:
        """Less of what should be much, or more of what should be little."""
        return (self.share < 0) == self.metric.quantity.more_is_better

    @property
    def words(self) -> str:
        """`-5.1 % (-7 % to -3.2 %)`."""
        if self.low is None or self.high is None:
            return signed(self.share)
        return f"{signed(self.share)} ({signed(self.low)} to {signed(self.high)})"


@dataclass(frozen=True)
class BesideEarlier:
    """The newest run beside earlier runs.

    `compared` is the number of its figures with a comparable earlier figure. `differences` has those that differ, by
    test.
    """

    compared: int
    differences: Mapping[TestKey, Sequence[DifferenceFromEarlier]]

    def of(self, record: Record, metric: Metric) -> DifferenceFromEarlier | None:
        """The difference of one figure, if it differs."""
        return next((each for each in self.differences.get(test_of(record), ()) if each.metric is metric), None)


NOTHING_EARLIER = BesideEarlier(0, {})


def compare_newest(earlier: Sequence[PastRun], newest: PastRun) -> BesideEarlier:
    """Judge each figure of the newest run as a history does, or beside the last run if there are too few."""
    wanted = {test_of(record) for record in newest.records}
    compared, found = 0, dict[TestKey, list[DifferenceFromEarlier]]()
    for row in rows_of([*earlier, newest]):
        test = (row.testbed, row.suite, row.name)
        if test not in wanted:
            continue
        for metric in row.trends:
            judgement = judge(row, metric)
            before, now = _last_two(judgement)
            if before is None or now is None:
                continue
            compared += 1
            if difference := _difference(judgement, before, now):
                found.setdefault(test, []).append(difference)
    return BesideEarlier(compared, found)


def _last_two(judgement: Judgement) -> tuple[Point | None, Point | None]:
    """The newest figure and the last one before it that is comparable, where both can be judged."""
    points = judgement.row.trends[judgement.metric]
    if not judgement.row.outcome or not points or points[-1].judged is None:
        return None, None
    judged = [each for each in judgement.series if each.judged is not None]
    return (judged[-2] if len(judged) > 1 else None), judged[-1]


def _difference(judgement: Judgement, before: Point, now: Point) -> DifferenceFromEarlier | None:
    metric, change = judgement.metric, judgement.change
    if change is not None:
        if not change.found:
            return None
        runs = f"{count(change.recent, 'run')} beside {change.reference} before"
        certainty = f"{judgement.verdict}: {runs}{'' if change.confirmed else ': repeat it'}"
        certainty += f"; in {words}" if (words := in_words(judgement.functions)) else ""
        return DifferenceFromEarlier(metric, change.share, certainty, change.low, change.high)
    if before.figure is None or now.figure is None or not _apart(before.figure, now.figure):
        return None
    share = now.figure.value / before.figure.value - 1
    return DifferenceFromEarlier(metric, share, f"one run beside {before.run} alone: too few runs to be sure")


def _apart(before: Measured, now: Measured) -> bool:
    """Whether the spreads of two figures do not meet, and the figures differ by more than two runs usually do."""
    low, high = sorted((before, now), key=lambda each: each.value)
    least = LEAST_WITHOUT_SPREAD if low.high is None or high.low is None else LEAST_SHARE
    return high.value > low.value * (1 + least) and (high.low or high.value) > (low.high or low.value)
