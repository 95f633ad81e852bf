"""A look-alike of Docker's network, without Docker: bridges with masquerade and port mapping, by the CNI plug-ins
`bridge` and `portmap`.

A frame from outside has the worker's address. The worker's port mapping translates it to the pod's address. The pod is
a proxy and sends the frame on. A frame that leaves the worker has the worker's own address as its source. So a frame
crosses the worker's connection tracking twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from podperf.addressing import SERVICE_PORT
from podperf.dataplanes.base import RunningDataPlane, Worker
from podperf.dataplanes.kernel_state import KernelPods, running_pods
from podperf.dataplanes.segments import static_address
from podperf.hosts.base import Host
from podperf.hosts.linux import configure, static_neighbour, sysctl
from podperf.model import Chain, ChangeUnderLoad, Direction, Entry
from podperf.pods.base import Attachment, Pod
from podperf.pods.cni import CniPlugins
from podperf.pods.forwarders.kernel import NextHop, route_via, translate


@dataclass(frozen=True)
class OutsideAddresses:
    """The addresses outside of a chain. The worker publishes the outermost pods at `left` and `right`."""

    left: str
    right: str
    tester_left: str
    tester_right: str

    @classmethod
    def of(cls, chain: Chain, worker: Worker) -> OutsideAddresses:
        from_left, from_right, last = (
            worker.addresses.service_from_left,
            worker.addresses.service_from_right,
            chain.pods,
        )
        return cls(from_left(0), from_right(last + 1), from_right(0), from_left(last + 1))


class TranslatingPods(KernelPods):
    """Base class: each pod translates addresses to those of the next pod. The worker routes to the outermost pods."""

    tracks_connections: ClassVar[bool] = True
    no_end_in_pod: ClassVar[str] = "it translates the addresses of frames from pod to pod"

    def join_ports(self, worker: Worker, outside: OutsideAddresses) -> None:
        """Let the worker route between the networks of the pods and its ports."""
        sysctl(worker.host, **worker.addresses.forwarding)
        left, right = (
            (worker.left, outside.left, outside.tester_left),
            (worker.right, outside.right, outside.tester_right),
        )
        for port, address, tester in (left, right):
            configure(
                worker.host,
                ("address", "add", worker.addresses.alone(address), "dev", port.interface),
                ("route", "add", worker.addresses.alone(tester), "dev", port.interface, "scope", "link"),
                static_neighbour(port.interface, tester, port.peer_mac),
            )

    def forward(self, worker: Worker, pods: Sequence[Pod], outside: OutsideAddresses) -> None:
        """Let each pod send frames on to the next pod, and the outermost pods to the tester."""
        addresses, last = worker.addresses, len(pods)
        for number, pod in enumerate(pods, start=1):
            next_left = outside.tester_left if number == 1 else addresses.left_of(number - 1)
            next_right = outside.tester_right if number == last else addresses.right_of(number)
            translate(pod, addresses, next_left, next_right, masquerade=True)
            to_left = NextHop("net1", addresses.gateway_of(number - 1))
            to_right = NextHop("net2", addresses.gateway_of(number))
            hops = {outside.tester_left: to_left, outside.tester_right: to_right}
            route_via(pod, addresses, {addresses.alone(each): hop for each, hop in hops.items()})


class Docker(TranslatingPods):
    """One bridge for each segment, with the worker as its gateway."""

    name: ClassVar[str] = "docker"
    maps_ports: ClassVar[bool] = True
    """Whether CNI plug-ins publish the outermost pods at the worker's addresses, and masquerade for all pods."""

    @staticmethod
    def unavailable(host: Host) -> str | None:
        if host.ask("which", "iptables", check=False, assumed="").exit_code:
            return "iptables is not installed; the CNI plug-in portmap needs it (Debian package iptables)"
        return CniPlugins(host).missing("bridge", "portmap", "static")

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        outside, left_of, right_of = (
            OutsideAddresses.of(chain, worker),
            worker.addresses.left_of,
            worker.addresses.right_of,
        )
        self.join_ports(worker, outside)
        pods = []
        for number in range(1, chain.pods + 1):
            from_left = outside.left if number == 1 else None
            from_right = outside.right if number == chain.pods else None
            attachments = [
                self._network(worker, "net1", number - 1, right_of(number - 1), from_left),
                self._network(worker, "net2", number, left_of(number), from_right),
            ]
            pods.append(worker.pods.start(f"pod{number}", attachments, undo))
        self.forward(worker, pods, outside)
        return running_pods(worker, pods, published_entries(worker, outside), lambda: self.rules(worker))

    def _network(
        self, worker: Worker, interface: str, segment: int, address: str, published_on: str | None
    ) -> Attachment:
        bridge = {
            "type": "bridge",
            "bridge": f"docker{segment}",
            "isGateway": True,
            "ipMasq": self.maps_ports,
            "mtu": worker.mtu,
            "ipam": static_address(worker.addresses.on_segment(address), worker.addresses.gateway_of(segment)),
        }
        if published_on is None or not self.maps_ports:
            return Attachment(interface, f"docker{segment}", [bridge])
        mapping = {
            "hostPort": SERVICE_PORT,
            "containerPort": SERVICE_PORT,
            "protocol": "udp",
            "hostIP": published_on,
        }
        portmap = {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True}
        return Attachment(interface, f"docker{segment}", [bridge, portmap], {"portMappings": [mapping]})

    def rules(self, worker: Worker) -> Mapping[str, Any]:
        """The maker of the network, and the worker's rules that translate addresses, for the record."""
        made = {"look_alike": "of Docker's network, by CNI plug-ins and without a Docker daemon"}
        return {**made, **nat_rules(worker)}


