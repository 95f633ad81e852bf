"""Test traffic begins and ends in pods: frames are counted in the far pod by their signature, and nothing is left."""

from __future__ import annotations

import pytest

from chains import local_testbed, need, send
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import namespaces_named
from podperf.model import Chain, End, Ends, FrameSize

LARGE = FrameSize.parse(1518)


@pytest.mark.parametrize("ends", [Ends(End.POD, End.POD), Ends(End.POD, End.PORT), Ends(End.PORT, End.POD)], ids=str)
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
    with local_testbed().build(Chain("macvlan", 1, ends=Ends(End.POD, End.POD)), LARGE) as sut:
        send(sut)
    assert namespaces_named(LocalHost()) == []
