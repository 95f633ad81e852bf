"""What VPP says, as data, and which of its interfaces make a segment."""

from __future__ import annotations

from itertools import pairwise

import pytest

from podperf.dataplanes.base import Worker, WorkerPort
from podperf.dataplanes.vpp import parse_runtime
from podperf.dataplanes.vpp_chain import segments
from podperf.model import Placement, VirtualFunctionSettings

MAIN_THREAD_ONLY = """\
Time 4.2, 10 sec internal node vector rate 1.93 loops/sec 31275.62
  vector rates in 8.2145e4, out 8.2145e4, drop 0.0000e0, punt 0.0000e0
    Name    State    Calls    Vectors    Suspends    Packet-Clocks    Vectors/Call
af-packet-input    polling    131072    345009    0    1.22e2    2.63
l2-patch    active    65536    345009    0    3.10e1    5.26
dpdk-process    any wait    0    0    4    1.22e4    0.00
memif-input    interrupt wai    4711    123    0    4.00e2    1.50
unix-epoll-input    polling    131072    0    0    9.00e2    0.00
"""
TWO_THREADS = "\n".join(
    ["Thread 0 vpp_main (lcore 2)", MAIN_THREAD_ONLY, "Thread 1 vpp_wk_0 (lcore 3)", MAIN_THREAD_ONLY]
)


def test_runtime_names_the_nodes_that_frames_went_through() -> None:
    (thread,) = parse_runtime(MAIN_THREAD_ONLY.splitlines())
    assert thread["thread"] == "vpp_main"
    assert thread["rates"][1].startswith("vector rates in 8.2145e4")
    assert list(thread["nodes"]) == ["af-packet-input", "l2-patch", "memif-input"]
    assert thread["nodes"]["l2-patch"] == {
        "state": "active",
        "calls": 65536,
        "vectors": 345009,
        "clocks_per_vector": 31.0,
        "vectors_per_call": 5.26,
    }


def test_runtime_keeps_threads_apart() -> None:
    main, worker = parse_runtime(TWO_THREADS.splitlines())
    assert main["thread"] == "Thread 0 vpp_main (lcore 2)"
    assert worker["thread"] == "Thread 1 vpp_wk_0 (lcore 3)"
    assert main["nodes"] == worker["nodes"] != {}


def test_an_answer_without_nodes_is_a_thread_without_nodes() -> None:
    assert parse_runtime([]) == [{"thread": "vpp_main", "rates": [], "nodes": {}}]


@pytest.fixture
def worker() -> Worker:
    left = WorkerPort("w-left", "02:00:00:00:00:01", "02:00:00:00:00:aa")
    right = WorkerPort("w-right", "02:00:00:00:00:02", "02:00:00:00:00:bb")
    placement, vfs = Placement((0,), (1,)), VirtualFunctionSettings()
    return Worker(None, "", left, right, None, 1500, placement, "/run", {}, vfs)  # type: ignore[arg-type]


@pytest.mark.parametrize("pods", [1, 2, 5])
def test_what_leaves_a_segment_to_the_right_enters_the_next_one_from_the_left(worker: Worker, pods: int) -> None:
    chain = segments(worker, ("host-w-left", "host-w-right"), pods)
    assert [each.number for each in chain] == list(range(pods + 1))
    for one, other in pairwise(chain):
        assert one.right.neighbour == other.left.mac
        assert other.left.neighbour == one.right.mac
    assert (chain[0].left.name, chain[0].left.neighbour) == ("host-w-left", worker.left.peer_mac)
    assert (chain[-1].right.name, chain[-1].right.neighbour) == ("host-w-right", worker.right.peer_mac)
    assert chain[0].right.name == "memif1/0"
    assert chain[1].left.name == "memif1/1"
    macs = [end.mac for each in chain for end in (each.left, each.right)]
    assert len(set(macs)) == 2 * pods + 2
