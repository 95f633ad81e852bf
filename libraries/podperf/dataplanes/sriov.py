"""SR-IOV: pods have virtual functions (VFs) of the NIC. The NIC's embedded switch forwards frames to a VF by its MAC.

The first pod has a VF of the left port, and the last pod a VF of the right port. A single pod has both. Two neighbours
have VFs of one port between them. On the worker only the pods touch a frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, ClassVar

from podperf.addressing import left_of
from podperf.dataplanes.base import DataPlane, RunningDataPlane, Worker
from podperf.dataplanes.buffers import refuse_large_frames
from podperf.dataplanes.kernel_state import describe_kernel
from podperf.dataplanes.polling_pods import PollingPods, together
from podperf.dataplanes.segments import entries, forward_along, neighbours, start_pods, static_address
from podperf.dataplanes.virtual_functions import describe_vfs, missing, on_to, ports_along, vfs_along
from podperf.errors import Unavailable
from podperf.hosts.base import Host
from podperf.hosts.host_facts import interface_details
from podperf.hosts.linux import package_versions
from podperf.hosts.way_back import WayBack
from podperf.kernel import interrupts, pci, sriov
from podperf.kernel.sriov import VirtualFunction
from podperf.kernel.thread_time import kernel_users
from podperf.model import Chain, NetworkingModel
from podperf.pods.base import Pod
from podperf.pods.cni import CniPlugins
from podperf.pods.forwarders import IN_KERNEL


class Sriov(DataPlane):
    """Pods forward with testpmd on VFs under vfio-pci, or in the kernel on the VFs' own interfaces."""

    name: ClassVar[str] = "sriov"
    model: ClassVar[NetworkingModel] = NetworkingModel.SMART_NIC
    forwarders: ClassVar[Sequence[str]] = ("testpmd-mac", IN_KERNEL)
    uses_virtual_functions: ClassVar[bool] = True

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return sriov.missing(host)

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        refuse_large_frames(worker.mtu, "a virtual function")
        in_kernel = chain.forwarder == IN_KERNEL
        reason = CniPlugins(worker.host).missing("host-device", "static") if in_kernel else missing(worker)
        if reason:
            raise Unavailable(reason)
        way_back = WayBack(worker.host, undo)
        functions = vfs_along(worker, ports_along(chain.pods), way_back)
        if in_kernel:
            pods = _start_kernel_pods(worker, chain, functions, undo)
            describe = partial(_describe, worker, pods, functions, pods)
            users = [user for pod in pods for user in kernel_users(dict.fromkeys(pod.interfaces, pod.host), ())]
            return RunningDataPlane(forward_along(pods, worker), worker.ports, describe, cpu_users=users)
        polling = PollingPods(worker, chain, undo)
        pods = _start_testpmd_pods(worker, chain, functions, polling, undo)
        describe = partial(_describe, worker, pods, functions)
        pollers = together(*polling.pollers())
        return polling.running(pollers, describe, entries=entries(pods, worker), ports=worker.ports)


def _describe(
    worker: Worker, pods: Sequence[Pod], functions: Sequence[VirtualFunction], with_interfaces: Sequence[Pod] = ()
) -> Mapping[str, Any]:
    return {
        **describe_kernel(worker, pods),
        "packages": package_versions(worker.host, ["dpdk-dev"]),
        **describe_vfs(worker, functions),
        "interfaces": {
            pod.name: {name: interface_details(pod.host, name) for name in pod.interfaces} for pod in with_interfaces
        },
    }


def _start_kernel_pods(
    worker: Worker, chain: Chain, functions: Sequence[VirtualFunction], undo: ExitStack
) -> list[Pod]:
    """Pods with the VFs' kernel interfaces."""
    names = [f"vf{place}" for place in range(len(functions))]
    for vf, name in zip(functions, names, strict=True):
        pci.move_into_namespace(worker.host, pci.give_to_kernel(worker.host, vf.address), worker.namespace, name)

    def plugins(segment: int, address: str) -> list[dict[str, Any]]:
        place = 2 * segment - (address == left_of(segment))
        return [{"type": "host-device", "device": names[place], "ipam": static_address(address)}]

    pods = start_pods(worker, chain, plugins, undo)
    for place, vf in enumerate(functions):
        pod, interface = pods[place // 2], ("net1", "net2")[place % 2]
        sriov.set_queues(pod.host, interface, worker.sriov.queues)
        # A driver requests its interrupts when its interface is brought up. So steer them only now.
        its = list(interrupts.affinities(worker.host, vf.address))
        interrupts.steer(worker.host, its, worker.cpus.pods[place // 2])
    for number, pod in enumerate(pods):
        sriov.await_links(pod.host, dict(zip(("net1", "net2"), functions[2 * number :], strict=False)))
    return pods


def _start_testpmd_pods(
    worker: Worker, chain: Chain, functions: Sequence[VirtualFunction], polling: PollingPods, undo: ExitStack
) -> list[Pod]:
    """Pods whose testpmd drives the VFs."""
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
