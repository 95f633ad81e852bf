"""podperf refuses interfaces in use as tester ports. These tests use their own namespaces. One test runs section 5."""

import os
import select
import shutil
import signal
import struct
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from scapy.contrib.geneve import GENEVE
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import GRE, Dot1AD, Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet

from namespaces import add_namespace
from podperf.errors import PodperfError
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import NetworkNamespace
from podperf.testbed.frame_watch import SIGNATURE, FrameWatch, addresses_in_test_network
from podperf.testbed.isolation import SshSession, objections, read_network
from robot_run import Robot

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes network namespaces")

SEND = """
import socket, sys, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    sender.bind((sys.argv[1], 0))
    for _ in range(5):
        sender.sendto(bytes.fromhex("".join(sys.argv[3:])), (sys.argv[2], 9))
        time.sleep(0.1)
"""
PLANT = """
import socket, sys
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
    sender.bind((sys.argv[1], 0))
    sender.send(bytes.fromhex(sys.argv[2]))
"""
MAC = "02:00:00:00:00:02"
SSH = SshSession("192.0.2.9", "192.0.2.1")


@pytest.fixture
def lab() -> Iterator[NetworkNamespace]:
    """A namespace with a veth pair one-two, both ends up and nothing else."""
    with ExitStack() as undo:
        lab = add_namespace("isolation", undo)
        lab.do("ip", "link", "add", "name", "one", "type", "veth", "peer", "name", "two")
        for interface in ("one", "two"):
            lab.do("ip", "link", "set", interface, "up")
        yield lab


def refusal(lab: NetworkNamespace, interface: str) -> str:
    """The reasons against this interface as a tester port. Empty if it may be one."""
    return "\n".join(objections(interface, read_network(lab, SSH), SSH))


def configure(lab: NetworkNamespace, *lines: str) -> None:
    for line in lines:
        lab.do("ip", *line.split())


def test_an_unused_interface_is_accepted_until_it_is_used(lab: NetworkNamespace) -> None:
    assert not refusal(lab, "one")
    configure(lab, "address add 10.0.0.1/24 dev one")
    assert "one carries the address 10.0.0.1/24" in refusal(lab, "one")
    assert not refusal(lab, "two")
    configure(lab, "route add default via 10.0.0.2 table 77")
    assert "one carries a default route and the address" in refusal(lab, "one")
    configure(lab, "route flush table 77", "address flush dev one", "-6 route add default dev one")
    assert "one carries a default route;" in refusal(lab, "one")


def test_members_of_a_bridge_and_parents_of_a_macvlan_share_their_fate(lab: NetworkNamespace) -> None:
    configure(lab, "link add name br type bridge", "link set one master br", "link add link two name m type macvlan")
    assert "one is a port of br, which brings it the frames of others" in refusal(lab, "one")
    assert not refusal(lab, "m")
    configure(lab, "address add 10.0.0.1/24 dev br", "address add 10.1.0.1/24 dev m")
    assert "one shares its wire with br, which carries the address 10.0.0.1/24" in refusal(lab, "one")
    assert "two shares its wire with m, which carries the address 10.1.0.1/24" in refusal(lab, "two")


@pytest.mark.slow
@pytest.mark.usefixtures("machine_as_before")
def test_the_suite_of_section_5_shows_that_the_test_network_is_isolated(tmp_path: Path) -> None:
    if shutil.which("tcpdump") is None:
        pytest.skip("tcpdump is not installed (Debian package tcpdump)")
    robot = Robot(tmp_path, "--include", "sec-5", "tests")
    assert robot.wait() == 0, robot.output.read_text()
    outcomes = [line.split(": ")[1] for line in robot.messages().splitlines()]
    assert outcomes == [*["PASS"] * 5, "SKIP"], robot.messages()  # the last one is that of a black box


def test_the_watch_sees_test_frames_but_not_those_of_a_vpn_with_such_an_address(lab: NetworkNamespace) -> None:
    configure(lab, "address add 198.18.0.1/16 dev one", "address add 192.0.2.1/24 dev one")
    with ExitStack() as undo:
        watch = FrameWatch(lab, undo, addresses_in_test_network(lab))
        configure(lab, "neigh replace 198.18.0.2 lladdr 02:00:00:00:00:02 dev one nud permanent")
        configure(lab, "neigh replace 198.18.0.3 lladdr 02:00:00:00:00:03 dev one nud permanent")
        for source, destination in (("198.18.0.1", "198.18.0.2"), ("192.0.2.1", "198.18.0.3")):
            lab.do(sys.executable, "-c", SEND, source, destination)
        seen = watch.stop()
    assert any("192.0.2.1." in line and "> 198.18.0.3." in line for line in seen), seen
    assert not any("198.18.0.1" in line for line in seen), seen


@pytest.mark.parametrize("direction", [0, 1])
def test_the_watch_sees_a_test_frame_by_its_signature_whatever_its_addresses_are(
    lab: NetworkNamespace, direction: int
) -> None:
    configure(lab, "address add 198.18.0.1/16 dev one", "address add 192.0.2.1/24 dev one")
    configure(lab, "route add 203.0.113.0/24 dev one", "route add 198.51.100.0/24 dev one")
    for beyond in ("203.0.113.9", "198.51.100.9"):
        configure(lab, f"neigh replace {beyond} lladdr 02:00:00:00:00:02 dev one nud permanent")
    head = struct.pack("<II10x", 1, SIGNATURE | direction).hex()
    with ExitStack() as undo:
        watch = FrameWatch(lab, undo, addresses_in_test_network(lab))
        for source in ("192.0.2.1", "198.18.0.1"):
            lab.do(sys.executable, "-c", SEND, source, "203.0.113.9", head)
        lab.do(sys.executable, "-c", SEND, "192.0.2.1", "198.51.100.9", head[::-1])
        seen = watch.stop()
    for source in ("192.0.2.1", "198.18.0.1"):
        assert any(f"{source}." in line and "> 203.0.113.9." in line for line in seen), seen
    assert not any("198.51.100.9" in line for line in seen), seen


