"""One record: as a fold of the page, and as a fragment for Robot's log. Figures, limits, loss curve, configuration."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from urllib.parse import quote

from podperf.figures import count, kpps, microseconds, number, percent, phase_words, short
from podperf.methods.functions import MEMORY, instructions, most_first
from podperf.metrics import RATE, rates
from podperf.records import KINDS, Data, Figure, Record, counts_by_phase
from podperf.records.parameters import PARAMETERS
from podperf.report import cells
from podperf.report.conformance import Conformance
from podperf.report.cost_page import CountedCost, counted_costs
from podperf.report.facts import environment_facts, flat, placement_words
from podperf.report.flame_graph import flame_graph
from podperf.report.html import NOTHING, Content, Html, TableRow, drawing, element, facts, plots, table, together
from podperf.report.loss_curve import loss_curve
from podperf.report.method_tables import method_tables, published_tables
from podperf.report.results import (
    doubtful,
    explanation,
    figure_text,
    missing,
    noisy,
    not_comparable,
    preset,
    remarks,
    said_by,
    tester_faults,
    unfinished,
    verdict_word,
)
from podperf.report.searches import search_tables
from podperf.report.summary import further_figures, pods_cell

_DESCRIBED = (
    ("data_plane", "The data plane, read back from what was set up"),
    ("tester", "The tester"),
    ("interfaces", "The interfaces on the path"),
)
_MOST_FUNCTIONS = 12
_COUNTED = ("sent", "received", *KINDS, "late", "stray")


def record_view(record: Record, conformance: Conformance) -> Html:
    """Everything of a record except its trials, and the environment, which is the same for all tests of a run."""
    json = element("a", "the whole record as JSON", href=quote(os.fsencode(conformance.link(record))))
    log = cells.in_log(record, conformance, "this test in Robot's log")
    return element(
        "details",
        element("summary", conformance.name_of(record), " ", cells.verdict(record)),
        element(
            "div",
            *(element("p", each) for each in _said(record)),
            _figures(record),
            *search_tables(record),
            _counts(record),
            _latency(record),
            *(element("p", element("b", f"{label}: "), figure) for label, figure in further_figures(record)),
            *(_functions(counted_cost) for counted_cost in counted_costs(record)),
            plots(flame_graph(_FLAMES.format(cost.in_flight), cost.stacks) for cost in counted_costs(record)),
            *method_tables(record),
            published_tables([record]),
            _limits(record),
            plots([loss_curve(record)]),
            facts(_configuration(record)),
            *(_folded(words, getattr(record, part)) for part, words in _DESCRIBED),
            _parameters(record),
            element("p", *((log, ", ") if log else ()), json, class_="small"),
            id=conformance.anchor(record),
        ),
        class_="record",
    )


def _said(record: Record) -> Iterator[Content]:
    """The most important sentences. Each limit has a line of its own."""
    judged = record.verdict.sentence if record.verdict and record.verdict.outcomes else None
    for fromkey in dict.fromkeys([explanation(record), *remarks(record)]):
        if fromkey and fromkey != judged:
            yield fromkey
    if reason := not_comparable(record):
        yield f"not comparable: {reason}"
    for special_capability in record.special_capabilities:
        yield f"special capability in the system under test (draft section 5): {special_capability}"
    for finding in record.findings:
        yield together(cells.state(finding.verdict), f" {finding.claim} ({said_by(finding)}): {finding.detail}")


def _figures(record: Record) -> Html:
    heads = ("Rate", "kpps", "interval, kpps", "L1 Gbit/s", "L2 Gbit/s", "of line rate", "both directions, kpps")
    rows = []
    for metric in rates():
        if found := record.figures.get(metric.name):
            share, both = found.percent_of_line_rate, found.aggregate or found.value
            rows.append(
                (
                    metric.label,
                    cells.figure(record, metric),
                    cells.between(found),
                    number(found.l1_bits_per_second / 1e9),
                    number(found.l2_bits_per_second / 1e9),
                    "" if share is None else f"{number(share)} %",
                    "" if both == found.value else kpps(both),
                )
            )
    known = [index for index in range(len(heads)) if any(row[index] for row in rows)]
    return table(
        [heads[index] for index in known],
        (TableRow([row[index] for index in known]) for row in rows),
        kind="figures-of-one",
        numeric=range(1, len(known)),
    )


def _counts(record: Record) -> Html:
    """The frames of all valid trials by phase and direction. A column is missing if it has no frame."""
    found = counts_by_phase(record.trials)
    named = [name for name in _COUNTED if any(getattr(each, name) for each in found.values())]
    rows = (
        TableRow((phase_words(phase), way or "-", *(short(getattr(each, name)) for name in named)))
        for (phase, way), each in found.items()
    )
    return table(("Frames of valid trials", "direction", *named), rows, numeric=range(2, 2 + len(named)))


def _latency(record: Record) -> Html:
    found = record.latency
    if not found:
        return NOTHING
    words = f"{cells.latency_words(found)} ({found.of}){_own_latency(record)}"
    return element("p", element("b", "Latency, µs: "), words)


def _own_latency(record: Record) -> str:
    """The tester's part of the median, by the bare path at the load that is next to that of the latency's trial."""
    known = record.tester_limits.own_latencies if record.tester_limits else ()
    load = record.method("latency").get("load")
    if not known or not load:
        return ""
    near = min(known, key=lambda each: max(each.load / load, load / each.load))
    there = f"at {kpps(near.load)} kpps it was {microseconds(near.p50_ns)} in the calibration on the bare path"
    return f". The tester's own part of p50: {there}"


_FLAMES = "Who calls whom, {}, with the bare path: a box is as wide as the instructions of a function and all it calls"


def _functions(cost: CountedCost) -> Html:
    """The functions in which a frame has most of its instructions, and their use of memory. NOTHING where they are not
    known."""
    found = most_first(cost.functions)
    if not found:
        return NOTHING
    some, rest = found[:_MOST_FUNCTIONS], [name for name, _ in found[_MOST_FUNCTIONS:]]
    whole = cost.figure or 1.0

    def row(name: str, amount: float, functions: Collection[str]) -> TableRow:
        used = (sum(each.get(function, 0.0) for function in functions) for each in cost.memory.values())
        return TableRow((name, instructions(amount), percent(amount / whole), *map(number, used)))

    rows = [row(name, amount, [name]) for name, amount in some]
    if rest:
        rows.append(row(count(len(rest), "other function"), sum(cost.functions[name] for name in rest), rest))
    rows.append(TableRow(("all", instructions(cost.figure), "", *(number(cost.used(what)) for what in cost.memory))))
    memory = [f"{MEMORY[what][0].upper()}{MEMORY[what][1:]}" for what in cost.memory]
    heads = (f"Function, {cost.in_flight}", "Instructions a frame", "Share", *memory)
    return table(heads, rows, numeric=range(1, len(heads)))


def _limits(record: Record) -> Html:
    outcomes = record.verdict.outcomes if record.verdict else ()
    rows = (element("li", cells.state(outcome.status), f" {outcome.sentence}") for outcome in outcomes)
    return element("ul", *rows, class_="limits") if outcomes else NOTHING


def _connections(record: Record) -> str:
    limit, unread = record.tester.get("connections_limit"), record.tester.get("connections_unread")
    most = "an unread number of" if limit is None else f"at most {limit}"
    counters = f"; its counters were not read: {unread}" if unread else ""
    return f"the kernel of the node tracks {most} connections{counters}"


def _set_up(record: Record) -> Iterator[tuple[str, str]]:
    chain, traffic, limits = record.chain, record.traffic, record.tester_limits
    if chain:
        forwarder = f", forwarder {chain.forwarder}" if chain.forwarder else ""
        yield "Chain", f"{chain.data_plane}, pods: {pods_cell(record)}{forwarder}"
    if traffic:
        ways = " and ".join(traffic.directions)
        yield "Traffic", f"{traffic.frame.name} frames with FCS, {ways}, {count(traffic.flows, 'flow')}"
        if record.tester.get("new_flows") is True:
            sent = sum(way.sent for each in record.trials for way in each.directions)
            yield "New flows", f"each of {sent} frames was a new flow; {_connections(record)}"
        if traffic.headers.words:
            smallest = f"the smallest frame with them has {traffic.headers.smallest_frame} bytes"
            yield "Headers", f"{traffic.headers.words}; {smallest}"
    if limits:
        loss = limits.own_loss_ratio
        own = "own loss unknown" if loss is None else f"own loss {percent(loss)} at half of it and below"
        yield "Tester's limit", f"{kpps(limits.maximum_load)} kpps, {own} ({limits.source})"
    if words := placement_words(record):
        yield "Placement", words


def _configuration(record: Record) -> Iterator[tuple[str, Content]]:
    yield from _set_up(record)
    if preset(record):
        yield "Search preset", element("a", preset(record), href="#searches")
    phases = Counter(trial.phase for trial in record.trials)
    if phases:
        invalid = sum(1 for trial in record.trials if trial.invalid)
        words = ", ".join(f"{phase} {amount}" for phase, amount in phases.items())
        yield "Trials", f"{words}; {invalid} of them invalid" if invalid else words
    yield "Started, ended (UTC)", f"{record.started}, {record.ended or 'never'}"
    if record.test.tags:
        yield "Tags", ", ".join(record.test.tags)


def _parameters(record: Record) -> Html:
    """The parameters that the newest draft wants. Empty for an older record without them."""
    found = record.parameters
    if not found:
        return NOTHING
    rows = ((each.label, found[name] or "not read") for name, each in PARAMETERS.items())
    words = "The configuration parameters of draft-ietf-bmwg-containerized-infra-08"
    return element("details", element("summary", words), facts(rows))


def _folded(words: str, data: Data) -> Html:
    found = flat(_without_offloads(data))
    return element("details", element("summary", words), facts(found.items())) if found else NOTHING


def _without_offloads(data: Data) -> Data:
    """The facts of an interface without its two dozen offloads, which only the record has."""
    return {
        key: {name: each for name, each in value.items() if name != "offloads"} if isinstance(value, dict) else value
        for key, value in data.items()
    }


_CELL = "padding:2px 12px 2px 0;vertical-align:top"


def embed_html(record: Record) -> str:
    """The fragment, without the prefix `*HTML*` of a log message. Styles are inline, so that the log keeps its own."""
    said = (
        ("* search not finished", [unfinished(record)]),
        ("faulty tester", tester_faults(record)),
        ("? in doubt", doubtful(record)),
        ("no figure", missing(record)),
        ("noisy machine", [noisy(record)]),
        ("not comparable", [not_comparable(record)]),
    )
    parts = [_remark(verdict_word(record), explanation(record))]
    parts += [_remark(about, sentence) for about, sentences in said for sentence in sentences if sentence]
    found = [(each, record.figures[each.name]) for each in rates() if each.name in record.figures]
    rows = [(metric.label, f"{figure_text(rate, RATE)} kpps", _in_bits(rate)) for metric, rate in found]
    if latency := record.latency:
        rows.append(("Latency, µs", cells.latency_words(latency), latency.of))
    rows += [(label, figure, "") for label, figure in further_figures(record)]
    parts.append(_bare_table(rows))
    parts.append(drawing(loss_curve(record)))
    parts.append(element("details", element("summary", "Configuration"), _bare_table(_described(record))))
    return element("div", *parts, style="font-family:sans-serif").markup  # the log's own font is monospaced


def _described(record: Record) -> Iterator[tuple[str, str]]:
    yield from _set_up(record)
    for heading in ("data_plane", "tester"):
        yield from flat(getattr(record, heading), heading).items()
    yield from ((name, words) for name, words in environment_facts(record).items() if name != "Placement")


def _remark(about: str, sentence: str) -> Html:
    return element("p", element("b", about), f" {sentence}")


def _in_bits(rate: Figure) -> str:
    """`0.19 Gbit/s L1, 0.14 Gbit/s L2, 1.9 % of line rate (270 to 290 kpps)`."""
    share, interval = rate.percent_of_line_rate, cells.between(rate)
    bits = (rate.l1_bits_per_second, rate.l2_bits_per_second)
    words = [f"{number(each / 1e9)} Gbit/s L{layer}" for layer, each in enumerate(bits, start=1)]
    words += [] if share is None else [f"{number(share)} % of line rate"]
    return ", ".join(words) + ("" if interval == "-" else f" ({interval} kpps)")


def _bare_table(rows: Iterable[tuple[str, ...]]) -> Html:
    body = [element("tr", *(element("td", cell, style=_CELL) for cell in row)) for row in rows]
    return element("table", *body, style="border-collapse:collapse;font-size:13px") if body else NOTHING
