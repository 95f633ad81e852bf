"""A test frame is a list of headers and a payload. This module alone knows the headers. Pure.

From a list of headers follow the bytes before the payload, the fields that change from frame to frame, and the
checksums. Testers copy the bytes and write the fields. The payload is the tester's (tester/payload.h).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, ClassVar, Protocol

HEAD_BYTES = 18  # of the payload, by which the tester recognises a frame
C_TAG, S_TAG = 0x8100, 0x88A8  # ethertypes of VLAN tags: IEEE 802.1Q, and the outer one of two (IEEE 802.1ad)
TAG_TYPES = {"802.1Q": C_TAG, "802.1ad": S_TAG}
HOP_LIMIT = 64
FCS_BYTES = 4
MOST_TAGS, MOST_RANGES = 2, 2
MOST_VLAN, MOST_PRIORITY, MOST_DSCP, MOST_HOP_LIMIT = 4094, 7, 63, 255
UDP_SOURCE_PORT, UDP_DESTINATION_PORT = 0xC020, 7  # RFC 2544, appendix C.2.6.4
FIRST_HOST = 16 << 8 | 1  # leaves the first 4096 addresses of each network to the testbed
_DONT_FRAGMENT = 0x4000
Address = IPv4Address | IPv6Address


class Varying(StrEnum):
    """What can differ from flow to flow."""

    SOURCE_ADDRESS = "source-address"
    DESTINATION_ADDRESS = "destination-address"
    SOURCE_PORT = "source-port"
    DESTINATION_PORT = "destination-port"
    VLAN_ID = "vlan-id"


class Value(StrEnum):
    """What stands in a field: the length of the frame in memory less a number, or one of two values of the flow."""

    LENGTH = "length"
    FIRST = "first"
    SECOND = "second"


@dataclass(frozen=True)
class Field:
    """16 bits at an offset in the header, in network order."""

    offset: int
    value: Value
    less: int = 0

    def __str__(self) -> str:
        return f"{self.offset}:{self.value}" + (f"-{self.less}" if self.value is Value.LENGTH else "")


@dataclass(frozen=True)
class Checksum:
    """The Internet checksum (RFC 1071) of the bytes from `start` to `end` of the header.

    With `pseudo`, it also covers the payload and a pseudo-header: a constant, and the field at an offset once more.
    """

    offset: int
    start: int
    end: int
    pseudo: tuple[int, int] | None = None

    def __str__(self) -> str:
        return ":".join(map(str, (self.offset, f"{self.start}-{self.end}", *(self.pseudo or ()))))


class Header(Protocol):
    """One header of a frame."""

    @property
    def number(self) -> int:
        """The number of this protocol in the header before."""

    def packed(self, following: int) -> bytes:
        """The bytes, with zeros in lengths and checksums. `following` is the number of the next header's protocol."""

    def places(self, at: int) -> Iterator[Field | Checksum]:
        """The lengths and checksums in this header, which begins at this offset of a frame."""

    def varying(self, at: int) -> Mapping[Varying, int]:
        """The offsets of what can differ from flow to flow: of an address, its last 16 bits."""


class _Plain:
    """A header without lengths, checksums, and what differs from flow to flow."""

    def places(self, at: int) -> Iterator[Field | Checksum]:
        return iter(())

    def varying(self, at: int) -> Mapping[Varying, int]:
        return {}


@dataclass(frozen=True)
class Ethernet(_Plain):
    """IEEE 802.3. MACs as `02:00:00:00:00:01`."""

    destination: str
    source: str
    number: ClassVar[int] = 0

    def packed(self, following: int) -> bytes:
        return bytes.fromhex((self.destination + self.source).replace(":", "")) + following.to_bytes(2, "big")


@dataclass(frozen=True)
class Vlan(_Plain):
    """A VLAN tag: `id` 1 to 4094, `priority` 0 to 7. `number` is its ethertype."""

    id: int
    priority: int = 0
    number: int = C_TAG

    @property
    def tag(self) -> bytes:
        """The tag as it stands between the MACs and the ethertype of a frame."""
        return self.number.to_bytes(2, "big") + self.packed(0)[:2]

    @property
    def control(self) -> int:
        """The tag control information: priority and ID (IEEE 802.1Q, 9.6)."""
        return self.priority << 13 | self.id

    def packed(self, following: int) -> bytes:
        return struct.pack("!HH", self.control, following)

    def varying(self, at: int) -> Mapping[Varying, int]:
        return {Varying.VLAN_ID: at}


