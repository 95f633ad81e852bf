"""What a frame costs in two variants, by function: in words, as one HTML page, and as data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import podperf
from podperf.figures import count, cut, short
from podperf.methods.functions import (
    MEMORY,
    TESTER,
    FunctionChange,
    Functions,
    Listing,
    differences,
    instructions,
    rest,
    signed,
    with_tester_apart,
)
from podperf.records import Record
from podperf.report import svg
from podperf.report.flame_graph import differential_flame_graph
from podperf.report.html import Html, TableRow, element, framed, plots, table

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class CountedCost:
    """A figure of a record: instructions a frame with this number of frames in flight, and the same by function.

    `missing` says why there are no functions. `memory` has each quantity of MEMORY by function; it is empty where the
    record does not tell. `stacks` and `listings` are there if the detail was asked for; they have the bare path, too.
    """

    frames: int
    figure: float
    functions: Functions
    missing: str | None
    memory: Mapping[str, Functions] = field(default_factory=dict)
    stacks: Functions = field(default_factory=dict)
    listings: Mapping[str, Listing] = field(default_factory=dict)

    def used(self, what: str) -> float:
        """A quantity of MEMORY, a frame; 0 without it."""
        return sum(self.memory.get(what, {}).values())

    @property
    def in_flight(self) -> str:
        """`one frame in flight`, `bursts of 32 frames`."""
        return "one frame in flight" if self.frames == 1 else f"bursts of {self.frames} frames"


@dataclass(frozen=True)
class MemoryChange:
    """A quantity of MEMORY before and after, a frame, by function."""

    what: str
    functions_before: Functions
    functions_after: Functions

    @property
    def before(self) -> float:
        """All functions together."""
        return sum(self.functions_before.values())

    @property
    def after(self) -> float:
        """All functions together."""
        return sum(self.functions_after.values())

    @property
    def change(self) -> float:
        """More than before."""
        return self.after - self.before

    @property
    def functions(self) -> Sequence[FunctionChange]:
        """The functions that differ, the largest difference first."""
        return differences(self.functions_before, self.functions_after)


@dataclass(frozen=True)
class CostChange:
    """A figure before and after."""

    before: CountedCost
    after: CountedCost

    @property
    def change(self) -> float:
        """Instructions a frame more than before."""
        return self.after.figure - self.before.figure

    @property
    def missing(self) -> str | None:
        """Why the change is not told by function, or None."""
        return self.before.missing or self.after.missing

    @property
    def functions(self) -> Sequence[FunctionChange]:
        """The functions that differ, the largest difference first. Empty where `missing` says why."""
        return [] if self.missing else differences(self.before.functions, self.after.functions)

    @property
    def of_tester(self) -> float:
        """The part of the change that is the tester's own work. 0 where the functions are not known."""
        return 0.0 if self.missing else self.after.functions.get(TESTER, 0.0) - self.before.functions.get(TESTER, 0.0)

    @property
    def memory(self) -> Sequence[MemoryChange]:
        """The use of memory. Empty where one of the two does not tell."""
        before, after = self.before.memory, self.after.memory
        return [MemoryChange(what, before[what], after[what]) for what in MEMORY if what in before and what in after]

    @property
    def stacks(self) -> tuple[Functions, Functions]:
        """By stack of calls, before and after. Empty without the detail."""
        return self.before.stacks, self.after.stacks

    @property
    def in_no_function(self) -> float:
        """The part of the change that no function has."""
        return rest(self.change, (function.change for function in self.functions))


@dataclass(frozen=True)
class RowChanges:
    """One test in both variants."""

    name: str
    changes: Sequence[CostChange]


@dataclass(frozen=True)
class CountedVariant:
    """The variant before, or after: the name of its run or record, and the known facts of its machine."""

    name: str
    facts: str


@dataclass(frozen=True)
class CostComparison:
    """Two variants. `only_one` are the tests with a cost that the other variant has not."""

    before: CountedVariant
    after: CountedVariant
    rows: Sequence[RowChanges]
    only_one: Sequence[str]
    problems: Sequence[str] = ()


def counted_costs(record: Record) -> list[CountedCost]:
    """The figures of a record, the one with the fewest frames in flight first. Empty without a cost."""
    bursts = record.method("cost").get("bursts") or ()
    found = [
        CountedCost(
            burst["frames"],
            burst["instructions_per_frame"],
            with_tester_apart(burst.get("functions") or {}),
            _why_none(burst),
            {
                name: with_tester_apart(found["functions"])
                for name, found in (burst.get("memory") or {}).items()
                if name in MEMORY
            },
            burst.get("stacks") or {},
            burst.get("listings") or {},
        )
        for burst in bursts
    ]
    return sorted(found, key=lambda each: each.frames)


def _why_none(burst: Mapping[str, Any]) -> str | None:
    if "functions" not in burst:
        return "the podperf that wrote this record did not count by function"
    reason = burst.get("functions_missing")
    return None if reason is None else str(reason)


