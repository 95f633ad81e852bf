"""Bar charts of chains beside each other: a bar for each layout, with a part for each chain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from podperf.figures import kpps, percent, short
from podperf.report import svg
from podperf.report.results import Record

_WIDTH, _LABEL, _VALUE = 720, 90, 300
_BAR, _STEP, _TOP = 16, 24, 40
_COLOURS = ("#364fc7", "#94a3b8")  # of a chain and of the next one, by turns


def density_charts(records: Sequence[Record]) -> Iterator[str]:
    """An SVG for each record about chains beside each other."""
    for record in records:
        for finding in record["findings"]:
            if finding.get("service_density"):
                yield _chart(finding["service_density"])


def words_of(layout: Mapping[str, Any]) -> str:
    """`645 kpps; Jain's index 0.99, slowest chain 98 % of the fastest`."""
    total = f"{kpps(layout['total'])} kpps"
    if layout["chains"] == 1:
        return total
    fairness, slowest = short(layout["fairness"]), percent(layout["slowest"])
    limit = "; the tester was the limit" if layout["limited"] else ""
    return f"{total}; Jain's index {fairness}, slowest {slowest} of fastest{limit}"


def _chart(density: Mapping[str, Any]) -> str:
    layouts = density["layouts"]
    scale = svg.ticks(max(*(sum(each["rates"]) for each in layouts), 1.0) / 1e3)
    floor = _TOP + len(layouts) * _STEP

    def x(rate: float) -> float:
        return _LABEL + rate / 1e3 / scale[-1] * (_WIDTH - _LABEL - _VALUE)

    shapes = []
    for tick in scale:
        shapes.append(svg.line(x(tick * 1e3), _TOP - 4, x(tick * 1e3), floor))
        shapes.append(svg.text(x(tick * 1e3), floor + 16, short(tick), size=11, fill=svg.MUTED, anchor="middle"))
    for row, each in enumerate(layouts):
        top, reached = _TOP + row * _STEP, 0.0
        name = f"{each['chains']}x{each['pods']}{'-common' if each['common_pod'] else ''}"
        shapes.append(svg.text(_LABEL - 10, top + _BAR - 4, name, anchor="end"))
        for number, rate in enumerate(each["rates"], start=1):
            title = f"{name}, chain {number}: {kpps(rate)} kpps"
            width = x(reached + rate) - x(reached)
            shapes.append(svg.box(x(reached), top, width, _BAR, _COLOURS[number % 2], title=title))
            reached += rate
        shapes.append(svg.text(x(reached) + 5, top + _BAR - 4, words_of(each), size=11, fill=svg.MUTED))
    about = f"{density['data_plane']}: rate of chains beside each other"
    head = svg.text(0, 16, f"{about} (chains x pods of each), kpps per direction", weight="bold")
    return svg.document(_WIDTH, floor + 24, about, head, *shapes)
