"""The pictures at the head of a section: rates by scenario, NUMA placement and chain length; loss and latency by load;
chains beside each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from podperf.experiments.service_density import Layout, ServiceDensity
from podperf.figures import cut, kpps, microseconds, percent, short
from podperf.records import Record
from podperf.report import svg
from podperf.report.chain_length_plot import chain_length_plot
from podperf.report.conformance import Conformance
from podperf.report.html import NOTHING, Html, element, plots
from podperf.report.scenario_bars import numa_grid, scenario_bars

COLOURS = ("#364fc7", "#c2410c", "#0b7285", "#7b2cbf", "#5c940d", "#a61e4d", "#495057", "#e67700")
_PLOT_WIDTH, _LEFT, _RIGHT, _PLOT_TOP, _HEIGHT = 720, 66, 18, 36, 220
_LEGEND = 17  # pixels of a row
_ZERO_BAND = 24  # pixels below a logarithmic axis, for values of 0


@dataclass(frozen=True)
class LoadLine:
    """Points of one line: loads in frames/s and direction, and values. `dashed` belongs to the line before it."""

    name: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False


@dataclass(frozen=True)
class LoadPlot:
    """The labels and the scale of a plot: its title, the words of a value, and whether the axis is logarithmic.

    `zero` are the words for values of 0 on a logarithmic axis. They have a band below the axis then. Empty: they are
    left out. The axis goes down to `least` or further.
    """

    title: str
    words: Callable[[float], str]
    logarithmic: bool
    zero: str = ""
    least: float = math.inf


def plot_over_load(plot: LoadPlot, lines: Sequence[LoadLine]) -> str:
    """An SVG. Empty without points."""
    shown = [LoadLine(line.name, _drawable(plot, line), line.dashed) for line in lines]
    shown = [each for each in shown if each.points]
    if not shown:
        return ""
    frame = _Frame(plot, [point for each in shown for point in each.points])
    shapes, colour = list(frame.axes()), -1
    for number, each in enumerate(shown):
        colour += not each.dashed or number == 0
        drawn = COLOURS[colour % len(COLOURS)]
        dash = "5 4" if each.dashed else ""
        at = [(frame.x(load), frame.y(value)) for load, value in each.points]
        shapes += svg.path(at, drawn, width=1.6, dash=dash)
        for (x, y), (load, value) in zip(at, each.points, strict=True):
            words = plot.zero if plot.zero and value <= 0 else plot.words(value)
            title = f"{each.name}: {words} at {kpps(load)} kpps"
            shapes.append(svg.dot(x, y, 3, fill=drawn, stroke=svg.INK, title=title))
        row = _PLOT_TOP + _HEIGHT + 42 + number * _LEGEND
        shapes.append(svg.line(_LEFT, row, _LEFT + 26, row, drawn, width=1.8, dash=dash))
        shapes.append(svg.text(_LEFT + 34, row + 4, cut(each.name, 95), size=11, fill=svg.MUTED))
    head = svg.text(0, 14, plot.title, weight="bold")
    height = _PLOT_TOP + _HEIGHT + 42 + len(shown) * _LEGEND
    return svg.document(_PLOT_WIDTH, height, plot.title, *shapes, head)


def _drawable(plot: LoadPlot, line: LoadLine) -> list[tuple[float, float]]:
    left_out = plot.logarithmic and not plot.zero
    return sorted((load, value) for load, value in line.points if load > 0 and (value > 0 or not left_out))


class _Frame:
    """The axes: loads to the right, values upwards."""

    def __init__(self, plot: LoadPlot, points: Sequence[tuple[float, float]]) -> None:
        self._plot = plot
        loads, values = zip(*points, strict=True)
        self._least, self._most = min(loads) / 1.1, max(loads) * 1.1
        self._ticks = svg.ticks(max(*values, 0.01)) if not plot.logarithmic else []
        above = [value for value in values if value > 0] or [min(1.0, plot.least)]
        self._low, self._high = min(*above, plot.least) / 1.3, max(above) * 1.3
        self._floor = _PLOT_TOP + _HEIGHT - (_ZERO_BAND if plot.zero else 0)

    def x(self, load: float) -> float:
        """The place of a load."""
        share = math.log(load / self._least) / math.log(self._most / self._least)
        return _LEFT + share * (_PLOT_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        """The height of a value."""
        if self._plot.zero and value <= 0:
            return self._floor + _ZERO_BAND * 2 / 3
        if self._plot.logarithmic:
            share = math.log(value / self._low) / math.log(self._high / self._low)
        else:
            share = value / self._ticks[-1]
        return self._floor - (self._floor - _PLOT_TOP) * share

    def axes(self) -> Iterator[str]:
        """The grid, with labels."""
        floor, edge = _PLOT_TOP + _HEIGHT, _PLOT_WIDTH - _RIGHT
        values = self._ticks or svg.log_ticks(self._low, self._high)
        yield from svg.rows(((self.y(value), self._plot.words(value)) for value in values), _LEFT, edge)
        if self._plot.zero:
            yield svg.text(_LEFT - 6, self.y(0) + 4, self._plot.zero, size=11, fill=svg.MUTED, anchor="end")
        loads = svg.log_ticks(self._least, self._most)
        step = max(1, -(-len(loads) // 12))  # with more numbers they would touch
        yield from svg.columns(((self.x(load), short(load / 1e3)) for load in loads[::step]), _PLOT_TOP, floor)
        yield svg.line(_LEFT, floor, edge, floor, svg.MUTED)
        yield svg.text(edge, floor + 29, "load, kpps per direction", size=11, fill=svg.MUTED, anchor="end")


_LOSS = LoadPlot("Loss by load (loss curves)", percent, logarithmic=True, zero="no loss", least=1e-4)
_LATENCY = LoadPlot("Latency by load, µs: median, and dashed the 99th percentile", microseconds, logarithmic=True)


def loss_curves(records: Sequence[Record]) -> str:
    """An SVG of all loss curves (docs/methods.md). Empty without one."""
    found = [(record.test.name, record.method("loss_curve")) for record in records]
    lines = [
        LoadLine(name, [(point["achieved_load"], point["loss_ratio"]) for point in curve["points"]])
        for name, curve in found
        if curve
    ]
    return plot_over_load(_LOSS, lines)


def percentiles_by_load(records: Sequence[Record]) -> str:
    """An SVG of the median and the 99th percentile at each load (docs/methods.md). Empty without such a test."""
    lines = []
    for record in records:
        steps = record.method("latency_by_load").get("steps") or ()
        measured = [step for step in steps if step["latency"]]
        for percentile in ("p50", "p99"):
            points = [(each["load"], each["latency"][f"{percentile}_ns"]) for each in measured]
            name = f"{record.test.name}, {percentile}"
            lines.append(LoadLine(name, points, dashed=percentile == "p99"))
    return plot_over_load(_LATENCY, lines)


_WIDTH, _LABEL, _VALUE = 720, 90, 300
_BAR, _STEP, _TOP = 16, 24, 40
_COLOURS = ("#364fc7", "#94a3b8")  # of a chain and of the next one, by turns


def density_charts(records: Sequence[Record]) -> Iterator[str]:
    """An SVG for each record about chains beside each other."""
    for record in records:
        for finding in record.findings:
            if finding.service_density:
                yield _chart(finding.service_density)


def words_of(layout: Layout) -> str:
    """`645 kpps; Jain's index 0.99, slowest chain 98 % of the fastest`."""
    total = f"{kpps(layout.total)} kpps"
    if layout.chains == 1:
        return total
    fairness, slowest = short(layout.fairness), percent(layout.slowest)
    limit = "; the tester was the limit" if layout.limited else ""
    return f"{total}; Jain's index {fairness}, slowest {slowest} of fastest{limit}"


def _chart(density: ServiceDensity) -> str:
    layouts = density.layouts
    scale = svg.ticks(max(*(sum(layout.rates) for layout in layouts), 1.0) / 1e3)
    floor = _TOP + len(layouts) * _STEP

    def x(rate: float) -> float:
        return _LABEL + rate / 1e3 / scale[-1] * (_WIDTH - _LABEL - _VALUE)

    shapes = [*svg.columns(((x(tick * 1e3), short(tick)) for tick in scale), _TOP - 4, floor)]
    for row, each in enumerate(layouts):
        top, reached = _TOP + row * _STEP, 0.0
        shapes.append(svg.text(_LABEL - 10, top + _BAR - 4, each.name, anchor="end"))
        for number, rate in enumerate(each.rates, start=1):
            title = f"{each.name}, chain {number}: {kpps(rate)} kpps"
            width = x(reached + rate) - x(reached)
            shapes.append(svg.box(x(reached), top, width, _BAR, _COLOURS[number % 2], title=title))
            reached += rate
        shapes.append(svg.text(x(reached) + 5, top + _BAR - 4, words_of(each), size=11, fill=svg.MUTED))
    about = f"{density.data_plane}: rate of chains beside each other"
    head = svg.text(0, 16, f"{about} (chains x pods of each), kpps per direction", weight="bold")
    return svg.document(_WIDTH, floor + 24, about, head, *shapes)


_PICTURES = (chain_length_plot, scenario_bars, numa_grid, loss_curves, percentiles_by_load)


def section_pictures(records: Sequence[Record], conformance: Conformance) -> Iterator[Html]:
    """The pictures of these records of one section, those of each testbed by themselves. Nothing if none fits."""
    for testbed in dict.fromkeys(map(conformance.told_apart, records)):
        own = [record for record in records if conformance.told_apart(record) == testbed]
        drawn = [*(plot for picture in _PICTURES if (plot := picture(own))), *density_charts(own)]
        yield element("p", testbed) if testbed and drawn else NOTHING
        yield plots(drawn)