def changes_of(before: Record, after: Record) -> list[CostChange]:
    """The figures that both records have."""
    earlier = {counted_cost.frames: counted_cost for counted_cost in counted_costs(before)}
    found = counted_costs(after)
    return [CostChange(earlier[each.frames], each) for each in found if each.frames in earlier]


def compare_records(before: Record, after: Record) -> RowChanges:
    """Two records with a cost, of whichever tests."""
    names = [each.test.name for each in (before, after)]
    return RowChanges(" → ".join(dict.fromkeys(names)), changes_of(before, after))


def compare_runs(before: Sequence[Record], after: Sequence[Record]) -> tuple[list[RowChanges], list[str]]:
    """The tests with a cost that both runs have, in the order of the second run, and the names of all others."""
    one, other = _by_test(before), _by_test(after)
    rows = [compare_records(one[key], record) for key, record in other.items() if key in one]
    alone = [name for _, name in one if (_, name) not in other] + [name for _, name in other if (_, name) not in one]
    return rows, alone


def compare_variants(records: Mapping[str, Record]) -> CostComparison:
    """Variants of one comparison by their names. Each of them is compared with the first."""
    (base, first), *others = records.items()
    rows = [RowChanges(f"{base} → {name}", changes_of(first, record)) for name, record in others]
    names = ", ".join(name for name, _ in others)
    return CostComparison(variant(base, [first]), variant(names, [record for _, record in others]), rows, [])


def variant(name: str, records: Sequence[Record]) -> CountedVariant:
    """The variant of a run with these records."""
    facts: dict[str, None] = {}
    for record in records:
        kernel = (record.environment.get("kernel") or {}).get("release")
        named = record.version_under_test
        facts |= dict.fromkeys(filter(None, [named and str(named), kernel and f"Linux {kernel}"]))
    return CountedVariant(name, ", ".join(facts))


def to_json(comparison: CostComparison) -> Mapping[str, Any]:
    """The same as data, with every function that differs."""
    return {
        "schema_version": SCHEMA_VERSION,
        "before": {"name": comparison.before.name, "facts": comparison.before.facts},
        "after": {"name": comparison.after.name, "facts": comparison.after.facts},
        "only_one": list(comparison.only_one),
        "problems": list(comparison.problems),
        "tests": [
            {"name": row.name, "figures": [_figure_to_json(change) for change in row.changes]}
            for row in comparison.rows
        ],
    }


def _figure_to_json(change: CostChange) -> Mapping[str, Any]:
    return {
        "frames": change.after.frames,
        "before": change.before.figure,
        "after": change.after.figure,
        "change": change.change,
        "change_without_tester": None if change.missing else change.change - change.of_tester,
        "functions_missing": change.missing,
        "in_no_function": change.in_no_function if change.missing is None else None,
        "functions": [_function_to_json(function, "instructions") for function in change.functions],
        "memory": {
            used.what: {
                "before": used.before,
                "after": used.after,
                "change": used.change,
                "functions": [_function_to_json(function, used.what) for function in used.functions],
            }
            for used in change.memory
        },
    }


def _function_to_json(function: FunctionChange, what: str) -> Mapping[str, Any]:
    return {
        "before": function.name_before,
        "after": function.name_after,
        f"{what}_before": function.before,
        f"{what}_after": function.after,
        "change": function.change,
    }


def _by_test(records: Sequence[Record]) -> dict[tuple[str, str], Record]:
    return {(record.test.suite, record.test.name): record for record in records if counted_costs(record)}


MOST_SHOWN = 20  # functions in a terminal and in a drawing
_NUMBER, _LEAST_NAME = 12, 24  # characters of a column


def sentence(change: CostChange) -> str:
    """`one frame in flight: 9 936.375, now 10 005.375 instructions a frame (+69.000)`, and where the tester's own work
    differs, `(+69.000; without the tester's own work +71.250)`."""
    words = f"{instructions(change.before.figure)}, now {instructions(change.after.figure)} instructions a frame"
    own = round(change.of_tester, 3)
    without = f"; without the tester's own work {signed(change.change - change.of_tester)}" if own else ""
    return f"{change.after.in_flight}: {words} ({signed(change.change)}{without})"


def shown(differences: Sequence[FunctionChange]) -> tuple[Sequence[FunctionChange], float]:
    """The functions that are shown one by one, and the sum of the changes of all others."""
    return differences[:MOST_SHOWN], sum(difference.change for difference in differences[MOST_SHOWN:])


def others(differences: Sequence[FunctionChange]) -> str:
    """The name of the row for those that are not shown one by one. Empty without any."""
    return count(len(differences) - MOST_SHOWN, "other function") if len(differences) > MOST_SHOWN else ""


def told_alike(comparison: CostComparison) -> Iterator[str]:
    """Further remarks on a comparison, a sentence each."""
    if comparison.only_one:
        yield f"in one of the two only: {', '.join(comparison.only_one)}"
    for problem in comparison.problems:
        yield f"not read: {problem}"


