"""CPU time a frame, read around real trials: it is that of the threads with the work, and of nobody else."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from _pytest.mark.structures import ParameterSet

from attempts import first
from chains import local_testbed, need
from podperf.dataplanes.openvswitch import OpenVSwitch, parse_pmd_cycles
from podperf.hosts.local import LocalHost
from podperf.kernel.thread_time import Cycles, run_times
from podperf.methods.cpu_time import TRAIN
from podperf.model import Chain, CpuTime, FrameSize, TrafficProfile, Trial, TrialResult
from podperf.pods.forwarders.base import Application
from podperf.testbed.system_under_test import SystemUnderTest, addressed
from podperf.testbed.testbed import Testbed
from podperf.testers.base import UNPACED

FRAME = FrameSize.parse(64)
LOAD = 20_000.0  # frames/s, which every chain here carries beside a neighbour: 50 us for each frame
TRIALS, TRIAL = 7, 0.25  # of a figure; seconds each
RECEIVER = "receive thread of w-left"


@pytest.fixture
def testbed() -> Testbed:
    return local_testbed()


def slow(*names: str) -> list[ParameterSet]:
    """Data planes that are looked at by `podperf test --all` only."""
    return [pytest.param(name, marks=pytest.mark.slow) for name in names]


def timed(
    sut: SystemUnderTest, load: float = LOAD, train: int = 1, seconds: float = TRIAL
) -> tuple[TrialResult, CpuTime]:
    """One trial, and the CPU time that the system under test took for it."""
    clock = sut.cpu_clock()
    assert clock is not None
    clock.start()
    result = sut.tester.measure(Trial(addressed(TrafficProfile(FRAME), sut), load, seconds, train=train))
    return result, clock.stop()


def figure(testbed: Testbed, chain: Chain) -> float:
    """Nanoseconds a frame, the median of some trials.

    Frames leave in trains, as those of the metric do. One by one, the figure would be that of waking up a thread.
    """
    with testbed.build(chain, FRAME) as sut:
        return median(sut)


def median(sut: SystemUnderTest) -> float:
    sut.probe(addressed(TrafficProfile(FRAME), sut))
    found = []
    for _ in range(TRIALS):
        result, taken = timed(sut, train=TRAIN)
        assert taken.total is not None, taken
        found.append(taken.total / result.received)
    return statistics.median(found)


@pytest.mark.parametrize("name", ["linux-bridge", *slow("routed", "tc-redirect", "xdp-redirect")])
def test_a_second_pod_takes_more_cpu_time(testbed: Testbed, name: str) -> None:
    need(name)
    ratios: list[float] = []
    for _ in range(9):  # by turns, until most of them agree, since the machine may be slow or fast for some seconds
        one, two = figure(testbed, Chain(name, 1)), figure(testbed, Chain(name, 2))
        ratios.append(two / one)
        if len(ratios) > 2 and statistics.median(ratios) > 1.1:
            return
    pytest.fail(f"a second pod took these times the CPU time of the first: {ratios}")


@pytest.mark.parametrize("name", ["linux-bridge", *slow("docker", "xdp-redirect")])
def test_under_overload_the_receive_thread_fills_its_cpu(testbed: Testbed, name: str) -> None:
    """So the work for a frame is in this thread. Elsewhere it would be missing here."""
    need(name)
    with testbed.build(Chain(name, 1), FRAME) as sut:
        sut.probe(addressed(TrafficProfile(FRAME), sut))

        def share() -> float:
            result, taken = timed(sut, UNPACED, seconds=0.1)
            overloaded = result.loss_ratio > 0.2 and taken.parts[RECEIVER] > 0.9 * sum(taken.parts.values())
            return taken.parts[RECEIVER] / 1e9 / result.duration if overloaded else 0.0

        first(lambda found: 0.8 < found < 1.2, share)


def test_a_busy_neighbour_is_not_counted(testbed: Testbed) -> None:
    """It has the rest of the CPU: what the frames leave of 50 us each."""
    with testbed.build(Chain("linux-bridge", 1), FRAME) as sut:
        alone = median(sut)
        with neighbour(min(testbed.workers[0].placement.sut)) as process:
            before = run_times(LocalHost(), [process])[process].nanoseconds
            beside = median(sut)
            taken = run_times(LocalHost(), [process])[process].nanoseconds - before
    of_neighbour = taken / (TRIALS * TRIAL * LOAD)
    assert of_neighbour > 2 * alone, "the neighbour was not busy enough to be told from the frames"
    assert beside < alone + of_neighbour / 2


@contextmanager
def neighbour(cpu: int) -> Iterator[int]:
    """The number of a process that takes all that this CPU leaves to ordinary processes."""
    process = LocalHost().spawn("sh", "-c", "echo at work; while :; do :; done", cpus=[cpu])
    try:
        assert process.receive(10) == "at work"
        yield process.pid
    finally:
        process.stop()


@pytest.mark.parametrize(("name", "pods", "polling"), [("af-xdp", 1, {"pod1"}), ("memif", 2, {"pod1", "pod2"})])
def test_pods_that_poll_on_a_shared_cpu_are_named(testbed: Testbed, name: str, pods: int, polling: set[str]) -> None:
    """Their CPU also has the receive threads, so that the cycles of testpmd tell nothing."""
    need(name)
    with testbed.build(Chain(name, pods), FRAME) as sut:
        sut.probe(addressed(TrafficProfile(FRAME), sut))
        _, taken = timed(sut)
    assert set(taken.polling) == polling and taken.total is None and not taken.unread
    assert taken.parts["receive thread of net1"] > 0


@pytest.mark.distribution
def test_testpmd_tells_its_busy_seconds(testbed: Testbed) -> None:
    """Polling without frames is not busy.

    Two loads are not compared: the pods share a CPU here, and a turn of the other pod counts as busy if a burst waits.
    """
    need("memif")
    with testbed.build(Chain("memif", 2), FRAME) as sut:
        sut.probe(addressed(TrafficProfile(FRAME), sut))
        application = sut.data_planes[0].applications[0]
        idle = first(lambda each: not each.busy, lambda: spent(application, lambda: told(application)))
        trial = Trial(addressed(TrafficProfile(FRAME), sut), LOAD, 0.4)
        loaded = first(
            lambda each: each.busy < each.passed, lambda: spent(application, lambda: sut.tester.measure(trial))
        )
    assert idle.passed > 0 and loaded.busy > 0


def spent(application: Application, work: Callable[[], object]) -> Cycles:
    """The cycles of the application's threads during this work."""
    before = told(application)
    work()
    after = told(application)
    return Cycles(after.busy - before.busy, after.passed - before.passed)


