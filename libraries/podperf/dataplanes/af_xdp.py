"""Pods on AF_XDP sockets. No other pod uses a pod's interfaces; its DPDK application takes frames from their XDP hook.

The CNI plug-in `host-device` moves the worker's ports into the first and the last pod, as the AF_XDP device plug-in of
Kubernetes does with a NIC. A veth pair joins two pods. There is no switch, and no network stack in the pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import ClassVar

from podperf.dataplanes.base import DataPlane, PodQueues, RunningDataPlane, Worker, refuse_large_frames
from podperf.dataplanes.kernel_state import describe_kernel
from podperf.dataplanes.polling_pods import PollingPods, forwarder_in, receive_threads, together
from podperf.dataplanes.user_space_ports import AF_XDP_CAPABILITIES, leave_queues_each, start_pods_with_ports
from podperf.hosts.base import Host
from podperf.hosts.linux import write_attribute
from podperf.kernel.thread_time import kernel_users
from podperf.kernel.threads import dedicate_receive_processing
from podperf.model import Chain, NetworkingModel
from podperf.pods.base import Pod
from podperf.pods.cni import CniPlugins
from podperf.pods.forwarders import FORWARDERS
from podperf.pods.forwarders.base import Application
from podperf.pods.forwarders.dpdk import missing_drivers


class AfXdp(DataPlane):
    """The kernel fills the sockets from a port's receive thread, which takes turns with the pod's poller on one CPU."""

    name: ClassVar[str] = "af-xdp"
    takes_tags: ClassVar[bool] = True
    model: ClassVar[NetworkingModel] = NetworkingModel.EBPF
    no_end_in_pod: ClassVar[str] = ""
    program_at_ends: ClassVar[bool] = True
    forwarders: ClassVar[Sequence[str]] = tuple(FORWARDERS)
    pod_queues: ClassVar[PodQueues] = PodQueues.BY_CARD
    program_capabilities: ClassVar[tuple[str, ...]] = AF_XDP_CAPABILITIES
    busy_budget: ClassVar[int] = 0  # most frames that one busy-poll call takes; 0: no busy polling
    interface_settings: ClassVar[Mapping[str, int]] = {}

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return missing_drivers(host, "net_af_xdp") or CniPlugins(host).missing("host-device")

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        refuse_large_frames(worker.mtu, "an AF_XDP socket")
        leave_queues_each(worker, worker.cpus.allocation.cpus)
        pods, ports = start_pods_with_ports(worker, chain.pods, undo)
        for left, right in pairwise(pods):
            right.add_veth("net1", left.host, "net2", worker.mtu)
        outer: dict[str, tuple[int, ...]] = {
            "net1": (worker.cpus.receives_left,),
            "net2": (worker.cpus.receives_right,),
        }
        if further := worker.cpus.further_of(0):  # a queue of the card for each CPU of the only pod
            outer = dict.fromkeys(outer, (worker.cpus.pods[0], *further))
        for interface, own in outer.items():
            dedicate_receive_processing(ports[interface], interface, *own)
        polling = PollingPods(worker, chain, undo)
        for pod in pods:
            for interface in ("net1", "net2"):
                self._prepare(pod, interface)
            queues = worker.cpus.allocation.cpus
            several = f",start_queue=0,queue_count={queues}" if queues > 1 else ""
            devices = [
                f"net_af_xdp{port},iface=net{port + 1}{several},busy_budget={self.busy_budget}" for port in (0, 1)
            ]
            polling.launch(forwarder_in(worker, chain, pod), pod, devices)
        polling.begin()
        receiving = (receive_threads(worker.host, interface, *own) for interface, own in outer.items())
        return polling.running(
            together(*polling.pollers(), *receiving),
            lambda: describe_kernel(worker, pods),
            ports=ports,
            describe_application=lambda each: {**each.describe(), "sockets": each.sockets()},
            not_in_force=lambda: self._not_in_force(polling.applications),
            beside_pods=kernel_users(ports, (cpu for own in outer.values() for cpu in own)),
        )

    def _prepare(self, pod: Pod, interface: str) -> None:
        pod.host.do("ethtool", "-K", interface, "gro", "on")  # gives a veth its NAPI context
        for attribute, value in self.interface_settings.items():
            write_attribute(pod.host, interface, attribute, value)

    def _not_in_force(self, applications: Sequence[Application]) -> str | None:
        return None


class AfXdpBusyPoll(AfXdp):
    """With preferred busy polling: the application's own calls run the driver, and the kernel defers interrupts.

    A socket needs the NAPI context of its queue. Before Linux 6.14 the kernel took the context from the first frame.
    Now it takes the context from the queue when a socket is bound (netif_queue_set_napi), and veth sets none there.
    """

    name: ClassVar[str] = "af-xdp-busy-poll"
    busy_budget: ClassVar[int] = 64  # DPDK's own default
    # The values of DPDK's guide to this driver: after 200 us without a poll, the kernel takes frames itself.
    interface_settings: ClassVar[Mapping[str, int]] = {"napi_defer_hard_irqs": 2, "gro_flush_timeout": 200_000}

    def _not_in_force(self, applications: Sequence[Application]) -> str | None:
        pods = [application.sockets() for application in applications]
        if not all(socket["prefers_busy_polling"] for sockets in pods for socket in sockets):
            return "the kernel's AF_XDP sockets, or DPDK's driver for them, cannot prefer busy polling"
        # A socket knows its NAPI context after its first frame at the latest. With frames from one side only, a socket
        # that receives none may never know.
        if not all(any(socket["has_napi"] for socket in sockets) for sockets in pods):
            return (
                "the driver of these interfaces gives AF_XDP sockets no NAPI context, so there is nothing to busy-poll"
            )
        return None
