"""macvlan sub-interfaces of the worker's ports, by the CNI plug-in `macvlan` in bridge mode."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, ClassVar

from podperf.dataplanes.base import RunningDataPlane, Worker
from podperf.dataplanes.kernel_state import KernelPods, running_pods
from podperf.dataplanes.segments import forward_along_each, parent_interfaces, start_pods, static_address
from podperf.hosts.base import Host
from podperf.hosts.linux import missing_link_type
from podperf.model import Chain
from podperf.pods.cni import CniPlugins


class Macvlan(KernelPods):
    """Each pod interface has a MAC of its own on its parent. The parent carries frames between its pods."""

    name: ClassVar[str] = "macvlan"
    several_chains: ClassVar[bool] = True
    common_pod: ClassVar[bool] = True

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return CniPlugins(host).missing("macvlan", "static") or missing_link_type(host, "macvlan")

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        parents = parent_interfaces(worker, chain)

        def plugins(network: int, address: str) -> list[dict[str, Any]]:
            macvlan = {"type": "macvlan", "master": parents[network], "mode": "bridge", "mtu": worker.mtu}
            return [macvlan | {"ipam": static_address(address)}]

        pods = start_pods(worker, chain, plugins, undo)
        entries, *further = forward_along_each(chain, pods, worker)
        return running_pods(worker, pods, entries, further_entries=further)
