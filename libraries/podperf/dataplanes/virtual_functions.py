"""Virtual functions (VFs) of the worker's ports along a chain, and the pods that use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from podperf.dataplanes.base import Worker
from podperf.dataplanes.polling_pods import PollingPods
from podperf.dataplanes.segments import neighbours, start_pods, static_address
from podperf.errors import Unavailable
from podperf.hosts.way_back import WayBack
from podperf.kernel import pci, queues, sriov
from podperf.kernel.sriov import PhysicalFunction, VirtualFunction
from podperf.model import Chain
from podperf.pods.base import Pod
from podperf.pods.forwarders.dpdk import in_port_order, missing_drivers
from podperf.pods.forwarders.testpmd import TestpmdForwarder

LEFT, RIGHT = 0, 1
# The kernel keeps a program's memory in place while a device may write into it, and counts it as locked memory.
VFIO_CAPABILITIES = ("IPC_LOCK",)
NO_END_IN_POD = "virtual functions belong to ports that existed before the run"  # see DataPlane.no_end_in_pod


def missing(worker: Worker) -> str | None:
    """The reason why pods of this worker cannot run DPDK on VFs, with the remedy, or None."""
    for port in (worker.left, worker.right):
        if port.driver in pci.BIFURCATED:
            return (
                f"DPDK drives virtual functions of {port.interface} only together with {port.driver}, which podperf "
                "cannot set up: let the pods' kernels forward (data plane sriov, forwarder=kernel)"
            )
    return pci.missing_user_space_driver(worker.host) or missing_drivers(worker.host, "mempool_ring")


def ports_along(pods: int) -> list[int]:
    """The port whose VF each pod interface has, along a chain. Inner segments alternate between left and right port."""
    inner = [(LEFT, RIGHT)[segment % 2] for segment in range(pods - 1) for _ in ("net2", "net1")]
    return [LEFT, *inner, RIGHT]


def of_each_pod(pods: int) -> dict[str, list[int]]:
    """The ports whose VFs each pod of a chain has, by the pod's name."""
    along = ports_along(pods)
    return {f"pod{number + 1}": along[2 * number : 2 * number + 2] for number in range(pods)}


def vfs_along(worker: Worker, of_pods: Mapping[str, Sequence[int]], undo: ExitStack) -> list[VirtualFunction]:
    """The VFs of the left or the right port that pods are to have, until `undo`, in the order of `of_pods`.

    They are those that the runtime of the pods gives, or podperf makes them. Raises Unavailable if the ports have too
    few VFs, or do not take the VLAN tags off the test frames.
    """
    tags = [[tag.id for tag in sent] for sent in (worker.headers.left, worker.headers.right)]
    if any(tags) and tags != [[vlan] for vlan in worker.sriov.vlans]:
        raise Unavailable(
            f"test frames have the VLAN tags {tags[0]} on the left and {tags[1]} on the right, and virtual functions "
            f"have {list(worker.sriov.vlans)}: set sriov.vlan of the worker to the VLAN of each port"
        )
    ports = [_physical_function(worker, side) for side in (LEFT, RIGHT)]
    given = worker.pods.give_functions({pod: [ports[side] for side in sides] for pod, sides in of_pods.items()}, undo)
    wanted = [side for sides in of_pods.values() for side in sides]
    way_back, functions = WayBack(worker.host, undo), {}
    for side, port in enumerate(ports):
        if given is None:
            found = sriov.virtual_functions(worker.host, port, wanted.count(side), worker.sriov, way_back)
        else:
            places = (each for pod, sides in of_pods.items() for each in zip(sides, given[pod], strict=True))
            own = [address for place, address in places if place == side]
            found = sriov.given_functions(worker.host, port, own, worker.sriov, way_back)
        functions[side] = iter(found)
    return [next(functions[side]) for side in wanted]


def _physical_function(worker: Worker, side: int) -> PhysicalFunction:
    port = (worker.left, worker.right)[side]
    if port.pci is None:
        raise Unavailable(f"{port.interface} of {worker.host.name} is no NIC's port, and has no virtual functions")
    return PhysicalFunction(worker.namespace, port.interface, port.pci, 2 * worker.number + side)


def on_to(peers: Mapping[str, str], queues: int = 1) -> TestpmdForwarder:
    """A testpmd that rewrites MACs. A frame that leaves by a device goes to this device's MAC in `peers`, and has the
    device's own MAC as its source."""
    arguments = [f"--eth-peer={port},{peers[device]}" for port, device in enumerate(in_port_order(list(peers)))]
    return TestpmdForwarder("mac", (*arguments, f"--rxq={queues}", f"--txq={queues}"))


def describe_vfs(worker: Worker, functions: Sequence[VirtualFunction]) -> dict[str, Any]:
    """The kernel's description of the ports and the VFs in use, from left to right."""
    ports = {vf.port.interface: vf.port for vf in functions}.values()
    return {
        "physical_functions": [sriov.describe_port(worker.host, port) for port in ports],
        "virtual_functions": [
            {"port": vf.port.interface, "number": vf.number, **pci.describe_device(worker.host, vf.address)}
            for vf in functions
        ],
    }


def start_kernel_pods(worker: Worker, chain: Chain, functions: Sequence[VirtualFunction], undo: ExitStack) -> list[Pod]:
    names = [f"vf{place}" for place in range(len(functions))]
    for vf, name in zip(functions, names, strict=True):
        pci.move_into_namespace(worker.host, pci.give_to_kernel(worker.host, vf.address), worker.namespace, name)

    def plugins(segment: int, address: str) -> list[dict[str, Any]]:
        place = 2 * segment - (address == worker.addresses.on_segment(worker.addresses.left_of(segment)))
        return [{"type": "host-device", "device": names[place], "ipam": static_address(address)}]

    pods = start_pods(worker, chain, plugins, undo)
    for place, vf in enumerate(functions):
        pod, interface = pods[place // 2], ("net1", "net2")[place % 2]
        sriov.set_queues(pod.host, interface, worker.sriov.queues)
        # A driver requests its interrupts when its interface is brought up. So steer them only now.
        its = list(queues.affinities(worker.host, vf.address))
        queues.steer(worker.host, its, worker.cpus.pods[place // 2])
    for number, pod in enumerate(pods):
        sriov.await_links(pod.host, dict(zip(("net1", "net2"), functions[2 * number :], strict=False)))
    return pods


def start_testpmd_pods(
    worker: Worker, chain: Chain, functions: Sequence[VirtualFunction], polling: PollingPods, undo: ExitStack
) -> list[Pod]:
    for vf in functions:
        pci.give_to_user_space(worker.host, vf.address)
    pods = []
    for number in range(chain.pods):
        pod = worker.pods.start(f"pod{number + 1}", [], undo)
        for name, vf in zip(("net1", "net2"), functions[2 * number :], strict=False):
            pod.add_device(name, vf.mac)
        pods.append(pod)
    left_macs, right_macs = neighbours(pods, worker)
    for number, pod in enumerate(pods):
        net1, net2 = (vf.address for vf in functions[2 * number : 2 * number + 2])
        forwarder = on_to({net1: left_macs[number], net2: right_macs[number + 1]}, worker.sriov.queues)
        polling.start(forwarder, pod, [net1, net2])
    return pods
