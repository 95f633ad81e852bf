"""Chains whose segments VPP switches. VPP uses the worker's ports by DPDK or as host interfaces, and memif to the pods.

The data planes of VPP differ in the way in which VPP forwards within a segment.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

from podperf.dataplanes.base import DataPlane, RunningDataPlane, Worker
from podperf.dataplanes.buffers import refuse_large_frames
from podperf.dataplanes.kernel_state import network_of
from podperf.dataplanes.polling_pods import PollingPods, receive_threads, together
from podperf.dataplanes.segments import take_all_frames
from podperf.dataplanes.sriov_ends import FunctionsAtEnds
from podperf.dataplanes.user_space_ports import take_ports
from podperf.dataplanes.vpp import Vpp, drives_cards, missing
from podperf.dataplanes.vpp_segments import Segment, host_interface, memif_mac, memif_name, segments
from podperf.hosts.base import Host
from podperf.hosts.linux import package_versions
from podperf.hosts.run_directory import pod_socket
from podperf.model import Chain, Direction, Entry, NetworkingModel
from podperf.pods import memif
from podperf.pods.forwarders import TRANSPARENT, forwarder_of
from podperf.pods.forwarders.dpdk import missing_drivers


class VppChain(DataPlane):
    """VPP with a memif for each pod interface: memif1/0 and memif1/1 are net1 and net2 of the first pod."""

    name: ClassVar[str]
    model: ClassVar[NetworkingModel] = NetworkingModel.USER_SPACE
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
            "worker": network_of(worker.host),
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
        threads.append(receive_threads(worker.host, port.interface, cpu))
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
            f"create interface memif {interface} master ring-size {2**memif.RING_SIZE}",
            memif_name(number, connection),
        )
        devices.append(memif.dpdk_device(connection, "client", socket, connection))
    return devices
