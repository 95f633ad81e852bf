"""The nodes of a cluster, the slowest first: each beside all nodes and pairs that the same tests measured. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from podperf.figures import count
from podperf.metrics import headlines
from podperf.report.html import NOTHING, Html, TableRow, element, table, together
from podperf.report.results import Record

NAMED = 3  # so many nodes are named as the slowest


@dataclass(frozen=True)
class NodeSpeed:
    """A node. `ratio` is the median of its rates, each beside the median of all nodes and pairs in the same test."""

    name: str
    ratio: float
    rates: int  # so many

    @property
    def words(self) -> str:
        """The node and its ratio."""
        return f"{self.name} ({self.ratio:.2f} of the median, {count(self.rates, 'rate')})"


def nodes_of(record: Record) -> tuple[str, ...]:
    """The nodes of the tester's pods. Empty if the tester is in no cluster."""
    pods: Any = (record["tester"] or {}).get("pods")
    if not isinstance(pods, dict):
        return ()
    found = [each.get("node") for each in pods.values() if isinstance(each, dict)]
    return tuple(dict.fromkeys(each for each in found if isinstance(each, str)))


def slowest_first(records: Sequence[Record]) -> list[NodeSpeed]:
    """The nodes of these records. Empty unless a test was measured on several nodes or pairs.

    A rate is the most important one of its test. A node in several pairs has a rate of each of them; so one slow node
    does not make the nodes slow with which it was measured.
    """
    tests: dict[tuple[str, str], dict[tuple[str, ...], float]] = {}
    for record in records:
        nodes, rate = nodes_of(record), _rate(record)
        if nodes and rate is not None:
            tests.setdefault((record["test"]["suite"], record["test"]["name"]), {})[nodes] = rate
    ratios: dict[str, list[float]] = {}
    for rates in tests.values():
        middle = median(rates.values())
        for nodes, rate in rates.items() if len(rates) > 1 and middle > 0 else ():
            for node in nodes:
                ratios.setdefault(node, []).append(rate / middle)
    found = [NodeSpeed(name, median(each), len(each)) for name, each in ratios.items()]
    return sorted(found, key=lambda each: (each.ratio, each.name))


def _rate(record: Record) -> float | None:
    found = (record["results"].get(each.name) for each in headlines())
    return next((float(each["frames_per_second"]) for each in found if each), None)


def slowest_words(speeds: Sequence[NodeSpeed]) -> str:
    """The slowest nodes in a sentence. Empty without nodes."""
    named = ", ".join(each.words for each in speeds[:NAMED])
    return f"slowest of {count(len(speeds), 'node')}: {named}" if speeds else ""


def nodes_section(records: Sequence[Record]) -> Html:
    """All nodes in a table, the slowest first. NOTHING if there is nothing to compare."""
    speeds = slowest_first(records)
    if not speeds:
        return NOTHING
    rows = [TableRow((each.name, f"{each.ratio:.2f}", str(each.rates))) for each in speeds]
    said = "Each rate is divided by the median of all nodes or pairs in the same test. A node has the median of these."
    return together(
        element("h2", "The nodes, the slowest first"),
        table(("Node", "Share of the median rate", "Rates"), rows),
        element("p", said, class_="small muted"),
    )
