"""A topology names existing interfaces as tester ports. podperf measures the black box between them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from namespaces import add_namespace, remove_namespace
from podperf.hosts.linux import add_veth, ip, ip_json, sysctl
from podperf.hosts.local import LocalHost
from podperf.hosts.network_namespace import NetworkNamespace
from podperf.kernel.receive_threads import dedicate_receive_processing
from podperf.model import Chain, FrameSize, TrafficProfile, Trial
from podperf.testbed import cabled
from podperf.testbed.frame_watch import FrameWatch
from podperf.testbed.testbed import LiveTestbed
from podperf.topology import load_topology
from robot_run import Robot, podperf

TOPOLOGY = """
version: 1
name: box-of-somebody-else
tester:
  ports:
    left: {interface: box-left, namespace: test-ports}
    right: {interface: box-right, namespace: test-ports}
method: {search: quick, mrr: {trials: 5, duration: 0.2}}
"""


@pytest.fixture
def box() -> Iterator[NetworkNamespace]:
    """A namespace in which a bridge joins two interfaces, like a vendor's appliance. podperf does not make it."""
    host = LocalHost()
    with ExitStack() as undo:
        ports, appliance = add_namespace("ports", undo), add_namespace("box", undo)
        ip(appliance, "link", "add", "bridge", "up", "type", "bridge")
        for port in ("left", "right"):
            ends = {"near_namespace": ports.namespace, "far_namespace": appliance.namespace}
            add_veth(host, near=f"box-{port}", far=port, mtu=1500, **ends)
            ip(appliance, "link", "set", port, "master", "bridge")
        yield appliance


def give_it_a_cpu(box: NetworkNamespace) -> None:
    """Give the box a CPU, as an appliance has one. Without it, the tester's CPU would do the box's work."""
    for port in ("left", "right"):
        dedicate_receive_processing(box, port, max(os.sched_getaffinity(0)))


@pytest.mark.slow
def test_the_black_box_is_measured_and_left_as_it_was(box: NetworkNamespace, tmp_path: Path) -> None:
    give_it_a_cpu(box)
    tester = NetworkNamespace("test-ports")
    before = [(each["ifname"], each["flags"], each.get("xdp")) for each in ip_json(tester, "link", "show")]
    robot = Robot(tmp_path, "--include", "external", "--test", "Black box, 64 B", "tests", topology=TOPOLOGY)
    assert robot.wait() == 0, robot.output.read_text()
    (record,) = robot.records()
    assert record["chain"]["data_plane"] == "external"
    assert record["results"]["mrr"]["frames_per_second"] > 1000
    assert record["results"]["pdr"]["frames_per_second"] > 1000
    assert record["tester"]["engine"] == "xdp"
    after = [(each["ifname"], each["flags"], each.get("xdp")) for each in ip_json(tester, "link", "show")]
    assert after == before


def test_a_box_that_takes_no_frames_from_xdp_is_measured_by_packet_ring(
    box: NetworkNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cabled, "PROBE_PATIENCE", 0.5)
    path = tmp_path / "box.yaml"
    path.write_text(TOPOLOGY)
    topology = load_topology(path)
    host = LocalHost()
    testbed = LiveTestbed.on(topology, host, [host])
    with testbed.build(Chain("external", 0), FrameSize.parse(64)) as sut:
        told = sut.tester.describe()
        assert (told["engine"], told["engine_remark"]) == ("packet-ring", "no frame that XDP sent crossed in 0.5 s")
        traffic = TrafficProfile(FrameSize.parse(64), entries=sut.entries)
        sut.probe(traffic)
        assert any(sut.tester.measure(Trial(traffic, 1000, 0.1)).loss_ratio == 0 for _ in range(10))


