"""Chains whose segments VPP switches: the worker's ports by DPDK or host interfaces, memif to applications in the pods.

How VPP forwards within a segment is what tells its data planes apart.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar

from podperf.dataplanes.base import DataPlane, Worker, WorkerPort
from podperf.dataplanes.buffers import refuse_large_frames
from podperf.dataplanes.kernel_state import network_of
from podperf.dataplanes.segments import take_all_frames
from podperf.dataplanes.sriov_ends import FunctionsAtEnds
from podperf.dataplanes.user_space_ports import take_ports
from podperf.dataplanes.vpp import Vpp, drives_cards, missing
from podperf.hosts.base import Host
from podperf.hosts.linux import package_versions, threads_named, unix_socket
from podperf.kernel.poller_sharing import Turns, take_turns
from podperf.model import Chain, Direction, Entry, NetworkingModel
from podperf.pods import memif
from podperf.pods.forwarders import TRANSPARENT, forwarder_of
from podperf.pods.forwarders.base import POD_MEMORY, Application, Share, start
from podperf.pods.forwarders.dpdk import missing_drivers

SWITCH_MEMORY = 128  # MiB that DPDK needs where it drives the ports


@dataclass(frozen=True)
class VppInterface:
    """An interface of VPP, and the MAC of whoever is next behind it: the tester, or beyond a pod VPP itself again."""

    name: str
    mac: str
    neighbour: str


@dataclass(frozen=True)
class Segment:
    """The two interfaces of VPP between which a segment's frames pass; number 0 is the leftmost."""

    number: int
    left: VppInterface
    right: VppInterface


class VppChain(DataPlane):
    """VPP with a memif for each pod interface: memif1/0 and memif1/1 are net1 and net2 of the first pod."""

    name: ClassVar[str]
    model: ClassVar[NetworkingModel] = NetworkingModel.USER_SPACE
    forwarders: ClassVar[Sequence[str]] = TRANSPARENT  # frames are switched by the MACs that they came with
    switch_has_cpus: ClassVar[bool] = True
    shown: ClassVar[Sequence[str]]  # the questions whose answers show how segments are switched

    _worker: Worker
    vpp: Vpp
    applications: list[Application]
    _turns: Turns

    def __init__(self, ends: FunctionsAtEnds | None = None) -> None:
        self._ends = ends

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return missing(host) or missing_drivers(host, "net_memif")

    @abstractmethod
    def connect(self, vpp: Vpp, worker: Worker, segment: Segment) -> None:
        """Let the frames of one segment pass between its two interfaces, in both directions."""

    def entries(self, worker: Worker) -> Mapping[Direction, Entry]:
        """How frames must be addressed. Switched below layer 3 they go straight to the tester's other port."""
        return {}

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> Mapping[Direction, Entry]:
        refuse_large_frames(worker.mtu, "memif")
        switch, pod_cpus = worker.placement.switch, worker.placement.pods
        # Its main thread only answers questions once it has workers. No worker may be on its core, so where the switch
        # leaves no CPU it has the first of the switch's; with a single CPU there are no workers.
        cpus = switch if set(switch) >= set(worker.cpus) else (pod_cpus[-1], *switch)
        beside = self._ends.beside_switch(chain) if self._ends else {}
        devices = take_ports(worker, undo) if not beside and drives_cards(worker.host) else {}
        in_hugepages = worker.reserve_hugepages(SWITCH_MEMORY * bool(devices) + chain.pods * POD_MEMORY, undo)
        vpp = Vpp(worker.host, f"{worker.directory}/vpp", cpus, undo, devices, in_hugepages=in_hugepages)
        self._worker, self.vpp, self.applications = worker, vpp, []
        pollers = vpp.pollers()
        for name in devices:
            vpp.configure(f"set interface state {name} up")
            vpp.configure(f"set interface promiscuous on {name}")
        if not devices and not beside:
            self._share_ports(pollers)
        for number in range(1, chain.pods + 1):
            cpu = pod_cpus[(number - 1) % len(pod_cpus)]
            self.applications.append(self._start_pod(chain, number, beside, Share(cpu, in_hugepages), undo))
            pollers.setdefault(cpu, []).extend(self.applications[-1].pollers())
        names = tuple(devices) or tuple(map(host_interface, (worker.left, worker.right)))
        along = segments(worker, names, chain.pods)
        for segment in along[1:-1] if beside else along:
            self.connect(vpp, worker, segment)
        self._turns = take_turns(worker.host, pollers, undo)
        vpp.configure("clear runtime")
        return self.entries(worker)

    def _share_ports(self, pollers: dict[int, list[int]]) -> None:
        """Give VPP the worker's two ports by way of the kernel, whose threads that poll for them join the pollers."""
        worker = self._worker
        take_all_frames(worker)
        for port, cpu in ((worker.left, worker.cpus[0]), (worker.right, worker.cpus[-1])):
            self.vpp.create(
                f"create host-interface name {port.interface} hw-addr {port.mac} cksum-gso-disable",
                host_interface(port),
            )
            # The kernel's copying into af_packet's rings is work of the system under test, so it has its turns, too.
            pollers.setdefault(cpu, []).extend(threads_named(worker.host, f"napi/{port.interface}-"))

    def _start_pod(
        self, chain: Chain, number: int, beside: Mapping[str, str], share: Share, undo: ExitStack
    ) -> Application:
        worker, vpp = self._worker, self.vpp
        name = f"pod{number}"
        socket = unix_socket(worker.directory, f"memif{number}.sock")
        vpp.configure(f"create memif socket id {number} filename {socket}")
        devices = []
        for connection, end in enumerate("ab"):
            if device := beside.get(f"{name}{end}"):
                devices.append(device)
                continue
            interface = f"id {connection} socket-id {number} hw-addr {memif_mac(number, connection)}"
            vpp.create(
                f"create interface memif {interface} master ring-size {2**memif.RING_SIZE}",
                memif_name(number, connection),
            )
            devices.append(memif.dpdk_device(connection, "client", socket, connection))
        pod = worker.pods.start(name, [], undo)
        forwarder = self._ends.forwarder(devices) if self._ends else forwarder_of(chain)
        return start(forwarder, pod.host, name, devices, share, undo)

    def check(self) -> None:
        """PodperfError when VPP or the application of a pod is gone."""
        self.vpp.check()
        for application in self.applications:
            application.check()
        self._turns.check()

    def describe(self) -> Mapping[str, Any]:
        return {
            "kernel": self._worker.host.run("uname", "-r").stdout.strip(),
            "packages": package_versions(self._worker.host, ["vpp", "dpdk-dev"]),
            "runtime": dict(self._worker.pods.describe()),
            "worker": network_of(self._worker.host),
            "vpp": self.vpp.describe() | {question: self.vpp.ask(question) for question in self.shown},
            "applications": {each.name: each.describe() for each in self.applications},
            "pollers": self._turns.describe(),
        }


