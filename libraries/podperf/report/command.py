"""Makes reports from records: at the end of a run, and later by `podperf report`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from podperf.errors import PodperfError
from podperf.history.acknowledgements import FILE
from podperf.history.fingerprint import PARTS
from podperf.history.newest import NOTHING_EARLIER, BesideEarlier, compare_newest
from podperf.history.runs import PastRun, earlier_runs
from podperf.printable import printable
from podperf.report.conformance import assess, latest_of, to_json
from podperf.report.costs_command import report_costs
from podperf.report.files import write_file, write_report
from podperf.report.history_command import report_history
from podperf.report.many_runs import are_many, read_many
from podperf.report.nodes import slowest_first, slowest_words
from podperf.report.nodes_page import in_words, nodes_page
from podperf.report.nodes_page import to_json as to_json_of_nodes
from podperf.report.openmetrics import openmetrics
from podperf.report.page import page
from podperf.report.results import RunResults, read_run, read_runs
from podperf.report.summary import summary_table
from podperf.terminal import columns, wants_colour

NAME, NODES = "conformance", "nodes"  # of the reports
COMBINED = "combined"  # the folder of a report of several runs, beside them


def write_reports(results: Path | str) -> Path:
    """Write `conformance.html` and `conformance.json` into the results folder of a run. Returns the HTML file's path.

    Raises PodperfError if there are no records, or if the reports cannot be written.
    """
    run = read_run(Path(results))
    return _write([run], run.directory, _beside_earlier([run]))


def summary(results: Path | str, stream: TextIO) -> str:
    """The table of a run as text for `stream`, with a line for each file that could not be read."""
    run = read_run(Path(results))
    return _summary(run, stream, _beside_earlier([run]))


def main(args: Sequence[str]) -> int:
    """`podperf report RESULTS…`, `--history FOLDER` and `--costs BEFORE AFTER`. Returns the exit code.

    It is 0, or 1 if a file could not be read; for a history see `podperf.report.history_command`.
    """
    parser = _parser()
    chosen = parser.parse_args(args)
    if sum(map(bool, (chosen.results, chosen.history, chosen.costs))) != 1:
        parser.error("give results folders, or --history FOLDER, or --costs BEFORE AFTER")
    if not chosen.history and (chosen.ignore or chosen.acknowledged):
        parser.error("--ignore and --acknowledged are options of --history FOLDER")
    try:
        if chosen.history:
            return report_history(
                chosen.history, chosen.output, chosen.acknowledged, chosen.ignore, openmetrics_file=chosen.openmetrics
            )
        if chosen.costs:
            before, after = chosen.costs
            return report_costs(before, after, chosen.output)
        if are_many(chosen.results):
            return _report_nodes(chosen.results, chosen.output, chosen.openmetrics)
        runs, unread = read_runs(chosen.results)
        for each in unread:
            print(f"podperf report: not read: {each}", file=sys.stderr)
        for run in runs:
            if len(runs) > 1:
                print(f"{printable(str(run.directory))}:\n")
            earlier = _beside_earlier([run])
            print(_summary(run, sys.stdout, earlier), end="\n\n")
            if chosen.output is None and len(runs) > 1:
                _write([run], run.directory, earlier)
        if said := slowest_words(slowest_first(latest_of(runs))):
            print(printable(said))
        print(printable(str(_write(runs, chosen.output or _default_output(runs), _beside_earlier(runs)))))
        if chosen.openmetrics:
            write_file(chosen.openmetrics, openmetrics(runs[-1].records))
    except PodperfError as error:
        print(f"podperf report: {error}", file=sys.stderr)
        return 1
    return 1 if unread or any(run.problems for run in runs) else 0


def _report_nodes(folders: Sequence[Path], output: Path | None, openmetrics_file: Path | None) -> int:
    """One report of the nodes of a cluster, and none of each run: a run has made its own. Returns the exit code."""
    found = read_many(folders)
    newest = found.runs[-1].folder
    folder = (output or newest.parent / COMBINED).resolve()
    for each in found.problems:
        print(f"podperf report: not read: {each}", file=sys.stderr)
    print(printable(in_words(found)))
    print(printable(slowest_words(found.nodes)))
    print(printable(str(write_report(folder, NODES, to_json_of_nodes(found, folder), nodes_page(found, folder)))))
    if openmetrics_file:
        write_file(openmetrics_file, openmetrics(read_run(newest).records))
    return 1 if found.problems else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="podperf report",
        description="Make the reports of a run again, one report from several runs, that of a history, or that of two "
        "variants on a counted machine.",
    )
    parser.add_argument("results", nargs="*", type=Path, help="results folder of a run, like results/latest")
    parser.add_argument(
        "--output",
        type=Path,
        help="where the report goes (default: the run's folder; for several: `combined` beside it; the history; for "
        "costs: the folder of AFTER)",
    )
    parser.add_argument(
        "--history",
        type=Path,
        metavar="FOLDER",
        help="a folder of results folders: show the trend of each figure, and judge the newest run (docs/history.md)",
    )
    parser.add_argument(
        "--costs",
        nargs=2,
        type=Path,
        metavar=("BEFORE", "AFTER"),
        help="two results folders, or two records, of a counted machine: show what a frame costs in each, and in which "
        "functions they differ (docs/counted.md)",
    )
    parser.add_argument(
        "--acknowledged", type=Path, metavar="FILE", help=f"known regressions (default: {FILE} in the history)"
    )
    parser.add_argument(
        "--ignore",
        action="append",
        default=[],
        choices=PARTS,
        metavar="PART",
        help=f"a part of the fingerprint that may change within a series: {', '.join(PARTS)}",
    )
    parser.add_argument(
        "--openmetrics",
        type=Path,
        metavar="FILE",
        help="write the figures of the newest run for Prometheus, also of a history (docs/ci.md)",
    )
    return parser


def _default_output(runs: Sequence[RunResults]) -> Path:
    return runs[0].directory if len(runs) == 1 else runs[-1].directory.parent / COMBINED


def _beside_earlier(runs: Sequence[RunResults]) -> BesideEarlier:
    """The newest of these runs beside the others. A single run is compared with those in the folders beside it."""
    *others, newest = runs
    earlier = [PastRun(each.name, each.records) for each in others if each.records]
    if not others:
        earlier = earlier_runs(newest.directory, newest.records)
    if not earlier or not newest.records:
        return NOTHING_EARLIER
    return compare_newest(earlier, PastRun(newest.name, newest.records))


def _summary(run: RunResults, stream: TextIO, earlier: BesideEarlier) -> str:
    lines = [summary_table(run.records, width=columns(stream), colour=wants_colour(stream), earlier=earlier)]
    return "\n".join(lines + [f"not read: {problem}" for problem in run.problems])


def _write(runs: Sequence[RunResults], folder: Path, earlier: BesideEarlier) -> Path:
    conformance = assess(runs, folder.resolve(), earlier)
    return write_report(folder, NAME, to_json(conformance), page(conformance))
