"""A Docker-style network: bridges with masquerade and port mapping, by the CNI plug-ins `bridge` and `portmap`.

A frame from outside has the worker's address. The worker's port mapping translates it to the pod's address. The pod is
a proxy and sends the frame on. A frame that leaves the worker has the worker's own address as its source. So a frame
crosses the worker's connection tracking twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import ClassVar

from podperf.addressing import (
    SERVICE_PORT,
    gateway_of,
    left_of,
    right_of,
    service_from_left,
    service_from_right,
)
from podperf.dataplanes.base import RunningDataPlane, Worker, WorkerPort
from podperf.dataplanes.kernel_state import KernelPods, running_pods
from podperf.dataplanes.segments import static_address
from podperf.hosts.base import Host
from podperf.hosts.linux import configure, static_neighbour, sysctl
from podperf.model import Chain, Direction, Entry
from podperf.pods.base import Attachment
from podperf.pods.cni import CniPlugins
from podperf.pods.forwarders.address_translation import translate
from podperf.pods.forwarders.kernel import NextHop, route_via


class Docker(KernelPods):
    """One bridge for each segment, with the worker as its gateway. Each pod translates addresses to the next pod."""

    name: ClassVar[str] = "docker"
    maps_ports: ClassVar[bool] = True
    """Whether CNI plug-ins publish the outermost pods at the worker's addresses, and masquerade for all pods."""

    @staticmethod
    def unavailable(host: Host) -> str | None:
        if host.ask("which", "iptables", check=False).exit_code:
            return "iptables is not installed; the CNI plug-in portmap needs it (Debian package iptables)"
        return CniPlugins(host).missing("bridge", "portmap", "static")

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        last = chain.pods
        sysctl(worker.host, net__ipv4__ip_forward=1)
        outside_left, outside_right = service_from_left(0), service_from_right(last + 1)
        tester_left, tester_right = service_from_right(0), service_from_left(last + 1)
        self._join(worker, worker.left, outside_left, tester_left)
        self._join(worker, worker.right, outside_right, tester_right)

        pods = []
        for number in range(1, last + 1):
            attachments = [
                self._network(worker, "net1", number - 1, right_of(number - 1), outside_left if number == 1 else None),
                self._network(worker, "net2", number, left_of(number), outside_right if number == last else None),
            ]
            pods.append(worker.pods.start(f"pod{number}", attachments, undo))
        for number, pod in enumerate(pods, start=1):
            next_left = tester_left if number == 1 else left_of(number - 1)
            next_right = tester_right if number == last else right_of(number)
            translate(pod, next_left, next_right, masquerade=True)
            to_left, to_right = NextHop("net1", gateway_of(number - 1)), NextHop("net2", gateway_of(number))
            route_via(pod, {f"{tester_left}/32": to_left, f"{tester_right}/32": to_right})
        entries = {
            Direction.LEFT_TO_RIGHT: Entry(worker.left.mac, outside_left, SERVICE_PORT),
            Direction.RIGHT_TO_LEFT: Entry(worker.right.mac, outside_right, SERVICE_PORT),
        }
        return running_pods(worker, pods, entries, lambda: self.rules(worker.host))

    def _join(self, worker: Worker, port: WorkerPort, address: str, tester: str) -> None:
        configure(
            worker.host,
            ("address", "add", f"{address}/32", "dev", port.interface),
            ("route", "add", f"{tester}/32", "dev", port.interface, "scope", "link"),
            static_neighbour(port.interface, tester, port.peer_mac),
        )

    def _network(
        self, worker: Worker, interface: str, segment: int, address: str, published_on: str | None
    ) -> Attachment:
        bridge = {
            "type": "bridge",
            "bridge": f"docker{segment}",
            "isGateway": True,
            "ipMasq": self.maps_ports,
            "mtu": worker.mtu,
            "ipam": static_address(address, gateway=gateway_of(segment)),
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

    def rules(self, host: Host) -> Mapping[str, Sequence[str]]:
        """The rules of the worker that translate addresses, for the record."""
        return {"iptables_nat": host.ask("iptables-save", "-t", "nat").stdout.splitlines()}
