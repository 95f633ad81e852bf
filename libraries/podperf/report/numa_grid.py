"""A grid of rates over the NUMA placements S1 to S6: a row for each data plane and frame size, a column a placement."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from podperf.figures import cut, kpps, percent
from podperf.report import svg
from podperf.report.results import Record
from podperf.testbed.scenarios import SCENARIOS, Node

_PLACEMENT = re.compile(r"(.+) (S\d)")  # the names of published rows: `OVS-DPDK S1`
_WIDTH, _LABEL, _TOP, _CELL = 720, 170, 76, 44
_DARK = "#364fc7"


@dataclass(frozen=True)
class GridRow:
    """One data plane with frames of one size: the median rate of each placement, in frames/s and direction."""

    name: str
    rates: Mapping[str, float]


def rows_of(record: Record) -> list[GridRow]:
    """The rows of a record that compares placements. Empty if not all of its chains have one of S1 to S6."""
    found = record["methods"].get("comparison") or {}
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
    width = (_WIDTH - _LABEL) / max(6, len(columns))
    shapes = list(_heads(columns, width))
    for number, (name, rates) in enumerate(rows.items()):
        top = _TOP + number * _CELL
        shapes.append(svg.text(_LABEL - 10, top + _CELL / 2 + 4, cut(name, 25), anchor="end"))
        for place, column in enumerate(columns):
            if column in rates:
                share = rates[column] / (max(rates.values()) or 1.0)
                shapes += _cell(_LABEL + place * width, top, width, f"{name}, {column}", rates[column], share)
    words = "Rate by NUMA placement, kpps per direction, and its share of the best one of the row"
    head = svg.text(0, 16, words, weight="bold")
    meaning = "NIC: on the node of the network card; far: on another node"
    shapes.append(svg.text(0, 32, meaning, size=11, fill=svg.MUTED))
    return svg.document(_WIDTH, _TOP + len(rows) * _CELL + 8, "rate by NUMA placement", head, *shapes)


def _heads(columns: Sequence[str], width: float) -> Iterator[str]:
    for place, column in enumerate(columns):
        middle, scenario = _LABEL + (place + 0.5) * width, SCENARIOS[column]
        parts = [scenario.switch, *scenario.pods]
        where = " ".join("NIC" if each is Node.NIC else "far" for each in parts)
        yield svg.text(middle, _TOP - 24, column, anchor="middle", weight="bold")
        yield svg.text(middle, _TOP - 8, where, size=11, fill=svg.MUTED, anchor="middle")
    yield svg.text(_LABEL - 10, _TOP - 8, "nodes of switch and pods", size=11, fill=svg.MUTED, anchor="end")


def _cell(left: float, top: float, width: float, name: str, rate: float, share: float) -> Iterator[str]:
    words = f"{kpps(rate)} ({percent(share)})"
    yield svg.box(left + 1, top + 1, width - 2, _CELL - 2, _shade(share), title=f"{name}: {kpps(rate)} kpps")
    yield svg.text(left + width / 2, top + _CELL / 2 + 4, words, size=11, anchor="middle")


def _shade(share: float) -> str:
    """A mix of white and the dark colour: the whole colour would hide the text."""
    mixed = [round(255 + (int(_DARK[at : at + 2], 16) - 255) * 0.4 * min(share, 1.0)) for at in (1, 3, 5)]
    return "#" + "".join(f"{each:02x}" for each in mixed)
