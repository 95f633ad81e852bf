"""The clusters whose networks were measured: what each one is, and its figures beside those of its nodes' networks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median

from podperf.experiments.host_share import OF_RATES
from podperf.methods.latency import ONE_WAY, ROUND_TRIP
from podperf.methods.many_pairs import ManyPairs
from podperf.metrics import METRICS, ON_PAGE, Metric
from podperf.records import Record
from podperf.report import cells
from podperf.report.conformance import Conformance
from podperf.report.facts import flat
from podperf.report.html import NOTHING, Html, TableRow, element, facts, table, titled, together
from podperf.report.method_tables import method_tables
from podperf.report.results import figure_text, host_shares, with_applications

LATENCIES = (*ONE_WAY, *ROUND_TRIP)
COLUMNS = ("mrr", "ndr", "pdr", "cpu_time", *LATENCIES)  # those of them that a test has
HEAD_OF_SHARES = "Share of the host network"
HOW_TO_READ = (
    "A share is the figure of the pods divided by that of pods in the networks of two nodes, also where the pods are "
    "on one node. Both figures are medians of rounds in which they were measured by turns. The interval contains the "
    "share with 95 % confidence. The CPU of the sending pod does the network's work for each frame, so a rate includes "
    "the cost of sending. CPU time and round trips have the same load in both places."
)

Tests = Mapping[str, Sequence[Record]]
"""The records of a cluster by the name of their test: several for several pairs of nodes."""


def clusters_section(conformance: Conformance) -> Html:
    """A heading, facts and a table for each cluster. NOTHING without any."""
    clusters: dict[str, dict[str, list[Record]]] = {}
    for record in with_applications(conformance.latest, application=False):
        if found := record.cluster:
            of_cluster = clusters.setdefault(str(found.get("uid") or found.get("server")), {})
            of_cluster.setdefault(record.test.name, []).append(record)
    return together(*(_cluster(tests, conformance) for tests in clusters.values()))


def _cluster(tests: Tests, conformance: Conformance) -> Html:
    last = [records[-1] for records in tests.values()]
    metrics = [METRICS[name] for name in COLUMNS if any(name in record.figures for record in last)]
    heads = ["Test", *(f"{each.head}, {each.quantity.unit}" for each in metrics)]
    rows = [
        TableRow((cells.named(records[-1], conformance), *(middle(records, each) for each in metrics)))
        for records in tests.values()
        if any(each.name in records[-1].figures for each in metrics)
    ]
    found = table(heads, rows, numeric=range(1, len(heads)))
    content = together(facts(_facts(last[0])), _shares(tests, conformance), found, _pairs(tests, conformance))
    return titled("The network of a cluster", content)


def _shares(tests: Tests, conformance: Conformance) -> Html:
    """The pods of each test beside the networks of their nodes. NOTHING without such tests."""
    rows = [
        TableRow(
            (
                cells.named(record, conformance) if share.name in OF_RATES else "",
                f"{METRICS[share.name].label}, {cells.typeset(share.unit)}",
                *reversed(share.amounts),
                str(share),
            )
        )
        for records in tests.values()
        for record in records
        for share in host_shares(record)
    ]
    heads = ("By turns", "Figure", "Host network", "Pods", HEAD_OF_SHARES)
    below = element("p", HOW_TO_READ, class_="small muted")
    return together(table(heads, rows, numeric=(2, 3, 4)), below) if rows else NOTHING


def _pairs(tests: Tests, conformance: Conformance) -> Html:
    """The pairs that sent at the same time in each test. NOTHING without such tests."""
    records = (record for records in tests.values() for record in records if record.method(ManyPairs.name))
    return together(
        *(
            together(element("h3", cells.named(record, conformance)), *method_tables(record, (ManyPairs.name,)))
            for record in records
        )
    )


def _facts(record: Record) -> Iterator[tuple[str, str]]:
    cluster = record.cluster
    network = cluster.get("network")
    yield "Cluster", ", ".join(str(cluster[key]) for key in ("server", "uid") if cluster.get(key))
    yield "Kubernetes", str(cluster.get("version") or "not read")
    yield from flat(network if isinstance(network, Mapping) else {}, "pod network").items()


def middle(records: Sequence[Record], metric: Metric) -> str:
    """The figure of a test: the median, if it was measured on several pairs of nodes."""
    found = [figure for record in records if (figure := record.figures.get(metric.name))]
    if not found:
        return "-"
    figure = found[0] if len(found) == 1 else replace(found[0], value=median(each.value for each in found))
    return figure_text(figure, metric.quantity, ON_PAGE)