def cost_table(comparison: CostComparison, width: int) -> str:
    """Each figure before and after, and the functions in which they differ."""
    lines = [
        f"before: {_named(comparison.before.name, comparison.before.facts)}",
        f"after:  {_named(comparison.after.name, comparison.after.facts)}",
    ]
    for row in comparison.rows:
        lines += ["", row.name]
        for change in row.changes:
            lines += [f"  {sentence(change)}"]
            lines += [f"  {line}" for line in (*_function_lines(change, width - 2), *_memory_lines(change, width - 2))]
    return "\n".join([*lines, *(f"\n{each}" for each in told_alike(comparison))])


def _function_lines(change: CostChange, width: int) -> Iterator[str]:
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


def _memory_lines(change: CostChange, width: int) -> Iterator[str]:
    """The quantities that differ."""
    different = [used for used in change.memory if used.functions]
    if different:
        yield _line("change", "before", "after", "memory, most of it in", width)
    for used in different:
        words = f"{MEMORY[used.what]}, {used.functions[0].name}"
        yield _line(signed(used.change), instructions(used.before), instructions(used.after), words, width)


def _line(change: str, before: str, after: str, name: str, width: int) -> str:
    room = max(_LEAST_NAME, width - 3 * _NUMBER - 2)
    return f"{change:>{_NUMBER}}{before:>{_NUMBER}}{after:>{_NUMBER}}  {cut(name, room)}"


def _named(name: str, facts: str) -> str:
    return f"{name} ({facts})" if facts else name


_BETWEEN_DIGITS, _NO_BREAK = re.compile(r"(?<=\d) (?=\d)"), "\N{NO-BREAK SPACE}"
_CHART = "Change by function, instructions a frame, {}"
_FLAMES = "Who calls whom, {}: red functions have more instructions of their own than before, green ones less"
_TITLE = "What a frame costs, before and after"
_BY_FUNCTION = "The use of memory by function"


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
                element("a", row.name, href=f"#test-{number}"),
                change.after.in_flight,
                instructions(change.before.figure),
                instructions(change.after.figure),
                signed(change.change),
                _most(change),
            )
        )
        for number, row in enumerate(comparison.rows, 1)
        for change in row.changes
    )
    yield table(("Test", "Frames", "Before", "After", "Change", "Most of it in"), rows, numeric=(2, 3, 4))
    for number, each in enumerate(comparison.rows, 1):
        yield from _row(each, f"test-{number}")
    yield element(
        "footer",
        f"podperf {podperf.__version__}. The cost of the bare path is taken off, of each function, too. An instruction "
        "is not a nanosecond: caches, memory and network cards are not in the cost. L1 misses are those of a model.",
    )


def _variant(found: CountedVariant) -> list[Html | str]:
    return [element("b", found.name), f" ({found.facts})" if found.facts else ""]


def _most(change: CostChange) -> str:
    """The function with the largest part of a change."""
    if change.missing:
        return f"not told: {change.missing}"
    return _largest(change.functions)


def _largest(differences: Sequence[FunctionChange]) -> str:
    """The function with the largest of these differences."""
    return f"{differences[0].name} ({signed(differences[0].change)})" if differences else "no function differs"


def _row(row: RowChanges, anchor: str) -> Iterator[Html]:
    yield element("h2", row.name, id=anchor)
    for change in row.changes:
        yield element("h3", _BETWEEN_DIGITS.sub(_NO_BREAK, sentence(change)))
        if change.missing:
            yield element("p", f"Not told by function: {change.missing}.", class_="note")
        elif not change.functions:
            yield element("p", "No function differs.")
        else:
            yield plots([cost_chart(_CHART.format(change.after.in_flight), change)])
            yield _functions(change)
        yield plots([differential_flame_graph(_FLAMES.format(change.after.in_flight), *change.stacks)])
        yield from _memory(change.memory)


def _functions(change: CostChange) -> Html:
    """All functions that differ, and what none of them has. The sum is the change."""
    rows = [
        TableRow((function.name, instructions(function.before), instructions(function.after), signed(function.change)))
        for function in change.functions
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


def _memory(memory: Sequence[MemoryChange]) -> Iterator[Html]:
    """The use of memory, and the functions in which it differs."""
    yield table(
        ("Memory", "Before", "After", "Change", "Most of it in"),
        [
            TableRow(
                (
                    MEMORY[used.what],
                    instructions(used.before),
                    instructions(used.after),
                    signed(used.change),
                    _largest(used.functions),
                )
            )
            for used in memory
        ],
        numeric=(1, 2, 3),
    )
    found: dict[str, dict[str, float]] = {}
    for used in memory:
        for function in used.functions:
            found.setdefault(function.name, {})[used.what] = function.change
    if found:
        heads = ("Function", *(f"Change of {MEMORY[used.what]}" for used in memory))
        rows = [
            TableRow((name, *(signed(changes.get(used.what, 0.0)) for used in memory)))
            for name, changes in found.items()
        ]
        yield element("details", element("summary", _BY_FUNCTION), table(heads, rows, numeric=range(1, len(heads))))


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

    ticks = svg.range_ticks(lowest, highest, about=6)
    shapes = [*svg.columns(((x(tick), short(tick)) for tick in ticks), _TOP - 4, floor)]
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
