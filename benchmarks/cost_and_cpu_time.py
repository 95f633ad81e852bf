"""Does the counted cost of a frame predict its CPU time? `cost_and_cpu_time.py COUNTED LOCAL... [--svg FILE]`

Reads the records of a run on the counted machine and of one or more runs on a testbed; measures nothing:

    sudo ./podperf run topologies/counted.yaml --outputdir /tmp/counted
    sudo ./podperf run --outputdir /tmp/local
    .venv/bin/python benchmarks/cost_and_cpu_time.py /tmp/counted /tmp/local

A row is a chain with one kind of traffic that both have. Prints each row, and Spearman's rank correlation of both
costs with the CPU time; of several runs the median counts. Writes the plot.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.errors import PodperfError
from podperf.figures import number, short
from podperf.metrics import METRICS, Metric
from podperf.records import Record
from podperf.report import svg
from podperf.report.results import RunResults, read_runs

COSTS = (METRICS["cost"], METRICS["cost_in_bursts"])
COLOURS = {"cost": "#364fc7", "cost_in_bursts": "#b35c00"}
CPU_TIME = METRICS["cpu_time"]
LEAST = 3  # rows, below which ranks say nothing
LINE = 12  # between two names of the plot
WIDEST = 60  # columns of a name and a cost
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 520, 70, 150, 56, 48

Figures = Mapping[str, float]  # by the row


@dataclass(frozen=True)
class Row:
    """A chain that was measured on both testbeds: its cost in instructions, and its CPU time in ns, a frame."""

    name: str
    cost: float
    cpu_time: float


def row_of(record: Record) -> str:
    """The chain and the traffic of a record, in words. Empty without a chain."""
    chain, traffic = record.chain, record.traffic
    if not chain or not traffic:
        return ""
    words = [str(replace(chain, forwarder=None)), traffic.frame.name]
    words += ["both directions"] if len(traffic.directions) > 1 else []
    words += [f"{traffic.flows} flows"] if traffic.flows != 1 else []
    return ", ".join(words)


def figures(runs: Iterable[RunResults], metric: Metric) -> Figures:
    """The median of each row's figures that are no bounds."""
    found: dict[str, list[float]] = {}
    for record in (record for run in runs for record in run.records):
        result = record.figures.get(metric.name)
        if result and not result.lower_bound and (row := row_of(record)):
            found.setdefault(row, []).append(result.value)
    return {row: statistics.median(values) for row, values in found.items()}


def rows_of(costs: Figures, times: Figures) -> list[Row]:
    """The rows that both have, the cheapest first."""
    return sorted((Row(each, costs[each], times[each]) for each in costs.keys() & times), key=lambda row: row.cost)


def ranks(values: Sequence[float]) -> list[float]:
    """The rank of each value, from 1. Equal values share the mean of their ranks."""
    ordered = sorted(values)
    return [ordered.index(each) + (ordered.count(each) + 1) / 2 for each in values]


def rank_correlation(rows: Sequence[Row]) -> float | None:
    """Spearman's rho, from -1 to 1. None with fewer than three rows, or if all figures are equal."""
    pairs = ranks([each.cost for each in rows]), ranks([each.cpu_time for each in rows])
    if len(rows) < LEAST or any(len(set(each)) == 1 for each in pairs):
        return None
    return statistics.correlation(*pairs)


def names_beside(dots: Sequence[tuple[float, float, str]]) -> Iterator[str]:
    """The name of each dot at its right, lower where another name would be in its place. From the top to the bottom."""
    above = -math.inf
    for x, y, name in sorted(dots, key=lambda dot: dot[1]):
        above = max(y + 4, above + LINE)
        yield svg.text(x + 7, above, name, size=10, fill=svg.MUTED)


