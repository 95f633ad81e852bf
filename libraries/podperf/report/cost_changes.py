"""The cost of a frame in two variants, before and after: each figure that both have, and its functions. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podperf.methods.functions import FunctionChange, Functions, differences, rest
from podperf.report.results import Record

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class CountedCost:
    """A figure of a record: instructions a frame with so many frames in flight, and the same by function.

    `missing` says why there are no functions.
    """

    frames: int
    figure: float
    functions: Functions
    missing: str | None

    @property
    def in_flight(self) -> str:
        """`one frame in flight`, `bursts of 32 frames`."""
        return "one frame in flight" if self.frames == 1 else f"bursts of {self.frames} frames"


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
    def in_no_function(self) -> float:
        """The part of the change that no function has."""
        return rest(self.change, (each.change for each in self.functions))


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
    bursts = (record["methods"].get("cost") or {}).get("bursts") or ()
    found = [
        CountedCost(
            each["frames"],
            each["instructions_per_frame"],
            each.get("functions") or {},
            _why_none(each),
        )
        for each in bursts
    ]
    return sorted(found, key=lambda each: each.frames)


def _why_none(burst: Mapping[str, Any]) -> str | None:
    if "functions" not in burst:
        return "the podperf that wrote this record did not count by function"
    reason = burst.get("functions_missing")
    return None if reason is None else str(reason)


def compare_records(before: Record, after: Record) -> RowChanges:
    """Two records with a cost, of whichever tests."""
    names = [str(each["test"]["name"]) for each in (before, after)]
    return RowChanges(" → ".join(dict.fromkeys(names)), list(_changes(before, after)))


def compare_runs(before: Sequence[Record], after: Sequence[Record]) -> tuple[list[RowChanges], list[str]]:
    """The tests with a cost that both runs have, in the order of the second run, and the names of all others."""
    one, other = _by_test(before), _by_test(after)
    rows = [compare_records(one[key], record) for key, record in other.items() if key in one]
    alone = [name for _, name in one if (_, name) not in other] + [name for _, name in other if (_, name) not in one]
    return rows, alone


def variant(name: str, records: Sequence[Record]) -> CountedVariant:
    """The variant of a run with these records."""
    facts: dict[str, None] = {}
    for each in records:
        kernel = ((each["environment"] or {}).get("kernel") or {}).get("release")
        named = each.get("version_under_test")
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
            {"name": row.name, "figures": [_figure_to_json(each) for each in row.changes]} for row in comparison.rows
        ],
    }


def _figure_to_json(change: CostChange) -> Mapping[str, Any]:
    return {
        "frames": change.after.frames,
        "before": change.before.figure,
        "after": change.after.figure,
        "change": change.change,
        "functions_missing": change.missing,
        "in_no_function": change.in_no_function if change.missing is None else None,
        "functions": [
            {
                "before": each.name_before,
                "after": each.name_after,
                "instructions_before": each.before,
                "instructions_after": each.after,
                "change": each.change,
            }
            for each in change.functions
        ],
    }


def _changes(before: Record, after: Record) -> Iterator[CostChange]:
    earlier = {each.frames: each for each in counted_costs(before)}
    for each in counted_costs(after):
        if each.frames in earlier:
            yield CostChange(earlier[each.frames], each)


def _by_test(records: Sequence[Record]) -> dict[tuple[str, str], Record]:
    return {(each["test"]["suite"], each["test"]["name"]): each for each in records if counted_costs(each)}
