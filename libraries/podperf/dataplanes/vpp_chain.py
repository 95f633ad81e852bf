"""Chains whose segments VPP switches. VPP uses the worker's ports by DPDK or as host interfaces, and memif to the pods.

The data planes differ in the way in which VPP forwards within a segment.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar

from podperf.dataplanes.base import DataPlane, RunningDataPlane, Worker, WorkerPort, refuse_large_frames
from podperf.dataplanes.kernel_state import network_of
from podperf.dataplanes.polling_pods import PollingPods, receive_threads, together
from podperf.dataplanes.segments import take_all_frames
from podperf.dataplanes.sriov_ends import FunctionsAtEnds, SriovAndSwitch, Switch
from podperf.dataplanes.user_space_ports import take_ports
from podperf.dataplanes.vpp import Vpp, drives_cards, missing
from podperf.errors import Unavailable
from podperf.hosts.base import Host
from podperf.hosts.linux import package_versions
from podperf.hosts.run_directory import pod_socket
from podperf.model import Chain, Direction, Entry, NetworkingModel
from podperf.pods.forwarders import TRANSPARENT, forwarder_of
from podperf.pods.forwarders.dpdk import MEMIF_RING_SIZE, memif_device, missing_drivers


@dataclass(frozen=True)
class VppInterface:
    """An interface of VPP. `neighbour` is the next MAC behind the interface.

    Behind a port this is the tester's MAC. Behind a pod it is the MAC of VPP's interface on the other side of the pod,
    because the pod forwards frames unchanged.
    """

    name: str
    mac: str
    neighbour: str


@dataclass(frozen=True)
class Segment:
    """The two interfaces of VPP at the ends of a segment. Segment 0 is the leftmost."""

    number: int
    left: VppInterface
    right: VppInterface


def host_interface(port: WorkerPort) -> str:
    """VPP's name of a port of the worker."""
    return f"host-{port.interface}"


def memif_name(pod: int, connection: int) -> str:
    """VPP's name of its end of net1 (connection 0) or net2 (connection 1) of a pod."""
    return f"memif{pod}/{connection}"


def memif_mac(pod: int, connection: int) -> str:
    """The MAC of VPP's end, a locally administered one."""
    return f"02:fe:00:00:{pod:02x}:{connection:02x}"


