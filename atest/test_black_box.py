"""A topology names existing interfaces as tester ports. podperf measures the black box between them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

import pytest

from attempts import first
from chains import local_testbed
from namespaces import ThirdPort, add_namespace, remove_namespace
from podperf.dataplanes.openvswitch import PLAIN, OpenVSwitch, missing
from podperf.errors import PodperfError
from podperf.hosts.linux import add_veth, ip, ip_json, sysctl
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import NetworkNamespace
from podperf.kernel.threads import dedicate_receive_processing
from podperf.model import AddressedTraffic, Chain, FrameSize, Trial, TrialResult
from podperf.run.session import Equipment
from podperf.testbed import existing_ports, system_under_test
from podperf.testbed.frame_watch import FrameWatch
from podperf.testbed.system_under_test import SystemUnderTest, addressed
from podperf.testbed.testbed import Testbed
from podperf.topology import load_topology
from robot_run import Robot, podperf
from traffic import traffic_of

TOPOLOGY = """
version: 1
name: box-of-somebody-else
tester:
  ports:
    left: {interface: box-left, namespace: test-ports}
    right: {interface: box-right, namespace: test-ports}
method: {search: quick, mrr: {trials: 5, duration: 0.2}}
"""
BY_PACKET_RING = TOPOLOGY.replace("tester:", "tester:\n  settings: {engine: packet-ring}")


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


def only_podperf_speaks(box: NetworkNamespace) -> None:
    """The bridge knows no MAC, and the kernels of the ports send nothing from which it would learn one."""
    for port in ("box-left", "box-right"):
        sysctl(NetworkNamespace("test-ports"), **{f"net__ipv6__conf__{port}__disable_ipv6": 1})
    ip(box, "link", "set", "dev", "bridge", "type", "bridge", "fdb_flush")


@pytest.mark.slow
def test_the_black_box_is_measured_and_left_as_it_was(box: NetworkNamespace, tmp_path: Path) -> None:
    give_it_a_cpu(box)
    tester = NetworkNamespace("test-ports")
    before = [(each["ifname"], each["flags"], each.get("xdp")) for each in ip_json(tester, "link", "show")]
    robot = Robot(tmp_path, "--include", "external", "--test", "Black box, 64 B", "tests", topology=TOPOLOGY)
    (record,) = robot.measured()
    assert record["chain"]["data_plane"] == "external"
    assert record["results"]["mrr"]["frames_per_second"] > 1000
    assert record["results"]["pdr"]["frames_per_second"] > 1000
    assert record["tester"]["engine"] == "xdp"
    after = [(each["ifname"], each["flags"], each.get("xdp")) for each in ip_json(tester, "link", "show")]
    assert after == before


def forward_only(box: NetworkNamespace, rate: int, *rules: str) -> None:
    """Let the bridge of the box carry so many frames a second, after these further rules.

    It carries those of 50 ms at once, which have waited while the box had no CPU. The queue before it holds some 250
    frames, so that only at a low rate a short stall of the machine costs none.
    """
    dropped = "".join(f"add rule bridge limiter forward {rule}; " for rule in rules)
    box.do(
        "nft",
        "add table bridge limiter; "
        "add chain bridge limiter forward { type filter hook forward priority 0; }; "
        f"flush chain bridge limiter forward; {dropped}"
        f"add rule bridge limiter forward limit rate over {rate}/second burst {rate // 20} packets drop",
    )


@pytest.mark.slow
def test_a_box_that_always_loses_frames_has_no_ndr(box: NetworkNamespace, tmp_path: Path) -> None:
    give_it_a_cpu(box)
    forward_only(box, 10_000, "numgen inc mod 500 0 drop")  # 0.2 % of any number of frames
    floor = "thresholds: [{metric: ndr, unit: Mpps, minimum: 0.0001}, {metric: pdr, unit: Mpps, minimum: 0.001}]\n"
    topology = TOPOLOGY.replace("search: quick,", "search: quick, loss_ratio: 0.004,") + floor
    robot = Robot(tmp_path, "--include", "external", "--test", "Black box, 64 B", "tests", topology=topology)
    (record,) = robot.measured()
    assert record["results"]["goal_rate"]["frames_per_second"] > 1000
    assert 0.001 < record["methods"]["ndrpdr"]["constant_loss"] < 0.004
    assert record["results"]["ndr"]["doubt"].startswith("frames are lost at every load (0.")
    judged = {outcome["metric"]: outcome["status"] for outcome in record["verdict"]["outcomes"]}
    assert judged["ndr"] == "not judged"
    # A machine that becomes faster or slower meanwhile is a doubt of its own.
    doubts = [record["results"][goal].get("doubt", "") for goal in ("goal_rate", "pdr")]
    assert all(doubt.startswith("drifted: ") for doubt in doubts if doubt), doubts
    cut_short = {"inconclusive"} if record["results"]["pdr"].get("unfinished") else set()
    assert judged["pdr"] in ({"not judged"} if doubts[1] else {"passed", *cut_short})
    assert "frames are lost at every load (0." in robot.said() and "constant loss" in robot.said()


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [(4_000, 16_000), (16_000, 4_000)])
def test_a_box_that_changes_during_the_search_never_has_two_speeds(
    box: NetworkNamespace, tmp_path: Path, before: int, after: int
) -> None:
    give_it_a_cpu(box)
    forward_only(box, before)
    topology = TOPOLOGY.replace("trials: 5", "trials: 1")
    robot = Robot(tmp_path, "--include", "external", "--test", "Black box, 64 B", "tests", topology=topology)
    robot.wait_for_trials(7)  # the first ones of the search, which can end after 18
    forward_only(box, after)
    (record,) = robot.measured()
    found = {name: record["results"][name] for name in ("ndr", "pdr")}
    middle = (before * after) ** 0.5
    right = all((each["frames_per_second"] > middle) == (after > middle) for each in found.values())
    assert right or any(each["unfinished"] for each in found.values()) or record["methods"]["ndrpdr"]["drifted"], found


@pytest.mark.parametrize("floods", [False, True])
def test_test_frames_beside_a_black_box_fail_the_isolation_test(
    box: NetworkNamespace, tmp_path: Path, floods: bool
) -> None:
    """An interface of the tester's machine is in the same VLAN: its management port, for example."""
    if shutil.which("tcpdump") is None:
        pytest.skip("tcpdump is not installed (Debian package tcpdump)")
    give_it_a_cpu(box)
    ends = {"near_namespace": "test-ports", "far_namespace": box.namespace}
    add_veth(LocalHost(), near="management", far="third", mtu=1500, **ends)
    for port in ("left", "right", "third"):
        ip(box, "link", "set", port, "master", "bridge")
        if floods:
            ip(box, "link", "set", port, "type", "bridge_slave", "learning", "off")
    only_podperf_speaks(box)
    topology = TOPOLOGY + "traffic: {directions: left-to-right}\n"
    robot = Robot(tmp_path, "--test", "No Test Frame Leaves A Black Box", "tests", topology=topology)
    assert robot.wait() == floods, robot.said()
    said = robot.messages()
    assert ("FAIL: test frames left the testbed: " in said and "management" in said) is floods, said


