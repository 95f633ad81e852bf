"""Makes the networks, files, certificates and command lines of the programs that each cluster has. No I/O."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from podperf.cluster.layout import (
    ADMINISTRATORS,
    API,
    API_PORT,
    BRIDGE,
    CNI,
    CNI_OF_CONTAINERD,
    CONTROL_ADDRESS,
    CONTROL_ADDRESS_6,
    ETCD,
    PAUSE_IMAGE,
    PODS,
    SERVICES,
    ClusterLayout,
    ClusterNode,
)
from podperf.kubernetes import own_agents
from podperf.kubernetes.pod_network import TOLD

LIFE = timedelta(days=30)  # nobody keeps such a cluster for longer
_BEFORE = timedelta(minutes=5)  # a clock that is set back a little must not make a certificate invalid


@dataclass(frozen=True)
class Certificate:
    """A certificate and its private key, both as PEM."""

    certificate: bytes
    key: bytes


_KEY_USAGES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
    *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)


class Authority:
    """Signs the certificates of one cluster. Its key is never written to a file."""

    def __init__(self, now: datetime | None = None) -> None:
        self._now = now or datetime.now(UTC)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "podperf cluster")])
        usage = dict.fromkeys(_KEY_USAGES, False) | {"key_cert_sign": True, "crl_sign": True}
        unsigned = self._unsigned(self._name, self._key.public_key())
        unsigned = unsigned.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        unsigned = unsigned.add_extension(x509.KeyUsage(**usage), critical=True)
        self.certificate = unsigned.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def certify(self, name: str, group: str | None = None, addresses: Sequence[str] = ()) -> Certificate:
        """A certificate for a user of this name and group (Kubernetes reads CN and O), and for a server at these
        addresses and DNS names."""
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
        if group is not None:
            attributes.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        unsigned = self._unsigned(x509.Name(attributes), key.public_key()).add_extension(
            x509.ExtendedKeyUsage(usages), critical=False
        )
        if addresses:
            names = x509.SubjectAlternativeName([_general_name(address) for address in addresses])
            unsigned = unsigned.add_extension(names, critical=False)
        signed = unsigned.sign(self._key, hashes.SHA256())
        return Certificate(signed.public_bytes(serialization.Encoding.PEM), _pem(key))

    def _unsigned(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        """Python 3.13 refuses certificates without the identifiers of both keys (RFC 5280, section 4.2.1)."""
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - _BEFORE)
            .not_valid_after(self._now + LIFE)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(issuer, critical=False)
        )


def signing_key() -> bytes:
    """A private key as PEM, with which tokens of service accounts are signed."""
    return _pem(ec.generate_private_key(ec.SECP256R1()))


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def network_commands(nodes: Sequence[ClusterNode]) -> Iterator[tuple[str, ...]]:
    """The commands that make the network of the cluster, in a network namespace of its own: a bridge, and a namespace
    for each node."""
    with_ipv6 = ("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=0", "net.ipv6.conf.default.disable_ipv6=0")
    yield with_ipv6
    yield ("ip", "link", "set", "lo", "up")
    yield ("ip", "link", "add", BRIDGE, "type", "bridge")
    yield ("ip", "address", "add", f"{CONTROL_ADDRESS}/24", "dev", BRIDGE)
    yield ("ip", "address", "add", f"{CONTROL_ADDRESS_6}/64", "dev", BRIDGE, "nodad")
    yield ("ip", "link", "set", BRIDGE, "up")
    for node in nodes:
        yield ("ip", "netns", "add", node.name)
        yield ("ip", "link", "add", node.name, "type", "veth", "peer", "name", "eth0", "netns", node.name)
        yield ("ip", "link", "set", node.name, "master", BRIDGE, "up")
        for network, address in zip(node.pods, node.addresses, strict=True):  # pods may ask the API server
            yield ("ip", "route", "add", network, "via", address)
        inside = ("ip", "-n", node.name)
        forwarding = ("net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
        yield ("nsenter", f"--net=/run/netns/{node.name}", *with_ipv6, *forwarding)
        yield (*inside, "link", "set", "lo", "up")
        for address, length in zip(node.addresses, (24, 64), strict=True):
            yield (*inside, "address", "add", f"{address}/{length}", "dev", "eth0", "nodad")
        yield (*inside, "link", "set", "eth0", "up")
        for gateway in (CONTROL_ADDRESS, CONTROL_ADDRESS_6):
            yield (*inside, "route", "add", "default", "via", gateway)


def files(layout: ClusterLayout) -> dict[Path, bytes]:
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
        layout.kubeconfig: kubeconfig(
            f"https://127.0.0.1:{layout.port}", authority.certificate, users["administrator"]
        ),
    }
    for name, each in users.items():
        found[control / f"{name}.kubeconfig"] = kubeconfig(API, authority.certificate, each)
    for node in layout.nodes:
        found |= _files_of(layout, node, authority)
    return found


def _files_of(layout: ClusterLayout, node: ClusterNode, authority: Authority) -> dict[Path, bytes]:
    folder = layout.of_node(node)
    user = authority.certify(f"system:node:{node.name}", "system:nodes", (node.name, *node.addresses))
    found = {
        folder / "kubelet.crt": user.certificate,
        folder / "kubelet.key": user.key,
        folder / "authority.crt": authority.certificate,
        folder / "kubelet.kubeconfig": kubeconfig(API, authority.certificate, user),
        folder / "kubelet.yaml": yaml.safe_dump(kubelet_settings(folder, node)).encode(),
        folder / "containerd.toml": containerd_settings(layout, folder).encode(),
        folder / "resolv.conf": b"",
    }
    for part in layout.programs.parts:
        if part.login is not None:
            login = authority.certify(*part.login)
            found[part.kubeconfig(layout, node)] = kubeconfig(API, authority.certificate, login)
        found |= {folder / path: content for path, content in part.files(layout, node).items()}
    network = {"cniVersion": "0.4.0", "name": "podperf", "plugins": [layout.programs.network.plugin(layout, node)]}
    found[folder / CNI / "10-podperf.conflist"] = json.dumps(network, indent=1).encode()
    return found


def kubeconfig(server: str, authority: bytes, login: Certificate) -> bytes:
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
                "user": {"client-certificate-data": text(login.certificate), "client-key-data": text(login.key)},
            }
        ],
        "contexts": [{"name": "podperf", "context": {"cluster": "podperf", "user": "podperf"}}],
        "current-context": "podperf",
    }
    return yaml.safe_dump(content).encode()


def containerd_settings(layout: ClusterLayout, folder: Path) -> str:
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
    conf_dir = "{folder}/{CNI_OF_CONTAINERD}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "{layout.programs.of_debian("runc")}"
        SystemdCgroup = false
"""


