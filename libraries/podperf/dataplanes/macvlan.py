"""macvlan sub-interfaces of the worker's ports, by the CNI plug-in `macvlan` in bridge mode."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Any, ClassVar

from podperf.dataplanes.base import AttachedPod, EndInPod, RunningDataPlane, Worker, WorkerPort
from podperf.dataplanes.kernel_state import KernelPods, running_pods
from podperf.dataplanes.segments import forward_along_each, parent_interfaces, start_pods, static_address
from podperf.errors import Unavailable
from podperf.hosts.base import Host
from podperf.hosts.linux import add_veth, mac_address, missing_link_type
from podperf.model import CABLE, Chain
from podperf.pods.base import Attachment
from podperf.pods.cni import CniPlugins


class Macvlan(KernelPods):
    """Each pod interface has a MAC of its own on its parent. The parent carries frames between its pods."""

    name: ClassVar[str] = "macvlan"
    several_chains: ClassVar[bool] = True
    common_pod: ClassVar[bool] = True

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return CniPlugins(host).missing("macvlan", "static") or missing_link_type(host, "macvlan")

    def start_end(self, end: EndInPod, undo: ExitStack) -> AttachedPod:
        """A pod at an end has a sub-interface of the worker's other port, so that the parent carries frames between the
        two ends. Without such a port, its parent is one end of a veth pair."""
        if end.opposite is not None and end.join != CABLE:
            raise Unavailable(
                f"a pod at an end has a sub-interface of the worker's other port, and {end.join} gives the worker an "
                "interface in place of this port: with a pod on each worker, the chain forwards to that interface"
            )
        parent = end.opposite.interface if end.opposite else end.port
        if end.opposite is None:
            add_veth(end.worker, near=parent, far=f"{parent}-end", mtu=end.mtu)
        plugins = [{"type": "macvlan", "master": parent, "mode": "bridge", "mtu": end.mtu, "ipam": {}}]
        pod = end.pods.start(f"end-{end.side}", [Attachment(end.side, f"end-{end.side}", plugins)], undo)
        port = WorkerPort(parent, mac_address(end.worker, parent), pod.interfaces[end.side].mac)
        return AttachedPod(pod, port, takes_xdp=False)

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        if not chain.pods and not chain.ends.in_pods:
            raise Unavailable("a worker has no pod, and macvlan carries frames between pods")
        parents = parent_interfaces(worker, chain)

        def plugins(network: int, address: str) -> list[dict[str, Any]]:
            macvlan = {"type": "macvlan", "master": parents[network], "mode": "bridge", "mtu": worker.mtu}
            return [macvlan | {"ipam": static_address(address)}]

        pods = start_pods(worker, chain, plugins, undo)
        entries, *further = forward_along_each(chain, pods, worker)
        running = running_pods(worker, pods, entries, further_entries=further)
        # No receive thread does the work for a frame that a pod at an end sends: the sender's CPU does it.
        return replace(running, cpu_users=None) if chain.ends.in_pods else running
