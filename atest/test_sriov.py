"""SR-IOV for real, on the virtual worker: frames cross virtual functions, and its ports are as before, come what may.

Its machine boots once for all of these, which takes a minute; they run only with PODPERF_VIRTUAL=1.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import pytest

from chains import send
from podperf.cleanup import put_back
from podperf.dataplanes import DATA_PLANES
from podperf.hosts.base import Host
from podperf.hosts.local import LocalHost
from podperf.kernel.cpus import read_cpus
from podperf.model import Chain, FrameSize, VirtualFunctionSettings
from podperf.testbed.placement import nic_node, place
from podperf.testbed.run_lock import RunLock
from podperf.testbed.testbed import Testbed
from podperf.testbed.worker_machine import worker_machine
from podperf.topology import Topology, load_topology
from podperf.virtual_worker.boot import boot, unavailable
from robot_run import ROOT

pytestmark = [
    pytest.mark.skipif(os.environ.get("PODPERF_VIRTUAL") != "1", reason="takes minutes: only with PODPERF_VIRTUAL=1"),
    pytest.mark.usefixtures("ports_as_before"),
]
UP_TIMEOUT = 180  # seconds

# One line for each device, interface, namespace and count of free hugepages that a set-up may touch.
_STATE = """
for each in /sys/bus/pci/devices/*; do echo "$each $(readlink $each/driver) $(cat $each/driver_override)"; done
grep -H . /sys/bus/pci/devices/*/sriov_numvfs
grep -H . /sys/devices/system/node/node*/hugepages/*/*_hugepages
ip -brief link | sed 's/@.*//'
ip netns; ls /run /run/podperf /dev/vfio 2>/dev/null || :
"""


@dataclass(frozen=True)
class Lab:
    """The virtual worker, seen as a worker in a lab is, and a testbed on it."""

    topology: Topology
    worker: Host

    @property
    def testbed(self) -> Testbed:
        """Its testbed, placed as a run would place it."""
        node = nic_node(self.worker, self.topology.worker)
        placement = place(self.topology, read_cpus(LocalHost()), read_cpus(self.worker), node)
        return Testbed(self.topology, placement, LocalHost(), self.worker)

    def with_functions(self, settings: VirtualFunctionSettings) -> Lab:
        """The same with other wishes for virtual functions."""
        return replace(self, topology=replace(self.topology, worker=replace(self.topology.worker, sriov=settings)))


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    if reason := unavailable(LocalHost()):
        pytest.skip(reason)
    with RunLock(), ExitStack() as undo:
        topology = boot(LocalHost(), print, undo).as_lab(load_topology(ROOT / "topologies/virtual.yaml", DATA_PLANES))
        yield Lab(topology, worker_machine(topology.worker, LocalHost(), undo))


@pytest.fixture
def ports_as_before(lab: Lab) -> Iterator[None]:
    before = lab.worker.run("sh", "-c", _STATE).stdout
    yield
    assert lab.worker.run("sh", "-c", _STATE).stdout == before


def forward(lab: Lab, chain: Chain, size: str = "64") -> dict[str, Any]:
    with lab.testbed.build(chain, FrameSize.parse(size)) as sut:
        send(sut, size)
        return dict(sut.data_plane.describe())


@pytest.mark.parametrize("forwarder", ["testpmd-mac", "kernel"])
@pytest.mark.parametrize("pods", [1, 2])
def test_frames_cross_virtual_functions(lab: Lab, pods: int, forwarder: str) -> None:
    description = forward(lab, Chain("sriov", pods, forwarder))
    functions = description["virtual_functions"]
    assert len(functions) == 2 * pods
    driver = "igbvf" if forwarder == "kernel" else "vfio-pci"
    assert {each["driver"] for each in functions} == {driver}
    assert functions[0]["numa_node"] == 0 and functions[-1]["numa_node"] == 1
    assert len({each["iommu_group"] for each in functions}) == 2 * pods


def test_large_frames_cross_too(lab: Lab) -> None:
    forward(lab, Chain("sriov", 1, "testpmd-mac"), "1518")


def test_north_south_on_virtual_functions_and_east_west_through_the_switch(lab: Lab) -> None:
    description = forward(lab, Chain("sriov-ovs-dpdk", 2))
    assert [each["driver"] for each in description["virtual_functions"]] == ["vfio-pci"] * 2
    assert set(description["applications"]) == {"pod1", "pod2"}
    # The switch is on the left port's node, the pods on the right one's, as the topology says.
    placed = {(each["numa_node"], *each["held_to"]) for each in description["pollers"]}
    assert placed == {(0, "1"), (1, "2"), (1, "3")}


def test_what_the_topology_says_of_virtual_functions_is_in_force(lab: Lab) -> None:
    wanted = VirtualFunctionSettings(number=3, vlan=7, trust=True, spoof_check=False)
    with lab.with_functions(wanted).testbed.build(Chain("sriov", 1, "testpmd-mac"), FrameSize.parse(64)) as sut:
        for port in sut.data_plane.describe()["physical_functions"]:
            assert port["virtual_functions"] == 3
            assert [(each["vlan"], each["trust"], each["spoof_check"]) for each in port["settings"].values()] == [
                (7, True, False)
            ] * 3


@pytest.mark.parametrize("forwarder", ["testpmd-mac", "kernel"])
def test_what_a_killed_run_left_is_taken_back_by_the_next(lab: Lab, forwarder: str) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    run = context.Process(target=hold, args=(lab.topology, Chain("sriov", 1, forwarder), theirs))
    run.start()
    theirs.close()
    assert ours.poll(UP_TIMEOUT) and ours.recv() == "up"
    run.kill()
    run.join()
    assert "virtual functions and drivers of devices" in put_back(lab.worker)


def hold(topology: Topology, chain: Chain, pipe: Any) -> None:
    """What the run does that gets killed: it builds a chain, says so, and keeps it."""
    with ExitStack() as undo:
        lab = Lab(topology, worker_machine(topology.worker, LocalHost(), undo))
        undo.enter_context(lab.testbed.build(chain, FrameSize.parse(64)))
        pipe.send("up")
        pipe.recv()
