"""Pictures of what one finding compares: bars of rates by scenario, such as CPU isolation levels and sizes of pages,
and a grid of rates over the NUMA placements S1 to S6, with a row for each data plane and frame size."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from podperf.experiments.claim import PairRatio
from podperf.figures import cut, kpps, percent, short
from podperf.records import Record
from podperf.report import svg
from podperf.testbed.scenarios import SCENARIOS, Node

_WIDTH, _VALUE = 720, 190
_LEAST_LABEL, _MOST_LABEL, _CHARACTER = 150, 300, 6.4  # pixels of the names' column, and of a character there
_BAR, _STEP, _TOP, _HEAD, _LINE, _GAP = 13, 20, 40, 22, 17, 12
_PLAIN, _BESIDE, _ALONE = "#364fc7", "#364fc7", "#94a3b8"


@dataclass(frozen=True)
class Bar:
    """A chain in one scenario: its median rate in frames/s and direction, and its lowest and highest one.

    `neighbour` is the number of CPUs that its neighbour kept busy. None: it was alone.
    """

    name: str
    rate: float
    lowest: float
    highest: float
    neighbour: float | None = None

    @property
    def words(self) -> str:
        """`235 kpps; neighbour had 0.5 CPU`."""
        beside = "" if self.neighbour is None else f"; neighbour had {short(self.neighbour)} CPU"
        return f"{kpps(self.rate)} kpps{beside}"


@dataclass(frozen=True)
class BarGroup:
    """The scenarios that one test compares, with the words of its verdict and of its ratios."""

    title: str
    bars: Sequence[Bar]
    verdict: str = ""
    ratios: Sequence[str] = field(default_factory=tuple)

    @property
    def height(self) -> int:
        """Pixels."""
        return _HEAD + len(self.bars) * _STEP + len(self.ratios) * _LINE + _GAP


def scenario_bars(records: Sequence[Record]) -> str:
    """An SVG with a group of bars for each test that compares scenarios. Empty if there is none."""
    groups = [each for each in map(group_of, records) if each.bars]
    return _chart(groups) if groups else ""


def group_of(record: Record) -> BarGroup:
    """The bars of a record, in its own order. Without bars if it is about something else."""
    found = record.method("comparison")
    placements, rates = found.get("placements") or {}, found.get("rates") or {}
    taken = found.get("cpus_of_neighbours") or {}
    title = record.test.name
    if not compares_scenarios(record) or rows_of(record):
        return BarGroup(title, ())
    bars = [
        Bar(
            name,
            median(rates[name]),
            min(rates[name]),
            max(rates[name]),
            median(taken[name]) if taken.get(name) else None,
        )
        for name in placements
        if rates.get(name)
    ]
    findings = record.findings
    ratios = [_ratio_words(ratio) for finding in findings for ratio in finding.ratios]
    return BarGroup(title, bars, ", ".join(each.verdict for each in findings), ratios)


def compares_scenarios(record: Record) -> bool:
    """Whether a comparison is about one data plane in several scenarios of draft section 4.2."""
    lengths = any(finding.chain_lengths for finding in record.findings)
    in_section = any(section.startswith("4.2.") for section in record.test.sections)
    return in_section and not lengths and bool(record.method("comparison").get("placements"))


def _ratio_words(ratio: PairRatio) -> str:
    low, high = ("open" if end in {0, math.inf} else short(end) for end in (ratio.low, ratio.high))
    return f"{ratio.first} to {ratio.second}: {short(ratio.estimate)} times ({low} to {high})"


def _chart(groups: Sequence[BarGroup]) -> str:
    bars = [bar for group in groups for bar in group.bars]
    scale = svg.ticks(max(*(bar.highest for bar in bars), 1.0) / 1e3)
    longest = max(len(bar.name) for bar in bars) * _CHARACTER + 12
    label = min(max(longest, _LEAST_LABEL), _MOST_LABEL)
    floor = _TOP + sum(each.height for each in groups)

    def x(rate: float) -> float:
        return label + rate / 1e3 / scale[-1] * (_WIDTH - label - _VALUE)

    shapes = [*svg.columns(((x(tick * 1e3), short(tick)) for tick in scale), _TOP - 4, floor)]
    top = _TOP
    for group in groups:
        shapes += _drawn(group, top, label, x)
        top += group.height
    words = "Rate by scenario, kpps per direction: median of the rounds, lowest and highest one"
    head = svg.text(0, 16, words, weight="bold")
    names = ", ".join(each.title for each in groups)
    return svg.document(_WIDTH, floor + 24, f"rate by scenario: {names}", *shapes, head)


def _drawn(group: BarGroup, top: float, label: float, x: Any) -> Iterator[str]:
    beside = any(bar.neighbour is not None for bar in group.bars)
    title = ": ".join(filter(None, (cut(group.title, 80), group.verdict)))
    yield svg.text(0, top + 14, title, size=12)
    top += _HEAD
    for bar in group.bars:
        middle = top + _BAR / 2
        colour = _PLAIN if not beside else _ALONE if bar.neighbour is None else _BESIDE
        name = cut(bar.name, int((label - 12) / _CHARACTER))
        yield svg.text(label - 10, top + _BAR - 2, name, anchor="end")
        yield svg.box(x(0), top, x(bar.rate) - x(0), _BAR, colour, title=f"{bar.name}: {bar.words}")
        yield svg.line(x(bar.lowest), middle, x(bar.highest), middle, svg.INK, width=1.2)
        for edge in (bar.lowest, bar.highest):
            yield svg.line(x(edge), middle - 3, x(edge), middle + 3, svg.INK, width=1.2)
        yield svg.text(max(x(bar.highest), x(0)) + 6, top + _BAR - 2, bar.words, size=11, fill=svg.MUTED)
        top += _STEP
    for words in group.ratios:
        top += _LINE
        yield svg.text(12, top - 5, cut(words, 110), size=11, fill=svg.MUTED)


_PLACEMENT = re.compile(r"(.+) (S\d)")  # the names of published rows: `OVS-DPDK S1`
_GRID_WIDTH, _GRID_LABEL, _GRID_TOP, _CELL = 720, 170, 76, 44
_DARK = "#364fc7"  # at most 0.4 of it, or it would hide the text


@dataclass(frozen=True)
class GridRow:
    """One data plane with frames of one size: the median rate of each placement, in frames/s and direction."""

    name: str
    rates: Mapping[str, float]


def rows_of(record: Record) -> list[GridRow]:
    """The rows of a record that compares placements. Empty if not all of its chains have one of S1 to S6."""
    found = record.method("comparison")
    rates, frames = found.get("rates") or {}, found.get("frames") or {}
    rows: dict[str, dict[str, float]] = {}
    for name in rates:
        placed = _PLACEMENT.fullmatch(name)
        if placed is None or placed[2] not in SCENARIOS:
            return []
        rows.setdefault(f"{placed[1]}, {frames.get(name, '?')}", {})[placed[2]] = median(rates[name])
    return [GridRow(name, by_placement) for name, by_placement in rows.items()]


def numa_grid(records: Sequence[Record]) -> str:
    """An SVG. Empty if no record compares placements. The darker a cell, the more its placement forwards in its row."""
    rows: dict[str, dict[str, float]] = {}
    for each in (row for record in records for row in rows_of(record)):
        rows.setdefault(each.name, {}).update(each.rates)
    if not rows:
        return ""
    columns = sorted({placement for each in rows.values() for placement in each})
    width = (_GRID_WIDTH - _GRID_LABEL) / max(6, len(columns))
    shapes = list(_heads(columns, width))
    for number, (name, rates) in enumerate(rows.items()):
        top = _GRID_TOP + number * _CELL
        shapes.append(svg.text(_GRID_LABEL - 10, top + _CELL / 2 + 4, cut(name, 25), anchor="end"))
        for place, column in enumerate(columns):
            if column in rates:
                share = rates[column] / (max(rates.values()) or 1.0)
                shapes += _cell(_GRID_LABEL + place * width, top, width, f"{name}, {column}", rates[column], share)
    words = "Rate by NUMA placement, kpps per direction, and its share of the best one of the row"
    head = svg.text(0, 16, words, weight="bold")
    meaning = "NIC: on the node of the network card; far: on another node"
    shapes.append(svg.text(0, 32, meaning, size=11, fill=svg.MUTED))
    return svg.document(_GRID_WIDTH, _GRID_TOP + len(rows) * _CELL + 8, "rate by NUMA placement", head, *shapes)


def _heads(columns: Sequence[str], width: float) -> Iterator[str]:
    for place, column in enumerate(columns):
        middle, scenario = _GRID_LABEL + (place + 0.5) * width, SCENARIOS[column]
        parts = [scenario.switch, *scenario.pods]
        where = " ".join("NIC" if part is Node.NIC else "far" for part in parts)
        yield svg.text(middle, _GRID_TOP - 24, column, anchor="middle", weight="bold")
        yield svg.text(middle, _GRID_TOP - 8, where, size=11, fill=svg.MUTED, anchor="middle")
    yield svg.text(_GRID_LABEL - 10, _GRID_TOP - 8, "nodes of switch and pods", size=11, fill=svg.MUTED, anchor="end")


def _cell(left: float, top: float, width: float, name: str, rate: float, share: float) -> Iterator[str]:
    words, fill = f"{kpps(rate)} ({percent(share)})", svg.mixed(_DARK, 0.4 * min(share, 1.0))
    yield svg.box(left + 1, top + 1, width - 2, _CELL - 2, fill, title=f"{name}: {kpps(rate)} kpps")
    yield svg.text(left + width / 2, top + _CELL / 2 + 4, words, size=11, anchor="middle")
