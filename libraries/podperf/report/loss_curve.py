"""A chart of loss ratio over offered load: each trial of a test is a dot, and each result a line."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from podperf.figures import PHASES, kpps, number, percent, short
from podperf.metrics import RATE, Metric, rates
from podperf.report import svg
from podperf.report.results import Record, figure_text

_PHASE_FILLS = ("#748ffc", "#63c5b5", "#f2b266", "#c69fe0")
_WIDTH, _HEIGHT = 720, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 18, 50, 46
_CURVE = "loss_curve"  # the phase whose trials are joined
_NO_LOAD = {"loop", "frames", "overload"}  # a trial with one of these has no load, or several
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
    trials = [each for each in record["trials"] if each["achieved_load"] > 0 and not _NO_LOAD & each.keys()]
    if not trials:
        return ""
    marks = {each: record["results"][each.name] for each in rates() if each.name in record["results"]}
    found = [each["achieved_load"] for each in trials] + [each["frames_per_second"] for each in marks.values()]
    shown = [load for load in found if load > 0]
    least = max(_LEAST_LOAD, min(shown) / 1.1)
    most = max(2 * least, max(shown) * 1.1)
    losses = [each["loss_ratio"] for each in trials if each["loss_ratio"] > 0]
    decades = min(max(5, math.ceil(-math.log10(min(losses, default=1.0)) - 1e-9)), _MOST_DECADES)

    def x(load: float) -> float:
        return _LEFT + math.log(max(load, least) / least) / math.log(most / least) * (_WIDTH - _LEFT - _RIGHT)

    def y(loss: float) -> float:
        floor = _HEIGHT - _BOTTOM
        if loss <= 0:
            return floor - _ZERO_BAND / 3
        return floor - _ZERO_BAND - max(0.0, decades + math.log10(loss)) / decades * (floor - _ZERO_BAND - _TOP)

    shapes = [*_axes(svg.log_ticks(least, most), decades, x, y), *_marks(marks, x)]
    phases = list(dict.fromkeys(each["phase"] for each in trials))
    shapes += _joined([each for each in trials if each["phase"] == _CURVE and not each["invalid"]], x, y)
    shapes += [_dot(each, phases, x, y) for each in trials]
    legend, height = _legend(phases, any(each["invalid"] for each in trials))
    shapes += legend
    name = record["test"]["name"]
    return svg.document(_WIDTH, height, f"Loss ratio over offered load of {len(trials)} trials: {name}", *shapes)


def _axes(loads: Sequence[float], decades: int, x: _Scale, y: _Scale) -> list[str]:
    left, right, floor = _LEFT, _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    shapes = []
    for load in loads:
        shapes.append(svg.line(x(load), _TOP, x(load), floor))
        shapes.append(svg.text(x(load), floor + 16, short(load / 1e3), size=11, fill=svg.MUTED, anchor="middle"))
    for decade in range(decades + 1):
        height = y(10.0**-decade)
        shapes.append(svg.line(left, height, right, height))
        label = percent(10.0**-decade)
        shapes.append(svg.text(left - 6, height + 4, label, size=11, fill=svg.MUTED, anchor="end"))
    shapes.append(svg.text(left - 6, y(0) + 4, "no loss", size=11, fill=svg.MUTED, anchor="end"))
    shapes.append(svg.line(left, floor, right, floor, svg.MUTED))
    shapes.append(
        svg.text((left + right) / 2, _HEIGHT - 10, "offered load, kpps per direction", fill=svg.MUTED, anchor="middle")
    )
    shapes.append(svg.text(8, 20, "loss ratio", fill=svg.MUTED))
    return shapes


def _marks(marks: Mapping[Metric, Record], x: _Scale) -> list[str]:
    """A dashed line for each result, with its name above. Names that would touch are in a second and third row."""
    lines, labels = [], []
    ends: list[float] = []  # the right end of the last label in each row
    for metric, found in sorted(marks.items(), key=lambda each: float(each[1]["frames_per_second"])):
        rate, words = found["frames_per_second"], f"{metric.label} {figure_text(found, RATE)}"
        half = len(words) * 3.3
        centre = min(max(x(rate), _LEFT + half), _WIDTH - _RIGHT - half)
        row = next((row for row, end in enumerate(ends) if centre - half > end), len(ends))
        ends[row : row + 1] = [centre + half + 4]
        height = _TOP - 6 - row * 13
        lines.append(svg.line(x(rate), height + 3, x(rate), _HEIGHT - _BOTTOM, metric.colour, width=1.4, dash="5 3"))
        labels.append(svg.text(centre, height, words, size=11, fill=metric.colour, anchor="middle", weight="bold"))
    return lines + labels  # labels are drawn last, so that no line crosses them


def _joined(trials: Sequence[Record], x: _Scale, y: _Scale) -> list[str]:
    """Lines between the trials of the method of that name, which are points of one curve."""
    points = [(x(each["achieved_load"]), y(each["loss_ratio"])) for each in trials]
    return [svg.line(*one, *other, svg.MUTED) for one, other in pairwise(points)]


def _dot(trial: Record, phases: Sequence[str], x: _Scale, y: _Scale) -> str:
    fill = _PHASE_FILLS[phases.index(trial["phase"]) % len(_PHASE_FILLS)]
    load = f"{kpps(trial['achieved_load'])} kpps for {number(trial['duration'])} s"
    words = f"{PHASES.get(trial['phase'], trial['phase'])}: {load}, loss {percent(trial['loss_ratio'])}"
    where = x(trial["achieved_load"]), y(trial["loss_ratio"])
    if trial["invalid"]:
        return svg.dot(*where, 3.5, fill="none", stroke=svg.MUTED, title=f"{words}; invalid: {trial['invalid']}")
    return svg.dot(*where, 4, fill=fill, stroke=svg.INK, title=words)


def _legend(phases: Sequence[str], invalid: bool) -> tuple[list[str], int]:
    """The legend in rows below the axis, and the height of the whole drawing with these rows."""
    entries = [
        (PHASES.get(phase, phase), _PHASE_FILLS[index % len(_PHASE_FILLS)], svg.INK)
        for index, phase in enumerate(phases)
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
