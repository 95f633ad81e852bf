"""Makes reports from records: at the end of a run, and later by `podperf report`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TextIO

from podperf.errors import BadArguments, ExitCode
from podperf.history.acknowledgements import FILE
from podperf.history.fingerprint import PARTS
from podperf.history.newest import NOTHING_EARLIER, BesideEarlier, compare_newest
from podperf.history.runs import PastRun, earlier_runs
from podperf.nearness import optional_path
from podperf.printable import printable
from podperf.records.reading import UNFORESEEN
from podperf.report.conformance import assess, latest_of, to_json
from podperf.report.costs_command import FORMS, report_beside_accepted, report_costs
from podperf.report.csv_table import csv_table
from podperf.report.files import write_file, write_report
from podperf.report.history_page import report_history
from podperf.report.listing import report_listing
from podperf.report.nodes import slowest_first, slowest_words
from podperf.report.nodes_page import are_many, in_words, nodes_page, read_many
from podperf.report.nodes_page import to_json as to_json_of_nodes
from podperf.report.openmetrics import openmetrics
from podperf.report.page import page
from podperf.report.results import RunResults, made_of, read_run, read_runs
from podperf.report.summary import summary_table
from podperf.terminal import columns, say, wants_colour

NAME, NODES = "conformance", "nodes"  # of the reports
COMBINED = "combined"  # the folder of a report of several runs, beside them

Runs = Sequence[RunResults]


def write_reports(results: Path | str) -> Path:
    """Write `conformance.html` and `conformance.json` into the results folder of a run. Returns the HTML file's path.

    Raises PodperfError if there are no records, or if the reports cannot be written.
    """
    run = read_run(Path(results))
    write, _ = made_of([run], partial(_report, folder=run.directory))
    return write()


def summary(results: Path | str, stream: TextIO) -> str:
    """The table of a run as text for `stream`, with a line for each file that could not be read."""
    text, (run,) = made_of([read_run(Path(results))], partial(_summary, stream=stream))
    return "\n".join([text, *_not_read(run)])


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the arguments."""
    parser.description = """Make the reports of a run again, one report from several runs, that of a history, or that of
variants on a counted machine."""
    parser.add_argument("results", nargs="*", type=Path, help="results folder of a run, like results/latest")
    parser.add_argument(
        "--output",
        type=optional_path,
        help="where the report goes (default: the run's folder; for several: `combined` beside it; the history; for "
        "costs: the folder of AFTER)",
    )
    parser.add_argument(
        "--history",
        type=optional_path,
        metavar="FOLDER",
        help="a folder of results folders: show the trend of each figure, and judge the newest run (docs/history.md)",
    )
    parser.add_argument(
        "--costs",
        nargs="*",
        metavar="RESULTS",
        help="show in which functions counted costs differ: BEFORE AFTER, two results folders or two records; "
        "COMPARISON, whose variants are compared with the first, or COMPARISON VARIANT VARIANT; with --history, RUN "
        "(default: the newest) beside the last accepted run (docs/counted.md)",
    )
    parser.add_argument(
        "--listing",
        metavar="FUNCTION",
        help="print the instructions of a function, and how often a frame runs each: of runs on a counted machine with "
        "the detail (docs/counted.md)",
    )
    parser.add_argument(
        "--acknowledged", type=optional_path, metavar="FILE", help=f"known regressions (default: {FILE} in the history)"
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
        type=optional_path,
        metavar="FILE",
        help="write the figures of the newest run for Prometheus, also of a history (docs/ci.md)",
    )
    parser.add_argument(
        "--csv",
        type=optional_path,
        metavar="FILE",
        help="write the figures of these results folders as a table, one line each (docs/records.md)",
    )


def main(chosen: Namespace) -> int:
    """`podperf report RESULTS…`, `--history FOLDER` and `--costs …`. Returns the exit code."""
    _refuse_contradictions(chosen)
    costs = chosen.costs
    output = chosen.output and chosen.output.resolve()  # the user may name a link
    if chosen.history and costs is not None:
        run = Path(costs[0]) if costs else None
        return report_beside_accepted(chosen.history, run, chosen.output, chosen.acknowledged, chosen.ignore)
    if chosen.history:
        return report_history(
            chosen.history, chosen.output, chosen.acknowledged, chosen.ignore, openmetrics_file=chosen.openmetrics
        )
    if costs is not None:
        return report_costs(costs, chosen.output)
    if chosen.listing is not None:
        return report_listing(chosen.results, chosen.listing)
    if are_many(chosen.results):
        if chosen.csv:
            _write_csv(read_runs(chosen.results)[0], chosen.csv)
        return _report_nodes(chosen.results, output, chosen.openmetrics)
    runs, unread = read_runs(chosen.results)
    for each in unread:
        say(f"not read: {each}")
    if chosen.csv:
        _write_csv(runs, chosen.csv)
    return _report_runs(runs, output, chosen.openmetrics) or (ExitCode.NOT_DONE if unread else ExitCode.FINE)


