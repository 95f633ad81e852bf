"""Chains beside each other on shared ports: each frame is counted for the chain that it crossed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from attempts import first
from chains import local_testbed, need
from podperf.dataplanes import DATA_PLANES
from podperf.errors import PodperfError
from podperf.experiments.claims import LAYOUTS, layout
from podperf.hosts.linux import ip, ip_json
from podperf.model import BOTH_DIRECTIONS, Chain, DirectionResult, FrameSize, TrafficProfile, Trial
from podperf.pods.base import Pod
from podperf.records import schema_errors
from podperf.testbed import system_under_test
from podperf.testbed.system_under_test import SystemUnderTest, addressed
from robot_run import ROOT, Robot

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes network namespaces"),
    pytest.mark.usefixtures("machine_as_before"),
]

TRAFFIC = TrafficProfile(FrameSize.parse(64), BOTH_DIRECTIONS, flows=10)
TRIAL = (4000.0, 0.2)  # frames/s and direction, seconds
LEARNING = 1  # frame of a trial, in each direction of each chain, that teaches switches and is not counted
IN_KERNEL = ("linux-bridge", "macvlan")


def pods_of(sut: SystemUnderTest) -> list[Pod]:
    """The pods, chain by chain."""
    (part,) = sut.parts
    assert part.site is not None
    return list(part.site.pods)


def sent_by(pod: Pod, interface: str) -> int:
    (link,) = ip_json(pod.host, "-statistics", "link", "show", "dev", interface)
    return int(link["stats64"]["tx"]["packets"])


@pytest.mark.parametrize("name", [name for name, kind in DATA_PLANES.items() if kind.several_chains])
def test_all_frames_of_each_chain_arrive(name: str) -> None:
    need(name)
    with local_testbed().build(layout(name, "4x1"), TRAFFIC.frame) as sut:
        traffic = addressed(TRAFFIC, sut)
        assert (traffic.groups, traffic.flows) == (4, 40)
        sut.probe(traffic)
        ways = first(whole, lambda: sut.tester.measure(Trial(traffic, *TRIAL)).directions)
        assert all(len(way.received_by_group) == 4 for way in ways)


def whole(ways: Sequence[DirectionResult]) -> bool:
    """Whether all frames of each chain have arrived."""
    assert all(sum(way.received_by_group) == way.received for way in ways)
    # Chains get frames in turn. The tester may send less than it should, and the first chains one frame more.
    groups = [way.received_by_group for way in ways]
    return all(0 < way.sent == way.received for way in ways) and all(max(group) - min(group) <= 1 for group in groups)


@pytest.mark.parametrize("words", ["2x1", "2x2", "2x2-common"])
@pytest.mark.parametrize("name", IN_KERNEL)
def test_the_frames_of_a_chain_are_those_that_its_pods_sent(name: str, words: str) -> None:
    need(name)
    chain = layout(name, words)
    with local_testbed().build(chain, TRAFFIC.frame) as sut:
        traffic = addressed(TRAFFIC, sut)
        sut.probe(traffic)
        pods = pods_of(sut)
        assert len(pods) == chain.all_pods
        own = chain.pods - chain.common_pod
        left, right = pods[: 2 * own : own], pods[own - 1 : 2 * own : own]  # of each chain's own pods
        ends = [[(pod, "net2") for pod in right], [(pod, "net1") for pod in left]]

        def cross() -> tuple[Sequence[DirectionResult], list[tuple[int, ...]]]:
            before = [[sent_by(*each) for each in way] for way in ends]
            ways = sut.tester.measure(Trial(traffic, *TRIAL)).directions
            after = [[sent_by(*each) for each in way] for way in ends]
            return ways, [
                tuple(late - early for early, late in zip(*each, strict=True))
                for each in zip(before, after, strict=True)
            ]

        ways, crossed = first(lambda found: whole(found[0]), cross)
        assert crossed == [tuple(each + LEARNING for each in way.received_by_group) for way in ways]
        assert all(len(each) == 2 for each in crossed)


@pytest.mark.parametrize("name", IN_KERNEL)
def test_a_chain_that_is_cut_loses_its_own_frames_and_no_others(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    need(name)
    with local_testbed().build(layout(name, "4x1"), TRAFFIC.frame) as sut:
        traffic = addressed(TRAFFIC, sut)
        sut.probe(traffic)
        ip(pods_of(sut)[1].host, "link", "set", "dev", "net2", "down")

        def of_others_alone(ways: Sequence[DirectionResult]) -> bool:
            assert all(way.received_by_group[1] == 0 for way in ways)
            return all(way.sent == 800 and way.received_by_group == (200, 0, 200, 200) for way in ways)

        first(of_others_alone, lambda: sut.tester.measure(Trial(traffic, *TRIAL)).directions)
        monkeypatch.setattr(system_under_test, "PROBE_PATIENCE", 2.0)
        with pytest.raises(PodperfError, match=r"no test frame crossed .*left-to-right by chain 2"):
            sut.probe(traffic)


def test_the_kernel_forwards_behind_testpmd() -> None:
    need("ovs-dpdk")
    with local_testbed().build(Chain("ovs-dpdk", 2, "testpmd+kernel"), TRAFFIC.frame) as sut:
        traffic = addressed(TRAFFIC, sut)
        sut.probe(traffic)
        behind = pods_of(sut)[1]

        def cross() -> tuple[Sequence[DirectionResult], list[int]]:
            before = [sent_by(behind, interface) for interface in ("net2", "net1")]
            ways = sut.tester.measure(Trial(traffic, *TRIAL)).directions
            after = [sent_by(behind, interface) for interface in ("net2", "net1")]
            return ways, [late - early for early, late in zip(before, after, strict=True)]

        first(lambda found: [each.sent + LEARNING for each in found[0]] == found[1] and all(found[1]), cross)
        assert [application.name for application in sut.data_planes[0].applications] == ["pod1"]


@pytest.mark.slow
def test_layouts_of_chains_are_compared(tmp_path: Path) -> None:
    robot = Robot(tmp_path, "--test", "Linux bridge, chains beside each other", str(ROOT / "tests"), few_rounds=True)
    (record,) = robot.measured()
    assert schema_errors(record) == []
    (finding,) = record["findings"]
    layouts = finding["service_density"]["layouts"]
    assert [f"{each['chains']}x{each['pods']}" for each in layouts] == list(LAYOUTS)
    for each in layouts:
        assert len(each["rates"]) == each["chains"]
        assert 1 / each["chains"] <= each["fairness"] <= 1.000001
    for trial in record["trials"]:
        for way in trial["directions"]:
            assert sum(way.get("received_by_group", [way["received"]])) == way["received"]
    counted = {trial["phase"] for trial in record["trials"] if "received_by_group" in trial["directions"][0]}
    assert counted == {"2x1", "2x2", "4x1"}
    assert "rate of chains beside each other" in (robot.results / "conformance.html").read_text()
