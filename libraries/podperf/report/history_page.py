"""`podperf report --history FOLDER`: the trend of every figure as one HTML page, and the verdicts as an exit code."""

from __future__ import annotations

import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import podperf
from podperf.errors import ExitCode
from podperf.figures import count, short, signed
from podperf.history.acknowledgements import FILE, acknowledge, read_acknowledgements
from podperf.history.changes import LEAST, WINDOW, Change, Group, groups
from podperf.history.fingerprint import Fingerprint
from podperf.history.judgement import NOT_JUDGED, Judgement, Verdict, judge_all
from podperf.history.runs import History, PastRun, read_history
from podperf.history.together import rows_together
from podperf.history.trends import Point, Row, rows_of, testbeds
from podperf.methods.functions import in_words
from podperf.metrics import Metric
from podperf.printable import printable
from podperf.report import cells, svg
from podperf.report.files import write_file, write_report
from podperf.report.html import (
    NOTHING,
    Content,
    Html,
    TableRow,
    element,
    framed,
    not_read,
    plots,
    table,
    tiles,
    together,
)
from podperf.report.openmetrics import openmetrics
from podperf.report.results import made_of
from podperf.report.xunit import Case
from podperf.terminal import columns


@dataclass(frozen=True)
class HistoryReport:
    """The runs, the verdict on each figure of the newest, and `remarks` about acknowledgements."""

    history: History
    judgements: Sequence[Judgement]
    remarks: Sequence[str] = ()

    @cached_property
    def rows(self) -> Sequence[tuple[Row, Sequence[Judgement]]]:
        """Every test with its judgements, in the order of the history."""
        found: dict[int, tuple[Row, list[Judgement]]] = {}
        for judgement in self.judgements:
            found.setdefault(id(judgement.row), (judgement.row, []))[1].append(judgement)
        return list(found.values())

    def name_of(self, row: Row) -> str:
        """The test's name, with its testbed if there are several testbeds."""
        return f"{row.name} ({row.testbed})" if self._several_testbeds and row.testbed else row.name

    @cached_property
    def beginnings(self) -> Mapping[str, Sequence[str]]:
        """The places where series of the newest run began, and the reasons, with the names of the tests."""
        found: dict[str, dict[str, None]] = {}
        for judgement in self.judgements:
            if judgement.beginning:
                found.setdefault(judgement.beginning, {})[self.name_of(judgement.row)] = None
        return {words: list(names) for words, names in found.items()}

    def anchor(self, row: Row) -> str:
        """The id of the test's place on the page."""
        return f"test-{self._numbers[id(row)]}"

    @cached_property
    def _several_testbeds(self) -> bool:
        return len(testbeds(self.history.runs)) > 1

    @cached_property
    def _numbers(self) -> Mapping[int, int]:
        return {id(row): number for number, (row, _) in enumerate(self.rows, 1)}


SCHEMA_VERSION = 1
_WIDEST = 120  # columns of a line that is easy to read
_LEAST = 40  # columns, also if the terminal has fewer
_HEAD = max(map(len, Verdict)) + 2
_INDENT = "    "


def history_table(report: HistoryReport, width: int) -> str:
    """Every test with a verdict, the worst first; the reasons why series began; the number of figures with each
    verdict."""
    lines = []
    for verdict in Verdict:
        for row, judgements in report.rows:
            found = [judgement for judgement in judgements if judgement.verdict is verdict]
            if found:
                lines += _row_lines(verdict, report.name_of(row), found, width)
    for words, names in report.beginnings.items():
        lines += ["", *_wrapped(f"{'; '.join(names)}:", width), *_wrapped(words, width, _INDENT)]
    verdicts = Counter(judgement.verdict for judgement in report.judgements)
    told = ", ".join(f"{verdicts[each]} {each}" for each in Verdict if verdicts[each])
    runs = report.history.runs
    closing = f"{count(len(runs), 'run')}; {count(len(report.judgements), 'figure')} of the newest: {told or 'none'}"
    notes = [*report.remarks, *(f"not read: {problem}" for problem in report.history.problems)]
    return "\n".join([*lines, "", *_wrapped(closing, width), *notes]).lstrip("\n")


