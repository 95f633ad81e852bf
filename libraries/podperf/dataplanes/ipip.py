"""Traffic between nodes as in Calico: the pods are on a second node, and an IPIP tunnel (RFC 2003) leads there.

The second node is a network namespace of the worker, at the far end of a veth pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, ClassVar

from podperf.dataplanes.base import RunningDataPlane, Worker
from podperf.dataplanes.host_routing import HostSide, prepare_worker, route_pairs
from podperf.dataplanes.kernel_state import KernelPods, network_of, running_pods
from podperf.dataplanes.routed import start_routed_pods
from podperf.errors import Unavailable
from podperf.frames import AddressFamily
from podperf.hosts.base import Host
from podperf.hosts.linux import ip, missing_link_type, module_as_before, sysctl
from podperf.hosts.way_back import unload_at_the_end
from podperf.model import Chain

HEADER = 20  # bytes that the tunnel puts before each packet
MODULE = "ipip"  # makes an interface in every namespace, also in the user's, which stays until the module is unloaded
UNDERLAY, TUNNEL = "node", "ipip"  # names of interfaces, the same on both nodes
FIRST_NODE, SECOND_NODE = "10.254.255.1", "10.254.255.2"


class Ipip(KernelPods):
    """The first node has the ports, and forwards between ports and tunnel. The second node has the pods."""

    name: ClassVar[str] = "ipip"
    no_end_in_pod: ClassVar[str] = "its pods are on a second node, behind the tunnel"

    @staticmethod
    def unavailable(host: Host) -> str | None:
        with module_as_before(host, MODULE):
            # A tunnel without a remote end would equal the one that the module makes in each namespace.
            return missing_link_type(host, MODULE, "remote", SECOND_NODE)

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        if worker.addresses.family is not AddressFamily.IPV4:
            raise Unavailable("an IPIP tunnel carries IPv4 packets only (RFC 2003), as Calico's mode IPIP does")
        unload_at_the_end(worker.host, MODULE, undo)
        node = worker.pods.start("node2", [], undo)
        node.add_veth(UNDERLAY, worker.host, UNDERLAY, worker.mtu + HEADER)
        _add_tunnel(worker.host, worker.mtu, FIRST_NODE, SECOND_NODE)
        _add_tunnel(node.host, worker.mtu, SECOND_NODE, FIRST_NODE)
        # Pods find this node by proxy ARP, and proxy ARP answers only for addresses that have a route.
        ip(node.host, "route", "add", "default", "dev", TUNNEL)
        sysctl(node.host, net__ipv4__ip_forward=1)
        prepare_worker(worker, chain.pods)
        pods, sides = start_routed_pods(worker, node.host, chain.pods, undo)
        tunnel = HostSide(TUNNEL, None)
        route_pairs(node.host, worker.addresses, [tunnel, *(side for pod in sides for side in pod), tunnel])
        left = HostSide(worker.left.interface, worker.addresses.left_of(0))
        right = HostSide(worker.right.interface, worker.addresses.right_of(chain.pods))
        route_pairs(worker.host, worker.addresses, [left, tunnel, tunnel, right])

        def describe() -> Mapping[str, Any]:
            return {"second_node": network_of(node.host, worker.addresses)}

        return running_pods(worker, pods, worker.entries, describe)


def _add_tunnel(node: Host, mtu: int, local: str, remote: str) -> None:
    ip(node, "address", "add", local, "peer", remote, "dev", UNDERLAY)
    ip(node, "link", "add", "name", TUNNEL, "mtu", str(mtu), "type", "ipip", "local", local, "remote", remote)
    ip(node, "link", "set", TUNNEL, "up")