def _write_csv(runs: Runs, path: Path) -> None:
    write_file(path, csv_table(record for run in runs for record in run.records))


def _refuse_contradictions(chosen: Namespace) -> None:
    costs = chosen.costs
    if bool(chosen.results) + (chosen.history is not None or costs is not None) != 1:
        raise BadArguments(f"give results folders, or --history FOLDER, or {FORMS}")
    if costs is not None and len(costs) not in ((0, 1) if chosen.history else (1, 2, 3)):
        raise BadArguments(f"give {FORMS}")
    if costs is not None and chosen.openmetrics:
        raise BadArguments("--openmetrics is an option of a run, and of --history FOLDER without --costs")
    if chosen.csv and not chosen.results:
        raise BadArguments("--csv is an option of results folders: give some or all of a history")
    if chosen.listing is not None and not chosen.results:
        raise BadArguments("--listing FUNCTION is an option of results folders")
    if not chosen.history and (chosen.ignore or chosen.acknowledged):
        raise BadArguments("--ignore and --acknowledged are options of --history FOLDER")


def _report_runs(runs: Runs, output: Path | None, openmetrics_file: Path | None) -> int:
    """The table of each run, the report of each run if there are several, and that of all. Returns the exit code."""
    several, found = len(runs) > 1, list[RunResults]()
    for each in runs:
        text, (run,) = made_of([each], partial(_summary, stream=sys.stdout))
        write, (run,) = made_of([run], partial(_report, folder=each.directory if several else output or each.directory))
        found.append(run)
        if several:
            print(f"{printable(str(run.directory))}:\n")
        print("\n".join([text, *_not_read(run)]), end="\n\n")
        if output is None and several:
            write()
    if said := slowest_words(slowest_first(latest_of(found))):
        print(printable(said))
    if several:
        write, found[:] = made_of(found, partial(_report, folder=output or found[-1].directory.parent / COMBINED))
    print(printable(str(write())))
    if openmetrics_file:
        write_file(openmetrics_file, openmetrics(found[-1].records))
    return ExitCode.NOT_DONE if any(run.problems for run in found) else ExitCode.FINE


def _report_nodes(folders: Sequence[Path], output: Path | None, openmetrics_file: Path | None) -> int:
    """One report of the nodes of a cluster, and none of each run: a run has made its own. Returns the exit code."""
    found = read_many(folders)
    newest = found.runs[-1].folder
    folder = output or newest.parent / COMBINED
    for problem in found.problems:
        say(f"not read: {problem}")
    print(printable(in_words(found)))
    print(printable(slowest_words(found.nodes)))
    print(printable(str(write_report(folder, NODES, to_json_of_nodes(found, folder), nodes_page(found, folder)))))
    if openmetrics_file:
        write_file(openmetrics_file, openmetrics(read_run(newest).records))
    return ExitCode.NOT_DONE if found.problems else ExitCode.FINE


def _beside_earlier(runs: Runs) -> BesideEarlier:
    """The newest of these runs beside the others. A single run is compared with those in the folders beside it."""
    *others, newest = runs
    earlier = [PastRun(other.name, other.records) for other in others if other.records]
    if not others:
        earlier = earlier_runs(newest.directory, newest.records)
    if not earlier or not newest.records:
        return NOTHING_EARLIER
    try:
        return compare_newest(earlier, PastRun(newest.name, newest.records))
    except UNFORESEEN:  # anybody can put a run beside results in /tmp, and this run is shown without it
        return NOTHING_EARLIER


def _summary(runs: Runs, stream: TextIO) -> str:
    """The table of one run."""
    (run,) = runs
    earlier = _beside_earlier(runs)
    return summary_table(run.records, width=columns(stream), colour=wants_colour(stream), earlier=earlier)


def _not_read(run: RunResults) -> list[str]:
    return [f"not read: {problem}" for problem in run.problems]


def _report(runs: Runs, folder: Path) -> Callable[[], Path]:
    """The report of these runs, as a function that writes it into the folder and returns the path of the page."""
    conformance = assess(runs, folder.resolve(), _beside_earlier(runs))
    return partial(write_report, folder, NAME, to_json(conformance), page(conformance))
