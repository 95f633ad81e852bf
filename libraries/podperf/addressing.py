"""The addresses of a chain.

Test frames carry addresses from 198.18.0.0/15 (RFC 2544, appendix C.2.2): 198.18.0.0/16 lies behind the tester's left
port, and 198.19.0.0/16 behind its right port. A segment joins two neighbours of a chain: segment 0 is before the first
pod, segment N behind the last of N pods. Addresses of segments are only next hops. No test frame has them.
"""

from __future__ import annotations

from ipaddress import IPv4Network

TEST_NETWORK = IPv4Network("198.18.0.0/15")
LEFT_NETWORK = "198.18.0.0/16"
RIGHT_NETWORK = "198.19.0.0/16"
PREFIX_LENGTH = 24
SERVICE_PORT = 5001  # UDP port of frames whose destination is a pod itself


def left_of(segment: int) -> str:
    """The address at the left end of this segment: of a pod's net2, or of the tester."""
    return f"10.254.{segment}.1"


def right_of(segment: int) -> str:
    """The address at the right end of this segment: of a pod's net1, or of the tester."""
    return f"10.254.{segment}.2"


def gateway_of(segment: int) -> str:
    """The worker's own address on this segment, for data planes that give it one."""
    return f"10.254.{segment}.254"


def chain_from_left(number: int) -> str:
    """The destination of frames from the left for one of several chains, counted from 0, where addresses tell them
    apart. No flow of a tester has this address."""
    return f"198.19.0.{number + 1}"


def chain_from_right(number: int) -> str:
    """The destination of frames from the right for one of several chains, counted from 0."""
    return f"198.18.0.{number + 1}"


def service_from_left(number: int) -> str:
    """The destination of frames from the left at hop `number`: the worker (0), a pod, or at the end the tester."""
    return f"198.19.255.{number + 1}"


def service_from_right(number: int) -> str:
    """The destination of frames from the right at hop `number`, counted from the left."""
    return f"198.18.255.{number + 1}"
