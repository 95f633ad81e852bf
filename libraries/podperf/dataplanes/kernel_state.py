"""What data planes have in common whose pods forward in the kernel, and what the kernel says of their networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from podperf.dataplanes.base import DataPlane, Worker
from podperf.hosts.base import Host
from podperf.hosts.linux import ip_json
from podperf.model import NetworkingModel
from podperf.pods.base import Pod


def network_of(host: Host) -> dict[str, Any]:
    """Links, addresses, routes, rules and neighbours of one network namespace.

    `bridge_nf_call_iptables`: whether bridged frames pass iptables as well, which costs; None where they cannot.
    """
    filtered = host.run("sysctl", "-n", "-e", "net.bridge.bridge-nf-call-iptables", check=False).stdout.strip()
    return {
        "links": [_link(each) for each in ip_json(host, "-details", "address", "show")],
        "routes": ip_json(host, "route", "show", "table", "all", "type", "unicast"),
        "rules": ip_json(host, "rule", "show"),
        "neighbours": ip_json(host, "neigh", "show"),
        "bridge_nf_call_iptables": filtered == "1" if filtered else None,
        "ip_forward": host.run("sysctl", "-n", "net.ipv4.ip_forward").stdout.strip() == "1",
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
        "kernel": worker.host.run("uname", "-r").stdout.strip(),
        "runtime": dict(worker.pods.describe()),
        "worker": network_of(worker.host),
        "pods": {pod.name: network_of(pod.host) for pod in pods},
    }


class KernelPods(DataPlane):
    """The head of such a data plane: whatever differs, it says itself. `_pods` are from left to right."""

    model: ClassVar[NetworkingModel] = NetworkingModel.KERNEL_SPACE
    forwarders: ClassVar[Sequence[str]] = ("kernel",)

    _worker: Worker
    _pods: Sequence[Pod]

    def describe(self) -> dict[str, Any]:
        """Effective configuration, read back from the kernel."""
        return describe_kernel(self._worker, self._pods)
