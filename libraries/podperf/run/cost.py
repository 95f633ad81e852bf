"""The cost of a chain on a counted machine: built several times, beside the bare path of the same boot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial

from podperf.counted_machine.bridges import probed
from podperf.counted_machine.profile import ChainProfiler, Profiler
from podperf.dataplanes.wire import Wire
from podperf.errors import TrialNotDelivered, Unavailable
from podperf.methods.cost import AllBuilds, Cost, CostResult, StandingChain
from podperf.methods.functions import Functions
from podperf.model import Chain, Loop, TrafficProfile, Trial, TrialResult
from podperf.run.limits import TrafficKind, kind_of
from podperf.run.test_in_progress import TestInProgress
from podperf.testbed.system_under_test import SystemUnderTest
from podperf.testbed.testbed import LiveTestbed
from podperf.testers.base import UNPACED

ATTEMPTS = 3  # of a trial
MOST_SECONDS = 10.0  # of the machine's own time, for a trial

Standing = AbstractContextManager[SystemUnderTest]


class BarePaths:
    """The cost of the bare path with each kind of traffic, in this boot of the machine."""

    def __init__(self) -> None:
        self._found: dict[TrafficKind, AllBuilds] = {}

    def of(self, test: TestInProgress, testbed: LiveTestbed, traffic: TrafficProfile, profiler: Profiler) -> AllBuilds:
        """Measured when a test first needs it, with no chain beside: programs of a chain would lengthen its path."""
        kind = kind_of(traffic)
        if kind not in self._found:
            test.take_down()
            build = partial(testbed.bare_path, traffic.frame)
            cost, phase = Cost.of(traffic), "bare-path"
            self._found[kind], _ = cost.run(partial(closed_loops, test, build, traffic, phase, profiler))
        return self._found[kind]

    def has(self, chain: Chain, traffic: TrafficProfile) -> bool:
        """Whether `beside` needs no measurement."""
        return chain.data_plane == Wire.name or kind_of(traffic) in self._found

    def beside(
        self, chain: Chain, test: TestInProgress, testbed: LiveTestbed, traffic: TrafficProfile, profiler: Profiler
    ) -> AllBuilds:
        """The bare path that is taken off the cost of this chain. Nothing is taken off the bare path itself."""
        return {} if chain.data_plane == Wire.name else self.of(test, testbed, traffic, profiler)


def measure_cost(
    test: TestInProgress,
    sut: SystemUnderTest,
    testbed: LiveTestbed,
    traffic: TrafficProfile,
    bare_paths: BarePaths,
    profiler: Profiler | None,
) -> CostResult:
    """Measure the chain of a test, which stands in `test.undo`. None of its builds is left.

    `profiler` is that of the counted machine, and None elsewhere. Unavailable elsewhere, and for a mix of frame sizes.
    TrialNotDelivered where frames are lost, or overtake the sender. Unavailable then if the chain has own processes.
    """
    if profiler is None:
        raise Unavailable("cost is measured on a counted machine only (topologies/counted.yaml)")
    if len(traffic.frame.sequence) > 1:
        raise Unavailable(f"cost is that of frames of one size: a window of {Loop.WINDOW} frames has no whole mixes")
    build: Callable[[], Standing] = partial(testbed.build, sut.chain, traffic.frame, traffic.directions)
    if bare_paths.has(sut.chain, traffic):  # so the chain of the test can stay until it is measured
        build = _first_the_standing_one(test, sut, build)
    bare_path = bare_paths.beside(sut.chain, test, testbed, traffic, profiler)
    try:
        builds, missing = Cost.of(traffic).run(partial(closed_loops, test, build, traffic, Cost.name, profiler))
    except TrialNotDelivered as error:
        if not any(each.parts for each in sut.data_planes):
            raise
        why = "its processes share the only CPU with the tester, so frames wait for them"
        raise Unavailable(f"{error}; {why}") from error
    result = CostResult.beside(bare_path, builds, missing)
    test.record.methods = {**test.record.methods, Cost.name: result.as_record()}
    test.keep(result.metrics)
    return result


def _first_the_standing_one(
    test: TestInProgress, sut: SystemUnderTest, build: Callable[[], Standing]
) -> Callable[[], Standing]:
    """The first build is the chain that stands in `test.undo`. All others are new."""
    standing = [sut]

    @contextmanager
    def builds() -> Iterator[SystemUnderTest]:
        if standing:
            try:
                yield standing.pop()
            finally:
                test.take_down()
        else:
            with build() as again:
                yield again

    return builds


@contextmanager
def closed_loops(
    test: TestInProgress, build: Callable[[], Standing], traffic: TrafficProfile, phase: str, profiler: Profiler
) -> Iterator[StandingChain]:
    """Closed loops across what `build` sets up, while the context lasts."""
    with build() as sut:
        yield _Chain(test, sut, probed(sut, traffic), phase, ChainProfiler(profiler))


@dataclass(frozen=True)
class _Chain:
    """A build of the chain of a test. Its trials go into the test's record."""

    test: TestInProgress
    sut: SystemUnderTest
    traffic: TrafficProfile
    phase: str
    profiler: ChainProfiler

    def loop(self, loop: Loop) -> TrialResult:
        why: str | None = None
        for _ in range(ATTEMPTS):
            result = self.sut.tester.measure(Trial(self.traffic, UNPACED, MOST_SECONDS, loop))
            self.test.trial_ended(self.sut, self.phase, result)
            if result.invalid is None:
                return result
            why = result.invalid
        raise TrialNotDelivered(f"with {loop.burst} frames in flight this chain is not judged: {why}")

    def functions(self, windows: Sequence[int]) -> Functions:
        return self.profiler.functions(windows)
