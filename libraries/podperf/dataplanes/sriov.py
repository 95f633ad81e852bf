"""SR-IOV: pods own virtual functions (VFs) of the NIC, and the NIC's embedded switch takes frames to them by their MAC.

The first pod has a VF of the left port, the last one a VF of the right port, one pod has both. Between two pods both
ends are VFs of one port. Nothing of the worker touches a frame but the pods.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, ClassVar

from podperf.addressing import left_of
from podperf.dataplanes.base import DataPlane, Worker
from podperf.dataplanes.buffers import refuse_large_frames
from podperf.dataplanes.kernel_state import describe_kernel
from podperf.dataplanes.segments import entries, forward_along, neighbours, start_pods, static_address
from podperf.errors import Unavailable
from podperf.hosts.base import Host
from podperf.hosts.environment import interface_details
from podperf.hosts.linux import package_versions
from podperf.hosts.way_back import WayBack
from podperf.kernel import interrupts, pci, sriov
from podperf.kernel.poller_sharing import Turns, take_turns
from podperf.kernel.sriov import PhysicalFunction, VirtualFunction
from podperf.model import Chain, Direction, Entry, NetworkingModel
from podperf.pods.base import Pod, PodInterface
from podperf.pods.cni import CniPlugins
from podperf.pods.forwarders.base import POD_MEMORY, Application, Share, start
from podperf.pods.forwarders.dpdk import in_port_order, missing_drivers
from podperf.pods.forwarders.testpmd import TestpmdForwarder

LEFT, RIGHT = 0, 1


class Sriov(DataPlane):
    """Pods forward with testpmd on VFs that vfio-pci has, or in their kernel on the VFs' own interfaces."""

    name: ClassVar[str] = "sriov"
    model: ClassVar[NetworkingModel] = NetworkingModel.SMART_NIC
    forwarders: ClassVar[Sequence[str]] = ("testpmd-mac", "kernel")
    uses_virtual_functions: ClassVar[bool] = True

    _worker: Worker
    _functions: Sequence[VirtualFunction]
    _pods: Sequence[Pod]
    _applications: Sequence[Application]
    _turns: Turns

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return sriov.missing(host)

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> Mapping[Direction, Entry]:
        refuse_large_frames(worker.mtu, "a virtual function")
        in_kernel = chain.forwarder == "kernel"
        reason = CniPlugins(worker.host).missing("host-device", "static") if in_kernel else missing(worker)
        if reason:
            raise Unavailable(reason)
        self._worker, self._applications, self._turns = worker, [], Turns()
        way_back = WayBack(worker.host, worker.directory, undo)
        self._functions = vfs_along(worker, ports_along(chain.pods), way_back)
        if in_kernel:
            self._pods = self._start_kernel_pods(chain, undo)
            return forward_along(self._pods, worker)
        self._pods = self._start_testpmd_pods(chain, undo)
        return entries(self._pods, worker)

    def _start_kernel_pods(self, chain: Chain, undo: ExitStack) -> list[Pod]:
        worker = self._worker
        names = [f"vf{place}" for place in range(len(self._functions))]
        for vf, name in zip(self._functions, names, strict=True):
            pci.move_into_namespace(worker.host, pci.give_to_kernel(worker.host, vf.address), worker.namespace, name)

        def plugins(segment: int, address: str) -> list[dict[str, Any]]:
            place = 2 * segment - (address == left_of(segment))
            return [{"type": "host-device", "device": names[place], "ipam": static_address(address)}]

        pods = start_pods(worker, chain, plugins, undo)
        links = {}
        for place, vf in enumerate(self._functions):
            pod, interface = pods[place // 2], ("net1", "net2")[place % 2]
            sriov.set_queues(pod.host, interface, worker.sriov.queues)
            # A driver asks for its interrupts when its interface is set up; so late they are there.
            its = list(interrupts.affinities(worker.host, vf.address))
            interrupts.steer(worker.host, its, _cpu(worker, place // 2))
            links[vf] = (pod.namespace, interface)
        sriov.await_links(worker.host, links)
        return pods

    def _start_testpmd_pods(self, chain: Chain, undo: ExitStack) -> list[Pod]:
        worker = self._worker
        in_hugepages = worker.reserve_hugepages(chain.pods * POD_MEMORY, undo)
        for vf in self._functions:
            pci.give_to_user_space(worker.host, vf.address)
        pods = []
        for number in range(chain.pods):
            pod = worker.pods.start(f"pod{number + 1}", [], undo)
            ends = zip(("net1", "net2"), self._functions[2 * number :], strict=False)
            pods.append(replace(pod, interfaces={name: PodInterface(name, vf.mac) for name, vf in ends}))
        left_macs, right_macs = neighbours(pods, worker)
        applications, pollers = [], defaultdict[int, list[int]](list)
        for number, pod in enumerate(pods):
            net1, net2 = (vf.address for vf in self._functions[2 * number : 2 * number + 2])
            forwarder = on_to({net1: left_macs[number], net2: right_macs[number + 1]}, worker.sriov.queues)
            cpu = _cpu(worker, number)
            application = start(forwarder, pod.host, pod.name, [net1, net2], Share(cpu, in_hugepages), undo)
            applications.append(application)
            pollers[cpu] += application.pollers()
        self._applications = applications
        self._turns = take_turns(worker.host, pollers, undo)
        return pods

    def check(self) -> None:
        """PodperfError when an application is gone."""
        for application in self._applications:
            application.check()
        self._turns.check()

    def describe(self) -> Mapping[str, Any]:
        worker = self._worker
        return {
            **describe_kernel(worker, self._pods),
            "packages": package_versions(worker.host, ["dpdk-dev"]),
            **describe_vfs(worker, self._functions),
            "interfaces": {
                pod.name: {name: interface_details(pod.host, name) for name in pod.interfaces}
                for pod in self._pods
                if not self._applications
            },
            "applications": {each.name: each.describe() for each in self._applications},
            "pollers": self._turns.describe(),
        }


def missing(worker: Worker) -> str | None:
    """Why pods of this worker cannot run DPDK on VFs, with the remedy, or None."""
    for port in (worker.left, worker.right):
        if port.pci is not None and (driver := pci.link(worker.host, port.pci, "driver")) in pci.BIFURCATED:
            return (
                f"DPDK drives virtual functions of {port.interface} only together with {driver}, which podperf "
                "cannot set up: let the pods' kernels forward (data plane sriov, forwarder=kernel)"
            )
    return pci.missing_user_space_driver(worker.host) or missing_drivers(worker.host, "mempool_ring")


def ports_along(pods: int) -> list[int]:
    """Along a chain, the port that each pod interface has a VF of: inner segments take the left and right in turns."""
    inner = [(LEFT, RIGHT)[segment % 2] for segment in range(pods - 1) for _ in ("net2", "net1")]
    return [LEFT, *inner, RIGHT]


def vfs_along(worker: Worker, ports: Sequence[int], way_back: WayBack) -> list[VirtualFunction]:
    """A VF for each of these places, of the left or the right port. Unavailable when the ports do not have them."""
    functions = {}
    for side, port in enumerate((worker.left, worker.right)):
        if port.pci is None:
            raise Unavailable(f"{port.interface} of {worker.host.name} is no NIC's port, and has no virtual functions")
        function = PhysicalFunction(port.interface, port.pci, 2 * worker.number + side)
        wanted = ports.count(side)
        functions[side] = iter(sriov.virtual_functions(worker.host, function, wanted, worker.sriov, way_back))
    return [next(functions[side]) for side in ports]


def on_to(peers: Mapping[str, str], queues: int = 1) -> TestpmdForwarder:
    """Testpmd that sends what leaves by each device on to a MAC, with the device's own MAC as the source."""
    arguments = [f"--eth-peer={port},{peers[device]}" for port, device in enumerate(in_port_order(list(peers)))]
    return TestpmdForwarder("mac", (*arguments, f"--rxq={queues}", f"--txq={queues}"))


def describe_vfs(worker: Worker, functions: Sequence[VirtualFunction]) -> dict[str, Any]:
    """The ports and the VFs in use, from left to right, as the kernel has them."""
    ports = {vf.port.interface: vf.port for vf in functions}.values()
    return {
        "physical_functions": [sriov.describe_port(worker.host, port) for port in ports],
        "virtual_functions": [
            {"port": vf.port.interface, "number": vf.number, **pci.describe_device(worker.host, vf.address)}
            for vf in functions
        ],
    }


def _cpu(worker: Worker, number: int) -> int:
    return worker.cpus[number % len(worker.cpus)]
