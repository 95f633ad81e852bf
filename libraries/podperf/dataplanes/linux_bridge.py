"""Linux bridges between pods (Flannel's way), by the CNI plug-in `bridge`: one bridge for each segment of the chain."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

from podperf.dataplanes.base import ADDED_POD, RunningDataPlane, Worker
from podperf.dataplanes.kernel_state import KernelPods, running_pods
from podperf.dataplanes.segments import forward_along_each, start_pods, static_address
from podperf.hosts.base import Host
from podperf.hosts.linux import configure, ip
from podperf.model import Chain, ChangeUnderLoad
from podperf.pods.base import Attachment, Pod
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
        if not chain.pods:  # no plug-in makes the bridge then
            ip(worker.host, "link", "add", "name", "br0", "mtu", str(worker.mtu), "up", "type", "bridge")
        pods = start_pods(worker, chain, lambda network, address: _plugins(worker, network, address), undo)
        configure(
            worker.host,
            ("link", "set", worker.left.interface, "master", "br0"),
            ("link", "set", worker.right.interface, "master", f"br{chain.pods}"),
        )
        entries, *further = forward_along_each(chain, pods, worker)
        if further:
            _know_all_macs(worker, pods)
        changes = {"pod-added": _pod_added(worker), "macs-forgotten": _macs_forgotten(worker)}
        return running_pods(worker, pods, entries, further_entries=further, changes=changes)


def _plugins(worker: Worker, network: int, address: str) -> list[dict[str, Any]]:
    bridge = {"type": "bridge", "bridge": f"br{network}", "isGateway": False, "mtu": worker.mtu}
    return [bridge | {"ipam": static_address(address)}]


def _pod_added(worker: Worker) -> ChangeUnderLoad:
    """One more pod at the bridge of the left port, as the plug-in attaches it beside those of the chain."""

    def make(undo: ExitStack) -> None:
        addresses = worker.addresses
        address = addresses.on_segment(addresses.gateway_of(0))  # which nothing else has here
        worker.pods.start(ADDED_POD, [Attachment("net1", "segment0", _plugins(worker, 0, address))], undo)

    return ChangeUnderLoad("a pod is added", make)


def _macs_forgotten(worker: Worker) -> ChangeUnderLoad:
    """A bridge floods frames until it has learnt their MACs again."""

    def make(undo: ExitStack) -> None:
        ip(worker.host, "link", "set", "dev", "br0", "type", "bridge", "fdb_flush")

    return ChangeUnderLoad("a bridge forgets the MACs that it has learnt", make)


def _know_all_macs(worker: Worker, pods: Sequence[Pod]) -> None:
    """Add a static entry for each MAC to the forwarding table of its bridge."""
    known = [(each.interface, each.peer_mac) for each in (worker.left, worker.right)]
    known += [
        (each.host_interface, each.mac) for pod in pods for each in pod.interfaces.values() if each.host_interface
    ]
    for interface, mac in known:
        worker.host.do("bridge", "fdb", "replace", mac, "dev", interface, "master", "static")