def told(application: Application) -> Cycles:
    assert application.cycles is not None
    cycles = application.cycles()
    assert cycles is not None
    return cycles


def test_the_switch_of_ovs_netdev_sleeps_and_is_counted(testbed: Testbed) -> None:
    need("ovs-netdev")
    with testbed.build(Chain("ovs-netdev", 1), FRAME) as sut:
        sut.probe(addressed(TrafficProfile(FRAME), sut))
        times = [timed(sut, 5_000)[1] for _ in range(5)]
    assert all(time.total is not None for time in times)
    switch, receiver = (statistics.median(time.parts[name] for time in times) for name in ("ovs-vswitchd", RECEIVER))
    assert switch > receiver > 0


def test_pmds_of_open_vswitch_tell_their_cycles(testbed: Testbed) -> None:
    need("ovs-afxdp")
    with testbed.build(Chain("ovs-afxdp", 1), FRAME) as sut:
        sut.probe(addressed(TrafficProfile(FRAME), sut))
        _, taken = timed(sut)
        switch = sut.data_planes[0].parts[0]
        assert isinstance(switch, OpenVSwitch)
        cycles = parse_pmd_cycles(switch.appctl("dpif-netdev/pmd-stats-show"))
    assert cycles is not None and 0 < cycles.busy < cycles.passed
    assert taken.polling == ("PMDs of ovs-vswitchd",), "they share their CPU with the receive threads"
