"""The cluster as data: its nodes, addresses, files and command lines. No I/O."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from podperf.cluster.certificates import Authority, signing_key
from podperf.cluster.parts import ClusterPrograms, PolicyPrograms

FOLDER = Path("/var/lib/podperf-cluster")  # everything of the cluster that runs; the cache has its programs
GROUP = "podperf-cluster"  # the name of its control groups
BRIDGE = "cluster0"
CONTROL_ADDRESS = "10.199.0.1"
API_PORT = 6443
API = f"https://{CONTROL_ADDRESS}:{API_PORT}"
SERVICES = "10.96.0.0/16"
PODS = "10.244.0.0/16"
ETCD = "http://127.0.0.1:2379"
PAUSE_IMAGE = "localhost/podperf/pause:1"
ADMINISTRATORS = "system:masters"
NODE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class ClusterNode:
    """One node. Its network is a namespace, with one veth to the bridge of the cluster."""

    number: int  # from 1

    @property
    def name(self) -> str:
        """Its name in the cluster."""
        return f"node{self.number}"

    @property
    def address(self) -> str:
        """The address by which other nodes and the API server reach it."""
        return f"10.199.0.{10 + self.number}"

    @property
    def pods(self) -> str:
        """The addresses of its pods."""
        return f"10.244.{self.number}.0/24"


@dataclass(frozen=True)
class ClusterLayout:
    """A cluster that is to run in a folder. `port` of this machine's loopback leads to its API server."""

    parts: ClusterPrograms
    port: int
    nodes: tuple[ClusterNode, ...]
    images: tuple[Path, ...] = ()  # archives that each node gets
    folder: Path = FOLDER
    groups: tuple[str, ...] = ()  # folders of control groups, one for each hierarchy

    @property
    def kubeconfig(self) -> Path:
        """The file with which administrators reach the cluster from this machine."""
        return self.folder / "kubeconfig"

    def as_json(self) -> str:
        """This layout for `from_json`."""
        policies = self.parts.policies
        return json.dumps(
            {
                "policies": policies and [str(policies.debian), str(policies.kube_router)],
                "debian": str(self.parts.debian),
                "kubernetes": str(self.parts.kubernetes),
                "multus": self.parts.multus and str(self.parts.multus),
                "port": self.port,
                "nodes": len(self.nodes),
                "images": list(map(str, self.images)),
                "folder": str(self.folder),
                "groups": self.groups,
            }
        )

    def of_node(self, node: ClusterNode) -> Path:
        """The folder of a node."""
        return self.folder / node.name

    @property
    def plugins(self) -> Path:
        """The folder with the CNI plug-ins of the nodes. With Multus, it has links to all of them."""
        return Path(self.parts.plugins) if self.parts.multus is None else self.folder / "plugins"

    @property
    def processes_of_machine(self) -> Path:
        """The place where the cluster sees the machine's /proc."""
        return self.folder / "proc"

    @property
    def root_of_machine(self) -> Path:
        """A link by which the cluster sees the machine's network namespaces, also those that come later."""
        return self.folder / "machine"

    @property
    def run_of_machine(self) -> Path:
        """The place where the cluster sees the machine's /run. The folder is empty for everybody else."""
        return self.folder / "run"

    def path(self, name: str) -> str:
        """A file or folder of the control plane."""
        return str(self.folder / "control" / name)


def nodes(number: int) -> tuple[ClusterNode, ...]:
    """So many nodes."""
    return tuple(map(ClusterNode, range(1, number + 1)))


def from_json(text: str) -> ClusterLayout:
    """The layout that `ClusterLayout.as_json` wrote."""
    found = json.loads(text)
    policies = found["policies"] and PolicyPrograms(*map(Path, found["policies"]))
    multus = found["multus"] and Path(found["multus"])
    return ClusterLayout(
        ClusterPrograms(Path(found["debian"]), Path(found["kubernetes"]), policies, multus),
        found["port"],
        nodes(found["nodes"]),
        tuple(map(Path, found["images"])),
        Path(found["folder"]),
        tuple(found["groups"]),
    )


