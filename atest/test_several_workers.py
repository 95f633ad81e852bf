"""Chains along two workers, each a separate machine behind SSH. Frames cross both. Afterwards both are as before."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median

import pytest

from attempts import first
from chains import need
from machine import once_as
from namespaces import add_namespace
from podperf.dataplanes import DATA_PLANES
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host
from podperf.hosts.linux import add_veth, ip, ip_json, mac_address
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import NetworkNamespace, namespaces_named
from podperf.model import (
    BOTH_DIRECTIONS,
    Chain,
    Direction,
    DirectionResult,
    FrameSize,
    TrafficProfile,
    Trial,
)
from podperf.observation import State
from podperf.preflight.checks import check
from podperf.testbed.access import lock, machines_of
from podperf.testbed.system_under_test import SystemUnderTest, addressed
from podperf.testbed.testbed import Testbed
from podperf.testers.base import UNPACED
from podperf.topology import Topology, load_topology
from robot_run import ROOT, Robot, mrr_suite
from ssh_machine import SECOND_ADDRESS, SshMachine, ssh_machine
from test_ssh import await_links, left_there, ports

SMALL = FrameSize.parse(64)


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshMachine]:
    """The second machine."""
    with ssh_machine(tmp_path_factory.mktemp("ssh2"), second=True) as machine:
        yield machine


@pytest.fixture
def pair(there: SshMachine, behind: SshMachine) -> Iterator[tuple[SshMachine, SshMachine]]:
    """Both workers in a row: left - ens4, ens5 - ens4, ens5 - right."""
    with ExitStack() as undo:
        lab = add_namespace("lab", undo).namespace
        first, second = there.network.namespace, behind.network.namespace
        for near, near_in, far, far_in in (
            ("left", lab, "ens4", first),
            ("ens5", first, "ens4", second),
            ("right", lab, "ens5", second),
        ):
            add_veth(LocalHost(), near=near, near_namespace=near_in, far=far, far_namespace=far_in, mtu=1500)
            undo.callback(ip, NetworkNamespace(far_in), "link", "del", far)  # a namespace goes in the background
        for machine in (there, behind):
            await_links(machine, "ens4", "ens5")
        yield there, behind


def topology(pair: tuple[SshMachine, SshMachine], folder: Path, ends: tuple[str, str] = ("left", "right")) -> Path:
    """A file with both as workers, and the tester in the namespace between them."""
    workers = [
        {
            "connection": "ssh",
            "ssh": {
                "address": each.address,
                "key": f"{each.folder}/user_key",
                "known_hosts": f"{each.folder}/known_hosts",
            },
            "ports": {"left": {"interface": "ens4"}, "right": {"interface": "ens5"}},
            "cpus": max(os.sched_getaffinity(0)),
        }
        for each in pair
    ]
    left, right = ({"interface": end, "namespace": "test-lab"} for end in ends)
    file = folder / "topology.yaml"
    file.write_text(
        json.dumps(  # which is YAML, too
            {
                "version": 1,
                "name": "two-workers",
                "tester": {"ports": {"left": left, "right": right}},
                "workers": workers,
                "method": {"search": "quick", "mrr": {"trials": 1, "duration": 0.2}},
            }
        )
    )
    return file


@pytest.fixture
def testbed(pair: tuple[SshMachine, SshMachine], tmp_path: Path) -> Iterator[Testbed]:
    """The testbed of both workers."""
    settings = load_topology(topology(pair, tmp_path), DATA_PLANES)
    with ExitStack() as undo:
        tester, *workers = taken(settings, undo)
        yield Testbed.on(settings, tester, workers)


def taken(settings: Topology, undo: ExitStack) -> tuple[Host, ...]:
    """The machines of tester and workers, as a run takes them."""
    machines = machines_of(settings, LocalHost(), undo)
    for machine in machines[1:]:
        lock(machine, undo)
    return machines


@pytest.mark.slow
def test_a_chain_along_two_workers_is_measured_and_both_are_as_before(
    pair: tuple[SshMachine, SshMachine], tmp_path: Path
) -> None:
    before = [ports(each) for each in pair]
    file = topology(pair, tmp_path).read_text()
    robot = Robot(tmp_path, mrr_suite(tmp_path, Bridge="linux-bridge    2    64    workers=2"), topology=file)
    assert robot.wait() == 0, robot.output.read_text()
    (record,) = robot.records()
    assert record["outcome"] == "passed", record["reason"]
    described = {"data_plane": "linux-bridge", "pods": 2, "forwarder": "kernel", "workers": 2}
    assert record["chain"].items() >= described.items()
    assert record["results"]["mrr"]["frames_per_second"] > 1000
    of_first, of_second = {"ens4", "ens5"}, {f"{SECOND_ADDRESS}: {name}" for name in ("ens4", "ens5")}
    assert set(record["interfaces"]) == {*of_first, *of_second, "tester left", "tester right"}
    assert {"br0", "br1"} <= {link["name"] for link in record["data_plane"]["worker"]["links"]}
    (beyond,) = record["data_plane"]["further_workers"].values()
    assert {"br0", "br1"} <= {link["name"] for link in beyond["worker"]["links"]}
    assert record["environment"]["further_workers"][SECOND_ADDRESS]["kernel"]
    assert record["quietness"]["workers"][1]["cpus"] == record["placement"]["sut"]
    assert once_as(before, lambda: [ports(each) for each in pair]) == before
    assert [left_there(each) for each in pair] == [[], []]


@pytest.mark.parametrize(
    "chain",
    [
        Chain("linux-bridge", 3, workers=2),
        pytest.param(Chain("macvlan", 2, workers=2), marks=pytest.mark.slow),
        pytest.param(Chain("routed", 2, workers=2), marks=pytest.mark.slow),
        pytest.param(Chain("xdp-redirect", 2, workers=2), marks=pytest.mark.slow),
        pytest.param(Chain("ovs-dpdk", 2, workers=2), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_frames_cross_both_workers_in_either_direction(testbed: Testbed, chain: Chain) -> None:
    need(chain.data_plane)
    for direction in Direction:
        cross(testbed, chain, direction)


def cross(testbed: Testbed, chain: Chain, direction: Direction) -> None:
    with testbed.build(chain, SMALL, (direction,)) as sut:
        traffic = addressed(TrafficProfile(SMALL, (direction,), 16), sut)
        sut.probe(traffic)

        def measure() -> tuple[DirectionResult, dict[str, int]]:
            before = received(sut)
            (result,) = sut.tester.measure(Trial(traffic, 2000, 0.1)).directions
            return result, {name: after - before[name] for name, after in received(sut).items()}

        result, came_in = first(lambda found: found[0].received >= 0.9 * found[0].sent > 0, measure)
        assert not result.duplicated
        if chain.data_plane != "ovs-dpdk":  # whose AF_XDP sockets take frames before the kernel counts them
            entrance = "ens4" if direction is Direction.LEFT_TO_RIGHT else "ens5"
            assert min(came_in[entrance], came_in[f"{SECOND_ADDRESS}: {entrance}"]) >= result.received, came_in


def received(sut: SystemUnderTest) -> dict[str, int]:
    """Frames that each worker's ports have received, by their kernel's count."""
    return {
        name: ip_json(port.host, "-statistics", "link", "show", "dev", port.interface)[0]["stats64"]["rx"]["packets"]
        for name, port in sut.ports.items()
    }


def test_what_two_workers_cannot_do_is_said(testbed: Testbed) -> None:
    for chain, directions, reason in (
        (Chain("ovs-dpdk", 2, workers=2), BOTH_DIRECTIONS, "get the MACs of one direction at their start"),
        (Chain("ovs-dpdk", 2, workers=2, join="vxlan"), None, "takes the ports of a worker"),
        (Chain("linux-bridge", 3, workers=3), None, "needs 3 workers, and the topology names 2"),
        (Chain("docker", 2, workers=2), None, "docker translates addresses: its parts cannot be joined by MAC alone"),
    ):
        need(chain.data_plane)
        with pytest.raises(Unavailable, match=reason), testbed.build(chain, SMALL, directions):
            raise AssertionError(f"{chain} was built")


@pytest.fixture
def here() -> Iterator[Testbed]:
    """The testbed of two workers on this machine."""
    settings = load_topology(ROOT / "topologies" / "two_workers.yaml", DATA_PLANES)
    with ExitStack() as undo:
        tester, *workers = machines_of(settings, LocalHost(), undo)
        yield Testbed.on(settings, tester, workers)


@pytest.mark.parametrize("join", ["cable", "vxlan"])
@pytest.mark.parametrize(
    "data_plane",
    ["linux-bridge", "routed", *(pytest.param(name, marks=pytest.mark.slow) for name in ("macvlan", "tc-redirect"))],
)
def test_frames_cross_two_workers_of_this_machine_in_both_directions(here: Testbed, data_plane: str, join: str) -> None:
    """Frames of the largest size, too: the cable has an MTU for the encapsulation."""
    need(data_plane)
    for size in (SMALL, FrameSize.parse(1518)):
        with here.build(Chain(data_plane, 3, workers=2, join=join), size, BOTH_DIRECTIONS) as sut:
            traffic = addressed(TrafficProfile(size, BOTH_DIRECTIONS, 16), sut)
            sut.probe(traffic)
            before = received(sut)
            found = first(
                lambda found: all(each.received == each.sent > 0 for each in found.directions),
                partial(sut.tester.measure, Trial(traffic, 2000, 0.1)),
            )
            after = received(sut)
            assert all(each.received == each.sent > 0 and not each.duplicated for each in found.directions)
            crossed = sum(each.received for each in found.directions)
            inner = [after[name] - before[name] for name in ("w-right", "worker2 of this machine: w2-left")]
            assert sum(inner) >= crossed, "the frames crossed the cable between the workers"
            described = sut.describe().get("join")
            assert (described is None) == (join == "cable")
            if described is not None:
                assert described["overhead_bytes"] == 50
                assert [each["settings"]["id"] for each in described["interfaces"].values()] == [100, 100]
    assert not namespaces_named(LocalHost())


def test_vxlan_forwards_half_of_what_a_cable_does(here: Testbed) -> None:
    ratios: list[float] = []
    for _ in range(9):  # by turns, until most of them agree, since the machine may be slow or fast for some seconds
        cable, vxlan = (forwarded(here, join) for join in ("cable", "vxlan"))
        ratios.append(vxlan / cable)
        if len(ratios) > 2 and median(ratios) >= 0.5:
            return
    pytest.fail(f"VXLAN forwarded these shares of what the cable did: {ratios}")


def forwarded(here: Testbed, join: str) -> int:
    """The frames that arrive if the tester sends as fast as it can. Each other frame is one whose loss is counted."""
    with here.build(Chain("routed", 2, workers=2, join=join), SMALL, (Direction.LEFT_TO_RIGHT,)) as sut:
        traffic = addressed(TrafficProfile(SMALL, (Direction.LEFT_TO_RIGHT,), 16), sut)
        sut.probe(traffic)

        def measure() -> tuple[DirectionResult, int]:
            before = dropped(sut)
            trial = sut.tester.measure(Trial(traffic, UNPACED, 0.5))
            (found,) = trial.directions
            assert not found.duplicated and not found.corrupted
            return found, dropped(sut) - before + trial.own_drops

        result, _ = first(lambda found: found[0].lost == found[1], measure)
        return result.received


def dropped(sut: SystemUnderTest) -> int:
    """Frames that the interfaces of workers and pods have dropped so far."""
    sites = [part.site for part in sut.parts if part.site is not None]
    hosts = [host for site in sites for host in (site.worker.host, *(pod.host for pod in site.pods))]
    counts = [link["stats64"] for host in hosts for link in ip_json(host, "-statistics", "link", "show")]
    return sum(each[way]["dropped"] for each in counts for way in ("rx", "tx"))


@pytest.mark.slow
def test_a_switch_that_floods_is_no_way_through_the_chain(
    there: SshMachine, behind: SshMachine, tmp_path: Path
) -> None:
    """Every port on one network: frames for a MAC that never sent are flooded, and a copy arrives without the chain."""
    with ExitStack() as undo:
        lab = add_namespace("lab", undo)
        ip(lab, "link", "add", "switch", "type", "bridge", "ageing_time", "0")  # the switch never learns a MAC
        ip(lab, "link", "set", "switch", "up")
        for near, far, machine in (
            ("first-left", "ens4", there),
            ("first-right", "ens5", there),
            ("second-left", "ens4", behind),
            ("second-right", "ens5", behind),
        ):
            ends = {"near_namespace": lab.namespace, "far_namespace": machine.network.namespace}
            add_veth(LocalHost(), near=near, far=far, mtu=1500, **ends)
            undo.callback(ip, machine.network, "link", "del", far)
            ip(lab, "link", "set", near, "master", "switch")
        for end in ("left", "right"):
            add_veth(lab, near=end, far=f"to-{end}", mtu=1500)
            ip(lab, "link", "set", f"to-{end}", "master", "switch")
        settings = load_topology(topology((there, behind), tmp_path), DATA_PLANES)
        tester, *workers = taken(settings, undo)
        testbed = Testbed.on(settings, tester, workers)
        with testbed.build(Chain("macvlan", 1), SMALL) as sut:
            with pytest.raises(PodperfError, match="floods frames to a MAC that it has not learnt"):
                sut.probe(addressed(TrafficProfile(SMALL), sut))
            # A switch that knows them takes the same frames through the chain.
            for near, mac in (
                ("first-left", sut.entries[Direction.LEFT_TO_RIGHT].mac),
                ("to-right", mac_address(lab, "right")),
            ):
                lab.do("bridge", "fdb", "replace", str(mac), "dev", near, "master", "static")
            sut.probe(addressed(TrafficProfile(SMALL), sut))


def test_check_looks_at_both(pair: tuple[SshMachine, SshMachine], tmp_path: Path) -> None:
    observations = check(str(topology(pair, tmp_path)))
    of_second = [observation for observation in observations if observation.area.endswith("of workers[1]")]
    assert {each.subject for each in of_second} >= {"placement", "ip", "hugepages", "worker ports"}
    assert {each.state for each in of_second if each.subject in {"placement", "worker ports"}} == {State.OK}
