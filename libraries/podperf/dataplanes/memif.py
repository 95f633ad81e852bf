"""Pods joined by memif. The DPDK applications of two neighbours share memory, without a virtual switch between them.

The CNI plug-in `host-device` moves the worker's ports into the first and the last pod. The pod's application uses the
port by AF_XDP. A chain needs at least two pods to have a memif.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

from podperf.dataplanes.base import DataPlane, RunningDataPlane, Worker, refuse_large_frames
from podperf.dataplanes.kernel_state import describe_kernel
from podperf.dataplanes.polling_pods import PollingPods, forwarder_in, receive_threads, together
from podperf.dataplanes.user_space_ports import AF_XDP_CAPABILITIES, leave_queues_each, start_pods_with_ports
from podperf.errors import Unavailable
from podperf.figures import count
from podperf.hosts.base import Host
from podperf.hosts.linux import package_versions
from podperf.hosts.run_directory import pod_socket
from podperf.kernel.thread_time import kernel_users
from podperf.kernel.threads import dedicate_receive_processing
from podperf.model import Chain, NetworkingModel
from podperf.pods.cni import CniPlugins
from podperf.pods.forwarders import FORWARDERS
from podperf.pods.forwarders.dpdk import memif_device, missing_drivers


class Memif(DataPlane):
    """One memif for each segment between two pods. The pod on the left is its server.

    A pod at an end has a port of the worker like the first and the last pod of a chain. Two containers of one pod are
    joined as two pods are.
    """

    name: ClassVar[str] = "memif"
    takes_tags: ClassVar[bool] = True
    model: ClassVar[NetworkingModel] = NetworkingModel.USER_SPACE
    least_pods: ClassVar[int] = 2
    no_end_in_pod: ClassVar[str] = ""
    program_at_ends: ClassVar[bool] = True
    no_end_in_container: ClassVar[str] = ""
    forwarders: ClassVar[Sequence[str]] = tuple(FORWARDERS)
    program_capabilities: ClassVar[tuple[str, ...]] = AF_XDP_CAPABILITIES  # of the first and the last pod

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return missing_drivers(host, "net_memif", "net_af_xdp") or CniPlugins(host).missing("host-device")

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        if (number := chain.pods + chain.ends.number_in_pods) < self.least_pods:
            raise Unavailable(f"{chain}: a memif joins two pods, and the worker has {count(number, 'pod')}")
        refuse_large_frames(worker.mtu, "memif")
        leave_queues_each(worker)
        sockets = [pod_socket(worker.directory, f"memif{segment}.sock") for segment in range(number + 1)]
        polling = PollingPods(worker, chain, undo)
        pods, ports = start_pods_with_ports(worker, chain.pods, undo)
        outer = {"net1": worker.cpus.pods[0], "net2": worker.cpus.pods[-1]}
        for interface, cpu in outer.items():
            dedicate_receive_processing(ports[interface], interface, cpu)
        # Start from left to right, so that each server listens before its client connects.
        for place, pod in enumerate(pods):
            left, right = "net_af_xdp0,iface=net1", "net_af_xdp1,iface=net2"
            if pod is not pods[0]:
                left = memif_device(0, "client", sockets[place])
            if pod is not pods[-1]:
                right = memif_device(1, "server", sockets[place + 1])
            polling.start(forwarder_in(worker, chain, pod), pod, [left, right])
        receiving = [receive_threads(worker.host, interface, cpu) for interface, cpu in outer.items()]
        first, *others = polling.pollers()

        def describe() -> Mapping[str, Any]:
            return {**describe_kernel(worker, pods), "packages": package_versions(worker.host, ["dpdk-dev"])}

        return polling.running(
            together(first, receiving[0], *others, receiving[1]),
            describe,
            ports=ports,
            beside_pods=kernel_users(ports, outer.values()),
        )
