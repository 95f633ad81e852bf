"""Linux bridges between pods (Flannel's way), by the CNI plug-in `bridge`: one bridge for each segment of the chain."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, ClassVar

from podperf.dataplanes.base import RunningDataPlane, Worker
from podperf.dataplanes.kernel_state import KernelPods, running_pods
from podperf.dataplanes.segments import forward_along, start_pods, static_address
from podperf.hosts.base import Host
from podperf.hosts.linux import ip
from podperf.model import Chain
from podperf.pods.cni import CniPlugins


class LinuxBridge(KernelPods):
    """The bridges work on layer 2 only and have no IP address. The pods route."""

    name: ClassVar[str] = "linux-bridge"

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return CniPlugins(host).missing("bridge", "static")

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        def plugins(segment: int, address: str) -> list[dict[str, Any]]:
            bridge = {"type": "bridge", "bridge": f"br{segment}", "isGateway": False, "mtu": worker.mtu}
            return [bridge | {"ipam": static_address(address)}]

        pods = start_pods(worker, chain, plugins, undo)
        ip(worker.host, "link", "set", worker.left.interface, "master", "br0")
        ip(worker.host, "link", "set", worker.right.interface, "master", f"br{chain.pods}")
        return running_pods(worker, pods, forward_along(pods, worker))
