"""Cells and words about a record that several parts of the page show. Pure."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote

from podperf.figures import count, kpps, microseconds, number, percent, short
from podperf.metrics import METRICS, ON_PAGE, RATIO, Metric, by_quantity
from podperf.records import Figure, Record
from podperf.records.recorded import RecordedLatency, RecordedThreshold
from podperf.report.conformance import Conformance
from podperf.report.html import Content, Html, element, together
from podperf.report.results import caveats, shown, verdict_word
from podperf.report.summary import figure_cell

_OVERLOAD = METRICS["mrr"]  # the metric of several trials, whose spread a table shows
_LATENCIES = ("minimum", "mean", "p50", "p90", "p99", "p99_9", "maximum")
_FORWARDS = 0.01  # share of the bare path; a threshold below it shows only that a data plane works


def state(word: str) -> Html:
    """A verdict as a coloured word."""
    return element("span", word, class_=f"state {word.replace(' ', '-')}")


def verdict(record: Record) -> Html:
    """The outcome of a test, and a word for each thing that limits its figures."""
    return together(state(verdict_word(record)), *(f" {word}" for word in caveats(record)))


def named(record: Record, conformance: Conformance) -> Html:
    """A test's name as a link to its record on this page, with a link to its place in Robot's log."""
    name = element("a", conformance.name_of(record), href=f"#{conformance.anchor(record)}")
    log = in_log(record, conformance, "log")
    return together(name, " ", log) if log else name


def in_log(record: Record, conformance: Conformance, words: str) -> Content:
    """A link to the test in Robot's log. Empty if the log does not have it."""
    place = conformance.log_of(record)
    if place is None:
        return ""
    path, _, test = place.rpartition("#")
    return element("a", words, href=f"{quote(os.fsencode(path))}#{test}", class_="log")


def chain_label(record: Record) -> str:
    """The name of the chain, or of the test if it has no chain."""
    chain = record.chain
    return str(replace(chain, forwarder=None, chains=1, common_pod=False)) if chain else record.test.name


def frame_label(record: Record) -> str:
    """`64 B`, `IMIX`."""
    if not record.traffic:
        return "-"
    frame = record.traffic.frame
    return f"{frame.sequence[0]} B" if len(frame.sequence) == 1 else str(frame.name)


def figure(record: Record, metric: Metric) -> str:
    """A figure in the unit of its column."""
    return figure_cell(record, metric, ON_PAGE)


def typeset(unit: str) -> str:
    """A unit for a page, with letters that a terminal may lack (`µs`)."""
    return "µs" if unit == "us" else unit


def latency_words(found: RecordedLatency) -> str:
    """`minimum 7.1, mean 16.3, p50 16.0, …`, in µs."""
    named = {name.replace("_", "."): getattr(found, f"{name}_ns") for name in _LATENCIES}
    return ", ".join(f"{name} {microseconds(value)}" for name, value in named.items())


def heads(metrics: Iterable[Metric]) -> str:
    """`MRR · PDR, kpps`."""
    found = by_quantity(metrics).items()
    return "; ".join(
        f"{' · '.join(each.head for each in group)}, {typeset(quantity.unit)}" for quantity, group in found
    )


def details(records: Sequence[Record]) -> Mapping[str, Callable[[Record], str]]:
    """Additional columns for a table of these records, by their heads."""
    if _OVERLOAD not in shown(records):
        return {}
    return {f"{_OVERLOAD.head} spread": _spread, f"{_OVERLOAD.head}, L1 Gbit/s": _l1_rate}


def _spread(record: Record) -> str:
    """The spread of the MRR's trials, as a share of the MRR."""
    found = record.figures.get(_OVERLOAD.name)
    if not found or not found.value:
        return "-"
    spread = record.method(_OVERLOAD.method).get("relative_spread")
    return "-" if spread is None else percent(spread)


def _l1_rate(record: Record) -> str:
    """The MRR on the wire, Gbit/s."""
    found = record.figures.get(_OVERLOAD.name)
    return number(found.l1_bits_per_second / 1e9) if found else "-"


def limits_met(record: Record) -> str:
    """`MRR, PDR met; p50 open`: the metrics of the thresholds by their verdicts. `none` without a threshold."""
    words = {"passed": "met", "failed": "missed", "inconclusive": "open", "not judged": "not judged"}
    found: dict[str, list[str]] = {}
    for each in record.verdict.outcomes if record.verdict else ():
        found.setdefault(words[each.status], []).append(_head(each.metric))
    return "; ".join(f"{', '.join(metrics)} {word}" for word, metrics in found.items()) or "none"


def limit_words(threshold: RecordedThreshold) -> str:
    """`MRR at least 0.2 % of the bare path's`."""
    floor = threshold.minimum is not None
    amount = threshold.minimum if floor else threshold.maximum
    if amount is None:
        return "no limit"
    of_baseline = threshold.unit == RATIO
    text = f"{percent(amount)} of the bare path's" if of_baseline else f"{short(amount)} {typeset(threshold.unit)}"
    return f"{_head(threshold.metric)} {'at least' if floor else 'at most'} {text}"


def _head(name: str) -> str:
    return METRICS[name].head if name in METRICS else name  # for example in a record of another version


def limit_scope(threshold: RecordedThreshold) -> str:
    """The tests of a threshold: `1 pod, 64B`. Empty for all tests."""
    pods = threshold.pods
    words = (threshold.data_plane, None if pods is None else count(pods, "pod"), threshold.frame)
    return ", ".join(word for word in words if word)


def only_forwards(threshold: RecordedThreshold) -> bool:
    """True if a threshold is so far below the bare path that it only shows that the data plane forwards frames."""
    floor = threshold.minimum
    return threshold.unit == RATIO and floor is not None and floor < _FORWARDS


def between(rate: Figure) -> str:
    """The interval of a rate, kpps."""
    if rate.low is None:
        return "-"
    return f"{kpps(rate.low)} or more" if rate.high is None else f"{kpps(rate.low)} to {kpps(rate.high)}"