def outer(kind: str, inner: Packet) -> Packet:
    """A frame between two addresses that nobody watches, which carries this packet in this way."""
    ether, end, below = Ether(src=MAC, dst=MAC), IP(src="192.0.2.1", dst="192.0.2.9"), Ether(src=MAC, dst=MAC) / inner
    option = bytes.fromhex("0102800100010002")  # as OVN has it
    kinds = {
        "plain": ether / inner,
        "VLAN": ether / Dot1Q(vlan=100) / inner,
        "two VLANs": ether / Dot1AD(vlan=100) / Dot1Q(vlan=101) / inner,
        "VXLAN": ether / end / UDP(dport=4789) / VXLAN(vni=100) / below,
        "VXLAN over IPv6": ether / IPv6(src="fd00::1", dst="fd00::9") / UDP(dport=8472) / VXLAN(vni=100) / below,
        "Geneve": ether / end / UDP(dport=6081) / GENEVE(vni=100) / below,
        "Geneve with an option": ether / end / UDP(dport=6081) / GENEVE(vni=100, optionlen=2) / option / below,
        "GRE": ether / end / GRE() / inner,
        "GRE with Ethernet": ether / end / GRE(proto=0x6558) / below,
        "IP in IP": ether / end / inner,
    }
    return kinds[kind]


ENCAPSULATIONS = (
    *("plain", "VLAN", "two VLANs", "VXLAN", "VXLAN over IPv6", "Geneve", "Geneve with an option"),
    *("GRE", "GRE with Ethernet", "IP in IP"),
)
SIGNED = struct.pack("<II10x", 1, SIGNATURE)
INNER = {
    "an IPv4 address": IP(src="192.0.2.5", dst="198.19.0.1") / ICMP(),
    "an IPv6 address": IPv6(src="2001:2:0:18::1", dst="fd00::5") / UDP(),
    "the signature over IPv4": IP(src="203.0.113.1", dst="203.0.113.5") / UDP() / SIGNED,
    "the signature over IPv6": IPv6(src="fd00::3", dst="fd00::5") / UDP() / SIGNED,
}
OTHERS = {
    "IPv4": IP(src="192.0.2.5", dst="203.0.113.5") / UDP() / bytes(18),
    "IPv6": IPv6(src="fd00::3", dst="fd00::5") / UDP() / bytes(18),
    "a benchmark address in the payload": IP(src="192.0.2.5", dst="203.0.113.5") / UDP() / (b"\xc6\x12\0\1" * 40),
}


@pytest.mark.parametrize("kind", ENCAPSULATIONS)
def test_the_watch_sees_a_test_frame_in_each_encapsulation_and_no_other_frame(lab: NetworkNamespace, kind: str) -> None:
    configure(lab, "address flush dev one", "address flush dev two")
    for name, inner in INNER.items():
        assert set(seen_of(lab, outer(kind, inner))) == {"two"}, name
    for name, inner in OTHERS.items():
        assert seen_of(lab, outer(kind, inner)) == [], name


def seen_of(lab: NetworkNamespace, frame: Packet) -> list[str]:
    """The links where the watch sees this frame, which arrives at `two`."""
    with ExitStack() as undo:
        watch = FrameWatch(lab, undo)
        lab.do(sys.executable, "-c", PLANT, "one", bytes(frame).hex())
        return [line.split()[1] for line in watch.stop() if " In " in line or " P " in line]


def test_a_watch_that_ended_too_early_is_no_proof(lab: NetworkNamespace) -> None:
    with ExitStack() as undo:
        watch = FrameWatch(lab, undo)
        (process,) = LocalHost().ask("ip", "netns", "pids", lab.namespace).stdout.split()
        ended = os.pidfd_open(int(process))
        undo.callback(os.close, ended)
        os.kill(int(process), signal.SIGKILL)
        assert select.select([ended], [], [], 10) == ([ended], [], [])
        with pytest.raises(PodperfError, match="to the end"):
            watch.stop()


def test_the_watch_sees_frames_of_further_networks(lab: NetworkNamespace) -> None:
    with ExitStack() as undo:
        watch = FrameWatch(lab, undo, networks=["10.199.0.0/24"])
        for source in ("10.199.0.1", "10.200.0.1"):
            frame = Ether(src=MAC, dst=MAC) / IP(src=source, dst="203.0.113.5") / UDP()
            lab.do(sys.executable, "-c", PLANT, "one", bytes(frame).hex())
        assert {line.split()[4].rpartition(".")[0] for line in watch.stop()} == {"10.199.0.1"}


@pytest.mark.parametrize(("ports", "expected"), [([], {"one", "two"}), (["one"], {"two"}), (["one", "two"], set())])
def test_the_watch_leaves_out_ports_of_the_testbed(lab: NetworkNamespace, ports: list[str], expected: set[str]) -> None:
    """tcpdump also sees frames that the packet-ring engine sends. A lab's ports share a namespace with other ports."""
    configure(lab, "address add 192.0.2.1/24 dev one", "route add 198.18.0.0/16 dev one")
    configure(lab, "neigh replace 198.18.0.3 lladdr 02:00:00:00:00:03 dev one nud permanent")
    with ExitStack() as undo:
        watch = FrameWatch(lab, undo, ports=ports)
        lab.do(sys.executable, "-c", SEND, "192.0.2.1", "198.18.0.3")
        seen = watch.stop()
    assert {line.split()[1] for line in seen} == expected, seen
