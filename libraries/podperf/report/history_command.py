"""`podperf report --history FOLDER`: the trend of every figure, and the verdict on the newest run as an exit code."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from pathlib import Path

from podperf.history.acknowledgements import FILE, acknowledge, read_acknowledgements
from podperf.history.judgement import Judgement, Verdict, judge_all
from podperf.history.runs import read_history, testbed_of
from podperf.history.trends import rows_of, testbeds
from podperf.printable import printable
from podperf.report.files import write_file, write_report
from podperf.report.history_page import history_page
from podperf.report.history_report import HistoryReport
from podperf.report.history_words import history_table, to_json
from podperf.report.openmetrics import openmetrics
from podperf.terminal import columns

NAME = "history"
UNREAD, REGRESSION, FAILED, SUSPECTED = 1, 3, 4, 5  # exit codes; 2 is for a wrong option


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
    print(printable(str(_write(report, output or folder))))
    if openmetrics_file:
        newest = testbeds(report.history.runs)
        records = (each for name, run in newest.items() for each in run.records if testbed_of(each) == name)
        write_file(openmetrics_file, openmetrics(records))
    return exit_code(report.judgements, unread=bool(report.history.problems))


def assess_history(folder: Path, acknowledged: Path | None = None, ignored: Collection[str] = ()) -> HistoryReport:
    """The content of the report. `acknowledged` is a file. By default it is FILE in the folder, if there is one."""
    history = read_history(folder)
    judgements, remarks = judge_all(rows_of(history.runs, ignored)), list[str]()
    path = acknowledged or folder / FILE
    if acknowledged is not None or path.exists():
        today = datetime.now(UTC).date()
        judgements, remarks = acknowledge(judgements, read_acknowledgements(path), today)
    return HistoryReport(history, judgements, remarks)


def exit_code(judgements: Iterable[Judgement], *, unread: bool = False) -> int:
    """The exit code of the worst thing: a regression, a failed test, a file that could not be read, a suspicion."""
    verdicts = {each.verdict for each in judgements if each.verdict is not Verdict.SUSPECTED or each.worse}
    codes = {Verdict.REGRESSION: REGRESSION, Verdict.FAILED: FAILED}
    found = next((code for verdict, code in codes.items() if verdict in verdicts), 0)
    return found or (UNREAD if unread else SUSPECTED if Verdict.SUSPECTED in verdicts else 0)


def _write(report: HistoryReport, folder: Path) -> Path:
    return write_report(folder, NAME, to_json(report), history_page(report))
