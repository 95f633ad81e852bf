"""The cost of a chain on a counted machine: built several times, beside the bare path of the same boot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from podperf.dataplanes.wire import Wire
from podperf.errors import TrialNotDelivered, Unavailable
from podperf.methods.cost import AllBuilds, Cost, CostResult, LoopSource
from podperf.model import Loop, TrafficProfile, Trial, TrialResult
from podperf.run.limits import TrafficKind, kind_of
from podperf.run.test_in_progress import TestInProgress
from podperf.testbed.system_under_test import SystemUnderTest, addressed
from podperf.testbed.testbed import LiveTestbed
from podperf.testers.base import UNPACED

ATTEMPTS = 3  # of a trial
MOST_SECONDS = 10.0  # of the machine's own time, for a trial

Standing = AbstractContextManager[SystemUnderTest]


class BarePaths:
    """The cost of the bare path with each kind of traffic, in this boot of the machine."""

    def __init__(self) -> None:
        self._found: dict[TrafficKind, AllBuilds] = {}

    def of(self, test: TestInProgress, testbed: LiveTestbed, traffic: TrafficProfile) -> AllBuilds:
        """Measured when a test first needs it, with no chain beside: programs of a chain would lengthen its path."""
        kind = kind_of(traffic)
        if kind not in self._found:
            test.take_down()
            build = partial(testbed.bare_path, traffic.frame)
            self._found[kind], _ = Cost().run(partial(_standing, test, build, traffic, "bare-path"))
        return self._found[kind]


def measure_cost(
    test: TestInProgress, sut: SystemUnderTest, testbed: LiveTestbed, traffic: TrafficProfile, bare_paths: BarePaths
) -> CostResult:
    """Measure the chain of a test, which stands in `test.undo`. None of its builds is left.

    Unavailable for a mix of frame sizes. TrialNotDelivered where frames are lost, or overtake the sender.
    """
    if not testbed.topology.counts_instructions:
        raise Unavailable("cost is measured on a counted machine only (topologies/counted.yaml)")
    if len(traffic.frame.sequence) > 1:
        raise Unavailable(f"cost is that of frames of one size: a window of {Loop.WINDOW} frames has no whole mixes")
    bare_path = {} if sut.chain.data_plane == Wire.name else bare_paths.of(test, testbed, traffic)
    test.take_down()
    build = partial(testbed.build, sut.chain, traffic.frame, traffic.directions)
    builds, missing = Cost().run(partial(_standing, test, build, traffic, Cost.name))
    result = CostResult(builds, bare_path, missing)
    test.record.methods = {**test.record.methods, Cost.name: result.as_record()}
    test.keep(result.metrics)
    return result


@contextmanager
def _standing(
    test: TestInProgress, build: Callable[[], Standing], traffic: TrafficProfile, phase: str
) -> Iterator[LoopSource]:
    with build() as sut:
        there = addressed(traffic, sut)
        sut.probe(there)
        yield partial(_valid, test, sut, there, phase)


def _valid(test: TestInProgress, sut: SystemUnderTest, traffic: TrafficProfile, phase: str, loop: Loop) -> TrialResult:
    """A trial without a lost or late frame."""
    why: str | None = None
    for _ in range(ATTEMPTS):
        result = sut.tester.measure(Trial(traffic, UNPACED, MOST_SECONDS, loop))
        test.trial_ended(sut, phase, result)
        if result.invalid is None:
            return result
        why = result.invalid
    raise TrialNotDelivered(f"with {loop.burst} frames in flight this chain is not judged: {why}")
