"""The pages in which the memory of a chain's processes really is."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from podperf.errors import Unavailable
from podperf.kernel.pages import MappedPages, pages_of
from podperf.model import PageSize
from podperf.testbed.system_under_test import SystemUnderTest


def memory_of(sut: SystemUnderTest) -> Mapping[str, MappedPages]:
    """The memory of each process that handles frames, by the names of its part: `pod1`, `Open vSwitch`.

    Empty if the kernel handles them, which has no pages of its own in user space.
    """
    found: dict[str, MappedPages] = {}
    for part in sut.data_planes:
        for user in part.cpu_users or ():
            for thread in user.threads()[:1]:  # all threads of a process share its memory
                if (pages := pages_of(user.host, thread)) != MappedPages():
                    found[user.name] = pages
    return found


def refuse_other_pages(found: Mapping[str, MappedPages], applications: Collection[str], size: PageSize) -> None:
    """Raises Unavailable if an application has no hugepages of this size, or if a process has some of another size."""
    for name, memory in found.items():
        others = sorted(each // 1024 for each in memory.hugepages_kib if each != size * 1024)
        if others:
            has = ", ".join(
                f"{memory.hugepages_kib[each * 1024] // 1024} MiB in pages of {each} MiB" for each in others
            )
            raise Unavailable(f"{name} should have its memory in {size.words}, and has {has}")
        if size and name in applications and not memory.hugepages_kib:
            raise Unavailable(f"{name} should have its memory in {size.words}, and has no hugepages")
