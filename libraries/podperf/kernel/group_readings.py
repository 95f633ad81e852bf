"""Reads the kernel's files about a control group: its limits, and the CPU time and memory that it took. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

CPU, MEMORY = "cpu", "memory"  # the names of the controllers
MIB = 1 << 20

Files = Mapping[str, Sequence[str]]


def _first(files: Files, name: str, place: int = 0) -> float | None:
    """The number at this place in the first line of a file. None for a file that the kernel does not have."""
    words = " ".join(files.get(name, ())).split()
    return float(words[place]) if len(words) > place and words[place].isdigit() else None


def _counters(files: Files, name: str) -> dict[str, int]:
    rows = [line.split() for line in files.get(name, ())]
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}


def _cpu(quota: float | None, period: float | None, counters: Mapping[str, int], throttled: float) -> dict[str, Any]:
    return {
        "cpu": quota / period if quota is not None and period else None,
        "periods": counters.get("nr_periods"),
        "throttled_periods": counters.get("nr_throttled"),
        "throttled_seconds": throttled,
    }


def cpu_of_version_1(files: Files) -> dict[str, Any]:
    """CPU time in version 1 (kernel doc: scheduler/sched-bwc.rst). Counts nanoseconds."""
    counters = _counters(files, "cpu.stat")
    quota, period = _first(files, "cpu.cfs_quota_us"), _first(files, "cpu.cfs_period_us")
    return _cpu(quota, period, counters, counters.get("throttled_time", 0) / 1e9)


def cpu_of_version_2(files: Files) -> dict[str, Any]:
    """CPU time in version 2 (kernel doc: admin-guide/cgroup-v2.rst). Counts microseconds."""
    counters = _counters(files, "cpu.stat")
    quota, period = _first(files, "cpu.max"), _first(files, "cpu.max", 1)
    return _cpu(quota, period, counters, counters.get("throttled_usec", 0) / 1e6)


def _memory(limit: float | None, peak: float | None, refusals: float | None) -> dict[str, Any]:
    mib = [each / MIB if each is not None else None for each in (limit, peak)]
    counted = None if refusals is None else int(refusals)
    return {"memory_mib": mib[0], "memory_peak_mib": mib[1], "memory_refusals": counted}


def memory_of_version_1(files: Files) -> dict[str, Any]:
    """Memory in version 1 (kernel doc: admin-guide/cgroup-v1/memory.rst)."""
    names = ("memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.failcnt")
    return _memory(*(_first(files, each) for each in names))


def memory_of_version_2(files: Files) -> dict[str, Any]:
    """Memory in version 2. `memory.peak` came with Linux 5.19."""
    refusals = _counters(files, "memory.events").get("max")
    return _memory(_first(files, "memory.max"), _first(files, "memory.peak"), refusals)


READERS: Mapping[tuple[str, int], tuple[Sequence[str], Callable[[Files], dict[str, Any]]]] = MappingProxyType(
    {
        (CPU, 1): (("cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.stat"), cpu_of_version_1),
        (CPU, 2): (("cpu.max", "cpu.stat"), cpu_of_version_2),
        (MEMORY, 1): (("memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.failcnt"), memory_of_version_1),
        (MEMORY, 2): (("memory.max", "memory.peak", "memory.events"), memory_of_version_2),
    }
)
