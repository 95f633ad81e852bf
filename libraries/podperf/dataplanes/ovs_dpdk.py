"""Open vSwitch with DPDK. Switch and pods poll in user space; the pods run DPDK applications on vhost-user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

from podperf.dataplanes import openvswitch_dpdk as dpdk
from podperf.dataplanes.base import DataPlane, PodQueues, RunningDataPlane, Worker
from podperf.dataplanes.buffers import refuse_large_frames
from podperf.dataplanes.kernel_state import network_of
from podperf.dataplanes.mixed_pods import pods_in_kernel, start_kernel_pods, switch_ends
from podperf.dataplanes.openvswitch import WITH_DPDK, OpenVSwitch, busy_threads, entries_of_chains, missing
from podperf.dataplanes.polling_pods import PollingPods, together
from podperf.dataplanes.segments import forward_along
from podperf.dataplanes.sriov_ends import FunctionsAtEnds
from podperf.hosts.base import Host
from podperf.hosts.linux import package_versions
from podperf.hosts.run_directory import pod_socket
from podperf.kernel import hugepages
from podperf.kernel.xdp_sockets import describe_sockets
from podperf.model import Chain, NetworkingModel
from podperf.pods.base import Pod
from podperf.pods.forwarders import FORWARDERS, MIXED, forwarder_of
from podperf.pods.forwarders.base import Application
from podperf.pods.forwarders.dpdk import START_TIMEOUT, missing_drivers

BRIDGE = "ovs-br0"
QUEUE_SIZE = 1024  # descriptors of a virtio queue: as many frames can wait while the other side has no CPU


class OvsDpdk(DataPlane):
    """One bridge; two flows for each segment of the chain. Addresses tell several chains apart.

    Worker's ports that are no NIC's are AF_XDP devices of DPDK, or AF_PACKET devices if DPDK has no AF_XDP driver.
    The kernel's receive threads fill the rings of these devices, as a NIC's DMA would, and take turns with the pollers.
    """

    name: ClassVar[str] = "ovs-dpdk"
    model: ClassVar[NetworkingModel] = NetworkingModel.USER_SPACE
    forwarders: ClassVar[Sequence[str]] = (*FORWARDERS, MIXED)
    switch_has_cpus: ClassVar[bool] = True
    pod_queues: ClassVar[PodQueues] = PodQueues.BY_SWITCH
    switch_memory: ClassVar[int] = dpdk.SWITCH_MEMORY
    several_chains: ClassVar[bool] = True

    def __init__(self, ends: FunctionsAtEnds | None = None) -> None:
        self._ends = ends

    @staticmethod
    def unavailable(host: Host) -> str | None:
        if reason := missing(host, WITH_DPDK):
            return reason
        return missing_drivers(host, "net_virtio") or (
            None if dpdk.device_driver(host) else missing_drivers(host, *dpdk.DEVICE_DRIVERS)
        )

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        refuse_large_frames(worker.mtu, "DPDK")
        polling = PollingPods(worker, chain, undo, switch_memory=self.switch_memory)
        # Each end of a pod is a socket to the switch, or a device beside the switch.
        polled = chain.all_pods - pods_in_kernel(chain)
        ends = [f"pod{number}{end}" for number in range(1, polled + 1) for end in "ab"]
        beside = self._ends.beside_switch(chain) if self._ends else {}
        sockets = {end: pod_socket(worker.directory, f"{end}.sock") for end in ends if end not in beside}
        queues = worker.cpus.allocation.cpus
        devices = [beside.get(end) or _virtio(place % 2, sockets[end], queues) for place, end in enumerate(ends)]
        for number in range(polled):
            own = devices[2 * number : 2 * number + 2]
            forwarder = self._ends.forwarder(own) if self._ends else forwarder_of(chain)
            polling.launch(forwarder, worker.pods.start(f"pod{number + 1}", [], undo), own)
        in_kernel = start_kernel_pods(worker, chain, undo)
        ports = dpdk.Ports() if beside else dpdk.ports_of(worker, undo).beside(worker.host, switch_ends(in_kernel))
        settings = dpdk.configuration(worker, ports, len(sockets), pages=polling.in_hugepages)
        switch = OpenVSwitch(worker.host, f"{worker.directory}/ovs", undo, daemon=WITH_DPDK, configuration=settings)
        _connect(worker, chain, switch, ports, sockets, polling.applications)
        polling.begin()
        switch.confine(worker.cpus.control)
        entries, *further = [forward_along(in_kernel, worker)] if in_kernel else entries_of_chains(chain)
        return polling.running(
            busy_threads(worker, together(switch.pollers(), *polling.pollers())),
            lambda: _describe(worker, switch, ports, polling, in_kernel),
            entries=entries,
            further_entries=further,
            ports=worker.ports if ports.of_kernel else {},
            switch=[switch],
            beside_pods=[switch.pmds(), *(worker.kernel_users if ports.of_kernel and ports.devices else [])],
            # Section 4.1.3: "using user-space vSwitch which support AFXDP PMD: OVS-DPDK and VPP".
            second_model=NetworkingModel.EBPF if ports.driver == dpdk.DEVICE_DRIVERS[0] else None,
        )


def _connect(
    worker: Worker,
    chain: Chain,
    switch: OpenVSwitch,
    ports: dpdk.Ports,
    sockets: Mapping[str, str],
    pods: Sequence[Application],
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
            pod = next(each for each in pods if each.name == name[:-1])
            pod.await_file(sockets[name], START_TIMEOUT)
            settings = {"type": "dpdkvhostuserclient", "options:vhost-server-path": sockets[name]}
        else:
            settings = {"type": "dpdk", "options:dpdk-devargs": ports.devices[name]}
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
        switch.join_chains(BRIDGE, (left, right), chains)


def _describe(
    worker: Worker, switch: OpenVSwitch, ports: dpdk.Ports, polling: PollingPods, in_kernel: Sequence[Pod]
) -> Mapping[str, Any]:
    held = {"ovs-vswitchd": hugepages.held(worker.host, switch.process.pid)}
    held |= {each.name: dict(each.hugepages_mib()) for each in polling.applications}
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
        **({"pods": {pod.name: network_of(pod.host) for pod in in_kernel}} if in_kernel else {}),
    }


def _virtio(number: int, socket: str, queues: int) -> str:
    several = f",queues={queues}" if queues > 1 else ""
    return f"net_virtio_user{number},path={socket},server=1,queue_size={QUEUE_SIZE}{several}"
