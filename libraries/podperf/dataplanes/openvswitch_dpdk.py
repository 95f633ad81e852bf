"""How Open vSwitch is configured to run DPDK: its devices, its control thread and its memory."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from podperf.dataplanes.base import Worker
from podperf.dataplanes.openvswitch import cpu_mask
from podperf.dataplanes.user_space_ports import leave_one_queue_each, take_ports
from podperf.hosts.base import Host
from podperf.kernel import hugepages, pci
from podperf.pods.forwarders.dpdk import MAX_LCORES, missing_drivers

DEVICE_DRIVERS = ("net_af_xdp", "net_af_packet")  # for ports that the kernel keeps; the faster first
SWITCH_MEMORY = 256  # MiB; with hugepages for everything, without them beside the ports' buffers
# A port's buffers, as many as Open vSwitch reckons where each port has its own (dpdk_calculate_mbufs): its descriptors,
# a burst, and a reserve. One of 3 008 bytes takes a page of 4 KiB, since none may cross from one page into the next.
DESCRIPTORS, BURST, RESERVE = 2048, 32, 16384
BUFFERS_IN_MIB = 256


@dataclass(frozen=True)
class Ports:
    """The worker's ports as DPDK has them: by their name on the switch, the device; and the driver of both."""

    devices: Mapping[str, str] = field(default_factory=dict)
    driver: str | None = None

    @property
    def of_kernel(self) -> bool:
        """Whether the kernel keeps the ports."""
        return self.driver != pci.FOR_USER_SPACE


def ports_of(worker: Worker, undo: ExitStack) -> Ports:
    """Both ports: their cards until `undo`, or devices that reach the kernel's interfaces."""
    if addresses := take_ports(worker, undo):
        return Ports(addresses, pci.FOR_USER_SPACE)
    leave_one_queue_each(worker)
    driver = device_driver(worker.host)
    ports = {"left": worker.left, "right": worker.right}
    return Ports({name: f"{driver}_{name},iface={port.interface}" for name, port in ports.items()}, driver)


def device_driver(host: Host) -> str | None:
    """DPDK's driver for ports that the kernel keeps; None where the host has none."""
    return next((each for each in DEVICE_DRIVERS if not missing_drivers(host, each)), None)


def configuration(worker: Worker, ports: Ports, sockets: int, *, in_hugepages: bool) -> dict[str, str]:
    """`other_config` of a switch with these ports, and so many sockets to pods."""
    host, pollers, main = worker.host, worker.cpus.switch, worker.cpus.main
    allowed = [f"-a {device}" for device in ports.devices.values() if pci.ADDRESS.fullmatch(device)]
    extra = " ".join(allowed or ["--no-pci"])
    settings = {"dpdk-init": "true", "pmd-cpu-mask": cpu_mask(pollers)}
    if main < MAX_LCORES:
        settings["dpdk-lcore-mask"] = cpu_mask([main])
    else:
        extra += f" --lcores=0@{main}"
    if in_hugepages:
        # On every NUMA node: that of a port's card is not always that of the CPU that polls it.
        nodes = hugepages.nodes(host)
        sizes = ",".join(str(SWITCH_MEMORY if node in nodes else 0) for node in range(nodes[-1] + 1))
        settings |= {"dpdk-socket-mem": sizes, "dpdk-socket-limit": sizes}
        settings["dpdk-extra"] = f"{extra} --in-memory"
    else:
        # One pool for all ports would have 262 144 buffers, in 1 GiB. Where memory is short, Open vSwitch asks for half
        # of that again and again, but only while DPDK says ENOMEM. With pages of 4 KiB DPDK may say ENOBUFS, depending
        # on where its last free bytes are.
        settings["per-port-memory"] = "true"
        memory = SWITCH_MEMORY + (len(ports.devices) + sockets) * port_memory(pollers=len(set(pollers)))
        settings["dpdk-extra"] = f"{extra} --no-huge --legacy-mem -m {memory} --iova-mode=va"
    return settings


def port_memory(pollers: int) -> int:
    """MiB of a port's own buffers: it has a receive queue, and a transmit queue for each poller and for the rest."""
    buffers = DESCRIPTORS * (1 + pollers + 1) + BURST + RESERVE
    return -(-buffers // BUFFERS_IN_MIB)
