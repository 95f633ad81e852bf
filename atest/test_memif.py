"""Pods joined by memif forward and describe themselves. Each failure has a message and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chains import end, forward, local_testbed, need, send
from podperf.cleanup import put_back
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.local import LocalHost
from podperf.kernel import hugepages
from podperf.model import Chain, FrameSize
from podperf.testbed import machines

pytestmark = pytest.mark.distribution
ENOUGH_TURNS = 100  # such a test takes one or two seconds, and there are a few thousand turns a second


@pytest.fixture(autouse=True)
def nothing_left(machine_as_before: None) -> Iterator[None]:
    need("memif")
    yield
    assert put_back(LocalHost()) == [], "something was left behind"


@pytest.mark.parametrize("pods", [2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_forwards_both_ways(pods: int) -> None:
    description = forward(Chain("memif", pods), ("64", "1518", "IMIX"))
    assert len(description["applications"]) == pods


def test_description_is_read_back_from_the_pods() -> None:
    description = forward(Chain("memif", 3))
    drivers = [" ".join(each["devices"]) for each in description["applications"].values()]
    assert "net_af_xdp" in drivers[0]
    assert "net_af_xdp" not in drivers[1]
    assert all("net_memif" in each for each in drivers)
    assert {each["name"] for each in description["pods"]["pod1"]["links"]} == {"lo", "net1"}
    commands = [each["command"] for each in description["applications"].values()]
    assert ["--no-huge" in each for each in commands] == [not hugepages.offered(LocalHost())] * 3
    ports = 2  # with a receive thread of the kernel each
    assert sum(each["pollers"] for each in description["pollers"]) == 3 + ports
    held_to = {cpus for each in description["pollers"] for cpus in each["held_to"]}
    (worker,) = local_testbed().workers
    assert held_to <= {str(cpu) for cpu in worker.placement.sut}, "the tester's CPU has no part in it"
    for cpu in description["pollers"]:
        assert len(cpu["preemptions"]) == cpu["pollers"]
        if cpu["shared"] != "alone":  # the kernel's threads sleep where they have nothing to receive; pods never do
            assert max(cpu["preemptions"]) > ENOUGH_TURNS


def test_a_single_pod_has_no_memif() -> None:
    with pytest.raises(PodperfError, match="memif needs 2 or more pods, not 1"):
        forward(Chain("memif", 1))


def test_frames_that_no_buffer_holds_are_refused() -> None:
    with pytest.raises(Unavailable, match="one buffer of memif: those take frames of up to 1518 bytes"):
        forward(Chain("memif", 2), ["3000"])


def test_a_pod_that_ends_is_named() -> None:
    with local_testbed().build(Chain("memif", 2), FrameSize.parse(64)) as sut:
        send(sut)
        end("pod2", "dpdk-testpmd")
        with pytest.raises(PodperfError, match="testpmd has ended in namespace podperf-pod2"):
            send(sut)


def test_a_socket_path_too_long_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machines, "RUN_DIRECTORY", tmp_path / ("long" * 30))
    with pytest.raises(PodperfError, match=r"the socket path .* bytes, and a UNIX socket's has at most 107"):
        forward(Chain("memif", 2))
