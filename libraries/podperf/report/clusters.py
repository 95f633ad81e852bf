"""The clusters whose networks were measured: what each one is, and its figures beside those of its nodes' networks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median

from podperf.metrics import METRICS, ON_PAGE, Metric
from podperf.records import Record
from podperf.report import cells
from podperf.report.conformance import Conformance
from podperf.report.facts import flat
from podperf.report.html import NOTHING, Html, TableRow, element, facts, table, titled, together
from podperf.report.results import figure_text, with_applications

LATENCIES = ("latency_p50", "latency_p99", "round_trip_p50", "round_trip_p99")
COLUMNS = ("mrr", "ndr", "pdr", "cpu_time", *LATENCIES)  # those of them that a test has
SHARE = "mrr"
HOW_TO_READ = (
    "The base line are pods in the networks of two nodes. A share is the MRR divided by that of the base line with the "
    "same frames. The rows were measured one after the other, so a share has no interval: podperf compare "
    "comparisons/pod-network.yaml measures it by turns."
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
    shares = {name: share for name, records in tests.items() if (share := share_of_base_line(records[-1], last))}
    heads += ["Share of the base line"] if shares else []
    rows = []
    for name, records in tests.items():
        figures = (middle(records, each) for each in metrics)
        of_base_line = [f"{shares[name]:.2f}" if name in shares else "-"] if shares else []
        rows.append(TableRow((cells.named(records[-1], conformance), *figures, *of_base_line)))
    below = element("p", HOW_TO_READ, class_="small muted") if shares else NOTHING
    found = table(heads, rows, numeric=range(1, len(heads)))
    return titled("The network of a cluster", together(facts(_facts(last[0])), found), below)


def _facts(record: Record) -> Iterator[tuple[str, str]]:
    cluster = record.cluster
    network = cluster.get("network")
    yield "Cluster", ", ".join(str(cluster[key]) for key in ("server", "uid") if cluster.get(key))
    yield "Kubernetes", str(cluster.get("version") or "not read")
    yield from flat(network if isinstance(network, Mapping) else {}, "pod network").items()


def is_base_line(record: Record) -> bool:
    """Whether the pods were in the networks of their nodes."""
    return record.tester.get("host_network") is True


def share_of_base_line(record: Record, others: Sequence[Record]) -> float | None:
    """The rate of a record divided by that of the base line with the same traffic. None without both."""
    lines = (each for each in others if is_base_line(each) and each.traffic == record.traffic)
    line = next((found for each in lines if (found := each.figures.get(SHARE))), None)
    figure = None if is_base_line(record) else record.figures.get(SHARE)
    return figure.value / line.value if figure and line and line.value else None


def middle(records: Sequence[Record], metric: Metric) -> str:
    """The figure of a test: the median, if it was measured on several pairs of nodes."""
    found = [figure for record in records if (figure := record.figures.get(metric.name))]
    if not found:
        return "-"
    figure = found[0] if len(found) == 1 else replace(found[0], value=median(each.value for each in found))
    return figure_text(figure, metric.quantity, ON_PAGE)
