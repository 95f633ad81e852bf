"""`podperf report --costs`: two runs, variants of a comparison, or a run beside those that its history accepted."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from podperf.errors import ExitCode, PodperfError
from podperf.history.runs import PastRun, test_of
from podperf.methods.cost import BURSTS
from podperf.printable import printable
from podperf.records import Record, read_record
from podperf.report.cost_page import (
    CostChange,
    CostComparison,
    RowChanges,
    changes_of,
    compare_records,
    compare_runs,
    compare_variants,
    cost_page,
    cost_table,
    counted_costs,
    to_json,
    variant,
)
from podperf.report.files import write_report
from podperf.report.history_page import assess_history
from podperf.report.results import RunResults, read_run
from podperf.terminal import columns

NAME = "costs"
FORMS = "--costs BEFORE AFTER, --costs COMPARISON [VARIANT VARIANT], or --history FOLDER --costs [RUN]"


def report_costs(given: Sequence[str], output: Path | None) -> int:
    """Two results folders, two records, or the results folder of a comparison and perhaps two of its variants: print
    the differences, and write the page and the data. Returns the exit code. PodperfError if there is nothing to
    compare."""
    if len(given) == 2:
        return _report(*compare_costs(Path(given[0]), Path(given[1])), output)
    run = read_run(Path(given[0]))
    return _report(_chosen(run, given[1:]), run.directory, output)


def report_beside_accepted(
    folder: Path, run: Path | None, output: Path | None, acknowledged: Path | None, ignored: Collection[str]
) -> int:
    """The same of a run, or of the newest run of a history, beside the run that the history accepted last."""
    comparison = compare_with_accepted(folder, run, acknowledged, ignored)
    return _report(comparison, folder if run is None else run, output)


def report_variants(records: Mapping[str, str], folder: Path) -> None:
    """The same of variants of one comparison, each beside the first. `records` has the id of each variant's record in a
    results folder."""
    found = {name: _record(folder / "records" / f"{id_}.json") for name, id_ in records.items()}
    _report(compare_variants(found), folder, None)


def _report(comparison: CostComparison, folder: Path, output: Path | None) -> int:
    print(cost_table(comparison, columns(sys.stdout)), end="\n\n")
    print(printable(str(write_report((output or folder).resolve(), NAME, to_json(comparison), cost_page(comparison)))))
    return ExitCode.NOT_DONE if comparison.problems else ExitCode.FINE


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
        names = [printable(each.stem) for each in (before, after)]
        comparison = CostComparison(variant(names[0], [one]), variant(names[1], [other]), [row], [])
        folder = after.resolve().parent
        folder = folder.parent if folder.name == "records" else folder
    else:
        runs = [read_run(each) for each in (before, after)]
        rows, only_one = compare_runs(*(run.records for run in runs))
        variants = [variant(run.name, _counted(run.records)) for run in runs]
        problems = [problem for run in runs for problem in run.problems]
        comparison, folder = CostComparison(variants[0], variants[1], rows, only_one, problems), runs[1].directory
    if not any(row.changes for row in comparison.rows):
        raise PodperfError(
            f"{before} and {after} have no cost of the same test: it is measured with topologies/counted.yaml"
        )
    return comparison, folder


def _chosen(run: RunResults, names: Sequence[str]) -> CostComparison:
    """The variants of a run with these names, or all of them, each beside the first of its comparison. PodperfError if
    they are not there."""
    comparisons = dict[str, dict[str, Record]]()
    for comparison, name, record in _variants(run.records):
        comparisons.setdefault(comparison, {})[name] = record
    known = dict.fromkeys(name for variants in comparisons.values() for name in variants)
    if wrong := [name for name in names if name not in known]:
        raise PodperfError(f"{run.directory} has no variant {wrong[0]!r}; it has {', '.join(known) or 'none'}")
    chosen = [{name: found[name] for name in names or found if name in found} for found in comparisons.values()]
    found = [compare_variants(variants) for variants in chosen if len(variants) > 1]
    if not any(row.changes for each in found for row in each.rows):
        raise PodperfError(f"{run.directory} has no variants with a cost; give a second results folder, or --history")
    rows = [row for each in found for row in each.rows]
    return replace(found[0], rows=rows, problems=run.problems)


def _variants(records: Sequence[Record]) -> Iterator[tuple[str, str, Record]]:
    """The comparison, the name and the record of each variant. Variants that were measured in one test share a
    record."""
    for record in records:
        own, together = record.method("variant"), record.method("variants")
        if own:
            yield str(own["comparison"]), str(own["name"]), record
        for each in together.get("variants") or ():
            if cost := record.method(f"cost of {each['name']}"):
                yield str(together["name"]), str(each["name"]), replace(record, methods={"cost": cost})


def compare_with_accepted(
    folder: Path, run: Path | None, acknowledged: Path | None, ignored: Collection[str]
) -> CostComparison:
    """Each counted figure of a run beside that of the run that the history accepted last. PodperfError without one."""
    newest = None
    if run is not None:
        read = read_run(run, trials=False)
        newest = PastRun(read.name, read.records, read.problems)
    report = assess_history(folder, acknowledged, ignored, newest=newest)
    record_of = {(each.name, test_of(record)): record for each in report.history.runs for record in each.records}
    rows: dict[tuple[str, str], list[CostChange]] = {}  # by the test, and by the run that it is compared with
    befores, afters = dict[str, list[Record]](), dict[str, list[Record]]()
    for row, judgements in report.rows:
        for judgement in judgements:
            if judgement.accepted is None:
                continue
            key, now = (row.testbed, row.suite, row.name), row.trends[judgement.metric][-1]
            before, after = record_of[judgement.accepted.run, key], record_of[now.run, key]
            changes = rows.setdefault((report.name_of(row), judgement.accepted.run), [])
            changes += [
                each for each in changes_of(before, after) if BURSTS.get(each.after.frames) == judgement.metric.name
            ]
            befores.setdefault(judgement.accepted.run, []).append(before)
            afters.setdefault(now.run, []).append(after)
    if not rows:
        raise PodperfError(f"{folder}: no cost of {run or 'the newest run'} has an earlier one that is comparable")
    several = len(befores) > 1
    return CostComparison(
        variant(f"last accepted: {', '.join(befores)}", list(chain.from_iterable(befores.values()))),
        variant(", ".join(afters), list(chain.from_iterable(afters.values()))),
        [
            RowChanges(f"{name} (beside {accepted})" if several else name, changes)
            for (name, accepted), changes in rows.items()
        ],
        [],
        report.history.problems,
    )


def _counted(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if counted_costs(record)]


def _record(path: Path) -> Record:
    try:
        return read_record(path)
    except PodperfError as error:
        raise PodperfError(f"{path}: {error}") from error
