"""Pods on AF_XDP sockets: each has its interfaces to itself, and its DPDK application takes frames off their XDP hook.

The worker's ports are moved into the first and the last pod by the CNI plug-in `host-device`, as the AF_XDP device
plug-in of Kubernetes does with a NIC; between two pods lies a veth pair. No switch, and no network stack in the pods.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import Any, ClassVar

from podperf.dataplanes.base import DataPlane, Worker, WorkerPort
from podperf.dataplanes.buffers import refuse_large_frames
from podperf.dataplanes.kernel_state import describe_kernel
from podperf.dataplanes.user_space_ports import leave_one_queue_each
from podperf.errors import Unavailable
from podperf.hosts.base import Host
from podperf.hosts.linux import add_veth, dedicate_receive_processing, threads_named, write_attribute
from podperf.kernel.poller_sharing import Turns, take_turns
from podperf.kernel.xdp_sockets import describe_sockets
from podperf.model import Chain, Direction, Entry, NetworkingModel
from podperf.pods.base import Attachment, Pod
from podperf.pods.cni import CniPlugins
from podperf.pods.forwarders import FORWARDERS, forwarder_of
from podperf.pods.forwarders.base import POD_MEMORY, Application, Share
from podperf.pods.forwarders.dpdk import missing_drivers


class AfXdp(DataPlane):
    """The kernel fills the sockets from a port's receive thread, which takes turns with the pod's poller on one CPU."""

    name: ClassVar[str] = "af-xdp"
    model: ClassVar[NetworkingModel] = NetworkingModel.EBPF
    forwarders: ClassVar[Sequence[str]] = tuple(FORWARDERS)
    busy_budget: ClassVar[int] = 0  # frames a call that the application polls the driver for; 0: it does not
    interface_settings: ClassVar[Mapping[str, int]] = {}

    _worker: Worker
    _pods: Sequence[Pod]
    _applications: list[Application]
    _turns: Turns

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return missing_drivers(host, "net_af_xdp") or CniPlugins(host).missing("host-device")

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> Mapping[Direction, Entry]:
        refuse_large_frames(worker.mtu, "an AF_XDP socket")
        leave_one_queue_each(worker)
        self._worker, self._pods = worker, self._start_pods(worker, chain, undo)
        self._applications = []
        in_hugepages = worker.reserve_hugepages(chain.pods * POD_MEMORY, undo)
        pollers: defaultdict[int, list[int]] = defaultdict(list)
        cpus = [worker.cpus[number % len(worker.cpus)] for number in range(chain.pods)]
        for pod, cpu in zip(self._pods, cpus, strict=True):
            for interface in ("net1", "net2"):
                self._prepare(pod, interface)
            devices = [f"net_af_xdp{port},iface=net{port + 1},busy_budget={self.busy_budget}" for port in (0, 1)]
            share = Share(cpu, in_hugepages)
            self._applications.append(forwarder_of(chain).launch(pod.host, pod.name, devices, share, undo))
        for application, cpu in zip(self._applications, cpus, strict=True):
            application.begin()
            pollers[cpu] += application.pollers()
        for interface, cpu in (("net1", worker.cpus[0]), ("net2", worker.cpus[-1])):
            pollers[cpu] += threads_named(worker.host, f"napi/{interface}-")
        self._turns = take_turns(worker.host, pollers, undo)
        return {}

    def _start_pods(self, worker: Worker, chain: Chain, undo: ExitStack) -> list[Pod]:
        pods = []
        for number in range(1, chain.pods + 1):
            attachments = [self._port("net1", worker.left)] if number == 1 else []
            attachments += [self._port("net2", worker.right)] if number == chain.pods else []
            pods.append(worker.pods.start(f"pod{number}", attachments, undo))
        for left, right in pairwise(pods):
            ends = {"near_namespace": left.namespace, "far_namespace": right.namespace}
            add_veth(worker.host, near="net2", far="net1", mtu=worker.mtu, **ends)
        worker.ports.clear()
        worker.ports.update({"net1": pods[0].host, "net2": pods[-1].host})
        # A port's receive thread ended with the move, and a new one began.
        dedicate_receive_processing(pods[0].host, "net1", worker.cpus[0])
        dedicate_receive_processing(pods[-1].host, "net2", worker.cpus[-1])
        return pods

    def _port(self, interface: str, port: WorkerPort) -> Attachment:
        return Attachment(interface, port.interface, [{"type": "host-device", "device": port.interface}])

    def _prepare(self, pod: Pod, interface: str) -> None:
        pod.host.run("ethtool", "-K", interface, "gro", "on")  # gives a veth its NAPI context
        for attribute, value in self.interface_settings.items():
            write_attribute(pod.host, interface, attribute, value)

    def check(self) -> None:
        """PodperfError when an application is gone."""
        for application in self._applications:
            application.check()
        self._turns.check()

    def describe(self) -> Mapping[str, Any]:
        return describe_kernel(self._worker, self._pods) | {
            "applications": {
                each.name: dict(each.describe()) | {"sockets": describe_sockets(each.host, each.process.pid)}
                for each in self._applications
            },
            "pollers": self._turns.describe(),
        }


class AfXdpBusyPoll(AfXdp):
    """With preferred busy polling: the application's own calls run the driver, and interrupts are held back meanwhile.

    Needs a driver that tells sockets their NAPI context. veth does not since Linux 6.14, which takes it from the queue
    when a socket is bound (netif_queue_set_napi), no longer from the first frame.
    """

    name: ClassVar[str] = "af-xdp-busy-poll"
    busy_budget: ClassVar[int] = 64  # DPDK's own default
    # As DPDK's guide to this driver has them: the kernel steps in after 200 us without a poll.
    interface_settings: ClassVar[Mapping[str, int]] = {"napi_defer_hard_irqs": 2, "gro_flush_timeout": 200_000}

    def describe(self) -> Mapping[str, Any]:
        pods = [describe_sockets(each.host, each.process.pid) for each in self._applications]
        if not all(each["prefers_busy_polling"] for sockets in pods for each in sockets):
            raise Unavailable("the kernel's AF_XDP sockets, or DPDK's driver for them, cannot prefer busy polling")
        # A socket knows after the first frame at the latest, so not before the chain was seen to forward; one at which
        # none arrives, with frames from one side only, may never know.
        if not all(any(each["has_napi"] for each in sockets) for sockets in pods):
            raise Unavailable(
                "the driver of these interfaces gives AF_XDP sockets no NAPI context, so there is nothing to busy-poll"
            )
        return super().describe()