@pytest.mark.parametrize(
    "headers",
    [
        "family: ipv4, vlans: {left: [100], right: [100]}",
        "family: ipv6, vlans: {left: [100], right: [100]}",
        "family: ipv6, vlans: {left: [100, 7], right: [100, 7]}",
    ],
)
def test_a_switch_learns_both_macs_in_the_vlan_of_the_test_frames(
    box: NetworkNamespace, tmp_path: Path, headers: str
) -> None:
    """It floods no frame of one direction to its third port, which carries the VLAN, too."""
    if reason := missing(LocalHost(), PLAIN):
        pytest.skip(reason)
    give_it_a_cpu(box)
    third = ThirdPort(box, "bridge")
    with ExitStack() as undo:
        switch = OpenVSwitch(box, str(tmp_path / "ovs"), undo)
        switch.vsctl("add-br", "switch", "--", "set", "bridge", "switch", "datapath_type=netdev")
        for port in ("left", "right", "third"):
            ip(box, "link", "set", port, "nomaster")
            switch.vsctl("add-port", "switch", port, "trunks=100")
        only_podperf_speaks(box)
        sut, traffic = undo.enter_context(measured(tmp_path / "box.yaml", TOPOLOGY + f"traffic: {{{headers}}}\n"))
        sut.probe(traffic)
        sut.tester.measure(Trial(traffic, 1000, 1.0))  # Open vSwitch goes on flooding a flow for some 0.5 s
        first(lambda found: found[0] > 300 and found[1] <= 10, lambda: flooded(sut, traffic, third))
        learned = {tuple(line.split()[1:3]) for line in switch.appctl("fdb/show", "switch").splitlines()}
        assert {("100", port.mac) for port in sut.tester.facts.ports.values()} <= learned


