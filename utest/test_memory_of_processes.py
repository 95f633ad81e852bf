"""The pages of a process's memory are read back from smaps, and a chain in other pages than wanted is not judged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.polling_pods import memories
from podperf.errors import Unavailable
from podperf.kernel.memory import MappedPages, pages_of, parse_smaps
from podperf.model import Chain, PageSize
from podperf.testbed.system_under_test import refuse_other_pages
from scripted_host import ScriptedHost

# Areas as Linux 6.18 shows them: a heap with a transparent hugepage, and a file in hugepages, which is not in Rss.
HEAP = """\
55d0c0a00000-55d0c0e00000 rw-p 00000000 00:00 0                          [heap]
Size:               4096 kB
KernelPageSize:        4 kB
MMUPageSize:           4 kB
Rss:                3072 kB
Pss:                3072 kB
AnonHugePages:      2048 kB
ShmemPmdMapped:        0 kB
FilePmdMapped:         0 kB
Shared_Hugetlb:        0 kB
Private_Hugetlb:       0 kB
THPeligible:           1
VmFlags: rd wr mr mw me ac sd
"""
HUGE = """\
100000000-108000000 rw-s 00000000 00:11 4711                             /memfd:rtemap_0 (deleted)
Size:             {size} kB
KernelPageSize:  {page} kB
MMUPageSize:     {page} kB
Rss:                   0 kB
AnonHugePages:         0 kB
Shared_Hugetlb:    {shared} kB
Private_Hugetlb:   {private} kB
VmFlags: rd wr sh mr mw me ms de ht sd
"""


def test_memory_is_told_apart_by_the_size_of_its_pages() -> None:
    text = HEAP + HUGE.format(size=131072, page=2048, shared=0, private=131072)
    assert parse_smaps(text) == MappedPages({2048: 131072}, ordinary_kib=1024, transparent_kib=2048)


@given(st.lists(st.tuples(st.sampled_from([2048, 1048576]), st.integers(0, 64), st.integers(0, 64)), max_size=6))
def test_all_areas_of_one_size_add_up(areas: list[tuple[int, int, int]]) -> None:
    text = "".join(
        HUGE.format(size=page * (one + other), page=page, shared=page * one, private=page * other)
        for page, one, other in areas
    )
    found = parse_smaps(text + HEAP)
    wanted = {size: sum(page * (a + b) for page, a, b in areas if page == size) for size in (2048, 1048576)}
    assert found.hugepages_kib == {size: amount for size, amount in wanted.items() if amount}
    assert (found.ordinary_kib, found.transparent_kib) == (1024, 2048)


def test_a_thread_of_the_kernel_and_an_ended_process_have_no_memory() -> None:
    assert pages_of(ScriptedHost({"/proc/12/smaps": ""}), 12) == MappedPages()
    assert pages_of(ScriptedHost(), 13) == MappedPages()


def test_the_record_has_the_size_of_the_pages_as_a_word() -> None:
    assert MappedPages({1048576: 1048576}, 5, 0).as_record() == {
        "hugepages_mib": {"1024": 1024},
        "ordinary_kib": 5,
        "transparent_kib": 0,
    }


IN_TWO_MIB, ORDINARY = MappedPages({2048: 131072}, 4096), MappedPages({}, 200000)


def test_memory_in_the_wanted_pages_is_accepted() -> None:
    refuse_other_pages({"pod1": IN_TWO_MIB, "VPP": ORDINARY}, ["pod1"], PageSize.TWO_MIB)
    refuse_other_pages({"pod1": ORDINARY}, ["pod1"], PageSize.NONE)
    refuse_other_pages({}, [], PageSize.ONE_GIB)  # the kernel forwards


@pytest.mark.parametrize(
    ("memory", "size", "words"),
    [
        (ORDINARY, PageSize.TWO_MIB, "pod1 should have its memory in pages of 2 MiB, and has no hugepages"),
        (IN_TWO_MIB, PageSize.NONE, "in ordinary pages, and has 128 MiB in pages of 2 MiB"),
        (IN_TWO_MIB, PageSize.ONE_GIB, "in pages of 1 GiB, and has 128 MiB in pages of 2 MiB"),
        (MappedPages({2048: 2048, 1048576: 1048576}), PageSize.ONE_GIB, "and has 2 MiB in pages of 2 MiB"),
    ],
)
def test_memory_in_other_pages_is_not_judged(memory: MappedPages, size: PageSize, words: str) -> None:
    with pytest.raises(Unavailable, match=words):
        refuse_other_pages({"pod1": memory}, ["pod1"], size)


def test_switch_and_pods_have_pages_of_their_own() -> None:
    assert memories(DATA_PLANES["ovs-dpdk"].switch_memory, Chain("ovs-dpdk", 2)) == [256, 128, 128]
    assert memories(DATA_PLANES["af-xdp"].switch_memory, Chain("af-xdp", 1)) == [128]
