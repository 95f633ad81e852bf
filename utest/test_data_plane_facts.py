"""Callers decide by a data plane's declared facts, and not by the category of its reports."""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import replace

import pytest

from podperf.dataplanes import DATA_PLANES
from podperf.errors import Unavailable
from podperf.hosts.linux import CARRIER_PATIENCE
from podperf.kernel.cpus import Cpus
from podperf.model import Chain, FrameSize, NetworkingModel, Placement
from podperf.preflight.imaginary_host import Device, ImaginaryHost
from podperf.preflight.plan import plan
from podperf.testbed.machines import WorkerMachine
from podperf.testbed.scenarios import SCENARIOS
from podperf.testbed.system_under_test import SystemUnderTest
from podperf.testbed.testbed import LiveTestbed
from podperf.topology import SCHEMA_PATH, PortSettings, Topology, WorkerPortSettings, load_topology

SMALL = FrameSize.parse(64)
NODE_OF_NIC = range(20, 28)  # the NIC's node in a plan of appendix C's lab
ON_VIRTUAL_FUNCTIONS = {"sriov", "sriov-ovs-dpdk", "sriov-vpp"}
WITH_SWITCH = {
    *("ovs-netdev", "ovs-dpdk", "ovs-afxdp", "vpp-l2patch", "vpp-bridge-domain", "vpp-vrf"),
    *("sriov-ovs-dpdk", "sriov-vpp"),
}


def topology(name: str) -> Topology:
    return load_topology(SCHEMA_PATH.parent / f"{name}.yaml", DATA_PLANES)


def planned_cpus(data_plane: str, scenario: str, pattern: str) -> list[int]:
    """The numbers that a pattern finds in the plan of a placed chain of two pods."""
    made = plan(topology("appendix_c_multi_pod"), Chain(data_plane, 2), SMALL, scenario=SCENARIOS[scenario])
    return [int(found, 0) for step in made.steps for found in re.findall(pattern, step.text)]


def on_mask(mask: int) -> list[int]:
    return [cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1]


def test_the_switch_of_ovs_afxdp_is_placed_where_a_scenario_has_the_switch() -> None:
    """The report shows ovs-afxdp as eBPF, but its pollers run in user space."""
    assert set(on_mask(planned_cpus("ovs-afxdp", "S1", r"pmd-cpu-mask=\S*(0x\w+)")[0])) <= set(NODE_OF_NIC)
    assert not set(on_mask(planned_cpus("ovs-afxdp", "S3", r"pmd-cpu-mask=\S*(0x\w+)")[0])) & set(NODE_OF_NIC)


def test_pods_on_memif_are_placed_without_a_switch() -> None:
    """The report shows these as user space. They have no switch between them, so no CPU is reserved for a switch."""
    near, far = planned_cpus("memif", "S5", r"--lcores=\S+,\d+@(\d+)")
    assert near in NODE_OF_NIC and far not in NODE_OF_NIC
    assert near == planned_cpus("af-xdp", "S5", r"--lcores=\S+,\d+@(\d+)")[0]


def standing(data_plane: str, pods: int, driver: str = "nfp") -> SystemUnderTest:
    """A chain between existing ports on cards with this driver, by default one that runs eBPF programs on the card."""
    cards = {f"{side}-card": Device(driver, f"0000:81:00.{number}") for number, side in enumerate(("left", "right"))}
    ours, theirs = (
        {("", each): device for each, device in devices.items()}
        for devices in ({"left": Device("i40e"), "right": Device("i40e")}, cards)
    )
    local = topology("local")
    existing = replace(
        local,
        tester=replace(local.tester, left=PortSettings("left"), right=PortSettings("right")),
        workers=(
            replace(
                local.workers[0],
                left=WorkerPortSettings("left-card", driver=driver),
                right=WorkerPortSettings("right-card", driver=driver),
            ),
        ),
    )
    cpus = Cpus(tuple(range(8)), tuple(range(8)))
    host = ImaginaryHost("lab", cpus, ours | theirs)
    worker = WorkerMachine(existing.workers[0], host, Placement((0,), (1, 2)))
    testbed = LiveTestbed(existing, [worker], host)
    testbed.imaginary = True
    with ExitStack() as undo:
        return undo.enter_context(testbed.build(Chain(data_plane, pods), SMALL))


def test_links_are_waited_for_where_virtual_functions_are_used_and_only_there() -> None:
    """A program that a NIC runs is reported as SmartNIC, and makes no virtual function."""
    assert standing("sriov", 1).link_patience == CARRIER_PATIENCE
    assert standing("xdp-offload", 0).link_patience == 0


def test_ovs_dpdk_on_af_xdp_ports_is_of_two_models() -> None:
    """DPDK takes most cards from the kernel. It reaches Mellanox cards by AF_XDP sockets."""
    assert standing("ovs-dpdk", 1, driver="mlx5_core").second_model is NetworkingModel.EBPF
    assert standing("ovs-dpdk", 1).second_model is None


@pytest.mark.parametrize("data_plane", ["af-xdp", "ovs-dpdk", "ovs-netdev", "memif"])
def test_data_planes_that_poll_are_not_judged_on_a_counted_machine(data_plane: str) -> None:
    counted = topology("counted")
    host = ImaginaryHost("inside", Cpus((0,), (0,)), {})
    testbed = LiveTestbed(counted, [WorkerMachine(counted.workers[0], host, Placement((0,), (0,)))], host)
    with pytest.raises(Unavailable, match=f"{data_plane} is not judged on a counted machine: its processes poll"):
        testbed.demand(Chain(data_plane, 2))


def test_facts_are_declared() -> None:
    assert {name for name, kind in DATA_PLANES.items() if kind.uses_virtual_functions} == ON_VIRTUAL_FUNCTIONS
    assert {name for name, kind in DATA_PLANES.items() if kind.switch_has_cpus} == WITH_SWITCH
