"""The figures of a history: one for each test, metric and run, oldest first. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from podperf.history.fingerprint import Fingerprint, fingerprint
from podperf.history.runs import PastRun, TestKey, test_of, testbed_of
from podperf.metrics import METRICS, Measured, Metric
from podperf.records import Record


@dataclass(frozen=True)
class Point:
    """One metric in one run. A figure is judged if it is not `doubtful`.

    `figure` is None if the test failed, or was interrupted before it had a figure. This is not a rate of 0.
    """

    run: str
    started: str
    version: str  # the user's name of the version under test; empty without such a name
    fingerprint: Fingerprint
    figure: Measured | None
    doubtful: str = ""  # the reason why the figure, if there is one, says nothing about the system under test
    failed: str = ""  # the reason why the test failed and has no figure

    @property
    def judged(self) -> float | None:
        """The figure if it can be compared, otherwise None."""
        return self.figure.value if self.figure and not self.doubtful else None


@dataclass(frozen=True)
class Row:
    """One test on one testbed. `trends` has the points of each metric. `outcome` and `reason` are those of the newest
    run.

    `outcome` is empty if the newest run on this testbed has not run the test.
    """

    testbed: str
    suite: str
    name: str
    trends: Mapping[Metric, Sequence[Point]]
    outcome: str
    reason: str


def rows_of(runs: Sequence[PastRun], ignored: Collection[str] = ()) -> list[Row]:
    """Every test that ever had a figure, in the order of the first run that has it. `ignored`: see `fingerprint`."""
    tests: dict[TestKey, list[tuple[PastRun, Record]]] = {}
    newest: dict[str, PastRun] = {}
    for run in runs:
        for record in run.records:
            key = test_of(record)
            tests.setdefault(key, []).append((run, record))
            newest[key[0]] = run
    rows = []
    for (testbed, suite, name), found in tests.items():
        metrics = [each for each in METRICS.values() if any(each.name in record["results"] for _, record in found)]
        if not metrics:
            continue
        run, last = found[-1]
        here = run is newest[testbed]
        trends = {each: _points(found, each, ignored) for each in metrics}
        rows.append(Row(testbed, suite, name, trends, last["outcome"] if here else "", last["reason"] if here else ""))
    return rows


def testbeds(runs: Iterable[PastRun]) -> Mapping[str, PastRun]:
    """The newest run on each testbed."""
    return {testbed_of(record): run for run in runs for record in run.records}


def doubt_of(record: Record, metric: Metric) -> str:
    """Why no history judges this figure of the record. Empty if one does, or if there is no figure."""
    return _doubt(record, metric, _figure(record, metric))


def _points(found: Iterable[tuple[PastRun, Record]], metric: Metric, ignored: Collection[str]) -> list[Point]:
    points = []
    for run, record in found:
        if record["outcome"] == "skipped":
            continue
        figure = _figure(record, metric)
        failed = _reason(record) if figure is None else ""
        points.append(
            Point(
                run.name,
                str(record["started"]),
                str(record.get("version_under_test") or ""),
                fingerprint(record, metric, ignored),
                figure,
                doubt_of(record, metric),
                failed,
            )
        )
    return points


def _figure(record: Record, metric: Metric) -> Measured | None:
    """A figure of 0 is no figure, because no frame came back."""
    found = record["results"].get(metric.name)
    if not found or found[metric.quantity.key] <= 0:
        return None
    bounds = {name: bool(found.get(name)) for name in ("lower_bound", "upper_bound", "unfinished")}
    key = metric.quantity.key
    return Measured(float(found[key]), found.get(f"low_{key}"), found.get(f"high_{key}"), **bounds)


def _reason(record: Record) -> str:
    return str(record["reason"]) or f"the test has {record['outcome']}, and there is no figure"


def _doubt(record: Record, metric: Metric, figure: Measured | None) -> str:
    if figure is None:
        return ""
    faults = [str(each["sentence"]) for each in (record["tester_limits"] or {}).get("faults", ())]
    if faults:
        return f"faulty tester: {'; '.join(faults)}"
    if figure.lower_bound:
        return "the tester was the limit"
    if figure.upper_bound or figure.unfinished:
        return "the search found a bound, no figure"
    # Other work on the machine does not change a count.
    return "" if metric.quantity.resolution else _noise(record, metric)


def _noise(record: Record, metric: Metric) -> str:
    # Each method has watched its own trials; a record of another method has the noise of all trials together.
    noise = (record["methods"].get(metric.method) or {}).get("noise") or record["quietness"]
    if isinstance(noise, Mapping) and noise.get("noisy"):
        return f"noisy: {noise.get('reason') or 'other work on the measuring CPUs'}"
    return ""
