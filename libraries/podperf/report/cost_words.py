"""The costs of two variants as text for a terminal, and the numbers and words that the page shows, too. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podperf.figures import count, cut
from podperf.methods.functions import Difference
from podperf.report.cost_changes import CostChange, CostComparison

MOST_SHOWN = 20  # functions in a terminal and in a drawing
_NUMBER, _LEAST_NAME = 12, 24  # characters of a column


def instructions(amount: float) -> str:
    """`9 936.375`. A window has 64 frames, so a figure is a multiple of a 64th or of a 128th."""
    return f"{amount:,.3f}".replace(",", " ")


def signed(amount: float) -> str:
    """`+69.000`, `-162.016`, `0.000`."""
    rounded = round(amount, 3)
    return f"{'+' if rounded > 0 else ''}{instructions(rounded)}" if rounded else "0.000"


def sentence(change: CostChange) -> str:
    """`one frame in flight: 9 936.375, now 10 005.375 instructions a frame (+69.000)`."""
    words = f"{instructions(change.before.figure)}, now {instructions(change.after.figure)} instructions a frame"
    return f"{change.after.in_flight}: {words} ({signed(change.change)})"


def shown(differences: Sequence[Difference]) -> tuple[Sequence[Difference], float]:
    """The functions that are shown one by one, and the sum of the changes of all others."""
    return differences[:MOST_SHOWN], sum(each.change for each in differences[MOST_SHOWN:])


def others(differences: Sequence[Difference]) -> str:
    """The name of the row for those that are not shown one by one. Empty without any."""
    return count(len(differences) - MOST_SHOWN, "other function") if len(differences) > MOST_SHOWN else ""


def told_alike(comparison: CostComparison) -> Iterator[str]:
    """What else is to be said of a comparison, a sentence each."""
    if comparison.only_one:
        yield f"in one of the two only: {', '.join(comparison.only_one)}"
    for each in comparison.problems:
        yield f"not read: {each}"


def cost_table(comparison: CostComparison, width: int) -> str:
    """Each figure before and after, and the functions in which they differ."""
    lines = [
        f"before: {_named(comparison.before.name, comparison.before.facts)}",
        f"after:  {_named(comparison.after.name, comparison.after.facts)}",
    ]
    for row in comparison.rows:
        lines += ["", row.name]
        for change in row.changes:
            lines += [f"  {sentence(change)}", *(f"  {line}" for line in _functions(change, width - 2))]
    return "\n".join([*lines, *(f"\n{each}" for each in told_alike(comparison))])


def _functions(change: CostChange, width: int) -> Iterator[str]:
    if change.missing:
        yield f"  not told by function: {change.missing}"
        return
    found = change.functions
    if not found:
        yield "  no function differs"
        return
    yield _line("change", "before", "after", "function", width)
    some, left = shown(found)
    for each in some:
        yield _line(signed(each.change), instructions(each.before), instructions(each.after), each.name, width)
    if name := others(found):
        yield _line(signed(left), "", "", name, width)
    if round(change.in_no_function, 3):
        yield _line(signed(change.in_no_function), "", "", "in no function", width)


def _line(change: str, before: str, after: str, name: str, width: int) -> str:
    room = max(_LEAST_NAME, width - 3 * _NUMBER - 2)
    return f"{change:>{_NUMBER}}{before:>{_NUMBER}}{after:>{_NUMBER}}  {cut(name, room)}"


def _named(name: str, facts: str) -> str:
    return f"{name} ({facts})" if facts else name
