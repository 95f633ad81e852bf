"""Joins carry the frames of a chain from one worker to the next: a cable, or more than that between its two ends.

A join stands behind the seam of the data planes: each of the two workers gets a port of the join in place of its own,
as it gets an interface for a VLAN. A new kind of links is a line in JOINS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from typing import Any

from podperf.dataplanes.base import Worker
from podperf.errors import Unavailable
from podperf.frames import AddressFamily
from podperf.hosts.base import Host
from podperf.model import CABLE
from podperf.testbed.joins.base import Join, JoinEnd, Link
from podperf.testbed.joins.bgp import Bgp
from podperf.testbed.joins.wireguard import WireGuard

_ENDS = ("local", "LOCAL", "remote", "REMOTE")

# The overhead of VXLAN: Ethernet 14, IPv4 20, UDP 8, VXLAN 8. Geneve without options has as much. GRE has 4 bytes.
# IP in IP and WireGuard take the frame's own Ethernet header off. They add IPv4 20, or IPv4 20, UDP 8 and WireGuard 32.
# WireGuard fills packets up to a multiple of 16 bytes.
JOINS: Mapping[str, Join] = {
    CABLE: Join("a cable", "IEEE 802.3"),
    "vlan": Link(
        *("a VLAN", "IEEE 802.1Q", 4),
        kind="vlan",
        settings=("id", "100"),
        module="8021q",
        offload="tx-vlan-offload",
    ),
    "vxlan": Link(
        *("VXLAN", "RFC 7348", 50),
        kind="vxlan",
        settings=("id", "100", *_ENDS, "dstport", "4789", "nolearning"),
        module="vxlan",
    ),
    "geneve": Link(
        "Geneve", "RFC 8926", 50, kind="geneve", settings=("id", "100", "remote", "REMOTE"), module="geneve"
    ),
    "gre": Link("GRE", "RFC 2784", 38, kind="gretap", settings=_ENDS, module="ip_gre"),
    "ipip": Link(
        *("IP in IP", "RFC 2003", 20, True, (AddressFamily.IPV4,)), kind="ipip", settings=_ENDS, module="ipip"
    ),
    "wireguard": WireGuard("WireGuard", "the WireGuard paper", 60, True, kind="wireguard", module="wireguard"),
    "bgp": Bgp("a cable with routes by BGP", "RFC 4271", 0, True, (AddressFamily.IPV4,)),
}


def join_workers(name: str, workers: Sequence[Worker], machines: Sequence[Host], undo: ExitStack) -> list[Worker]:
    """These workers, from left to right, joined in this way. `machines` has the machine of each.

    Raises Unavailable if a machine lacks something, or if the join cannot carry the test frames.
    """
    join, found = JOINS[name], list(workers)
    if len(found) > 1:
        for machine in dict.fromkeys(machines):
            if reason := join.unavailable(machine, undo):
                raise Unavailable(f"{join.words} should join the workers, and {reason}")
        if found[0].headers.family not in join.families:
            raise Unavailable(f"{join.words} joins workers here for IPv4 only, and test frames have IPv6")
    for left, right in pairwise(range(len(found))):
        network = f"169.254.{100 + left}"  # 169.254.1.1 is the gateway of routed pods
        ends = JoinEnd(found[left], "right", f"{network}.1"), JoinEnd(found[right], "left", f"{network}.2")
        near, far = join.connect(*ends, undo)
        found[left], found[right] = replace(found[left], right=near), replace(found[right], left=far)
    return found


def describe_join(name: str, workers: Mapping[str, Worker]) -> Mapping[str, Any]:
    """Describes the join between these workers, which have names from left to right, and its ends."""
    join = JOINS[name]
    ends = [
        (worker, JoinEnd(each, side))
        for pair in pairwise(workers.items())
        for (worker, each), side in zip(pair, ("right", "left"), strict=True)
    ]
    interfaces = {
        f"{worker}, above {end.port.trunk}" if end.port.trunk else f"{worker}, {end.port.interface}": join.describe(end)
        for worker, end in ends
    }
    return {"name": name, "overhead_bytes": join.overhead, "source": join.source, "interfaces": interfaces}
