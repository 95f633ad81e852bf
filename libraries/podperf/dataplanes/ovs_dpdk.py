"""Open vSwitch with DPDK: everything is polled in user space, pods run DPDK applications on vhost-user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

from podperf import hugepages
from podperf.dataplanes.base import Cabling, Worker, WorkerPort
from podperf.dataplanes.openvswitch import WITH_DPDK, OpenVSwitch, busy_threads, cpu_mask, missing
from podperf.hosts.base import Host
from podperf.hosts.linux import await_success, package_versions, unix_socket
from podperf.model import Chain, Direction, Entry, NetworkingModel
from podperf.pods.forwarders import FORWARDERS, forwarder_of
from podperf.pods.forwarders.base import Application, Forwarder
from podperf.pods.forwarders.dpdk import START_TIMEOUT, missing_drivers
from podperf.poller_sharing import Turns, take_turns
from podperf.xdp_sockets import describe_sockets, refuse_large_frames

BRIDGE = "ovs-br0"
DEVICE_DRIVERS = (
    "net_af_xdp",
    "net_af_packet",
)  # for ports that the kernel keeps; the faster first
SWITCH_MEMORY, POD_MEMORY = 256, 128  # MiB
QUEUE_SIZE = 1024  # descriptors of a virtio queue: what waits while the other side has no CPU


class OvsDpdk:
    """One bridge; two flows for each segment of the chain.

    The worker's ports are AF_XDP devices of DPDK in the place of a NIC, or AF_PACKET ones where that driver lacks.
    The kernel's receive threads, which fill their rings as a NIC's DMA would, take turns with the pollers.
    """

    name: ClassVar[str] = "ovs-dpdk"
    model: ClassVar[NetworkingModel] = NetworkingModel.USER_SPACE
    cabling: ClassVar[Cabling] = Cabling.WORKER
    least_pods: ClassVar[int] = 1
    forwarders: ClassVar[Sequence[str]] = tuple(FORWARDERS)

    _worker: Worker
    _switch: OpenVSwitch
    _pods: Sequence[Application]
    _turns: Sequence[Turns]
    _hugepages: bool
    _device_driver: str | None

    @staticmethod
    def unavailable(host: Host) -> str | None:
        if reason := missing(host, WITH_DPDK):
            return reason
        return missing_drivers(host, "net_virtio") or (
            None if _device_driver(host) else missing_drivers(host, *DEVICE_DRIVERS)
        )

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> Mapping[Direction, Entry]:
        refuse_large_frames(worker.mtu)
        self._worker = worker
        self._hugepages = worker.placement.hugepages and hugepages.offered(worker.host)
        if self._hugepages:
            hugepages.reserve(worker.host, SWITCH_MEMORY + chain.pods * POD_MEMORY, worker.directory, undo)
        pmd_cpus = worker.placement.switch
        pod_cpus = [worker.placement.pods[number % len(worker.placement.pods)] for number in range(chain.pods)]

        ends = [f"pod{number}{end}" for number in range(1, chain.pods + 1) for end in "ab"]
        sockets = [unix_socket(worker.directory, f"{end}.sock") for end in ends]
        forwarder = forwarder_of(chain)
        self._pods = [
            self._start_pod(forwarder, f"pod{number + 1}", sockets[2 * number : 2 * number + 2], pod_cpus[number], undo)
            for number in range(chain.pods)
        ]
        self._switch = self._start(worker, undo)
        self._device_driver = _device_driver(worker.host)
        # Neighbours on the way share a poller: of two, one has the left half of the chain, one the right.
        polled_by = [pmd_cpus[place * len(pmd_cpus) // (len(ends) + 2)] for place in range(len(ends) + 2)]
        ports = [self._add_device(worker.left, "left", polled_by[0])]
        for index, (end, socket) in enumerate(zip(ends, sockets, strict=True)):
            # The pod listens, one device after the other; a switch that finds nobody there tries again after a second.
            await_success(worker.host, self._pods[index // 2].process, START_TIMEOUT, "test", "-e", socket)
            ports.append(self._add_vhost(end, socket, polled_by[index + 1]))
        ports.append(self._add_device(worker.right, "right", polled_by[-1]))
        for place in range(0, len(ports), 2):
            self._switch.connect(BRIDGE, ports[place], ports[place + 1])
        for pod in self._pods:
            pod.begin()
        self._switch.confine(worker.cpus)
        pollers = self._switch.pollers()
        for pod, cpu in zip(self._pods, pod_cpus, strict=True):
            pollers.setdefault(cpu, []).extend(pod.pollers())
        self._turns = take_turns(worker.host, busy_threads(worker, pollers), undo)
        return {}  # bridge and pods pass frames on as they are

    def _start(self, worker: Worker, undo: ExitStack) -> OpenVSwitch:
        size = str(SWITCH_MEMORY)
        configuration = {
            "dpdk-init": "true",
            "dpdk-lcore-mask": cpu_mask(worker.placement.pods[-1:]),
            "pmd-cpu-mask": cpu_mask(worker.placement.switch),
        }
        if self._hugepages:
            configuration |= {"dpdk-socket-mem": size, "dpdk-socket-limit": size, "dpdk-extra": "--no-pci --in-memory"}
        else:
            configuration["dpdk-extra"] = f"--no-pci --no-huge --legacy-mem -m {size} --iova-mode=va"
        directory = f"{worker.directory}/ovs"
        switch = OpenVSwitch(worker.host, directory, undo, daemon=WITH_DPDK, configuration=configuration)
        switch.vsctl("add-br", BRIDGE, "--", "set", "bridge", BRIDGE, "datapath_type=netdev")
        switch.ofctl("del-flows", BRIDGE)
        return switch

    def _add_device(self, port: WorkerPort, name: str, cpu: int) -> int:
        device = f"{self._device_driver}_{name},iface={port.interface}"
        settings = {"type": "dpdk", "options:dpdk-devargs": device}
        return self._switch.add_port(BRIDGE, name, **settings, **_polled_on(cpu))

    def _add_vhost(self, name: str, socket: str, cpu: int) -> int:
        settings = {"type": "dpdkvhostuserclient", "options:vhost-server-path": socket}
        return self._switch.add_port(BRIDGE, name, **settings, **_polled_on(cpu))

    def _start_pod(
        self, forwarder: Forwarder, name: str, sockets: Sequence[str], cpu: int, undo: ExitStack
    ) -> Application:
        pod = self._worker.pods.start(name, [], undo)
        devices = [
            f"net_virtio_user{index},path={socket},server=1,queue_size={QUEUE_SIZE}"
            for index, socket in enumerate(sockets)
        ]
        return forwarder.launch(
            pod.host, pod.name, devices, undo, cpu=cpu, hugepages=self._hugepages, memory=POD_MEMORY
        )

    def check(self) -> None:
        self._switch.check()
        for pod in self._pods:
            pod.check()
        for turns in self._turns:
            turns.check()

    def describe(self) -> Mapping[str, Any]:
        return {
            "packages": package_versions(self._worker.host, ["openvswitch-switch-dpdk", "dpdk-dev"]),
            "device_driver": self._device_driver,
            "memory": f"hugepages of {hugepages.PAGE_MIB} MiB" if self._hugepages else "no hugepages",
            "runtime": dict(self._worker.pods.describe()),
            "flows": self._switch.ofctl("dump-flows", "--no-stats", BRIDGE).splitlines(),
            **self._switch.describe_pmds(),
            "sockets": describe_sockets(self._worker.host, self._switch.process.pid),
            "pods": {pod.name: pod.describe() for pod in self._pods},
            "pollers": [each.describe() for each in self._turns],
        }


def _device_driver(host: Host) -> str | None:
    return next((each for each in DEVICE_DRIVERS if not missing_drivers(host, each)), None)


def _polled_on(cpu: int) -> dict[str, str]:
    return {"other_config:pmd-rxq-affinity": f'"0:{cpu}"'}
