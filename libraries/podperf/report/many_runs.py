"""Many runs in a cluster, one for each node or pair of nodes: what one report needs of them, and no more.

A report of a few runs shows all of each record. Two hundred nodes have 19 900 pairs, whose records take some gigabytes.
So this module reads one run after the other, and keeps only the rates, and how each test ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from sys import intern
from typing import NamedTuple

from podperf.errors import PodperfError
from podperf.report.nodes import NodeSpeed, Rates, Test, headline_rate, nodes_of, slowest, test_of
from podperf.report.results import RunResults, explanation, read_run, verdict_word

MOST_RUNS = 30  # a report of more runs shows nodes and pairs, and not each record
WELL = ("measured", "passed", "confirmed", "skipped")


class End(NamedTuple):
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
    ends: Mapping[Test, End]
    page: Path | None = None
    problems: tuple[str, ...] = ()

    @classmethod
    def of(cls, run: RunResults) -> NodesRun:
        """What a report needs of a run."""
        rates = {test_of(each): rate for each in run.records if (rate := headline_rate(each)) is not None}
        ends = {test_of(each): End(verdict_word(each), intern(explanation(each))) for each in run.records}
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
        nodes = {each.name: each.ratio for each in self.nodes}
        found = []
        for run in {each.nodes: each for each in self.runs if each.nodes}.values():
            ratios = [rate / middles[test] for test, rate in run.rates.items() if middles[test] > 0]
            expected = min(nodes.get(each, 0.0) for each in run.nodes)
            if ratios and expected > 0:
                found.append(PairSpeed(run, median(ratios), median(ratios) / expected))
        return sorted(found, key=lambda each: (each.beside_nodes, each.run.nodes))

    @cached_property
    def words(self) -> Counter[str]:
        """So many tests ended with each word."""
        return Counter(end.word for run in self.runs for end in run.ends.values())

    def by_reason(self, *, skipped: bool) -> dict[tuple[End, str], list[NodesRun]]:
        """The runs of each reason and name of a test: those that were skipped, or those that did not end well."""
        found: dict[tuple[End, str], list[NodesRun]] = {}
        for run in self.runs:
            for test, end in run.ends.items():
                if (end.word == "skipped") is skipped and (skipped or end.word not in WELL):
                    found.setdefault((end, test.name), []).append(run)
        return found

    @property
    def problems(self) -> list[str]:
        """A sentence for each folder and file that could not be read."""
        return [*self.unread, *(f"{run.folder.name}: {each}" for run in self.runs for each in run.problems)]


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
    return len(folders) > MOST_RUNS and any(each.nodes for each in read_many(folders[:MOST_RUNS]).runs)