def _row_lines(verdict: Verdict, name: str, judgements: Sequence[Judgement], width: int) -> list[str]:
    """The verdict and the test, then a line for each sentence about some of its metrics."""
    said: dict[str, list[str]] = {}
    for judgement in judgements:
        # For the many figures without a change the size is enough.
        quiet = f"{short(judgement.change.most * 100)} %" if judgement.change and verdict is Verdict.NO_CHANGE else ""
        said.setdefault(quiet or judgement.sentence, []).append(judgement.metric.label)
    if verdict is Verdict.NO_CHANGE:
        sizes = ", ".join(f"{', '.join(labels)} {size}" for size, labels in said.items())
        return _wrapped(f"{verdict.ljust(_HEAD)}{name}: none larger than {sizes}", width, hanging=" " * _HEAD)
    lines = [f"{verdict.ljust(_HEAD)}{name}"]
    for words, labels in said.items():
        lines += _wrapped(f"{', '.join(labels)}: {words}", width, " " * _HEAD)
    by_function: dict[str, list[str]] = {}
    for judgement in judgements:
        if words := in_words(judgement.functions):
            by_function.setdefault(words, []).append(judgement.metric.label)
    for words, labels in by_function.items():
        lines += _wrapped(f"{', '.join(labels)}, by function: {words}", width, " " * _HEAD)
    for known in dict.fromkeys(judgement.known for judgement in judgements if judgement.known):
        lines += _wrapped(known, width, " " * _HEAD)
    return lines


def to_json(report: HistoryReport) -> dict[str, Any]:
    """The report as data, with every figure that was compared."""
    return {
        "schema_version": SCHEMA_VERSION,
        "runs": [{"name": each.name, "started": each.started} for each in report.history.runs],
        "newest": {testbed: run.name for testbed, run in testbeds(report.history.runs).items()},
        "problems": list(report.history.problems),
        "remarks": list(report.remarks),
        "figures": [_figure_to_json(judgement) for judgement in report.judgements],
    }


def _wrapped(text: str, width: int, indent: str = "", hanging: str = "") -> list[str]:
    size = max(_LEAST, min(width, _WIDEST))
    return textwrap.wrap(text, size, initial_indent=indent, subsequent_indent=indent or hanging, break_on_hyphens=False)


def _figure_to_json(judgement: Judgement) -> dict[str, Any]:
    row = judgement.row
    return {
        "testbed": row.testbed,
        "suite": row.suite,
        "test": row.name,
        "metric": judgement.metric.name,
        "unit": judgement.metric.quantity.key,
        "verdict": judgement.verdict,
        "worse": judgement.worse,
        "sentence": judgement.sentence,
        "series_began": judgement.beginning or None,
        "known": judgement.known or None,
        "change": judgement.change and _change_to_json(judgement.change),
        "accepted": judgement.accepted and judgement.accepted.run,
        "functions": [{"name": each.name, "change": each.change} for each in judgement.functions],
        "points": [
            {
                "run": each.run,
                "started": each.started,
                "version_under_test": each.version or None,
                "value": each.figure and each.figure.value,
                "not_judged": each.doubtful or None,
                "failed": each.failed or None,
                "comparable": each.fingerprint == row.trends[judgement.metric][-1].fingerprint,
            }
            for each in row.trends[judgement.metric]
        ],
    }


def _change_to_json(change: Change) -> dict[str, Any]:
    return {
        "share": change.share,
        "low": change.low,
        "high": change.high,
        "recent_runs": change.recent,
        "earlier_runs": change.reference,
        "found": change.found,
        "confirmed": change.confirmed,
    }


_BAD = {Verdict.REGRESSION, Verdict.FAILED, Verdict.MISSING}
_UNDECIDED = {Verdict.SUSPECTED, Verdict.TOO_FEW, *NOT_JUDGED}


def cases(report: HistoryReport) -> list[Case]:
    """Each figure as a test case: a regression, a failed and a missing test have failed."""
    return [
        Case(
            judgement.row.suite,
            f"{report.name_of(judgement.row)}: {judgement.metric.label}",
            judgement.verdict,
            _why(judgement),
            "failure" if judgement.verdict in _BAD else "skipped" if judgement.verdict in _UNDECIDED else "passed",
        )
        for judgement in report.judgements
    ]


