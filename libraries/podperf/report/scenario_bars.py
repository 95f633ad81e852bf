"""A bar chart of rates by scenario: CPU isolation levels, sizes of pages, or whatever else one finding compares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from podperf.figures import cut, kpps, short
from podperf.report import svg
from podperf.report.numa_grid import rows_of
from podperf.report.results import Record

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
    found = record["methods"].get("comparison") or {}
    placements, rates = found.get("placements") or {}, found.get("rates") or {}
    taken = found.get("cpus_of_neighbours") or {}
    title = str(record["test"]["name"])
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
    findings = record["findings"]
    ratios = [_ratio_words(each) for finding in findings for each in finding.get("ratios") or ()]
    return BarGroup(title, bars, ", ".join(each["verdict"] for each in findings), ratios)


def compares_scenarios(record: Record) -> bool:
    """Whether a comparison is about one data plane in several scenarios of draft section 4.2."""
    lengths = any(each.get("chain_lengths") for each in record["findings"])
    in_section = any(each.startswith("4.2.") for each in record["test"]["sections"])
    return in_section and not lengths and bool((record["methods"].get("comparison") or {}).get("placements"))


def _ratio_words(ratio: Mapping[str, Any]) -> str:
    low, high = ("open" if not ratio[end] else short(ratio[end]) for end in ("low", "high"))
    return f"{ratio['first']} to {ratio['second']}: {short(ratio['estimate'])} times ({low} to {high})"


def _chart(groups: Sequence[BarGroup]) -> str:
    bars = [each for group in groups for each in group.bars]
    scale = svg.ticks(max(*(each.highest for each in bars), 1.0) / 1e3)
    longest = max(len(each.name) for each in bars) * _CHARACTER + 12
    label = min(max(longest, _LEAST_LABEL), _MOST_LABEL)
    floor = _TOP + sum(each.height for each in groups)

    def x(rate: float) -> float:
        return label + rate / 1e3 / scale[-1] * (_WIDTH - label - _VALUE)

    shapes = []
    for tick in scale:
        shapes.append(svg.line(x(tick * 1e3), _TOP - 4, x(tick * 1e3), floor))
        shapes.append(svg.text(x(tick * 1e3), floor + 16, short(tick), size=11, fill=svg.MUTED, anchor="middle"))
    top = _TOP
    for group in groups:
        shapes += _drawn(group, top, label, x)
        top += group.height
    words = "Rate by scenario, kpps per direction: median of the rounds, lowest and highest one"
    head = svg.text(0, 16, words, weight="bold")
    names = ", ".join(each.title for each in groups)
    return svg.document(_WIDTH, floor + 24, f"rate by scenario: {names}", *shapes, head)


def _drawn(group: BarGroup, top: float, label: float, x: Any) -> Iterator[str]:
    beside = any(each.neighbour is not None for each in group.bars)
    title = ": ".join(filter(None, (cut(group.title, 80), group.verdict)))
    yield svg.text(0, top + 14, title, size=12)
    top += _HEAD
    for each in group.bars:
        middle = top + _BAR / 2
        colour = _PLAIN if not beside else _ALONE if each.neighbour is None else _BESIDE
        name = cut(each.name, int((label - 12) / _CHARACTER))
        yield svg.text(label - 10, top + _BAR - 2, name, anchor="end")
        yield svg.box(x(0), top, x(each.rate) - x(0), _BAR, colour, title=f"{each.name}: {each.words}")
        yield svg.line(x(each.lowest), middle, x(each.highest), middle, svg.INK, width=1.2)
        for edge in (each.lowest, each.highest):
            yield svg.line(x(edge), middle - 3, x(edge), middle + 3, svg.INK, width=1.2)
        yield svg.text(max(x(each.highest), x(0)) + 6, top + _BAR - 2, each.words, size=11, fill=svg.MUTED)
        top += _STEP
    for words in group.ratios:
        top += _LINE
        yield svg.text(12, top - 5, cut(words, 110), size=11, fill=svg.MUTED)