def segments(worker: Worker, ports: Sequence[str], pods: int) -> list[Segment]:
    """The segments of a chain, from left to right. `ports` are VPP's names of the worker's left and right port.

    A pod forwards frames unchanged. So the next MAC behind an interface is at the far side of the pod.
    """
    left, right = ports
    names, macs = [left], [worker.left.mac]
    for pod in range(1, pods + 1):
        names += [memif_name(pod, connection) for connection in (0, 1)]
        macs += [memif_mac(pod, connection) for connection in (0, 1)]
    names.append(right)
    macs.append(worker.right.mac)
    # Interfaces 2n and 2n + 1 make segment n. A pod joins interfaces 2n - 1 and 2n.
    beyond = [worker.left.peer_mac, *macs[1:-1], worker.right.peer_mac]
    for place in range(1, len(macs) - 1):
        beyond[place] = macs[place + 1] if place % 2 else macs[place - 1]
    ends = [VppInterface(*each) for each in zip(names, macs, beyond, strict=True)]
    return [Segment(place // 2, ends[place], ends[place + 1]) for place in range(0, len(ends), 2)]


class VppChain(DataPlane):
    """VPP with a memif for each pod interface: memif1/0 and memif1/1 are net1 and net2 of the first pod."""

    name: ClassVar[str]
    model: ClassVar[NetworkingModel] = NetworkingModel.USER_SPACE
    takes_tags: ClassVar[bool] = True
    forwarders: ClassVar[Sequence[str]] = TRANSPARENT  # VPP switches by MAC, so pods must not change MACs
    switch_has_cpus: ClassVar[bool] = True
    switch_memory: ClassVar[int] = 128  # that DPDK needs if it drives the ports
    shown: ClassVar[Sequence[str]]  # commands of VPP whose answers show how segments are switched

    def __init__(self, ends: FunctionsAtEnds | None = None) -> None:
        self._ends = ends

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return missing(host) or missing_drivers(host, "net_memif")

    @abstractmethod
    def connect(self, vpp: Vpp, worker: Worker, segment: Segment) -> None:
        """Forward frames between the two interfaces of one segment, in both directions."""

    def entries(self, worker: Worker) -> Mapping[Direction, Entry]:
        """The destination of frames. Without routing, it is the MAC of the tester's other port."""
        return {}

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        refuse_large_frames(worker.mtu, "memif")
        # With workers, VPP's main thread only answers questions. No worker may be on its core.
        main, workers = worker.cpus.main_and_workers
        beside = self._ends.beside_switch(chain) if self._ends else {}
        devices = take_ports(worker, undo) if not beside and drives_cards(worker.host) else {}
        polling = PollingPods(worker, chain, undo, switch_memory=self.switch_memory * bool(devices))
        directory, pages = f"{worker.directory}/vpp", polling.in_hugepages
        vpp = Vpp(worker.host, directory, main, workers, undo, devices, pages=pages)
        pollers = vpp.pollers()
        for name in devices:
            vpp.configure(f"set interface state {name} up")
            vpp.configure(f"set interface promiscuous on {name}")
        if not devices and not beside:
            pollers = together(pollers, _share_ports(worker, vpp))
        for number in range(1, chain.pods + 1):
            own = _attach(worker, vpp, number, beside)
            forwarder = self._ends.forwarder(own) if self._ends else forwarder_of(chain)
            polling.start(forwarder, worker.pods.start(f"pod{number}", [], undo), own)
        names = tuple(devices) or tuple(map(host_interface, (worker.left, worker.right)))
        along = segments(worker, names, chain.pods)
        for segment in along[1:-1] if beside else along:
            self.connect(vpp, worker, segment)
        running = polling.running(
            together(pollers, *polling.pollers()),
            lambda: self._describe(worker, vpp),
            entries=self.entries(worker),
            ports={} if devices else worker.ports,
            switch=[vpp],
            beside_pods=[vpp.cpu_user(), *([] if devices or beside else worker.kernel_users)],
        )
        vpp.configure("clear runtime")
        return running

    def _describe(self, worker: Worker, vpp: Vpp) -> Mapping[str, Any]:
        return {
            "kernel": worker.host.ask("uname", "-r").stdout.strip(),
            "packages": package_versions(worker.host, ["vpp", "dpdk-dev"]),
            "runtime": dict(worker.pods.describe()),
            "worker": network_of(worker.host, worker.addresses),
            "vpp": vpp.describe() | {question: vpp.ask(question) for question in self.shown},
        }


def _share_ports(worker: Worker, vpp: Vpp) -> Mapping[int, Sequence[int]]:
    """Give VPP the worker's two ports as host interfaces. Returns the kernel's threads that receive for them."""
    take_all_frames(worker)
    threads = []
    for port, cpu in worker.receiving:
        vpp.create(
            f"create host-interface name {port.interface} hw-addr {port.mac} cksum-gso-disable",
            host_interface(port),
        )
        # The kernel copies frames into af_packet's rings. This work belongs to the system under test: it takes turns,
        # too.
        threads.append(receive_threads(worker.host, port.interface, cpu, assumed=0 if port.pci else 1))
    return together(*threads)


def _attach(worker: Worker, vpp: Vpp, number: int, beside: Mapping[str, str]) -> list[str]:
    """Make VPP's ends of a pod's memifs. Returns the pod's devices: its memif ends, or its devices in `beside`."""
    socket = pod_socket(worker.directory, f"memif{number}.sock")
    vpp.configure(f"create memif socket id {number} filename {socket}")
    devices = []
    for connection, end in enumerate("ab"):
        if device := beside.get(f"pod{number}{end}"):
            devices.append(device)
            continue
        interface = f"id {connection} socket-id {number} hw-addr {memif_mac(number, connection)}"
        vpp.create(
            f"create interface memif {interface} master ring-size {2**MEMIF_RING_SIZE}",
            memif_name(number, connection),
        )
        devices.append(memif_device(connection, "client", socket, connection))
    return devices


class VppL2Patch(VppChain):
    """Layer 2 patches: frames from one interface leave by the other one without a look-up.

    The repository of the draft's authors also uses them.
    """

    name: ClassVar[str] = "vpp-l2patch"
    shown: ClassVar[Sequence[str]] = ("show l2patch",)

    def connect(self, vpp: Vpp, worker: Worker, segment: Segment) -> None:
        for one, other in ((segment.left, segment.right), (segment.right, segment.left)):
            vpp.configure(f"test l2patch rx {one.name} tx {other.name}")


class VppBridgeDomain(VppChain):
    """A bridge domain for each segment: VPP switches frames by their destination MAC.

    Each domain has the tester's MACs as static entries. VPP never learns the MAC of a port that only receives, and
    would flood all frames for it.
    """

    name: ClassVar[str] = "vpp-bridge-domain"
    shown: ClassVar[Sequence[str]] = ("show bridge-domain", "show l2fib all")

    def connect(self, vpp: Vpp, worker: Worker, segment: Segment) -> None:
        domain = segment.number + 1  # 0 is VPP's own
        vpp.do(f"create bridge-domain {domain}")
        for interface, tester in ((segment.left, worker.left.peer_mac), (segment.right, worker.right.peer_mac)):
            vpp.configure(f"set interface l2 bridge {interface.name} {domain}")
            vpp.configure(f"l2fib add {tester} {domain} {interface.name} static")


class VppVrf(VppChain):
    """A VRF for each segment: VPP routes frames by destination, and rewrites the MACs.

    The two interfaces of a segment are in its VRF and have no addresses. Neighbours are static entries.
    """

    name: ClassVar[str] = "vpp-vrf"
    shown: ClassVar[Sequence[str]] = ("show ip fib summary", "show ip6 fib summary", "show ip neighbors")

    def connect(self, vpp: Vpp, worker: Worker, segment: Segment) -> None:
        if worker.headers.left:
            raise Unavailable(f"{self.name} routes frames without VLAN tags: podperf gives VPP no sub-interfaces")
        vrf = segment.number + 1  # 0 is the default VRF
        addresses, ip = worker.addresses, worker.addresses.ip
        vpp.configure(f"{ip} table add {vrf}")
        # From VPP, the next hop to the left is the left end of the segment, and to the right the right end.
        for interface, hop, network in (
            (segment.left, addresses.left_of(segment.number), addresses.left),
            (segment.right, addresses.right_of(segment.number), addresses.right),
        ):
            vpp.configure(f"set interface {ip} table {interface.name} {vrf}")
            vpp.configure(f"enable ip{addresses.version} interface {interface.name}")
            vpp.configure(f"set ip neighbor {interface.name} {hop} {interface.neighbour} static")
            vpp.configure(f"ip route add {network} table {vrf} via {hop} {interface.name}")

    def entries(self, worker: Worker) -> Mapping[Direction, Entry]:
        return worker.entries


class SriovVpp(SriovAndSwitch):
    """Virtual functions to and from the network, VPP and memif between the pods.

    The hackathon at IETF 113 measured this set-up as SR-IOV + VPP.
    """

    name: ClassVar[str] = "sriov-vpp"
    switch: ClassVar[type[Switch]] = VppL2Patch