@pytest.mark.slow
def test_test_frames_do_not_leave_by_a_host_that_forwards(box: NetworkNamespace, tmp_path: Path) -> None:
    """A packet socket sees copies: the frames themselves go on to the kernel that the port is of."""
    give_it_a_cpu(box)
    host, before = NetworkNamespace("test-ports"), filters("test-ports")
    with ExitStack() as undo:
        outside = add_namespace("outside", undo)
        ends = {"near_namespace": host.namespace, "far_namespace": outside.namespace}
        add_veth(LocalHost(), near="uplink", far="beyond", mtu=1500, **ends)
        ip(host, "address", "add", "192.0.2.1/24", "dev", "uplink")
        ip(host, "route", "add", "default", "via", "192.0.2.2")
        sysctl(host, net__ipv4__ip_forward=1, net__ipv4__conf__all__rp_filter=0)
        for port in ("box-left", "box-right"):
            host.do("sysctl", "-q", "-w", f"net.ipv4.conf.{port}.rp_filter=0")
        ip(outside, "address", "add", "192.0.2.2/24", "dev", "beyond")
        watch = FrameWatch(outside, undo)
        topology = TOPOLOGY.replace("tester:", "tester:\n  engine: packet-ring")
        robot = Robot(tmp_path, "--test", "Black box, 64 B", "tests", topology=topology)
        assert robot.wait() == 0, robot.output.read_text()
        assert watch.stop() == []
    (record,) = robot.records()
    assert record["tester"]["engine"] == "packet-ring"
    assert record["results"]["pdr"]["frames_per_second"] > 1000
    assert filters("test-ports") == before


def test_after_a_kill_the_testers_ports_are_as_they_were(box: NetworkNamespace, tmp_path: Path) -> None:
    """The packet ring's sender takes segmentation offload off a veth."""
    before = settings("box-left")
    topology = TOPOLOGY.replace("tester:", "tester:\n  engine: packet-ring").replace("trials: 5", "trials: 1000")
    robot = Robot(tmp_path, "--test", "Black box, 64 B", "tests", topology=topology)
    robot.wait_for_trials(1)
    assert settings("box-left") != before  # seen here, as a tester that is killed between two trials may put it back
    robot.process.kill()
    robot.wait()
    assert filters("test-ports")
    cleaned = podperf("clean").stdout
    assert "the packet filter of box-left" in cleaned and "segmentation offload of box-left" in cleaned
    assert settings("box-left") == before
    assert not filters("test-ports")


@pytest.mark.parametrize("gone", ["namespace", pytest.param("interfaces", marks=pytest.mark.slow)])
def test_ports_that_somebody_has_removed_after_a_kill_need_no_putting_back(
    box: NetworkNamespace, tmp_path: Path, gone: str
) -> None:
    topology = TOPOLOGY.replace("tester:", "tester:\n  engine: packet-ring").replace("trials: 5", "trials: 1000")
    robot = Robot(tmp_path, "--test", "Black box, 64 B", "tests", topology=topology)
    robot.wait_for_trials(1)
    robot.process.kill()
    robot.wait()
    ports = NetworkNamespace("test-ports")
    for interface in ("box-left", "box-right"):
        ip(ports, "link", "del", interface)
    if gone == "namespace":
        remove_namespace(LocalHost(), ports.namespace)
    assert "the packet filter of box-left" in podperf("clean").stdout
    assert podperf("clean").stdout == "nothing was left behind\n"


def settings(port: str) -> list[str]:
    return NetworkNamespace("test-ports").ask("ethtool", "-k", port).stdout.splitlines()


def filters(namespace: str) -> str:
    return NetworkNamespace(namespace).ask("nft", "list", "tables").stdout


def test_other_data_planes_are_skipped_there(box: NetworkNamespace, tmp_path: Path) -> None:
    robot = Robot(tmp_path, "--test", "Linux bridge, 64 B", "tests", topology=TOPOLOGY)
    assert robot.wait() == 0, robot.output.read_text()
    assert "Linux bridge, 64 B: SKIP: the topology names existing ports" in robot.messages()


def test_a_port_in_use_is_refused_before_anything_is_sent(box: NetworkNamespace, tmp_path: Path) -> None:
    ip(NetworkNamespace("test-ports"), "address", "add", "192.0.2.1/24", "dev", "box-left")
    robot = Robot(tmp_path, "--include", "external", "tests", topology=TOPOLOGY)
    assert robot.wait() != 0
    assert "box-left" in robot.messages()
    assert "192.0.2.1" in robot.messages()
    assert not list(robot.results.glob("records/*"))
