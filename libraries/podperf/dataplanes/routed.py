"""Forwarding as in Calico: veth pairs, /32 routes on the worker, and proxy ARP for the pods' gateway 169.254.1.1.

This needs no plug-in of Calico. The kernel settings are those of Calico's agent Felix.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import ClassVar

from podperf.addressing import left_of, right_of
from podperf.dataplanes.base import RunningDataPlane, Worker
from podperf.dataplanes.host_routing import HostSide, prepare_worker, route_chain
from podperf.dataplanes.kernel_state import KernelPods, running_pods
from podperf.hosts.base import Host
from podperf.hosts.linux import ip, sysctl
from podperf.model import Chain
from podperf.pods.base import Pod
from podperf.pods.forwarders.kernel import NextHop, forward

GATEWAY = "169.254.1.1"


class Routed(KernelPods):
    """There is no bridge. The worker is a router with one /32 route for each pod interface."""

    name: ClassVar[str] = "routed"

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return None

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        prepare_worker(worker, chain.pods)
        # Proxy ARP answers only for addresses that the worker can route: 169.254.1.1 needs a default route.
        hop = ("via", right_of(chain.pods), "dev", worker.right.interface, "onlink")
        ip(worker.host, "route", "add", "default", *hop)
        pods, sides = start_routed_pods(worker, worker.host, chain.pods, undo)
        return running_pods(worker, pods, route_chain(worker, sides))


def start_routed_pods(
    worker: Worker, node: Host, count: int, undo: ExitStack
) -> tuple[list[Pod], list[tuple[HostSide, HostSide]]]:
    """Pods whose gateway is `node`, and the node's sides of their interfaces, from left to right."""
    pods, sides = [], []
    for number in range(1, count + 1):
        pod = worker.pods.start(f"pod{number}", [], undo)
        net1 = _attach(node, worker.mtu, pod, "net1", f"cali{number}a", right_of(number - 1))
        net2 = _attach(node, worker.mtu, pod, "net2", f"cali{number}b", left_of(number))
        forward(pod, to_left=NextHop("net1", GATEWAY), to_right=NextHop("net2", GATEWAY))
        pods.append(pod)
        sides.append((net1, net2))
    return pods, sides


def _attach(node: Host, mtu: int, pod: Pod, interface: str, host_interface: str, address: str) -> HostSide:
    pod.add_veth(interface, node, host_interface, mtu, f"{address}/32")
    ip(node, "route", "add", f"{address}/32", "dev", host_interface, "scope", "link")
    sysctl(
        node,
        **{
            f"net__ipv4__conf__{host_interface}__proxy_arp": 1,
            f"net__ipv4__neigh__{host_interface}__proxy_delay": 0,
        },
    )
    return HostSide(host_interface, address)
