"""Base class of data planes whose pods forward in the kernel, and the kernel's description of their networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from podperf.addressing import ChainAddresses
from podperf.dataplanes.base import DataPlane, Perishable, RunningDataPlane, Worker
from podperf.hosts.base import Host
from podperf.hosts.linux import ip_json
from podperf.kernel.thread_time import CpuUser
from podperf.model import NO_CHANGES, Changes, Direction, Entry, NetworkingModel
from podperf.pods.base import Pod
from podperf.pods.forwarders import IN_KERNEL


def network_of(host: Host, addresses: ChainAddresses) -> dict[str, Any]:
    """Links, addresses, neighbours, and the routes and rules of the family of `addresses`, of one network namespace.

    `bridge_nf_call_iptables`: whether bridged frames also pass iptables, which costs CPU time. None: the kernel cannot.
    """
    filtered = host.ask("sysctl", "-n", "-e", "net.bridge.bridge-nf-call-iptables", check=False).stdout.strip()
    family, (*_, forwarding) = f"-{addresses.version}", addresses.forwarding
    return {
        "links": [_link(each) for each in ip_json(host, "-details", "address", "show")],
        "routes": ip_json(host, family, "route", "show", "table", "all", "type", "unicast"),
        "rules": ip_json(host, family, "rule", "show"),
        "neighbours": ip_json(host, "neigh", "show"),
        "bridge_nf_call_iptables": filtered == "1" if filtered else None,
        "ip_forward": host.ask("sysctl", "-n", forwarding.replace("__", ".")).stdout.strip() == "1",
    }


def _link(link: Mapping[str, Any]) -> dict[str, Any]:
    info = link.get("linkinfo", {})
    return {
        "name": link.get("ifname"),
        "mac": link.get("address"),
        "mtu": link.get("mtu"),
        "state": link.get("operstate"),
        "master": link.get("master"),
        "kind": info.get("info_kind"),
        "settings": info.get("info_data"),
        "addresses": [f"{each['local']}/{each['prefixlen']}" for each in link.get("addr_info", [])],
    }


def describe_kernel(worker: Worker, pods: Sequence[Pod]) -> dict[str, Any]:
    """Kernel release, pod runtime, and the networks of the worker and of each pod."""
    return {
        "kernel": worker.host.ask("uname", "-r").stdout.strip(),
        "runtime": dict(worker.pods.describe()),
        "worker": network_of(worker.host, worker.addresses),
        "pods": {pod.name: network_of(pod.host, worker.addresses) for pod in pods},
    }


def running_pods(
    worker: Worker,
    pods: Sequence[Pod],
    entries: Mapping[Direction, Entry],
    describe_more: Callable[[], Mapping[str, Any]] = dict,
    parts: Sequence[Perishable] = (),
    switch: Sequence[CpuUser] = (),
    further_entries: Sequence[Mapping[Direction, Entry]] = (),
    changes: Changes = NO_CHANGES,
) -> RunningDataPlane:
    """A data plane of these pods. Its description is the kernel's, with `describe_more`.

    The receive threads of the worker's ports forward in the pods, too. `switch` has the threads of a user-space switch.
    `further_entries` are those of further chains beside the first. `changes` are those that it offers under load.
    """

    def describe() -> Mapping[str, Any]:
        return {**describe_kernel(worker, pods), **describe_more()}

    users = [*worker.kernel_users, *switch]
    return RunningDataPlane(
        entries, worker.ports, describe, parts, cpu_users=users, further_entries=further_entries, changes=changes
    )


class KernelPods(DataPlane):
    """Base class of data planes whose pods forward in the kernel. A subclass overrides what differs."""

    model: ClassVar[NetworkingModel] = NetworkingModel.KERNEL_SPACE
    forwarders: ClassVar[Sequence[str]] = (IN_KERNEL,)
    no_end_in_pod: ClassVar[str] = ""
