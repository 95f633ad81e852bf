"""Parts of a chain on several workers are set up so that each part sends to the next one."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.cpu_plan import plan_cpus
from podperf.dataplanes.base import RunningDataPlane, Worker, WorkerPort
from podperf.errors import Unavailable
from podperf.model import BOTH_DIRECTIONS, Chain, Direction, Entry, Placement, VirtualFunctionSettings
from podperf.testbed.along_workers import set_up_along
from podperf.testbed.system_under_test import PartOfChain, SystemUnderTest
from scripted_host import ScriptedHost

TESTER = "tester-left", "tester-right"


class Part:
    """A data plane with or without MACs of its own. It remembers its calls."""

    def __init__(self, entry: Mapping[Direction, Entry]) -> None:
        self.entry = entry
        self.worker: Worker | None = None
        self.chain: Chain | None = None

    def set_up(self, worker: Worker, chain: Chain, _: ExitStack) -> RunningDataPlane:
        self.worker, self.chain = worker, chain
        return RunningDataPlane(self.entry, {}, lambda: {"worker": worker.number})

    @property
    def peers(self) -> tuple[str, str]:
        assert self.worker is not None
        return self.worker.left.peer_mac, self.worker.right.peer_mac


class Parts:
    """The data plane of these parts, one part on each worker."""

    def __init__(self, parts: list[Part]) -> None:
        self.parts = parts

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        return self.parts[worker.number].set_up(worker, chain, undo)


def worker(number: int) -> Worker:
    left, right = (WorkerPort(f"ens{side}", f"port{number}{side}", "") for side in "ab")
    pods: Any = None
    sriov = VirtualFunctionSettings()
    cpus = plan_cpus(Placement((0,), (1,)), 1, with_switch=False)
    return Worker(pods, "", left, right, pods, 1500, cpus, "", sriov, number)


def by_mac(number: int, **more: Any) -> Part:
    left, right = (Entry(f"pod{number}{side}", **more) for side in "ab")
    return Part({Direction.LEFT_TO_RIGHT: left, Direction.RIGHT_TO_LEFT: right})


def along(parts: list[Part], *directions: Direction) -> Mapping[Direction, Entry]:
    workers = [worker(number) for number in range(len(parts))]
    chain = Chain("macvlan", 2 * len(parts), workers=len(parts))
    with ExitStack() as undo:
        running, entries = set_up_along(workers, Parts(parts), chain, directions, TESTER, undo)  # type: ignore[arg-type]
    assert [each.describe()["worker"] for each in running] == [each.number for each in workers]
    return entries


def test_one_worker_stands_between_the_testers_ports_in_both_directions() -> None:
    part = by_mac(0)
    assert along([part], *BOTH_DIRECTIONS) == part.entry
    assert part.peers == TESTER
    assert part.chain == Chain("macvlan", 2)


def test_frames_to_the_right_go_from_each_part_into_the_next() -> None:
    parts = [by_mac(number) for number in range(3)]
    assert along(parts, Direction.LEFT_TO_RIGHT) == {
        Direction.LEFT_TO_RIGHT: Entry("pod0a"),
        Direction.RIGHT_TO_LEFT: Entry("pod2b"),  # of learning frames, which cross the last part
    }
    assert [part.peers[1] for part in parts] == ["pod1a", "pod2a", "tester-right"]
    assert [part.peers[0] for part in parts] == ["tester-left", "port0b", "port1b"]


def test_frames_to_the_left_do_so_the_other_way() -> None:
    parts = [by_mac(number) for number in range(3)]
    assert along(parts, Direction.RIGHT_TO_LEFT) == {
        Direction.RIGHT_TO_LEFT: Entry("pod2b"),
        Direction.LEFT_TO_RIGHT: Entry("pod0a"),
    }
    assert [part.peers[0] for part in parts] == ["tester-left", "pod0b", "pod1b"]


def test_what_passes_frames_on_as_they_are_is_sent_what_is_for_the_tester() -> None:
    parts = [Part(dict.fromkeys(Direction, Entry())) for _ in range(2)]
    assert along(parts, Direction.LEFT_TO_RIGHT) == {Direction.LEFT_TO_RIGHT: Entry("tester-right")}
    assert [part.peers[1] for part in parts] == ["tester-right"] * 2


def test_parts_that_mac_alone_does_not_join_are_refused() -> None:
    with pytest.raises(Unavailable, match="macvlan translates addresses"):
        along([by_mac(0, address="198.19.255.1"), by_mac(1, address="198.19.255.1")], Direction.LEFT_TO_RIGHT)


@given(st.integers(0, 40), st.integers(1, 8))
def test_pods_are_divided_evenly_and_none_is_lost(pods: int, workers: int) -> None:
    parts = Chain("macvlan", pods, "kernel", workers).parts
    assert len(parts) == workers
    assert sum(part.pods for part in parts) == pods
    assert all(0 <= before.pods - behind.pods <= 1 for before, behind in pairwise(parts))
    assert {(part.data_plane, part.forwarder, part.workers) for part in parts} == {("macvlan", "kernel", 1)}


def test_ports_and_descriptions_of_three_workers_are_told_apart() -> None:
    hosts = [ScriptedHost() for _ in range(3)]
    parts = [
        PartOfChain(by_mac(number).set_up(worker(number), Chain("macvlan", 1), ExitStack()), {"left": "a thread"}, name)
        for number, name in enumerate(("first", "second", "third"))
    ]
    parts = [
        replace(part, data_plane=replace(part.data_plane, ports={"left": host}))
        for part, host in zip(parts, hosts, strict=True)
    ]
    tester: Any = None
    sut = SystemUnderTest(Chain("macvlan", 3, workers=3), tester, parts, {})
    assert {name: port.host for name, port in sut.ports.items()} == dict(
        zip(("left", "second: left", "third: left"), hosts, strict=True)
    )
    assert {port.received_by for port in sut.ports.values()} == {"a thread"}
    assert sut.describe() == {"worker": 0, "further_workers": {"second": {"worker": 1}, "third": {"worker": 2}}}
