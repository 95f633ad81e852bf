"""All joins of two workers, on two virtual workers: their kernel has every kind of links. Frames cross in both
directions, with the bytes on the cable that the record has. And a worker of this machine beside a virtual one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from attempts import first
from podperf.hosts.host_facts import parse_ethtool
from podperf.model import BOTH_DIRECTIONS, AddressedTraffic, Chain, DirectionResult, FrameSize, TrafficProfile, Trial
from podperf.testbed.joins import JOINS
from podperf.testbed.system_under_test import SystemUnderTest, addressed
from robot_run import ROOT
from virtual_lab import ONLY_ON_REQUEST, Lab, booted

SMALL, LARGE = FrameSize.parse(64), FrameSize.parse(1518)
TOPOLOGY = ROOT / "topologies" / "two_virtual_workers.yaml"

pytestmark = [ONLY_ON_REQUEST, pytest.mark.usefixtures("machine_as_before")]


@pytest.fixture(scope="class")
def lab() -> Iterator[Lab]:
    with booted(TOPOLOGY) as lab:
        yield lab


@pytest.fixture(scope="module")
def here() -> Iterator[Lab]:
    with booted(ROOT / "topologies" / "host_and_virtual_worker.yaml") as lab:
        yield lab


class TestJoins:
    """Two virtual workers for all of these tests."""

    @pytest.mark.parametrize("join", JOINS)
    def test_every_frame_crosses_in_both_directions_with_the_bytes_of_the_record(self, lab: Lab, join: str) -> None:
        before = lab.state()
        with lab.testbed.build(Chain("routed", 2, workers=2, join=join), LARGE, BOTH_DIRECTIONS) as sut:
            described = sut.describe().get("join")
            assert (described is None) == (join == "cable")
            overhead = 0 if described is None else described["overhead_bytes"]
            padding = 2 if join == "wireguard" else 0  # up to a multiple of 16, and no further than the MTU
            all_cross(sut, SMALL, 64 + overhead + padding, 64 + overhead + padding)
            all_cross(sut, LARGE, 1518 + overhead, 64 + overhead + padding)
        assert lab.state() == before


@pytest.mark.parametrize("data_plane", ["linux-bridge", "routed", "tc-redirect"])
def test_every_frame_crosses_a_pod_of_this_machine_and_one_of_a_virtual_machine(here: Lab, data_plane: str) -> None:
    before = here.state()
    with here.testbed.build(Chain(data_plane, 2, workers=2), LARGE, BOTH_DIRECTIONS) as sut:
        pods = [pod.host for part in sut.parts if part.site is not None for pod in part.site.worker.started]
        kernels = {pod.ask("uname", "-r").stdout for pod in pods}
        assert len(kernels) == len(pods) == 2, "the second pod is in the virtual machine"
        for size in (SMALL, LARGE):
            traffic = addressed(TrafficProfile(size, BOTH_DIRECTIONS, 16), sut)
            sut.probe(traffic)

            def measure(traffic: AddressedTraffic = traffic) -> list[DirectionResult]:
                return list(sut.tester.measure(Trial(traffic, 500, 0.2)).directions)

            first(lambda found: all(each.received == each.sent > 0 for each in found), measure)
    assert here.state() == before


def all_cross(sut: SystemUnderTest, size: FrameSize, on_the_cable: int, learning: int) -> None:
    """Send frames in both directions, all of which must arrive. Each has so many bytes on the cable.

    The tester's learning frames have `learning` bytes there. A worker may send a frame of its own during some trials,
    and not in all.
    """
    traffic = addressed(TrafficProfile(size, BOTH_DIRECTIONS, 16), sut)
    sut.probe(traffic)

    def measure() -> list[tuple[DirectionResult, Counts]]:
        before = sent_to_each_other(sut)
        directions = sut.tester.measure(Trial(traffic, 500, 0.2)).directions
        assert not any(each.duplicated or each.corrupted for each in directions), directions
        counted = [now - then for now, then in zip(sent_to_each_other(sut), before, strict=True)]
        return list(zip(directions, counted, strict=True))

    def exact(found: DirectionResult, count: Counts) -> bool:
        of_trial = found.sent * on_the_cable + (count.frames - found.sent) * learning
        return found.received == found.sent > 0 and count.octets == of_trial

    first(lambda found: all(exact(*each) for each in found), measure)


@dataclass(frozen=True)
class Counts:
    """Frames and their bytes with FCS, counted by a card as it sends them."""

    frames: int
    octets: int

    def __sub__(self, other: Counts) -> Counts:
        return Counts(self.frames - other.frames, self.octets - other.octets)


def sent_to_each_other(sut: SystemUnderTest) -> list[Counts]:
    """The counts of what each worker has sent to the other one. A card counts the tags that it inserts itself."""
    left, right = (part.site.worker for part in sut.parts if part.site is not None)
    found = []
    for host, port in ((left.host, left.right), (right.host, right.left)):
        counts = parse_ethtool(host.ask("ethtool", "-S", port.trunk or port.interface).stdout)
        found.append(Counts(int(counts["tx_packets"]), int(counts["tx_bytes"])))
    return found
