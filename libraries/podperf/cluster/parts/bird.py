"""BIRD as the network of pods: each node announces the block of its pods' addresses by BGP, as Calico's nodes do.

podperf runs BIRD of Debian and the CNI plug-in `ptp`, because no registry has Calico's own agents.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from ipaddress import ip_address, ip_network
from typing import Any, ClassVar

from podperf.cluster.layout import ClusterLayout, ClusterNetwork, ClusterNode
from podperf.cluster.parts.plain import addresses, routes_to_others
from podperf.errors import PodperfError

_AS = 64512  # of all nodes: their sessions are internal ones (iBGP)
_SETTINGS = "bird.conf"
_TUNNEL, _TUNNEL_MTU = "vxlan.nodes", 1450


class Bird(ClusterNetwork):
    """BIRD 2 on each node. With VXLAN, the sessions are in a VXLAN of the nodes, so it has the next hops, too."""

    name: ClassVar[str] = "bird"
    takes: ClassVar[Collection[str]] = ("network-policies",)
    modes: ClassVar[tuple[str, ...]] = ("plain", "vxlan")
    encapsulations: ClassVar[Mapping[str, str]] = {"vxlan": "VXLAN"}
    data_plane: ClassVar[str] = "Linux routes"
    needs_node: ClassVar[bool] = False
    packages: ClassVar[tuple[str, ...]] = (
        *("bird2", "libssh-gcrypt-4"),
        *("libgssapi-krb5-2", "libkrb5-3", "libk5crypto3", "libkrb5support0", "libcom-err2", "libkeyutils1"),
    )

    @property
    def _encapsulated(self) -> bool:
        return self.mode == "vxlan"

    def plugin(self, layout: ClusterLayout, node: ClusterNode) -> Mapping[str, Any]:
        mtu = {"mtu": _TUNNEL_MTU} if self._encapsulated else {}
        return {"type": "ptp", "ipam": addresses(node.pods), **mtu}

    def network_commands(self, nodes: Sequence[ClusterNode]) -> Iterator[tuple[str, ...]]:
        for node in nodes if self._encapsulated else ():
            inside = ("ip", "-n", node.name)
            tunnel = ("type", "vxlan", "id", "4096", "dstport", "4789", "local", node.addresses[0])
            yield (*inside, "link", "add", _TUNNEL, "mtu", str(_TUNNEL_MTU), *tunnel)
            for address, length in zip(_in_tunnel(node), (24, 64), strict=True):
                yield (*inside, "address", "add", f"{address}/{length}", "dev", _TUNNEL, "nodad")
            yield (*inside, "link", "set", _TUNNEL, "up")
            for other in (each.addresses[0] for each in nodes if each != node):
                to_all = ("fdb", "append", "00:00:00:00:00:00", "dst", other, "dev", _TUNNEL)
                yield ("bridge", "-n", node.name, *to_all)

    def files(self, layout: ClusterLayout, node: ClusterNode) -> Mapping[str, bytes]:
        parts = [f"router id {node.addresses[0]};", "protocol device {}"]
        for pods in node.pods:
            family = f"ipv{ip_network(pods).version}"
            parts += [
                f"protocol kernel {{ {family} {{ import none; export all; }}; }}",
                f"protocol static {{ {family}; route {pods} blackhole; }}",
            ]
        for other in layout.others(node):
            parts += map(_session, self._addresses(node), self._addresses(other))
        return {_SETTINGS: "\n".join((*parts, "")).encode()}

    def _addresses(self, node: ClusterNode) -> tuple[str, str]:
        return _in_tunnel(node) if self._encapsulated else node.addresses

    def command(self, layout: ClusterLayout, node: ClusterNode) -> list[str]:
        assert self.debian is not None
        libraries = next(self.debian.glob("usr/lib/*-linux-*"), None)
        if libraries is None:
            raise PodperfError(f"{self.debian} has no libraries; remove that folder, and run this command again")
        return [
            *("env", f"LD_LIBRARY_PATH={libraries}", str(self.debian / "usr/sbin/bird")),
            *("-f", "-c", str(layout.of_node(node) / _SETTINGS), "-s", "/run/bird.ctl"),
        ]

    def ready(self, layout: ClusterLayout, node: ClusterNode) -> list[str]:
        return routes_to_others(layout, node)


def _in_tunnel(node: ClusterNode) -> tuple[str, str]:
    """The addresses of a node in the VXLAN, IPv4 and IPv6."""
    return f"10.245.0.{10 + node.number}", f"fd00:10:245::{10 + node.number}"


def _session(own: str, other: str) -> str:
    """A session of BGP by which nodes tell each other their own blocks."""
    channel = "import all; export where source = RTS_STATIC; next hop self;"
    return (
        f"protocol bgp {{ local {own} as {_AS}; neighbor {other} as {_AS}; direct; "
        f"connect delay time 1; connect retry time 1; error wait time 1, 5; "
        f"ipv{ip_address(own).version} {{ {channel} }}; }}"
    )
