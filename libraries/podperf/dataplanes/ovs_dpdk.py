"""Open vSwitch with DPDK. Switch and pods poll in user space; the pods run DPDK applications on vhost-user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from podperf.dataplanes.base import DataPlane, PodQueues, RunningDataPlane, Worker, refuse_large_frames
from podperf.dataplanes.kernel_state import network_of
from podperf.dataplanes.openvswitch import WITH_DPDK, OpenVSwitch, busy_threads, cpu_mask, entries_of_chains, missing
from podperf.dataplanes.polling_pods import PollingPods, together
from podperf.dataplanes.segments import forward_along, start_pods_on_veth
from podperf.dataplanes.sriov_ends import FunctionsAtEnds, SriovAndSwitch, Switch
from podperf.dataplanes.user_space_ports import leave_queues_each, move_into_pod, take_ports
from podperf.errors import Unavailable
from podperf.hosts.base import Host
from podperf.hosts.linux import package_versions
from podperf.hosts.run_directory import pod_socket
from podperf.kernel import hugepages, pci
from podperf.kernel.threads import dedicate_receive_processing
from podperf.kernel.xdp_sockets import describe_sockets
from podperf.model import Chain, NetworkingModel, PageSize
from podperf.pods.base import Pod
from podperf.pods.forwarders import FORWARDERS, MIXED, USUAL, forwarder_of
from podperf.pods.forwarders.base import ORDINARY_MTU, Application
from podperf.pods.forwarders.dpdk import MAX_LCORES, START_TIMEOUT, missing_drivers

DEVICE_DRIVERS = ("net_af_xdp", "net_af_packet")  # for ports that the kernel keeps; the faster driver first
SWITCH_MEMORY = 256  # MiB: with hugepages for everything, without hugepages for everything but the ports' buffers
# Open vSwitch counts the buffers of a port by this sum (dpdk_calculate_mbufs): descriptors, a burst, and a reserve. A
# buffer for an ordinary MTU has 3 008 bytes and takes a page of 4 KiB, because a buffer must not cross the border of
# two pages.
DESCRIPTORS, BURST, RESERVE = 2048, 32, 16384
BESIDE_PACKET = 1508  # bytes of such a buffer beside the packet
PAGE = 4096  # bytes


@dataclass(frozen=True)
class Ports:
    """The worker's ports for DPDK. `devices` has each port's DPDK device by its name on the switch."""

    devices: Mapping[str, str] = field(default_factory=dict)
    driver: str | None = None

    @property
    def of_kernel(self) -> bool:
        """Whether the kernel keeps the ports."""
        return self.driver != pci.FOR_USER_SPACE

    def beside(self, host: Host, interfaces: Sequence[str]) -> Ports:
        """These ports, and devices on interfaces of the kernel, by the names of the interfaces."""
        driver = device_driver(host)
        of_kernel = {name: f"{driver}_{name},iface={name}" for name in interfaces}
        return replace(self, devices={**self.devices, **of_kernel})


def ports_of(worker: Worker, undo: ExitStack) -> Ports:
    """Both ports: the NIC's own devices until `undo`, or devices on the kernel's interfaces.

    The switch has no port that leads to a pod at an end: it has a socket to this pod.
    """
    if addresses := take_ports(worker, undo):
        return Ports(addresses, pci.FOR_USER_SPACE)
    refuse_large_frames(worker.mtu, "a device of DPDK on a port that the kernel keeps")
    leave_queues_each(worker)
    driver = device_driver(worker.host)
    ports = {"left": worker.left, "right": worker.right}
    devices = {name: f"{driver}_{name},iface={port.interface}" for name, port in ports.items() if port.end_pod is None}
    return Ports(devices, driver if devices else None)


def device_driver(host: Host) -> str | None:
    """DPDK's driver for ports that the kernel keeps. None if the host has no such driver."""
    return next((each for each in DEVICE_DRIVERS if not missing_drivers(host, each)), None)


