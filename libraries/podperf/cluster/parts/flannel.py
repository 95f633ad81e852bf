"""Flannel as the network of pods: its agent leases a network for each node, and leads frames between the nodes."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar

from podperf.cluster import iptables
from podperf.cluster.layout import ADMINISTRATORS, PODS, ClusterLayout, ClusterNetwork, ClusterNode
from podperf.cluster.parts.plain import routes_to_others
from podperf.cluster.programs import GoModule
from podperf.hosts.base import Host

_AGENT = "github.com/flannel-io/flannel"
_PLUGINS = "github.com/containernetworking/plugins"
_PLUGIN = f"{_PLUGINS}/plugins/meta/flannel"
_LEASE = "/run/flannel/subnet.env"  # the agent writes it when it has a lease, and the plug-in reads it
_SETTINGS = "flannel.json"


class Flannel(ClusterNetwork):
    """Flannel's agent and CNI plug-in. The plug-in puts the pods of a node on a bridge, with the agent's MTU."""

    name: ClassVar[str] = "flannel"
    takes: ClassVar[Collection[str]] = ("network-policies",)
    modes: ClassVar[tuple[str, ...]] = ("vxlan", "host-gw")
    encapsulations: ClassVar[Mapping[str, str]] = {"vxlan": "VXLAN"}
    data_plane: ClassVar[str] = "Linux bridge, iptables"
    packages: ClassVar[tuple[str, ...]] = iptables.PACKAGES
    links: ClassVar[Mapping[str, str]] = iptables.LINKS
    modules: ClassVar[tuple[GoModule, ...]] = (
        GoModule("Flannel", _AGENT, (_AGENT,), f"{_AGENT}/pkg/version.Version", "a minute", cgo=True),
        GoModule("Flannel-CNI", _PLUGINS, (_PLUGIN,), f"{_PLUGINS}/pkg/utils/buildversion.BuildVersion", "ten seconds"),
    )
    login: ClassVar[tuple[str, str | None]] = ("flannel", ADMINISTRATORS)

    def demand(self, host: Host) -> None:
        iptables.demand_bridged()
        super().demand(host)

    def plugins(self) -> Mapping[str, Path]:
        _, plugin = self.programs
        return {"flannel": plugin / "flannel"}

    def plugin(self, layout: ClusterLayout, node: ClusterNode) -> Mapping[str, Any]:
        return {"type": "flannel", "delegate": {"isDefaultGateway": True, "hairpinMode": True}}

    def files(self, layout: ClusterLayout, node: ClusterNode) -> Mapping[str, bytes]:
        ipv4, ipv6 = PODS.split(",")
        settings = {
            "Network": ipv4,
            "EnableIPv6": True,
            "IPv6Network": ipv6,
            "Backend": {"Type": self.mode},
        }
        return {_SETTINGS: json.dumps(settings).encode()}

    def command(self, layout: ClusterLayout, node: ClusterNode) -> list[str]:
        assert self.debian is not None
        agent, _ = self.programs
        return [
            *iptables.environment(self.debian),
            *(f"NODE_NAME={node.name}", str(agent / "flannel")),
            *("--kube-subnet-mgr", f"--kubeconfig-file={self.kubeconfig(layout, node)}"),
            f"--net-config-path={layout.of_node(node) / _SETTINGS}",
            *("--iface=eth0", "--ip-masq"),
        ]

    def ready(self, layout: ClusterLayout, node: ClusterNode) -> list[str]:
        routes = routes_to_others(layout, node)
        return ["sh", "-ec", f'test -s {_LEASE}; "$@"', "sh", *routes]