def network_commands(nodes: Sequence[ClusterNode]) -> Iterator[tuple[str, ...]]:
    """The commands that make the network of the cluster, in a network namespace of its own: a bridge, and a namespace
    for each node. Each node has a route to the pods of every other node."""
    yield ("ip", "link", "set", "lo", "up")
    yield ("ip", "link", "add", BRIDGE, "type", "bridge")
    yield ("ip", "address", "add", f"{CONTROL_ADDRESS}/24", "dev", BRIDGE)
    yield ("ip", "link", "set", BRIDGE, "up")
    for node in nodes:
        yield ("ip", "netns", "add", node.name)
        yield ("ip", "link", "add", node.name, "type", "veth", "peer", "name", "eth0", "netns", node.name)
        yield ("ip", "link", "set", node.name, "master", BRIDGE, "up")
        yield ("ip", "route", "add", node.pods, "via", node.address)
        inside = ("ip", "-n", node.name)
        yield (*inside, "link", "set", "lo", "up")
        yield (*inside, "address", "add", f"{node.address}/24", "dev", "eth0")
        yield (*inside, "link", "set", "eth0", "up")
        yield (*inside, "route", "add", "default", "via", CONTROL_ADDRESS)
        for other in nodes:
            if other != node:
                yield (*inside, "route", "add", other.pods, "via", other.address)
        forwarding = ("net.ipv4.ip_forward=1", "net.ipv6.conf.all.disable_ipv6=1")
        yield ("nsenter", f"--net=/run/netns/{node.name}", "sysctl", "-qw", *forwarding)


def files(layout: ClusterLayout) -> dict[Path, bytes]:
    """All files that the cluster reads, with new keys."""
    authority = Authority()
    control = layout.folder / "control"
    users = {
        "administrator": authority.certify("podperf", ADMINISTRATORS),
        "controller-manager": authority.certify("system:kube-controller-manager"),
        "scheduler": authority.certify("system:kube-scheduler"),
    }
    names = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost", "127.0.0.1", "10.96.0.1")
    server = authority.certify("kube-apiserver", addresses=(*names, CONTROL_ADDRESS))
    found = {
        control / "authority.crt": authority.certificate,
        control / "server.crt": server.certificate,
        control / "server.key": server.key,
        control / "kubelets-client.crt": users["administrator"].certificate,
        control / "kubelets-client.key": users["administrator"].key,
        control / "tokens.key": signing_key(),
        layout.kubeconfig: kubeconfig(f"https://127.0.0.1:{layout.port}", authority.certificate, *_pem(users)),
    }
    for name, each in users.items():
        found[control / f"{name}.kubeconfig"] = kubeconfig(API, authority.certificate, each.certificate, each.key)
    for node in layout.nodes:
        found |= _files_of(layout, node, authority)
    return found


def _pem(users: Mapping[str, Any]) -> tuple[bytes, bytes]:
    return users["administrator"].certificate, users["administrator"].key


def _files_of(layout: ClusterLayout, node: ClusterNode, authority: Authority) -> dict[Path, bytes]:
    folder = layout.of_node(node)
    user = authority.certify(f"system:node:{node.name}", "system:nodes", (node.name, node.address))
    proxy = authority.certify("system:kube-proxy")
    further = {}
    if layout.parts.policies is not None:
        router = authority.certify("kube-router", ADMINISTRATORS)
        content = kubeconfig(API, authority.certificate, router.certificate, router.key)
        further[folder / "kube-router.kubeconfig"] = content
    if layout.parts.multus is not None:
        multus = authority.certify("multus", ADMINISTRATORS)
        content = kubeconfig(API, authority.certificate, multus.certificate, multus.key)
        further[folder / "multus.kubeconfig"] = content
        # A container runtime takes the first file of the folder.
        further[folder / "net.d" / "00-multus.conf"] = json.dumps(multus_settings(layout, folder), indent=1).encode()
        further[_own_network(folder)] = json.dumps(plugin(node), indent=1).encode()
    return {
        **further,
        folder / "kubelet.crt": user.certificate,
        folder / "kubelet.key": user.key,
        folder / "authority.crt": authority.certificate,
        folder / "kubelet.kubeconfig": kubeconfig(API, authority.certificate, user.certificate, user.key),
        folder / "kube-proxy.kubeconfig": kubeconfig(API, authority.certificate, proxy.certificate, proxy.key),
        folder / "kube-proxy.yaml": yaml.safe_dump(kube_proxy_settings(folder, node)).encode(),
        folder / "kubelet.yaml": yaml.safe_dump(kubelet_settings(folder, node)).encode(),
        folder / "containerd.toml": containerd_settings(layout, folder).encode(),
        folder / "resolv.conf": b"",
        folder / "net.d" / "10-podperf.conflist": json.dumps(network(node), indent=1).encode(),
    }


