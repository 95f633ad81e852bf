"""The network of a cluster's pods, recognised from what the API server shows.

The objects have the fields of the networks' own installation files and documentation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.cluster import core
from podperf.cluster.layout import ClusterLayout, ClusterNode, ClusterPrograms
from podperf.cluster.parts import ALL_NETWORKS, chosen
from podperf.cluster.parts.bird import Bird
from podperf.cluster.parts.flannel import Flannel
from podperf.cluster.parts.plain import Plain
from podperf.kubernetes.known_networks import CILIUM
from podperf.kubernetes.pod_network import TOLD, PodNetwork, told_by
from podperf.kubernetes.recognition import Recognition
from podperf.records.parameters import PARAMETERS, SetUp
from test_kubernetes import FakeApi, cluster

DAEMON_SETS, NODES = "/apis/apps/v1/daemonsets", "/api/v1/nodes"
CALICO = "/apis/crd.projectcalico.org/v1"

Objects = dict[str, Any]


def daemon_set(
    name: str, *images: str, namespace: str = "kube-system", maps: tuple[str, ...] = (), **container: Any
) -> Objects:
    containers = [{"name": "agent", "image": image, **container} for image in images]
    volumes = [{"name": "run", "hostPath": {"path": "/run"}}, *({"name": "x", "configMap": {"name": e}} for e in maps)]
    pod = {"hostNetwork": True, "containers": containers, "volumes": volumes}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"template": {"spec": pod}}}


def kube_proxy(mode: str | None) -> dict[str, Objects]:
    """The objects of kube-proxy as kubeadm makes them."""
    kind = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"
    text = f'{kind}detectLocalMode: ""\niptables:\n  syncPeriod: 0s\nmode: "{mode}"\n'
    agent = daemon_set("kube-proxy", "registry.k8s.io/kube-proxy:v1.34.2", maps=("kube-proxy",))
    return {"daemon": agent, "/api/v1/namespaces/kube-system/configmaps/kube-proxy": {"data": {"config.conf": text}}}


def node(annotations: Mapping[str, str], kubelet: str = "v1.34.2") -> Objects:
    return {
        "metadata": {"name": "node1", "annotations": dict(annotations)},
        "status": {"nodeInfo": {"kubeletVersion": kubelet}},
    }


def api(
    *agents: Objects,
    annotations: Mapping[str, str] | None = None,
    kubelet: str = "v1.34.2",
    refused: tuple[str, ...] = (),
    proxy: str | None = None,
    **objects: Any,
) -> FakeApi:
    """A cluster with these agents, with kube-proxy in this mode, and with one node."""
    there = {path: each for path, each in objects.items() if path.startswith("/")}
    if proxy is not None:
        of_proxy = kube_proxy(proxy)
        agents = (*agents, of_proxy.pop("daemon"))
        there |= of_proxy
    found = {DAEMON_SETS: {"items": list(agents)}, f"{NODES}/node1": node(annotations or {}, kubelet), **there}
    return Missing(found, dict.fromkeys(refused, 403))


class Missing(FakeApi):
    """A cluster that knows no object beside those that it has."""

    def ask(self, method: str, path: str, body: Any = None, query: Any = ()) -> Any:
        if path not in self.objects:
            self.refused.setdefault(path, 404)
        return super().ask(method, path, body, query)


def seen(fake: FakeApi) -> PodNetwork:
    return Recognition(cluster(fake)).network(["node1"])


def calico(version: str = "v3.30.3", namespace: str = "calico-system", **environment: str) -> Objects:
    variables = [{"name": name, "value": each} for name, each in environment.items()]
    return daemon_set("calico-node", f"quay.io/calico/node:{version}", namespace=namespace, env=variables)


def pools(*specs: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{CALICO}/ippools": {"items": [{"spec": {"cidr": "192.168.0.0/16", **each}} for each in specs]}}


def felix(**settings: Any) -> dict[str, Any]:
    return {f"{CALICO}/felixconfigurations/default": {"spec": settings}}


@pytest.mark.parametrize(
    ("modes", "settings", "encapsulation", "added", "data_plane"),
    [
        ({"vxlanMode": "Always", "ipipMode": "Never"}, {"bpfEnabled": False}, "VXLAN", 50, "iptables"),
        ({"vxlanMode": "Never", "ipipMode": "Always"}, {}, "IP in IP", 20, "iptables"),
        ({"ipipMode": "CrossSubnet"}, {"nftablesMode": "Enabled"}, "IP in IP, only across subnets", None, "nftables"),
        ({"vxlanMode": "Never"}, {"nftablesMode": "Auto"}, "none", 0, "iptables"),
        ({"vxlanMode": "CrossSubnet"}, {"wireguardEnabled": True}, "WireGuard", 60, "iptables"),
    ],
)
def test_calico_with_its_pools(
    modes: dict[str, Any], settings: dict[str, Any], encapsulation: str, added: int | None, data_plane: str
) -> None:
    unused = {"vxlanMode": "Always", "disabled": True}, {"ipipMode": "Always", "allowedUses": ["Tunnel"]}
    found = seen(api(calico(), proxy="ipvs", **pools(modes, *unused), **felix(**settings)))
    assert (found.name, found.version, found.known_by) == ("Calico", "v3.30.3", "DaemonSet calico-system/calico-node")
    assert (found.encapsulation, found.encapsulation_bytes, found.data_plane) == (encapsulation, added, data_plane)
    assert (found.service_proxy, found.service_proxy_mode, found.unread) == ("kube-proxy v1.34.2", "ipvs", ())


@pytest.mark.parametrize(
    ("environment", "settings", "proxy", "data_plane"),
    [
        ("Enabled", {}, "", "nftables"),
        ("Disabled", {"nftablesMode": "Enabled"}, "nftables", "iptables"),
        ("Auto", {"nftablesMode": "Disabled"}, "nftables", "nftables"),
        ("Auto", {}, "", "iptables"),
        (None, {"nftablesMode": "Auto"}, "nftables", "nftables"),
        (None, {"nftablesMode": "Auto"}, None, ""),  # nothing shows the mode of kube-proxy
        (None, {}, "nftables", "iptables"),
        ("Enabled", None, None, "nftables"),
        (None, None, "nftables", ""),
    ],
)
def test_calico_filters_as_its_agent_is_told_or_as_kube_proxy_does(
    environment: str | None, settings: dict[str, Any] | None, proxy: str | None, data_plane: str
) -> None:
    told = {"FELIX_NFTABLESMODE": environment} if environment else {}
    found = seen(api(calico(**told), proxy=proxy, **({} if settings is None else felix(**settings))))
    assert found.data_plane == data_plane


def test_calico_with_ebpf_does_the_work_of_kube_proxy() -> None:
    found = seen(api(calico(), proxy="", **pools({"vxlanMode": "Always"}), **felix(bpfEnabled=True)))
    assert (
        found.words
        == "Calico v3.30.3; mode: overlay; encapsulation: VXLAN (50 B); data plane: eBPF; Services: Calico (eBPF)"
    )


def test_calico_without_its_settings_is_known_by_its_agent_and_by_its_nodes() -> None:
    closed = (f"{CALICO}/ippools", f"{CALICO}/felixconfigurations/default")
    agent = calico("v3.28.0", "kube-system", CALICO_IPV4POOL_IPIP="Always", CALICO_IPV4POOL_VXLAN="Never")
    found = seen(api(agent, refused=closed))
    assert (found.encapsulation, found.data_plane) == ("IP in IP", "")
    assert found.unread == ("list ippools: the login may not", "get felixconfigurations: the login may not")
    of_node = {"projectcalico.org/IPv4Address": "10.0.0.1/24", "projectcalico.org/IPv4VXLANTunnelAddr": "192.168.1.1"}
    found = seen(api(annotations=of_node, refused=(*closed, DAEMON_SETS)))
    assert (found.name, found.version, found.encapsulation) == ("Calico", "", "VXLAN")
    assert found.unread[0] == "list daemonsets: the login may not"


def flannel(*further: str, map_name: str = "kube-flannel-cfg") -> Objects:
    image = "ghcr.io/flannel-io/flannel:v0.27.4"
    return daemon_set("kube-flannel-ds", image, *further, namespace="kube-flannel", maps=(map_name,))


@pytest.mark.parametrize(
    ("settings", "annotated", "encapsulation", "data_plane"),
    [
        ({"Backend": {"Type": "vxlan"}, "EnableNFTables": False}, "vxlan", "VXLAN", "Linux bridge, iptables"),
        ({"Backend": {"Type": "host-gw"}, "EnableNFTables": True}, "host-gw", "none", "Linux bridge, nftables"),
        ({"Backend": {"Type": "wireguard"}}, None, "WireGuard", "Linux bridge, iptables"),
        (
            {"Backend": {"Type": "vxlan", "DirectRouting": True}},
            "vxlan",
            "VXLAN, only across subnets",
            "Linux bridge, iptables",
        ),
    ],
)
def test_flannel(settings: dict[str, Any], annotated: str | None, encapsulation: str, data_plane: str) -> None:
    path = "/api/v1/namespaces/kube-flannel/configmaps/kube-flannel-cfg"
    data = {"cni-conf.json": "{}", "net-conf.json": json.dumps({"Network": "10.244.0.0/16", **settings})}
    annotations = {"flannel.alpha.coreos.com/backend-type": annotated} if annotated else {}
    found = seen(api(flannel(), annotations=annotations, proxy="nftables", **{path: {"data": data}}))
    assert (found.name, found.version, found.encapsulation) == ("Flannel", "v0.27.4", encapsulation)
    assert (found.data_plane, found.service_proxy_mode) == (data_plane, "nftables")


def test_canal_is_flannel_with_calico_beside_it() -> None:
    found = seen(
        api(flannel("docker.io/calico/node:v3.26.1"), annotations={"flannel.alpha.coreos.com/backend-type": "vxlan"})
    )
    assert (found.name, found.encapsulation, found.beside) == ("Flannel", "VXLAN", ("Calico v3.26.1",))


@pytest.mark.parametrize(
    ("arguments", "proxy", "mode"),
    [
        ('["server"]', "kube-proxy of v1.33.5+k3s1", "iptables, the default"),
        ('["server","--kube-proxy-arg","proxy-mode=ipvs"]', "kube-proxy of v1.33.5+k3s1", "ipvs"),
        ('["server","--disable-kube-proxy"]', "", ""),
    ],
)
def test_the_flannel_inside_k3s_is_known_by_its_nodes(arguments: str, proxy: str, mode: str) -> None:
    annotations = {"flannel.alpha.coreos.com/backend-type": "wireguard-native", "k3s.io/node-args": arguments}
    found = seen(api(annotations=annotations, kubelet="v1.33.5+k3s1"))
    assert (found.name, found.version, found.encapsulation) == ("Flannel", "of v1.33.5+k3s1", "WireGuard")
    assert (found.service_proxy, found.service_proxy_mode) == (proxy, mode)


def test_an_annotation_of_an_earlier_network_does_not_count() -> None:
    agent = daemon_set("kindnet", "docker.io/kindest/kindnetd:v20250512-df8de77b")
    found = seen(api(agent, annotations={"flannel.alpha.coreos.com/backend-type": "vxlan"}, proxy=""))
    assert (found.name, found.version, found.encapsulation) == ("kindnet", "v20250512-df8de77b", "none")
    assert (found.service_proxy_mode, found.beside) == ("iptables, the default", ())


@pytest.mark.parametrize(
    ("settings", "mode", "encapsulation", "proxy"),
    [
        ({"routing-mode": "tunnel", "tunnel-protocol": "geneve"}, "tunnel", "Geneve", ""),
        ({"routing-mode": "native", "kube-proxy-replacement": "false"}, "native", "none", ""),
        (
            {
                "routing-mode": "native",
                "kube-proxy-replacement": "true",
                "enable-host-legacy-routing": "false",
                "datapath-mode": "netkit",
            },
            "native, BPF host routing, netkit",
            "none",
            "Cilium",
        ),
        (
            {"tunnel": "disabled", "kube-proxy-replacement": "strict", "datapath-mode": "veth"},
            "native",
            "none",
            "Cilium",
        ),
        ({"tunnel": "vxlan", "enable-wireguard": "true"}, "tunnel", "VXLAN in WireGuard", ""),
        ({"routing-mode": "native", "enable-ipsec": "true"}, "native", "IPsec", ""),
        ({"routing-mode": "native", "cni-chaining-mode": "aws-cni"}, "native, chained: aws-cni", "none", ""),
    ],
)
def test_cilium(settings: dict[str, str], mode: str, encapsulation: str, proxy: str) -> None:
    """The settings are those of 1.12 (`tunnel`, `strict`) to 1.18."""
    image = f"quay.io/cilium/cilium:v1.18.3@sha256:{'5' * 64}"
    beside = daemon_set("cilium-envoy", "quay.io/cilium/cilium-envoy:v1.34.10")
    found = seen(api(daemon_set("cilium", image, maps=("cilium-config",)), beside, **{CILIUM: {"data": settings}}))
    assert (found.name, found.version, found.data_plane) == ("Cilium", "v1.18.3", "eBPF")
    assert (found.mode, found.encapsulation, found.service_proxy) == (mode, encapsulation, proxy)


def test_ciliums_config_map_alone_shows_it() -> None:
    found = seen(api(refused=(DAEMON_SETS, f"{NODES}/node1"), **{CILIUM: {"data": {"routing-mode": "native"}}}))
    assert (found.name, found.encapsulation) == ("Cilium", "none")
    assert found.unread == ("get nodes: the login may not", "list daemonsets: the login may not")


ANTREA = """\
featureGates:
#  AntreaProxy: true
trafficEncapMode: "{mode}"
#tunnelType: vxlan
tunnelType: "{tunnel}"
trafficEncryptionMode: "{encryption}"
wireGuard:
  port: 51820