def kubelet_settings(folder: Path, node: ClusterNode) -> dict[str, Any]:
    """The configuration of a kubelet. CPU 0 is for programs of the node; pods may have all others for themselves."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.addresses[0],
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


def etcd(layout: ClusterLayout) -> list[str]:
    """The command of etcd. A cluster that lasts an hour needs no flushing to the disk."""
    return [
        layout.programs.of_debian("etcd"),
        *("--data-dir", layout.path("etcd"), "--unsafe-no-fsync"),
        *("--listen-client-urls", ETCD, "--advertise-client-urls", ETCD),
        *("--listen-peer-urls", "http://127.0.0.1:2380"),
    ]


def api_server(layout: ClusterLayout) -> list[str]:
    path = layout.path
    return [
        layout.programs.of_kubernetes("kube-apiserver"),
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
    own = layout.path("controller-manager.kubeconfig")
    return [
        layout.programs.of_kubernetes("kube-controller-manager"),
        *_own_kubeconfig(own),
        f"--service-account-private-key-file={layout.path('tokens.key')}",
        f"--root-ca-file={layout.path('authority.crt')}",
        "--use-service-account-credentials",
        f"--cluster-cidr={PODS}",
    ]


def scheduler(layout: ClusterLayout) -> list[str]:
    return [
        layout.programs.of_kubernetes("kube-scheduler"),
        *_own_kubeconfig(layout.path("scheduler.kubeconfig")),
    ]


def _own_kubeconfig(path: str) -> Sequence[str]:
    asks = (f"--{what}kubeconfig={path}" for what in ("", "authentication-", "authorization-"))
    return (*asks, "--bind-address=127.0.0.1", "--leader-elect=false")


def containerd(layout: ClusterLayout, node: ClusterNode) -> list[str]:
    return [layout.programs.of_debian("containerd"), "--config", f"{layout.of_node(node)}/containerd.toml"]


def import_image(layout: ClusterLayout, image: Path) -> list[str]:
    """The command that gives an image to the containerd of the node in which it runs."""
    ctr = (layout.programs.of_debian("ctr"), "--address", "/run/containerd/containerd.sock", "--namespace", "k8s.io")
    return [*ctr, "images", "import", str(image)]


def of_registered(layout: ClusterLayout, node: ClusterNode) -> dict[str, Any]:
    """The patch of a node that has registered: the networks of its pods, which many agents read there, and what the
    parts tell about the network."""
    told = {key: each for part in layout.programs.parts for key, each in part.tells().items()}
    network = layout.programs.network
    further = (part.filters for part in layout.programs.parts if part.filters not in network.data_plane)
    told["data_plane"] = ", ".join((network.data_plane, *further))
    word = {own_agents.WORD: layout.word} if network.restarts else {}
    return {
        "metadata": {"annotations": {TOLD: json.dumps(told), **word}},
        "spec": {"podCIDR": node.pods[0], "podCIDRs": node.pods},
    }


def kubelet(layout: ClusterLayout, node: ClusterNode) -> list[str]:
    folder = layout.of_node(node)
    return [
        layout.programs.of_kubernetes("kubelet"),
        *(f"--kubeconfig={folder}/kubelet.kubeconfig", f"--config={folder}/kubelet.yaml"),
        *(f"--hostname-override={node.name}", f"--node-ip={','.join(node.addresses)}", f"--root-dir={folder}/kubelet"),
    ]