_TITLE = "What changed, and what did not"
_TOLD = (Verdict.REGRESSION, Verdict.FAILED, Verdict.SUSPECTED, Verdict.ACKNOWLEDGED, Verdict.PROGRESSION)


def history_page(report: HistoryReport) -> str:
    """The whole page."""
    return framed(_TITLE, *_body(report))


def _body(report: HistoryReport) -> Iterator[Html]:
    yield element("h1", _TITLE)
    yield element("p", _said(report.history), class_="muted")
    verdicts = Counter(judgement.verdict for judgement in report.judgements)
    yield tiles({each: verdicts[each] for each in Verdict if verdicts[each]})
    yield not_read(report.history.problems)
    for remark in report.remarks:
        yield element("p", f"{remark[0].upper()}{remark[1:]}.", class_="note")
    told = [judgement for verdict in _TOLD for judgement in report.judgements if judgement.verdict is verdict]
    lines = (
        TableRow((_link(each.row, report), each.metric.label, cells.state(each.verdict), _why(each))) for each in told
    )
    yield element("h2", "What changed")
    yield table(("Test", "Figure", "Verdict", "The newest run beside those before"), lines) or element(
        "p", "Nothing, as far as these runs can tell."
    )
    if beginnings := [TableRow((words, "; ".join(names))) for words, names in report.beginnings.items()]:
        yield element("h2", "What began a new series")
        yield element("p", "Figures before and after are drawn, and not compared.", class_="muted")
        yield table(("From which run, and what changed", "Tests"), beginnings)
    yield element("h2", "Every test")
    for row, judgements in report.rows:
        yield _row(row, judgements, report)
    yield element(
        "footer",
        f"podperf {podperf.__version__}. Only runs of equal fingerprint are compared. A figure is judged when "
        f"{LEAST} or more earlier ones are there. One run alone is no regression: it is suspected.",
    )


def _said(history: History) -> str:
    runs = history.runs
    newest = "; ".join(
        f"newest on {name or 'an unknown testbed'}: {run.name}{_version(run.records[-1].version_under_test)}"
        for name, run in testbeds(runs).items()
    )
    return f"{count(len(runs), 'run')} from {runs[0].started[:10]} to {runs[-1].started[:10]}; {newest}."


def _version(version: Content | None) -> str:
    return f", version under test {version}" if version else ""


def _row(row: Row, judgements: Sequence[Judgement], report: HistoryReport) -> Html:
    worst = min((judgement.verdict for judgement in judgements), key=list(Verdict).index)
    lines = (
        TableRow((judgement.metric.label, cells.state(judgement.verdict), _why(judgement))) for judgement in judgements
    )
    return element(
        "details",
        element("summary", report.name_of(row), " ", cells.state(worst)),
        element(
            "div",
            table(("Figure", "Verdict", "The newest run beside those before"), lines),
            plots(trend_plot(f"{row.name}: {each.label}", each, points) for each, points in row.trends.items()),
            _change_points(row),
            id=report.anchor(row),
        ),
        class_="record trend",
        open="open" if worst in _TOLD else None,
    )


def _why(judgement: Judgement) -> str:
    words = in_words(judgement.functions)
    return "; ".join(filter(None, (judgement.sentence, words and f"by function: {words}", judgement.known)))


def _change_points(row: Row) -> Html:
    """Each step of the means, with the runs between which it lies."""
    lines = []
    for metric, points in row.trends.items():
        found = list(steps(points))
        for (_, last, before), (first, _, after) in pairwise(found):
            if points[last].fingerprint == points[first].fingerprint:
                cells_ = (metric.label, _run(points[last]), _run(points[first]), signed(after.mean / before.mean - 1))
                lines.append(TableRow((*cells_, str(len(after)))))
    found_table = table(("Figure", "Last run before", "First run after", "Change", "Runs after"), lines, numeric=(3, 4))
    return together(element("h3", "Change points"), found_table) if lines else NOTHING


def _run(point: Point) -> str:
    return f"{point.run}{_version(point.version)}"


