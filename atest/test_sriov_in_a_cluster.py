"""The virtual worker as a node of podperf's own cluster: its kubelet runs pods, and gives them its devices.

The machine boots once for all of these tests, and the cluster starts before.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from chains import forward, remote_testbed
from machine import once_as, snapshot
from own_cluster import awaited, need_programs
from podperf.errors import Unavailable
from podperf.hosts.linux import ip
from podperf.kubernetes.api import Api, log_in
from podperf.model import Chain, FrameSize
from podperf.topology import Topology
from podperf.virtual_worker.boot import LEFT, RIGHT
from robot_run import podperf
from test_chains_of_kubernetes_pods import topology as chains
from virtual_lab import ONLY_ON_REQUEST, booted, need_qemu
from virtual_node import START_TIMEOUT, VirtualNode, node_in_virtual_machine

pytestmark = [
    ONLY_ON_REQUEST,
    pytest.mark.cluster,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes namespaces"),
]
PORTS = {"left": LEFT, "right": RIGHT}
RESOURCES = {side: f"podperf.test/{side}" for side in PORTS}  # each has the virtual functions of one port
MANY = 3  # virtual functions of each port
# Makes $2 virtual functions of the port $1, whose interface is $4. Gives them MACs, and the driver $3. Prints the PCI
# address and the IOMMU group of each.
MAKE = """
echo $2 >/sys/bus/pci/devices/$1/sriov_numvfs
for each in /sys/bus/pci/devices/$1/virtfn*; do
    cd $(readlink -f $each)
    function=$(basename $PWD)
    [ ! -e driver ] || echo $function >driver/unbind
    ip link set dev $4 vf ${each##*virtfn} mac 02:00:00:00:00:0${each##*virtfn}
    echo $3 >driver_override
    echo $function >/sys/bus/pci/drivers_probe
    echo $function $(basename $(readlink iommu_group))
done
"""


@pytest.fixture(scope="module")
def node() -> Iterator[VirtualNode]:
    """The virtual worker as a node. The machine is as before when the cluster has ended."""
    need_qemu()
    need_programs()
    podperf("cluster", "down")
    before = snapshot()
    # Before the virtual worker boots, because the start of a cluster wants the machine for itself.
    podperf("cluster", "up", "--own", "--nodes", "2")
    try:
        with booted() as lab, node_in_virtual_machine(lab) as found:
            yield found
    finally:
        podperf("cluster", "down")
    assert once_as(before, snapshot) == before


@pytest.fixture(scope="module")
def api(node: VirtualNode) -> Iterator[Api]:
    with closing(log_in(str(node.kubeconfig), None)) as found:
        yield found


@pytest.mark.parametrize(
    ("name", "pods", "forwarder"),
    [
        ("sriov", 2, "testpmd-mac"),
        ("sriov-ovs-dpdk", 2, "testpmd-mac"),
        ("sriov", 1, "kernel"),
    ],
)
def test_frames_cross_functions_that_the_cluster_gives(
    api: Api, node: VirtualNode, name: str, pods: int, forwarder: str
) -> None:
    driver = "igbvf" if forwarder == "kernel" else "vfio-pci"
    with offering(api, node, driver) as functions:
        before = state(node)
        with closing(remote_testbed(node.lab.worker, of_cluster(node))) as testbed:
            described = forward(Chain(name, pods, forwarder), testbed=testbed)
        assert once_as(before, lambda: state(node)) == before
    assert {virtual_function["driver"] for virtual_function in described["virtual_functions"]} == {driver}
    told = [pod["devices"].values() for pod in described["runtime"]["pods"].values()]
    given = {address for devices in told for device in devices for address in device.split(",")}
    assert (
        given == {virtual_function["address"] for virtual_function in described["virtual_functions"]} <= set(functions)
    )
    assert {pod["node"] for pod in described["runtime"]["pods"].values()} == {node.name}


def state(node: VirtualNode) -> list[str]:
    """The state of the node, without the cluster's own network, whose bridge and addresses come with the first pod."""
    return [line for line in node.lab.state().splitlines() if "cni" not in line]


def test_a_program_is_not_given_functions_that_the_kernel_drives(api: Api, node: VirtualNode) -> None:
    with (
        offering(api, node, "igbvf"),
        closing(remote_testbed(node.lab.worker, of_cluster(node))) as testbed,
        pytest.raises(Unavailable, match=r"has the driver igbvf: the device plug-in must offer .* vfio-pci"),
        testbed.build(Chain("sriov", 1), FrameSize.parse(64)),
    ):
        pass


def of_cluster(node: VirtualNode) -> Topology:
    """The topology of the virtual lab, with pods of the cluster on its worker."""
    settings = {"node_selector": {"kubernetes.io/hostname": node.name}, "virtual_functions": RESOURCES}
    with TemporaryDirectory() as folder:
        return replace(node.lab.topology, pods=chains(Path(folder), **settings).pods)


@contextmanager
def offering(api: Api, node: VirtualNode, driver: str) -> Iterator[list[str]]:
    """The node offers virtual functions of both ports with this driver. Their PCI addresses."""
    functions: list[str] = []
    with ExitStack() as undo:
        for side, port in PORTS.items():
            ip(node.lab.worker, "link", "set", "dev", port.interface, "up")  # a function takes its MAC only then
            undo.callback(ip, node.lab.worker, "link", "set", "dev", port.interface, "down")
            undo.callback(node.lab.worker.do, "tee", f"/sys/bus/pci/devices/{port.pci}/sriov_numvfs", stdin="0")
            make = ("sh", "-ec", MAKE, "sh", port.pci, str(MANY), driver, port.interface)
            groups = dict(map(str.split, node.lab.worker.do(*make).stdout.splitlines()))
            by_program = driver == "vfio-pci"  # a program needs files, and the kernel's driver has none
            files = {
                each: ("/dev/vfio/vfio", f"/dev/vfio/{group}") if by_program else () for each, group in groups.items()
            }
            undo.enter_context(node.offering(RESOURCES[side], files))
            functions += groups
        awaited(lambda: offered(api, node) == {str(MANY)}, lambda: node.status(api), START_TIMEOUT)
        yield functions


def offered(api: Api, node: VirtualNode) -> set[str | None]:
    """The amounts of all resources."""
    return {node.status(api)["allocatable"].get(resource) for resource in RESOURCES.values()}
