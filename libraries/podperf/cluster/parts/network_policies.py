"""kube-router as a part of the cluster that only enforces NetworkPolicies, by iptables and ipset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from podperf.cluster import iptables
from podperf.cluster.layout import ADMINISTRATORS, ClusterLayout, ClusterNode, ClusterPart
from podperf.cluster.parts.kube_router import MODULE, command_of
from podperf.cluster.programs import GoModule
from podperf.hosts.base import Host


class NetworkPolicies(ClusterPart):
    """kube-router, with the iptables and ipset of Debian's packages."""

    name: ClassVar[str] = "network-policies"
    option: ClassVar[tuple[str, str]] = ("network-policies", "the cluster enforces NetworkPolicies (kube-router)")
    packages: ClassVar[tuple[str, ...]] = iptables.PACKAGES
    links: ClassVar[Mapping[str, str]] = iptables.LINKS
    modules: ClassVar[tuple[GoModule, ...]] = (MODULE,)
    login: ClassVar[tuple[str, str | None]] = ("kube-router", ADMINISTRATORS)
    needs_node: ClassVar[bool] = True
    filters: ClassVar[str] = "iptables"

    def demand(self, host: Host) -> None:
        iptables.demand_bridged()

    def command(self, layout: ClusterLayout, node: ClusterNode) -> list[str]:
        return command_of(self, layout, node, "--run-firewall=true", "--run-router=false", "--enable-ipv6=true")
