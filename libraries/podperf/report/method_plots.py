"""Plots of methods beside MRR and the search: loss over the load, and latency over the load, a line for each test."""

from __future__ import annotations

from collections.abc import Sequence

from podperf.figures import microseconds, percent
from podperf.report.line_plot import LoadLine, LoadPlot, plot_over_load
from podperf.report.results import Record

_LOSS = LoadPlot("Loss by load (loss curves)", percent, logarithmic=False)
_LATENCY = LoadPlot("Latency by load, µs: median, and dashed the 99th percentile", microseconds, logarithmic=True)


def loss_curves(records: Sequence[Record]) -> str:
    """An SVG of all loss curves (docs/methods.md). Empty without one."""
    found = [(each["test"]["name"], each["methods"].get("loss_curve")) for each in records]
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
        steps = (record["methods"].get("latency_by_load") or {}).get("steps") or ()
        measured = [each for each in steps if each["latency"]]
        for percentile in ("p50", "p99"):
            points = [(each["load"], each["latency"][percentile]) for each in measured]
            name = f"{record['test']['name']}, {percentile}"
            lines.append(LoadLine(name, points, dashed=percentile == "p99"))
    return plot_over_load(_LATENCY, lines)
