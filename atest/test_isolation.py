"""podperf refuses interfaces in use as tester ports. These tests use their own namespaces. One test runs section 5."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from namespaces import add_namespace
from podperf.errors import PodperfError
from podperf.hosts.network_namespace import NetworkNamespace
from podperf.testbed.frame_watch import FrameWatch, addresses_in_test_network
from podperf.testbed.isolation import SshSession, objections, read_network, refuse_shared_ports
from podperf.topology import SCHEMA_PATH, PortSettings, load_topology
from robot_run import Robot

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes network namespaces")

SEND = """
import socket, sys, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    sender.bind((sys.argv[1], 0))
    for _ in range(5):
        sender.sendto(b"", (sys.argv[2], 9))
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


def test_the_way_to_the_ssh_peer_is_refused(lab: NetworkNamespace) -> None:
    configure(lab, "route add 192.0.2.0/24 dev one scope link")
    assert "one carries the SSH session from 192.0.2.9" in refusal(lab, "one")
    assert not refusal(lab, "two")


def test_members_of_a_bridge_and_parents_of_a_macvlan_share_their_fate(lab: NetworkNamespace) -> None:
    configure(lab, "link add name br type bridge", "link set one master br", "link add link two name m type macvlan")
    assert "one is a port of br, which brings it the frames of others" in refusal(lab, "one")
    assert not refusal(lab, "m")
    configure(lab, "address add 10.0.0.1/24 dev br", "address add 10.1.0.1/24 dev m")
    assert "one shares its wire with br, which carries the address 10.0.0.1/24" in refusal(lab, "one")
    assert "two shares its wire with m, which carries the address 10.1.0.1/24" in refusal(lab, "two")


def test_a_topology_is_refused_with_all_reasons_and_a_wrong_namespace_is_named(lab: NetworkNamespace) -> None:
    topology = load_topology(SCHEMA_PATH.parent / "local.yaml")
    configure(lab, "address add 10.0.0.1/24 dev one")
    ports = PortSettings("one", lab.namespace), PortSettings("two", "h-isolation-nowhere")
    topology = replace(topology, tester=replace(topology.tester, left=ports[0], right=ports[1]))
    with pytest.raises(PodperfError) as caught:
        refuse_shared_ports(topology)
    left, right = str(caught.value).splitlines()
    assert f"tester.ports.left in namespace {lab.namespace}: one carries the address" in left
    assert "tester.ports.right in namespace h-isolation-nowhere: there is no such namespace; found: " in right
    assert lab.namespace in right


@pytest.mark.slow
@pytest.mark.usefixtures("machine_as_before")
def test_the_suite_of_section_5_shows_that_the_test_network_is_isolated(tmp_path: Path) -> None:
    if shutil.which("tcpdump") is None:
        pytest.skip("tcpdump is not installed (Debian package tcpdump)")
    robot = Robot(tmp_path, "--include", "sec-5", "tests")
    assert robot.wait() == 0, robot.output.read_text()
    outcomes = [line.split(": ")[1] for line in robot.messages().splitlines()]
    assert outcomes == ["PASS"] * 5, robot.messages()


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
