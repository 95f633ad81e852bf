"""Forwarding as in Calico: veth pairs, a route on the worker for each address of a pod, and one gateway for all pods.

The gateway is 169.254.1.1, for which the worker answers (proxy ARP), or fe80::1, which each of the worker's interfaces
to a pod has. This needs no plug-in of Calico. The kernel settings are those of Calico's agent Felix.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import ClassVar

from podperf.dataplanes.base import ADDED_POD, RunningDataPlane, Worker
from podperf.dataplanes.host_routing import HostSide, prepare_worker, route_chain, route_withdrawn
from podperf.dataplanes.kernel_state import KernelPods, running_pods
from podperf.frames import AddressFamily
from podperf.hosts.base import Host
from podperf.hosts.linux import add_address, ip, sysctl
from podperf.model import Chain, ChangeUnderLoad, End
from podperf.pods.base import Pod
from podperf.pods.forwarders.kernel import NextHop, forward


class Routed(KernelPods):
    """There is no bridge. The worker is a router with one route for each pod interface."""

    name: ClassVar[str] = "routed"
    routes: ClassVar[bool] = True

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return None

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        prepare_worker(worker, chain.pods)
        # Proxy ARP answers only for addresses that the worker can route: 169.254.1.1 needs a default route.
        hop = ("via", worker.addresses.right_of(chain.pods), "dev", worker.right.interface, "onlink")
        ip(worker.host, f"-{worker.addresses.version}", "route", "add", "default", *hop)
        pods, sides = start_routed_pods(worker, worker.host, chain.pods, undo)
        entries = route_chain(worker, sides)
        changes = {"route-withdrawn": route_withdrawn(worker), "pod-added": _pod_added(worker, chain.pods)}
        return running_pods(worker, pods, entries, changes=changes)


def start_routed_pods(
    worker: Worker, node: Host, count: int, undo: ExitStack
) -> tuple[list[Pod], list[tuple[HostSide, HostSide]]]:
    """Pods whose gateway is `node`, and the node's sides of their interfaces, from left to right."""
    pods, sides, addresses = [], [], worker.addresses
    gateway = addresses.link_gateway
    for number in range(1, count + 1):
        pod = worker.pods.start(f"pod{number}", [], undo)
        net1 = _attach(node, worker, pod, "net1", f"cali{number}a", addresses.right_of(number - 1))
        net2 = _attach(node, worker, pod, "net2", f"cali{number}b", addresses.left_of(number))
        forward(pod, addresses, to_left=NextHop("net1", gateway), to_right=NextHop("net2", gateway))
        pods.append(pod)
        sides.append((net1, net2))
    return pods, sides


def _pod_added(worker: Worker, pods: int) -> ChangeUnderLoad:
    """One more pod with its routes, as an agent adds it beside those of the chain."""
    addresses = worker.addresses
    ends = (("net1", "caliadd1", addresses.right_of(pods + 1)), ("net2", "caliadd2", addresses.left_of(pods + 2)))

    def make(undo: ExitStack) -> None:
        pod = worker.pods.start(ADDED_POD, [], undo)
        for interface, host_interface, address in ends:
            _attach(worker.host, worker, pod, interface, host_interface, address)
            undo.callback(ip, worker.host, "link", "delete", host_interface)  # a namespace goes in the background

    return ChangeUnderLoad("a pod is added", make)


def _attach(node: Host, worker: Worker, pod: Pod, interface: str, host_interface: str, address: str) -> HostSide:
    alone = worker.addresses.alone(address)
    pod.add_veth(interface, node, host_interface, worker.mtu, alone)
    ip(node, "route", "add", alone, "dev", host_interface, "scope", "link")
    if worker.addresses.family is AddressFamily.IPV4:
        sysctl(
            node,
            **{
                f"net__ipv4__conf__{host_interface}__proxy_arp": 1,
                f"net__ipv4__neigh__{host_interface}__proxy_delay": 0,
            },
        )
    else:
        add_address(node, host_interface, worker.addresses.on_segment(worker.addresses.link_gateway))
    return HostSide(host_interface, address)


# Rules for the pods' interfaces on the worker. Each pod has two.
_RULES = """
table {ip} podperf-policy {{
  map pods {{ type ifname : verdict; elements = {{ {elements} }} }}
  chain forward {{
    type filter hook forward priority filter; policy accept;
    ct state established,related accept
    ct state invalid drop
    oifname vmap @pods
  }}
  chain pod {{
    {ip} saddr {left} meta l4proto udp accept
    {ip} saddr {right} meta l4proto udp accept
    drop
  }}
}}
"""


_POLICIES = 100


def _policies_added(worker: Worker) -> ChangeUnderLoad:
    """The rules of _POLICIES policies of other pods, which an agent gives to the firewall at once."""
    table, ip_family = "podperf-policy", worker.addresses.ip
    names = [f"other{number}" for number in range(1, _POLICIES + 1)]
    added = "".join(
        f"add chain {ip_family} {table} {name}\n"
        f"add rule {ip_family} {table} {name} {ip_family} saddr {worker.addresses.left} meta l4proto udp accept\n"
        f"add rule {ip_family} {table} {name} drop\n"
        f'add element {ip_family} {table} pods {{ "{name}" : goto {name} }}\n'
        for name in names
    )
    removed = "".join(f'delete element {ip_family} {table} pods {{ "{name}" }}\n' for name in names)
    removed += "".join(f"delete chain {ip_family} {table} {name}\n" for name in names)

    def make(undo: ExitStack) -> None:
        worker.host.do("nft", "-f", "-", stdin=added)
        undo.callback(worker.host.do, "nft", "-f", "-", stdin=removed)

    return ChangeUnderLoad(f"{_POLICIES} policies are added", make)


class RoutedPolicy(Routed):
    """The worker's firewall has a network policy: it permits UDP of the test network, and drops all else for a pod.

    The rules are in the form that agents of Kubernetes give to nftables. Each forwarded packet crosses them, and
    connection tracking.
    """

    name: ClassVar[str] = "routed-policy"

    @staticmethod
    def unavailable(host: Host) -> str | None:
        if host.ask("which", "nft", check=False, assumed="").exit_code:
            return "nftables is not installed, and has the rules of the policy (Debian package nftables)"
        return None

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        running = super().set_up(worker, chain, undo)
        ends = [f"cali{number}{end}" for number in range(1, chain.pods + 1) for end in "ab"]
        ports = ((worker.left, chain.ends.left), (worker.right, chain.ends.right))
        ends += [port.interface for port, end in ports if end is End.POD]
        elements = ", ".join(f'"{each}" : goto pod' for each in ends)
        family = worker.addresses
        rules = _RULES.format(ip=family.ip, elements=elements, left=family.left, right=family.right)
        worker.host.do("nft", "-f", "-", stdin=rules)
        return replace(running, changes={"policies-added": _policies_added(worker), **running.changes})
