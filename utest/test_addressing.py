"""The addresses of a chain: those of IPv4 stay as they were, and both families have the same places."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.addressing import ADDRESSES, IPV4_ADDRESSES, IPV6_ADDRESSES, ChainAddresses, for_benchmarks
from podperf.model import MOST_GROUPS, MOST_PODS
from podperf.testers.headers import FIRST_HOST

FAMILIES = pytest.mark.parametrize("addresses", ADDRESSES.values(), ids=ADDRESSES)
SEGMENTS = st.integers(0, MOST_PODS)
HOPS = st.integers(0, MOST_PODS - 1)


def test_the_addresses_of_each_family() -> None:
    four, six = IPV4_ADDRESSES, IPV6_ADDRESSES
    assert (four.left_of(3), four.right_of(3), four.gateway_of(255)) == ("10.254.3.1", "10.254.3.2", "10.254.255.254")
    assert (six.left_of(3), six.gateway_of(255)) == ("2001:2:0:fe03::1", "2001:2:0:feff::fe")
    assert (four.chain_from_left(0), four.chain_from_right(1)) == ("198.19.0.1", "198.18.0.2")
    assert (six.chain_from_left(0), six.chain_from_right(1)) == ("2001:2:0:19::1", "2001:2:0:18::2")
    assert (four.service_from_left(0), four.service_from_right(6)) == ("198.19.255.1", "198.18.255.7")
    assert (six.service_from_left(0), six.service_from_right(6)) == ("2001:2:0:19::ff01", "2001:2:0:18::ff07")
    assert [each.alone(each.left_of(0)) for each in (four, six)] == ["10.254.0.1/32", "2001:2:0:fe00::1/128"]
    assert [each.on_segment(each.left_of(0)) for each in (four, six)] == ["10.254.0.1/24", "2001:2:0:fe00::1/64"]
    assert [each.with_port(each.left_of(0), 53) for each in (four, six)] == ["10.254.0.1:53", "[2001:2:0:fe00::1]:53"]


@FAMILIES
@given(segment=SEGMENTS, other=SEGMENTS)
def test_a_segment_is_a_network_of_its_own(addresses: ChainAddresses, segment: int, other: int) -> None:
    ends = [addresses.left_of(segment), addresses.right_of(segment), addresses.gateway_of(segment)]
    (network,) = {ip_network(addresses.on_segment(each), strict=False) for each in ends}
    assert len({*ends}) == 3
    assert (ip_address(addresses.left_of(other)) in network) == (segment == other)


@FAMILIES
@given(hop=HOPS, chain=st.integers(0, MOST_GROUPS - 1), segment=SEGMENTS)
def test_only_next_hops_lie_outside_of_the_networks_of_frames(
    addresses: ChainAddresses, hop: int, chain: int, segment: int
) -> None:
    left, right = _networks(addresses)
    for of_frames, to_left, to_right in (
        (hop, addresses.service_from_right(hop), addresses.service_from_left(hop)),
        (chain, addresses.chain_from_right(chain), addresses.chain_from_left(chain)),
    ):
        assert ip_address(to_left) in left and ip_address(to_right) in right, of_frames
        assert for_benchmarks(ip_address(to_left)) and for_benchmarks(ip_address(to_right))
    assert ip_address(addresses.chain_from_left(chain)) < right[FIRST_HOST]  # no flow of a tester has it
    assert not any(ip_address(addresses.left_of(segment)) in each for each in (left, right))


def _networks(addresses: ChainAddresses) -> Iterator[IPv4Network | IPv6Network]:
    return (ip_network(each) for each in (addresses.left, addresses.right))
