"""A bar chart of the functions in which two variants differ: to the right what takes more instructions, to the left
what takes less."""

from __future__ import annotations

from podperf.figures import cut, short
from podperf.report import svg
from podperf.report.cost_changes import CostChange
from podperf.report.cost_words import others, shown, signed

_WIDTH, _LABEL, _VALUE = 760, 276, 74
_BAR, _STEP, _TOP = 13, 20, 40
_NAME = 42  # characters, at most
_MORE, _LESS, _OTHER = "#b42318", "#1b7a43", "#7b8794"


def cost_chart(title: str, change: CostChange) -> str:
    """An SVG. Empty where no function differs, or the functions are not known."""
    some, left = shown(change.functions)
    if not some:
        return ""
    bars = [(each.name, each.change, _MORE if each.change > 0 else _LESS) for each in some]
    bars += [(name, left, _OTHER)] if (name := others(change.functions)) else []
    lowest, highest = min(0.0, *(each for _, each, _ in bars)), max(0.0, *(each for _, each, _ in bars))
    # Room for the numbers: those of bars to the left stand between the names and the bars.
    begin, end = _LABEL + (_VALUE if lowest < 0 else 0), _WIDTH - (_VALUE if highest > 0 else 12)
    floor = _TOP + len(bars) * _STEP

    def x(amount: float) -> float:
        return begin + (amount - lowest) / (highest - lowest) * (end - begin)

    shapes = []
    for tick in svg.range_ticks(lowest, highest, about=6):
        shapes.append(svg.line(x(tick), _TOP - 4, x(tick), floor))
        shapes.append(svg.text(x(tick), floor + 16, short(tick), size=11, fill=svg.MUTED, anchor="middle"))
    for number, (name, amount, colour) in enumerate(bars):
        top = _TOP + number * _STEP
        words = signed(amount)
        shapes.append(svg.text(_LABEL - 10, top + _BAR - 2, cut(name, _NAME), anchor="end"))
        low, high = sorted((x(0), x(amount)))
        shapes.append(svg.box(low, top, max(1.0, high - low), _BAR, colour, title=f"{name}: {words}"))
        at, anchor = (high + 5, "start") if amount >= 0 else (low - 5, "end")
        shapes.append(svg.text(at, top + _BAR - 2, words, size=11, fill=svg.MUTED, anchor=anchor))
    shapes.append(svg.line(x(0), _TOP - 4, x(0), floor, svg.INK))
    head = svg.text(0, 16, title, weight="bold")
    return svg.document(_WIDTH, floor + 24, title, head, *shapes)