@dataclass(frozen=True)
class IPv4:
    """RFC 791, without options. `dscp` 0 to 63 (RFC 2474). `ttl` 1 to 255."""

    source: Address
    destination: Address
    dscp: int = 0
    ttl: int = HOP_LIMIT
    dont_fragment: bool = True
    number: ClassVar[int] = 0x0800

    def packed(self, following: int) -> bytes:
        first = struct.pack("!BBHHH", 0x45, self.dscp << 2, 0, 0, _DONT_FRAGMENT if self.dont_fragment else 0)
        return first + struct.pack("!BBH", self.ttl, following, 0) + self.source.packed + self.destination.packed

    def places(self, at: int) -> Iterator[Field | Checksum]:
        yield Field(at + 2, Value.LENGTH, at)
        yield Checksum(at + 10, at, at + 20)

    def varying(self, at: int) -> Mapping[Varying, int]:
        return {Varying.SOURCE_ADDRESS: at + 14, Varying.DESTINATION_ADDRESS: at + 18}


@dataclass(frozen=True)
class IPv6:
    """RFC 8200, without extension headers. `dscp` 0 to 63 (RFC 2474). `hop_limit` 1 to 255."""

    source: Address
    destination: Address
    dscp: int = 0
    hop_limit: int = HOP_LIMIT
    number: ClassVar[int] = 0x86DD

    def packed(self, following: int) -> bytes:
        first = struct.pack("!IHBB", 6 << 28 | self.dscp << 22, 0, following, self.hop_limit)
        return first + self.source.packed + self.destination.packed

    def places(self, at: int) -> Iterator[Field | Checksum]:
        yield Field(at + 4, Value.LENGTH, at + 40)

    def varying(self, at: int) -> Mapping[Varying, int]:
        return {Varying.SOURCE_ADDRESS: at + 22, Varying.DESTINATION_ADDRESS: at + 38}


@dataclass(frozen=True)
class Udp:
    """RFC 768. `addresses` is the number of bytes of both addresses, the last ones before, if there is a checksum."""

    source: int
    destination: int
    addresses: int | None = None
    number: ClassVar[int] = 17

    def packed(self, following: int) -> bytes:
        return struct.pack("!HHHH", self.source, self.destination, 0, 0)

    def places(self, at: int) -> Iterator[Field | Checksum]:
        yield Field(at + 4, Value.LENGTH, at)
        if self.addresses is not None:
            yield Checksum(at + 6, at - self.addresses, at + 8, (self.number, at + 4))

    def varying(self, at: int) -> Mapping[Varying, int]:
        return {Varying.SOURCE_PORT: at, Varying.DESTINATION_PORT: at + 2}


@dataclass(frozen=True)
class Template:
    """The bytes before the payload, with zeros where `fields` and `checksums` are written in each frame.

    `fixed` are the offsets of fields that do not change in frames of this template.
    """

    header: bytes
    fields: tuple[Field, ...]
    checksums: tuple[Checksum, ...]
    fixed: tuple[int, ...] = ()


def template(
    headers: Sequence[Header], varying: Mapping[Varying, Value], fixed: Set[Varying] = frozenset()
) -> Template:
    """The template of frames with these headers. `varying` differs from flow to flow, apart from what is `fixed`.

    Of two VLAN tags, the inner one varies.
    """
    packed, places, offsets = b"", list[Field | Checksum](), dict[Varying, int]()
    for header, following in zip(headers, [*(each.number for each in headers[1:]), 0], strict=True):
        offsets |= header.varying(len(packed))
        places += header.places(len(packed))
        packed += header.packed(following)
    places += [Field(offsets[each], value) for each, value in varying.items()]
    kept = [offsets[each] for each in varying if each in fixed]
    found = [place for place in places if isinstance(place, Field)]
    fields = tuple(sorted(found, key=lambda each: each.value is Value.LENGTH))  # those of the flow go first
    blank = bytearray(packed)
    for place in fields:
        if place.offset not in kept:
            blank[place.offset : place.offset + 2] = bytes(2)
    checksums = tuple(place for place in places if isinstance(place, Checksum))
    return Template(bytes(blank), fields, checksums, tuple(kept))