def _link(row: Row, report: HistoryReport) -> Html:
    return element("a", report.name_of(row), href=f"#{report.anchor(row)}")


_WIDTH, _HEIGHT = 720, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 18, 34, 62
_RED = "#b42318"
_MOST_DATES = 6  # below the axis

_Scale = Callable[[float], float]
Step = tuple[int, int, Group]  # a group of figures, with the indices of its first and last point


def trend_plot(title: str, metric: Metric, points: Sequence[Point]) -> str:
    """An SVG. Empty if there is no figure."""
    figures = [point.figure.value for point in points if point.figure]
    if not figures:
        return ""
    least, most = min(figures), max(figures)
    room = 0.12 * (most - least) or 0.02 * most
    low, high = max(0.0, least - room), most + room
    floor = _HEIGHT - _BOTTOM

    def x(index: float) -> float:
        return _LEFT + (index + 0.5) / len(points) * (_WIDTH - _LEFT - _RIGHT)

    def y(value: float) -> float:
        return floor - (value - low) / (high - low) * (floor - _TOP)

    ticks, scale = svg.range_ticks(low, high), metric.quantity.scale
    shapes = [*svg.rows(((y(tick), short(tick / scale)) for tick in ticks), _LEFT, _WIDTH - _RIGHT)]
    shapes.append(svg.line(_LEFT, floor, _WIDTH - _RIGHT, floor, svg.MUTED))
    shapes += [
        svg.text(x(index), floor + 16, points[index].started[:10], size=11, fill=svg.MUTED, anchor="middle")
        for index in _spread(len(points))
    ]
    for index in range(1, len(points)):
        if points[index].fingerprint != points[index - 1].fingerprint:
            shapes.append(svg.line(x(index - 0.5), _TOP, x(index - 0.5), floor, svg.MUTED, dash="3 3"))
            shapes.append(svg.text(x(index - 0.5) + 3, _TOP + 2, "new series", size=10, fill=svg.MUTED))
    for first, last, group in steps(points):
        height = y(group.mean)
        shapes.append(svg.line(x(first - 0.4), height, x(last + 0.4), height, metric.colour, width=2))
    shapes += [_mark(each, metric, x(index), y, floor) for index, each in enumerate(points)]
    head = svg.text(0, 14, f"{metric.label}, {cells.typeset(metric.quantity.unit)}", weight="bold")
    return svg.document(_WIDTH, _HEIGHT, title, head, *shapes, *_legend(metric))


def steps(points: Sequence[Point]) -> Iterator[Step]:
    """The newest groups of each series, each with the indices of its first and last point."""
    for own in _series(points):
        indices = own[-WINDOW:]
        figures = [figure for index in indices if (figure := points[index].judged) is not None]
        for group in groups(figures):
            yield indices[group.start], indices[group.end - 1], group


def _series(points: Sequence[Point]) -> list[list[int]]:
    """The indices of the judged points of each fingerprint."""
    found: list[tuple[Fingerprint, list[int]]] = []
    for index, each in enumerate(points):
        if each.judged is not None:
            own = next((indices for known, indices in found if known == each.fingerprint), None)
            if own is None:
                found.append((each.fingerprint, own := []))
            own.append(index)
    return [indices for _, indices in found]


def _mark(point: Point, metric: Metric, x: float, y: _Scale, floor: float) -> str:
    words = f"{point.run}, {point.started[:16].replace('T', ' ')} UTC"
    words += f", version under test {point.version}" if point.version else ""
    if point.figure is None:
        return svg.box(x - 3.5, floor - 7, 7, 7, _RED, title=f"{words}: no figure: {point.failed}")
    value = point.figure.written(short(point.figure.value / metric.quantity.scale))
    words = f"{words}: {value} {metric.quantity.unit}"
    if point.doubtful:
        return svg.dot(x, y(point.figure.value), 3.5, fill="none", stroke=svg.MUTED, title=f"{words}; {point.doubtful}")
    return svg.dot(x, y(point.figure.value), 4, fill=metric.colour, stroke=svg.INK, title=words)


