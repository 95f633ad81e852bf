"""The verdict on the newest run of each trend, in words. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from podperf.figures import count, short, signed
from podperf.history.changes import LEAST, LEAST_COUNTED, WINDOW, Change, newest_change, newest_counted_change
from podperf.history.fingerprint import difference
from podperf.history.trends import Point, Row
from podperf.methods.functions import FunctionChange, differences
from podperf.metrics import Metric


class Verdict(StrEnum):
    """The verdicts on a figure of the newest run, the worst first."""

    REGRESSION = "regression"
    FAILED = "failed"
    MISSING = "missing"  # the run before has the test, and the newest run has not
    SUSPECTED = "suspected"  # only one run differs
    ACKNOWLEDGED = "acknowledged"  # a known regression
    PROGRESSION = "progression"
    NO_CHANGE = "no change"
    NOT_COMPARABLE = "not comparable"  # the fingerprint is new
    TOO_FEW = "too few runs"
    NOT_JUDGED = "not judged"  # the figure is noisy, or a bound
    NOT_MEASURED = "not measured"  # the newest run has no figure


NOT_JUDGED = {Verdict.NOT_COMPARABLE, Verdict.NOT_JUDGED, Verdict.NOT_MEASURED}
"""A gate that has no other verdicts sees nothing. (Too few runs: that is how each history begins.)"""


@dataclass(frozen=True)
class Judgement:
    """The verdict on one metric of one test, with a sentence.

    `change` is there where two sets of runs were compared. `beginning` says where the series began, and why, if the
    fingerprint has ever changed. `known` says why a regression is acknowledged, and until when. `accepted` is the point
    that a counted figure is compared with: the last one of the level that was accepted.
    """

    row: Row
    metric: Metric
    verdict: Verdict
    sentence: str
    change: Change | None = None
    beginning: str = ""
    known: str = ""
    accepted: Point | None = None

    @cached_property
    def functions(self) -> Sequence[FunctionChange]:
        """The functions that the change of a counted figure is in, the largest change first. Empty without a change, or
        where a record does not tell."""
        if self.accepted is None or self.change is None or not self.change.found:
            return ()
        before, after = self.accepted.functions, self.row.trends[self.metric][-1].functions
        return differences(before, after) if before and after else ()

    @property
    def worse(self) -> bool:
        """Whether the figure became worse, as far as one run or more can tell."""
        return self.change is not None and self.change.found and is_worse(self.change, self.metric)

    @property
    def series(self) -> list[Point]:
        """The points that the newest one is comparable with, itself included."""
        return comparable(self.row.trends[self.metric])


def judge_all(rows: Iterable[Row]) -> list[Judgement]:
    """Every metric of every test."""
    return [judge(row, metric) for row in rows for metric in row.trends]


def judge(row: Row, metric: Metric, accepts: Callable[[float], bool] = lambda _: False) -> Judgement:
    """One metric of one test. `accepts`: see `newest_counted_change`."""
    points = row.trends[metric]
    if row.missing_since:
        return Judgement(row, metric, Verdict.MISSING, f"the newest run has no such test, and {row.missing_since} has")
    if row.outcome in {"", "skipped", "interrupted"} or not points:
        reason = row.reason or "the newest run has no such test"
        return Judgement(row, metric, Verdict.NOT_MEASURED, reason)
    newest = points[-1]
    if newest.figure is None:
        verdict = Verdict.FAILED if row.outcome == "failed" else Verdict.NOT_MEASURED
        return Judgement(row, metric, verdict, newest.failed)
    if newest.judged is None:
        return Judgement(row, metric, Verdict.NOT_JUDGED, newest.doubtful)
    judged = [(each, each.judged) for each in comparable(points) if each.judged is not None]
    figures = [figure for _, figure in judged]
    resolution, new_series = metric.quantity.resolution, beginning(points)
    change = newest_counted_change(figures, resolution, accepts) if resolution else newest_change(figures[-WINDOW:])
    if change is None:
        verdict = Verdict.NOT_COMPARABLE if new_series else Verdict.TOO_FEW
        needed = (LEAST_COUNTED if resolution else LEAST) + 1
        words = f"{count(len(figures), 'run')} to compare; {needed} are needed"
        return Judgement(row, metric, verdict, words, beginning=new_series)
    accepted = None if change.accepted is None else judged[change.accepted][0]
    return Judgement(row, metric, _verdict(change, metric), _sentence(change), change, new_series, accepted=accepted)


def comparable(points: Sequence[Point]) -> list[Point]:
    """The points with the fingerprint of the newest one."""
    return [point for point in points if point.fingerprint == points[-1].fingerprint]


def beginning(points: Sequence[Point]) -> str:
    """The place where the newest series began, and the difference of the fingerprints. Empty if all points have one."""
    for before, after in zip(points[-2::-1], points[:0:-1], strict=True):
        if before.fingerprint != after.fingerprint:
            return f"new series since {after.run}: {difference(before.fingerprint, after.fingerprint)}"
    return ""


def _verdict(change: Change, metric: Metric) -> Verdict:
    if not change.found:
        return Verdict.NO_CHANGE
    if not change.confirmed:
        return Verdict.SUSPECTED
    return Verdict.REGRESSION if is_worse(change, metric) else Verdict.PROGRESSION


def is_worse(change: Change, metric: Metric) -> bool:
    """Less of a metric of which more is better, or more of one of which less is better."""
    return (change.share < 0) == metric.quantity.more_is_better


def _sentence(change: Change) -> str:
    runs = f"{count(change.recent, 'run')} beside {change.reference} before"
    if not change.found:
        return f"no change larger than {short(change.most * 100)} % ({runs})"
    words = f"{signed(change.share)} ({signed(change.low)} to {signed(change.high)}; {runs})"
    return words if change.confirmed else f"{words}; one run alone: repeat it"
