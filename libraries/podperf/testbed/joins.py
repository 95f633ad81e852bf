"""Joins carry the frames of a chain from one worker to the next: a cable, or an encapsulation on that cable.

An encapsulation takes whole Ethernet frames. So it stands behind the seam of the data planes: each of the two workers
gets an interface of the encapsulation in place of its port, as it gets an interface for a VLAN. A new one is a line in
JOINS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from podperf.dataplanes.base import Worker, WorkerPort
from podperf.errors import Unavailable
from podperf.hosts.base import Host
from podperf.hosts.host_facts import parse_ethtool
from podperf.hosts.linux import configure, link_named, mac_address, missing_link_type, static_neighbour
from podperf.hosts.way_back import unload_at_the_end
from podperf.model import CABLE

PREFIX = "join-"  # of the names of the interfaces; the side of the worker follows


@dataclass(frozen=True)
class Join:
    """A kind of links of ip-link(8), with the settings of an interface. `LOCAL` and `REMOTE` stand for the addresses
    of the two workers on the cable.

    `overhead` is the number of bytes that a frame has more on the cable.
    """

    words: str
    source: str  # that defines it
    overhead: int = 0
    kind: str = ""  # empty: there is no encapsulation
    settings: Sequence[str] = ()
    module: str = ""  # that the kernel loads for it

    def unavailable(self, host: Host, undo: ExitStack) -> str | None:
        """The reason why a worker cannot have an interface, or None. `undo` unloads what the kernel loads for it."""
        unload_at_the_end(host, self.module, undo)
        return missing_link_type(host, self.kind, *self._settings("192.0.2.1", "192.0.2.2"))

    def _settings(self, local: str, remote: str) -> Sequence[str]:
        return [{"LOCAL": local, "REMOTE": remote}.get(word, word) for word in self.settings]

    def interface(self, worker: Worker, port: WorkerPort, side: str, local: str, remote: str) -> WorkerPort:
        """Make the interface on the worker, above the port of this side. Returns it in place of the port."""
        below, name = port.interface, PREFIX + side
        add = ("link", "add", "name", name, "mtu", str(worker.mtu), "up", "link", below, "type", self.kind)
        configure(
            worker.host,
            ("address", "add", f"{local}/30", "dev", below),
            static_neighbour(below, remote, port.peer_mac),
            (*add, *self._settings(local, remote)),
        )
        return replace(port, interface=name, mac=mac_address(worker.host, name), trunk=port.trunk or below)

    def describe(self, worker: Worker, port: WorkerPort) -> Mapping[str, Any]:
        """The interface as the kernel has it. The kernel encapsulates on the CPU on which it handles the frame."""
        link = link_named(worker.host, port.interface, "-details")
        offloads = parse_ethtool(worker.host.ask("ethtool", "-k", port.interface, check=False, assumed="").stdout)
        return {
            "interface": port.interface,
            "mtu": link["mtu"],
            "settings": link.get("linkinfo", {}).get("info_data"),
            "offloads": sorted(name for name, state in offloads.items() if state.startswith("on")),
            "encapsulates": "the kernel, on the CPU that handles the frame",
        }


# The overhead of VXLAN: Ethernet 14, IPv4 20, UDP 8, VXLAN 8. Geneve without options has as much. GRE has 4 bytes.
JOINS: Mapping[str, Join] = {
    CABLE: Join("a cable", "IEEE 802.3"),
    "vlan": Join("a VLAN", "IEEE 802.1Q", 4, "vlan", ("id", "100"), "8021q"),
    "vxlan": Join(
        *("VXLAN", "RFC 7348", 50, "vxlan"),
        ("id", "100", "local", "LOCAL", "remote", "REMOTE", "dstport", "4789", "nolearning"),
        "vxlan",
    ),
    "geneve": Join("Geneve", "RFC 8926", 50, "geneve", ("id", "100", "remote", "REMOTE"), "geneve"),
    "gre": Join("GRE", "RFC 2784", 38, "gretap", ("local", "LOCAL", "remote", "REMOTE"), "ip_gre"),
}


def join_workers(name: str, workers: Sequence[Worker], machines: Sequence[Host], undo: ExitStack) -> list[Worker]:
    """These workers, from left to right, joined in this way. `machines` has the machine of each.

    Raises Unavailable if the kernel of a machine has no such links.
    """
    join, found = JOINS[name], list(workers)
    if not join.kind:
        return found
    for machine in dict.fromkeys(machines):
        if reason := join.unavailable(machine, undo):
            raise Unavailable(f"{join.words} should join the workers, and {reason}")
    for left, right in pairwise(range(len(found))):
        one, other, ends = found[left], found[right], (f"169.254.{left}.1", f"169.254.{left}.2")
        near = replace(one.right, peer_mac=other.left.mac)
        far = replace(other.left, peer_mac=one.right.mac)
        found[left] = replace(one, right=join.interface(one, near, "right", *ends))
        found[right] = replace(other, left=join.interface(other, far, "left", *reversed(ends)))
    return found


def describe_join(name: str, workers: Mapping[str, Worker]) -> Mapping[str, Any]:
    """Describes the encapsulation between these workers, which have names from left to right, and its interfaces."""
    join = JOINS[name]
    ports = [(worker, each, port) for worker, each in workers.items() for port in (each.left, each.right)]
    interfaces = {
        f"{worker}, above {port.trunk}": join.describe(each, port)
        for worker, each, port in ports
        if port.interface.startswith(PREFIX)
    }
    return {"name": name, "overhead_bytes": join.overhead, "source": join.source, "interfaces": interfaces}
