"""A plot of lines over the load, with a legend below. The axis of loads is logarithmic."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from podperf.figures import cut, kpps, short
from podperf.report import svg

COLOURS = ("#364fc7", "#c2410c", "#0b7285", "#7b2cbf", "#5c940d", "#a61e4d", "#495057", "#e67700")
_WIDTH, _LEFT, _RIGHT, _TOP, _HEIGHT = 720, 66, 18, 36, 220
_LEGEND = 17  # pixels of a row


@dataclass(frozen=True)
class LoadLine:
    """Points of one line: loads in frames/s and direction, and values. `dashed` belongs to the line before it."""

    name: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False


@dataclass(frozen=True)
class LoadPlot:
    """What the plot shows: its title, the words of a value, and whether the axis of values is logarithmic."""

    title: str
    words: Callable[[float], str]
    logarithmic: bool


def plot_over_load(plot: LoadPlot, lines: Sequence[LoadLine]) -> str:
    """An SVG. Empty without points. On a logarithmic axis, values of 0 and less are left out."""
    shown = [LoadLine(each.name, _drawable(plot, each), each.dashed) for each in lines]
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
        shapes += [svg.line(*one, *other, drawn, width=1.6, dash=dash) for one, other in pairwise(at)]
        for (x, y), (load, value) in zip(at, each.points, strict=True):
            title = f"{each.name}: {plot.words(value)} at {kpps(load)} kpps"
            shapes.append(svg.dot(x, y, 3, fill=drawn, stroke=svg.INK, title=title))
        row = _TOP + _HEIGHT + 42 + number * _LEGEND
        shapes.append(svg.line(_LEFT, row, _LEFT + 26, row, drawn, width=1.8, dash=dash))
        shapes.append(svg.text(_LEFT + 34, row + 4, cut(each.name, 95), size=11, fill=svg.MUTED))
    head = svg.text(0, 14, plot.title, weight="bold")
    height = _TOP + _HEIGHT + 42 + len(shown) * _LEGEND
    return svg.document(_WIDTH, height, plot.title, *shapes, head)


def _drawable(plot: LoadPlot, line: LoadLine) -> list[tuple[float, float]]:
    return sorted((load, value) for load, value in line.points if load > 0 and (value > 0 or not plot.logarithmic))


class _Frame:
    """The axes: loads to the right, values upwards."""

    def __init__(self, plot: LoadPlot, points: Sequence[tuple[float, float]]) -> None:
        self._plot = plot
        loads, values = zip(*points, strict=True)
        self._least, self._most = min(loads) / 1.1, max(loads) * 1.1
        self._ticks = svg.ticks(max(*values, 0.01)) if not plot.logarithmic else []
        self._low, self._high = min(values) / 1.3, max(values) * 1.3

    def x(self, load: float) -> float:
        """The place of a load."""
        share = math.log(load / self._least) / math.log(self._most / self._least)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        """The height of a value."""
        if self._plot.logarithmic:
            share = math.log(value / self._low) / math.log(self._high / self._low)
        else:
            share = value / self._ticks[-1]
        return _TOP + _HEIGHT * (1 - share)

    def axes(self) -> Iterator[str]:
        """The grid, with labels."""
        floor, edge = _TOP + _HEIGHT, _WIDTH - _RIGHT
        for value in self._ticks or svg.log_ticks(self._low, self._high):
            yield svg.line(_LEFT, self.y(value), edge, self.y(value))
            words = self._plot.words(value)
            yield svg.text(_LEFT - 6, self.y(value) + 4, words, size=11, fill=svg.MUTED, anchor="end")
        loads = svg.log_ticks(self._least, self._most)
        step = max(1, -(-len(loads) // 12))  # with more numbers they would touch
        for load in loads[::step]:
            yield svg.line(self.x(load), _TOP, self.x(load), floor)
            yield svg.text(self.x(load), floor + 15, short(load / 1e3), size=11, fill=svg.MUTED, anchor="middle")
        yield svg.line(_LEFT, floor, edge, floor, svg.MUTED)
        yield svg.text(edge, floor + 29, "load, kpps per direction", size=11, fill=svg.MUTED, anchor="end")
