"""What the kernel says of a network: the effective configuration of every kernel data plane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podperf.dataplanes.base import Worker
from podperf.hosts.base import Host
from podperf.hosts.linux import ip_json
from podperf.pods.base import Pod


def network_of(host: Host) -> dict[str, Any]:
    """Links, addresses, routes, rules and neighbours of one network namespace."""
    return {
        "links": [_link(each) for each in ip_json(host, "-details", "address", "show")],
        "routes": ip_json(host, "route", "show", "table", "all", "type", "unicast"),
        "rules": ip_json(host, "rule", "show"),
        "neighbours": ip_json(host, "neigh", "show"),
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
