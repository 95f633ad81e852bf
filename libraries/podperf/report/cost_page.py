"""What a frame costs before and after, by function, as one HTML page."""

from __future__ import annotations

import re
from collections.abc import Iterator

import podperf
from podperf.report.cost_changes import CostChange, CostComparison, CountedVariant, RowChanges
from podperf.report.cost_chart import cost_chart
from podperf.report.cost_words import MOST_SHOWN, instructions, sentence, signed, told_alike
from podperf.report.html import Html, TableRow, drawing, element, table
from podperf.report.page_frame import framed

_BETWEEN_DIGITS, _NO_BREAK = re.compile(r"(?<=\d) (?=\d)"), "\N{NO-BREAK SPACE}"
_CHART = "Change by function, instructions a frame, {}"
_TITLE = "What a frame costs, before and after"


def cost_page(comparison: CostComparison) -> str:
    """The whole page."""
    return framed(_TITLE, *_body(comparison))


def _body(comparison: CostComparison) -> Iterator[Html]:
    yield element("h1", _TITLE)
    yield element("p", "Before: ", *_variant(comparison.before), ". After: ", *_variant(comparison.after), ".")
    for words in told_alike(comparison):
        yield element("p", f"{words[0].upper()}{words[1:]}.", class_="note")
    yield element("h2", "Instructions a frame")
    rows = (
        TableRow(
            (
                element("a", row.name, href=f"#{_anchor(number)}"),
                change.after.in_flight,
                instructions(change.before.figure),
                instructions(change.after.figure),
                signed(change.change),
                _most(change),
            )
        )
        for number, row in enumerate(comparison.rows)
        for change in row.changes
    )
    yield table(("Test", "Frames", "Before", "After", "Change", "Most of it in"), rows, numeric=(2, 3, 4))
    for number, each in enumerate(comparison.rows):
        yield from _row(each, _anchor(number))
    yield element(
        "footer",
        f"podperf {podperf.__version__}. The cost of the bare path is taken off, of each function, too. An instruction "
        "is not a nanosecond: caches, memory and network cards are not in the cost.",
    )


def _variant(found: CountedVariant) -> list[Html | str]:
    return [element("b", found.name), f" ({found.facts})" if found.facts else ""]


def _anchor(number: int) -> str:
    return f"test-{number + 1}"


def _most(change: CostChange) -> str:
    """The function with the largest part of a change."""
    if change.missing:
        return f"not told: {change.missing}"
    found = change.functions
    return f"{found[0].name} ({signed(found[0].change)})" if found else "no function differs"


def _row(row: RowChanges, anchor: str) -> Iterator[Html]:
    yield element("h2", row.name, id=anchor)
    for change in row.changes:
        yield element("h3", _BETWEEN_DIGITS.sub(_NO_BREAK, sentence(change)))
        if change.missing:
            yield element("p", f"Not told by function: {change.missing}.", class_="note")
        elif not change.functions:
            yield element("p", "No function differs.")
        else:
            yield element("div", drawing(cost_chart(_CHART.format(change.after.in_flight), change)), class_="scroll")
            yield _functions(change)


def _functions(change: CostChange) -> Html:
    """All functions that differ, and what none of them has. The sum is the change."""
    rows = [
        TableRow((each.name, instructions(each.before), instructions(each.after), signed(each.change)))
        for each in change.functions
    ]
    rows.append(TableRow(("in no function", "", "", signed(change.in_no_function))))
    rows.append(
        TableRow(
            (
                element("b", "the whole frame"),
                instructions(change.before.figure),
                instructions(change.after.figure),
                element("b", signed(change.change)),
            )
        )
    )
    words = "All functions that differ"
    found = table(("Function", "Before", "After", "Change"), rows, numeric=(1, 2, 3))
    return element("details", element("summary", words), found, open="open" if len(rows) <= MOST_SHOWN else None)
