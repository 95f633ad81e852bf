"""The seam of joins, and the joins that are links of the kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from podperf.dataplanes.base import Worker, WorkerPort
from podperf.frames import AddressFamily
from podperf.hosts.base import Host
from podperf.hosts.host_facts import parse_ethtool
from podperf.hosts.linux import configure, link_named, mac_address, missing_link_type, static_neighbour
from podperf.hosts.way_back import unload_at_the_end

PREFIX = "join-"  # of the names of the interfaces; the side of the worker follows


@dataclass(frozen=True)
class JoinEnd:
    """An end of a join: the port of a worker on this side, which is in the cable, and its `address` there."""

    worker: Worker
    side: str  # of the worker: left or right
    address: str = ""

    @property
    def port(self) -> WorkerPort:
        """The worker's port of this side."""
        return self.worker.left if self.side == "left" else self.worker.right

    @property
    def handlers(self) -> Mapping[str, int]:
        """The CPU on which the kernel encapsulates, and the one on which it decapsulates.

        A receive thread does all work for a frame until the frame leaves the worker. So the CPU that receives at the
        other port encapsulates.
        """
        left, right = self.worker.cpus.receives_left, self.worker.cpus.receives_right
        into, out = (right, left) if self.side == "left" else (left, right)
        return {"encapsulates_on_cpu": into, "decapsulates_on_cpu": out}


@dataclass(frozen=True)
class Join:
    """The carrier of frames between two workers. This class is a cable alone.

    `overhead` is the number of bytes that a frame has more on the cable. A join `between_routers` carries IP packets
    without Ethernet headers, or leads where routes lead: only data planes that route can use it.
    """

    words: str
    source: str  # that defines it
    overhead: int = 0
    between_routers: bool = False
    families: Sequence[AddressFamily] = tuple(AddressFamily)  # of the packets that it carries

    def unavailable(self, host: Host, undo: ExitStack) -> str | None:
        """The reason why a worker cannot be joined in this way, or None. `undo` unloads what the kernel loads here."""
        return None

    def connect(self, left: JoinEnd, right: JoinEnd, undo: ExitStack) -> tuple[WorkerPort, WorkerPort]:
        """Join the right port of one worker, which is the `left` end, with the left port of the next one.

        Returns the ports that the data planes get in place of these two.
        """
        return left.port, right.port

    def describe(self, end: JoinEnd) -> Mapping[str, Any]:
        """An end after `connect`, as the kernel has it."""
        link = link_named(end.worker.host, end.port.interface, "-details")
        return {
            "interface": end.port.interface,
            "mtu": link["mtu"],
            "settings": link.get("linkinfo", {}).get("info_data"),
            "offloads": _offloads(end.worker.host, end.port.interface),
        }


@dataclass(frozen=True)
class Link(Join):
    """A kind of links of ip-link(8), with the settings of an interface. `LOCAL` and `REMOTE` stand for the addresses
    of the two workers on the cable."""

    kind: str = ""
    settings: Sequence[str] = ()
    module: str = ""  # that the kernel loads for it
    offload: str = ""  # of the port, by ethtool(8): if it is on, the port encapsulates

    def unavailable(self, host: Host, undo: ExitStack) -> str | None:
        unload_at_the_end(host, self.module, undo)
        return missing_link_type(host, self.kind, *self._settings("192.0.2.1", "192.0.2.2"))

    def _settings(self, local: str, remote: str) -> Sequence[str]:
        return [{"LOCAL": local, "REMOTE": remote}.get(word, word) for word in self.settings]

    def connect(self, left: JoinEnd, right: JoinEnd, undo: ExitStack) -> tuple[WorkerPort, WorkerPort]:
        return self._interface(left, right), self._interface(right, left)

    def _interface(self, end: JoinEnd, other: JoinEnd) -> WorkerPort:
        """Make the interface on a worker, above its port. Returns it in place of the port."""
        host, below, name = end.worker.host, end.port.interface, PREFIX + end.side
        add = ("link", "add", "name", name, "mtu", str(end.worker.mtu), "up", "link", below, "type", self.kind)
        configure(host, *on_the_cable(end, other), (*add, *self._settings(end.address, other.address)))
        port = replace(end.port, interface=name, trunk=end.port.trunk or below)
        if self.between_routers:
            return replace(port, carries_packets=True)
        return replace(port, mac=mac_address(host, name), peer_mac=other.port.mac)

    def describe(self, end: JoinEnd) -> Mapping[str, Any]:
        below = end.port.trunk if self.offload else None
        by_port = below is not None and self.offload in _offloads(end.worker.host, below)
        by = f"the port ({self.offload})" if by_port else "the kernel"
        return {**super().describe(end), "encapsulated_by": by, **end.handlers}


def on_the_cable(end: JoinEnd, other: JoinEnd) -> Sequence[Sequence[str]]:
    """The arguments of `ip` that give an end its address on the cable, and make the other end a fixed neighbour."""
    return (
        ("address", "add", f"{end.address}/30", "dev", end.port.interface),
        static_neighbour(end.port.interface, other.address, other.port.mac),
    )


def _offloads(host: Host, interface: str) -> Sequence[str]:
    """The offloads that are on."""
    told = host.ask("ethtool", "-k", interface, check=False, assumed="").stdout
    return sorted(name for name, state in parse_ethtool(told).items() if state.startswith("on"))