def _legend(metric: Metric) -> list[str]:
    base, shapes = _HEIGHT - 14.0, []
    words = ("judged", "not judged: noisy, or a bound", "failed: no figure", "mean between change points")
    at = [_LEFT + offset for offset in (0.0, 74.0, 262.0, 382.0)]
    shapes.append(svg.dot(at[0] + 6, base - 4, 4, fill=metric.colour, stroke=svg.INK, title=words[0]))
    shapes.append(svg.dot(at[1] + 6, base - 4, 3.5, fill="none", stroke=svg.MUTED, title=words[1]))
    shapes.append(svg.box(at[2] + 2.5, base - 7.5, 7, 7, _RED, title=words[2]))
    shapes.append(svg.line(at[3], base - 4, at[3] + 14, base - 4, metric.colour, width=2))
    shapes += [svg.text(x + 18, base, each, size=11, fill=svg.MUTED) for x, each in zip(at, words, strict=True)]
    return shapes


def _spread(amount: int) -> list[int]:
    """Indices from the first to the last, no more than there is room for."""
    parts = min(amount, _MOST_DATES) - 1
    return sorted({round(part * (amount - 1) / parts) for part in range(parts + 1)}) if parts else [0]


NAME = "history"


def report_history(
    folder: Path,
    output: Path | None,
    acknowledged: Path | None,
    ignored: Collection[str],
    *,
    openmetrics_file: Path | None = None,
) -> int:
    """Print the verdicts, and write the page and the data. Returns the exit code.

    `openmetrics_file` gets the figures of the newest run on each testbed. Raises PodperfError without any
    record.
    """
    report = assess_history(folder, acknowledged, ignored)
    print(history_table(report, columns(sys.stdout)), end="\n\n")
    print(printable(str(_write(report, (output or folder).resolve()))))
    if openmetrics_file:
        newest = testbeds(report.history.runs)
        records = (record for name, run in newest.items() for record in run.records if record.testbed_name == name)
        write_file(openmetrics_file, openmetrics(records))
    return exit_code(report.judgements, unread=bool(report.history.problems))


def assess_history(
    folder: Path, acknowledged: Path | None = None, ignored: Collection[str] = (), *, newest: PastRun | None = None
) -> HistoryReport:
    """The content of the report. `acknowledged` is a file. By default it is FILE in the folder, if there is one.

    With `newest`, the report is about this run beside those that started earlier.
    """
    folders = read_history(folder).folders
    if newest is not None:
        folders = [*(each for each in folders if not each.records or each.started < newest.started), newest]

    def judged(runs: Sequence[PastRun]) -> list[Judgement]:
        rows = rows_of(History(folder, runs).runs, ignored)
        return judge_all([*rows_together(rows), *rows])

    judgements, runs = made_of(folders, judged)
    history = History(folder, runs)
    remarks = [f"{copy} is a copy of another folder, and counts once" for copy in history.copies]
    path = acknowledged or folder / FILE
    if acknowledged is not None or path.exists():
        today = datetime.now(UTC).date()
        judgements, about_known = acknowledge(judgements, read_acknowledgements(path), today)
        remarks += about_known
    return HistoryReport(history, judgements, remarks)


def exit_code(judgements: Iterable[Judgement], *, unread: bool = False) -> int:
    """The exit code of the worst thing: a regression, a failed test, a file that could not be read, a suspicion, a test
    that is missing. A run of which nothing can be judged is no good news, unless a history has just begun."""
    verdicts = {
        judgement.verdict for judgement in judgements if judgement.verdict is not Verdict.SUSPECTED or judgement.worse
    }
    codes = {Verdict.REGRESSION: ExitCode.WORSE, Verdict.FAILED: ExitCode.FAILED}
    found = next((code for verdict, code in codes.items() if verdict in verdicts), ExitCode.FINE)
    suspected = ExitCode.UNDECIDED if Verdict.SUSPECTED in verdicts else ExitCode.FINE
    blind = ExitCode.BLIND if Verdict.MISSING in verdicts or verdicts <= NOT_JUDGED else ExitCode.FINE
    return found or (ExitCode.NOT_DONE if unread else suspected or blind)


def _write(report: HistoryReport, folder: Path) -> Path:
    return write_report(folder, NAME, to_json(report), history_page(report), cases(report))
