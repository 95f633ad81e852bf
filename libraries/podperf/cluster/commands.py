"""The command lines of the cluster's programs. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from podperf.cluster.layout import (
    API_PORT,
    CONTROL_ADDRESS,
    ETCD,
    NODE_PATH,
    PODS,
    SERVICES,
    ClusterLayout,
    ClusterNode,
)


def etcd(layout: ClusterLayout) -> list[str]:
    """The command of etcd. A cluster that lasts an hour needs no flushing to the disk."""
    return [
        layout.parts.of_debian("etcd"),
        *("--data-dir", layout.path("etcd"), "--unsafe-no-fsync"),
        *("--listen-client-urls", ETCD, "--advertise-client-urls", ETCD),
        *("--listen-peer-urls", "http://127.0.0.1:2380"),
    ]


def api_server(layout: ClusterLayout) -> list[str]:
    """The command of the API server."""
    path = layout.path
    return [
        layout.parts.of_kubernetes("kube-apiserver"),
        f"--etcd-servers={ETCD}",
        *(f"--bind-address={CONTROL_ADDRESS}", f"--advertise-address={CONTROL_ADDRESS}", f"--secure-port={API_PORT}"),
        *(f"--tls-cert-file={path('server.crt')}", f"--tls-private-key-file={path('server.key')}"),
        f"--client-ca-file={path('authority.crt')}",
        "--authorization-mode=Node,RBAC",
        "--anonymous-auth=false",  # every local user can connect
        "--enable-admission-plugins=NodeRestriction",
        f"--service-account-key-file={path('tokens.key')}",
        f"--service-account-signing-key-file={path('tokens.key')}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-cluster-ip-range={SERVICES}",
        f"--kubelet-certificate-authority={path('authority.crt')}",
        f"--kubelet-client-certificate={path('kubelets-client.crt')}",
        f"--kubelet-client-key={path('kubelets-client.key')}",
        "--kubelet-preferred-address-types=InternalIP",
        "--allow-privileged=true",
    ]


def controller_manager(layout: ClusterLayout) -> list[str]:
    """The command of the controller manager."""
    own = layout.path("controller-manager.kubeconfig")
    return [
        layout.parts.of_kubernetes("kube-controller-manager"),
        *_own_kubeconfig(own),
        f"--service-account-private-key-file={layout.path('tokens.key')}",
        f"--root-ca-file={layout.path('authority.crt')}",
        "--use-service-account-credentials",
        f"--cluster-cidr={PODS}",
    ]


def scheduler(layout: ClusterLayout) -> list[str]:
    """The command of the scheduler."""
    return [
        layout.parts.of_kubernetes("kube-scheduler"),
        *_own_kubeconfig(layout.path("scheduler.kubeconfig")),
    ]


def kube_proxy(layout: ClusterLayout, node: ClusterNode) -> list[str]:
    """The command of a node's kube-proxy, which gives Services their addresses."""
    return [layout.parts.of_kubernetes("kube-proxy"), f"--config={layout.of_node(node)}/kube-proxy.yaml"]


def kube_router(layout: ClusterLayout, node: ClusterNode) -> list[str]:
    """The command of a node's kube-router, which enforces NetworkPolicies, and does nothing else."""
    assert layout.parts.policies is not None
    settings = layout.parts.policies.environment
    settings["PATH"] += f":{NODE_PATH}"
    return [
        *("env", *(f"{name}={value}" for name, value in settings.items())),
        str(layout.parts.policies.kube_router / "kube-router"),
        *(f"--kubeconfig={layout.of_node(node)}/kube-router.kubeconfig", f"--hostname-override={node.name}"),
        *("--run-firewall=true", "--run-router=false", "--run-service-proxy=false"),
        f"--service-cluster-ip-range={SERVICES}",
        *("--enable-ipv6=false", "--metrics-port=0"),
    ]


def _own_kubeconfig(path: str) -> Sequence[str]:
    asks = (f"--{what}kubeconfig={path}" for what in ("", "authentication-", "authorization-"))
    return (*asks, "--bind-address=127.0.0.1", "--leader-elect=false")


def containerd(layout: ClusterLayout, node: ClusterNode) -> list[str]:
    """The command of a node's containerd."""
    return [layout.parts.of_debian("containerd"), "--config", f"{layout.of_node(node)}/containerd.toml"]


def import_image(layout: ClusterLayout, image: Path) -> list[str]:
    """The command that gives an image to the containerd of the node in which it runs."""
    ctr = (layout.parts.of_debian("ctr"), "--address", "/run/containerd/containerd.sock", "--namespace", "k8s.io")
    return [*ctr, "images", "import", str(image)]


def kubelet(layout: ClusterLayout, node: ClusterNode) -> list[str]:
    """The command of a node's kubelet."""
    folder = layout.of_node(node)
    return [
        layout.parts.of_kubernetes("kubelet"),
        *(f"--kubeconfig={folder}/kubelet.kubeconfig", f"--config={folder}/kubelet.yaml"),
        *(f"--hostname-override={node.name}", f"--node-ip={node.address}", f"--root-dir={folder}/kubelet"),
    ]