antreaProxy:
  # enable: false
  enable: {proxy}
  proxyAll: false
egress:
  enable: false
"""


@pytest.mark.parametrize(
    ("settings", "encapsulation", "proxy"),
    [
        (("encap", "geneve", "none", "true"), "Geneve", "AntreaProxy"),
        (("encap", "vxlan", "wireGuard", "true"), "WireGuard", "AntreaProxy"),
        (("hybrid", "gre", "none", "false"), "GRE, only across subnets", "kube-proxy v1.34.2"),
        (("noEncap", "geneve", "none", "true"), "none", "AntreaProxy"),
        (("networkPolicyOnly", "geneve", "none", "true"), "", "AntreaProxy"),
    ],
)
def test_antrea(settings: tuple[str, ...], encapsulation: str, proxy: str) -> None:
    text = ANTREA.format(**dict(zip(("mode", "tunnel", "encryption", "proxy"), settings, strict=True)))
    path = "/api/v1/namespaces/kube-system/configmaps/antrea-config"
    agent = daemon_set("antrea-agent", "antrea/antrea-agent-ubuntu:v2.4.1", maps=("antrea-config",))
    found = seen(api(agent, proxy="iptables", **{path: {"data": {"antrea-agent.conf": text}}}))
    assert (found.name, found.version, found.data_plane) == ("Antrea", "v2.4.1", "Open vSwitch")
    assert (found.mode, found.encapsulation, found.service_proxy) == (settings[0], encapsulation, proxy)


@pytest.mark.parametrize(
    ("arguments", "encapsulation", "proxy"),
    [
        (["--run-router=true", "--run-service-proxy=true"], "IP in IP, only across subnets", "kube-router"),
        (["--overlay-type=full", "--run-service-proxy=false"], "IP in IP", ""),
        (["--enable-overlay=false"], "none", "kube-router"),
    ],
)
def test_kube_router(arguments: list[str], encapsulation: str, proxy: str) -> None:
    found = seen(api(daemon_set("kube-router", "docker.io/cloudnativelabs/kube-router:v2.6.1", args=arguments)))
    assert (found.version, found.encapsulation, found.service_proxy) == ("v2.6.1", encapsulation, proxy)


@pytest.mark.parametrize(
    ("agent", "annotations", "name", "version"),
    [
        (
            daemon_set("ovnkube-node", f"quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:{'a' * 64}"),
            {"k8s.ovn.org/node-subnets": "{}"},
            "OVN-Kubernetes",
            "",
        ),
        (daemon_set("kube-ovn-cni", "docker.io/kubeovn/kube-ovn:v1.14.4"), {}, "Kube-OVN", "v1.14.4"),
        (daemon_set("weave-net", "weaveworks/weave-kube:2.8.1"), {}, "Weave Net", "2.8.1"),
        (
            daemon_set("aws-node", "1.dkr.ecr.eu-west-1.amazonaws.com/amazon-k8s-cni:v1.20.4"),
            {},
            "AWS VPC CNI",
            "v1.20.4",
        ),
    ],
)
def test_other_networks(agent: Objects, annotations: dict[str, str], name: str, version: str) -> None:
    found = seen(api(agent, annotations=annotations))
    assert (found.name, found.version) == (name, version)


def test_pods_that_are_not_in_the_nodes_network_are_no_agents() -> None:
    tenant = daemon_set("flannel-dashboard", "example.com/flannel-dashboard:1", namespace="tenant")
    tenant["spec"]["template"]["spec"]["hostNetwork"] = False
    assert seen(api(tenant)).name == ""


def test_a_login_without_rights_is_told_them() -> None:
    found = seen(api(refused=(DAEMON_SETS, f"{NODES}/node1", CILIUM)))
    rights = ("get nodes", "list daemonsets", "get configmaps cilium-config")
    assert found == PodNetwork(unread=tuple(f"{each}: the login may not" for each in rights))


@pytest.mark.parametrize("network", ALL_NETWORKS, ids=lambda network: network.title)
def test_podperfs_own_cluster_tells_its_network(network: Any) -> None:
    programs = ClusterPrograms(*([None] * 2), network, tuple(chosen(network, ())))  # type: ignore[arg-type]
    patch = core.of_registered(ClusterLayout(programs, 6443, ()), ClusterNode(1))
    fake = api(annotations=patch["metadata"]["annotations"])
    found = seen(fake)
    assert f"{found.name}:{found.mode}".rstrip(":") == network.title
    assert found.encapsulation == network.encapsulations.get(network.mode, "none")
    assert found.process == network.process
    assert bool(found.version) == bool(network.modules) and found.known_by == f"annotation {TOLD}"
    proxy = ("Cilium".lower(), "eBPF") if "kube-proxy" in network.replaces() else ("kube-proxy", "nftables")
    assert (found.service_proxy.split()[0], found.service_proxy_mode) == proxy
    assert CILIUM not in fake.refused, "the annotation is enough"


@pytest.mark.parametrize(
    ("network", "data_plane"),
    [
        (Plain(), "Linux bridge, iptables"),
        (Flannel(), "Linux bridge, iptables"),
        (Bird(), "Linux routes, iptables"),
    ],
)
def test_who_enforces_policies_adds_its_filters_to_the_data_plane_of_the_network(network: Any, data_plane: str) -> None:
    programs = ClusterPrograms(*([None] * 2), network, tuple(chosen(network, ["network-policies"])))  # type: ignore[arg-type]
    patch = core.of_registered(ClusterLayout(programs, 6443, ()), ClusterNode(1))
    found = told_by(patch)
    assert found is not None and found.data_plane == data_plane


def test_a_records_parameters_have_the_network() -> None:
    network = PodNetwork("Calico", "v3.30.3", "overlay", "VXLAN", "eBPF", "Calico", "eBPF").describe()
    found = SetUp(environment={"cluster": {"version": "v1.34.2", "network": network}})
    assert PARAMETERS["cni_plugin"].read(found) == "Calico v3.30.3"
    said = "mode: overlay; encapsulation: VXLAN; data plane: eBPF; service proxy: Calico; service proxy mode: eBPF"
    assert PARAMETERS["cni_configuration"].read(found) == said
    assert PARAMETERS["cni_plugin"].read(SetUp(environment={"cluster": {"version": "v1.34.2"}})) is None


KEYS = st.sampled_from(
    (
        *("metadata", "name", "namespace", "annotations", "spec", "template", "hostNetwork", "containers", "image"),
        *("args", "command", "env", "value", "volumes", "configMap", "data", "items", "status", "nodeInfo", TOLD),
        *(
            "kubeletVersion",
            "vxlanMode",
            "ipipMode",
            "allowedUses",
            "net-conf.json",
            "antrea-agent.conf",
            "config.conf",
        ),
        *("routing-mode", "tunnel", "tunnel-protocol", "kube-proxy-replacement", "k3s.io/node-args", "bpfEnabled"),
        "flannel.alpha.coreos.com/backend-type",
    )
)
WORDS = st.text(max_size=40) | st.sampled_from(
    (
        *("\x1b[2J", "x" * 100_000, "[" * 100_000, "{" * 100_000, "9" * 5000, "\u202e", "\ud800", "\n" * 100_000),
        *(
            "flannel:1",
            "calico/node:1",
            "cilium/cilium:1",
            "antrea:\x1b",
            "kube-proxy@\x00",
            "../../etc",
            "CrossSubnet",
        ),
        *('{"name": "\\u001b[2J"}', '{"Backend": {"Type": "\\u001b"}}', "mode: \x1b\ntrafficEncapMode: \x9b"),
    )
)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=30,
)
POD = st.fixed_dictionaries(
    {
        "hostNetwork": st.just(True),
        "containers": st.lists(st.fixed_dictionaries({"image": WORDS}, optional={"args": ANY, "env": ANY}), max_size=3),
    },
    optional={"volumes": st.lists(st.fixed_dictionaries({"configMap": st.fixed_dictionaries({"name": st.just("c")})}))},
)
AGENT = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries({"name": WORDS, "namespace": st.just("kube-system") | WORDS}),
        "spec": st.fixed_dictionaries({"template": st.fixed_dictionaries({"spec": POD})}),
    }
)
NODE = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries({"annotations": st.dictionaries(KEYS | WORDS, WORDS | ANY, max_size=4)}),
        "status": st.fixed_dictionaries(
            {"nodeInfo": st.fixed_dictionaries({"kubeletVersion": WORDS | st.just("v1+k3s\x1b")})}
        ),
    }
)


@given(agents=st.lists(AGENT | ANY, max_size=3), of_node=NODE | ANY, other=ANY | st.fixed_dictionaries({"data": ANY}))
def test_no_object_of_a_hostile_cluster_is_an_error_or_steers_a_terminal(agents: Any, of_node: Any, other: Any) -> None:
    class Hostile(FakeApi):
        def ask(self, method: str, path: str, body: Any = None, query: Any = ()) -> Any:
            assert ".." not in path and path.isascii()
            return {DAEMON_SETS: {"items": agents}, f"{NODES}/node1": of_node}.get(path, other)

    found = seen(Hostile())
    texts = [*found.beside, *found.unread, found.words, *(e for e in found.describe().values() if isinstance(e, str))]
    assert all(each.isprintable() and len(each) < 3000 for each in texts)


@given(value=ANY)
def test_an_annotation_tells_a_network_or_none(value: Any) -> None:
    found = told_by({"metadata": {"annotations": {TOLD: value}}})
    assert found is None or found.words.isprintable()
