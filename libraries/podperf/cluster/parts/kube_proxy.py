"""kube-proxy as a part of the cluster: gives Services their addresses, by rules of nftables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import yaml

from podperf.cluster.layout import PODS, ClusterLayout, ClusterNode, ClusterPart
from podperf.cluster.programs import KUBERNETES, GoModule

_MODE = "nftables"


class KubeProxy(ClusterPart):
    """The kube-proxy of Kubernetes. It leaves the kernel's settings alone."""

    name: ClassVar[str] = "kube-proxy"
    modules: ClassVar[tuple[GoModule, ...]] = (KUBERNETES,)
    login: ClassVar[tuple[str, str | None]] = ("system:kube-proxy", None)

    def files(self, layout: ClusterLayout, node: ClusterNode) -> Mapping[str, bytes]:
        settings = {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": _MODE,
            "clientConnection": {"kubeconfig": str(self.kubeconfig(layout, node))},
            "clusterCIDR": PODS,
            "hostnameOverride": node.name,
            "healthzBindAddress": "127.0.0.1:10256",
            "metricsBindAddress": "127.0.0.1:10249",
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        }
        return {"kube-proxy.yaml": yaml.safe_dump(settings).encode()}

    def tells(self) -> Mapping[str, str]:
        return {"service_proxy": f"{self.name} v{KUBERNETES.version}", "service_proxy_mode": _MODE}

    def command(self, layout: ClusterLayout, node: ClusterNode) -> list[str]:
        return [str(self.program("kube-proxy")), f"--config={layout.of_node(node)}/kube-proxy.yaml"]
