"""Virtual functions (VFs) of the worker's ports along a chain, and DPDK on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podperf.dataplanes.base import Worker
from podperf.errors import Unavailable
from podperf.hosts.way_back import WayBack
from podperf.kernel import pci, sriov
from podperf.kernel.sriov import PhysicalFunction, VirtualFunction
from podperf.pods.forwarders.dpdk import in_port_order, missing_drivers
from podperf.pods.forwarders.testpmd import TestpmdForwarder

LEFT, RIGHT = 0, 1


def missing(worker: Worker) -> str | None:
    """The reason why pods of this worker cannot run DPDK on VFs, with the remedy, or None."""
    for port in (worker.left, worker.right):
        if port.pci is not None and (driver := pci.link(worker.host, port.pci, "driver")) in pci.BIFURCATED:
            return (
                f"DPDK drives virtual functions of {port.interface} only together with {driver}, which podperf "
                "cannot set up: let the pods' kernels forward (data plane sriov, forwarder=kernel)"
            )
    return pci.missing_user_space_driver(worker.host) or missing_drivers(worker.host, "mempool_ring")


def ports_along(pods: int) -> list[int]:
    """The port whose VF each pod interface has, along a chain. Inner segments alternate between left and right port."""
    inner = [(LEFT, RIGHT)[segment % 2] for segment in range(pods - 1) for _ in ("net2", "net1")]
    return [LEFT, *inner, RIGHT]


def vfs_along(worker: Worker, ports: Sequence[int], way_back: WayBack) -> list[VirtualFunction]:
    """A VF of the left or the right port for each of `ports`. Raises Unavailable if the ports have too few VFs."""
    functions = {}
    for side, port in enumerate((worker.left, worker.right)):
        if port.pci is None:
            raise Unavailable(f"{port.interface} of {worker.host.name} is no NIC's port, and has no virtual functions")
        function = PhysicalFunction(port.interface, port.pci, 2 * worker.number + side)
        wanted = ports.count(side)
        functions[side] = iter(sriov.virtual_functions(worker.host, function, wanted, worker.sriov, way_back))
    return [next(functions[side]) for side in ports]


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
