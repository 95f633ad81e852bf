"""The rounds of a comparison: the figure of each variant, and the change beside the first one with its interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from podperf.comparisons.result import ComparisonOutcome, VariantResult
from podperf.figures import count, number, percent, signed
from podperf.metrics import Measured
from podperf.report import svg
from podperf.report.cells import typeset
from podperf.verdicts.before_after import Difference
from podperf.verdicts.ratio_interval import ratio_estimate

COLOURS = ("#364fc7", "#c2410c", "#0b7285", "#7b2cbf", "#5c940d", "#a61e4d", "#856404", "#495057")
_WIDTH, _HEIGHT = 720, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 18, 34, 54
_MOST_TICKS = 10  # numbers of rounds below the axis

_Scale = Callable[[float], float]


def figures_plot(result: ComparisonOutcome) -> str:
    """An SVG with a dot for each figure of each variant, round by round. Empty without figures."""
    values = [one.value for each in result.variants for one in each.measured]
    if not values:
        return ""
    metric, scale = result.metric, result.metric.quantity.scale
    frame = _Frame(max(len(each.figures) for each in result.variants), *_with_room(min(values), max(values), floor=0.0))
    shapes = list(frame.axes(lambda value: number(value / scale)))
    for place, each in enumerate(result.variants):
        points = [(index, one) for index, one in enumerate(each.figures) if one is not None]
        shapes += _path([(frame.x(index), frame.y(one.value)) for index, one in points], COLOURS[place])
        for index, one in points:
            value = f"{one.bounded(number(one.value / scale))} {typeset(metric.quantity.unit)}"
            words = f"{each.variant.name}, round {index + 1}: {value}"
            shapes.append(
                svg.dot(frame.x(index), frame.y(one.value), 3.5, fill=COLOURS[place], stroke=svg.INK, title=words)
            )
    head = svg.text(0, 14, f"{metric.label} of each round, {typeset(metric.quantity.unit)}", weight="bold")
    names = _names(result.variants, range(len(result.variants)))
    return svg.document(_WIDTH, _HEIGHT, f"{metric.label} of each variant by round", head, *shapes, *names)


def changes_plot(result: ComparisonOutcome) -> str:
    """An SVG with the change of each round, the estimate so far, and the interval of each look. Empty without any."""
    first, *others = result.variants
    if not first.measured or not any(each.measured for each in others):
        return ""
    rounds = {each.variant.name: _changes(first, each) for each in others}
    ends = [end for each in result.looked if each.judgement.change for end in _ends(each.judgement.change)]
    values = [
        *(one for each in rounds.values() for _, one in each),
        *ends,
        1.2 * result.relevant,
        -1.2 * result.relevant,
    ]
    frame = _Frame(max(len(each.figures) for each in result.variants), *_with_room(min(values), max(values)))
    shapes = list(frame.axes(signed))
    top, bottom = frame.y(result.relevant), frame.y(-result.relevant)
    shapes.insert(0, svg.box(_LEFT, top, _WIDTH - _LEFT - _RIGHT, bottom - top, "#f1f3f5", title=_within(result)))
    shapes.append(svg.line(_LEFT, frame.y(0), _WIDTH - _RIGHT, frame.y(0), svg.MUTED))
    for place, each in enumerate(others, start=1):
        shapes += _changes_of(result, each, rounds[each.variant.name], COLOURS[place], frame)
    head = svg.text(
        0, 14, f"Change beside {first.variant.name} in each round, and the interval at each look", weight="bold"
    )
    names = _names(result.variants, range(1, len(result.variants)))
    return svg.document(_WIDTH, _HEIGHT, f"change of {result.metric.label} by round", head, *shapes, *names)


class _Frame:
    """The axes of a plot: rounds to the right, values upwards."""

    def __init__(self, rounds: int, low: float, high: float) -> None:
        self._rounds, self._low, self._high = rounds, low, high
        self._floor = _HEIGHT - _BOTTOM

    def x(self, index: float) -> float:
        """The place of a round; the first one has the index 0."""
        return _LEFT + (index + 0.5) / self._rounds * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        """The height of a value. Values outside of the axes are at the edge."""
        held = min(self._high, max(self._low, value))
        return self._floor - (held - self._low) / (self._high - self._low) * (self._floor - _TOP)

    def axes(self, label: Callable[[float], str]) -> Iterator[str]:
        """The grid, with labels."""
        for tick in svg.range_ticks(self._low, self._high):
            yield svg.line(_LEFT, self.y(tick), _WIDTH - _RIGHT, self.y(tick))
            yield svg.text(_LEFT - 6, self.y(tick) + 4, label(tick), size=11, fill=svg.MUTED, anchor="end")
        yield svg.line(_LEFT, self._floor, _WIDTH - _RIGHT, self._floor, svg.MUTED)
        step = math.ceil(self._rounds / _MOST_TICKS)
        for index in range(step - 1, self._rounds, step):
            yield svg.text(self.x(index), self._floor + 15, str(index + 1), size=11, fill=svg.MUTED, anchor="middle")
        yield svg.text(_WIDTH - _RIGHT, self._floor + 29, "round", size=11, fill=svg.MUTED, anchor="end")


def _with_room(least: float, most: float, floor: float = -math.inf) -> tuple[float, float]:
    room = 0.1 * (most - least) or 0.02 * abs(most) or 1.0
    return max(floor, least - room), most + room


def _pairs(first: VariantResult, other: VariantResult) -> list[tuple[int, Measured, Measured]]:
    """The rounds in which both were measured: index, figure of the other, figure of the first."""
    both = enumerate(zip(other.figures, first.figures, strict=True))
    return [(index, one, beside) for index, (one, beside) in both if one and beside and beside.value]


def _changes(first: VariantResult, other: VariantResult) -> list[tuple[int, float]]:
    return [(index, one.value / beside.value - 1) for index, one, beside in _pairs(first, other)]


def _ends(change: Difference) -> list[float]:
    """The ends of an interval that are not open."""
    return [end for end in (change.low, change.high) if -1 < end < math.inf]


def _changes_of(
    result: ComparisonOutcome, each: VariantResult, rounds: Sequence[tuple[int, float]], colour: str, frame: _Frame
) -> Iterator[str]:
    """The dots of a variant, the line of its estimate, and a bar for each look."""
    name, pairs = each.variant.name, _pairs(result.variants[0], each)
    estimates = [
        (
            pairs[last][0],
            ratio_estimate([one for _, one, _ in pairs[: last + 1]], [by for *_, by in pairs[: last + 1]]) - 1,
        )
        for last in range(len(pairs))
    ]
    yield from _path([(frame.x(index), frame.y(share)) for index, share in estimates], colour)
    for index, share in rounds:
        title = f"{name}, round {index + 1}: {signed(share)}"
        yield svg.dot(frame.x(index), frame.y(share), 3, fill="none", stroke=colour, title=title)
    for looked in result.looked:
        change = looked.judgement.change
        if looked.variant == name and change is not None:
            x, low, high = frame.x(looked.look.rounds - 1), frame.y(change.low), frame.y(change.high)
            title = f"{name} after {count(looked.look.rounds, 'round')}: {change.words}; {looked.judgement.words}"
            yield svg.box(x - 2, high, 4, max(2.0, low - high), colour, title=title)
            yield from (svg.line(x - 6, end, x + 6, end, colour, width=2) for end in (low, high))


def _path(points: Sequence[tuple[float, float]], colour: str) -> Iterator[str]:
    for (x1, y1), (x2, y2) in pairwise(points):
        yield svg.line(x1, y1, x2, y2, colour)


def _within(result: ComparisonOutcome) -> str:
    return f"changes that do not count: up to {percent(result.relevant)}"


def _names(variants: Sequence[VariantResult], places: range) -> Iterator[str]:
    """The names of the variants with their colours, below the axes."""
    x = float(_LEFT)
    for place in places:
        name = variants[place].variant.name
        yield svg.dot(x + 4, _HEIGHT - 10, 4, fill=COLOURS[place], stroke=svg.INK, title=name)
        yield svg.text(x + 12, _HEIGHT - 6, name, size=11, fill=svg.MUTED)
        x += 30 + 6.2 * len(name)
