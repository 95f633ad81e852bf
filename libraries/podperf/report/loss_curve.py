"""A chart of loss ratio over offered load: each trial of a test is a dot, and each result a line."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from podperf.figures import kpps, number, percent, phase_words, short
from podperf.metrics import RATE, Metric, rates
from podperf.records import Figure, Record, RecordedTrial
from podperf.report import svg
from podperf.report.results import figure_text

_PHASE_FILLS = ("#748ffc", "#63c5b5", "#f2b266", "#c69fe0")
_WIDTH, _HEIGHT = 720, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 18, 50, 46
_CURVE = "loss_curve"  # the method whose points are joined
_LEGEND_ROW = 18  # pixels
_LEAST_LOAD, _MOST_DECADES = 1e-3, 12  # frames/s, and powers of ten of loss: beyond every trial
_Scale = Callable[[float], float]
_ZERO_BAND = 26  # pixels below the smallest decade, for trials without loss


def loss_curve(record: Record) -> str:
    """An SVG of the record's trials. Empty without trials.

    Both axes are logarithmic, because the steps of a search are ratios, and an MRR trial may have ten times the load of
    the search's result. The axis of loss goes from 100 % to the smallest loss (at least to 0.001 %). Trials without
    loss are in a band below.
    """
    trials = [trial for trial in record.trials if trial.of_one_load and trial.achieved_load > 0]
    if not trials:
        return ""
    marks = {rate: record.figures[rate.name] for rate in rates() if rate.name in record.figures}
    found = [trial.achieved_load for trial in trials] + [mark.value for mark in marks.values()]
    shown = [load for load in found if load > 0]
    least = max(_LEAST_LOAD, min(shown) / 1.1)
    most = max(2 * least, max(shown) * 1.1)
    losses = [trial.loss_ratio for trial in trials if trial.loss_ratio > 0]
    decades = min(max(5, math.ceil(-math.log10(min(losses, default=1.0)) - 1e-9)), _MOST_DECADES)

    def x(load: float) -> float:
        return _LEFT + math.log(max(load, least) / least) / math.log(most / least) * (_WIDTH - _LEFT - _RIGHT)

    def y(loss: float) -> float:
        floor = _HEIGHT - _BOTTOM
        if loss <= 0:
            return floor - _ZERO_BAND / 3
        return floor - _ZERO_BAND - max(0.0, decades + math.log10(loss)) / decades * (floor - _ZERO_BAND - _TOP)

    shapes = [*_axes(svg.log_ticks(least, most), decades, x, y), *_marks(marks, x)]
    phases = list(dict.fromkeys(trial.phase for trial in trials))
    points = record.method(_CURVE).get("points") or ()  # each is the median of the trials at its load
    shapes += svg.path(((x(point["achieved_load"]), y(point["loss_ratio"])) for point in points), svg.MUTED)
    shapes += [_dot(trial, phases, x, y) for trial in trials]
    legend, height = _legend(phases, any(trial.invalid for trial in trials))
    shapes += legend
    name = record.test.name
    return svg.document(_WIDTH, height, f"Loss ratio over offered load of {len(trials)} trials: {name}", *shapes)


def _axes(loads: Sequence[float], decades: int, x: _Scale, y: _Scale) -> list[str]:
    left, right, floor = _LEFT, _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    losses = [10.0**-decade for decade in range(decades + 1)]
    shapes = [
        *svg.columns(((x(load), short(load / 1e3)) for load in loads), _TOP, floor),
        *svg.rows(((y(loss), percent(loss)) for loss in losses), left, right),
    ]
    shapes.append(svg.text(left - 6, y(0) + 4, "no loss", size=11, fill=svg.MUTED, anchor="end"))
    shapes.append(svg.line(left, floor, right, floor, svg.MUTED))
    shapes.append(
        svg.text((left + right) / 2, _HEIGHT - 10, "offered load, kpps per direction", fill=svg.MUTED, anchor="middle")
    )
    shapes.append(svg.text(8, 20, "loss ratio", fill=svg.MUTED))
    return shapes


def _marks(marks: Mapping[Metric, Figure], x: _Scale) -> list[str]:
    """A dashed line for each result, with its name above. Names that would touch are in a second and third row."""
    lines, labels = [], []
    ends: list[float] = []  # the right end of the last label in each row
    for metric, found in sorted(marks.items(), key=lambda each: each[1].value):
        rate, words = found.value, f"{metric.label} {figure_text(found, RATE)}"
        half = len(words) * 3.3
        centre = min(max(x(rate), _LEFT + half), _WIDTH - _RIGHT - half)
        row = next((row for row, end in enumerate(ends) if centre - half > end), len(ends))
        ends[row : row + 1] = [centre + half + 4]
        height = _TOP - 6 - row * 13
        lines.append(svg.line(x(rate), height + 3, x(rate), _HEIGHT - _BOTTOM, metric.colour, width=1.4, dash="5 3"))
        labels.append(svg.text(centre, height, words, size=11, fill=metric.colour, anchor="middle", weight="bold"))
    return lines + labels  # labels are drawn last, so that no line crosses them


def _dot(trial: RecordedTrial, phases: Sequence[str], x: _Scale, y: _Scale) -> str:
    fill = _PHASE_FILLS[phases.index(trial.phase) % len(_PHASE_FILLS)]
    load = f"{kpps(trial.achieved_load)} kpps for {number(trial.duration)} s"
    words = f"{phase_words(trial.phase)}: {load}, loss {percent(trial.loss_ratio)}"
    where = x(trial.achieved_load), y(trial.loss_ratio)
    if trial.invalid:
        return svg.dot(*where, 3.5, fill="none", stroke=svg.MUTED, title=f"{words}; invalid: {trial.invalid}")
    return svg.dot(*where, 4, fill=fill, stroke=svg.INK, title=words)


def _legend(phases: Sequence[str], invalid: bool) -> tuple[list[str], int]:
    """The legend in rows below the axis, and the height of the whole drawing with these rows."""
    entries = [
        (phase_words(phase), _PHASE_FILLS[index % len(_PHASE_FILLS)], svg.INK) for index, phase in enumerate(phases)
    ]
    entries += [("invalid", "none", svg.MUTED)] if invalid else []
    shapes, at, base = [], float(_LEFT), _HEIGHT + _LEGEND_ROW - 8
    for words, fill, stroke in entries:
        size = 12 + 9 + len(words) * 6.4 + 8
        if at > _LEFT and at + size > _WIDTH - _RIGHT:
            at, base = float(_LEFT), base + _LEGEND_ROW
        shapes.append(svg.dot(at + 12, base - 4, 4, fill=fill, stroke=stroke, title=words))
        shapes.append(svg.text(at + 21, base, words, size=11, fill=svg.MUTED))
        at += size
    return shapes, base + 8
