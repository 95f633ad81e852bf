"""Chains in which the worker routes every frame between two pods, point to point."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from podperf.addressing import ChainAddresses
from podperf.dataplanes.base import Worker
from podperf.hosts.base import Host
from podperf.hosts.linux import configure, ip, ip_json, static_neighbour
from podperf.model import ChangeUnderLoad, Direction, Entry

FIRST_TABLE = 100


@dataclass(frozen=True)
class HostSide:
    """The worker's end of one pod interface, and the address of the pod behind it; None behind a tunnel.

    With a `table`, the routes that lead out of the interface are in this routing table already.
    """

    interface: str
    pod_address: str | None
    table: int | None = None


def prepare_worker(worker: Worker, segments: int) -> None:
    """Switch forwarding on, give each port an address, and make the tester a fixed neighbour."""
    changes, addresses = list[Sequence[str]](), worker.addresses
    ends = (worker.left, 0, addresses.left_of(0)), (worker.right, segments, addresses.right_of(segments))
    for port, segment, tester in ends:
        changes.append(("address", "add", addresses.alone(addresses.gateway_of(segment)), "dev", port.interface))
        if not port.carries_packets:
            changes.append(static_neighbour(port.interface, tester, port.peer_mac))
    configure(worker.host, *changes, **addresses.forwarding)


def route_chain(worker: Worker, pods: Sequence[tuple[HostSide, HostSide]]) -> Mapping[Direction, Entry]:
    """Route frames from each interface of the chain to the next one, in both directions.

    `pods` are the host sides of net1 and net2, from left to right. The route of a frame depends on the interface where
    it arrives, and not only on its destination. So each interface has a routing table of its own (ip-rule(8), `iif`).
    """
    left = HostSide(worker.left.interface, worker.addresses.left_of(0), worker.left.table)
    right = HostSide(worker.right.interface, worker.addresses.right_of(len(pods)), worker.right.table)
    route_pairs(worker.host, worker.addresses, [left, *(side for pod in pods for side in pod), right])
    return worker.entries


WITHDRAWN = 0.2  # seconds


def route_withdrawn(worker: Worker) -> ChangeUnderLoad:
    """The route from the left port into the chain is withdrawn, and given back WITHDRAWN seconds later.

    Frames that arrive meanwhile have no route. So this change shows what the measurement itself is worth.
    """
    host, version, table = worker.host, f"-{worker.addresses.version}", ("table", str(FIRST_TABLE))

    def make(undo: ExitStack) -> None:
        (route,) = ip_json(host, version, "route", "show", *table)
        hop = ["via", route["gateway"]] if "gateway" in route else []
        # Without any route in this table, frames would follow the main one past the chain.
        ip(host, version, "route", "replace", "unreachable", "default", *table)
        try:
            time.sleep(WITHDRAWN)
        finally:
            ip(host, version, "route", "replace", "default", *hop, "dev", route["dev"], *route["flags"], *table)

    return ChangeUnderLoad(f"a route is withdrawn for {WITHDRAWN * 1e3:.0f} ms", make)


def route_pairs(host: Host, addresses: ChainAddresses, sides: Sequence[HostSide]) -> None:
    """Route frames between the two sides of each pair. `sides` lists the pairs from left to right.

    One interface can belong to two pairs. The destination address tells which pair a frame is for.
    """
    changes: list[Sequence[str]] = []
    for place in range(0, len(sides), 2):
        left, right = sides[place : place + 2]
        changes += _route(FIRST_TABLE + place, left, right, addresses.right)
        changes += _route(FIRST_TABLE + place + 1, right, left, addresses.left)
    configure(host, *changes, ip_version=addresses.version)


def _route(table: int, arriving: HostSide, leaving: HostSide, network: str) -> list[Sequence[str]]:
    """The arguments of `ip` that route the frames that arrive at one interface to another one."""
    rule = ("rule", "add", "iif", arriving.interface, "to", network, "lookup", str(leaving.table or table))
    if leaving.table:
        return [rule]
    hop = ("via", leaving.pod_address, "onlink") if leaving.pod_address else ()
    return [rule, ("route", "add", "default", *hop, "dev", leaving.interface, "table", str(table))]
