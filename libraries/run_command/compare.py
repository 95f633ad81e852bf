"""The command `podperf compare`: the variants of a comparison file, before and after.

    python -I -m run_command.compare SCRIPT INSTALL [arguments of `podperf compare`]

SCRIPT is the script `podperf` as the user called it. INSTALL is `no` if the script must not install packages.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from podperf.comparisons import VariantComparison, load_comparison
from podperf.errors import PodperfError
from podperf.nearness import proposed_paths
from podperf.ownership import Owner, hand_over, note_caller
from podperf.printable import printable
from podperf.progress import Progress
from podperf.report.comparison_command import INTERRUPTED, exit_code, write_comparison
from podperf.report.comparison_words import comparison_table
from podperf.run.comparing import compare
from podperf.terminal import columns, wants_colour
from podperf.testbed.known_topology import read_topology
from run_command.arguments import RESULTS, ROOT, TOPOLOGIES
from run_command.safe_results import unsafe_results
from run_command.topologies import boots_a_machine

COMPARISONS = ROOT / "comparisons"
NOT_MEASURED = 1


def main(arguments: Sequence[str]) -> int:
    """Measure, print the table, write the report. Returns the exit code (docs/compare.md)."""
    script, install, *given = arguments
    wanted = _parser(script).parse_args(given)
    for each in (signal.SIGINT, signal.SIGTERM):  # a shell's background job ignores SIGINT, if nobody handles it
        signal.signal(each, signal.default_int_handler)
    try:
        return _compare(wanted, install != "no")
    except PodperfError as error:
        for line in str(error).splitlines():
            _say(f"podperf: {line}")
        return NOT_MEASURED
    except (ValueError, LookupError, TypeError) as error:  # for example a word of a worker where a number belongs
        place = traceback.extract_tb(error.__traceback__)[-1]
        _say(f"podperf: {type(error).__name__}: {error} ({Path(place.filename).name}, line {place.lineno})")
        return NOT_MEASURED
    except KeyboardInterrupt:
        return INTERRUPTED


def _parser(script: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"{Path(script).name} compare",
        description="Measure the variants of a comparison by turns, and compare each with the first one.",
        epilog="Exit codes: 0 no variant is slower, 3 slower, 5 undecided, 1 not measured, 2 a wrong option, 130 "
        "interrupted. docs/compare.md explains the file and the verdicts.",
    )
    parser.add_argument(
        "variants", type=Path, metavar="VARIANTS", help="a comparison file, such as comparisons/gro.yaml"
    )
    parser.add_argument(
        "topology",
        nargs="?",
        type=Path,
        metavar="TOPOLOGY",
        help="the testbed (default: that of the file, or topologies/local.yaml)",
    )
    parser.add_argument(
        "--output", type=Path, metavar="FOLDER", help="where records and report go (default: results/<start time>)"
    )
    return parser


def _compare(wanted: argparse.Namespace, install: bool) -> int:
    if not wanted.variants.exists():
        known = map(str, sorted(COMPARISONS.glob("*.yaml")))
        raise PodperfError(f"there is no comparison {wanted.variants}{proposed_paths(str(wanted.variants), known)}")
    if wanted.topology is not None:
        read_topology(wanted.topology)  # it may bring data planes of other packages, which the variants name
    comparison = load_comparison(wanted.variants)
    topology = wanted.topology or comparison.topology or TOPOLOGIES / "local.yaml"
    if install and any(map(boots_a_machine, {topology, *_own_topologies(comparison)})):
        done = subprocess.run([ROOT / "podperf", "virtual-worker"], check=False)
        if done.returncode:
            return done.returncode
    now = datetime.now()
    results = wanted.output or RESULTS / f"{now:%Y-%m-%dT%H-%M-%S}.{now.microsecond // 1000:03}"
    is_new = not results.exists()  # an existing folder may have files of others
    if sentence := unsafe_results({"outputdir": str(results)}, ("outputdir",)):
        raise PodperfError(sentence.replace("--outputdir", "--output"))
    caller = Owner.caller(os.environ) if is_new else None
    if caller is not None:
        note_caller(results, caller)
    try:
        result = compare(comparison, topology, results, Progress())
        print(comparison_table(result, width=columns(sys.stdout), colour=wants_colour(sys.stdout)), end="\n\n")
        print(printable(str(write_comparison(result, results))), flush=True)
        return exit_code(result)
    finally:
        if caller is not None:
            hand_over(results, caller)
        with suppress(OSError):  # a folder with results is not empty
            results.rmdir()


def _own_topologies(comparison: VariantComparison) -> list[Path]:
    return [each.topology for each in comparison.variants if each.topology is not None]


def _say(text: str) -> None:
    print(printable(text), file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
