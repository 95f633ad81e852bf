"""Hugepages of the real kernel: reserved, given back, also when some are in use at that moment."""

from __future__ import annotations

import mmap
import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from chains import local_testbed, need
from podperf.errors import Unavailable
from podperf.hosts.local import LocalHost
from podperf.kernel import hugepages
from podperf.kernel.memory import pages_of
from podperf.model import Chain, FrameSize, PageSize
from podperf.pods.forwarders.base import POD_MEMORY
from podperf.testbed.run_lock import RunLock
from podperf.testbed.scenarios import Placed
from podperf.testbed.system_under_test import memory_of, refuse_other_pages
from podperf.testbed.testbed import Testbed

MAP_HUGETLB = 0x40000  # mmap(2)
PAGE = PageSize.TWO_MIB * 2**20


@pytest.fixture
def host() -> LocalHost:
    host = LocalHost()
    if not hugepages.offered(host):
        pytest.skip("this kernel has no hugepages")
    return host


def _pages() -> int:
    return int(Path(hugepages.folder(PageSize.TWO_MIB), "nr_hugepages").read_text())


@pytest.mark.usefixtures("machine_as_before")
def test_pages_that_are_still_in_use_when_they_are_given_back_are_nobodys_afterwards(
    host: LocalHost,
) -> None:
    before = _pages()
    with ExitStack() as first:
        hugepages.reserve(host, PageSize.TWO_MIB, [4 * PageSize.TWO_MIB], first)
        held = mmap.mmap(-1, PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_HUGETLB)
        held[0] = 1
    with ExitStack() as second:
        hugepages.reserve(host, PageSize.TWO_MIB, [4 * PageSize.TWO_MIB], second)
        held.close()
    assert _pages() == before


@pytest.mark.usefixtures("machine_as_before")
def test_pages_of_a_process_are_read_back_by_their_size(host: LocalHost) -> None:
    with ExitStack() as undo:
        hugepages.reserve(host, PageSize.TWO_MIB, [6], undo)
        with mmap.mmap(-1, 3 * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_HUGETLB) as held:
            held[0] = held[PAGE] = 1  # the third page is mapped, and was never touched
            found = pages_of(host, os.getpid())
        assert found.hugepages_kib == {2048: 4096}
        assert found.ordinary_kib > 0
    assert pages_of(host, os.getpid()).hugepages_kib == {}


def _placed(testbed: Testbed, chain: Chain, size: PageSize) -> Placed:
    return Placed(testbed.workers[0].placement, testbed.cpu_plans(chain), pages=size)


@pytest.mark.usefixtures("machine_as_before", "host")
@pytest.mark.parametrize(
    ("data_plane", "pods", "processes", "size"),
    [
        *(("af-xdp", 1, 1, size) for size in PageSize),
        *(("memif", 2, 2, size) for size in (PageSize.TWO_MIB,)),
        *(("ovs-dpdk", 1, 2, size) for size in (PageSize.TWO_MIB,)),
        *(
            pytest.param(*chain, size, marks=pytest.mark.slow)
            for chain in (("memif", 2, 2), ("ovs-dpdk", 1, 2))
            for size in PageSize
            if size is not PageSize.TWO_MIB
        ),
    ],
)
def test_pods_and_switch_have_their_memory_in_pages_of_the_chosen_size(
    data_plane: str, pods: int, processes: int, size: PageSize
) -> None:
    need(data_plane)
    testbed, chain = local_testbed(), Chain(data_plane, pods)
    with RunLock():
        try:
            testbed.demand_pages(chain, size)
        except Unavailable as reason:
            pytest.skip(str(reason))
        with testbed.build_placed(_placed(testbed, chain, size), chain, FrameSize.parse(64)) as sut:
            found = memory_of(sut)
            refuse_other_pages(found, [application.name for application in sut.applications], size)
            in_hugepages = [each for each in found.values() if each.hugepages_kib]
            assert len(in_hugepages) == (processes if size else 0)
            sizes = {application["hugepages_of_mib"] for application in sut.describe()["applications"].values()}
            assert sizes == {size.value or None}


@pytest.mark.usefixtures("machine_as_before", "host")
def test_pages_of_a_control_are_reserved_and_left_unused() -> None:
    need("linux-bridge")
    testbed, chain, before = local_testbed(), Chain("linux-bridge", 1), _pages()
    placed = _placed(testbed, chain, PageSize.TWO_MIB)
    with RunLock(), testbed.build_placed(placed, chain, FrameSize.parse(64)) as sut:
        assert memory_of(sut) == {}
        free, _ = hugepages.free(testbed.workers[0].host)[0]
        assert free >= POD_MEMORY // PageSize.TWO_MIB
    assert _pages() == before
