"""Pods joined by memif: each pod's DPDK application shares memory with the next one's, no virtual switch between them.

The worker's ports are moved into the first and the last pod by the CNI plug-in `host-device`, where the application
takes them over by AF_XDP. So a chain needs two pods to have a memif at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

from podperf.dataplanes.base import DataPlane, Worker
from podperf.dataplanes.buffers import refuse_large_frames
from podperf.dataplanes.kernel_state import describe_kernel
from podperf.dataplanes.user_space_ports import leave_one_queue_each
from podperf.hosts.base import Host
from podperf.hosts.linux import dedicate_receive_processing, package_versions, threads_named, unix_socket
from podperf.kernel.poller_sharing import Turns, take_turns
from podperf.model import Chain, Direction, Entry, NetworkingModel
from podperf.pods import memif
from podperf.pods.base import Attachment, Pod
from podperf.pods.cni import CniPlugins
from podperf.pods.forwarders import FORWARDERS, forwarder_of
from podperf.pods.forwarders.base import POD_MEMORY, Application, Share, start
from podperf.pods.forwarders.dpdk import missing_drivers


class Memif(DataPlane):
    """One memif for each segment between two pods, the pod on its left the server."""

    name: ClassVar[str] = "memif"
    model: ClassVar[NetworkingModel] = NetworkingModel.USER_SPACE
    least_pods: ClassVar[int] = 2
    forwarders: ClassVar[Sequence[str]] = tuple(FORWARDERS)

    _worker: Worker
    _pods: list[Pod]
    applications: list[Application]
    _turns: Turns

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return missing_drivers(host, "net_memif", "net_af_xdp") or CniPlugins(host).missing("host-device")

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> Mapping[Direction, Entry]:
        refuse_large_frames(worker.mtu, "memif")
        leave_one_queue_each(worker)
        self._worker, self._pods, self.applications = worker, [], []
        sockets = [unix_socket(worker.directory, f"memif{segment}.sock") for segment in range(chain.pods + 1)]
        in_hugepages = worker.reserve_hugepages(chain.pods * POD_MEMORY, undo)
        pollers: dict[int, list[int]] = {}
        # From left to right, so that each server listens before its client looks for it.
        for number in range(1, chain.pods + 1):
            first, last = number == 1, number == chain.pods
            given = {"net1": worker.left.interface} if first else {"net2": worker.right.interface} if last else {}
            cpu = worker.cpus[(number - 1) % len(worker.cpus)]
            pod = self._start_pod(f"pod{number}", given, cpu, undo)
            left = "net_af_xdp0,iface=net1" if first else memif.dpdk_device(0, "client", sockets[number - 1])
            right = "net_af_xdp1,iface=net2" if last else memif.dpdk_device(1, "server", sockets[number])
            share = Share(cpu, in_hugepages)
            application = start(forwarder_of(chain), pod.host, pod.name, [left, right], share, undo)
            self._pods.append(pod)
            self.applications.append(application)
            turns = pollers.setdefault(cpu, [])
            turns += application.pollers()
            for interface in given:
                turns += threads_named(worker.host, f"napi/{interface}-")
        self._turns = take_turns(worker.host, pollers, undo)
        return {}  # the pods pass frames on as they are

    def _start_pod(self, name: str, given: Mapping[str, str], cpu: int, undo: ExitStack) -> Pod:
        """A pod that gets these ports of the worker, by the name that they have in it."""
        attachments = [
            Attachment(interface, port, [{"type": "host-device", "device": port}]) for interface, port in given.items()
        ]
        pod = self._worker.pods.start(name, attachments, undo)
        for interface, port in given.items():
            del self._worker.ports[port]
            self._worker.ports[interface] = pod.host
            # The port's receive thread ended with the move, and a new one begins.
            dedicate_receive_processing(pod.host, interface, cpu)
        return pod

    def check(self) -> None:
        """PodperfError when the application of a pod is gone."""
        for application in self.applications:
            application.check()
        self._turns.check()

    def describe(self) -> Mapping[str, Any]:
        return describe_kernel(self._worker, self._pods) | {
            "packages": package_versions(self._worker.host, ["dpdk-dev"]),
            "applications": {each.name: each.describe() for each in self.applications},
            "pollers": self._turns.describe(),
        }
