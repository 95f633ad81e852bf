"""The cost of a chain on a counted machine: built several times, beside the bare path of the same boot."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from podperf.counted_machine.bridges import probed
from podperf.counted_machine.profile import ChainProfiler, Profiler
from podperf.dataplanes.wire import Wire
from podperf.errors import TrialNotDelivered, Unavailable
from podperf.methods.cost import AllBuilds, Cost, CostResult, StandingChain, builds_of_json, json_of_builds
from podperf.methods.functions import Profile
from podperf.model import AddressedTraffic, Chain, Ends, Loop, TrafficProfile, Trial, TrialResult
from podperf.run.test import TestInProgress
from podperf.testbed.system_under_test import SystemUnderTest
from podperf.testbed.testbed import Testbed
from podperf.testers.base import UNPACED

ATTEMPTS = 3  # of a trial
MOST_SECONDS = 10.0  # of the machine's own time, for a trial

Standing = AbstractContextManager[SystemUnderTest]


class BarePaths:
    """The cost of the bare path with each kind of traffic, on this machine.

    An earlier run may have measured it, on a machine that went on from the same snapshot.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[TrafficProfile, Ends], AllBuilds] = {}

    def _of(
        self, ends: Ends, test: TestInProgress, testbed: Testbed, traffic: TrafficProfile, profiler: Profiler
    ) -> AllBuilds:
        if (traffic, ends) not in self._found:
            measure = partial(_bare_path, ends, test, testbed, traffic, profiler)
            self._found[traffic, ends] = builds_of_json(profiler.once(_name(traffic, ends), measure))
        return self._found[traffic, ends]

    def has(self, chain: Chain, traffic: TrafficProfile, profiler: Profiler) -> bool:
        """Whether `beside` needs no measurement."""
        known = (traffic, chain.ends) in self._found or profiler.has(_name(traffic, chain.ends))
        return chain.data_plane == Wire.name or known

    def beside(
        self, chain: Chain, test: TestInProgress, testbed: Testbed, traffic: TrafficProfile, profiler: Profiler
    ) -> AllBuilds:
        """The bare path that is taken off the cost of this chain. Nothing is taken off the bare path itself."""
        return {} if chain.data_plane == Wire.name else self._of(chain.ends, test, testbed, traffic, profiler)


def _name(traffic: TrafficProfile, ends: Ends) -> str:
    """The bare path's name beside a snapshot."""
    return f"bare path {ends}, {traffic}"


def _bare_path(ends: Ends, test: TestInProgress, testbed: Testbed, traffic: TrafficProfile, profiler: Profiler) -> str:
    """Measure with no chain beside: programs of a chain would lengthen its path."""
    test.take_down()
    build = partial(testbed.bare_path, traffic.frame, ends=ends)
    found, _ = Cost.of(traffic).run(partial(closed_loops, test, build, traffic, "bare-path", profiler))
    return json_of_builds(found)


def measure_cost(
    test: TestInProgress,
    sut: SystemUnderTest,
    testbed: Testbed,
    traffic: TrafficProfile,
    bare_paths: BarePaths,
    profiler: Profiler | None,
) -> CostResult:
    """Measure the chain of a test, which stands in `test.undo`. None of its builds is left.

    `profiler` is that of the counted machine. Unavailable elsewhere, for a mix of frame sizes, and if own processes of
    the chain make frames wait. TrialNotDelivered where frames are lost, or overtake the sender.
    """
    if profiler is None:
        raise Unavailable("cost is measured on a counted machine only (topologies/counted.yaml)")
    if len(traffic.frame.sequence) > 1:
        raise Unavailable(f"cost is that of frames of one size: a window of {Loop.WINDOW} frames has no whole mixes")
    build: Callable[[], Standing] = partial(
        testbed.build, sut.chain, traffic.frame, traffic.directions, headers=traffic.headers
    )
    if bare_paths.has(sut.chain, traffic, profiler):  # so the chain of the test can stay until it is measured
        build = _first_the_standing_one(test, sut, build)
    bare_path = bare_paths.beside(sut.chain, test, testbed, traffic, profiler)
    try:
        builds, missing = Cost.of(traffic).run(partial(closed_loops, test, build, traffic, Cost.name, profiler))
    except TrialNotDelivered as error:
        if not any(data_plane.parts for data_plane in sut.data_planes):
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
    traffic: AddressedTraffic
    phase: str
    profiler: ChainProfiler

    def loop(self, loop: Loop) -> TrialResult:
        why: str | None = None
        for _ in range(ATTEMPTS):
            began = time.time()
            result = self.sut.tester.measure(Trial(self.traffic, UNPACED, MOST_SECONDS, loop))
            result = replace(result, started=began)  # in the machine, each run begins on the same day of January
            self.test.trial_ended(self.sut, self.phase, result)
            if result.invalid is None:
                return result
            why = result.invalid
        raise TrialNotDelivered(f"with {loop.burst} frames in flight this chain is not judged: {why}")

    def profile(self, windows: Sequence[int]) -> Profile:
        return self.profiler.profile(windows)
