"""ipvlan sub-interfaces of the worker's ports, by the CNI plug-in `ipvlan` in L2 mode.

All sub-interfaces share the MAC of their parent. The kernel delivers a frame by its destination IP address. So each pod
must be the destination of the frame, and translates the address to that of the next pod.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import ClassVar

from podperf.addressing import SERVICE_PORT
from podperf.dataplanes.base import RunningDataPlane, Worker
from podperf.dataplanes.kernel_state import KernelPods, running_pods
from podperf.dataplanes.segments import parent_interfaces, static_address
from podperf.hosts.base import Host
from podperf.hosts.linux import mac_address, missing_link_type
from podperf.model import Chain, Direction, Entry
from podperf.pods.base import Attachment
from podperf.pods.cni import CniPlugins
from podperf.pods.forwarders.kernel import NextHop, route_via, translate


class Ipvlan(KernelPods):
    """All pods on one parent have one MAC. The kernel tells them apart by their IP addresses."""

    name: ClassVar[str] = "ipvlan"
    no_end_in_pod: ClassVar[str] = "it translates the addresses of frames from pod to pod"

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return CniPlugins(host).missing("ipvlan", "static") or missing_link_type(host, "ipvlan")

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        addresses = worker.addresses
        service_from_left, service_from_right = addresses.service_from_left, addresses.service_from_right
        parents = [parent for _, parent in sorted(parent_interfaces(worker, chain).items())]
        pods = []
        for number in range(1, chain.pods + 1):
            attachments = [
                self._attachment("net1", parents[number - 1], addresses.alone(service_from_left(number)), worker.mtu),
                self._attachment("net2", parents[number], addresses.alone(service_from_right(number)), worker.mtu),
            ]
            pods.append(worker.pods.start(f"pod{number}", attachments, undo))
        macs = [
            worker.left.peer_mac,
            *(mac_address(worker.host, parent) for parent in parents[1:-1]),
            worker.right.peer_mac,
        ]
        for number, pod in enumerate(pods, start=1):
            next_left, next_right = service_from_right(number - 1), service_from_left(number + 1)
            translate(pod, addresses, next_left, next_right, masquerade=False)
            to_left = NextHop("net1", next_left, macs[number - 1])
            to_right = NextHop("net2", next_right, macs[number])
            route_via(pod, addresses, {addresses.alone(next_left): to_left, addresses.alone(next_right): to_right})
        entries = {
            Direction.LEFT_TO_RIGHT: Entry(worker.left.mac, service_from_left(1), SERVICE_PORT),
            Direction.RIGHT_TO_LEFT: Entry(worker.right.mac, service_from_right(chain.pods), SERVICE_PORT),
        }
        return running_pods(worker, pods, entries)

    def _attachment(self, interface: str, parent: str, address: str, mtu: int) -> Attachment:
        ipam = static_address(address)
        ipvlan = {"type": "ipvlan", "master": parent, "mode": "l2", "mtu": mtu, "ipam": ipam}
        return Attachment(interface, f"ipvlan-{parent}", [ipvlan])
