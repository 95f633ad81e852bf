"""Isolation levels beside a neighbour: what the kernel says of pods and neighbour, and that a kill leaves none."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from chains import local_testbed, need
from podperf.allocation import PodLimits
from podperf.experiments.claims import isolation
from podperf.hosts.base import Host
from podperf.hosts.local import LocalHost
from podperf.kernel.control_groups import missing
from podperf.kernel.threads import scheduling, threads_named
from podperf.kubernetes.run_namespace import until
from podperf.model import Chain
from podperf.records import schema_errors
from podperf.testbed.neighbour import NeighbourKind, NeighbourPlan, start_neighbour
from podperf.testbed.run_lock import RunLock
from podperf.testbed.scenarios import CpuIsolation
from robot_run import ROOT, Robot, podperf

CLAIM = isolation("af-xdp", "BUSY", "EXCLUSIVE", "NONE")
RUNNING = " ".join(NeighbourPlan(NeighbourKind.BUSY, (0,)).command)
LIMITS = PodLimits(memory=64)
pytestmark = pytest.mark.usefixtures("machine_as_before")


def neighbours() -> list[str]:
    """The processes of all neighbours on this machine."""
    return LocalHost().ask("pgrep", "--full", "--exact", RUNNING, check=False).stdout.split()


@pytest.mark.parametrize("place", [1, 3], ids=["exclusive", "none"])
def test_pods_and_neighbour_are_where_the_level_puts_them(place: int) -> None:
    need("af-xdp")
    host, contender = LocalHost(), CLAIM.contenders[place]
    assert contender.placement.scenario is not None
    with RunLock():
        testbed = local_testbed()
        placed = testbed.place_scenario(contender.placement.scenario, Chain("af-xdp", 1))
        with testbed.build_placed(placed, Chain("af-xdp", 1), contender.frame) as sut:
            assert placed.neighbour is not None and sut.neighbour is not None
            assert len(neighbours()) == len(placed.neighbour.cpus)
            described = sut.describe()
            beside = described["neighbour"]
            assert beside["scheduling"] == [f"SCHED_OTHER, nice {os.nice(0)}"]
            (cpu,) = {poller["cpu"] for poller in described["pollers"]}
            (pollers,) = described["pollers"]
            reachable = str(cpu) in beside["held_to"][0].replace("-", ",").split(",")
            assert reachable == (contender.placement.scenario.isolation is CpuIsolation.NONE)
            receiving = [each for name in ("net1", "net2") for each in threads_named(host, f"napi/{name}-")]
            if contender.placement.scenario.precedence:
                assert "turns" in pollers["shared"]
            else:
                assert {each.split(",")[0] for each in scheduling(host, receiving)} == {"SCHED_OTHER"}
                assert "scheduler divides" in pollers["shared"]
                assert {each.split(",")[0] for each in pollers["scheduling"]} == {"SCHED_OTHER"}
    assert neighbours() == []


def test_a_chain_under_load_is_an_ordinary_neighbour_and_forwards() -> None:
    """A limit of memory holds for it, too."""
    host, undo = LocalHost(), ExitStack()
    plan = NeighbourPlan(NeighbourKind.CHAIN, (max(os.sched_getaffinity(0)),), LIMITS)
    if reason := missing(host, LIMITS):
        pytest.skip(reason)
    with RunLock(), undo:
        neighbour = start_neighbour(host, plan, undo)
        told = neighbour.describe()
        assert told["held_to"] == [str(plan.cpus[0])]
        assert told["scheduling"] == [f"SCHED_OTHER, nice {os.nice(0)}"]
        assert (told["limits"]["memory_mib"], told["limits"]["processes"]) == (64, 1)
        neighbour.check()
        deadline, before = time.monotonic() + 20, forwarded(host)
        while forwarded(host) == before or neighbour.cpus_taken() < 0.05:
            assert time.monotonic() < deadline, before


def forwarded(host: Host) -> str:
    """The counters of the pod of the neighbour's first chain."""
    return host.ask("ip", "-n", "podperf-neighbour1-pod1", "-stats", "link", "show", "dev", "net2").stdout


@pytest.mark.slow
def test_an_isolated_pod_forwards_more_beside_a_busy_neighbour(tmp_path: Path) -> None:
    need("af-xdp")
    chosen = ("AF_XDP, exclusive over none, busy", "AF_XDP, exclusive over shared over none, busy")
    tests = [word for name in chosen for word in ("--test", name)]
    robot = Robot(tmp_path, *tests, str(ROOT / "tests"), whole_calibration=True)
    found = {each["test"]["name"]: each for each in robot.measured()}
    record = found[chosen[0]]
    assert schema_errors(record) == []
    (finding,) = record["findings"]
    noisy = "the machine was noisy" in finding["detail"]  # other work is a neighbour, too, on CPUs of its own choice
    assert finding["verdict"] == "confirmed" or noisy, finding["detail"]
    assert "their figures: exclusive 39.2, none 11.5 Gbit/s" in finding["detail"]
    compared = record["methods"]["comparison"]
    names = [contender.name for contender in CLAIM.contenders]
    assert list(compared["rates"]) == names
    assert set(compared["cpus_of_neighbours"]) == {names[1], names[3]}
    rounds = len(compared["rates"][names[0]])
    assert [len(cpus_of_neighbour) for cpus_of_neighbour in compared["cpus_of_neighbours"].values()] == [rounds, rounds]
    assert min(compared["cpus_of_neighbours"][names[3]]) > 0.05, "it competed in every round"
    if (second := found[chosen[1]])["outcome"] == "skipped":
        assert "wants a CPU" in second["reason"]
        assert not second["trials"]


def test_a_killed_run_leaves_no_neighbour(tmp_path: Path) -> None:
    need("af-xdp")
    robot = Robot(tmp_path, "--test", "AF_XDP, exclusive over none, busy", str(ROOT / "tests"))
    robot.wait_until(neighbours, "neighbour")
    robot.kill()
    assert until(lambda: not neighbours(), 30)
    podperf("clean")
