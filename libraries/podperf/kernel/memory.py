"""The memory of processes and of the kernel of a host, as the kernel tells it (proc(5))."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from podperf.hosts.base import Host

_STATUS = re.compile(r"^/proc/(\d+)/status:(Name|Tgid|VmRSS):[ \t]*(.*)$", re.MULTILINE)
_KIB = 1024
# An area of memory begins with its addresses. The other lines of the area are `Name:   number kB`.
_AREA = re.compile(r"^[0-9a-f]+-[0-9a-f]+ ", re.MULTILINE)
_FIELD = re.compile(r"^(\w+):\s+(\d+) kB", re.MULTILINE)
_IN_HUGEPAGES = ("Shared_Hugetlb", "Private_Hugetlb")
_TRANSPARENT = ("AnonHugePages", "ShmemPmdMapped", "FilePmdMapped")


@dataclass(frozen=True)
class MappedPages:
    """The memory of one process in KiB: in hugepages by the size of their pages in KiB, and all other memory.

    The other memory is in ordinary pages, or in `transparent` hugepages that the kernel gave without being asked.
    """

    hugepages_kib: Mapping[int, int] = field(default_factory=dict)
    ordinary_kib: int = 0
    transparent_kib: int = 0

    def as_record(self) -> dict[str, Any]:
        """The memory as records have it: `{"hugepages_mib": {"2": 128}, …}`."""
        return {
            "hugepages_mib": {f"{size / 1024:g}": amount / 1024 for size, amount in self.hugepages_kib.items()},
            "ordinary_kib": self.ordinary_kib,
            "transparent_kib": self.transparent_kib,
        }


def pages_of(host: Host, process: int) -> MappedPages:
    """The pages that a process has mapped and touched. Empty if it has ended, or has no memory of its own."""
    try:
        return parse_smaps(host.get(f"/proc/{process}/smaps").decode(errors="replace"))
    except (FileNotFoundError, ProcessLookupError):
        return MappedPages()


def parse_smaps(text: str) -> MappedPages:
    """The pages in the text of a `smaps` file.

    KernelPageSize of an area in hugepages is the size of its pages. Its memory is not in Rss, but in fields of its own.
    """
    hugepages: Counter[int] = Counter()
    ordinary = transparent = 0
    for area in _AREA.split(text)[1:]:
        fields = {name: int(value) for name, value in _FIELD.findall(area)}
        if held := _sum(fields, _IN_HUGEPAGES):
            hugepages[fields.get("KernelPageSize", 0)] += held
        given = _sum(fields, _TRANSPARENT)
        transparent += given
        ordinary += fields.get("Rss", 0) - given
    return MappedPages(dict(sorted(hugepages.items())), ordinary, transparent)


def _sum(fields: Mapping[str, int], names: Iterable[str]) -> int:
    return sum(fields.get(name, 0) for name in names)


def resident_memory(host: Host, threads: Sequence[int]) -> Mapping[str, int]:
    """The resident bytes of each process to which these threads belong, as `testpmd (4711)`.

    Threads of the kernel have no memory of their own. They are left out, as are threads that have ended.
    """
    files = [f"/proc/{each}/status" for each in threads]
    if not files:
        return {}
    said = host.ask("grep", "-HE", "^(Name|Tgid|VmRSS):", "/dev/null", *files, check=False).stdout
    found: dict[str, dict[str, str]] = {}
    for thread, name, value in _STATUS.findall(said):
        found.setdefault(thread, {})[name] = value.strip()
    named: dict[str, str] = {}  # by process; the thread with the number of the process has its name
    memory: dict[str, int] = {}
    for thread, fields in found.items():
        if "VmRSS" in fields and "Tgid" in fields:
            process = fields["Tgid"]
            memory[process] = int(fields["VmRSS"].split()[0]) * _KIB
            if thread == process or process not in named:
                named[process] = fields.get("Name", "?")
    return {f"{named[process]} ({process})": amount for process, amount in memory.items()}


def kernel_memory(host: Host) -> int | None:
    """The bytes of the kernel's own objects that it cannot give up now (SUnreclaim). None if it does not tell."""
    said = host.ask("grep", "^SUnreclaim:", "/proc/meminfo", check=False).stdout.split()
    return int(said[1]) * _KIB if len(said) > 1 else None
