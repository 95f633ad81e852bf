"""Moves the worker's existing ports into the namespace of the system under test, and gives them back.

The worker's journal gets the state of a port before the first change. So the next run, too, can give the port back.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from podperf.addressing import mac_of
from podperf.dataplanes.base import WorkerPort
from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.hosts.host_facts import parse_ethtool
from podperf.hosts.linux import (
    CARRIER_PATIENCE,
    assumed_link,
    await_carrier,
    ip,
    ip_json,
    is_veth,
    read_attribute,
    write_attribute,
)
from podperf.hosts.namespaces import NetworkNamespace, namespaces_named
from podperf.hosts.way_back import WayBack, takes_back
from podperf.kernel import pci as pci_devices
from podperf.kernel.queues import affinities, receive_queues, restore, set_receive_queues, steer
from podperf.kernel.threads import dedicate_receive_processing
from podperf.topology import WorkerPortSettings, WorkerSettings

# A polling data plane holds back a card's interrupts by these. The kernel keeps their values when a port is moved.
INTERRUPT_DEFERRAL = ("napi_defer_hard_irqs", "gro_flush_timeout")

# Moves an interface into the host's own network. `sh -c` gets the namespace, the interface and its new name.
_MOVE_BACK = 'ip -n "$1" link set dev "$2" down && ip -n "$1" link set dev "$2" netns $$ name "$3"'
# XDP programs stay on an interface that is moved, unlike queueing disciplines.
_TAKE_OFF = 'for mode in xdp xdpgeneric; do ip link set dev "$1" $mode off; done'


@dataclass(frozen=True)
class PortBefore:
    """The state of a port before a set-up.

    `interrupts` has the CPU list of each interrupt of the device at `pci`. `queues` has the number of queues of each
    kind, by the names of ethtool(8). `deferral` has the values of INTERRUPT_DEFERRAL.
    """

    interface: str
    mac: str
    kind: str | None  # veth, bridge …; a real device has none
    mtu: int
    up: bool
    gro: bool
    threaded: int  # 1: threads of the kernel receive (threaded NAPI)
    promiscuous: bool = False  # DPDK's drivers switch this mode on, and leave it on
    alias: str = ""  # the CNI plug-in host-device writes the interface's name there
    pci: str | None = None
    interrupts: Mapping[str, str] = field(default_factory=dict)
    queues: Mapping[str, int] = field(default_factory=dict)
    deferral: Mapping[str, int] = field(default_factory=dict)


def received_by_threads(settings: WorkerSettings, host: Host) -> bool:
    """Whether threads of the kernel receive on the ports of the worker `host`.

    Threads receive on veths. Ports that the run makes are veths.
    """
    named = [port for port in (settings.left, settings.right) if port is not None]
    return not named or any(is_veth(_link(host, port)) for port in named)


class WorkerPorts:
    """The existing ports of a worker, for one set-up. `undo` gives them back.

    `received_by` says in words, by port, which thread or driver receives.
    """

    def __init__(self, host: Host, namespace: NetworkNamespace, undo: ExitStack) -> None:
        self._host, self._namespace = host, namespace
        self._way_back = WayBack(host, undo)
        self._noted: dict[str, int] = {}  # the number in the journal of each interface
        self.received_by: dict[str, str] = {}

    def take(self, settings: WorkerPortSettings, mtu: int, cpu: int) -> WorkerPort:
        """Move a port into the namespace and bring it up. From then on `cpu` does the work for frames that arrive.

        Raises PodperfError if there is no such port, or if its device is not the one of the topology.
        """
        host = self._host
        link = _link(host, settings)
        name = link["ifname"]  # the topology may have another one (altname)
        mac = mac_of(link["address"], f"{name} of {host.name}")
        assumed = f"driver: {settings.driver}\nbus-info: {settings.pci or ''}"
        told = parse_ethtool(host.ask("ethtool", "-i", name, check=False, assumed=assumed).stdout)
        pci = _pci_address(settings, told, host)
        driver = _driver(settings, told, pci, host)
        kind = link.get("linkinfo", {}).get("info_kind")
        assumed = f"generic-receive-offload: {'off' if kind == 'veth' else 'on'}"  # a veth has none at first
        offloads = parse_ethtool(host.ask("ethtool", "-k", name, check=False, assumed=assumed).stdout)
        gro = offloads.get("generic-receive-offload", "").startswith("on")
        threaded = read_attribute(host, name, "threaded")
        flags = link["flags"]
        before = PortBefore(
            name,
            mac,
            kind,
            link["mtu"],
            "UP" in flags,
            gro,
            threaded,
            "PROMISC" in flags,
            link.get("ifalias", ""),
            pci,
            deferral={each: read_attribute(host, name, each) for each in INTERRUPT_DEFERRAL},
        )
        self._remember(before)
        ip(host, "link", "set", "dev", name, "netns", self._namespace.namespace)
        ip(self._namespace, "link", "set", "dev", name, "mtu", str(mtu), "up")
        self.received_by[name] = self._receive_on(cpu, before)
        return WorkerPort(name, mac, "", pci, driver)

    def _receive_on(self, cpu: int, port: PortBefore) -> str:
        if port.kind == "veth":
            dedicate_receive_processing(self._namespace, port.interface, cpu)
            return f"a thread of the kernel (threaded NAPI) on CPU {cpu}"
        steered: list[str] = []
        if port.pci is not None:
            found, queues = affinities(self._host, port.pci), receive_queues(self._namespace, port.interface)
            self._remember(replace(port, interrupts=found, queues=queues))
            steered = steer(self._host, list(found), cpu)
        if not steered:
            return "its driver, on whichever CPU it takes: it has no interrupt that can be steered"
        return f"its driver, interrupt {', '.join(steered)} on CPU {cpu}"

    def _remember(self, port: PortBefore) -> None:
        changed, noted = f"{port.interface} from the system under test", self._noted.get(port.interface)
        self._noted[port.interface] = self._way_back.note_call(
            changed, give_back, asdict(port), in_namespace=True, instead_of=noted
        )

    def await_carrier(self) -> None:
        """Wait until each port has a link. Raises PodperfError if a port has none after 15 s."""
        for interface in self._noted:
            if not await_carrier(self._namespace, interface):
                raise PodperfError(
                    f"{interface} of {self._host.name} has no carrier {CARRIER_PATIENCE} s after it was brought "
                    "up: is it cabled to the tester's port of the same side, or the next worker's, and is that one up?"
                )


@takes_back
def give_back(host: Host, **before: Any) -> None:
    """Give back a port that a set-up took, also a killed set-up. `before` has the fields of PortBefore.

    A virtual port that somebody has removed meanwhile is not given back. Raises PodperfError if the interface of a
    device is lost.
    """
    port = PortBefore(**before)
    for namespace in namespaces_named(host):
        assumed = [{"ifname": port.interface, "address": port.mac, "linkinfo": {"info_kind": port.kind}}]
        links = ip_json(host, "-n", namespace, "-details", "link", "show", assumed=assumed)
        if (name := _name_of(port, links)) is not None:
            inside = NetworkNamespace(namespace, host)
            inside.do("sh", "-c", _TAKE_OFF, "sh", name, check=False)
            if read_attribute(inside, name, "threaded", assumed=int(port.kind == "veth")) != port.threaded:
                # A pod gives the interface back in state down. Only a veth in state up accepts the setting `threaded`.
                ip(inside, "link", "set", "dev", name, "up")
                write_attribute(inside, name, "threaded", port.threaded)
            host.do("sh", "-c", _MOVE_BACK, "sh", namespace, name, port.interface)
            break
    else:
        # The interface is back already if its namespace is gone, or if a data plane has unbound and bound its driver.
        name = _name_of(port, ip_json(host, "-details", "link", "show"))
        if name is None and port.kind is not None:
            return
        if name is None:
            raise PodperfError(f"{host.name} has lost its interface {port.interface}: the device behind it has none")
        if name != port.interface:
            ip(host, "link", "set", "dev", name, "down")
            ip(host, "link", "set", "dev", name, "name", port.interface)
    host.do("ethtool", "-K", port.interface, "gro", "on" if port.gro else "off", check=False)
    set_receive_queues(host, port.interface, port.queues)
    for attribute, value in port.deferral.items():
        if read_attribute(host, port.interface, attribute) != value:
            write_attribute(host, port.interface, attribute, value)
    if port.pci is not None:  # a driver that was bound anew may have other interrupts than before
        now = affinities(host, port.pci)
        restore(host, {number: cpus for number, cpus in port.interrupts.items() if number in now})
    modes = ("promisc", "on" if port.promiscuous else "off", "up" if port.up else "down")
    ip(host, "link", "set", "dev", port.interface, "mtu", str(port.mtu), "alias", port.alias, *modes)


def _name_of(port: PortBefore, links: list[dict[str, Any]]) -> str | None:
    """The present name of a port. A pod may have renamed it. A link on top of the port can have the same MAC."""
    same = (link for link in links if link.get("address") == port.mac)
    return next((str(each["ifname"]) for each in same if each.get("linkinfo", {}).get("info_kind") == port.kind), None)


def _link(host: Host, port: WorkerPortSettings) -> dict[str, Any]:
    interface, kind = port.interface, {"info_kind": "veth"} if port.driver == "veth" else {}
    assumed = [assumed_link(host, interface, linkinfo=kind)]
    links: list[dict[str, Any]] = ip_json(host, "-details", "link", "show", assumed=assumed)
    for link in links:
        if interface in {link["ifname"], *link.get("altnames", ())}:
            return link
    names = ", ".join(link["ifname"] for link in links if link["link_type"] != "loopback")
    raise PodperfError(f"{host.name} has no interface {interface}; found: {names or 'none'}")


def _pci_address(settings: WorkerPortSettings, driver: Mapping[str, str], host: Host) -> str | None:
    """The PCI address of a port's device. Raises PodperfError if the topology names another address."""
    said = driver.get("bus-info", "")
    found = said if pci_devices.ADDRESS.fullmatch(said) else None
    if settings.pci is not None and settings.pci != found:
        raise PodperfError(
            f"{settings.interface} of {host.name} is the PCI device {found or 'of no address'}, not {settings.pci} as "
            "the topology says"
        )
    return found


def _driver(settings: WorkerPortSettings, told: Mapping[str, str], pci: str | None, host: Host) -> str:
    """The driver of a port's device. PodperfError if the topology names another one, which every plan assumes."""
    # The driver of the card can differ from the driver of its interface: mlx4_core and mlx4_en.
    of_card = None if pci is None else pci_devices.link(host, pci, "driver", assumed=settings.driver)
    found = told.get("driver") if pci is None else of_card
    if settings.driver is not None and found != settings.driver:
        raise PodperfError(
            f"{settings.interface} of {host.name} has the driver {found or 'of no name'}, not {settings.driver} as "
            "the topology says"
        )
    return found or ""
