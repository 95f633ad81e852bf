"""OVN as the network of pods, with Open vSwitch in user space: logical switches, and a router on all nodes.

The topology is that of OVN-Kubernetes: a logical switch for each node, and one distributed router between them. Nodes
send frames to each other by Geneve. Open vSwitch makes these frames itself, so the kernel needs neither a module of
Open vSwitch nor Geneve.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Address, ip_address, ip_network
from pathlib import Path
from typing import Any, ClassVar

from podperf.cluster.layout import PODS, SERVICES, ClusterLayout, ClusterNetwork, ClusterNode
from podperf.cluster.parts import ovn_plugin
from podperf.cluster.parts.ovn_plugin import mac_of, without_probes
from podperf.cluster.parts.plain import addresses
from podperf.errors import Unavailable
from podperf.hosts.base import Host

_SCRIPT = Path(__file__).with_name("ovn_node.sh")
_PLUGIN = "podperf-ovn"
_FOLDER = "ovn"  # of a node
_MTU = 1442  # Geneve with the option in which OVN tells logical ports
_ROUTER = "cluster"
_PORT = 6641  # of OVN's databases
_BRIDGE = "underlay"  # between the nodes
# On a node: its interface of the underlay, the bridge that has this interface as a port, and its port of its logical
# switch. Open vSwitch in user space sends Geneve only from an address that one of its own bridges has.
_UPLINK, _UNDERLAY, _MANAGEMENT = "underlay", "br-underlay", "ovn-management"
# Pods' frames that a node forwards come back to it, so that it translates their addresses back, too.
_TRANSLATION = f"""table inet podperf-ovn {{
    chain postrouting {{
        type nat hook postrouting priority srcnat;
        iifname "{_MANAGEMENT}" masquerade
        oifname "{_MANAGEMENT}" ct status dnat masquerade
    }}
}}
"""


class Ovn(ClusterNetwork):
    """OVN of Debian's packages. The first node has its databases."""

    name: ClassVar[str] = "ovn"
    encapsulations: ClassVar[Mapping[str, str]] = {"": "Geneve with an option"}
    data_plane: ClassVar[str] = "Open vSwitch in user space"
    process: ClassVar[str] = "ovs-vswitchd"
    needs_node: ClassVar[bool] = False
    restarts: ClassVar[bool] = False  # it makes its databases and links anew
    # Their libraries are those of openvswitch-switch-dpdk, which the set-up of podperf installs.
    packages: ClassVar[tuple[str, ...]] = (
        *("openvswitch-common", "openvswitch-switch"),
        *("ovn-central", "ovn-common", "ovn-host"),
    )
    links: ClassVar[Mapping[str, str]] = {"usr/sbin/ovs-vswitchd": "../lib/openvswitch-switch/ovs-vswitchd"}

    def demand(self, host: Host) -> None:
        if host.ask("test", "-c", "/dev/net/tun", check=False).exit_code:
            raise Unavailable("Open vSwitch in user space needs the kernel module: modprobe tun")

    def plugins(self) -> Mapping[str, Path]:
        return {_PLUGIN: Path(ovn_plugin.__file__)}

    def plugin(self, layout: ClusterLayout, node: ClusterNode) -> Mapping[str, Any]:
        assert self.debian is not None
        given = addresses(node.pods)
        ranges = [
            [{"subnet": pods, "rangeStart": str(ip_network(pods)[3]), "gateway": router}]
            for pods, router in zip(node.pods, _routers(node), strict=True)
        ]
        to_services = [{"dst": each, "gw": own} for each, own in zip(SERVICES.split(","), _own(node), strict=True)]
        return {
            "type": _PLUGIN,
            "programs": str(self.debian / "usr/bin"),
            "database": _databases(layout),
            "switch": node.name,
            "mtu": _MTU,
            "ipam": {**given, "ranges": ranges, "routes": [*given["routes"], *to_services]},
        }

    def network_commands(self, nodes: Sequence[ClusterNode]) -> Iterator[tuple[str, ...]]:
        """The underlay is a bridge of its own. On that of the cluster, a node would answer ARP requests for its first
        address with two MAC addresses."""
        yield ("ip", "link", "add", _BRIDGE, "type", "bridge")
        yield ("ip", "link", "set", _BRIDGE, "up")
        for node in nodes:
            outside, inside = f"underlay{node.number}", ("ip", "-n", node.name)
            yield ("ip", "link", "add", outside, "type", "veth", "peer", "name", _UPLINK, "netns", node.name)
            yield ("ip", "link", "set", outside, "master", _BRIDGE, "up")
            yield (*inside, "link", "set", _UPLINK, "addrgenmode", "none", "up")
            # A node forwards frames for Services back to where they came from. Pods are not to send them elsewhere.
            silent = (f"net.ipv4.conf.{each}.send_redirects=0" for each in ("all", "default"))
            yield ("nsenter", f"--net=/run/netns/{node.name}", "sysctl", "-qw", *silent)

    def files(self, layout: ClusterLayout, node: ClusterNode) -> Mapping[str, bytes]:
        found = {
            "switch": _words(_switch_of(layout, node)),
            "addresses": _words(_addresses_of(node)),
            "translation": _TRANSLATION.encode(),
        }
        if node == layout.nodes[0]:
            found["logical"] = _words(_logical_network(layout.nodes))
        return {f"{_FOLDER}/{name}": content for name, content in found.items()}

    def command(self, layout: ClusterLayout, node: ClusterNode) -> list[str]:
        folder = layout.of_node(node) / _FOLDER
        return ["bash", str(_SCRIPT), str(self.debian), str(folder), layout.nodes[0].addresses[0], str(_PORT)]

    def ready(self, layout: ClusterLayout, node: ClusterNode) -> list[str]:
        """The router answers, and so do other nodes at their addresses in their logical switches."""
        others = (address for other in layout.others(node) for address in _own(other))
        return ["sh", "-ec", "; ".join(f"busybox ping -c 1 -W 1 {each}" for each in (*_routers(node), *others))]


