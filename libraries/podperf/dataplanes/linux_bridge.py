"""Linux bridges between pods (Flannel's way), by the CNI plug-in `bridge`: one bridge for each segment of the chain."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

from podperf.dataplanes.base import RunningDataPlane, Worker
from podperf.dataplanes.kernel_state import KernelPods, running_pods
from podperf.dataplanes.segments import forward_along_each, start_pods, static_address
from podperf.hosts.base import Host
from podperf.hosts.linux import configure
from podperf.model import Chain
from podperf.pods.base import Pod
from podperf.pods.cni import CniPlugins


class LinuxBridge(KernelPods):
    """The bridges work on layer 2 only and have no IP address. The pods route.

    Several chains share the outer bridges. A bridge that has not learnt a MAC would flood a frame to all chains.
    So the bridges then know the MACs.
    """

    name: ClassVar[str] = "linux-bridge"
    several_chains: ClassVar[bool] = True
    common_pod: ClassVar[bool] = True

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return CniPlugins(host).missing("bridge", "static")

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        def plugins(network: int, address: str) -> list[dict[str, Any]]:
            bridge = {"type": "bridge", "bridge": f"br{network}", "isGateway": False, "mtu": worker.mtu}
            return [bridge | {"ipam": static_address(address)}]

        pods = start_pods(worker, chain, plugins, undo)
        configure(
            worker.host,
            ("link", "set", worker.left.interface, "master", "br0"),
            ("link", "set", worker.right.interface, "master", f"br{chain.pods}"),
        )
        entries, *further = forward_along_each(chain, pods, worker)
        if further:
            _know_all_macs(worker, pods)
        return running_pods(worker, pods, entries, further_entries=further)


def _know_all_macs(worker: Worker, pods: Sequence[Pod]) -> None:
    """Add a static entry for each MAC to the forwarding table of its bridge."""
    known = [(each.interface, each.peer_mac) for each in (worker.left, worker.right)]
    known += [
        (each.host_interface, each.mac) for pod in pods for each in pod.interfaces.values() if each.host_interface
    ]
    for interface, mac in known:
        worker.host.do("bridge", "fdb", "replace", mac, "dev", interface, "master", "static")
