"""The report of many runs in a cluster, one for each node or pair of nodes: a page, and the same as data. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import quote

import podperf
from podperf.figures import count, kpps
from podperf.report.cells import state
from podperf.report.html import NOTHING, Content, Html, TableRow, drawing, element, table, together
from podperf.report.many_runs import ManyRuns, NodesRun
from podperf.report.node_map import node_map
from podperf.report.nodes import nodes_section
from podperf.report.page_frame import framed

SCHEMA_VERSION = 1
SHOWN = 20  # so many pairs, runs of a reason, or problems are in a table


def nodes_page(found: ManyRuns, root: Path) -> str:
    """The page. Links are relative to its future folder `root`."""
    return framed("Report of the nodes of a cluster", *_body(found, root))


def _body(found: ManyRuns, root: Path) -> Iterator[Html]:
    yield element("h1", "How fast the network of each node is")
    yield _head(found)
    yield _ends("What failed, or is not decided", found, root, skipped=False)
    yield _tests(found)
    yield _map(found)
    yield _pairs(found, root)
    yield nodes_section(found.nodes)
    yield _ends("What this cluster does not offer", found, root, skipped=True)
    yield element(
        "footer",
        f"podperf {podperf.__version__}. A rate is the PDR of a test, or its MRR without a search, per direction; "
        "kpps: thousand frames per second.",
    )


def _head(found: ManyRuns) -> Html:
    tiles = [(len(found.nodes), "nodes"), (len(found.runs), "runs")]
    tiles += [(found.words[each], f"tests {each}") for each in sorted(found.words)]
    first, last = found.runs[0].started, found.runs[-1].started
    problems = [element("li", each) for each in found.problems[:SHOWN]]
    more = len(found.problems) - len(problems)
    return together(
        element("p", f"Runs from {_moment(first)} to {_moment(last)}.", class_="muted"),
        element(
            "div",
            *(element("div", element("b", str(number)), label, class_="tile") for number, label in tiles),
            class_="tiles",
        ),
        element(
            "div",
            "Files that could not be read, and are missing here:",
            element("ul", *problems, element("li", f"{more} more") if more else NOTHING),
            class_="note",
        )
        if problems
        else NOTHING,
    )


def _tests(found: ManyRuns) -> Html:
    rows = [
        TableRow((test.name, str(len(rates)), *(kpps(each(rates.values())) for each in (min, median, max))))
        for test, rates in found.rates.items()
    ]
    heads = ("Test", "Nodes or pairs", "Lowest rate, kpps", "Median rate, kpps", "Highest rate, kpps")
    return together(element("h2", "The rates"), table(heads, rows, numeric=range(1, 5))) if rows else NOTHING


def _map(found: ManyRuns) -> Html:
    drawn = node_map([each.name for each in found.nodes], {each.run.nodes: each.ratio for each in found.pairs})
    if not drawn:
        return NOTHING
    return together(element("h2", "The pairs of nodes"), element("div", drawing(drawn), class_="scroll"))


def _pairs(found: ManyRuns, root: Path) -> Html:
    """The pairs that are slower than the slower one of their nodes."""
    slow = [each for each in found.pairs if len(each.run.nodes) > 1 and each.beside_nodes < 1][:SHOWN]
    rows = [TableRow((_link(each.run, root), f"{each.ratio:.2f}", f"{each.beside_nodes:.2f}")) for each in slow]
    if not rows:
        return NOTHING
    said = (
        "A pair has the median of its rates, each divided by the median of all pairs in the same test. The last column "
        "divides this by the share of the slower node. A low figure there is a slow path between two nodes."
    )
    heads = ("Pair", "Share of the median rate", "Beside its slower node")
    return together(
        element("h2", "Pairs that are slower than their nodes"),
        table(heads, rows, numeric=(1, 2)),
        element("p", said, class_="small muted"),
    )


def _ends(title: str, found: ManyRuns, root: Path, *, skipped: bool) -> Html:
    """The tests that were skipped, or did not end well: a row for each test and reason."""
    rows = []
    for (end, test), runs in found.by_reason(skipped=skipped).items():
        shown = [part for run in runs[: 1 if skipped else SHOWN] for part in (_link(run, root), " ")]
        more = [f"and {count(len(runs) - SHOWN, 'more')}"] if len(runs) > SHOWN and not skipped else []
        where: Content = together(*shown, *more)
        rows.append(TableRow((test, state(end.word), end.reason, str(len(runs)), where)))
    heads = ("Test", "Verdict", "Because", "Runs", "For example" if skipped else "Where")
    return together(element("h2", title), table(heads, rows, numeric=(3,))) if rows else NOTHING


def _link(run: NodesRun, root: Path) -> Content:
    """The nodes of a run, as a link to its own report. The name of its folder if it has no nodes."""
    name = " and ".join(run.nodes) or run.folder.name
    return element("a", name, href=quote(os.path.relpath(run.page, root))) if run.page else name


def _moment(started: str) -> str:
    return f"{started[:10]} {started[11:16]} UTC" if started else "?"


def to_json(found: ManyRuns, root: Path) -> dict[str, Any]:
    """The report as data."""
    return {
        "schema_version": SCHEMA_VERSION,
        "podperf": podperf.__version__,
        "runs": len(found.runs),
        "problems": found.problems,
        "nodes": [{"name": each.name, "share_of_median": each.ratio, "rates": each.rates} for each in found.nodes],
        "pairs": [
            {
                "nodes": each.run.nodes,
                "results": os.path.relpath(each.run.folder, root),
                "share_of_median": each.ratio,
                "beside_nodes": each.beside_nodes,
                "rates": [
                    {"suite": test.suite, "test": test.name, "frames_per_second": rate}
                    for test, rate in each.run.rates.items()
                ],
            }
            for each in found.pairs
        ],
        "not_well": [
            {"test": test, "verdict": end.word, "reason": end.reason, "results": _folders(runs, root)}
            for (end, test), runs in found.by_reason(skipped=False).items()
        ],
    }


def _folders(runs: Sequence[NodesRun], root: Path) -> list[str]:
    return [os.path.relpath(each.folder, root) for each in runs]


def in_words(found: ManyRuns) -> str:
    """The report in a line: `66 runs: 330 tests measured, 330 skipped`."""
    ends = ", ".join(f"{number} {word}" for word, number in found.words.most_common())
    unwell = {end.reason for end, _ in found.by_reason(skipped=False)}
    reasons = [f"    {each}" for each in sorted(unwell)[:SHOWN]]
    return "\n".join([f"{count(len(found.runs), 'run')}, tests: {ends}", *reasons])
