"""The figures of a history: one for each test, metric and run, oldest first. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from podperf.history.fingerprint import Fingerprint, fingerprint
from podperf.history.runs import PastRun, TestKey, test_of
from podperf.methods.cost import BURSTS
from podperf.methods.functions import Functions, with_tester_apart
from podperf.metrics import METRICS, Measured, Metric
from podperf.records import Record
from podperf.records.recorded import RecordedNoise


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
    functions: Functions = field(default_factory=dict)  # of a counted figure; empty where the record does not tell

    @property
    def judged(self) -> float | None:
        """The figure if it can be compared, otherwise None."""
        return self.figure.value if self.figure and not self.doubtful else None


@dataclass(frozen=True)
class Row:
    """One test on one testbed. `trends` has the points of each metric. `outcome` and `reason` are those of the newest
    run. `data_plane` and `model` are empty for a test without a chain. `missing_since` is the run before the newest one
    on this testbed, if that run has the test and the newest one has not.

    `outcome` is empty if the newest run on this testbed has not run the test.
    """

    testbed: str
    suite: str
    name: str
    trends: Mapping[Metric, Sequence[Point]]
    outcome: str
    reason: str
    data_plane: str = ""
    model: str = ""
    missing_since: str = ""


def rows_of(runs: Sequence[PastRun], ignored: Collection[str] = ()) -> list[Row]:
    """Every test that ever had a figure, in the order of the first run that has it. `ignored`: see `fingerprint`."""
    tests: dict[TestKey, list[tuple[PastRun, Record]]] = {}
    on_testbed: dict[str, list[PastRun]] = {}
    for run in runs:
        for record in run.records:
            key = test_of(record)
            tests.setdefault(key, []).append((run, record))
            known = on_testbed.setdefault(key[0], [])
            known += [run] if run not in known[-1:] else []
    rows = []
    for (testbed, suite, name), found in tests.items():
        metrics = [metric for metric in METRICS.values() if any(metric.name in record.figures for _, record in found)]
        if not metrics:
            continue
        run, last = found[-1]
        *_, before, newest = [None, *on_testbed[testbed]]
        here = run is newest
        missing_since = run.name if run is before else ""
        trends = {metric: _points(found, metric, ignored) for metric in metrics}
        outcome, reason = (last.outcome, last.reason) if here else ("", "")
        data_plane = last.chain.data_plane if last.chain else ""
        model = last.networking_model or ""
        rows.append(Row(testbed, suite, name, trends, outcome, reason, data_plane, model, missing_since))
    return rows


def testbeds(runs: Iterable[PastRun]) -> Mapping[str, PastRun]:
    """The newest run on each testbed."""
    return {record.testbed_name: run for run in runs for record in run.records}


def doubt_of(record: Record, metric: Metric) -> str:
    """Why no history judges this figure of the record. Empty if one does, or if there is no figure."""
    figure = _figure(record, metric)
    if figure is None:
        return ""
    found = record.tester_limits.faults if record.tester_limits else ()
    faults = [each.sentence for each in found if each.kind != "stamps"]  # a record has no latency with those
    if faults:
        return f"faulty tester: {'; '.join(faults)}"
    if figure.doubt:
        return figure.doubt
    if figure.lower_bound and not record.sender_forwards:
        return record.limit
    if figure.upper_bound or figure.unfinished:
        return "the search found a bound, no figure"
    # Other work on the machine does not change a count.
    return "" if metric.quantity.resolution else _noise(record, metric)


def _points(found: Iterable[tuple[PastRun, Record]], metric: Metric, ignored: Collection[str]) -> list[Point]:
    points = []
    for run, record in found:
        if record.outcome == "skipped":
            continue
        figure = _figure(record, metric)
        why = record.reason or f"the test has {record.outcome}, and there is no figure"
        points.append(
            Point(
                run.name,
                record.started,
                record.version_under_test,
                fingerprint(record, metric, ignored),
                figure,
                doubt_of(record, metric),
                why if figure is None else "",
                _functions(record, metric),
            )
        )
    return points


def _figure(record: Record, metric: Metric) -> Measured | None:
    """A figure of 0 is no figure, because no frame came back."""
    found = record.figures.get(metric.name)
    return found if found and found.value > 0 else None


def _functions(record: Record, metric: Metric) -> Functions:
    bursts = record.method(metric.method).get("bursts") or () if metric.quantity.resolution else ()
    found = (each.get("functions") or {} for each in bursts if BURSTS.get(each["frames"]) == metric.name)
    return with_tester_apart(next(found, {}))


def _noise(record: Record, metric: Metric) -> str:
    # A search has the noise of the trials that decided a goal, and another method that of its trials. A record without
    # them has the noise of all trials together.
    method = record.method(metric.method)
    goal = (method.get("goals") or {}).get(metric.label) or {}
    found = goal.get("noise") or method.get("noise")
    noise = RecordedNoise(found.get("noisy"), found.get("reason")) if found else record.quietness
    return f"noisy: {noise.reason or 'other work on the measuring CPUs'}" if noise and noise.noisy else ""
