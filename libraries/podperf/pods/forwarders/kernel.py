"""The pod's own kernel forwards: IPv4 routing between its two interfaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podperf.addressing import LEFT_NETWORK, RIGHT_NETWORK
from podperf.hosts.linux import configure, static_neighbour
from podperf.pods.base import Pod


@dataclass(frozen=True)
class NextHop:
    """The next hop of a pod: an interface and an address. If `mac` is given, the neighbour is a static entry."""

    interface: str
    address: str
    mac: str | None = None


def forward(pod: Pod, to_left: NextHop, to_right: NextHop) -> None:
    """Route the tester's left network to `to_left`, and its right network to `to_right`."""
    route_via(pod, {LEFT_NETWORK: to_left, RIGHT_NETWORK: to_right})


def route_via(pod: Pod, hops: Mapping[str, NextHop], **settings: int) -> None:
    """Let a pod forward to these networks, and set further kernel parameters (see `sysctl`)."""
    changes: list[Sequence[str]] = []
    for network, hop in hops.items():
        if hop.mac is not None:
            changes.append(static_neighbour(hop.interface, hop.address, hop.mac))
        changes.append(("route", "replace", network, "via", hop.address, "dev", hop.interface, "onlink"))
    configure(pod.host, *changes, net__ipv4__ip_forward=1, **settings)