def plot(found: Mapping[Metric, Sequence[Row]]) -> str:
    """The CPU time over the cost, a dot for each row; both axes are logarithmic."""
    every = [row for rows in found.values() for row in rows]
    x = Axis([row.cost for row in every], LEFT, WIDTH - RIGHT)
    y = Axis([row.cpu_time for row in every], HEIGHT - BOTTOM, TOP)
    shapes = []
    for at in svg.log_ticks(*x.ends):
        shapes += [svg.line(x(at), TOP, x(at), HEIGHT - BOTTOM)]
        shapes += [svg.text(x(at), HEIGHT - BOTTOM + 16, short(at), size=11, fill=svg.MUTED, anchor="middle")]
    for at in svg.log_ticks(*y.ends):
        shapes += [svg.line(LEFT, y(at), WIDTH - RIGHT, y(at))]
        shapes += [svg.text(LEFT - 6, y(at) + 4, short(at), size=11, fill=svg.MUTED, anchor="end")]
    title = "CPU time a frame on a machine, over the counted cost of the same chain"
    shapes += [svg.text(0, 16, title, weight="bold")]
    shapes += [svg.text(0, TOP - 10, "CPU time, ns", size=11, fill=svg.MUTED)]
    shapes += [svg.text(WIDTH - RIGHT, HEIGHT - 10, "instructions a frame", size=11, fill=svg.MUTED, anchor="end")]
    for place, (metric, rows) in enumerate(found.items()):
        colour, rho = COLOURS[metric.name], rank_correlation(rows)
        said = "no rank correlation" if rho is None else f"rank correlation {rho:.2f}"
        legend = f"{metric.label}: {said}, {len(rows)} rows"
        shapes += [svg.box(250 + 250 * place, 28, 10, 10, colour), svg.text(264 + 250 * place, 37, legend, size=11)]
        for row in rows:
            words = f"{row.name}: {number(row.cost)} instructions, {number(row.cpu_time)} ns"
            shapes.append(svg.dot(x(row.cost), y(row.cpu_time), 4, fill=colour, stroke=svg.PAPER, title=words))
        if metric is COSTS[0]:
            shapes += names_beside([(x(row.cost), y(row.cpu_time), row.name) for row in rows])
    return svg.document(WIDTH, HEIGHT, title, *shapes)


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis for these values, from the place `first` to the place `last`. Calling it places a value."""

    values: Sequence[float]
    first: float
    last: float

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest value of the axis."""
        return min(self.values) * 0.8, max(self.values) * 1.25

    def __call__(self, value: float) -> float:
        low, high = map(math.log10, self.ends)
        return self.first + (math.log10(value) - low) / (high - low) * (self.last - self.first)


def main() -> int:
    """Print the rows and write the plot. Exit code 1 if the two testbeds have fewer than three rows in common."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("counted", type=Path, help="results of a run on the counted machine")
    parser.add_argument("local", type=Path, nargs="+", help="results of runs on another testbed")
    parser.add_argument("--svg", type=Path, default=Path("cost-and-cpu-time.svg"), help="where to write the plot")
    chosen = parser.parse_args()
    try:
        counted, _ = read_runs([chosen.counted])
        local, _ = read_runs(chosen.local)
    except PodperfError as error:
        sys.exit(str(error))
    times = figures(local, CPU_TIME)
    found = {metric: rows_of(figures(counted, metric), times) for metric in COSTS}
    for metric, rows in found.items():
        print(f"{metric.label}: {'instructions':>{WIDEST - len(metric.label)}} {'ns':>8}")
        for row in rows:
            print(f"  {row.name:{WIDEST - 14}s} {number(row.cost):>13} {number(row.cpu_time):>8}")
        rho = rank_correlation(rows)
        print(f"  rank correlation of {len(rows)} rows: {'none' if rho is None else f'{rho:.3f}'}\n")
    if len(found[COSTS[0]]) < LEAST:
        sys.exit(f"fewer than {LEAST} rows have both a cost and a CPU time")
    chosen.svg.write_text(plot(found), encoding="utf-8")
    print(f"the plot: {chosen.svg}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
