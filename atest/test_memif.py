"""Pods joined by memif forward and describe themselves. Each failure has a message and leaves nothing behind."""

from __future__ import annotations

import pytest

from chains import end, forward, local_testbed, need, send
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.local import LocalHost
from podperf.kernel import hugepages
from podperf.model import Chain, FrameSize

pytestmark = [pytest.mark.distribution, pytest.mark.usefixtures("machine_as_before", "nothing_left", "no_frame_leaves")]
ENOUGH_TURNS = 100  # such a test takes one or two seconds, and there are a few thousand turns a second


@pytest.fixture(autouse=True)
def needed() -> None:
    need("memif")


@pytest.mark.parametrize("pods", [2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_forwards_both_ways(pods: int) -> None:
    description = forward(Chain("memif", pods), ("64", "1518", "IMIX"))
    assert len(description["applications"]) == pods


def test_description_is_read_back_from_the_pods() -> None:
    description = forward(Chain("memif", 3))
    drivers = [" ".join(application["devices"]) for application in description["applications"].values()]
    assert "net_af_xdp" in drivers[0]
    assert "net_af_xdp" not in drivers[1]
    assert all("net_memif" in driver for driver in drivers)
    assert {link["name"] for link in description["pods"]["pod1"]["links"]} == {"lo", "net1"}
    commands = [application["command"] for application in description["applications"].values()]
    assert ["--no-huge" in command for command in commands] == [not hugepages.offered(LocalHost())] * 3
    ports = 2  # with a receive thread of the kernel each
    assert sum(poller["pollers"] for poller in description["pollers"]) == 3 + ports
    held_to = {cpus for poller in description["pollers"] for cpus in poller["held_to"]}
    (worker,) = local_testbed().workers
    assert held_to <= {str(cpu) for cpu in worker.placement.sut}, "the tester's CPU has no part in it"
    for cpu in description["pollers"]:
        assert len(cpu["preemptions"]) == cpu["pollers"]
        if cpu["shared"] != "alone":  # the kernel's threads sleep where they have nothing to receive; pods never do
            assert max(cpu["preemptions"]) > ENOUGH_TURNS


def test_frames_that_no_buffer_holds_are_refused() -> None:
    with pytest.raises(Unavailable, match="one buffer of memif: those take frames of up to 1518 bytes"):
        forward(Chain("memif", 2), ["3000"])


def test_a_pod_that_ends_is_named() -> None:
    with local_testbed().build(Chain("memif", 2), FrameSize.parse(64)) as sut:
        send(sut)
        end("pod2", "dpdk-testpmd")
        with pytest.raises(PodperfError, match="testpmd has ended in namespace podperf-pod2"):
            send(sut)
