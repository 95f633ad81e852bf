"""OVN as the network of podperf's own cluster: its topology as data, and its CNI plug-in with programs that only note
how they are called."""

from __future__ import annotations

import json
import os
import subprocess
from ipaddress import ip_address, ip_interface, ip_network
from pathlib import Path
from typing import Any

import pytest

from podperf.cluster import layout
from podperf.cluster.layout import ClusterLayout, ClusterPrograms
from podperf.cluster.parts import ovn_plugin
from podperf.cluster.parts.ovn import Ovn
from podperf.cluster.parts.ovn_plugin import port_of
from podperf.errors import Unavailable
from podperf.kubernetes.pod_network import PodNetwork
from scripted_host import ScriptedHost

NETWORK = Ovn(Path("/debian"))
WANTED = ClusterLayout(ClusterPrograms(Path("/d"), Path("/k"), NETWORK), 4321, layout.nodes(2))
CONTAINER = "8f3a" * 16
ADDRESSES = {
    "cniVersion": "0.4.0",
    "ips": [
        {"version": "4", "address": "10.244.1.3/24", "gateway": "10.244.1.1"},
        {"version": "6", "address": "fd00:10:244:1::3/64", "gateway": "fd00:10:244:1::1"},
    ],
    "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}, {"dst": "10.96.0.0/16", "gw": "10.244.1.2"}],
    "dns": {},
}


def words(name: str, node: int = 0) -> list[str]:
    """The words, or the lines, of a file of a node."""
    return NETWORK.files(WANTED, WANTED.nodes[node])[f"ovn/{name}"].decode().splitlines()


def test_the_first_node_has_the_logical_network_with_a_router_in_each_switch() -> None:
    assert "ovn/logical" not in NETWORK.files(WANTED, WANTED.nodes[1])
    commands = " ".join(words("logical")).split(" -- ")
    assert commands[0] == "lr-add cluster"
    for number in (1, 2):
        router = f"10.244.{number}.1/24 fd00:10:244:{number}::1/64"
        assert f"lrp-add cluster cluster-node{number} 0a:58:0a:f4:0{number}:01 {router}" in commands
        own = f"0a:58:0a:f4:0{number}:02 10.244.{number}.2 fd00:10:244:{number}::2"
        assert f"lsp-set-addresses node{number}-management {own}" in commands
        assert f"--policy=src-ip lr-route-add cluster 10.244.{number}.0/24 10.244.{number}.2" in commands


def test_pods_get_no_address_of_the_router_or_the_node_and_reach_services_by_their_node() -> None:
    for node in WANTED.nodes:
        ipam = NETWORK.plugin(WANTED, node)["ipam"]
        for (each,), pods in zip(ipam["ranges"], node.pods, strict=True):
            first, gateway, subnet = ip_address(each["rangeStart"]), ip_address(each["gateway"]), ip_network(pods)
            assert gateway == subnet[1] and first == subnet[3] and each["subnet"] == pods
        own = {ip_network(route["dst"]).version: route["gw"] for route in ipam["routes"] if "gw" in route}
        assert own == {4: str(ip_network(node.pods[0])[2]), 6: str(ip_network(node.pods[1])[2])}
        assert {route["dst"] for route in ipam["routes"] if "gw" in route} == set(layout.SERVICES.split(","))


def test_a_node_sends_geneve_from_an_address_of_its_own_bridge() -> None:
    settings = words("switch", node=1)
    assert "external_ids:ovn-encap-ip=10.245.0.12" in settings
    assert "external_ids:ovn-remote=tcp:10.199.0.11:6641" in settings
    assert "address add 10.245.0.12/24 dev br-underlay" in words("addresses", node=1)
    assert "route add 10.244.0.0/16 via 10.244.2.1 dev ovn-management" in words("addresses", node=1)
    names = ("underlay", "br-underlay", "ovn-management", *(each for each in settings if each.startswith("br-")))
    assert all(len(each) < 16 for each in names), "the kernel takes 15 characters"


def test_the_underlay_is_a_network_of_its_own() -> None:
    """On the bridge of the cluster, both interfaces of a node would answer ARP requests for its first address."""
    commands = [" ".join(each) for each in NETWORK.network_commands(WANTED.nodes)]
    assert commands[0] == "ip link add underlay type bridge"
    assert not [each for each in commands if layout.BRIDGE in each]
    for number in (1, 2):
        assert f"ip link set underlay{number} master underlay up" in commands


def test_a_node_is_ready_when_the_router_and_other_nodes_answer() -> None:
    for count, asked in ((1, ["10.244.1.1", "fd00:10:244:1::1"]), (2, ["10.244.2.2", "fd00:10:244:2::2"])):
        wanted = ClusterLayout(WANTED.programs, 4321, layout.nodes(count))
        *_, script = NETWORK.ready(wanted, wanted.nodes[0])
        assert [each.split()[-1] for each in script.split("; ")][-2:] == asked


