"""The pod's own kernel forwards: it routes between its two interfaces, or is a proxy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podperf.addressing import SERVICE_PORT, ChainAddresses
from podperf.hosts.linux import configure, static_neighbour
from podperf.pods.base import Pod


@dataclass(frozen=True)
class NextHop:
    """The next hop of a pod: an interface and an address. If `mac` is given, the neighbour is a static entry."""

    interface: str
    address: str
    mac: str | None = None


def forward(pod: Pod, addresses: ChainAddresses, to_left: NextHop, to_right: NextHop) -> None:
    """Route the tester's left network to `to_left`, and its right network to `to_right`."""
    route_via(pod, addresses, {addresses.left: to_left, addresses.right: to_right})


def route_via(pod: Pod, addresses: ChainAddresses, hops: Mapping[str, NextHop], **settings: int) -> None:
    """Let a pod forward to these networks, and set further kernel parameters (see `sysctl`)."""
    changes: list[Sequence[str]] = []
    for network, hop in hops.items():
        if hop.mac is not None:
            changes.append(static_neighbour(hop.interface, hop.address, hop.mac))
        changes.append(("route", "replace", network, "via", hop.address, "dev", hop.interface, "onlink"))
    configure(pod.host, *changes, **addresses.forwarding, **settings)


# Rules match the interface where a frame arrives: net1 from the left, net2 from the right.
_RULES = """
table {ip} podperf {{
  chain incoming {{
    type nat hook prerouting priority dstnat;
    iifname "net1" udp dport {port} dnat to {next_right}
    iifname "net2" udp dport {port} dnat to {next_left}
  }}
  chain outgoing {{
    type nat hook postrouting priority srcnat;
    {source_rule}
  }}
}}
"""


def translate(pod: Pod, addresses: ChainAddresses, next_left: str, next_right: str, *, masquerade: bool) -> None:
    """Send frames that arrive on net1 to `next_right`, and frames that arrive on net2 to `next_left`, as a proxy does.

    This is for data planes that deliver a frame only to the pod that has its destination address. With `masquerade`,
    the pod's own address becomes the source. The pod needs routes, too (`route_via`).
    """
    source_rule = 'oifname { "net1", "net2" } masquerade' if masquerade else ""
    left, right = (addresses.with_port(each, SERVICE_PORT) for each in (next_left, next_right))
    rules = _RULES.format(ip=addresses.ip, port=SERVICE_PORT, next_left=left, next_right=right, source_rule=source_rule)
    pod.host.do("nft", "-f", "-", stdin=rules)
