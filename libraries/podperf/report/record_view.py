"""The part of the page about one record, in a fold: figures, limits, loss curve and configuration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from urllib.parse import quote

from podperf.figures import count, kpps, microseconds, number, percent
from podperf.methods.functions import most_first
from podperf.metrics import rates
from podperf.records.parameters import PARAMETERS
from podperf.report import cells
from podperf.report.conformance import Conformance
from podperf.report.cost_changes import CountedCost, counted_costs
from podperf.report.cost_words import instructions
from podperf.report.facts import flat, placement_words
from podperf.report.html import NOTHING, Content, Html, TableRow, drawing, element, facts, table, together
from podperf.report.loss_curve import loss_curve
from podperf.report.method_tables import method_tables
from podperf.report.published_table import published_tables
from podperf.report.results import Record, explanation, not_comparable, preset, remarks, said_by, special_capabilities
from podperf.report.summary import further_figures, pods_cell

_DESCRIBED = (
    ("data_plane", "The data plane, read back from what was set up"),
    ("tester", "The tester"),
    ("interfaces", "The interfaces on the path"),
)
_MOST_FUNCTIONS = 12
_PERCENTILES = ("minimum", "mean", "p50", "p90", "p99", "p99_9", "maximum")


def record_view(record: Record, conformance: Conformance) -> Html:
    """Everything of a record except its trials, and the environment, which is the same for all tests of a run."""
    json = element("a", "the whole record as JSON", href=quote(conformance.link(record)))
    log = cells.in_log(record, conformance, "this test in Robot's log")
    return element(
        "details",
        element("summary", conformance.name_of(record), " ", cells.verdict(record)),
        element(
            "div",
            *(element("p", each) for each in _said(record)),
            _figures(record),
            _latency(record),
            *(element("p", element("b", f"{label}: "), figure) for label, figure in further_figures(record)),
            *(_functions(each) for each in counted_costs(record)),
            *method_tables(record),
            published_tables([record]),
            _limits(record),
            element("div", drawing(loss_curve(record)), class_="scroll") if record["trials"] else NOTHING,
            facts(_configuration(record)),
            *(_folded(words, record[part] or {}) for part, words in _DESCRIBED),
            _parameters(record),
            element("p", *((log, ", ") if log else ()), json, class_="small"),
            id=conformance.anchor(record),
        ),
        class_="record",
    )


def _said(record: Record) -> Iterator[Content]:
    """The most important sentences. Each limit has a line of its own."""
    judged = record["verdict"]["sentence"] if record["verdict"] and record["verdict"]["outcomes"] else None
    for each in dict.fromkeys([explanation(record), *remarks(record)]):
        if each and each != judged:
            yield each
    if reason := not_comparable(record):
        yield f"not comparable: {reason}"
    for each in special_capabilities(record):
        yield f"special capability in the system under test (draft section 5): {each}"
    for each in record["findings"]:
        yield together(cells.state(each["verdict"]), f" {each['claim']} ({said_by(each)}): {each['detail']}")


def _figures(record: Record) -> Html:
    heads = ("Rate", "kpps", "interval, kpps", "L1 Gbit/s", "L2 Gbit/s", "of line rate", "both directions, kpps")
    rows = []
    for metric in rates():
        if found := record["results"].get(metric.name):
            share, both = found["percent_of_line_rate"], found["aggregate_frames_per_second"]
            rows.append(
                (
                    metric.label,
                    cells.figure(record, metric),
                    cells.between(found),
                    number(found["l1_bits_per_second"] / 1e9),
                    number(found["l2_bits_per_second"] / 1e9),
                    "" if share is None else f"{number(share)} %",
                    "" if both == found["frames_per_second"] else kpps(both),
                )
            )
    known = [index for index in range(len(heads)) if any(row[index] for row in rows)]
    return table(
        [heads[index] for index in known],
        (TableRow([row[index] for index in known]) for row in rows),
        kind="figures-of-one",
        numeric=range(1, len(known)),
    )


def _latency(record: Record) -> Html:
    found = record["latency"]
    if not found:
        return NOTHING
    figures = ", ".join(f"{name.replace('_', '.')} {microseconds(found[f'{name}_ns'])}" for name in _PERCENTILES)
    return element("p", element("b", "Latency, µs: "), f"{figures} ({found['of']})")


def _functions(cost: CountedCost) -> Html:
    """The functions in which a frame has most of its instructions. NOTHING where they are not known."""
    found = most_first(cost.functions)
    if not found:
        return NOTHING
    rest = found[_MOST_FUNCTIONS:]
    lines = [(name, amount) for name, amount in found[:_MOST_FUNCTIONS]]
    lines += [(count(len(rest), "other function"), sum(amount for _, amount in rest))] if rest else []
    heads = (f"Function, {cost.in_flight}", "Instructions a frame", "Share")
    rows = [TableRow((name, instructions(amount), percent(amount / cost.figure))) for name, amount in lines]
    rows.append(TableRow(("all", instructions(cost.figure), "")))
    return table(heads, rows, numeric=(1, 2))


def _limits(record: Record) -> Html:
    outcomes = record["verdict"]["outcomes"] if record["verdict"] else ()
    rows = (element("li", cells.state(each["status"]), f" {each['sentence']}") for each in outcomes)
    return element("ul", *rows, class_="limits") if outcomes else NOTHING


def _configuration(record: Record) -> Iterator[tuple[str, Content]]:
    chain, traffic, limits = record["chain"], record["traffic"], record["tester_limits"]
    if chain:
        forwarder = f", forwarder {chain['forwarder']}" if chain["forwarder"] else ""
        yield "Chain", f"{chain['data_plane']}, pods: {pods_cell(record)}{forwarder}"
    if traffic:
        ways = " and ".join(traffic["directions"])
        yield "Traffic", f"{traffic['frame']['name']} frames with FCS, {ways}, {count(traffic['flows'], 'flow')}"
    if limits:
        loss = limits["own_loss_ratio"]
        own = "own loss unknown" if loss is None else f"own loss {percent(loss)} at half of it and below"
        yield "Tester's limit", f"{kpps(limits['maximum_load'])} kpps, {own} ({limits['source']})"
    if preset(record):
        yield "Search preset", preset(record)
    if words := placement_words(record):
        yield "Placement", words
    phases = Counter(each["phase"] for each in record["trials"])
    if phases:
        invalid = sum(1 for each in record["trials"] if each["invalid"])
        words = ", ".join(f"{phase} {amount}" for phase, amount in phases.items())
        yield "Trials", f"{words}; {invalid} of them invalid" if invalid else words
    yield "Started, ended (UTC)", f"{record['started']}, {record['ended'] or 'never'}"
    if record["test"]["tags"]:
        yield "Tags", ", ".join(record["test"]["tags"])


def _parameters(record: Record) -> Html:
    """The parameters that the newest draft wants. Empty for an older record without them."""
    found = record.get("parameters")
    if found is None:
        return NOTHING
    rows = ((each.label, found[name] or "not read") for name, each in PARAMETERS.items())
    words = "The configuration parameters of draft-ietf-bmwg-containerized-infra-08"
    return element("details", element("summary", words), facts(rows))


def _folded(words: str, data: Record) -> Html:
    found = flat(_without_offloads(data))
    return element("details", element("summary", words), facts(found.items())) if found else NOTHING


def _without_offloads(data: Record) -> Record:
    """The facts of an interface without its two dozen offloads, which only the record has."""
    return {
        key: {name: each for name, each in value.items() if name != "offloads"} if isinstance(value, dict) else value
        for key, value in data.items()
    }