def test_the_bridges_of_a_chain_flood_no_frame_of_one_direction() -> None:
    """A pod's MAC is learnt as well, because the pod forwards the learning frames of the other direction."""
    with local_testbed().build(Chain("linux-bridge", 1), FrameSize.parse(64)) as sut:
        (site,) = (part.site for part in sut.parts if part.site is not None)
        host = site.worker.host
        third = ThirdPort(host, "br0")
        traffic = traffic_of(64, entries=sut.entries)

        def cross() -> tuple[int, int]:
            ip(host, "link", "set", "dev", "br0", "type", "bridge", "fdb_flush")
            return flooded(sut, traffic, third)

        first(lambda found: found[0] > 400 and found[1] <= 10, cross)


def flooded(sut: SystemUnderTest, traffic: AddressedTraffic, third: ThirdPort) -> tuple[int, int]:
    """The frames of a trial of 500 that arrived, and those at the third port of a switch."""
    before = third.frames
    return sut.tester.measure(Trial(traffic, 1000, 0.5)).received, third.frames - before


def test_a_box_that_takes_no_frames_from_xdp_is_measured_by_packet_ring(
    box: NetworkNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(existing_ports, "PROBE_PATIENCE", 0.5)
    path = tmp_path / "box.yaml"
    path.write_text(TOPOLOGY)
    topology = load_topology(path)
    host = LocalHost()
    testbed = Testbed.on(topology, host, [host])
    with testbed.build(Chain("external", 0), FrameSize.parse(64)) as sut:
        told = sut.tester.describe()
        assert (told["engine"], told["engine_remark"]) == ("packet-ring", "no frame that XDP sent crossed in 0.5 s")
        traffic = traffic_of(64, entries=sut.entries)
        sut.probe(traffic)
        assert any(sut.tester.measure(Trial(traffic, 1000, 0.1)).loss_ratio == 0 for _ in range(10))


@pytest.mark.parametrize("named", [True, False])
def test_a_program_that_is_the_black_box_is_no_foreign_work_if_it_is_named(
    box: NetworkNamespace, tmp_path: Path, named: bool
) -> None:
    """A busy loop stands for a program that polls."""
    program = shutil.copy(str(shutil.which("sh")), tmp_path / "my-appliance")
    path, host = tmp_path / "box.yaml", LocalHost()
    path.write_text(TOPOLOGY + ("black_box: {programs: [my-appliance]}\n" if named else ""))
    with ExitStack() as undo:
        watched = Equipment.on(load_topology(path), [host, host], host, undo).quietness
        assert watched is not None
        watched.own = set()  # the program is a child of this process here
        loop = subprocess.Popen([program, "-c", "while :; do :; done"])
        undo.callback(loop.wait)
        undo.callback(loop.kill)
        os.sched_setaffinity(loop.pid, watched.cpus)
        watched.start()
        taken = ~loop.pid << 3 | 2  # the clock of its CPU time, clock_getcpuclockid(3)
        while loop.poll() is None and time.clock_gettime(taken) < 0.5:
            time.sleep(0.01)
        noise = watched.stop()
    assert named is not any(f"({loop.pid})" in each for each in noise.foreign)


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
        robot = Robot(tmp_path, "--test", "Black box, 64 B", "tests", topology=BY_PACKET_RING)
        assert robot.wait() == 0, robot.output.read_text()
        assert watch.stop() == []
    (record,) = robot.records()
    assert record["tester"]["engine"] == "packet-ring"
    assert record["results"]["pdr"]["frames_per_second"] > 1000
    assert filters("test-ports") == before


@pytest.mark.parametrize("gone", ["nothing", "namespace", pytest.param("interfaces", marks=pytest.mark.slow)])
def test_after_a_kill_the_testers_ports_are_as_they_were_unless_somebody_has_removed_them(
    box: NetworkNamespace, tmp_path: Path, gone: str
) -> None:
    """The packet ring's sender takes segmentation offload off a veth."""
    before, ports = settings("box-left"), NetworkNamespace("test-ports")
    topology = BY_PACKET_RING.replace("trials: 5", "trials: 1000")
    robot = Robot(tmp_path, "--test", "Black box, 64 B", "tests", topology=topology)
    robot.wait_for_trials(1)
    assert settings("box-left") != before  # seen here, as a tester that is killed between two trials may put it back
    robot.kill()
    assert filters(ports.namespace)
    if gone != "nothing":
        for interface in ("box-left", "box-right"):
            ip(ports, "link", "del", interface)
    if gone == "namespace":
        remove_namespace(LocalHost(), ports.namespace)
    cleaned = podperf("clean").stdout
    assert "the packet filter of box-left" in cleaned
    if gone == "nothing":
        assert "segmentation offload of box-left" in cleaned
        assert settings("box-left") == before
        assert not filters(ports.namespace)
    assert podperf("clean").stdout == "nothing was left behind\n"


def settings(port: str) -> list[str]:
    return NetworkNamespace("test-ports").ask("ethtool", "-k", port).stdout.splitlines()


def filters(namespace: str) -> str:
    return NetworkNamespace(namespace).ask("nft", "list", "tables").stdout


def make_it_a_router(box: NetworkNamespace, mtu: int) -> str:
    """Let the box route between its ports, with this MTU on the right. Returns the topology with its MAC on the left.

    Its next hops have addresses outside of the test networks, and static neighbour entries.
    """
    tester = NetworkNamespace("test-ports")
    macs = {port: ip_json(tester, "link", "show", f"box-{port}")[0]["address"] for port in ("left", "right")}
    ip(box, "link", "del", "bridge")
    sysctl(box, net__ipv4__ip_forward=1, net__ipv4__conf__all__rp_filter=0, net__ipv4__conf__left__rp_filter=0)
    for number, (port, network) in enumerate((("left", "198.18.0.0/16"), ("right", "198.19.0.0/16"))):
        next_hop = f"10.9.{number}.2"
        ip(box, "address", "add", f"10.9.{number}.1/24", "dev", port)
        ip(box, "neighbour", "replace", next_hop, "lladdr", macs[port], "dev", port, "nud", "permanent")
        ip(box, "route", "add", network, "via", next_hop)
    ip(box, "link", "set", "right", "mtu", str(mtu))
    entry = ip_json(box, "link", "show", "left")[0]["address"]
    return TOPOLOGY.replace("{interface: box-left,", f"{{interface: box-left, destination_mac: '{entry}',")


def test_a_router_that_fragments_frames_fails(box: NetworkNamespace, tmp_path: Path) -> None:
    """It allows to fragment test frames, which say that nobody may. IMIX has a frame of 1518 B in 12."""
    topology = make_it_a_router(box, 1450)
    box.do(
        "nft",
        "add table netdev box; add chain netdev box arriving { type filter hook ingress device left priority 0; }",
    )
    box.do("nft", "add rule netdev box arriving ip frag-off set 0")
    robot = Robot(tmp_path, "--test", "Black box, IMIX", "tests", topology=topology, short_search=True)
    assert robot.wait() != 0
    (record,) = robot.records()
    assert (record["outcome"], record["verdict"]["status"]) == ("failed", "failed")
    corrupted, arrived = map(
        int, re.findall(r"(\d+) of (\d+) frames arrived corrupted", without_spaces(record["reason"]))[0]
    )
    assert corrupted / arrived == pytest.approx(1 / 12, rel=0.1)
    assert robot.messages().count("frames arrived corrupted") == 1
    reported = without_spaces(podperf("report", str(robot.results)).stdout)
    assert re.search(r"\d+ of \d+ frames arrived corrupted", reported)
    assert re.search(r"stray frames: \d+, of another sender", reported)
    assert "frames arrived corrupted" in (robot.results / "conformance.html").read_text()


@pytest.mark.parametrize("row", ["Black box, 1518 B", "Black box, IMIX"])
def test_a_frame_that_is_larger_than_an_mtu_on_the_way_is_named(
    box: NetworkNamespace, tmp_path: Path, row: str
) -> None:
    """The router drops it, and its small frames cross."""
    topology = make_it_a_router(box, 1450)
    robot = Robot(tmp_path, "--test", row, "tests", topology=topology, short_search=True)
    assert robot.wait() != 0
    (record,) = robot.records()
    assert "no test frame crossed external" in record["reason"]
    assert "frames of 64B cross, and those of 1518B do not; an MTU on the way" in record["reason"]
    assert "below the 1500 bytes" in without_spaces(podperf("report", str(robot.results)).stdout)


NETWORKS = {"ipv4": ("198.18.0.1/16", "198.19.0.1/16"), "ipv6": ("2001:2:0:18::1/64", "2001:2:0:19::1/64")}


def router_by_the_book(box: NetworkNamespace, addresses: Sequence[str]) -> None:
    """Let the box route between its ports, each with an address in its network. It has no static neighbours."""
    ip(box, "link", "del", "bridge")
    on = {f"net__ipv6__conf__{each}__disable_ipv6": 0 for each in ("all", "left", "right")}
    sysctl(box, net__ipv4__ip_forward=1, net__ipv6__conf__all__forwarding=1, **on)
    for port, address in zip(("left", "right"), addresses, strict=True):
        ip(box, "address", "add", address, "dev", port, *(["nodad"] if ":" in address else []))
    while ip_json(box, "-6", "address", "show", "tentative"):  # a router asks nobody before it has an address
        time.sleep(0.1)


@contextmanager
def measured(path: Path, topology: str, frame: int = 128) -> Iterator[tuple[SystemUnderTest, AddressedTraffic]]:
    """The black box of this topology, with the traffic of the topology."""
    path.write_text(topology)
    loaded, host = load_topology(path), LocalHost()
    with Testbed.on(loaded, host, [host]).build(Chain("external", 0), FrameSize.parse(frame)) as sut:
        yield sut, addressed(loaded.traffic.profile(FrameSize.parse(frame)), sut)


@pytest.mark.parametrize("engine", ["xdp", "packet-ring"])
@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_a_router_without_static_neighbours_is_measured(
    box: NetworkNamespace, tmp_path: Path, family: str, engine: str
) -> None:
    """The tester answers when the router asks, also in mid-trial, and learns the router's MACs by asking."""
    give_it_a_cpu(box)
    router_by_the_book(box, NETWORKS[family])
    topology = TOPOLOGY.replace("tester:", f"tester:\n  settings: {{engine: {engine}}}")
    for port, address in zip(("left", "right"), NETWORKS[family], strict=True):
        gateway = f"{{interface: box-{port}, gateway: '{address.split('/')[0]}',"
        topology = topology.replace(f"{{interface: box-{port},", gateway)
    topology += f"traffic: {{directions: bidirectional, flows: 20, family: {family}}}\n"
    with measured(tmp_path / "box.yaml", topology) as (sut, traffic):
        sut.probe(traffic)
        macs = {(each["dev"], each["lladdr"]) for each in neighbours(box, family)}
        assert macs == {(side, port.mac) for side, port in sut.tester.facts.ports.items()}

        def measure() -> tuple[TrialResult, int]:
            with Forgetting(box) as forget:
                return sut.tester.measure(Trial(traffic, 2000, 1.0)), forget.times

        def good(result: TrialResult, times: int) -> bool:
            """Of some hundred questions, few are strays. A router also tells about frames that it dropped."""
            return result.invalid is None and times > 2 and result.stray < 50 and result.loss_ratio < 0.05

        forgotten = 0
        while forgotten <= 5:  # in one trial, or in more of them where `ip` is slow
            forgotten += first(lambda found: good(*found), measure)[1]


def neighbours(box: NetworkNamespace, family: str) -> list[dict[str, str]]:
    """The neighbours of the box with addresses of the test networks."""
    there = ip_json(box, "-6" if family == "ipv6" else "-4", "neighbour", "show")
    return [each for each in there if each["dst"].startswith(("198.1", "2001:2:")) and "lladdr" in each]


class Forgetting(threading.Thread):
    """Takes all neighbours from a box again and again, as a router forgets them with time."""

    def __init__(self, box: NetworkNamespace) -> None:
        super().__init__()
        self.times = 0
        self._box, self._ended = box, threading.Event()

    def run(self) -> None:
        while not self._ended.wait(0.1):
            # The command fails if a neighbour is back before it has looked again, ten times.
            self._box.ask("ip", "neighbour", "flush", "all", check=False)
            self.times += 1

    def __enter__(self) -> Forgetting:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()


def test_the_tester_answers_only_for_its_own_addresses_and_names_the_others(
    box: NetworkNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The router sends test frames to a next hop that is nobody's. With this `own_address` they arrive."""
    monkeypatch.setattr(system_under_test, "PROBE_PATIENCE", 3.0)
    give_it_a_cpu(box)
    router_by_the_book(box, ["198.18.0.1/16", "10.9.1.1/24"])
    ip(box, "route", "add", "198.19.0.0/16", "via", "10.9.1.2")
    topology = TOPOLOGY.replace("{interface: box-left,", "{interface: box-left, gateway: 198.18.0.1,")
    with (
        measured(tmp_path / "nobody.yaml", topology) as (sut, traffic),
        pytest.raises(PodperfError, match=r"10\.9\.1\.1 asks at the right port for 10\.9\.1\.2, which is no address"),
    ):
        sut.probe(traffic)
    topology = topology.replace("{interface: box-right,", "{interface: box-right, own_address: 10.9.1.2,")
    with measured(tmp_path / "own.yaml", topology) as (sut, traffic):
        sut.probe(traffic)
    topology = topology.replace("gateway: 198.18.0.1", "gateway: 198.18.0.9")
    missing = "the gateway of the left port does not answer: .*nobody answers for the address 198.18.0.9"
    with pytest.raises(PodperfError, match=missing), measured(tmp_path / "missing.yaml", topology):
        pass


def without_spaces(text: str) -> str:
    """The text without the spaces between thousands, and without line breaks."""
    return re.sub(r"(?<=\d) (?=\d{3}\b)", "", " ".join(text.split()))


def test_the_slower_direction_of_a_box_counts_and_other_data_planes_are_skipped(
    box: NetworkNamespace, tmp_path: Path
) -> None:
    """The box drops 19 of 20 frames on their way to the left."""
    box.do("nft", "add table bridge slow; add chain bridge slow lossy { type filter hook forward priority 0; }")
    box.do("nft", "add rule bridge slow lossy iifname right numgen inc mod 20 != 0 drop")
    topology = TOPOLOGY.replace("method:", "traffic: {directions: bidirectional}\nmethod:")
    rows = ("--test", "Black box, 64 B", "--test", "Linux bridge, 64 B")
    robot = Robot(tmp_path, *rows, "tests", topology=topology)
    assert robot.wait() == 0, robot.said()
    assert "Linux bridge, 64 B: SKIP: the topology names existing ports" in robot.messages()
    (record,) = (each for each in robot.records() if each["outcome"] == "passed")
    right, left = (median(rates) for rates in record["methods"]["mrr"]["rates_by_direction"].values())
    assert left < right / 5
    assert record["results"]["mrr"]["frames_per_second"] <= left * 1.5
    assert record["results"]["mrr"]["aggregate_frames_per_second"] > right
    assert record["results"]["pdr"]["upper_bound"]  # one direction loses frames at every load
    said = " ".join(podperf("report", str(robot.results)).stdout.split())
    assert "MRR by direction, kpps: left-to-right" in said and "PDR is that of right-to-left" in said
