"""podperf refuses interfaces in use as tester ports. These tests use their own namespaces. One test runs section 5."""

import os
import shutil
import struct
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from namespaces import add_namespace
from podperf.hosts.namespaces import NetworkNamespace
from podperf.testbed.isolation import (
    SIGNATURE,
    FrameWatch,
    SshSession,
    addresses_in_test_network,
    objections,
    read_network,
)
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


@pytest.mark.parametrize("inner", ["4", "6"])
def test_the_watch_sees_an_encapsulated_test_frame(lab: NetworkNamespace, inner: str) -> None:
    """VXLAN: the payload of the outer UDP has eight bytes of its own, and then the whole test frame."""
    configure(lab, "address add 192.0.2.1/24 dev one", "route add 203.0.113.0/24 dev one")
    configure(lab, "neigh replace 203.0.113.9 lladdr 02:00:00:00:00:02 dev one nud permanent")
    ip_and_udp = {"4": 20 + 8, "6": 40 + 8}[inner]
    head = bytes(8 + 14 + ip_and_udp) + struct.pack("<II10x", 1, SIGNATURE)
    with ExitStack() as undo:
        watch = FrameWatch(lab, undo)
        lab.do(sys.executable, "-c", SEND, "192.0.2.1", "203.0.113.9", head.hex())
        lab.do(sys.executable, "-c", SEND, "192.0.2.1", "203.0.113.9", bytes(len(head)).hex())
        seen = [line for line in watch.stop() if " one " in line]
    assert len(seen) == 5, seen


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
