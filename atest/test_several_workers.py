"""Chains along two workers, each a separate machine behind SSH. Frames cross both. Afterwards both are as before."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from attempts import first
from chains import need
from machine import once_as
from namespaces import add_namespace
from podperf.dataplanes import DATA_PLANES
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host
from podperf.hosts.linux import add_veth, ip, mac_address
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import NetworkNamespace
from podperf.model import (
    BOTH_DIRECTIONS,
    Chain,
    Direction,
    DirectionResult,
    TrafficProfile,
    Trial,
)
from podperf.observation import State
from podperf.preflight.checks import check
from podperf.testbed.access import lock, machines_of
from podperf.testbed.system_under_test import addressed
from podperf.testbed.testbed import Testbed
from podperf.topology import Topology, load_topology
from robot_run import Robot, mrr_suite
from ssh_machine import SECOND_ADDRESS, SshMachine, ssh_machine
from test_joined_workers import SMALL, received
from test_ssh import await_links, left_there, ports


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
    (record,) = robot.measured()
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
