"""A history as text for a terminal, and as data."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any

from podperf.figures import count, short
from podperf.history.changes import Change
from podperf.history.judgement import Judgement, Verdict
from podperf.history.trends import testbeds
from podperf.report.history_report import HistoryReport

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
            found = [each for each in judgements if each.verdict is verdict]
            if found:
                lines += _row(verdict, report.name_of(row), found, width)
    for words, names in report.beginnings.items():
        lines += ["", *_wrapped(f"{'; '.join(names)}:", width), *_wrapped(words, width, _INDENT)]
    verdicts = Counter(each.verdict for each in report.judgements)
    told = ", ".join(f"{verdicts[each]} {each}" for each in Verdict if verdicts[each])
    runs = report.history.runs
    closing = f"{count(len(runs), 'run')}; {count(len(report.judgements), 'figure')} of the newest: {told or 'none'}"
    notes = [*report.remarks, *(f"not read: {each}" for each in report.history.problems)]
    return "\n".join([*lines, "", *_wrapped(closing, width), *notes]).lstrip("\n")


def _row(verdict: Verdict, name: str, judgements: Sequence[Judgement], width: int) -> list[str]:
    """The verdict and the test, then a line for each sentence about some of its metrics."""
    said: dict[str, list[str]] = {}
    for each in judgements:
        # For the many figures without a change the size is enough.
        quiet = f"{short(each.change.most * 100)} %" if each.change and verdict is Verdict.NO_CHANGE else ""
        said.setdefault(quiet or each.sentence, []).append(each.metric.label)
    if verdict is Verdict.NO_CHANGE:
        sizes = ", ".join(f"{', '.join(labels)} {size}" for size, labels in said.items())
        return _wrapped(f"{verdict.ljust(_HEAD)}{name}: none larger than {sizes}", width, hanging=" " * _HEAD)
    lines = [f"{verdict.ljust(_HEAD)}{name}"]
    for words, labels in said.items():
        lines += _wrapped(f"{', '.join(labels)}: {words}", width, " " * _HEAD)
    for known in dict.fromkeys(each.known for each in judgements if each.known):
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
        "figures": [_figure(each) for each in report.judgements],
    }


def _wrapped(text: str, width: int, indent: str = "", hanging: str = "") -> list[str]:
    size = max(_LEAST, min(width, _WIDEST))
    return textwrap.wrap(text, size, initial_indent=indent, subsequent_indent=indent or hanging, break_on_hyphens=False)


def _figure(judgement: Judgement) -> dict[str, Any]:
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
        "change": judgement.change and _change(judgement.change),
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


def _change(change: Change) -> dict[str, Any]:
    return {
        "share": change.share,
        "low": change.low,
        "high": change.high,
        "recent_runs": change.recent,
        "earlier_runs": change.reference,
        "found": change.found,
        "confirmed": change.confirmed,
    }