def configuration(worker: Worker, ports: Ports, sockets: int, *, pages: PageSize) -> dict[str, str]:
    """The `other_config` of a switch with these ports and `sockets` sockets to pods."""
    host, pollers, main = worker.host, worker.cpus.switch, worker.cpus.main
    allowed = [f"-a {device}" for device in ports.devices.values() if pci.ADDRESS.fullmatch(device)]
    extra = " ".join(allowed or ["--no-pci"])
    settings = {"dpdk-init": "true", "pmd-cpu-mask": cpu_mask(pollers)}
    if main < MAX_LCORES:
        settings["dpdk-lcore-mask"] = cpu_mask([main])
    else:
        extra += f" --lcores=0@{main}"
    if pages:
        # Every NUMA node gets memory, because a card and the CPU that polls it may be on different nodes.
        nodes, whole = hugepages.nodes(host, pages), max(SWITCH_MEMORY, pages)
        sizes = ",".join(str(whole if node in nodes else 0) for node in range(nodes[-1] + 1))
        settings |= {"dpdk-socket-mem": sizes, "dpdk-socket-limit": sizes}
        settings["dpdk-extra"] = f"{extra} --in-memory"
    else:
        # One pool for all ports would have 262 144 buffers, in 1 GiB. If memory is short, Open vSwitch halves the pool
        # until it fits, but only while the error is ENOMEM. With pages of 4 KiB the error may also be ENOBUFS.
        settings["per-port-memory"] = "true"
        memory = SWITCH_MEMORY + (len(ports.devices) + sockets) * port_memory(len(set(pollers)), worker.mtu)
        settings["dpdk-extra"] = f"{extra} --no-huge --legacy-mem -m {memory} --iova-mode=va"
    return settings