def kubeconfig(server: str, authority: bytes, certificate: bytes, key: bytes) -> bytes:
    """A kubeconfig that needs no further file."""

    def text(data: bytes) -> str:
        return b64encode(data).decode()

    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "podperf", "cluster": {"server": server, "certificate-authority-data": text(authority)}}],
        "users": [
            {
                "name": "podperf",
                "user": {"client-certificate-data": text(certificate), "client-key-data": text(key)},
            }
        ],
        "contexts": [{"name": "podperf", "context": {"cluster": "podperf", "user": "podperf"}}],
        "current-context": "podperf",
    }
    return yaml.safe_dump(content).encode()


def network(node: ClusterNode) -> dict[str, Any]:
    """The CNI configuration list of the cluster's own network: a bridge on each node, and routes between nodes."""
    return {"cniVersion": "0.4.0", "name": "podperf", "plugins": [_bridge(node)]}


def plugin(node: ClusterNode) -> dict[str, Any]:
    """The same network as a configuration of one plug-in. Multus 4.2.2 loses the addresses of a list at a pod's end."""
    return {"cniVersion": "0.4.0", "name": "podperf", **_bridge(node)}


def _own_network(folder: Path) -> Path:
    return folder / "own-network.conf"


def _bridge(node: ClusterNode) -> dict[str, Any]:
    return {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "dataDir": "/run/cni-addresses",
            "subnet": node.pods,
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }


def multus_settings(layout: ClusterLayout, folder: Path) -> dict[str, Any]:
    """The configuration of Multus for one node: the cluster's own network first, then those of the pod's annotation."""
    return {
        "cniVersion": "0.4.0",
        "name": "multus",
        "type": "multus",
        "kubeconfig": f"{folder}/multus.kubeconfig",
        "confDir": f"{folder}/net.d",
        "clusterNetwork": str(_own_network(folder)),
        "binDir": str(layout.plugins),
        "cniDir": "/run/multus",
        "logFile": "/var/log/multus.log",
        "logLevel": "error",
    }


def containerd_settings(layout: ClusterLayout, folder: Path) -> str:
    """The configuration of containerd for one node."""
    return f"""version = 2
root = "{folder}/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{layout.plugins}"
    conf_dir = "{folder}/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "{layout.parts.of_debian("runc")}"
        SystemdCgroup = false
"""


def kubelet_settings(folder: Path, node: ClusterNode) -> dict[str, Any]:
    """The configuration of a kubelet. CPU 0 is for programs of the node; pods may have all others for themselves."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": False,
        "failSwapOn": False,
        "cpuManagerPolicy": "static",
        "reservedSystemCPUs": "0",
        "resolvConf": f"{folder}/resolv.conf",
        "makeIPTablesUtilChains": False,
        "imageGCHighThresholdPercent": 100,
        "tlsCertFile": f"{folder}/kubelet.crt",
        "tlsPrivateKeyFile": f"{folder}/kubelet.key",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{folder}/authority.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "nodeStatusUpdateFrequency": "2s",
        "syncFrequency": "5s",
    }


def kube_proxy_settings(folder: Path, node: ClusterNode) -> dict[str, Any]:
    """The configuration of a kube-proxy. It writes rules of nftables, and leaves the kernel's settings alone."""
    keep = {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": f"{folder}/kube-proxy.kubeconfig"},
        "clusterCIDR": PODS,
        "hostnameOverride": node.name,
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        "conntrack": keep,
    }