def _databases(layout: ClusterLayout) -> str:
    """Where OVN's databases are, as its programs name it."""
    return f"tcp:{layout.nodes[0].addresses[0]}:{_PORT}"


def _routers(node: ClusterNode) -> tuple[str, ...]:
    """The addresses of the router in the logical switch of a node."""
    return tuple(str(ip_network(pods)[1]) for pods in node.pods)


def _own(node: ClusterNode) -> tuple[str, ...]:
    """The addresses of a node in its logical switch."""
    return tuple(str(ip_network(pods)[2]) for pods in node.pods)


def _mac_of(address: str) -> str:
    return mac_of(IPv4Address(address))


def _management(node: ClusterNode) -> str:
    """The node's port in OVN."""
    return f"{node.name}-management"


def _underlay(node: ClusterNode) -> str:
    return f"10.245.0.{10 + node.number}"


def _words(words: Iterator[str]) -> bytes:
    return "".join(f"{word}\n" for word in words).encode()


def _switch_of(layout: ClusterLayout, node: ClusterNode) -> Iterator[str]:
    """The words for ovs-vsctl that set up a node's Open vSwitch."""
    in_user_space = "datapath_type=netdev"
    integration = ovn_plugin.INTEGRATION_BRIDGE
    yield from ("add-br", integration, "--", "set", "Bridge", integration, in_user_space, "fail_mode=secure")
    yield from ("--", "add-br", _UNDERLAY, "--", "set", "Bridge", _UNDERLAY, in_user_space)
    yield from ("--", "add-port", _UNDERLAY, _UPLINK)
    yield from ("--", "add-port", integration, _MANAGEMENT, "--", "set", "Interface", _MANAGEMENT, "type=internal")
    yield from (f'mac="{_mac_of(_own(node)[0])}"', f"mtu_request={_MTU}", f"external_ids:iface-id={_management(node)}")
    settings = {
        "system-id": node.name,
        "hostname": node.name,
        "ovn-remote": _databases(layout),
        "ovn-encap-type": "geneve",
        "ovn-encap-ip": _underlay(node),
        "ovn-bridge-datapath-type": "netdev",
    }
    yield from ("--", "set", "Open_vSwitch", ".")
    yield from (f"external_ids:{name}={value}" for name, value in settings.items())


def _addresses_of(node: ClusterNode) -> Iterator[str]:
    """The lines for `ip -batch` that set up the interfaces of Open vSwitch on a node."""
    yield f"address add {_underlay(node)}/24 dev {_UNDERLAY}"
    yield f"link set {_UNDERLAY} up"
    for own, pods in zip(_own(node), node.pods, strict=True):
        yield f"address add {own}/{ip_network(pods).prefixlen} dev {_MANAGEMENT}{without_probes(ip_address(own))}"
    yield f"link set {_MANAGEMENT} up"
    for pods, router in zip(PODS.split(","), _routers(node), strict=True):
        yield f"route add {pods} via {router} dev {_MANAGEMENT}"


def _logical_network(nodes: Sequence[ClusterNode]) -> Iterator[str]:
    """The words for ovn-nbctl that make the logical network."""
    yield from ("lr-add", _ROUTER)
    for node in nodes:
        switch, of_router, of_switch = node.name, f"{_ROUTER}-{node.name}", f"{node.name}-{_ROUTER}"
        networks = [
            f"{router}/{ip_network(pods).prefixlen}" for pods, router in zip(node.pods, _routers(node), strict=True)
        ]
        yield from ("--", "lrp-add", _ROUTER, of_router, _mac_of(_routers(node)[0]), *networks)
        yield from ("--", "ls-add", switch)
        yield from ("--", "lsp-add", switch, of_switch, "--", "lsp-set-type", of_switch, "router")
        yield from ("--", "lsp-set-addresses", of_switch, "router")
        yield from ("--", "lsp-set-options", of_switch, f"router-port={of_router}")
        management = _management(node)
        yield from ("--", "lsp-add", switch, management)
        yield from ("--", "lsp-set-addresses", management, " ".join((_mac_of(_own(node)[0]), *_own(node))))
        for pods, own in zip(node.pods, _own(node), strict=True):  # a node forwards what its pods send elsewhere
            yield from ("--", "--policy=src-ip", "lr-route-add", _ROUTER, pods, own)
