"""SR-IOV: pods have virtual functions (VFs) of the NIC. The NIC's embedded switch forwards frames to a VF by its MAC.

The first pod has a VF of the left port, and the last pod a VF of the right port. A single pod has both. Two neighbours
have VFs of one port between them. On the worker only the pods touch a frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, ClassVar

from podperf.dataplanes.base import DataPlane, RunningDataPlane, Worker, refuse_large_frames
from podperf.dataplanes.kernel_state import describe_kernel
from podperf.dataplanes.polling_pods import PollingPods, together
from podperf.dataplanes.segments import entries, forward_along
from podperf.dataplanes.virtual_functions import (
    NO_END_IN_POD,
    VFIO_CAPABILITIES,
    describe_vfs,
    missing,
    of_each_pod,
    start_kernel_pods,
    start_testpmd_pods,
    vfs_along,
)
from podperf.errors import Unavailable
from podperf.hosts.base import Host
from podperf.hosts.host_facts import interface_details
from podperf.hosts.linux import package_versions
from podperf.kernel import sriov
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
    takes_tags: ClassVar[bool] = True
    uses_virtual_functions: ClassVar[bool] = True
    no_end_in_pod: ClassVar[str] = NO_END_IN_POD
    program_capabilities: ClassVar[tuple[str, ...]] = VFIO_CAPABILITIES

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return sriov.missing(host)

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        refuse_large_frames(worker.mtu, "a virtual function")
        in_kernel = chain.forwarder == IN_KERNEL
        reason = CniPlugins(worker.host).missing("host-device", "static") if in_kernel else missing(worker)
        if reason:
            raise Unavailable(reason)
        functions = vfs_along(worker, of_each_pod(chain.pods), undo)
        if in_kernel:
            pods = start_kernel_pods(worker, chain, functions, undo)
            describe = partial(_describe, worker, pods, functions, pods)
            users = [user for pod in pods for user in kernel_users(dict.fromkeys(pod.interfaces, pod.host), ())]
            return RunningDataPlane(forward_along(pods, worker), worker.ports, describe, cpu_users=users)
        polling = PollingPods(worker, chain, undo)
        pods = start_testpmd_pods(worker, chain, functions, polling, undo)
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
