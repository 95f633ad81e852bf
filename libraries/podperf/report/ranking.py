"""The chart of a run's data planes, the fastest first: a bar for the PDR with its interval, and thin bars below it.

The chart is plain HTML, so that on a telephone its bars get shorter and its text keeps its size.
"""

from __future__ import annotations

from collections.abc import Sequence

from podperf.figures import short
from podperf.metrics import ON_PAGE, RATE, Metric, headlines
from podperf.records import Figure, Record
from podperf.report import svg
from podperf.report.html import NOTHING, Content, Html, element
from podperf.report.results import figure_text


def rank(records: Sequence[Record]) -> list[Record]:
    """The records with a rate to draw, the highest PDR first. A record without a PDR ranks by its MRR."""
    return sorted(
        (record for record in records if _bars(record)), key=lambda each: -next(iter(_bars(each).values())).value
    )


def _bars(record: Record) -> dict[Metric, Figure]:
    """The rates of a record that are drawn, the most important first."""
    return {headline: record.figures[headline.name] for headline in headlines() if headline.name in record.figures}


def _kind(metric: Metric) -> str:
    """The CSS class of the metric's bar."""
    return "first" if metric.headline == 1 else "further"


def ranking(title: str, rows: Sequence[tuple[Record, Content, Content]]) -> Html:
    """A chart of ranked records on one axis. A row is a record, its name, and a remark beside its figures."""
    rates = [rate for record, _, _ in rows for rate in _bars(record).values()]
    if not rates:
        return NOTHING
    scale = svg.ticks(max(*(max(rate.value, rate.high or 0.0) for rate in rates), 1.0), about=5)
    numbers = [element("span", short(each / 1e3), style=f"left:{each / scale[-1]:.2%}") for each in scale]
    return element(
        "figure",
        element("figcaption", element("b", title), element("span", *_legend(), class_="legend")),
        *(_row(*row, scale) for row in rows),
        element("div", *numbers, class_="axis"),
        element("p", "kpps: thousand frames per second and direction", class_="unit"),
        class_="ranking",
        style=f"--steps:{len(scale) - 1}",
    )


def _legend() -> list[Html]:
    marks = [(_kind(headline), f"{headline.label}, {headline.legend}") for headline in headlines()]
    marks.insert(1, ("whisker", "its interval"))
    return [element("span", element("i", class_=kind), words) for kind, words in marks]


def _row(record: Record, name: Content, remark: Content, scale: Sequence[float]) -> Html:
    found = _bars(record)
    bars = [
        element("div", class_=_kind(metric), style=f"width:{_share(rate.value, scale)}")
        for metric, rate in found.items()
    ]
    first = next((rate for metric, rate in found.items() if _kind(metric) == "first"), None)
    low, high = ((first.low or 0.0), (first.high or 0.0)) if first else (0.0, 0.0)
    if high > low:
        width = _share(high - low, scale)
        bars.insert(1, element("div", class_="whisker", style=f"left:{_share(low, scale)};width:{width}"))
    figures = [
        element(
            "span", f"{metric.label} ", element("b", figure_text(rate, RATE, ON_PAGE)), class_=f"of-{_kind(metric)}"
        )
        for metric, rate in found.items()
    ]
    return element(
        "div",
        element("div", name, class_="name"),
        element("div", *bars, class_="track"),
        element("div", *figures, remark, class_="figures"),
        class_="row",
    )


def _share(rate: float, scale: Sequence[float]) -> str:
    return f"{max(0.0, min(rate / scale[-1], 1.0)):.2%}"
