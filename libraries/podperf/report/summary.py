"""The table at the end of a run: one line a test, no wider than asked for."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from podperf.figures import count, cut, microseconds
from podperf.report.results import Record, caveats, not_comparable, rate_text, remarks, unfinished, verdict_word

_COLOURS = {"passed": "32", "confirmed": "32", "measured": "36", "failed": "31;1", "refuted": "31;1", "skipped": "33"}
_OTHER_COLOUR = "33"
_NUMERIC = range(2, 9)  # columns aligned to the right
_TEST, _DATA_PLANE, _VERDICT = 0, 1, 9


@dataclass(frozen=True)
class _Row:
    cells: tuple[str, ...]
    note: str  # under the row: why skipped, failed, not finished or noisy
    word: str


def summary_table(records: Sequence[Record], *, width: int = 120, colour: bool = False) -> str:
    """All tests in a table of at most `width` columns, reasons below the rows they belong to, and a closing count.

    Rates are kpps (thousands of frames/s per direction), latencies µs; `>=` marks a lower bound that the tester set,
    `<` an upper one, `*` what a search found that was cut short.
    """
    head = _Row(
        ("Test", "Data plane", "Pods", "Frame", "MRR kpps", "NDR kpps", "PDR kpps", "p50 us", "p99 us", "Verdict"),
        "",
        "",
    )
    rows = [_row(each) for each in records]
    widths = _widths([head, *rows], width)
    lines = [_line(head, widths, colour=False), "  ".join("-" * each for each in widths)]
    for row in rows:
        lines.append(_line(row, widths, colour))
        lines += textwrap.wrap(row.note, width - 4, initial_indent="    ", subsequent_indent="    ")
    footer = "kpps: thousand frames/s per direction; >=: at least, the tester was the limit; <: less than"
    if any(map(unfinished, records)):
        footer += "; *: search cut short"
    reasons = dict.fromkeys(f"not comparable: {reason}" for each in records if (reason := not_comparable(each)))
    notes = [line for note in (*reasons, footer) for line in textwrap.wrap(note, width)]
    return "\n".join([*lines, "", closing_line(records), *notes])


def closing_line(records: Sequence[Record]) -> str:
    """`12 tests: 9 passed, 1 failed, 2 skipped`."""
    words = [verdict_word(each) for each in records]
    parts = [f"{words.count(word)} {word}" for word in dict.fromkeys(sorted(words, key=_rank))]
    return f"{count(len(records), 'test')}: {', '.join(parts)}" if parts else "no tests"


def _rank(word: str) -> int:
    order = "passed, measured, confirmed, failed, refuted, inconclusive, not judged, interrupted, skipped"
    return order.split(", ").index(word)


def _row(record: Record) -> _Row:
    chain, traffic = record["chain"], record["traffic"]
    cells = (
        record["test"]["name"],
        chain["data_plane"] if chain else "-",
        pods_cell(record),
        traffic["frame"]["name"] if traffic else "-",
        *(rate_cell(record, metric) for metric in ("mrr", "ndr", "pdr")),
        *(latency_cell(record, metric) for metric in ("latency_p50", "latency_p99")),
        ", ".join([verdict_word(record), *caveats(record)]),
    )
    return _Row(cells, "; ".join(remarks(record)), verdict_word(record))


def rate_cell(record: Record, metric: str) -> str:
    """A rate in kpps, `-` when there is none."""
    found = record["results"].get(metric)
    return rate_text(found) if found else "-"


def pods_cell(record: Record) -> str:
    """The number of pods, and of the workers that they are on where these are several."""
    chain = record["chain"]
    if not chain:
        return "-"
    workers = chain.get("workers", 1)
    return f"{chain['pods']} on {count(workers, 'worker')}" if workers > 1 else str(chain["pods"])


def latency_cell(record: Record, metric: str) -> str:
    """A latency in µs, `-` when there is none."""
    found = record["results"].get(metric)
    return microseconds(found["nanoseconds"]) if found else "-"


def _widths(rows: Sequence[_Row], width: int) -> list[int]:
    widths = [max(len(row.cells[column]) for row in rows) for column in range(len(rows[0].cells))]
    # Test names and data planes give way, names first: figures are never cut.
    for column, least in ((_TEST, 12), (_DATA_PLANE, 8)):
        excess = sum(widths) + 2 * (len(widths) - 1) - width
        widths[column] -= max(0, min(excess, widths[column] - least))
    return widths


def _line(row: _Row, widths: Sequence[int], colour: bool) -> str:
    cells = [
        cut(cell, size).rjust(size) if column in _NUMERIC else cut(cell, size).ljust(size)
        for column, (cell, size) in enumerate(zip(row.cells, widths, strict=True))
    ]
    if colour:
        cells[_VERDICT] = f"\033[{_COLOURS.get(row.word, _OTHER_COLOUR)}m{cells[_VERDICT].rstrip()}\033[0m"
    return "  ".join(cells).rstrip()
