"""The command `podperf compare`: the variants of a comparison file, before and after."""

from __future__ import annotations

import signal
import sys
import time
import traceback
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

from podperf.errors import BadArguments, PodperfError, Unavailable
from podperf.experiments.comparison import ComparisonOutcome, VariantComparison, VariantResult, exact_outcome
from podperf.experiments.comparison_files import load_comparison
from podperf.nearness import optional_path, proposed_paths
from podperf.printable import printable
from podperf.progress import Progress
from podperf.records import Outcome
from podperf.report.comparison_page import comparison_table, exit_code, write_comparison
from podperf.report.costs_command import report_variants
from podperf.run import Run, Session, TestIdentity
from podperf.terminal import columns, wants_colour
from podperf.testbed.access import read_topology
from podperf.topology import Topology
from run_command.arguments import ROOT, TOPOLOGIES
from run_command.preparation import results_folder, set_up_machines

COMPARISONS = ROOT / "comparisons"
SUITE, TAG = "podperf compare", "comparison"

Result = TypeVar("Result")


def add_arguments(parser: ArgumentParser) -> None:
    parser.description = "Measure the variants of a comparison by turns, and compare each with the first one."
    parser.epilog = """Exit codes: 0 no variant is slower, 3 slower, 5 undecided, 254 not measured (docs/ci.md).
docs/compare.md explains the file and the verdicts."""
    parser.add_argument(
        "variants", type=Path, metavar="VARIANTS", help="a comparison file, such as comparisons/gro.yaml"
    )
    parser.add_argument(
        "topology",
        nargs="?",
        type=optional_path,
        metavar="TOPOLOGY",
        help="the testbed (default: that of the file, or topologies/local.yaml)",
    )
    parser.add_argument(
        "--output",
        type=optional_path,
        metavar="FOLDER",
        help="where records and report go (default: results/<start time>)",
    )


def main(options: Namespace) -> int:
    """Measure, print the table, write the report. Returns the exit code (docs/compare.md)."""
    for each in (signal.SIGINT, signal.SIGTERM):  # a shell's background job ignores SIGINT, if nobody handles it
        signal.signal(each, signal.default_int_handler)
    try:
        return _compare(options)
    except (ValueError, LookupError, TypeError) as error:  # for example a word of a worker where a number belongs
        place = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} ({Path(place.filename).name}, line {place.lineno})"
        raise PodperfError(text) from error


def _compare(wanted: Namespace) -> int:
    if not wanted.variants.exists():
        known = map(str, sorted(COMPARISONS.glob("*.yaml")))
        raise BadArguments(f"there is no comparison {wanted.variants}{proposed_paths(str(wanted.variants), known)}")
    if wanted.topology is not None:
        read_topology(wanted.topology)  # it may bring data planes of other packages, which the variants name
    comparison = load_comparison(wanted.variants)
    topology = wanted.topology or comparison.topology or TOPOLOGIES / "local.yaml"
    if not wanted.no_install:
        set_up_machines(
            {topology, *(variant.topology for variant in comparison.variants if variant.topology is not None)}
        )
    with results_folder(wanted.output) as results:
        result = compare(comparison, topology, results, Progress())
        print(comparison_table(result, width=columns(sys.stdout), colour=wants_colour(sys.stdout)), end="\n\n")
        print(printable(str(write_comparison(result, results))), flush=True)
        if result.exact and len(result.variants) > 1:
            _tell_functions({each.variant.name: each.record for each in result.variants}, results)
        return exit_code(result)


def _tell_functions(records: Mapping[str, str], results: Path) -> None:
    """A record that cannot be read does not take the verdict away."""
    try:
        report_variants(records, results)
    except PodperfError as error:
        print(f"podperf: the change is not told by function: {error}", file=sys.stderr)


def compare(comparison: VariantComparison, topology: Path, results: Path, progress: Progress) -> ComparisonOutcome:
    """Measure a comparison on the testbed of a topology file. The records go into the folder `results`.

    An interruption by the user (KeyboardInterrupt) gives the result of the rounds so far. Unavailable, or another
    PodperfError, if nothing was measured.
    """
    paths = {variant.name: variant.topology or topology for variant in comparison.variants}
    topologies = {path: read_topology(path) for path in paths.values()}
    if all(each.counts_instructions for each in topologies.values()):
        named = {name: topologies[path] for name, path in paths.items()}
        return _each_in_its_boot(comparison, named, results, progress)
    if comparison.machines_of_their_own:
        name, path = next((name, path) for name, path in paths.items() if not topologies[path].counts_instructions)
        raise PodperfError(
            f"{comparison.path}: variants have topologies of their own, and variant {name!r} would be measured on "
            f"{path}, which is no counted machine; name a counted one there, or on the command line"
        )
    progress.run_begins([0.0])
    return _by_turns(comparison, Run(Session(topologies[topology], results, progress)))


def _by_turns(comparison: VariantComparison, run: Run) -> ComparisonOutcome:
    identity = TestIdentity(comparison.name, SUITE, (TAG,))
    run.open()
    try:
        run.progress.test_begins(comparison.name)
        test = run.begin_rounds(identity, comparison)
        try:
            return _ended(run, identity, test.measure, lambda result: result.sentence)
        except KeyboardInterrupt:
            return test.outcome(interrupted=True)
    finally:
        run.session.close()


def _each_in_its_boot(
    comparison: VariantComparison, topologies: Mapping[str, Topology], results: Path, progress: Progress
) -> ComparisonOutcome:
    """Each variant on a counted machine that is booted for it: no variant meets what another one has left."""
    progress.run_begins([0.0] * len(comparison.variants))
    started, found = time.time(), list[VariantResult]()
    for variant in comparison.variants:
        identity = TestIdentity(f"{comparison.name}: {variant.name}", SUITE, (TAG,))
        run = Run(Session(topologies[variant.name], results, progress))
        run.open()
        try:
            progress.test_begins(identity.name)
            test = run.begin_costs(identity, comparison, variant.name)
            try:
                found.append(_ended(run, identity, partial(test.figure_of, variant, alone=True)))
            except KeyboardInterrupt:
                return exact_outcome(comparison, found, started, interrupted=True)
        finally:
            run.session.close()
    return exact_outcome(comparison, found, started)


def _ended(
    run: Run, identity: TestIdentity, measure: Callable[[], Result], said: Callable[[Result], str] = lambda _: ""
) -> Result:
    """The result of `measure`. The record of the test says how the test has ended, and what is `said` of the result."""
    try:
        result = measure()
    except KeyboardInterrupt:
        _end(run, identity, "interrupted")
        raise
    except Exception as error:
        _end(run, identity, "skipped" if isinstance(error, Unavailable) else "failed", str(error))
        raise
    _end(run, identity, "passed", said(result))
    return result


def _end(run: Run, identity: TestIdentity, outcome: Outcome, reason: str = "") -> None:
    """Close the record. Its problems are told, and do not hide the result."""
    ended = run.end_test(identity, outcome, reason)
    for problem in ended.problems:
        run.progress.note(f"podperf: {problem}")
