"""The nodes of a cluster, the slowest first: each beside all nodes and pairs that the same tests measured. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import median
from sys import intern
from typing import Any, NamedTuple

from podperf.figures import count, cut
from podperf.metrics import headlines
from podperf.records import Record
from podperf.report.html import Html, TableRow, element, table, titled

NAMED = 3  # the number of nodes that are named as the slowest
PORTS = 2  # of a tester, each of which is a pod
LONGEST_NAME = 253  # characters of a node's name, as Kubernetes has it


class Test(NamedTuple):
    """A test, on whichever nodes."""

    suite: str
    name: str


Rates = Mapping[Test, Mapping[tuple[str, ...], float]]
"""Rates by test, and by the nodes of the pods."""


@dataclass(frozen=True)
class NodeSpeed:
    """A node. `ratio` is the median of its rates, each beside the median of all nodes and pairs in the same test."""

    name: str
    ratio: float
    rates: int  # their number

    @property
    def words(self) -> str:
        """The node and its ratio."""
        return f"{self.name} ({self.ratio:.2f} of the median, {count(self.rates, 'rate')})"


def nodes_of(record: Record) -> tuple[str, ...]:
    """The nodes of the tester's pods. Empty if the tester is in no cluster."""
    pods: Any = record.tester.get("pods")
    if not isinstance(pods, dict):
        return ()
    found = [each.get("node") for each in islice(pods.values(), PORTS) if isinstance(each, dict)]
    return tuple(dict.fromkeys(cut(each, LONGEST_NAME) for each in found if isinstance(each, str)))


def slowest_first(records: Sequence[Record]) -> list[NodeSpeed]:
    """The nodes of these records. Empty unless a test was measured on several nodes or pairs."""
    rates: dict[Test, dict[tuple[str, ...], float]] = {}
    for record in records:
        nodes, rate = nodes_of(record), headline_rate(record)
        if nodes and rate is not None:
            rates.setdefault(test_of(record), {})[nodes] = rate
    return slowest(rates)


def slowest(tests: Rates) -> list[NodeSpeed]:
    """The nodes with these rates, the slowest first. A test that was measured on one node or pair tells nothing.

    A node in several pairs has a rate of each of them; so one slow node does not make the nodes slow with which it was
    measured.
    """
    ratios: dict[str, list[float]] = {}
    for rates in tests.values():
        middle = median(rates.values())
        for nodes, rate in rates.items() if len(rates) > 1 and middle > 0 else ():
            for node in nodes:
                ratios.setdefault(node, []).append(rate / middle)
    found = [NodeSpeed(name, median(each), len(each)) for name, each in ratios.items()]
    return sorted(found, key=lambda each: (each.ratio, each.name))


def test_of(record: Record) -> Test:
    """The test of a record."""
    return Test(intern(record.test.suite), intern(record.test.name))


def headline_rate(record: Record) -> float | None:
    """The most important rate of a record, in frames/s. None without a rate."""
    found = (record.figures.get(headline.name) for headline in headlines())
    return next((each.value for each in found if each), None)


def slowest_words(speeds: Sequence[NodeSpeed]) -> str:
    """The slowest nodes in a sentence. Empty without nodes."""
    named = ", ".join(speed.words for speed in speeds[:NAMED])
    return f"slowest of {count(len(speeds), 'node')}: {named}" if speeds else ""


def nodes_section(speeds: Sequence[NodeSpeed]) -> Html:
    """All nodes in a table, the slowest first. NOTHING if there is nothing to compare."""
    rows = [TableRow((speed.name, f"{speed.ratio:.2f}", str(speed.rates))) for speed in speeds]
    said = "Each rate is divided by the median of all nodes or pairs in the same test. A node has the median of these."
    found = table(("Node", "Share of the median rate", "Rates"), rows)
    return titled("The nodes, the slowest first", found, element("p", said, class_="small muted"))
