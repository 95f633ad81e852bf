"""Test traffic begins and ends in pods: frames are counted in the far pod by their signature, and nothing is left."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from attempts import first
from chains import local_testbed, need, send
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import namespaces_named
from podperf.model import BOTH_DIRECTIONS, Chain, DirectionResult, End, Ends, FrameSize, TrafficProfile, Trial
from podperf.testbed.system_under_test import PROGRAM_AT_END, addressed

LARGE, SMALL = FrameSize.parse(1518), FrameSize.parse(64)
POD_TO_POD, POD_TO_PORT, PORT_TO_POD = Ends(End.POD, End.POD), Ends(left=End.POD), Ends(right=End.POD)
CONTAINERS = Ends(End.CONTAINER, End.CONTAINER)


@pytest.mark.parametrize("ends", [POD_TO_POD, POD_TO_PORT, PORT_TO_POD], ids=str)
@pytest.mark.parametrize("name", ["linux-bridge", "macvlan", "routed"])
def test_frames_cross_from_end_to_end(name: str, ends: Ends) -> None:
    need(name)
    with local_testbed().build(Chain(name, 0, ends=ends), LARGE) as sut:
        for size in ("64", "1518"):
            send(sut, size)
        opened = {side: port["namespace"] for side, port in sut.tester.describe()["ports"].items()}
        pods = {side: pod.host.namespace for side, pod in sut.end_pods.items()}
        assert {side: end for side, end in ends.by_side.items() if end is End.POD}.keys() == pods.keys()
        assert pods.items() <= opened.items(), "the tester's program sends and receives in the pods"
        assert sut.describe()["ends"].keys() == pods.keys()
        tells = sut.data_planes[0].cpu_users is not None
        assert tells == (name != "macvlan"), "a sub-interface has no receive thread: the sender's CPU does the work"
    assert namespaces_named(LocalHost()) == []


def test_a_pod_forwards_between_pods_at_the_ends() -> None:
    with local_testbed().build(Chain("macvlan", 1, ends=POD_TO_POD), LARGE) as sut:
        send(sut)
    assert namespaces_named(LocalHost()) == []


@pytest.mark.parametrize(
    "chain",
    [
        Chain("ovs-dpdk", 0, ends=POD_TO_POD),
        Chain("ovs-dpdk", 0, ends=POD_TO_PORT),
        Chain("ovs-dpdk", 0, ends=PORT_TO_POD),
        Chain("ovs-dpdk", 1, ends=POD_TO_POD),
        Chain("memif", 0, ends=POD_TO_POD),
        Chain("memif", 0, ends=CONTAINERS),
        Chain("ovs-dpdk", 0, ends=CONTAINERS),
        Chain("memif", 1, ends=PORT_TO_POD),
        Chain("af-xdp", 0, ends=POD_TO_POD),
        Chain("af-xdp", 0, ends=POD_TO_PORT),
        Chain("af-xdp", 1, ends=PORT_TO_POD),
    ],
    ids=str,
)
def test_a_program_of_the_pod_carries_each_frame_to_its_port_in_user_space(chain: Chain) -> None:
    need(chain.data_plane)
    with local_testbed().build(chain, LARGE) as sut:
        send(sut, "1518")
        traffic = addressed(TrafficProfile(SMALL, BOTH_DIRECTIONS, 16), sut)

        def measure() -> Sequence[DirectionResult]:
            sut.check()
            return sut.tester.measure(Trial(traffic, 1000, 0.5)).directions

        first(lambda ways: all(way.received == way.sent >= 500 and not way.duplicated for way in ways), measure)
        opened = {side: port["namespace"] for side, port in sut.tester.describe()["ports"].items()}
        assert {side: pod.host.namespace for side, pod in sut.end_pods.items()}.items() <= opened.items()
        described = sut.describe()
        assert {end["program"] for end in described["ends"].values()} == {PROGRAM_AT_END}
        assert len(described["applications"]) == len(sut.end_pods) + chain.pods
        for pod in sut.end_pods.values():
            statistics = " ".join(described["applications"][pod.name]["statistics"])
            assert all(int(each) >= 500 for each in re.findall(r"[RT]X-packets: (\d+)", statistics)), statistics
    assert namespaces_named(LocalHost()) == []
