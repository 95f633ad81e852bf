"""The configuration of Open vSwitch with DPDK: its devices, its control thread and its memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from podperf.dataplanes.base import Worker
from podperf.dataplanes.openvswitch import cpu_mask
from podperf.dataplanes.user_space_ports import leave_one_queue_each, take_ports
from podperf.hosts.base import Host
from podperf.kernel import hugepages, pci
from podperf.model import PageSize
from podperf.pods.forwarders.dpdk import MAX_LCORES, missing_drivers

DEVICE_DRIVERS = ("net_af_xdp", "net_af_packet")  # for ports that the kernel keeps; the faster driver first
SWITCH_MEMORY = 256  # MiB: with hugepages for everything, without hugepages for everything but the ports' buffers
# Open vSwitch counts the buffers of a port by this sum (dpdk_calculate_mbufs): descriptors, a burst, and a reserve. A
# buffer has 3 008 bytes and takes a page of 4 KiB, because a buffer must not cross the border of two pages.
DESCRIPTORS, BURST, RESERVE = 2048, 32, 16384
BUFFERS_IN_MIB = 256


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
    """Both ports: the NIC's own devices until `undo`, or devices on the kernel's interfaces."""
    if addresses := take_ports(worker, undo):
        return Ports(addresses, pci.FOR_USER_SPACE)
    leave_one_queue_each(worker)
    driver = device_driver(worker.host)
    ports = {"left": worker.left, "right": worker.right}
    return Ports({name: f"{driver}_{name},iface={port.interface}" for name, port in ports.items()}, driver)


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
        memory = SWITCH_MEMORY + (len(ports.devices) + sockets) * port_memory(pollers=len(set(pollers)))
        settings["dpdk-extra"] = f"{extra} --no-huge --legacy-mem -m {memory} --iova-mode=va"
    return settings


def port_memory(pollers: int) -> int:
    """MiB of a port's own buffers. A port has a receive queue, a transmit queue for each poller, and one for all other
    threads."""
    buffers = DESCRIPTORS * (1 + pollers + 1) + BURST + RESERVE
    return -(-buffers // BUFFERS_IN_MIB)
