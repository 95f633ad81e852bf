"""Bar charts of the isolation levels of CPUs: for each level a bar for the chain alone, and one beside a neighbour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from podperf.figures import kpps, short
from podperf.report import svg
from podperf.report.results import Record

_WIDTH, _LABEL, _VALUE = 720, 230, 190
_BAR, _STEP, _TOP = 13, 20, 40
_ALONE, _BESIDE = "#94a3b8", "#364fc7"


@dataclass(frozen=True)
class Bar:
    """A chain at one level: its median rate in frames/s and direction, and the CPUs that its neighbour kept busy."""

    name: str
    rate: float
    neighbour: float | None

    @property
    def words(self) -> str:
        """`235 kpps; the neighbour had 0.5 CPU`."""
        beside = "" if self.neighbour is None else f"; neighbour had {short(self.neighbour)} CPU"
        return f"{kpps(self.rate)} kpps{beside}"


def isolation_charts(records: Sequence[Record]) -> Iterator[str]:
    """An SVG for each record about chains beside a neighbour."""
    for record in records:
        if bars := bars_of(record):
            yield _chart(str(record["test"]["name"]), bars)


def bars_of(record: Record) -> list[Bar]:
    """The bars of a record, in its own order. Empty unless a neighbour competes with one of its chains."""
    found = record["methods"].get("comparison") or {}
    placements, rates = found.get("placements") or {}, found.get("rates") or {}
    taken = found.get("cpus_of_neighbours") or {}
    if not any(each.get("neighbour") for each in placements.values()):
        return []
    return [
        Bar(name, median(rates[name]), median(taken[name]) if taken.get(name) else None)
        for name in placements
        if rates.get(name)
    ]


def _chart(title: str, bars: Sequence[Bar]) -> str:
    scale = svg.ticks(max(*(each.rate for each in bars), 1.0) / 1e3)
    floor = _TOP + len(bars) * _STEP

    def x(rate: float) -> float:
        return _LABEL + rate / 1e3 / scale[-1] * (_WIDTH - _LABEL - _VALUE)

    shapes = []
    for tick in scale:
        shapes.append(svg.line(x(tick * 1e3), _TOP - 4, x(tick * 1e3), floor))
        shapes.append(svg.text(x(tick * 1e3), floor + 16, short(tick), size=11, fill=svg.MUTED, anchor="middle"))
    for number, each in enumerate(bars):
        top = _TOP + number * _STEP
        colour = _ALONE if each.neighbour is None else _BESIDE
        shapes.append(svg.text(_LABEL - 10, top + _BAR - 2, each.name, anchor="end"))
        shapes.append(svg.box(x(0), top, x(each.rate) - x(0), _BAR, colour, title=f"{each.name}: {each.words}"))
        shapes.append(svg.text(x(each.rate) + 5, top + _BAR - 2, each.words, size=11, fill=svg.MUTED))
    head = svg.text(0, 16, f"{title}: rate by isolation level, kpps per direction", weight="bold")
    return svg.document(_WIDTH, floor + 24, f"rate by isolation level: {title}", head, *shapes)
