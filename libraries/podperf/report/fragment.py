"""An HTML fragment of one test for Robot's log: its result, its configuration and its loss curve."""

from __future__ import annotations

from collections.abc import Iterable

from podperf.figures import microseconds, number, percent
from podperf.metrics import RATE, rates
from podperf.report.facts import environment_facts, flat, placement_words
from podperf.report.html import NOTHING, Html, drawing, element
from podperf.report.loss_curve import loss_curve
from podperf.report.results import (
    Record,
    explanation,
    figure_text,
    missing,
    noisy,
    not_comparable,
    tester_faults,
    unfinished,
    verdict_word,
)
from podperf.report.summary import further_figures, pods_cell

_CELL = "padding:2px 12px 2px 0;vertical-align:top"
_LATENCIES = ("minimum", "mean", "p50", "p90", "p99", "p99_9", "maximum")


def embed_html(record: Record) -> str:
    """The fragment, without the prefix `*HTML*` of a log message. Styles are inline, so that the log keeps its own."""
    parts = [_remark(verdict_word(record), explanation(record))]
    if cut_short := unfinished(record):
        parts.append(_remark("* search not finished", cut_short))
    parts += [_remark("faulty tester", each) for each in tester_faults(record)]
    parts += [_remark("no figure", each) for each in missing(record)]
    if noise := noisy(record):
        parts.append(_remark("noisy machine", noise))
    if reason := not_comparable(record):
        parts.append(_remark("not comparable", reason))
    rows = [
        (
            each.label,
            f"{figure_text(rate, RATE)} kpps",
            f"{_gigabits(rate, 'l1')}, {_gigabits(rate, 'l2')}{_share(rate)}{_between(rate)}",
        )
        for each in rates()
        if (rate := record["results"].get(each.name))
    ]
    if latency := record["latency"]:
        figures = ", ".join(f"{name.replace('_', '.')} {microseconds(latency[f'{name}_ns'])}" for name in _LATENCIES)
        rows.append(("Latency, µs", figures, latency["of"]))
    rows += [(label, figure, "") for label, figure in further_figures(record)]
    parts.append(_table(rows))
    parts.append(drawing(loss_curve(record)))
    parts.append(element("details", element("summary", "Configuration"), _table(_configuration(record))))
    return element("div", *parts, style="font-family:sans-serif").markup  # the log's own font is monospaced


def _remark(about: str, sentence: str) -> Html:
    return element("p", element("b", about), f" {sentence}")


def _gigabits(rate: Record, layer: str) -> str:
    return f"{number(rate[f'{layer}_bits_per_second'] / 1e9)} Gbit/s {layer.upper()}"


def _share(rate: Record) -> str:
    share = rate["percent_of_line_rate"]
    return "" if share is None else f", {number(share)} % of line rate"


def _between(rate: Record) -> str:
    low, high = rate["low_frames_per_second"], rate["high_frames_per_second"]
    return f" (between {number(low / 1e3)} and {number(high / 1e3)} kpps)" if low is not None and high else ""


def _configuration(record: Record) -> list[tuple[str, str]]:
    chain, traffic, limits = record["chain"], record["traffic"], record["tester_limits"]
    rows: list[tuple[str, str]] = []
    if chain:
        rows.append(
            ("Chain", f"{chain['data_plane']}, pods: {pods_cell(record)}, forwarder: {chain['forwarder'] or '-'}")
        )
    if traffic:
        frame = f"{traffic['frame']['name']} frames with FCS"
        rows.append(("Traffic", f"{frame}, {' and '.join(traffic['directions'])}, flows: {traffic['flows']}"))
    if limits:
        loss = limits["own_loss_ratio"]
        own = "own loss unknown" if loss is None else f"own loss {percent(loss)} at half of it and below"
        rows.append(("Tester's limit", f"{number(limits['maximum_load'] / 1e3)} kpps, {own} ({limits['source']})"))
    if words := placement_words(record):
        rows.append(("Placement", words))
    for heading in ("data_plane", "tester"):
        rows += flat(record[heading] or {}, heading).items()
    return rows + [each for each in environment_facts(record).items() if each[0] != "Placement"]


def _table(rows: Iterable[tuple[str, ...]]) -> Html:
    body = [element("tr", *(element("td", cell, style=_CELL) for cell in row)) for row in rows]
    return element("table", *body, style="border-collapse:collapse;font-size:13px") if body else NOTHING
