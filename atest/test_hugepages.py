"""Hugepages of the real kernel: reserved, given back, also when some are in use at that moment."""

from __future__ import annotations

import mmap
import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from podperf.hosts.local import LocalHost
from podperf.kernel import hugepages
from podperf.kernel.pages import pages_of
from podperf.model import PageSize

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
