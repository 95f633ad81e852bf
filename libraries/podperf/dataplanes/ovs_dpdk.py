"""Open vSwitch with DPDK: everything is polled in user space, pods run DPDK applications on vhost-user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

from podperf.dataplanes.base import DataPlane, Worker
from podperf.dataplanes.buffers import refuse_large_frames
from podperf.dataplanes.openvswitch import WITH_DPDK, OpenVSwitch, busy_threads, cpu_mask, missing, poller_cpus
from podperf.dataplanes.sriov_ends import FunctionsAtEnds
from podperf.dataplanes.user_space_ports import leave_one_queue_each, take_ports
from podperf.hosts.base import Host
from podperf.hosts.linux import await_success, package_versions, unix_socket
from podperf.kernel import hugepages, pci
from podperf.kernel.poller_sharing import Turns, take_turns
from podperf.kernel.xdp_sockets import describe_sockets
from podperf.model import Chain, Direction, Entry, NetworkingModel
from podperf.pods.forwarders import FORWARDERS, forwarder_of
from podperf.pods.forwarders.base import POD_MEMORY, Application, Forwarder, Share
from podperf.pods.forwarders.dpdk import MAX_LCORES, START_TIMEOUT, missing_drivers

BRIDGE = "ovs-br0"
DEVICE_DRIVERS = (
    "net_af_xdp",
    "net_af_packet",
)  # for ports that the kernel keeps; the faster first
SWITCH_MEMORY = 256  # MiB; with hugepages for everything, without them beside the ports' buffers
# A port's buffers, as many as Open vSwitch reckons where each port has its own (dpdk_calculate_mbufs): its descriptors,
# a burst, and a reserve. One of 3 008 bytes takes a page of 4 KiB, since none may cross from one page into the next.
DESCRIPTORS, BURST, RESERVE = 2048, 32, 16384
BUFFERS_IN_MIB = 256
QUEUE_SIZE = 1024  # descriptors of a virtio queue: what waits while the other side has no CPU


class OvsDpdk(DataPlane):
    """One bridge; two flows for each segment of the chain.

    The worker's ports are AF_XDP devices of DPDK in the place of a NIC, or AF_PACKET ones where that driver lacks.
    The kernel's receive threads, which fill their rings as a NIC's DMA would, take turns with the pollers.
    """

    name: ClassVar[str] = "ovs-dpdk"
    model: ClassVar[NetworkingModel] = NetworkingModel.USER_SPACE
    forwarders: ClassVar[Sequence[str]] = tuple(FORWARDERS)
    switch_has_cpus: ClassVar[bool] = True

    _worker: Worker
    _switch: OpenVSwitch
    _applications: Sequence[Application]
    _turns: Turns
    _hugepages: bool
    _ports: Mapping[str, str]
    _device_driver: str | None = None

    def __init__(self, ends: FunctionsAtEnds | None = None) -> None:
        self._ends = ends

    @staticmethod
    def unavailable(host: Host) -> str | None:
        if reason := missing(host, WITH_DPDK):
            return reason
        return missing_drivers(host, "net_virtio") or (
            None if _device_driver(host) else missing_drivers(host, *DEVICE_DRIVERS)
        )

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> Mapping[Direction, Entry]:
        refuse_large_frames(worker.mtu, "DPDK")
        self._worker = worker
        self._hugepages = worker.reserve_hugepages(SWITCH_MEMORY + chain.pods * POD_MEMORY, undo)
        pod_cpus = [worker.placement.pods[number % len(worker.placement.pods)] for number in range(chain.pods)]

        # What each end of a pod is: a socket to the switch, or a device beside the switch.
        ends = [f"pod{number}{end}" for number in range(1, chain.pods + 1) for end in "ab"]
        beside = self._ends.beside_switch(chain) if self._ends else {}
        sockets = {end: unix_socket(worker.directory, f"{end}.sock") for end in ends if end not in beside}
        devices = [beside.get(end) or _virtio(place % 2, sockets[end]) for place, end in enumerate(ends)]
        self._applications = []
        for number, cpu in enumerate(pod_cpus):
            own = devices[2 * number : 2 * number + 2]
            forwarder = self._ends.forwarder(own) if self._ends else forwarder_of(chain)
            self._applications.append(self._start_pod(forwarder, f"pod{number + 1}", own, cpu, undo))
        self._ports = {} if beside else self._take_ports(undo)
        # Where no pod polls, while there is such a CPU; with those that poll, threads that control take turns.
        control = worker.placement.pods[chain.pods :] or worker.placement.pods
        self._switch = self._start(worker, control[-1], len(self._ports) + len(sockets), undo)
        self._connect(sockets)
        for pod in self._applications:
            pod.begin()
        self._switch.confine(control)
        pollers = self._switch.pollers()
        for pod, cpu in zip(self._applications, pod_cpus, strict=True):
            pollers.setdefault(cpu, []).extend(pod.pollers())
        self._turns = take_turns(worker.host, busy_threads(worker, pollers), undo)
        return {}  # bridge and pods pass frames on as they are

    def _take_ports(self, undo: ExitStack) -> Mapping[str, str]:
        """The worker's two ports as DPDK has them: by their name on the switch, the device."""
        worker = self._worker
        addresses = take_ports(worker, undo)
        if addresses:
            self._device_driver = pci.FOR_USER_SPACE
            return addresses
        leave_one_queue_each(worker)
        driver = self._device_driver = _device_driver(worker.host)
        ports = {"left": worker.left, "right": worker.right}
        return {name: f"{driver}_{name},iface={port.interface}" for name, port in ports.items()}

    def _connect(self, sockets: Mapping[str, str]) -> None:
        """Add the ports from left to right, and join each two that make a segment."""
        names = [*(["left"] if self._ports else []), *sockets, *(["right"] if self._ports else [])]
        numbers: list[int] = []
        for name, cpu in zip(names, poller_cpus(self._worker.placement.switch, len(names)), strict=True):
            if name in sockets:
                # The pod listens, one device after the other; a switch that finds nobody there tries again after 1 s.
                pod = next(each for each in self._applications if each.name == name[:-1])
                await_success(self._worker.host, pod.process, START_TIMEOUT, "test", "-e", sockets[name])
                settings = {"type": "dpdkvhostuserclient", "options:vhost-server-path": sockets[name]}
            else:
                settings = {"type": "dpdk", "options:dpdk-devargs": self._ports[name]}
            settings["other_config:pmd-rxq-affinity"] = f'"0:{cpu}"'
            numbers += self._switch.add_ports(BRIDGE, {name: settings})
        self._switch.join(BRIDGE, numbers)

    def _start(self, worker: Worker, control: int, ports: int, undo: ExitStack) -> OpenVSwitch:
        allowed = [f"-a {device}" for device in self._ports.values() if pci.ADDRESS.fullmatch(device)]
        extra = " ".join(allowed or ["--no-pci"])
        configuration = {
            "dpdk-init": "true",
            "pmd-cpu-mask": cpu_mask(worker.placement.switch),
        }
        if control < MAX_LCORES:
            configuration["dpdk-lcore-mask"] = cpu_mask([control])
        else:
            extra += f" --lcores=0@{control}"
        if self._hugepages:
            # On every NUMA node: that of a port's card is not always that of the CPU that polls it.
            nodes = hugepages.nodes(worker.host)
            sizes = ",".join(str(SWITCH_MEMORY if node in nodes else 0) for node in range(nodes[-1] + 1))
            configuration |= {"dpdk-socket-mem": sizes, "dpdk-socket-limit": sizes}
            configuration["dpdk-extra"] = f"{extra} --in-memory"
        else:
            # One pool for all ports would have 262 144 buffers, in 1 GiB. Where memory is short, Open vSwitch asks for
            # half of that again and again, but only while DPDK says ENOMEM. With pages of 4 KiB DPDK may say ENOBUFS,
            # depending on where its last free bytes are.
            configuration["per-port-memory"] = "true"
            memory = SWITCH_MEMORY + ports * port_memory(pollers=len(set(worker.placement.switch)))
            configuration["dpdk-extra"] = f"{extra} --no-huge --legacy-mem -m {memory} --iova-mode=va"
        directory = f"{worker.directory}/ovs"
        switch = OpenVSwitch(worker.host, directory, undo, daemon=WITH_DPDK, configuration=configuration)
        switch.vsctl("add-br", BRIDGE, "--", "set", "bridge", BRIDGE, "datapath_type=netdev")
        switch.ofctl("del-flows", BRIDGE)
        return switch

    def _start_pod(
        self, forwarder: Forwarder, name: str, devices: Sequence[str], cpu: int, undo: ExitStack
    ) -> Application:
        pod = self._worker.pods.start(name, [], undo)
        share = Share(cpu, self._hugepages)
        return forwarder.launch(pod.host, pod.name, devices, share, undo)

    def check(self) -> None:
        self._switch.check()
        for pod in self._applications:
            pod.check()
        self._turns.check()

    def describe(self) -> Mapping[str, Any]:
        return {
            "packages": package_versions(self._worker.host, ["openvswitch-switch-dpdk", "dpdk-dev"]),
            "device_driver": self._device_driver,
            "devices": dict(self._ports),
            "memory": f"hugepages of {hugepages.PAGE_MIB} MiB" if self._hugepages else "no hugepages",
            "hugepages_mib": {
                "ovs-vswitchd": hugepages.held(self._worker.host, self._switch.process.pid),
                **{pod.name: hugepages.held(self._worker.host, pod.process.pid) for pod in self._applications},
            },
            "runtime": dict(self._worker.pods.describe()),
            "flows": self._switch.ofctl("dump-flows", "--no-stats", BRIDGE).splitlines(),
            **self._switch.describe_pmds(),
            "sockets": describe_sockets(self._worker.host, self._switch.process.pid),
            "applications": {pod.name: pod.describe() for pod in self._applications},
            "pollers": self._turns.describe(),
        }


def port_memory(pollers: int) -> int:
    """MiB of a port's own buffers: it has a receive queue, and a transmit queue for each poller and for the rest."""
    buffers = DESCRIPTORS * (1 + pollers + 1) + BURST + RESERVE
    return -(-buffers // BUFFERS_IN_MIB)


def _device_driver(host: Host) -> str | None:
    return next((each for each in DEVICE_DRIVERS if not missing_drivers(host, each)), None)


def _virtio(number: int, socket: str) -> str:
    return f"net_virtio_user{number},path={socket},server=1,queue_size={QUEUE_SIZE}"
