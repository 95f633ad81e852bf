"""The comparison of the command `podperf compare`: takes the machines, measures the variants, gives them back."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from podperf.comparisons import VariantComparison
from podperf.comparisons.result import ComparisonOutcome, VariantResult, exact_outcome
from podperf.errors import PodperfError, Unavailable
from podperf.progress import Progress
from podperf.records import Outcome
from podperf.run.identity import TestIdentity
from podperf.run.run import Run
from podperf.run.session import Session
from podperf.testbed.known_topology import read_topology
from podperf.topology import Topology

SUITE, TAG = "podperf compare", "comparison"


def compare(comparison: VariantComparison, topology: Path, results: Path, progress: Progress) -> ComparisonOutcome:
    """Measure a comparison on the testbed of a topology file. The records go into the folder `results`.

    An interruption by the user (KeyboardInterrupt) gives the result of the rounds so far. Unavailable, or another
    PodperfError, if nothing was measured.
    """
    paths = {each.name: each.topology or topology for each in comparison.variants}
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
            result = test.measure()
        except KeyboardInterrupt:
            _end(run, identity, "interrupted")
            return test.outcome(interrupted=True)
        except Exception as error:
            _end_badly(run, identity, error)
            raise
        _end(run, identity, "passed", result.sentence)
        return result
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
                found.append(test.figure_of(variant, alone=True))
            except KeyboardInterrupt:
                _end(run, identity, "interrupted")
                return exact_outcome(comparison, found, started, interrupted=True)
            except Exception as error:
                _end_badly(run, identity, error)
                raise
            _end(run, identity, "passed")
        finally:
            run.session.close()
    return exact_outcome(comparison, found, started)


def _end_badly(run: Run, identity: TestIdentity, error: Exception) -> None:
    _end(run, identity, "skipped" if isinstance(error, Unavailable) else "failed", str(error))


def _end(run: Run, identity: TestIdentity, outcome: Outcome, reason: str = "") -> None:
    """Close the record. Its problems are told, and do not hide the result."""
    ended = run.end_test(identity, outcome, reason)
    for problem in ended.problems:
        run.progress.note(f"podperf: {problem}")
