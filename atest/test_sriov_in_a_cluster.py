"""The virtual worker as a node of podperf's own cluster: its kubelet runs pods, and gives them its devices.

The machine boots once for all of these tests, and the cluster starts before.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from machine import once_as, snapshot
from own_cluster import awaited, need_programs
from podperf.errors import Unavailable
from podperf.kubernetes import manifests
from podperf.kubernetes.api import Api, log_in
from podperf.kubernetes.execute import execute
from podperf.kubernetes.manifests import PodWishes
from podperf.kubernetes.settings import IMAGE
from podperf.virtual_worker.machine import LEFT, RIGHT, NumaNode
from robot_run import podperf
from virtual_lab import ONLY_ON_REQUEST, booted, need_qemu
from virtual_node import START_TIMEOUT, VirtualNode, node_in_virtual_machine

pytestmark = [
    ONLY_ON_REQUEST,
    pytest.mark.cluster,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes namespaces"),
    pytest.mark.usefixtures("time_is_left"),
]
EXEC_TIMEOUT = 60.0  # seconds
RESOURCES = {"podperf.test/left": LEFT, "podperf.test/right": RIGHT}  # the devices of one port each
# Makes one virtual function of the port $1, and gives it to vfio-pci. Prints its PCI address and its IOMMU group.
GIVE = """
echo 1 >/sys/bus/pci/devices/$1/sriov_numvfs
function=$(basename $(readlink /sys/bus/pci/devices/$1/virtfn0))
cd /sys/bus/pci/devices/$function
[ ! -e driver ] || echo $function >driver/unbind
echo vfio-pci >driver_override
echo $function >/sys/bus/pci/drivers_probe
echo $function $(basename $(readlink iommu_group))
"""


@pytest.fixture(scope="module")
def node() -> Iterator[VirtualNode]:
    """The virtual worker as a node. The machine is as before when the cluster has ended."""
    need_qemu()
    try:
        need_programs()
    except Unavailable as reason:
        pytest.skip(str(reason))
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


def test_a_pod_has_virtual_functions_of_both_cards(api: Api, node: VirtualNode) -> None:
    assert node.status(api)["nodeInfo"]["kernelVersion"] == node.lab.worker.ask("uname", "-r").stdout.strip()
    with ExitStack() as undo:
        functions = {}
        for resource, port in RESOURCES.items():
            address, group = given(node, port, undo)
            functions[address] = group
            undo.enter_context(node.offering(resource, {address: ("/dev/vfio/vfio", f"/dev/vfio/{group}")}))
        awaited(lambda: offered(api, node) == ["1", "1"], lambda: node.status(api), START_TIMEOUT)
        pod = manifests.pod(
            "devices", "test", [], ["sleep", "3600"], PodWishes(IMAGE, further=dict.fromkeys(RESOURCES, "1"))
        )
        pod["spec"]["nodeName"] = node.name
        path = "/api/v1/namespaces/default/pods"
        api.ask("POST", path, pod)
        undo.callback(gone, api, f"{path}/devices")
        awaited(lambda: phase(api, path) == "Running", lambda: api.ask("GET", f"{path}/devices"), START_TIMEOUT)
        script = "echo $PCIDEVICE_PODPERF_TEST_LEFT $PCIDEVICE_PODPERF_TEST_RIGHT; ls /dev/vfio"
        said = execute(api, "devices", "default", ("sh", "-c", script), EXEC_TIMEOUT).split()
        assert said[:2] == list(functions)
        assert set(said[2:]) == {"vfio", *functions.values()}


def given(node: VirtualNode, port: NumaNode, undo: ExitStack) -> tuple[str, str]:
    """The PCI address of a new virtual function of a port, until `undo`, and its IOMMU group. vfio-pci drives it."""
    undo.callback(node.lab.worker.do, "tee", f"/sys/bus/pci/devices/{port.pci}/sriov_numvfs", stdin="0")
    address, group = node.lab.worker.do("sh", "-ec", GIVE, "sh", port.pci).stdout.split()
    return address, group


def offered(api: Api, node: VirtualNode) -> list[str | None]:
    """The amounts of all resources."""
    return [node.status(api)["allocatable"].get(each) for each in RESOURCES]


def phase(api: Api, path: str) -> str:
    return str(api.ask("GET", f"{path}/devices")["status"]["phase"])


def gone(api: Api, path: str) -> None:
    """Delete a pod, and wait until the node has ended it."""
    api.ask("DELETE", path, {"gracePeriodSeconds": 1})
    awaited(lambda: not api.exists(path), lambda: api.ask("GET", path), START_TIMEOUT)
