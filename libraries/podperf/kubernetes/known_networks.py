"""Knows the networks of pods that podperf recognises: how each one shows itself, and where its settings are. Pure.

Each class says how its network shows itself, and reads its settings. Names of fields are those of the networks' own
documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from podperf.kubernetes.pod_network import (
    ACROSS_SUBNETS,
    MOST_READ,
    Agent,
    PodNetwork,
    Question,
    Shown,
    config_maps,
    each_of,
    of_json,
    of_yaml,
    own_config_maps,
    version_of,
    within,
    word,
)

_CILIUM_CONFIG = "cilium-config"
CILIUM = f"/api/v1/namespaces/kube-system/configmaps/{_CILIUM_CONFIG}"  # the settings of Cilium's agents
_KUBE_PROXY = r"kube-proxy"


def kube_proxy(shown: Shown) -> Agent | None:
    return next((each for each in shown.agents if each.image(_KUBE_PROXY)), None)


def service_proxy(shown: Shown) -> tuple[str, str]:
    """kube-proxy with its version, and its mode. Both are empty if it is not shown."""
    if agent := kube_proxy(shown):
        asked = own_config_maps(agent)
        text = next(filter(None, (shown.data(asked, key) for key in ("config.conf", "config"))), None)
        mode = agent.argument("proxy-mode") or of_yaml(text, "mode") or ("iptables, the default" if text else "")
        return word(f"kube-proxy {version_of(agent.image(_KUBE_PROXY) or '')}".strip()), mode
    if "+k3s" not in shown.kubelet:
        return "", ""
    told = (within(each, "metadata", "annotations", "k3s.io/node-args") for each in shown.nodes)
    arguments = next(filter(None, told), "")
    if not isinstance(arguments, str) or "disable-kube-proxy" in arguments:
        return "", ""
    mode_of_k3s = re.search(r"proxy-mode=(\w{1,20})", arguments[:MOST_READ])
    return f"kube-proxy of {shown.kubelet}", mode_of_k3s[1] if mode_of_k3s else "iptables, the default"


class KnownNetwork:
    """A network that podperf recognises. A further one is a class here, and a place in KNOWN."""

    name: str
    image: str = ""  # a pattern that the image of a container of the agent has
    annotation: str = ""  # of its nodes

    def agent(self, shown: Shown) -> Agent | None:
        found = (each for each in shown.agents if self.image and each.image(self.image))
        return next(found, None)

    def questions(self, agent: Agent | None) -> tuple[Question, ...]:
        """What else must be read to know its settings."""
        return ()

    def read(self, shown: Shown, agent: Agent | None) -> PodNetwork:
        """The network, without its name and version."""
        return PodNetwork()

    def version(self, shown: Shown, agent: Agent | None) -> str:
        image = agent and agent.image(self.image)
        return version_of(image) if image else ""


class KnownFlannel(KnownNetwork):
    name = "Flannel"
    image = r"flannel"
    annotation = "flannel.alpha.coreos.com/backend-type"

    def questions(self, agent: Agent | None) -> tuple[Question, ...]:
        return own_config_maps(agent)

    def read(self, shown: Shown, agent: Agent | None) -> PodNetwork:
        settings = of_json(shown.data(self.questions(agent), "net-conf.json"))
        mode = (shown.annotation(self.annotation) or word(within(settings, "Backend", "Type"))).lower()
        words = {"vxlan": "VXLAN", "host-gw": "none", "ipip": "IP in IP", "udp": "UDP"}
        words |= dict.fromkeys(("wireguard", "wireguard-native"), "WireGuard")
        encapsulation = words.get(mode, "")
        if within(settings, "Backend", "DirectRouting") is True and encapsulation != "none":
            encapsulation += ACROSS_SUBNETS
        filters = "nftables" if within(settings, "EnableNFTables") is True else "iptables"
        data_plane = f"Linux bridge, {filters}" if settings else "Linux bridge"
        return PodNetwork(mode=mode, encapsulation=encapsulation, data_plane=data_plane)

    def version(self, shown: Shown, agent: Agent | None) -> str:
        """That of k3s, which has Flannel inside, if no agent is shown."""
        inside = f"of {shown.kubelet}" if agent is None and "+k3s" in shown.kubelet else ""
        return inside or super().version(shown, agent)


class KnownCalico(KnownNetwork):
    name = "Calico"
    image = r"calico[/-]node(?!-windows)|hardened-calico"
    annotation = "projectcalico.org/IPv4Address"

    _API = "/apis/crd.projectcalico.org/v1"
    _POOLS, _FELIX = f"{_API}/ippools", f"{_API}/felixconfigurations/default"

    def questions(self, agent: Agent | None) -> tuple[Question, ...]:
        return (Question(self._POOLS, "list ippools"), Question(self._FELIX, "get felixconfigurations"))

    def read(self, shown: Shown, agent: Agent | None) -> PodNetwork:
        felix = within(shown.objects.get(self._FELIX), "spec")
        environment = {} if agent is None else agent.environment
        bpf = environment.get("FELIX_BPFENABLED") or word(within(felix, "bpfEnabled"))
        encapsulation = ", ".join(self._pools(shown)) or self._of_first_pool(environment) or self._of_node(shown)
        mode = "" if not encapsulation else "routes" if encapsulation == "none" else "overlay"
        if within(felix, "wireguardEnabled") is True:
            encapsulation = "WireGuard"
        if bpf.lower() == "true":
            return PodNetwork("", "", mode, encapsulation, "eBPF", self.name, "eBPF")
        return PodNetwork(mode=mode, encapsulation=encapsulation, data_plane=self._filters(shown, felix, environment))

    @staticmethod
    def _filters(shown: Shown, felix: object, environment: Mapping[str, str]) -> str:
        """With `Auto`, Calico filters by nftables if kube-proxy does. Empty if that is not shown."""
        wanted = environment.get("FELIX_NFTABLESMODE") or word(within(felix, "nftablesMode"))
        if wanted.lower() == "auto":
            _, mode = service_proxy(shown)
            return "nftables" if mode == "nftables" else "iptables" if mode else ""
        if not wanted:
            return "" if felix is None else "iptables"
        return {"disabled": "iptables", "enabled": "nftables"}.get(wanted.lower(), "")

    def _pools(self, shown: Shown) -> Iterator[str]:
        """The encapsulations of the pools from which pods have addresses, each once."""
        specs = [within(each, "spec") for each in each_of(shown.objects.get(self._POOLS), "items")]
        of_pods = [each for each in specs if "Workload" in (each_of(each, "allowedUses") or ["Workload"])]
        used = [each for each in of_pods if isinstance(each, Mapping) and each.get("disabled") is not True]
        yield from dict.fromkeys(
            self._encapsulation(word(each.get("vxlanMode")), word(each.get("ipipMode"))) for each in used
        )

    @staticmethod
    def _encapsulation(vxlan: str, ipip: str) -> str:
        suffixes = {"Always": "", "CrossSubnet": ACROSS_SUBNETS}
        found = (f"{name}{suffixes[mode]}" for name, mode in (("VXLAN", vxlan), ("IP in IP", ipip)) if mode in suffixes)
        return next(found, "none")

    def _of_first_pool(self, environment: Mapping[str, str]) -> str:
        """The encapsulation of the pool that the agent makes when the cluster has none."""
        modes = [environment.get(f"CALICO_IPV4POOL_{each}", "") for each in ("VXLAN", "IPIP")]
        return self._encapsulation(*modes) if any(modes) else ""

    @staticmethod
    def _of_node(shown: Shown) -> str:
        tunnels = {"VXLAN": "IPv4VXLANTunnelAddr", "IP in IP": "IPv4IPIPTunnelAddr"}
        return next((name for name, each in tunnels.items() if shown.annotation(f"projectcalico.org/{each}")), "")


class KnownCilium(KnownNetwork):
    name = "Cilium"
    image = r"cilium/cilium[:@]|cilium-cilium[:@]|isovalent/cilium[:@]"

    def questions(self, agent: Agent | None) -> tuple[Question, ...]:
        return (
            config_maps(agent.namespace, _CILIUM_CONFIG)
            if agent
            else (Question(CILIUM, f"get configmaps {_CILIUM_CONFIG}"),)
        )

    def settings(self, shown: Shown, agent: Agent | None = None) -> Mapping[str, str] | None:
        """The settings of the agents. None if they are not shown."""
        found = next((within(shown.objects.get(each.path), "data") for each in self.questions(agent)), None)
        return {str(key): word(each) for key, each in found.items()} if isinstance(found, Mapping) else None

    def read(self, shown: Shown, agent: Agent | None) -> PodNetwork:
        settings = self.settings(shown, agent)
        if settings is None:
            return PodNetwork(data_plane="eBPF")
        before_1_14 = settings.get("tunnel", "")  # a protocol, or `disabled`
        routing = settings.get("routing-mode") or ("native" if before_1_14 == "disabled" else "tunnel")
        protocol = settings.get("tunnel-protocol") or (before_1_14 if before_1_14 != "disabled" else "") or "vxlan"
        encapsulation = (
            "none" if routing == "native" else {"vxlan": "VXLAN", "geneve": "Geneve"}.get(protocol, protocol)
        )
        if settings.get("enable-wireguard") == "true":
            encapsulation = "WireGuard" if encapsulation == "none" else f"{encapsulation} in WireGuard"
        elif settings.get("enable-ipsec") == "true":
            encapsulation = "IPsec" if encapsulation == "none" else f"{encapsulation} in IPsec"
        replaces = replaces_kube_proxy(settings)
        host_routing = replaces and settings.get("enable-host-legacy-routing") == "false"
        chained, pair = settings.get("cni-chaining-mode", ""), settings.get("datapath-mode", "")
        mode = [routing, *(["BPF host routing"] if host_routing else []), *([pair] if pair != "veth" else [])]
        mode += [f"chained: {chained}"] if chained not in {"", "none"} else []
        proxy = (self.name, "eBPF") if replaces else ("", "")
        return PodNetwork("", "", word(", ".join(filter(None, mode))), encapsulation, "eBPF", *proxy)


def replaces_kube_proxy(settings: Mapping[str, str]) -> bool:
    """Whether Cilium with these settings does all work of kube-proxy."""
    return settings.get("kube-proxy-replacement") in {"true", "strict"}


def balances_at_sockets(settings: Mapping[str, str]) -> bool:
    """Whether Cilium with these settings gives the programs of pods a pod's address in place of a Service's."""
    everywhere = settings.get("bpf-lb-sock-hostns-only", "false") == "false"
    return everywhere and (replaces_kube_proxy(settings) or settings.get("bpf-lb-sock") == "true")


class KnownAntrea(KnownNetwork):
    name = "Antrea"
    image = r"antrea"
    annotation = "node.antrea.io/mac-address"

    def questions(self, agent: Agent | None) -> tuple[Question, ...]:
        return own_config_maps(agent)

    def read(self, shown: Shown, agent: Agent | None) -> PodNetwork:
        """Settings that the config map does not have, have their defaults."""
        text = shown.data(self.questions(agent), "antrea-agent.conf")
        if not isinstance(text, str):
            return PodNetwork(data_plane="Open vSwitch")
        mode, tunnel = of_yaml(text, "trafficEncapMode") or "encap", of_yaml(text, "tunnelType") or "geneve"
        encryption = of_yaml(text, "trafficEncryptionMode").lower()
        names = {"geneve": "Geneve", "vxlan": "VXLAN", "gre": "GRE", "stt": "STT"}
        inside = {"wireguard": "WireGuard", "ipsec": "IPsec"}.get(encryption, names.get(tunnel, tunnel))
        by_mode = {"encap": inside, "hybrid": f"{inside}{ACROSS_SUBNETS}", "noEncap": "none"}
        _, _, after = text[:MOST_READ].partition("\nantreaProxy:")
        off = of_yaml(re.split(r"\n(?=\w)", after)[0], "enable") == "false"
        proxy = ("", "") if off else ("AntreaProxy", "Open vSwitch")
        return PodNetwork("", "", mode, by_mode.get(mode, ""), "Open vSwitch", *proxy)


class KnownKubeRouter(KnownNetwork):
    name = "kube-router"
    image = r"kube-router"

    def read(self, shown: Shown, agent: Agent | None) -> PodNetwork:
        """Flags that the agent does not have, have their defaults."""
        if agent is None:
            return PodNetwork()
        kind = "IP in IP" if agent.argument("overlay-encap") in {"", "ipip"} else "FOU"
        encapsulation = kind if agent.argument("overlay-type") == "full" else f"{kind}{ACROSS_SUBNETS}"
        if agent.argument("enable-overlay") == "false":
            encapsulation = "none"
        filters = "" if agent.argument("run-firewall") == "false" else ", iptables"
        proxy = ("", "") if agent.argument("run-service-proxy") == "false" else (self.name, "IPVS")
        return PodNetwork("", "", "BGP", encapsulation, f"Linux bridge{filters}", *proxy)


class KnownOvnKubernetes(KnownNetwork):
    """OpenShift names its images by digests alone, so there the annotation shows it."""

    name = "OVN-Kubernetes"
    image = r"ovn-kube|ovnkube"
    annotation = "k8s.ovn.org/node-subnets"

    def agent(self, shown: Shown) -> Agent | None:
        found = (each for each in shown.agents if each.name.startswith("ovnkube-node"))
        return super().agent(shown) or next(found, None)

    def read(self, shown: Shown, agent: Agent | None) -> PodNetwork:
        return PodNetwork("", "", "overlay", "Geneve with an option", "Open vSwitch", "OVN", "Open vSwitch")


class KnownKubeOvn(KnownNetwork):
    name = "Kube-OVN"
    image = r"kube-ovn"
    annotation = "ovn.kubernetes.io/tunnel_type"

    def read(self, shown: Shown, agent: Agent | None) -> PodNetwork:
        tunnel = shown.annotation(self.annotation)
        names = {"geneve": "Geneve with an option", "vxlan": "VXLAN", "stt": "STT"}
        return PodNetwork(mode=tunnel, encapsulation=names.get(tunnel, ""), data_plane="Open vSwitch")


class KnownWeave(KnownNetwork):
    name = "Weave Net"
    image = r"weave-kube"

    def read(self, shown: Shown, agent: Agent | None) -> PodNetwork:
        environment = {} if agent is None else agent.environment
        if environment.get("WEAVE_NO_FASTDP"):
            return PodNetwork(mode="sleeve", encapsulation="sleeve")
        encrypted = "WEAVE_PASSWORD" in environment
        encapsulation = "VXLAN in IPsec" if encrypted else "VXLAN"
        return PodNetwork(mode="fast datapath", encapsulation=encapsulation, data_plane="Open vSwitch")


class KnownKindnet(KnownNetwork):
    name = "kindnet"
    image = r"kindnetd"

    def read(self, shown: Shown, agent: Agent | None) -> PodNetwork:
        return PodNetwork(mode="routes", encapsulation="none")


class KnownAwsVpc(KnownNetwork):
    name = "AWS VPC CNI"
    image = r"amazon-k8s-cni"

    def read(self, shown: Shown, agent: Agent | None) -> PodNetwork:
        return PodNetwork(mode="addresses of the VPC", encapsulation="none")


class KnownAzureCni(KnownNetwork):
    name = "Azure CNI"
    image = r"azure-cns"


# The agents of a network can run beside another one, for policies alone. So the other one comes first. Canal is
# Flannel with Calico beside it.
KNOWN: tuple[KnownNetwork, ...] = (
    *(KnownAwsVpc(), KnownAzureCni(), KnownFlannel(), KnownCalico(), KnownCilium(), KnownAntrea()),
    *(KnownOvnKubernetes(), KnownKubeOvn(), KnownWeave(), KnownKindnet(), KnownKubeRouter()),
)
