"""Chains in which every frame between two pods passes the worker's routing table, point to point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podperf.addressing import gateway_of, left_of, right_of
from podperf.dataplanes.base import Worker
from podperf.hosts.base import Host
from podperf.hosts.linux import ip, static_neighbour, sysctl
from podperf.model import Direction, Entry

FIRST_TABLE = 100


@dataclass(frozen=True)
class HostSide:
    """The worker's end of one pod interface, and the address of the pod behind it."""

    interface: str
    pod_address: str


def prepare_worker(worker: Worker, segments: int) -> None:
    """Forwarding, an address on each port, and the tester as a fixed neighbour."""
    sysctl(worker.host, net__ipv4__ip_forward=1)
    for port, segment, tester in ((worker.left, 0, left_of(0)), (worker.right, segments, right_of(segments))):
        ip(worker.host, "address", "add", f"{gateway_of(segment)}/32", "dev", port.interface)
        static_neighbour(worker.host, port.interface, tester, port.tester_mac)


def route_chain(worker: Worker, pods: Sequence[tuple[HostSide, HostSide]]) -> Mapping[Direction, Entry]:
    """Send what comes in on one interface out on the next of the chain, in both directions.

    `pods` are the host sides of net1 and net2, from left to right. Where a frame goes depends on where it came in, not
    on its destination alone: each interface has a routing table of its own (ip-rule(8), `iif`).
    """
    last = len(pods)
    left, right = HostSide(worker.left.interface, left_of(0)), HostSide(worker.right.interface, right_of(last))
    sides = [left, *(side for pod in pods for side in pod), right]
    # Frames to the right come in on the even places (the left port, each net2), those to the left on the odd ones.
    table = FIRST_TABLE
    for place in range(0, len(sides), 2):
        _route(worker.host, table, arriving=sides[place], leaving=sides[place + 1])
        _route(worker.host, table + 1, arriving=sides[place + 1], leaving=sides[place])
        table += 2
    return {
        Direction.LEFT_TO_RIGHT: Entry(mac=worker.left.mac),
        Direction.RIGHT_TO_LEFT: Entry(mac=worker.right.mac),
    }


def _route(host: Host, table: int, arriving: HostSide, leaving: HostSide) -> None:
    ip(host, "rule", "add", "iif", arriving.interface, "lookup", str(table))
    hop = ("via", leaving.pod_address, "dev", leaving.interface, "onlink")
    ip(host, "route", "add", "default", *hop, "table", str(table))
