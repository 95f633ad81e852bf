"""A bar chart of data planes: a bar for each result, with its spread as a whisker."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from podperf.figures import short
from podperf.metrics import RATE, Metric, rates
from podperf.model import Chain
from podperf.report import svg
from podperf.report.results import Record, figure_text

_WIDTH, _LABEL, _VALUE = 760, 200, 92
_BAR, _GAP, _GROUP_GAP = 11, 2, 12


def comparison(records: Sequence[Record], caption: str) -> str:
    """An SVG with a group of bars for each record with rates, one bar for each rate. Empty without any rate."""
    drawn = [each for each in records if _group(each)]
    if not drawn:
        return ""
    tops = [_top(rate) for each in drawn for rate in _group(each).values()]
    scale = svg.ticks(max(*tops, 1.0), about=6)
    top, shapes = 34.0, []

    def x(rate: float) -> float:
        return _LABEL + rate / scale[-1] * (_WIDTH - _LABEL - _VALUE)

    at = top + 4
    for record, label in zip(drawn, _labels(drawn), strict=True):
        group = _group(record)
        height = len(group) * (_BAR + _GAP)
        shapes.append(svg.text(_LABEL - 8, at + height / 2 + 3, label, anchor="end"))
        for metric, rate in group.items():
            shapes += _bar(rate, metric, at, x)
            at += _BAR + _GAP
        at += _GROUP_GAP
    floor = at - _GROUP_GAP + 4
    grid = [svg.line(x(each), top, x(each), floor) for each in scale]
    numbers = [
        svg.text(x(each), floor + 15, short(each / 1e3), size=11, fill=svg.MUTED, anchor="middle") for each in scale
    ]
    unit = svg.text(_WIDTH - 6, floor + 15, "kpps", size=11, fill=svg.MUTED, anchor="end")
    metrics = [each for each in rates() if any(each in _group(record) for record in drawn)]
    head = [svg.text(0, 14, caption, weight="bold"), *_legend(metrics)]
    title = f"{caption}: {', '.join(each.label for each in metrics)}"
    return svg.document(_WIDTH, int(floor + 22), title, *grid, *head, *shapes, *numbers, unit)


def _group(record: Record) -> dict[Metric, Record]:
    return {each: record["results"][each.name] for each in rates() if each.name in record["results"]}


def _top(rate: Record) -> float:
    return float(max(rate["frames_per_second"], rate["high_frames_per_second"] or 0.0))


def _labels(records: Sequence[Record]) -> list[str]:
    """The name of each chain. If chains differ only in their forwarder, the name includes the forwarder."""
    chains = [each["chain"] for each in records]
    labels = [str(Chain(chain["data_plane"], chain["pods"], workers=chain.get("workers", 1))) for chain in chains]
    return [
        label if labels.count(label) == 1 else f"{label}, {chain['forwarder']}"
        for label, chain in zip(labels, chains, strict=True)
    ]


def _bar(rate: Record, metric: Metric, y: float, x: Callable[[float], float]) -> list[str]:
    value, low, high = rate["frames_per_second"], rate["low_frames_per_second"], rate["high_frames_per_second"]
    end, middle = x(value), y + _BAR / 2
    words = figure_text(rate, RATE)
    shapes = [svg.box(x(0), y, end - x(0), _BAR, metric.colour, title=f"{metric.label} {words} kpps")]
    if low is not None and high is not None and high > low:
        shapes.append(svg.line(x(low), middle, x(high), middle, svg.INK, width=1.2))
        shapes += [svg.line(x(edge), middle - 3, x(edge), middle + 3, svg.INK, width=1.2) for edge in (low, high)]
        end = max(end, x(high))
    return [*shapes, svg.text(end + 6, y + _BAR - 2, words, size=10, fill=svg.MUTED)]


def _legend(metrics: Sequence[Metric]) -> list[str]:
    shapes, at = [], float(_WIDTH + 2 - 54 * len(metrics))
    for each in metrics:
        shapes += [svg.box(at, 5, 10, 10, each.colour), svg.text(at + 14, 14, each.label, size=11, fill=svg.MUTED)]
        at += 54
    return shapes