def published_entries(
    worker: Worker, outside: OutsideAddresses, from_right: int = SERVICE_PORT
) -> Mapping[Direction, Entry]:
    """How frames enter: addressed to the worker's own addresses, at which the outermost pods are published.

    The last pod is published at the port `from_right`.
    """
    return {
        Direction.LEFT_TO_RIGHT: Entry(worker.left.mac, outside.left, SERVICE_PORT),
        Direction.RIGHT_TO_LEFT: Entry(worker.right.mac, outside.right, from_right),
    }


def nat_rules(worker: Worker) -> Mapping[str, Sequence[str]]:
    """The rules of the worker in the table `nat` of iptables."""
    return {"iptables_nat": worker.host.ask(f"{worker.addresses.ip}tables-save", "-t", "nat").stdout.splitlines()}


# The chains of kube-proxy's mode `nftables` (Kubernetes 1.33), with one endpoint for each Service.
_RULES = """
table {ip} kube-proxy {{
  map service-ips {{
    type {family}_addr . inet_proto . inet_service : verdict
    elements = {{ {left} . udp . {port} : goto service-left, {right} . udp . {port} : goto service-right }}
  }}
  chain services {{
    {ip} daddr . meta l4proto . th dport vmap @service-ips
  }}
  chain service-left {{
    numgen random mod 1 vmap {{ 0 : goto endpoint-left }}
  }}
  chain service-right {{
    numgen random mod 1 vmap {{ 0 : goto endpoint-right }}
  }}
  chain endpoint-left {{
    {ip} saddr {left_pod} jump mark-for-masquerade
    meta l4proto udp dnat to {left_endpoint}
  }}
  chain endpoint-right {{
    {ip} saddr {right_pod} jump mark-for-masquerade
    meta l4proto udp dnat to {right_endpoint}
  }}
  chain mark-for-masquerade {{
    meta mark set meta mark | 0x4000
  }}
  chain masquerading {{
    meta mark & 0x4000 == 0 return
    meta mark set meta mark ^ 0x4000
    masquerade fully-random
  }}
  chain nat-prerouting {{
    type nat hook prerouting priority dstnat; policy accept;
    jump services
  }}
  chain nat-postrouting {{
    type nat hook postrouting priority srcnat; policy accept;
    jump masquerading
  }}
}}
"""


# kube-proxy's rules for one more endpoint, for nftables: the endpoint's chain, and the Service's rule anew.
_ENDPOINT_ADDED = """
add chain {ip} kube-proxy endpoint-added
add rule {ip} kube-proxy endpoint-added meta l4proto udp dnat to {endpoint}
flush chain {ip} kube-proxy service-left
add rule {ip} kube-proxy service-left numgen random mod 2 vmap {{ 0 : goto endpoint-left, 1 : goto endpoint-added }}
"""
_ENDPOINT_REMOVED = """
flush chain {ip} kube-proxy service-left
add rule {ip} kube-proxy service-left numgen random mod 1 vmap {{ 0 : goto endpoint-left }}
delete chain {ip} kube-proxy endpoint-added
"""


def _endpoint_added(worker: Worker, chain: Chain) -> ChangeUnderLoad:
    """A pod is added to the Service of frames from the left. Flows that the worker tracks keep their endpoint."""
    addresses = worker.addresses
    endpoint = addresses.with_port(addresses.gateway_of(chain.pods + 1), SERVICE_PORT)

    def make(undo: ExitStack) -> None:
        worker.host.do("nft", "-f", "-", stdin=_ENDPOINT_ADDED.format(ip=addresses.ip, endpoint=endpoint))
        undo.callback(worker.host.do, "nft", "-f", "-", stdin=_ENDPOINT_REMOVED.format(ip=addresses.ip))

    return ChangeUnderLoad("a pod is added to a Service", make)


class Service(Docker):
    """A Service of Kubernetes in each direction, by the rules of kube-proxy, in front of a network like docker's.

    A frame from outside is for the Service's address. The worker translates this address to that of the Service's
    endpoint, the outermost pod. There is no masquerade on the worker.
    """

    name: ClassVar[str] = "service"
    maps_ports: ClassVar[bool] = False

    @staticmethod
    def unavailable(host: Host) -> str | None:
        if host.ask("which", "nft", check=False, assumed="").exit_code:
            return "nftables is not installed, and has the rules of the Service (Debian package nftables)"
        return CniPlugins(host).missing("bridge", "static")

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        running = super().set_up(worker, chain, undo)
        addresses = worker.addresses
        left_pod, right_pod = addresses.right_of(0), addresses.left_of(chain.pods)
        rules = _RULES.format(
            family=addresses.family,
            ip=addresses.ip,
            left=addresses.service_from_left(0),
            right=addresses.service_from_right(chain.pods + 1),
            left_pod=left_pod,
            right_pod=right_pod,
            left_endpoint=addresses.with_port(left_pod, SERVICE_PORT),
            right_endpoint=addresses.with_port(right_pod, SERVICE_PORT),
            port=SERVICE_PORT,
        )
        worker.host.do("nft", "-f", "-", stdin=rules)
        return replace(running, changes={"endpoint-added": _endpoint_added(worker, chain)})

    def rules(self, worker: Worker) -> Mapping[str, Any]:
        rules = worker.host.ask("nft", "list", "table", worker.addresses.ip, "kube-proxy")
        return {"nftables": rules.stdout.splitlines()}
