"""Test frames as scapy reads them, and headers for property tests."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether

from podperf.frames import BOTH_ADDRESSES, C_TAG, S_TAG, AddressFamily, Headers, Varying, Vlan

TAGS = st.lists(st.builds(Vlan, st.integers(1, 4094), st.integers(0, 7), st.sampled_from([C_TAG, S_TAG])), max_size=2)
HEADERS = st.builds(
    lambda tags, **others: Headers(left=tuple(tags), right=tuple(tags), **others),
    TAGS,
    family=st.sampled_from(AddressFamily),
    dscp=st.integers(0, 63),
    hop_limit=st.integers(1, 255),
    dont_fragment=st.booleans(),
    udp_checksum=st.booleans(),
    varying=st.sampled_from([BOTH_ADDRESSES, (Varying.SOURCE_ADDRESS, Varying.DESTINATION_PORT)]),
    random=st.booleans(),
)


def checksums_are_right(frame: bytes) -> bool:
    """True if scapy computes the same checksums of IPv4 and UDP, or there is none of UDP over IPv4."""
    read, again = Ether(frame), Ether(frame)
    for layer in (IP, UDP):
        if layer in again and read[layer].chksum:
            del again[layer].chksum
    return bytes(again) == frame


def faults_of(frame: bytes, headers: Headers, tags: Sequence[Vlan]) -> list[str]:
    """What is wrong in a frame that should have these headers and tags. Empty for a sound one."""
    read = Ether(frame)
    ipv4 = headers.family is AddressFamily.IPV4
    if UDP not in read or (IP if ipv4 else IPv6) not in read:
        return [f"no UDP over {headers.family}"]
    network = read[IP] if ipv4 else read[IPv6]
    seen = [each for each in read.iterpayloads() if isinstance(each, (Dot1Q, Dot1AD))]
    sound = {
        "tags": [(tag.vlan, tag.prio) for tag in seen] == [(tag.id, tag.priority) for tag in tags],
        "length of the packet": len(bytes(network)) == len(frame) - 14 - 4 * len(tags),
        "length of UDP": read[UDP].len == len(bytes(read[UDP])),
        "DSCP": (network.tos if ipv4 else network.tc) >> 2 == headers.dscp,
        "hop limit": (network.ttl if ipv4 else network.hlim) == headers.hop_limit,
        "DF": not ipv4 or network.flags == ("DF" if headers.dont_fragment else ""),
        "UDP checksum": (read[UDP].chksum != 0) is (headers.udp_checksum or not ipv4),
        "checksums": checksums_are_right(frame),
    }
    return [name for name, good in sound.items() if not good]