def test_the_mtu_is_what_the_encapsulation_leaves() -> None:
    told = NETWORK.tells()
    network = PodNetwork(encapsulation=told["encapsulation"])
    assert NETWORK.plugin(WANTED, WANTED.nodes[0])["mtu"] == 1500 - (network.encapsulation_bytes or 0)
    assert "mtu_request=1442" in words("switch")


def test_a_kernel_without_tun_is_told() -> None:
    NETWORK.demand(ScriptedHost(patient=True))
    with pytest.raises(Unavailable, match="modprobe tun"):
        NETWORK.demand(ScriptedHost(refused={"test -c /dev/net/tun": ""}, patient=True))


class Node:
    """The programs that the plug-in calls. Each notes its words and its input in a file."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._calls = folder, folder / "calls"
        for name in ("host-local", "ip", "nsenter", "ethtool", "ovs-vsctl", "ovn-nbctl"):
            self.answers(name, f"cat >>{self._calls}; echo")
        self.answers("host-local", f"cat >/dev/null; [ $CNI_COMMAND != ADD ] || echo '{json.dumps(ADDRESSES)}'")

    def answers(self, program: str, script: str) -> None:
        path = self._folder / program
        path.write_text(f'#!/bin/sh\necho "{program} $*" $CNI_COMMAND >>{self._calls}\n{script}\n')
        path.chmod(0o755)

    def call(self, command: str, configuration: str | None = None) -> subprocess.CompletedProcess[str]:
        settings = {"cniVersion": "0.4.0", "name": "podperf", **NETWORK.plugin(WANTED, WANTED.nodes[0])}
        environment = {
            **{"PATH": f"{self._folder}:{os.environ['PATH']}", "CNI_PATH": str(self._folder)},
            **{"CNI_COMMAND": command, "CNI_CONTAINERID": CONTAINER, "CNI_IFNAME": "eth0", "CNI_NETNS": "/run/netns/a"},
        }
        given = configuration or json.dumps({**settings, "programs": str(self._folder)})
        return subprocess.run(
            [ovn_plugin.__file__], input=given, env=environment, capture_output=True, text=True, check=False
        )

    @property
    def calls(self) -> list[str]:
        return self._calls.read_text().splitlines()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_pod_has_an_interface_whose_other_end_is_a_port_that_all_nodes_know(node: Node) -> None:
    done = node.call("ADD")
    assert done.returncode == 0, done.stdout + done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    port = port_of(CONTAINER)
    assert len(port) < 16, "the kernel takes 15 characters"
    assert [each["name"] for each in answer["interfaces"]] == [port, "eth0"]
    assert {ip_interface(each["address"]).version: each["interface"] for each in answer["ips"]} == {4: 1, 6: 1}
    text = "\n".join(node.calls)
    mac = "0a:58:0a:f4:01:03"
    assert f"link add eth0 address {mac} mtu 1442 type veth peer name {port} mtu 1442 netns " in text
    assert "route add 0.0.0.0/0 via 10.244.1.1 dev eth0" in text and "route add ::/0 via fd00:10:244:1::1" in text
    assert "route add 10.96.0.0/16 via 10.244.1.2 dev eth0" in text
    assert f"add-port br-int {port} -- set Interface {port} external_ids:iface-id={port}" in text
    assert f"lsp-add node1 {port} -- lsp-set-addresses {port} {mac} 10.244.1.3 fd00:10:244:1::3" in text
    up, known = (next(n for n, each in enumerate(node.calls) if word in each) for word in ("up=true", "--wait=hv"))
    assert up < known


def test_what_is_half_made_is_removed_and_the_first_reason_told(node: Node) -> None:
    node.answers("ovn-nbctl", "echo no database >&2; exit 1")
    done = node.call("ADD")
    assert done.returncode == 1
    error = json.loads(done.stdout)
    assert error["code"] >= 100 and "lsp-add" in error["msg"] and "no database" in error["msg"]
    assert f"ovs-vsctl --timeout=20 --if-exists del-port br-int {port_of(CONTAINER)} ADD" in node.calls


def test_an_end_removes_all_and_is_no_error_when_nothing_is_there(node: Node) -> None:
    node.answers("ip", "exit 1")
    for _ in range(2):
        done = node.call("DEL")
        assert (done.returncode, done.stdout) == (0, "")
    port = port_of(CONTAINER)
    assert [each.partition(" ")[0] for each in node.calls[:4]] == ["ovs-vsctl", "ovn-nbctl", "ip", "host-local"]
    assert f"ip link delete {port} DEL" in node.calls


def test_a_check_asks_each_program(node: Node) -> None:
    assert node.call("CHECK").returncode == 0
    assert [each.partition(" ")[0] for each in node.calls if each] == ["ovs-vsctl", "ovn-nbctl", "host-local"]


def test_the_plug_in_tells_its_versions_and_what_it_cannot_read(node: Node) -> None:
    assert "1.0.0" in json.loads(node.call("VERSION").stdout)["supportedVersions"]
    for command, configuration in (("ADD", "{"), ("NONE", "{}"), ("ADD", "{}")):
        done = node.call(command, configuration)
        assert done.returncode == 1 and json.loads(done.stdout)["msg"].startswith("podperf-ovn: ")
