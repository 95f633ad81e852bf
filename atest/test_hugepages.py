"""Hugepages of the real kernel: reserved, given back, also when some are in use at that moment."""

from __future__ import annotations

import mmap
from contextlib import ExitStack
from pathlib import Path

import pytest

from podperf.hosts.local import LocalHost
from podperf.kernel import hugepages

MAP_HUGETLB = 0x40000  # mmap(2)
PAGE = hugepages.PAGE_MIB * 2**20


@pytest.fixture
def host() -> LocalHost:
    host = LocalHost()
    if not hugepages.offered(host):
        pytest.skip("this kernel has no hugepages")
    return host


def _pages() -> int:
    return int(Path(hugepages.FOLDER, "nr_hugepages").read_text())


@pytest.mark.usefixtures("machine_as_before")
def test_pages_that_are_still_in_use_when_they_are_given_back_are_nobodys_afterwards(
    host: LocalHost,
) -> None:
    before = _pages()
    with ExitStack() as first:
        hugepages.reserve(host, 4 * hugepages.PAGE_MIB, first)
        held = mmap.mmap(-1, PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_HUGETLB)
        held[0] = 1
    with ExitStack() as second:
        hugepages.reserve(host, 4 * hugepages.PAGE_MIB, second)
        held.close()
    assert _pages() == before
