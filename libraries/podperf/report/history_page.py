"""A history as one HTML page: changes first, then every test with its trends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import podperf
from podperf.figures import count, signed
from podperf.history.changes import LEAST
from podperf.history.judgement import Judgement, Verdict
from podperf.history.runs import History
from podperf.history.trends import Point, Row, testbeds
from podperf.report import cells
from podperf.report.history_report import HistoryReport
from podperf.report.html import NOTHING, Content, Html, TableRow, drawing, element, table, together
from podperf.report.page_frame import framed
from podperf.report.trend_plot import steps, trend_plot

_TITLE = "What changed, and what did not"
_TOLD = (Verdict.REGRESSION, Verdict.FAILED, Verdict.SUSPECTED, Verdict.ACKNOWLEDGED, Verdict.PROGRESSION)


def history_page(report: HistoryReport) -> str:
    """The whole page."""
    return framed(_TITLE, *_body(report))


def _body(report: HistoryReport) -> Iterator[Html]:
    yield element("h1", _TITLE)
    yield element("p", _said(report.history), class_="muted")
    verdicts = Counter(each.verdict for each in report.judgements)
    tiles = [
        element("div", element("b", str(verdicts[each])), each, class_="tile") for each in Verdict if verdicts[each]
    ]
    yield element("div", *tiles, class_="tiles")
    problems = [element("li", each) for each in report.history.problems]
    if problems:
        yield element(
            "div", "Files that could not be read, and are missing here:", element("ul", *problems), class_="note"
        )
    for each in report.remarks:
        yield element("p", f"{each[0].upper()}{each[1:]}.", class_="note")
    told = [each for verdict in _TOLD for each in report.judgements if each.verdict is verdict]
    lines = (
        TableRow((_link(each.row, report), each.metric.label, cells.state(each.verdict), _why(each))) for each in told
    )
    yield element("h2", "What changed")
    yield table(("Test", "Figure", "Verdict", "The newest run beside those before"), lines) or element(
        "p", "Nothing, as far as these runs can tell."
    )
    beginnings = [TableRow((words, "; ".join(names))) for words, names in report.beginnings.items()]
    if beginnings:
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
        f"newest on {name or 'an unknown testbed'}: {run.name}{_version(run.records[-1].get('version_under_test'))}"
        for name, run in testbeds(runs).items()
    )
    return f"{count(len(runs), 'run')} from {runs[0].started[:10]} to {runs[-1].started[:10]}; {newest}."


def _version(version: Content | None) -> str:
    return f", version under test {version}" if version else ""


def _row(row: Row, judgements: Sequence[Judgement], report: HistoryReport) -> Html:
    worst = min((each.verdict for each in judgements), key=list(Verdict).index)
    lines = (TableRow((each.metric.label, cells.state(each.verdict), _why(each))) for each in judgements)
    plots = (drawing(trend_plot(f"{row.name}: {each.label}", each, points)) for each, points in row.trends.items())
    return element(
        "details",
        element("summary", report.name_of(row), " ", cells.state(worst)),
        element(
            "div",
            table(("Figure", "Verdict", "The newest run beside those before"), lines),
            *(element("div", each, class_="scroll") for each in plots if each),
            _change_points(row),
            id=report.anchor(row),
        ),
        class_="record trend",
        open="open" if worst in _TOLD else None,
    )


def _why(judgement: Judgement) -> str:
    return "; ".join(filter(None, (judgement.sentence, judgement.known)))


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
