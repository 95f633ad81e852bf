"""Every data plane of this machine forwards in both directions, and describes itself."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import ClassVar

import pytest

from chains import forward, local_testbed, need
from podperf.addressing import IPV6_ADDRESSES
from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.ovs_kernel import OvsKernel
from podperf.errors import PodperfError, Unavailable
from podperf.figures import short
from podperf.frames import S_TAG, AddressFamily, Headers, Vlan
from podperf.hosts.base import Host
from podperf.hosts.local import LocalHost
from podperf.model import Chain, FrameSize, TrafficProfile, Trial
from podperf.testbed import system_under_test
from podperf.testbed.system_under_test import addressed
from podperf.testbed.testbed import Testbed
from robot_run import SHORT, Robot, mrr_suite, podperf

KERNEL = ["linux-bridge", "ptp", "macvlan", "routed", "docker", "service", "routed-policy"]
NOT_IN_EVERY_KERNEL = ["ipvlan", "ipip", "ovs-kernel"]
WITH_SETTINGS = ("wire", "external", "bpf-object")  # no pods, or a file of the user
FRAME = FrameSize.parse(64)
WITH_TAGS = ["ovs-netdev", "ovs-afxdp", "ovs-dpdk", "memif", "af-xdp", "linux-bridge", "routed", "tc-redirect"]
IPV6 = Headers(AddressFamily.IPV6)
TESTER = IPV6_ADDRESSES.service_from_left(2)
pytestmark = pytest.mark.usefixtures("nothing_left", "no_frame_leaves")


@pytest.fixture
def testbed() -> Testbed:
    return local_testbed()


@pytest.mark.parametrize("pods", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", KERNEL)
def test_kernel_data_plane_forwards_both_ways(name: str, pods: int) -> None:
    description = forward(Chain(name, pods))
    assert len(description["pods"]) == pods
    assert description["kernel"]
    assert description["runtime"]["cni_plugins"]


@pytest.mark.parametrize("name", [name for name in DATA_PLANES if name not in WITH_SETTINGS])
def test_every_data_plane_carries_ipv6(name: str) -> None:
    need(name)
    try:
        description = forward(Chain(name, DATA_PLANES[name].least_pods or 1), ("64", "1518"), headers=IPV6)
    except Unavailable as reason:
        pytest.skip(str(reason))
    if name in KERNEL:
        pod = description["pods"]["pod1"]
        assert pod["ip_forward"]
        assert {route["dst"] for route in pod["routes"]} & {IPV6_ADDRESSES.right, TESTER}


@pytest.mark.parametrize("name", ["linux-bridge", "macvlan", "ovs-dpdk"])
def test_chains_beside_each_other_carry_ipv6(name: str) -> None:
    need(name)
    forward(Chain(name, 1, chains=2), headers=IPV6)
    if DATA_PLANES[name].common_pod:
        forward(Chain(name, 2, chains=2, common_pod=True), headers=IPV6)


@pytest.mark.parametrize("tags", [1, 2])
@pytest.mark.parametrize("name", WITH_TAGS)
def test_frames_with_other_tags_on_each_side_cross(name: str, tags: int) -> None:
    need(name)
    left, right = ((Vlan(vlan, number=S_TAG), Vlan(vlan + 1))[-tags:] for vlan in (100, 200))
    try:
        forward(Chain(name, DATA_PLANES[name].least_pods), ("64", "1518"), headers=Headers(left=left, right=right))
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("name", [*KERNEL, *NOT_IN_EVERY_KERNEL])
def test_a_throttled_system_loses_frames_and_does_not_slow_the_tester(testbed: Testbed, name: str) -> None:
    """The SUT's work runs on the SUT's CPU. If another process takes this CPU, the load stays the same and frames are
    lost."""
    if reason := DATA_PLANES[name].unavailable(LocalHost()):
        pytest.skip(reason)
    load = 20_000
    with testbed.build(Chain(name, 1), FRAME) as sut, busy(min(testbed.workers[0].placement.sut)):
        trial = Trial(addressed(TrafficProfile(FRAME), sut), load, duration=0.5)
        results = (sut.tester.measure(trial) for _ in range(20))  # a busy machine spoils some of the trials
        result = next(each for each in results if each.invalid is None)
    assert result.achieved_load == pytest.approx(load, rel=0.01)
    assert result.loss_ratio > 0.2


@contextmanager
def busy(cpu: int) -> Iterator[None]:
    """A process that takes nearly all time of this CPU from ordinary processes."""
    hog = LocalHost().spawn("chrt", "--fifo", "1", "sh", "-c", "echo at work; while :; do :; done", cpus=[cpu])
    try:
        assert hog.receive(10) == "at work"
        yield
    finally:
        hog.stop()


@pytest.mark.parametrize("name", ["wire", *KERNEL])
def test_every_frame_size_crosses(name: str) -> None:
    forward(Chain(name, 0 if name == "wire" else 1), ("64", "1518", "3000", "IMIX"))


def test_description_is_read_back_from_the_kernel() -> None:
    links = {link["name"]: link for link in forward(Chain("linux-bridge", 1))["worker"]["links"]}
    assert links["w-left"]["master"] == "br0"
    assert links["br0"]["kind"] == "bridge"
    macvlan = forward(Chain("macvlan", 1))["pods"]["pod1"]["links"]
    assert {"macvlan"} == {each["kind"] for each in macvlan if each["name"].startswith("net")}
    nat = forward(Chain("docker", 1))["iptables_nat"]
    assert any("MASQUERADE" in line for line in nat)
    assert any("--to-destination" in line for line in nat)


@pytest.mark.parametrize("name", NOT_IN_EVERY_KERNEL)
def test_what_the_kernel_lacks_is_unavailable_with_the_reason(name: str) -> None:
    reason = DATA_PLANES[name].unavailable(LocalHost())
    if reason is None:
        forward(Chain(name, 1))
        return
    with pytest.raises(Unavailable) as caught:
        forward(Chain(name, 1))
    assert str(caught.value) == reason


def test_the_open_vswitch_driver_with_the_datapath_that_every_kernel_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the kernel's module openvswitch, every part of `ovs-kernel` except the datapath can be tested."""
    if shutil.which("ovs-vswitchd") is None:
        pytest.skip("Open vSwitch is not installed (Debian package openvswitch-switch)")

    class OvsUserSpace(OvsKernel):
        datapath: ClassVar[str] = "netdev"

        @classmethod
        def unavailable(cls, host: Host) -> str | None:
            return None

    monkeypatch.setitem(DATA_PLANES, "ovs-kernel", OvsUserSpace)
    description = forward(Chain("ovs-kernel", 2))
    assert description["datapath_type"] == "netdev"
    assert len(description["flows"]) == 6