def complete(made: Template, length: int, first: int, second: int = 0) -> bytes:
    """The bytes before the payload of a frame of this length in memory, if the payload is zeros."""
    values = {Value.FIRST: first, Value.SECOND: second}
    header = bytearray(made.header)
    for each in made.fields:
        if each.offset not in made.fixed:
            number = length - each.less if each.value is Value.LENGTH else values[each.value]
            header[each.offset : each.offset + 2] = number.to_bytes(2, "big")
    for checksum in made.checksums:
        covered = bytes(header[checksum.start : checksum.end])
        if checksum.pseudo:
            constant, again = checksum.pseudo
            covered += bytes([0, constant]) + header[again : again + 2]
        total = sum(struct.unpack(f"!{len(covered) // 2}H", covered))
        total = (total & 0xFFFF) + (total >> 16)
        found = ~(total + (total >> 16)) & 0xFFFF
        header[checksum.offset : checksum.offset + 2] = (found or (0xFFFF if checksum.pseudo else 0)).to_bytes(2, "big")
    return bytes(header)


class AddressFamily(StrEnum):
    """The family of the addresses in test frames."""

    IPV4 = "ipv4"
    IPV6 = "ipv6"

    @classmethod
    def of(cls, address: str | Address) -> AddressFamily:
        """The family of an address."""
        return cls.IPV4 if ip_address(address).version == 4 else cls.IPV6


BOTH_ADDRESSES = (Varying.SOURCE_ADDRESS, Varying.DESTINATION_ADDRESS)
UDP_PORTS = (Varying.SOURCE_PORT, Varying.DESTINATION_PORT)
Range = tuple[int, int]  # the first value, and how many there are
HOSTS: Range = (FIRST_HOST, 65536 - FIRST_HOST)
SOURCE_PORTS: Range = (UDP_SOURCE_PORT, 65536 - UDP_SOURCE_PORT)