def port_memory(pollers: int, mtu: int = ORDINARY_MTU) -> int:
    """MiB of a port's own buffers. A port has a receive queue, a transmit queue for each poller, and one for all other
    threads."""
    buffers = DESCRIPTORS * (1 + pollers + 1) + BURST + RESERVE
    pages = -(-(mtu + BESIDE_PACKET) // PAGE)
    return -(-buffers * pages * PAGE // 2**20)


BRIDGE = "ovs-br0"
QUEUE_SIZE = 1024  # descriptors of a virtio queue: as many frames can wait while the other side has no CPU


class OvsDpdk(DataPlane):
    """One bridge; two flows for each segment of the chain. Addresses tell several chains apart.

    Worker's ports that are no NIC's are AF_XDP devices of DPDK, or AF_PACKET devices if DPDK has no AF_XDP driver.
    The kernel's receive threads fill the rings of these devices, as a NIC's DMA would, and take turns with the pollers.
    """

    name: ClassVar[str] = "ovs-dpdk"
    takes_tags: ClassVar[bool] = True
    model: ClassVar[NetworkingModel] = NetworkingModel.USER_SPACE
    no_end_in_pod: ClassVar[str] = ""
    no_end_in_container: ClassVar[str] = ""
    program_at_ends: ClassVar[bool] = True
    forwarders: ClassVar[Sequence[str]] = (*FORWARDERS, MIXED)
    switch_has_cpus: ClassVar[bool] = True
    pod_queues: ClassVar[PodQueues] = PodQueues.BY_SWITCH
    switch_memory: ClassVar[int] = SWITCH_MEMORY
    several_chains: ClassVar[bool] = True

    def __init__(self, ends: FunctionsAtEnds | None = None) -> None:
        self._ends = ends

    @staticmethod
    def unavailable(host: Host) -> str | None:
        if reason := missing(host, WITH_DPDK):
            return reason
        return missing_drivers(host, "net_virtio") or (
            None if device_driver(host) else missing_drivers(host, *DEVICE_DRIVERS)
        )

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        if worker.ports_to_ends and worker.cpus.allocation.cpus > 1:
            raise Unavailable(f"{chain}: a pod at an end polls on one CPU, as its interface is a veth with one queue")
        polling = PollingPods(worker, chain, undo, switch_memory=self.switch_memory)
        # Each end of a pod is a socket to the switch, or a device beside the switch.
        polled = chain.all_pods - pods_in_kernel(chain)
        ends = [f"pod{number}{end}" for number in range(1, polled + 1) for end in "ab"]
        beside = self._ends.beside_switch(chain) if self._ends else {}
        at_ends = worker.ports_to_ends
        joined = [*at_ends, *(end for end in ends if end not in beside)]
        sockets = {end: pod_socket(worker.directory, f"{end}.sock") for end in joined}
        queues = worker.cpus.allocation.cpus
        devices = [beside.get(end) or _virtio(place % 2, sockets[end], queues) for place, end in enumerate(ends)]
        servers = dict[str, Application]()  # by the name of a socket: the application that makes it
        if "left" in at_ends:
            servers["left"] = _launch_at_end(worker, polling, "left", sockets)
        for number in range(polled):
            own = devices[2 * number : 2 * number + 2]
            forwarder = self._ends.forwarder(own) if self._ends else forwarder_of(chain)
            pod = polling.launch(forwarder, worker.pods.start(f"pod{number + 1}", [], undo), own)
            servers |= dict.fromkeys(ends[2 * number : 2 * number + 2], pod)
        if "right" in at_ends:
            servers["right"] = _launch_at_end(worker, polling, "right", sockets)
        in_kernel = start_kernel_pods(worker, chain, undo)
        ports = Ports() if beside else ports_of(worker, undo).beside(worker.host, switch_ends(in_kernel))
        settings = configuration(worker, ports, len(sockets), pages=polling.in_hugepages)
        switch = OpenVSwitch(worker.host, f"{worker.directory}/ovs", undo, daemon=WITH_DPDK, configuration=settings)
        _connect(worker, chain, switch, ports, sockets, servers)
        polling.begin()
        switch.confine(worker.cpus.control)
        in_pods = {port.interface: pod.host for port, pod in at_ends.values()}
        entries, *further = (
            [forward_along(in_kernel, worker)] if in_kernel else entries_of_chains(chain, worker.addresses)
        )
        return polling.running(
            busy_threads(worker, together(switch.pollers(), *polling.pollers())),
            lambda: _describe(worker, switch, ports, polling, in_kernel),
            entries=entries,
            further_entries=further,
            ports={**worker.ports, **in_pods} if ports.of_kernel else {},
            switch=[switch],
            beside_pods=[switch.pmds(), *(worker.kernel_users if ports.of_kernel and not beside else [])],
            # Section 4.1.3: "using user-space vSwitch which support AFXDP PMD: OVS-DPDK and VPP".
            second_model=NetworkingModel.EBPF if ports.driver == DEVICE_DRIVERS[0] else None,
        )


def _connect(
    worker: Worker,
    chain: Chain,
    switch: OpenVSwitch,
    ports: Ports,
    sockets: Mapping[str, str],
    servers: Mapping[str, Application],
) -> None:
    """Make the bridge, add its ports from left to right, and join each two that make a segment."""
    switch.vsctl("add-br", BRIDGE, "--", "set", "bridge", BRIDGE, "datapath_type=netdev")
    switch.ofctl("del-flows", BRIDGE)
    names = [*sockets, *ports.devices]
    names.sort(key=lambda name: (name != "left", name == "right"))  # the first pods have sockets
    numbers: list[int] = []
    for name, cpu in zip(names, worker.cpus.pollers_of(len(names)), strict=True):
        if name in sockets:
            # The pod makes its sockets one by one. A switch that connects too early waits 1 s before it tries again.
            servers[name].await_file(sockets[name], START_TIMEOUT)
            settings = {"type": "dpdkvhostuserclient", "options:vhost-server-path": sockets[name]}
        else:
            settings = {"type": "dpdk", "options:dpdk-devargs": ports.devices[name]}
        if worker.mtu > ORDINARY_MTU:
            settings["mtu_request"] = str(worker.mtu)
        queues = worker.cpus.allocation.cpus if name in sockets else 1
        affinity = ",".join(f"{queue}:{cpu}" for queue in range(queues))
        settings["other_config:pmd-rxq-affinity"] = f'"{affinity}"'
        if queues > 1:  # a poller would otherwise put all frames into the queue of its own number
            settings["other_config:tx-steering"] = "hash"
        numbers += switch.add_ports(BRIDGE, {name: settings})
    if chain.chains == 1:
        switch.join(BRIDGE, numbers)
    else:
        left, *along, right = numbers
        each = 2 * chain.pods
        chains = [along[first : first + each] for first in range(0, len(along), each)]
        switch.join_chains(BRIDGE, (left, right), chains, worker.addresses)


def _launch_at_end(worker: Worker, polling: PollingPods, side: str, sockets: Mapping[str, str]) -> Application:
    """Launch the program of the pod at this end: between the port of the worker that leads to the pod, and a socket."""
    port, pod = worker.ports_to_ends[side]
    move_into_pod(worker, port, pod, port.interface)
    (cpu,) = (cpu for each, cpu in worker.receiving if each is port)
    dedicate_receive_processing(pod.host, port.interface, cpu)
    devices = [f"{device_driver(worker.host)}_{side},iface={port.interface}", _virtio(0, sockets[side], 1)]
    return polling.launch(FORWARDERS[USUAL], pod, devices)


def _describe(
    worker: Worker, switch: OpenVSwitch, ports: Ports, polling: PollingPods, in_kernel: Sequence[Pod]
) -> Mapping[str, Any]:
    held = {"ovs-vswitchd": hugepages.held(worker.host, switch.process.pid)}
    held |= {application.name: dict(application.hugepages_mib()) for application in polling.applications}
    return {
        "packages": package_versions(worker.host, ["openvswitch-switch-dpdk", "dpdk-dev"]),
        "device_driver": ports.driver,
        "devices": dict(ports.devices),
        "memory": f"huge{polling.in_hugepages.words}" if polling.in_hugepages else "no hugepages",
        "hugepages_mib": held,
        "runtime": dict(worker.pods.describe()),
        "flows": switch.flows(BRIDGE),
        **switch.describe_pmds(),
        "sockets": describe_sockets(worker.host, switch.process.pid),
        **({"pods": {pod.name: network_of(pod.host, worker.addresses) for pod in in_kernel}} if in_kernel else {}),
    }


def _virtio(number: int, socket: str, queues: int) -> str:
    several = f",queues={queues}" if queues > 1 else ""
    return f"net_virtio_user{number},path={socket},server=1,queue_size={QUEUE_SIZE}{several}"


def pods_in_kernel(chain: Chain) -> int:
    """The number of pods whose kernel forwards: the second half, if the chain is mixed (forwarder MIXED).

    The applications of the first half leave frames unchanged. So the pods of the second half have the tester and each
    other as neighbours.
    """
    if chain.forwarder != MIXED:
        return 0
    if chain.pods < 2 or chain.chains > 1:
        raise Unavailable(f"{chain}: a mixed chain has two pods or more, and stands alone")
    return chain.pods // 2


def start_kernel_pods(worker: Worker, chain: Chain, undo: ExitStack) -> list[Pod]:
    """The pods whose kernel forwards, each with two veth pairs. The switch takes the other ends."""
    count = pods_in_kernel(chain)
    if count and worker.headers.left:
        raise Unavailable(f"{chain}: the kernels of the pods route frames without VLAN tags")
    pods = start_pods_on_veth(worker, count, undo, before=chain.pods - count)
    for end in switch_ends(pods):
        worker.host.do("ethtool", "-K", end, "gro", "on")  # only then a veth has a receive ring
    return pods


def switch_ends(pods: Sequence[Pod]) -> list[str]:
    """The worker's interfaces of these pods, from left to right."""
    ends = [pod.interfaces[name].host_interface for pod in pods for name in ("net1", "net2")]
    return [end for end in ends if end is not None]


class SriovOvsDpdk(SriovAndSwitch):
    """Virtual functions to and from the network, Open vSwitch with DPDK between the pods."""

    name: ClassVar[str] = "sriov-ovs-dpdk"
    switch: ClassVar[type[Switch]] = OvsDpdk