def test_a_chain_that_does_not_forward_is_found_out(testbed: Testbed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_under_test, "PROBE_PATIENCE", 0.3)
    with testbed.build(Chain("linux-bridge", 1), FRAME) as sut:
        LocalHost().do("ip", "-n", "podperf-pod1", "link", "set", "net2", "down")
        with pytest.raises(PodperfError, match="no test frame crossed linux-bridge"):
            sut.probe(addressed(TrafficProfile(FRAME), sut))


def test_a_failed_set_up_leaves_nothing(testbed: Testbed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podperf.pods.cni.CniPlugins.add", _refuse)
    with pytest.raises(PodperfError, match="on purpose"), testbed.build(Chain("macvlan", 2), FRAME):
        pass


def _refuse(*_: object) -> None:
    raise PodperfError("on purpose")


def test_unknown_data_plane_names_the_known_ones(testbed: Testbed) -> None:
    with pytest.raises(PodperfError, match=r"no data plane 'brigde'; known: wire, external, linux-bridge"):
        testbed.demand(Chain("brigde", 1))
    with pytest.raises(PodperfError, match="needs 1 or more pods"):
        testbed.demand(Chain("linux-bridge", 0))
    with pytest.raises(Unavailable, match="no existing ports"):
        testbed.demand(Chain("external", 0))


def test_a_table_of_connections_that_is_full_is_named_below_the_row(tmp_path: Path) -> None:
    """The limit holds for each network of this machine, and no other one has as many connections."""
    limit = "net.netfilter.nf_conntrack_max"
    need("docker")
    before = LocalHost().ask("sysctl", "-n", limit).stdout.strip()
    topology = SHORT % (2, 0.3) + "traffic: {flows: 20000}\n"
    with ExitStack() as undo:
        undo.callback(LocalHost().do, "sysctl", "-q", "-w", f"{limit}={before}")
        LocalHost().do("sysctl", "-q", "-w", f"{limit}=5000")
        suite = mrr_suite(tmp_path, Docker="docker    1    64", Bridge="linux-bridge    1    64")
        robot = Robot(tmp_path, suite, topology=topology)
        assert robot.wait() == 0, robot.said()
    records = {record["chain"]["data_plane"]: record for record in robot.records()}
    assert records["linux-bridge"]["full_tables"] == []
    worker = next(each for each in records["docker"]["full_tables"] if "pod" not in each["place"])
    assert (worker["table"], worker["limit"]) == ("tracked connections", 5000)
    assert worker["evicted"] + worker["dropped"] > 1000
    said = f"the table of tracked connections of {worker['place']} filled to {short(worker['entries'])} of 5 000 ("
    for text in (podperf("report", str(robot.results)).stdout, (robot.results / "conformance.html").read_text()):
        assert said in " ".join(text.split())
