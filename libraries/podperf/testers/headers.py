"""The headers of a trial's frames, from its traffic and the MACs of the tester's ports. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from podperf.addressing import ADDRESSES, for_benchmarks, mac_of
from podperf.errors import PodperfError
from podperf.frames import (
    FIRST_HOST,
    SOURCE_PORTS,
    UDP_DESTINATION_PORT,
    UDP_SOURCE_PORT,
    AddressFamily,
    Ethernet,
    Header,
    IPv4,
    IPv6,
    Range,
    Template,
    Udp,
    Value,
    Varying,
    template,
)
from podperf.model import AddressedTraffic, Direction, Entry
from podperf.testers.base import DESTINATION

_SIDES = ("left", "right")


@dataclass(frozen=True)
class Flows:
    """What differs from flow to flow, and the range of the first and of the second value of a flow."""

    varying: Mapping[Varying, Value]
    first: Range
    second: Range = SOURCE_PORTS


def flows_of(traffic: AddressedTraffic) -> Flows:
    """What the headers say. If its values are not enough for all flows, the UDP source port differs, too.

    Flows that differ in two things have about the square root of their number of values of each. Frames from an address
    of their own, such as a pod's, differ in the source port alone, unless the traffic has ranges of both UDP ports.
    """
    if traffic.udp_ports is not None:
        return Flows({Varying.DESTINATION_PORT: Value.FIRST, Varying.SOURCE_PORT: Value.SECOND}, *traffic.udp_ports)
    if any(entry.source for direction in Direction for entry in traffic.entries_of(direction)):
        return Flows({Varying.SOURCE_PORT: Value.FIRST}, SOURCE_PORTS)
    (kind, values), *further = traffic.profile.headers.ranges
    start, count = values
    varying = dict.fromkeys(kind, Value.FIRST)
    for other, (second, most) in further:
        number = min(most, max(math.isqrt(traffic.flows), math.ceil(traffic.flows / count)))
        both = varying | dict.fromkeys(other, Value.SECOND)
        return Flows(both, (start, math.ceil(traffic.flows / number)), (second, number))
    if traffic.flows > count and Varying.SOURCE_PORT not in varying:
        varying[Varying.SOURCE_PORT] = Value.SECOND
    return Flows(varying, values)


def first_address(side: str, family: AddressFamily) -> IPv4Address | IPv6Address:
    """The source address of the first flow of the left or right port."""
    networks = ADDRESSES[family].left, ADDRESSES[family].right
    return ip_network(networks[_SIDES.index(side)])[FIRST_HOST]


def own_addresses(traffic: AddressedTraffic, side: str) -> list[tuple[IPv4Address | IPv6Address, int]]:
    """The addresses for which a port of the tester answers: the first one, and how many there are from it on.

    They are the source addresses of its flows. There are none if frames come from the address of a pod, which answers.
    """
    direction = list(Direction)[_SIDES.index(side)]
    if any(entry.source for entry in traffic.entries_of(direction)):
        return []
    flows = flows_of(traffic)
    number = {Value.FIRST: flows.first[1], Value.SECOND: flows.second[1]}
    value = flows.varying.get(Varying.SOURCE_ADDRESS)
    return [(first_address(side, traffic.profile.headers.family), min(traffic.flows, number[value]) if value else 1)]


def templates_of(
    traffic: AddressedTraffic, direction: Direction, macs: tuple[str, str], *, any_address: bool = False
) -> list[Template]:
    """The template of each group of flows of this direction. `macs` are those of the sending and the receiving port.

    Raises PodperfError for a destination that no frame may have. Without `any_address` this is also an address outside
    of the networks for benchmarks, because test frames must not leave the testbed.
    """
    varying = flows_of(traffic).varying
    made = []
    for entry in traffic.entries_of(direction):
        fixed = {Varying.DESTINATION_ADDRESS} if entry.address else set()
        headers = tuple(_headers(traffic, direction, entry, macs, any_address=any_address))
        made.append(template(headers, varying, fixed))
    return made


def _headers(
    traffic: AddressedTraffic, direction: Direction, entry: Entry, macs: tuple[str, str], *, any_address: bool
) -> Iterator[Header]:
    wanted = traffic.profile.headers
    sender, receiver = macs
    yield Ethernet(
        mac_of(receiver if entry.mac is None else entry.mac, DESTINATION), mac_of(sender, "the sending port")
    )
    yield from wanted.left if direction is Direction.LEFT_TO_RIGHT else wanted.right
    left, right = (ip_network(each) for each in (ADDRESSES[wanted.family].left, ADDRESSES[wanted.family].right))
    near, far = (left, right) if direction is Direction.LEFT_TO_RIGHT else (right, left)
    try:
        source = ip_address(entry.source or near[FIRST_HOST])
        destination = ip_address(entry.address or far[FIRST_HOST])
    except ValueError as error:
        raise PodperfError(f"{DESTINATION}: {error}") from error
    for address in (source, destination):
        if address.version != near.version or not (any_address or for_benchmarks(address)):
            allowed = f"{wanted.family} address" + ("" if any_address else " for benchmarks (RFC 2544, RFC 5180)")
            raise PodperfError(f"{DESTINATION}: {address} is no {allowed}")
    if wanted.family is AddressFamily.IPV4:
        yield IPv4(source, destination, wanted.dscp, wanted.hop_limit, wanted.dont_fragment)
    else:
        yield IPv6(source, destination, wanted.dscp, wanted.hop_limit)
    addresses = 8 if wanted.family is AddressFamily.IPV4 else 32
    checksum = wanted.udp_checksum or wanted.family is AddressFamily.IPV6  # RFC 8200 section 8.1
    yield Udp(UDP_SOURCE_PORT, entry.udp_port or UDP_DESTINATION_PORT, addresses if checksum else None)
