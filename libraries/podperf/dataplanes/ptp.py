"""Point-to-point veth pairs and the worker's routing table, by the CNI plug-in `ptp`."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, ClassVar

from podperf.dataplanes.base import RunningDataPlane, Worker
from podperf.dataplanes.host_routing import HostSide, prepare_worker, route_chain
from podperf.dataplanes.kernel_state import KernelPods, running_pods
from podperf.dataplanes.segments import start_pods, static_address
from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.model import Chain
from podperf.pods.base import PodInterface
from podperf.pods.cni import CniPlugins
from podperf.pods.forwarders.kernel import NextHop, forward


class PointToPoint(KernelPods):
    """Each pod interface is one end of a veth pair. The worker's end of the pair is the pod's gateway."""

    name: ClassVar[str] = "ptp"
    routes: ClassVar[bool] = True

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return CniPlugins(host).missing("ptp", "static")

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        gateway_of = worker.addresses.gateway_of

        def plugins(segment: int, address: str) -> list[dict[str, Any]]:
            ipam = static_address(address, gateway=gateway_of(segment))
            return [{"type": "ptp", "ipMasq": False, "mtu": worker.mtu, "ipam": ipam}]

        prepare_worker(worker, chain.pods)
        pods = start_pods(worker, chain, plugins, undo)
        for number, pod in enumerate(pods, start=1):
            forward(
                pod,
                worker.addresses,
                to_left=NextHop("net1", gateway_of(number - 1)),
                to_right=NextHop("net2", gateway_of(number)),
            )
        sides = [(_side(pod.interfaces["net1"]), _side(pod.interfaces["net2"])) for pod in pods]
        return running_pods(worker, pods, route_chain(worker, sides))


def _side(interface: PodInterface) -> HostSide:
    if interface.host_interface is None or interface.address is None:
        raise PodperfError(f"the CNI plug-in ptp reported no host end or no address for {interface.name}")
    return HostSide(interface.host_interface, interface.address)
