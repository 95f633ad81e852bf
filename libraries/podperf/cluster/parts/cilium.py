"""Cilium as the network of pods: an agent on each node compiles and loads BPF programs, which forward all frames."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar

import yaml

from podperf.cluster import iptables
from podperf.cluster.layout import ADMINISTRATORS, PODS, SERVICES, ClusterLayout, ClusterNetwork, ClusterNode
from podperf.cluster.parts.kube_proxy import KubeProxy
from podperf.cluster.parts.network_policies import NetworkPolicies
from podperf.cluster.parts.plain import routes_exist
from podperf.cluster.programs import GoModule
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host
from podperf.kubernetes.api import Api
from podperf.kubernetes.known_networks import CILIUM
from podperf.kubernetes.run_namespace import until

_PATH = "github.com/cilium/cilium"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_OLDEST_CLANG = 14
_HEALTH = "http://127.0.0.1:9879/healthz"
_SERVED_TIMEOUT = 300.0  # seconds, on emulated CPUs
_ALONE = "native-without-kube-proxy"
_PODS, _SERVICES = (each.split(",")[0] for each in (PODS, SERVICES))
# The choices of Cilium's Helm chart, but no program beside the agent: neither Hubble, nor Envoy, nor health checks.
_SETTINGS = {
    "ipam": "kubernetes",
    "identity-allocation-mode": "crd",
    "k8s-namespace": "kube-system",
    "enable-ipv6": "false",  # clang 14 makes a program for policies of IPv6 (tail_ipv6_policy) that the kernel refuses
    "ipv4-service-range": _SERVICES,
    "devices": "eth0",
    "monitor-aggregation": "medium",
    "bpf-map-dynamic-size-ratio": "0.0025",
    "enable-hubble": "false",
    "enable-l7-proxy": "false",
    "enable-health-checking": "false",
    "enable-endpoint-health-checking": "false",
}
_ROUTES = {"routing-mode": "native", "auto-direct-node-routes": "true", "ipv4-native-routing-cidr": _PODS}
_OF_MODE = {
    "tunnel": {"routing-mode": "tunnel", "tunnel-protocol": "vxlan"},
    "native": _ROUTES,
    _ALONE: {
        **_ROUTES,
        "kube-proxy-replacement": "true",
        "enable-bpf-masquerade": "true",
        "enable-host-legacy-routing": "false",  # BPF programs of the node forward frames past its routing and iptables
        # Without this, pods get a Service's address translated when they connect, and never in a frame. The tester
        # sends by packet sockets, which do not connect: no frame of the tester would reach a Service.
        "bpf-lb-sock-hostns-only": "true",
    },
}


class Cilium(ClusterNetwork):
    """The agent of Cilium. It has no operator: the networks of the nodes' pods are known, and its resources are made
    here."""

    name: ClassVar[str] = "cilium"
    takes: ClassVar[Collection[str]] = (NetworkPolicies.name,)
    modes: ClassVar[tuple[str, ...]] = tuple(_OF_MODE)
    encapsulations: ClassVar[Mapping[str, str]] = {"tunnel": "VXLAN"}
    data_plane: ClassVar[str] = "eBPF"
    packages: ClassVar[tuple[str, ...]] = iptables.PACKAGES
    links: ClassVar[Mapping[str, str]] = iptables.LINKS
    modules: ClassVar[tuple[GoModule, ...]] = (
        GoModule(
            "Cilium",
            _PATH,
            (f"{_PATH}/daemon", f"{_PATH}/plugins/cilium-cni"),
            f"{_PATH}/pkg/version.ciliumVersion",
            "ten minutes",
            data=("bpf", "pkg/k8s/apis/cilium.io/client/crds"),
        ),
    )
    login: ClassVar[tuple[str, str | None]] = ("cilium", ADMINISTRATORS)

    def demand(self, host: Host) -> None:
        said = host.ask("sh", "-c", "clang --version", check=False).stdout
        found = re.search(r"clang version (\d+)", said)
        if found is None or int(found[1]) < _OLDEST_CLANG:
            here = "none" if found is None else found[0]
            raise Unavailable(
                f"Cilium compiles its BPF programs by clang {_OLDEST_CLANG} or later, and here is {here}: "
                "apt-get install clang"
            )
        if "cgroup2" not in host.get("/proc/self/mounts").decode().split():
            raise Unavailable(
                "Cilium's BPF programs need control groups of version 2: mkdir -p /sys/fs/cgroup/unified && mount -t "
                "cgroup2 cgroup2 /sys/fs/cgroup/unified"
            )
        super().demand(host)

    def tells(self) -> Mapping[str, str]:
        replaced = {"service_proxy": self.name, "service_proxy_mode": "eBPF"} if self.mode == _ALONE else {}
        return {**super().tells(), **replaced}

    def replaces(self) -> Collection[str]:
        return (NetworkPolicies.name, *((KubeProxy.name,) if self.mode == _ALONE else ()))

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings of the agents in this mode, by the names of Cilium's config map."""
        return {**_SETTINGS, **_OF_MODE[self.mode]}

    def plugins(self) -> Mapping[str, Path]:
        return {"cilium-cni": self.program("cilium-cni")}

    def plugin(self, layout: ClusterLayout, node: ClusterNode) -> Mapping[str, Any]:
        return {"type": "cilium-cni"}

    def prepare(self, api: Api) -> None:
        """The agents wait for their resources. The config map tells other programs what the agents do."""
        for path in sorted(self.program("crds").rglob("*.yaml")):
            api.ask("POST", _CRDS, yaml.load(path.read_bytes(), yaml.CSafeLoader))
        folder, _, name = CILIUM.rpartition("/")
        if not until(lambda: api.exists(folder.rpartition("/")[0]), _SERVED_TIMEOUT):
            raise PodperfError(f"the API server does not make {folder}")
        content = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": self.settings}
        api.ask("POST", folder, content)

    def command(self, layout: ClusterLayout, node: ClusterNode) -> list[str]:
        assert self.debian is not None
        return [
            *iptables.environment(self.debian),
            f"K8S_NODE_NAME={node.name}",
            str(self.program("daemon")),
            f"--k8s-kubeconfig-path={self.kubeconfig(layout, node)}",
            f"--lib-dir={self.programs[0]}",
            *(f"--{name}={value}" for name, value in self.settings.items()),
        ]

    def ready(self, layout: ClusterLayout, node: ClusterNode) -> list[str]:
        *shell, routed = routes_exist([other.pods[0] for other in layout.others(node)])
        return [*shell, f"busybox wget -q -O /dev/null {_HEALTH}; {routed}"]
