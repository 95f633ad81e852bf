"""All rows of a run as one figure. A change that is too small for each row alone is found in their mean. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from podperf.history.fingerprint import Fingerprint
from podperf.history.judgement import comparable
from podperf.history.trends import Point, Row
from podperf.metrics import Measured, Metric

SUITE = "rows together"
LEAST_ROWS = 3
_ROUNDS = 50  # of the fit at most: a table without gaps needs two
_EXACT = 1e-6  # of a logarithm: the fit ends when no run moves by more
_SAME: Fingerprint = {}


def rows_together(rows: Sequence[Row]) -> list[Row]:
    """A further row for each testbed, data plane and networking model with LEAST_ROWS rows or more.

    Its figure in a run is the geometric mean of the rows in that run. Rows of one run share its machine, so they vary
    together. The mean of a run is one figure of a history like any other: how much it varies from run to run tells how
    sure a change is, whether or not rows depend on each other.
    """
    parts: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        for name in dict.fromkeys(("all rows", f"all rows of {row.data_plane}", f"all {row.model} rows")):
            parts.setdefault((row.testbed, name), []).append(row)
    seen, found = set[tuple[int, ...]](), list[Row]()
    for (testbed, name), members in parts.items():
        if (same := tuple(map(id, members))) in seen:  # the only data plane of a model
            continue
        seen.add(same)
        metrics = dict.fromkeys(metric for row in members for metric in row.trends if not metric.quantity.resolution)
        trends = {metric: points for metric in metrics if (points := _mean(members, metric))}
        if trends:
            found.append(Row(testbed, SUITE, name, trends, "passed", ""))
    return found


def _mean(rows: Iterable[Row], metric: Metric) -> Sequence[Point]:
    """The points of the mean of one metric. Empty with fewer than LEAST_ROWS rows that the newest run can compare."""
    series = [list(comparable(row.trends[metric])) for row in rows if row.outcome and row.trends.get(metric)]
    series = [points for points in series if points[-1].judged is not None]
    if len(series) < LEAST_ROWS:
        return []
    runs: dict[str, Point] = {}
    for points in series:
        for point in points:
            if point.judged is not None and (point.run not in runs or point.started < runs[point.run].started):
                runs[point.run] = point
    logarithms = [
        {point.run: math.log(point.judged) for point in points if point.judged is not None} for points in series
    ]
    means = run_means(logarithms)
    return [
        Point(name, first.started, first.version, _SAME, Measured(math.exp(means[name])))
        for name, first in sorted(runs.items(), key=lambda item: item[1].started)
    ]


def run_means(rows: Sequence[Mapping[str, float]]) -> Mapping[str, float]:
    """The mean of all rows in each run. `rows` have a figure by run, with gaps.

    A run without a row of large figures must not look smaller. So a figure is taken as the sum of its row's level and
    of its run's deviation, both fitted to the figures that are there (least squares).
    """
    deviations = dict.fromkeys((run for row in rows for run in row), 0.0)
    levels = [0.0] * len(rows)
    for _ in range(_ROUNDS):
        levels = [statistics.fmean(figure - deviations[run] for run, figure in row.items()) for row in rows]
        with_levels = list(zip(rows, levels, strict=True))
        fitted = {
            run: statistics.fmean(row[run] - level for row, level in with_levels if run in row) for run in deviations
        }
        moved = max(abs(fitted[run] - deviations[run]) for run in deviations)
        deviations = fitted
        if moved < _EXACT:
            break
    return {run: statistics.fmean(levels) + deviation for run, deviation in deviations.items()}
