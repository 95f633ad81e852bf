"""The plain network of pods: a bridge on each node, and static routes between the nodes. It has no agent."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from ipaddress import ip_network
from typing import Any, ClassVar

from podperf.cluster.layout import ClusterLayout, ClusterNetwork, ClusterNode


def addresses(pods: Sequence[str]) -> Mapping[str, Any]:
    """The settings of a CNI plug-in that give each pod an address of these networks, and default routes."""
    default = {4: "0.0.0.0/0", 6: "::/0"}
    return {
        "type": "host-local",
        "dataDir": "/run/cni-addresses",
        "ranges": [[{"subnet": subnet}] for subnet in pods],
        "routes": [{"dst": default[ip_network(subnet).version]} for subnet in pods],
    }


def bridge(name: str, pods: Sequence[str]) -> Mapping[str, Any]:
    """The CNI plug-in `bridge` of Debian's package, with addresses of these networks."""
    return {"type": "bridge", "bridge": name, "isGateway": True, "hairpinMode": True, "ipam": addresses(pods)}


def routes_exist(networks: Sequence[str]) -> list[str]:
    """A command that succeeds if the node has a route of its own to each of these networks."""
    each = "; ".join(f"ip -{ip_network(one).version} route show exact {one} | grep -q ." for one in networks)
    return ["sh", "-ec", each or "true"]


def routes_to_others(layout: ClusterLayout, node: ClusterNode) -> list[str]:
    """A command that succeeds if this node has routes to the pods of all other nodes."""
    return routes_exist([pods for other in layout.others(node) for pods in other.pods])


class Plain(ClusterNetwork):
    """The CNI plug-in `bridge`, and routes that podperf sets."""

    name: ClassVar[str] = "plain"
    restarts: ClassVar[bool] = False
    takes: ClassVar[Collection[str]] = ("multus", "network-policies")

    def plugin(self, layout: ClusterLayout, node: ClusterNode) -> Mapping[str, Any]:
        return bridge("cni0", node.pods)

    def network_commands(self, nodes: Sequence[ClusterNode]) -> Iterator[tuple[str, ...]]:
        for node in nodes:
            for pods, address in zip(node.pods, node.addresses, strict=True):
                for other in (each.name for each in nodes if each != node):
                    yield ("ip", "-n", other, "route", "add", pods, "via", address)
