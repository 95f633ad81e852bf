"""The report of many runs in a cluster, one for each node or pair of nodes: a page, and the same as data.

A report of a few runs shows all of each record. Two hundred nodes have 19 900 pairs, whose records take some gigabytes.
So this module reads one run after the other, and keeps only the rates, and how each test ended.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from sys import intern
from typing import Any, NamedTuple
from urllib.parse import quote

import podperf
from podperf.errors import PodperfError
from podperf.figures import count, cut, kpps
from podperf.printable import printable
from podperf.report import svg
from podperf.report.cells import state
from podperf.report.html import (
    Content,
    Html,
    TableRow,
    element,
    framed,
    moment,
    not_read,
    plots,
    table,
    tiles,
    titled,
    together,
)
from podperf.report.nodes import NodeSpeed, Rates, Test, headline_rate, nodes_of, nodes_section, slowest, test_of
from podperf.report.results import RunResults, explanation, read_run, verdict_word

MOST_RUNS = 30  # a report of more runs shows nodes and pairs, and not each record
WELL = ("measured", "passed", "confirmed", "skipped")


class NodeEnd(NamedTuple):
    """How a test ended, in a word, and why."""

    word: str
    reason: str


@dataclass(frozen=True)
class NodesRun:
    """One run. `nodes` are those of its pods, and empty if none started. `page` is its own report, if it has one."""

    folder: Path
    started: str
    nodes: tuple[str, ...]
    rates: Mapping[Test, float]
    ends: Mapping[Test, NodeEnd]
    page: Path | None = None
    problems: tuple[str, ...] = ()

    @classmethod
    def of(cls, run: RunResults) -> NodesRun:
        """The part of a run that a report needs."""
        rates = {test_of(record): rate for record in run.records if (rate := headline_rate(record)) is not None}
        ends = {test_of(record): NodeEnd(verdict_word(record), intern(explanation(record))) for record in run.records}
        nodes = next(filter(None, map(nodes_of, run.records)), ())
        page = run.directory / "conformance.html"
        return cls(run.directory, run.started, nodes, rates, ends, page if page.is_file() else None, run.problems)


@dataclass(frozen=True)
class PairSpeed:
    """The nodes of a run. `ratio` is the median of its rates, each beside the median of all runs in the same test.

    `beside_nodes` is this ratio, divided by that of the slower one of its nodes. So it is low for a slow path between
    two nodes that are fast otherwise.
    """

    run: NodesRun
    ratio: float
    beside_nodes: float


@dataclass(frozen=True)
class ManyRuns:
    """All runs, the oldest first. `unread` has a sentence for each folder that is none of a run."""

    runs: tuple[NodesRun, ...]
    unread: tuple[str, ...] = ()

    @cached_property
    def rates(self) -> Rates:
        """The rates by test, and by nodes. The latest run of the same nodes counts."""
        found: dict[Test, dict[tuple[str, ...], float]] = {}
        for run in self.runs:
            for test, rate in run.rates.items() if run.nodes else ():
                found.setdefault(test, {})[run.nodes] = rate
        return found

    @cached_property
    def nodes(self) -> list[NodeSpeed]:
        """The nodes, the slowest first."""
        return slowest(self.rates)

    @cached_property
    def pairs(self) -> list[PairSpeed]:
        """The pairs, or single nodes, that have rates. Those which are slower than their nodes are the first."""
        middles = {test: median(rates.values()) for test, rates in self.rates.items()}
        nodes = {node.name: node.ratio for node in self.nodes}
        found = []
        for run in {each.nodes: each for each in self.runs if each.nodes}.values():
            ratios = [rate / middles[test] for test, rate in run.rates.items() if middles[test] > 0]
            expected = min(nodes.get(node, 0.0) for node in run.nodes)
            if ratios and expected > 0:
                found.append(PairSpeed(run, median(ratios), median(ratios) / expected))
        return sorted(found, key=lambda each: (each.beside_nodes, each.run.nodes))

    @cached_property
    def words(self) -> Counter[str]:
        """The number of tests that ended with each word."""
        return Counter(end.word for run in self.runs for end in run.ends.values())

    def by_reason(self, *, skipped: bool) -> dict[tuple[NodeEnd, str], list[NodesRun]]:
        """The runs of each reason and name of a test: those that were skipped, or those that did not end well."""
        found: dict[tuple[NodeEnd, str], list[NodesRun]] = {}
        for run in self.runs:
            for test, end in run.ends.items():
                if (end.word == "skipped") is skipped and (skipped or end.word not in WELL):
                    found.setdefault((end, test.name), []).append(run)
        return found

    @property
    def problems(self) -> list[str]:
        """A sentence for each folder and file that could not be read."""
        return [
            *self.unread,
            *(f"{printable(run.folder.name)}: {problem}" for run in self.runs for problem in run.problems),
        ]


def read_many(folders: Sequence[Path]) -> ManyRuns:
    """All runs of these folders."""
    runs: dict[Path, NodesRun] = {}
    unread = []
    for folder in folders:
        try:
            run = NodesRun.of(read_run(folder, trials=False))
            runs[run.folder] = run
        except PodperfError as error:
            unread.append(str(error))
    return ManyRuns(tuple(sorted(runs.values(), key=lambda each: (each.started, each.folder))), tuple(unread))


def are_many(folders: Sequence[Path]) -> bool:
    """Whether these are too many runs in a cluster for a report of each record. Only the first ones are read."""
    return len(folders) > MOST_RUNS and any(run.nodes for run in read_many(folders[:MOST_RUNS]).runs)


SCHEMA_VERSION = 1
SHOWN = 20  # a table has at most this number of pairs, runs of a reason, or problems


def nodes_page(found: ManyRuns, root: Path) -> str:
    """The page. Links are relative to its future folder `root`."""
    return framed("Report of the nodes of a cluster", *_body(found, root))


def _body(found: ManyRuns, root: Path) -> Iterator[Html]:
    yield element("h1", "How fast the network of each node is")
    yield _head(found)
    yield _ends("What failed, or is not decided", found, root, skipped=False)
    yield _tests(found)
    names, ratios = [node.name for node in found.nodes], {pair.run.nodes: pair.ratio for pair in found.pairs}
    yield titled("The pairs of nodes", plots([node_map(names, ratios)]))
    yield _pairs(found, root)
    yield nodes_section(found.nodes)
    yield _ends("What this cluster does not offer", found, root, skipped=True)
    yield element(
        "footer",
        f"podperf {podperf.__version__}. A rate is the PDR of a test, or its MRR without a search, per direction; "
        "kpps: thousand frames per second.",
    )


def _head(found: ManyRuns) -> Html:
    numbers = {"nodes": len(found.nodes), "runs": len(found.runs)}
    numbers |= {f"tests {word}": found.words[word] for word in sorted(found.words)}
    first, last = found.runs[0].started, found.runs[-1].started
    more = [f"{len(found.problems) - SHOWN} more"] if len(found.problems) > SHOWN else []
    return together(
        element("p", f"Runs from {moment(first)} to {moment(last)}.", class_="muted"),
        tiles(numbers),
        not_read([*found.problems[:SHOWN], *more]),
    )


def _tests(found: ManyRuns) -> Html:
    rows = [
        TableRow((test.name, str(len(rates)), *(kpps(each(rates.values())) for each in (min, median, max))))
        for test, rates in found.rates.items()
    ]
    heads = ("Test", "Nodes or pairs", "Lowest rate, kpps", "Median rate, kpps", "Highest rate, kpps")
    return titled("The rates", table(heads, rows, numeric=range(1, 5)))


def _pairs(found: ManyRuns, root: Path) -> Html:
    """The pairs that are slower than the slower one of their nodes."""
    slow = [pair for pair in found.pairs if len(pair.run.nodes) > 1 and pair.beside_nodes < 1][:SHOWN]
    rows = [TableRow((_link(each.run, root), f"{each.ratio:.2f}", f"{each.beside_nodes:.2f}")) for each in slow]
    said = (
        "A pair has the median of its rates, each divided by the median of all pairs in the same test. The last column "
        "divides this by the share of the slower node. A low figure there is a slow path between two nodes."
    )
    pairs = table(("Pair", "Share of the median rate", "Beside its slower node"), rows, numeric=(1, 2))
    return titled("Pairs that are slower than their nodes", pairs, element("p", said, class_="small muted"))


def _ends(title: str, found: ManyRuns, root: Path, *, skipped: bool) -> Html:
    """The tests that were skipped, or did not end well: a row for each test and reason."""
    rows = []
    for (end, test), runs in found.by_reason(skipped=skipped).items():
        shown = [part for run in runs[: 1 if skipped else SHOWN] for part in (_link(run, root), " ")]
        more = [f"and {count(len(runs) - SHOWN, 'more')}"] if len(runs) > SHOWN and not skipped else []
        where: Content = together(*shown, *more)
        rows.append(TableRow((test, state(end.word), end.reason, str(len(runs)), where)))
    heads = ("Test", "Verdict", "Because", "Runs", "For example" if skipped else "Where")
    return titled(title, table(heads, rows, numeric=(3,)))


def _link(run: NodesRun, root: Path) -> Content:
    """The nodes of a run, as a link to its own report. The name of its folder if it has no nodes."""
    name = " and ".join(run.nodes) or printable(run.folder.name)
    return element("a", name, href=quote(os.fsencode(os.path.relpath(run.page, root)))) if run.page else name


def to_json(found: ManyRuns, root: Path) -> dict[str, Any]:
    """The report as data."""
    return {
        "schema_version": SCHEMA_VERSION,
        "podperf": podperf.__version__,
        "runs": len(found.runs),
        "problems": found.problems,
        "nodes": [{"name": node.name, "share_of_median": node.ratio, "rates": node.rates} for node in found.nodes],
        "pairs": [
            {
                "nodes": pair.run.nodes,
                "results": os.path.relpath(pair.run.folder, root),
                "share_of_median": pair.ratio,
                "beside_nodes": pair.beside_nodes,
                "rates": [
                    {"suite": test.suite, "test": test.name, "frames_per_second": rate}
                    for test, rate in pair.run.rates.items()
                ],
            }
            for pair in found.pairs
        ],
        "not_well": [
            {
                "test": test,
                "verdict": end.word,
                "reason": end.reason,
                "results": [os.path.relpath(run.folder, root) for run in runs],
            }
            for (end, test), runs in found.by_reason(skipped=False).items()
        ],
    }


def in_words(found: ManyRuns) -> str:
    """The report in a line: `66 runs: 330 tests measured, 330 skipped`."""
    ends = ", ".join(f"{number} {word}" for word, number in found.words.most_common())
    unwell = {end.reason for end, _ in found.by_reason(skipped=False)}
    reasons = [f"    {each}" for each in sorted(unwell)[:SHOWN]]
    return "\n".join([f"{count(len(found.runs), 'run')}, tests: {ends}", *reasons])


_WIDTH, _TOP, _LABEL = 720, 44, 120
_LARGEST, _READABLE = 24.0, 10.0  # of a cell, in the unit of the drawing; a label needs the latter
_MOST = 300  # nodes: the number of cells grows with the square of it
_NAME = 40  # characters of a name in the words of a cell
_UNKNOWN, _SLOW = "#e4e7eb", "#b42318"


def node_map(nodes: Sequence[str], ratios: Mapping[tuple[str, ...], float]) -> str:
    """An SVG of the pairs of these nodes, the slowest first, of at most 300 nodes. Empty without pairs."""
    left_out, nodes = len(nodes[_MOST:]), nodes[:_MOST]
    place = {name: number for number, name in enumerate(nodes)}
    known = {pair: ratio for pair, ratio in ratios.items() if len(pair) == 2 and place.keys() >= set(pair)}
    pairs = {tuple(sorted(map(place.__getitem__, pair))): ratio for pair, ratio in known.items()}
    if not pairs:
        return ""
    among = f"; {left_out} faster nodes are not drawn" if left_out else ""
    words_of = [cut(name, _NAME) for name in nodes]
    left = _LABEL if (_WIDTH - _LABEL) / len(nodes) >= _READABLE else 0
    size = min(_LARGEST, (_WIDTH - left) / len(nodes))
    shapes = [
        svg.text(
            0, 16, f"A cell is a pair of nodes. The slowest node is on the left, and on top{among}", weight="bold"
        ),
        svg.text(0, 32, "white: the median rate or more; red: half of it or less; grey: not measured", fill=svg.MUTED),
    ]
    for row, name in enumerate(nodes):
        top = _TOP + row * size
        if left:
            shapes.append(svg.text(left - 6, top + size * 0.75, cut(name, 17), size=int(size * 0.7), anchor="end"))
        for column in range(row):
            ratio = pairs.get((column, row))
            words = f"{words_of[column]} and {words_of[row]}: {'not measured' if ratio is None else f'{ratio:.2f}'}"
            # White at the median and above, the whole colour at half of it and below.
            fill = _UNKNOWN if ratio is None else svg.mixed(_SLOW, min(max(2 * (1 - ratio), 0.0), 1.0))
            shapes.append(svg.box(left + column * size, top, size, size, fill, title=words))
    return svg.document(_WIDTH, round(_TOP + len(nodes) * size) + 8, "rates of all pairs of nodes", *shapes)
