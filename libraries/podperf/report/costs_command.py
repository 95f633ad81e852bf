"""`podperf report --costs BEFORE AFTER`: what a frame costs in two variants, and in which functions they differ."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from podperf.errors import PodperfError
from podperf.printable import printable
from podperf.records import read_record
from podperf.report.cost_changes import (
    CostComparison,
    compare_records,
    compare_runs,
    counted_costs,
    to_json,
    variant,
)
from podperf.report.cost_page import cost_page
from podperf.report.cost_words import cost_table
from podperf.report.files import write_report
from podperf.report.results import Record, read_run
from podperf.terminal import columns

NAME = "costs"


def report_costs(before: Path, after: Path, output: Path | None) -> int:
    """Print the differences, and write the page and the data; returns the exit code: 0, or 1 if a file was not read.

    Both are results folders of runs, or both are records. PodperfError when there is nothing to compare.
    """
    comparison, folder = compare_costs(before, after)
    print(cost_table(comparison, columns(sys.stdout)), end="\n\n")
    print(printable(str(write_report(output or folder, NAME, to_json(comparison), cost_page(comparison)))))
    return 1 if comparison.problems else 0


def compare_costs(before: Path, after: Path) -> tuple[CostComparison, Path]:
    """The comparison of two runs or records, and the results folder of the second. PodperfError without a figure."""
    for each in (before, after):
        if not each.exists():
            raise PodperfError(f"{each}: no such file or folder; give two results folders, or two records")
    files = [each.is_file() for each in (before, after)]
    if any(files) and not all(files):
        raise PodperfError(f"{before} and {after}: give two results folders, or two records")
    if all(files):
        one, other = (_record(each) for each in (before, after))
        row = compare_records(one, other)
        comparison = CostComparison(variant(before.stem, [one]), variant(after.stem, [other]), [row], [])
        folder = after.resolve().parent
        folder = folder.parent if folder.name == "records" else folder
    else:
        runs = [read_run(each) for each in (before, after)]
        rows, only_one = compare_runs(*(each.records for each in runs))
        variants = [variant(each.name, _counted(each.records)) for each in runs]
        problems = [problem for each in runs for problem in each.problems]
        comparison, folder = CostComparison(variants[0], variants[1], rows, only_one, problems), runs[1].directory
    if not any(row.changes for row in comparison.rows):
        raise PodperfError(
            f"{before} and {after} have no cost of the same test: it is measured with topologies/counted.yaml"
        )
    return comparison, folder


def _record(path: Path) -> Record:
    try:
        return read_record(path)
    except PodperfError as error:
        raise PodperfError(f"{path}: {error}") from error


def _counted(records: Sequence[Record]) -> list[Record]:
    return [each for each in records if counted_costs(each)]
