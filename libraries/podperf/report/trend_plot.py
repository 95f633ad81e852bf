"""One metric of one test over the runs of a history: a dot a run, and a line a group between two change points."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from podperf.figures import short
from podperf.history.changes import WINDOW, Group, groups
from podperf.history.fingerprint import Fingerprint
from podperf.history.trends import Point
from podperf.metrics import Metric
from podperf.report import svg

_WIDTH, _HEIGHT = 720, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 18, 34, 62
_RED = "#b42318"
_MOST_DATES = 6  # below the axis

_Scale = Callable[[float], float]
Step = tuple[int, int, Group]  # a group of figures, with the indices of its first and last point


def trend_plot(title: str, metric: Metric, points: Sequence[Point]) -> str:
    """An SVG. Empty if there is no figure."""
    figures = [each.figure.value for each in points if each.figure]
    if not figures:
        return ""
    least, most = min(figures), max(figures)
    room = 0.12 * (most - least) or 0.02 * most
    low, high = max(0.0, least - room), most + room
    floor = _HEIGHT - _BOTTOM

    def x(index: float) -> float:
        return _LEFT + (index + 0.5) / len(points) * (_WIDTH - _LEFT - _RIGHT)

    def y(value: float) -> float:
        return floor - (value - low) / (high - low) * (floor - _TOP)

    shapes = []
    for tick in svg.range_ticks(low, high):
        shapes.append(svg.line(_LEFT, y(tick), _WIDTH - _RIGHT, y(tick)))
        label = short(tick / metric.quantity.scale)
        shapes.append(svg.text(_LEFT - 6, y(tick) + 4, label, size=11, fill=svg.MUTED, anchor="end"))
    shapes.append(svg.line(_LEFT, floor, _WIDTH - _RIGHT, floor, svg.MUTED))
    shapes += [
        svg.text(x(index), floor + 16, points[index].started[:10], size=11, fill=svg.MUTED, anchor="middle")
        for index in _spread(len(points))
    ]
    for index in range(1, len(points)):
        if points[index].fingerprint != points[index - 1].fingerprint:
            shapes.append(svg.line(x(index - 0.5), _TOP, x(index - 0.5), floor, svg.MUTED, dash="3 3"))
            shapes.append(svg.text(x(index - 0.5) + 3, _TOP + 2, "new series", size=10, fill=svg.MUTED))
    for first, last, group in steps(points):
        height = y(group.mean)
        shapes.append(svg.line(x(first - 0.4), height, x(last + 0.4), height, metric.colour, width=2))
    shapes += [_mark(each, metric, x(index), y, floor) for index, each in enumerate(points)]
    head = svg.text(
        0, 14, f"{metric.label}, {'µs' if metric.quantity.unit == 'us' else metric.quantity.unit}", weight="bold"
    )
    return svg.document(_WIDTH, _HEIGHT, title, head, *shapes, *_legend(metric))


def steps(points: Sequence[Point]) -> Iterator[Step]:
    """The newest groups of each series, each with the indices of its first and last point."""
    for own in _series(points):
        indices = own[-WINDOW:]
        figures = [figure for index in indices if (figure := points[index].judged) is not None]
        for each in groups(figures):
            yield indices[each.start], indices[each.end - 1], each


def _series(points: Sequence[Point]) -> list[list[int]]:
    """The indices of the judged points of each fingerprint."""
    found: list[tuple[Fingerprint, list[int]]] = []
    for index, each in enumerate(points):
        if each.judged is not None:
            own = next((indices for known, indices in found if known == each.fingerprint), None)
            if own is None:
                found.append((each.fingerprint, own := []))
            own.append(index)
    return [indices for _, indices in found]


def _mark(point: Point, metric: Metric, x: float, y: _Scale, floor: float) -> str:
    words = f"{point.run}, {point.started[:16].replace('T', ' ')} UTC"
    words += f", version under test {point.version}" if point.version else ""
    if point.figure is None:
        return svg.box(x - 3.5, floor - 7, 7, 7, _RED, title=f"{words}: no figure: {point.failed}")
    value = point.figure.written(short(point.figure.value / metric.quantity.scale))
    words = f"{words}: {value} {metric.quantity.unit}"
    if point.doubtful:
        return svg.dot(x, y(point.figure.value), 3.5, fill="none", stroke=svg.MUTED, title=f"{words}; {point.doubtful}")
    return svg.dot(x, y(point.figure.value), 4, fill=metric.colour, stroke=svg.INK, title=words)


def _legend(metric: Metric) -> list[str]:
    base, shapes = _HEIGHT - 14.0, []
    words = ("judged", "not judged: noisy, or a bound", "failed: no figure", "mean between change points")
    at = [_LEFT + offset for offset in (0.0, 74.0, 262.0, 382.0)]
    shapes.append(svg.dot(at[0] + 6, base - 4, 4, fill=metric.colour, stroke=svg.INK, title=words[0]))
    shapes.append(svg.dot(at[1] + 6, base - 4, 3.5, fill="none", stroke=svg.MUTED, title=words[1]))
    shapes.append(svg.box(at[2] + 2.5, base - 7.5, 7, 7, _RED, title=words[2]))
    shapes.append(svg.line(at[3], base - 4, at[3] + 14, base - 4, metric.colour, width=2))
    shapes += [svg.text(x + 18, base, each, size=11, fill=svg.MUTED) for x, each in zip(at, words, strict=True)]
    return shapes


def _spread(amount: int) -> list[int]:
    """Indices from the first to the last, no more than there is room for."""
    parts = min(amount, _MOST_DATES) - 1
    return sorted({round(part * (amount - 1) / parts) for part in range(parts + 1)}) if parts else [0]
