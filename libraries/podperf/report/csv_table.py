"""The figures of runs as CSV (RFC 4180), one line for each figure. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

from podperf.history.trends import doubt_of
from podperf.metrics import METRICS, Metric
from podperf.records import Record
from podperf.records.recorded import Figure

COLUMNS = (
    *("started", "testbed", "version_under_test", "suite", "row", "outcome"),
    *("data_plane", "pods", "workers", "frame", "flows", "directions"),
    *("metric", "value", "low", "high", "unit", "bound", "doubt", "record"),
)
"""The columns, which docs/records.md explains."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet takes a text with such a beginning for a formula


def csv_table(records: Iterable[Record]) -> str:
    """The table with its head. A test without figures has one line without a metric."""
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow(COLUMNS)
    for record in records:
        test = tuple(map(_cell, _of_test(record)))
        figures = [(metric, record.figures[name]) for name, metric in METRICS.items() if name in record.figures]
        lines.writerows((*test, *map(_cell, _of_figure(record, *each)), record.id) for each in figures)
        if not figures:
            lines.writerow((*test, *([""] * 7), record.id))
    return text.getvalue()


def _of_test(record: Record) -> Iterator[object]:
    chain, traffic = record.chain, record.traffic
    yield from (record.started, record.testbed_name, record.version_under_test)
    yield from (record.test.suite, record.test.name, record.outcome)
    yield from (chain.data_plane, chain.pods, chain.workers) if chain else ("", "", "")
    directions = ("; ".join(map(str, traffic.directions)),) if traffic else ()
    yield from (traffic.frame.name, traffic.flows, *directions) if traffic else ("", "", "")


def _of_figure(record: Record, metric: Metric, figure: Figure) -> Iterator[object]:
    yield from (metric.name, figure.value, figure.low, figure.high, metric.quantity.key)
    yield "at least" if figure.lower_bound else "less than" if figure.upper_bound else ""
    yield doubt_of(record, metric)


def _cell(value: object) -> object:
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value