def host_interface(port: WorkerPort) -> str:
    """What VPP calls a port of the worker."""
    return f"host-{port.interface}"


def memif_name(pod: int, connection: int) -> str:
    """What VPP calls its end of net1 (0) or net2 (1) of a pod."""
    return f"memif{pod}/{connection}"


def memif_mac(pod: int, connection: int) -> str:
    """The MAC of VPP's end; locally administered."""
    return f"02:fe:00:00:{pod:02x}:{connection:02x}"


def segments(worker: Worker, ports: Sequence[str], pods: int) -> list[Segment]:
    """The segments of a chain, from left to right; `ports` is what VPP calls the worker's two.

    A pod passes frames on as they are, so its far side is the next.
    """
    left, right = ports
    names, macs = [left], [worker.left.mac]
    for pod in range(1, pods + 1):
        names += [memif_name(pod, connection) for connection in (0, 1)]
        macs += [memif_mac(pod, connection) for connection in (0, 1)]
    names.append(right)
    macs.append(worker.right.mac)
    # Interfaces 2n and 2n + 1 make segment n; beyond 2n, through a pod, lies 2n - 1, and beyond 2n + 1 lies 2n + 2.
    beyond = [worker.left.peer_mac, *macs[1:-1], worker.right.peer_mac]
    for place in range(1, len(macs) - 1):
        beyond[place] = macs[place + 1] if place % 2 else macs[place - 1]
    ends = [VppInterface(*each) for each in zip(names, macs, beyond, strict=True)]
    return [Segment(place // 2, ends[place], ends[place + 1]) for place in range(0, len(ends), 2)]
