"""kube-router as the network of pods: nodes announce their pods' networks by BGP, and enforce NetworkPolicies."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from podperf.cluster import iptables
from podperf.cluster.layout import ADMINISTRATORS, SERVICES, ClusterLayout, ClusterNetwork, ClusterNode, ClusterPart
from podperf.cluster.parts.plain import bridge, routes_to_others
from podperf.cluster.programs import GoModule
from podperf.hosts.base import Host

_PATH = "github.com/cloudnativelabs/kube-router/v2"
MODULE = GoModule("kube-router", _PATH, (f"{_PATH}/cmd/kube-router",), f"{_PATH}/pkg/version.Version", "two minutes")


def command_of(part: ClusterPart, layout: ClusterLayout, node: ClusterNode, *flags: str) -> list[str]:
    """The command of a kube-router with these flags."""
    assert part.debian is not None
    return [
        *iptables.environment(part.debian),
        str(part.program("kube-router")),
        *(f"--kubeconfig={part.kubeconfig(layout, node)}", f"--hostname-override={node.name}"),
        *("--run-service-proxy=false", f"--service-cluster-ip-range={SERVICES}", "--metrics-port=0"),
        *flags,
    ]


class KubeRouter(ClusterNetwork):
    """kube-router speaks BGP (GoBGP), sets routes, and enforces NetworkPolicies by iptables and ipset.

    The pods of a node are on a bridge.
    """

    name: ClassVar[str] = "kube-router"
    data_plane: ClassVar[str] = "Linux bridge, iptables"
    takes: ClassVar[Collection[str]] = ("network-policies",)
    packages: ClassVar[tuple[str, ...]] = iptables.PACKAGES
    links: ClassVar[Mapping[str, str]] = iptables.LINKS
    modules: ClassVar[tuple[GoModule, ...]] = (MODULE,)
    login: ClassVar[tuple[str, str | None]] = ("kube-router", ADMINISTRATORS)

    def demand(self, host: Host) -> None:
        iptables.demand_bridged()

    def replaces(self) -> Collection[str]:
        return ("network-policies",)

    def plugin(self, layout: ClusterLayout, node: ClusterNode) -> Mapping[str, Any]:
        return bridge("kube-bridge", node.pods)

    def command(self, layout: ClusterLayout, node: ClusterNode) -> list[str]:
        routing = ("--run-router=true", "--enable-cni=false", "--enable-overlay=false", "--enable-pod-egress=false")
        # Only with graceful restart do the sessions have IPv6.
        both_families = ("--enable-ipv6=true", "--bgp-graceful-restart=true")
        return command_of(self, layout, node, "--run-firewall=true", *routing, *both_families)

    def ready(self, layout: ClusterLayout, node: ClusterNode) -> list[str]:
        return routes_to_others(layout, node)
