"""Allocations of pods: the kernel keeps the limits, here, in containers and over SSH, and nothing of them stays."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from chains import local_testbed, need, send
from podperf.allocation import PodAllocation, PodLimits
from podperf.cpu_plan import plan_cpus
from podperf.hosts.local import LocalHost
from podperf.kernel.control_groups import missing
from podperf.model import Chain, FrameSize, Placement
from podperf.pods import POD_RUNTIMES
from podperf.pods.forwarders.testpmd import Testpmd
from podperf.records import schema_errors
from podperf.testbed.run_lock import RunLock
from podperf.testbed.scenarios import Node, Scenario
from podperf.testbed.system_under_test import SystemUnderTest
from podperf.topology import PodSettings
from robot_run import ROOT, Robot, podperf

LIMITS = PodLimits(cpu=0.25, memory=192)
SMALL = FrameSize.parse(64)
CHAIN = Chain("af-xdp", 1)
MISSING = missing(LocalHost(), LIMITS)
LIMITED = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))


def groups() -> list[Path]:
    """The control groups that runs have made on this machine."""
    return [path for root in Path("/sys/fs").glob("cgroup*") for path in root.glob("**/podperf-*") if path.is_dir()]


def both_queues_forward(sut: SystemUnderTest) -> None:
    """Check that frames have crossed both queues of both ports of the only pod."""
    (application,) = sut.data_planes[0].applications
    assert isinstance(application, Testpmd)
    said = "\n".join(application.ask("show fwd stats all"))
    for port in (0, 1):
        for queue in (0, 1):
            found = re.search(rf"RX Port= {port}/Queue= {queue} .*\n *RX-packets: *(\d+)", said)
            assert found and int(found[1]), said


@LIMITED
@pytest.mark.usefixtures("machine_as_before")
@pytest.mark.parametrize("runtime", ["namespaces", "runc"])
def test_the_kernel_keeps_the_limits_of_a_pod(runtime: str) -> None:
    need("af-xdp")
    if reason := POD_RUNTIMES[runtime].unavailable(LocalHost()):
        pytest.skip(reason)
    scenario = Scenario("limited", Node.ANY, (Node.ANY,), allocation=PodAllocation(LIMITS))
    with RunLock():
        testbed = local_testbed()
        testbed.topology = replace(testbed.topology, pods=PodSettings(runtime))
        placed = testbed.place_scenario(scenario, CHAIN)
        with testbed.build_placed(placed, CHAIN, SMALL) as sut:
            deadline = time.monotonic() + 20
            while not (told := sut.describe()["limits"]["pod1"])["throttled_periods"]:
                assert time.monotonic() < deadline, told
            assert (told["cpu"], told["memory_mib"]) == (0.25, 192)
            assert told["memory_peak_mib"] is None or 1 < told["memory_peak_mib"] < 192
            assert told["processes"] >= 1
            assert groups()
    assert groups() == []


@LIMITED
@pytest.mark.usefixtures("machine_as_before")
def test_a_killed_run_leaves_no_group(tmp_path: Path) -> None:
    need("af-xdp")
    robot = Robot(tmp_path, "--test", "AF_XDP, 100, 50 and 25 % of a CPU", str(ROOT / "tests"))
    robot.wait_until(groups, "control group")
    robot.kill()
    podperf("clean")
    assert groups() == []


@pytest.mark.usefixtures("machine_as_before")
def test_a_pod_polls_two_queues_and_the_switch_divides_the_flows() -> None:
    """The second polling CPU is the tester's, because two CPUs are enough to see that both queues forward."""
    need("ovs-dpdk")
    with RunLock():
        testbed = local_testbed()
        tester, *others = sorted({*testbed.tester_cpus, *testbed.workers[0].placement.sut})
        if not others:
            pytest.skip("this machine has one CPU")
        usual = plan_cpus(Placement((tester,), (others[0],)), 1, with_switch=True)
        cpus = replace(usual, allocation=PodAllocation(cpus=2), further=((tester,),))
        with testbed.build(Chain("ovs-dpdk", 1), SMALL, cpus=[cpus]) as sut:
            send(sut)
            both_queues_forward(sut)


@pytest.mark.slow
@LIMITED
@pytest.mark.usefixtures("machine_as_before")
def test_a_pod_with_a_quarter_of_a_cpu_forwards_less(tmp_path: Path) -> None:
    need("af-xdp")
    robot = Robot(tmp_path, "--test", "AF_XDP, 100, 50 and 25 % of a CPU", str(ROOT / "tests"), whole_calibration=True)
    (record,) = robot.measured()
    assert schema_errors(record) == []
    compared = record["methods"]["comparison"]
    quarter, whole = "25 % of a CPU", "100 % of a CPU"
    assert median(compared["rates"][quarter]) < median(compared["rates"][whole])
    taken = [each["pod1"] for each in compared["limits_of_pods"][quarter]]
    assert len(taken) == len(compared["rates"][quarter])
    assert all(each["cpu"] == 0.25 and each["throttled_seconds"] > 0 for each in taken)
