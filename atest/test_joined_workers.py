"""Two workers of this machine, with each join that its kernel has: frames cross both, and none leaves the run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from statistics import median

import pytest

from attempts import first
from chains import need
from debian_programs import unpacked
from podperf.dataplanes import DATA_PLANES
from podperf.hosts.linux import ip_json
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import namespaces_named
from podperf.model import (
    BOTH_DIRECTIONS,
    Chain,
    Direction,
    DirectionResult,
    End,
    Ends,
    FrameSize,
    TrafficProfile,
    Trial,
)
from podperf.testbed.access import machines_of
from podperf.testbed.system_under_test import SystemUnderTest, addressed
from podperf.testbed.testbed import Testbed
from podperf.testers.base import UNPACED
from podperf.topology import load_topology
from robot_run import ROOT

SMALL = FrameSize.parse(64)


@pytest.fixture
def here(no_frame_leaves: None) -> Iterator[Testbed]:
    """The testbed of two workers on this machine."""
    settings = load_topology(ROOT / "topologies" / "two_workers.yaml", DATA_PLANES)
    with ExitStack() as undo:
        tester, *workers = machines_of(settings, LocalHost(), undo)
        yield Testbed.on(settings, tester, workers)


SLOW_DATA_PLANES = [pytest.param(name, marks=pytest.mark.slow) for name in ("macvlan", "tc-redirect")]


@pytest.mark.parametrize("join", ["cable", "vxlan"])
@pytest.mark.parametrize("data_plane", ["linux-bridge", "routed", *SLOW_DATA_PLANES])
def test_frames_cross_two_workers_of_this_machine_in_both_directions(here: Testbed, data_plane: str, join: str) -> None:
    """Frames of the largest size, too: the cable has an MTU for the encapsulation."""
    need(data_plane)
    for size in (SMALL, FrameSize.parse(1518)):
        with here.build(Chain(data_plane, 3, workers=2, join=join), size, BOTH_DIRECTIONS) as sut:
            all_cross_the_cable(sut, size)
            described = sut.describe().get("join")
            assert (described is None) == (join == "cable")
            if described is not None:
                assert described["overhead_bytes"] == 50
                assert [each["settings"]["id"] for each in described["interfaces"].values()] == [100, 100]
    assert not namespaces_named(LocalHost())


@pytest.mark.parametrize(
    "chain",
    [
        Chain("linux-bridge", 0, workers=2, join="vxlan", ends=Ends(End.POD, End.POD)),
        Chain("macvlan", 0, workers=2, ends=Ends(End.POD, End.POD)),
        Chain("macvlan", 2, workers=2, join="vxlan", ends=Ends(End.POD, End.POD)),
    ],
    ids=str,
)
def test_frames_from_a_pod_cross_two_workers_to_another_pod(here: Testbed, chain: Chain) -> None:
    need(chain.data_plane)
    with here.build(chain, SMALL, BOTH_DIRECTIONS) as sut:
        all_cross_the_cable(sut, SMALL)
    assert not namespaces_named(LocalHost())


def test_frames_cross_two_workers_of_this_machine_by_routes_of_bgp(
    here: Testbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = unpacked("bird2", "libssh-gcrypt-4")
    monkeypatch.setenv("PATH", f"{programs}/usr/sbin:{os.environ['PATH']}")
    monkeypatch.setenv("LD_LIBRARY_PATH", ":".join({str(path.parent) for path in programs.glob("usr/lib/*/lib*.so*")}))
    with here.build(Chain("routed", 3, workers=2, join="bgp"), SMALL, BOTH_DIRECTIONS) as sut:
        all_cross_the_cable(sut, SMALL)
        assert sut.describe()["join"]["overhead_bytes"] == 0
    assert not namespaces_named(LocalHost())


def all_cross_the_cable(sut: SystemUnderTest, size: FrameSize) -> None:
    """Send frames in both directions. All of them must arrive, once, by way of the cable between the workers."""
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


def received(sut: SystemUnderTest) -> dict[str, int]:
    """Frames that each worker's ports have received, by their kernel's count."""
    return {
        name: ip_json(port.host, "-statistics", "link", "show", "dev", port.interface)[0]["stats64"]["rx"]["packets"]
        for name, port in sut.ports.items()
    }