@dataclass(frozen=True)
class Headers:
    """What a user chooses of the headers of test frames: `traffic` of a topology.

    `left` and `right` are the VLAN tags of the frames that the left or right port sends, the outermost first: none, one
    or two, and as many on both sides. IPv6 always has a UDP checksum, and IPv4 by choice. `dont_fragment` is DF, which
    only IPv4 has. `varying` differs from flow to flow. `random`: the flows come in pseudo-random order (RFC 4814
    section 4), otherwise in turn.
    """

    family: AddressFamily = AddressFamily.IPV4
    left: tuple[Vlan, ...] = ()
    right: tuple[Vlan, ...] = ()
    dscp: int = 0
    hop_limit: int = HOP_LIMIT
    dont_fragment: bool = True
    udp_checksum: bool = False
    varying: tuple[Varying, ...] = BOTH_ADDRESSES
    random: bool = False

    def __post_init__(self) -> None:
        tags = (*self.left, *self.right)
        if len(self.left) != len(self.right) or len(self.left) > MOST_TAGS:
            raise ValueError(f"0 to {MOST_TAGS} VLAN tags, as many from the left as from the right")
        if not 0 <= self.dscp <= MOST_DSCP or not 1 <= self.hop_limit <= MOST_HOP_LIMIT:
            raise ValueError(f"a DSCP is 0 to {MOST_DSCP}, and a hop limit or TTL 1 to {MOST_HOP_LIMIT}")
        if any(not 1 <= tag.id <= MOST_VLAN or not 0 <= tag.priority <= MOST_PRIORITY for tag in tags):
            raise ValueError(f"a VLAN ID is 1 to {MOST_VLAN}, and a priority 0 to {MOST_PRIORITY}")
        if Varying.VLAN_ID in self.varying and (not tags or self.left[-1].control != self.right[-1].control):
            raise ValueError("the same (inner) VLAN tag on both sides, if the VLAN ID differs from flow to flow")
        if not 1 <= len(self.ranges) <= MOST_RANGES:
            raise ValueError("flows that differ in at most two of VLAN ID, addresses and UDP ports")

    @property
    def ranges(self) -> Sequence[tuple[Sequence[Varying], Range]]:
        """What differs from flow to flow, and the range of its values. VLAN IDs count on from that of the tag."""
        tags = self.left[-1:]
        of_tag = (tags[0].control, MOST_VLAN + 1 - tags[0].id) if tags else (0, 0)
        kinds = (((Varying.VLAN_ID,), of_tag), (BOTH_ADDRESSES, HOSTS), (UDP_PORTS, SOURCE_PORTS))
        chosen = [([each for each in kind if each in self.varying], values) for kind, values in kinds]
        return [(kind, values) for kind, values in chosen if kind]

    @property
    def most_flows(self) -> int:
        """The number of flows that differ."""
        ranges = [values for _, values in self.ranges]
        if len(ranges) < MOST_RANGES and Varying.SOURCE_PORT not in self.varying:
            ranges.append(SOURCE_PORTS)
        return math.prod(count for _, count in ranges)

    def changed(self, family: AddressFamily | None = None, vlan: int | None = None) -> Headers:
        """These headers with addresses of another family, and with one VLAN tag of this ID from both sides.

        ValueError for an ID that no VLAN has.
        """
        left, right = (self.left, self.right) if vlan is None else ((Vlan(vlan),), (Vlan(vlan),))
        return replace(self, family=family or self.family, left=left, right=right)

    @property
    def words(self) -> str:
        """The headers in words: `IPv6, VLAN 100, DSCP 46`. Empty for IPv4 without a tag and without other choices."""
        ids = dict.fromkeys("/".join(str(tag.id) for tag in tags) for tags in (self.left, self.right) if tags)
        priorities = dict.fromkeys(str(tag.priority) for tag in (*self.left, *self.right) if tag.priority)
        choices = {
            "IPv6": self.family is AddressFamily.IPV6,
            f"VLAN {' and '.join(ids)}": ids,
            f"priority {' and '.join(priorities)}": priorities,
            f"DSCP {self.dscp}": self.dscp,
            f"hop limit {self.hop_limit}": self.hop_limit != HOP_LIMIT,
            "may be fragmented": not self.dont_fragment,
            "UDP checksum": self.udp_checksum,
            f"flows differ in {' and '.join(self.varying)}": self.varying != BOTH_ADDRESSES,
            "flows in pseudo-random order": self.random,
        }
        return ", ".join(words for words, chosen in choices.items() if chosen)

    @property
    def bytes(self) -> int:
        """The length of the headers before the payload."""
        return 14 + 4 * len(self.left) + (20 if self.family is AddressFamily.IPV4 else 40) + 8

    @property
    def smallest_frame(self) -> int:
        """The smallest frame in bytes with FCS: what these headers and the tester's part of the payload need."""
        return self.bytes + HEAD_BYTES + FCS_BYTES

    def mtu(self, largest: int) -> int:
        """The MTU that frames of this size in bytes with FCS need: without Ethernet, tags and FCS."""
        return largest - 14 - FCS_BYTES - 4 * len(self.left)


PLAIN = Headers()


def described(arrived: bytes) -> dict[str, Any]:
    """What a received frame has, from its first bytes: its tags, family, hop limit and DSCP."""
    tags, at = list[dict[str, Any]](), 12
    kind = int.from_bytes(arrived[at : at + 2], "big")
    while kind in (C_TAG, S_TAG):
        value = int.from_bytes(arrived[at + 2 : at + 4], "big")
        name = next(name for name, number in TAG_TYPES.items() if number == kind)
        tags.append({"id": value & 0xFFF, "priority": value >> 13, "type": name})
        at += 4
        kind = int.from_bytes(arrived[at : at + 2], "big")
    packet = arrived[at + 2 :]
    if kind == IPv6.number:
        family, hop_limit, traffic_class = AddressFamily.IPV6, packet[7], (packet[0] << 4 | packet[1] >> 4) & 0xFF
    else:
        family, hop_limit, traffic_class = AddressFamily.IPV4, packet[8], packet[1]
    return {"vlans": tags, "family": str(family), "hop_limit": hop_limit, "dscp": traffic_class >> 2}
