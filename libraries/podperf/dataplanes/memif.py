"""Pods joined by memif: each pod's DPDK application shares memory with the next one's, no virtual switch between them.

The worker's ports are moved into the first and the last pod by the CNI plug-in `host-device`, where the application
takes them over by AF_XDP. So a chain needs two pods to have a memif at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

from podperf.dataplanes.base import DataPlane, RunningDataPlane, Worker
from podperf.dataplanes.buffers import refuse_large_frames
from podperf.dataplanes.kernel_state import describe_kernel
from podperf.dataplanes.user_space_ports import leave_one_queue_each
from podperf.hosts.base import Host
from podperf.hosts.linux import dedicate_receive_processing, package_versions, threads_named, unix_socket
from podperf.kernel.poller_sharing import take_turns
from podperf.model import Chain, NetworkingModel
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

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return missing_drivers(host, "net_memif", "net_af_xdp") or CniPlugins(host).missing("host-device")

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        refuse_large_frames(worker.mtu, "memif")
        leave_one_queue_each(worker)
        pods: list[Pod] = []
        applications: list[Application] = []
        ports = dict(worker.ports)
        sockets = [unix_socket(worker.directory, f"memif{segment}.sock") for segment in range(chain.pods + 1)]
        in_hugepages = worker.reserve_hugepages(chain.pods * POD_MEMORY, undo)
        pollers: dict[int, list[int]] = {}
        # From left to right, so that each server listens before its client looks for it.
        for number in range(1, chain.pods + 1):
            first, last = number == 1, number == chain.pods
            given = {"net1": worker.left.interface} if first else {"net2": worker.right.interface} if last else {}
            cpu = worker.cpus[(number - 1) % len(worker.cpus)]
            pod = _start_pod(worker, f"pod{number}", given, cpu, undo)
            left = "net_af_xdp0,iface=net1" if first else memif.dpdk_device(0, "client", sockets[number - 1])
            right = "net_af_xdp1,iface=net2" if last else memif.dpdk_device(1, "server", sockets[number])
            share = Share(cpu, in_hugepages)
            application = start(forwarder_of(chain), pod.host, pod.name, [left, right], share, undo)
            pods.append(pod)
            applications.append(application)
            for interface, port in given.items():
                del ports[port]
                ports[interface] = pod.host
            busy = pollers.setdefault(cpu, [])
            busy += application.pollers()
            for interface in given:
                busy += threads_named(worker.host, f"napi/{interface}-")
        turns = take_turns(worker.host, pollers, undo)

        def describe() -> Mapping[str, Any]:
            return {
                **describe_kernel(worker, pods),
                "packages": package_versions(worker.host, ["dpdk-dev"]),
                "applications": {each.name: each.describe() for each in applications},
                "pollers": turns.describe(),
            }

        # The pods pass frames on as they are.
        return RunningDataPlane({}, ports, describe, [*applications, turns])


def _start_pod(worker: Worker, name: str, given: Mapping[str, str], cpu: int, undo: ExitStack) -> Pod:
    """A pod that gets these ports of the worker, by the name that they have in it."""
    attachments = [
        Attachment(interface, port, [{"type": "host-device", "device": port}]) for interface, port in given.items()
    ]
    pod = worker.pods.start(name, attachments, undo)
    for interface in given:
        # The port's receive thread ended with the move, and a new one begins.
        dedicate_receive_processing(pod.host, interface, cpu)
    return pod
