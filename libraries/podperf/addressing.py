"""The addresses of a chain.

Test frames carry addresses from 198.18.0.0/15 (RFC 2544, appendix C.2.2): 198.18.0.0/16 lies behind the tester's left
port, and 198.19.0.0/16 behind its right port. IPv6 addresses are from 2001:2::/48 (RFC 5180 section 8):
2001:2:0:18::/64 lies behind the left port, and 2001:2:0:19::/64 behind the right port.

A segment joins two neighbours of a chain: segment 0 is before the first pod, segment N behind the last of N pods.
Addresses of segments are only next hops: 10.254.N.0/24, or the N-th /64 of 2001:2:0:fe00::/56. No test frame has them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

from podperf.errors import PodperfError
from podperf.frames import AddressFamily

TEST_NETWORK = IPv4Network("198.18.0.0/15")
TEST_NETWORK_6 = IPv6Network("2001:2::/48")
SERVICE_PORT = 5001  # UDP port of frames whose destination is a pod itself
_SERVICES = 0xFF01  # the first address of services in a network of test frames
_MAC = re.compile(r"[0-9a-f][02468ace](:[0-9a-f]{2}){5}", re.ASCII | re.IGNORECASE)
_MOST_QUOTED = 100  # characters of what is no MAC


def mac_of(told: object, where: str) -> str:
    """The MAC of an interface, as a program told it. Raises PodperfError for any other text.

    A machine that means harm tells other texts: MACs become words of the tester's requests and of commands on other
    machines. The MAC of a group of interfaces, or of all, is none of an interface.
    """
    text = str(told)
    if not _MAC.fullmatch(text):
        raise PodperfError(f"{where}: {text[:_MOST_QUOTED]!r} is not the MAC address of one interface")
    return text


def for_benchmarks(address: IPv4Address | IPv6Address) -> bool:
    """True for an address of the networks for benchmarks (RFC 2544, RFC 5180). Test frames have no others."""
    return address in (TEST_NETWORK if isinstance(address, IPv4Address) else TEST_NETWORK_6)


@dataclass(frozen=True)
class ChainAddresses:
    """All addresses of a chain, of one family, and the words of the family in commands.

    `left` and `right` are the networks of test frames. `segments` has a network of `prefix_length` for each segment. A
    pod that finds its gateway by itself has `link_gateway`. A kernel with `forwarding` routes (see hosts.linux.sysctl).
    """

    family: AddressFamily
    left: str
    right: str
    segments: str
    prefix_length: int
    link_gateway: str
    forwarding: Mapping[str, int]

    @property
    def version(self) -> int:
        """4 or 6: of the Internet Protocol."""
        return ip_network(self.left).version

    @property
    def ip(self) -> str:
        """The family's name in nftables, and in names of programs such as `ip6tables`: `ip` or `ip6`."""
        return "ip" if self.family is AddressFamily.IPV4 else "ip6"

    def left_of(self, segment: int) -> str:
        """The address at the left end of this segment: of a pod's net2, or of the tester."""
        return self._in_segment(segment, 1)

    def right_of(self, segment: int) -> str:
        """The address at the right end of this segment: of a pod's net1, or of the tester."""
        return self._in_segment(segment, 2)

    def gateway_of(self, segment: int) -> str:
        """The worker's own address on this segment, for data planes that give it one."""
        return self._in_segment(segment, 254)

    def _in_segment(self, segment: int, number: int) -> str:
        network = ip_network(self.segments)
        return str(network[(segment << network.max_prefixlen - self.prefix_length) + number])

    def on_segment(self, address: str) -> str:
        """An address of a segment with the length of its network's prefix."""
        return f"{address}/{self.prefix_length}"

    def alone(self, address: str) -> str:
        """The network that has only this address."""
        return str(ip_network(address))

    def with_port(self, address: str, port: int) -> str:
        """An address and a UDP port, as a rule of nftables has them."""
        return f"{address}:{port}" if self.family is AddressFamily.IPV4 else f"[{address}]:{port}"

    def chain_from_left(self, number: int) -> str:
        """The destination of frames from the left for one of several chains, counted from 0, where addresses tell them
        apart. No flow of a tester has this address."""
        return str(ip_network(self.right)[number + 1])

    def chain_from_right(self, number: int) -> str:
        """The destination of frames from the right for one of several chains, counted from 0."""
        return str(ip_network(self.left)[number + 1])

    def service_from_left(self, number: int) -> str:
        """The destination of frames from the left at hop `number`: the worker (0), a pod, or at the end the tester."""
        return str(ip_network(self.right)[_SERVICES + number])

    def service_from_right(self, number: int) -> str:
        """The destination of frames from the right at hop `number`, counted from the left."""
        return str(ip_network(self.left)[_SERVICES + number])


IPV4_ADDRESSES = ChainAddresses(
    AddressFamily.IPV4,
    left="198.18.0.0/16",
    right="198.19.0.0/16",
    segments="10.254.0.0/16",
    prefix_length=24,
    link_gateway="169.254.1.1",
    forwarding={"net__ipv4__ip_forward": 1},
)
# Namespaces of a run have no IPv6 at first (podperf.hosts.namespaces).
_WITH_IPV6 = {f"net__ipv6__conf__{of}__disable_ipv6": 0 for of in ("all", "default")}
IPV6_ADDRESSES = ChainAddresses(
    AddressFamily.IPV6,
    left="2001:2:0:18::/64",
    right="2001:2:0:19::/64",
    segments="2001:2:0:fe00::/56",
    prefix_length=64,
    link_gateway="fe80::1",
    forwarding={**_WITH_IPV6, "net__ipv6__conf__all__forwarding": 1},
)
ADDRESSES: Mapping[AddressFamily, ChainAddresses] = {
    AddressFamily.IPV4: IPV4_ADDRESSES,
    AddressFamily.IPV6: IPV6_ADDRESSES,
}
