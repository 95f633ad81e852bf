"""Measures how fast a CPU does a fixed piece of work now, and how fast it copies memory.

This text also runs on other machines, where Python may be 3.6. So it has no `from __future__ import annotations`, which
Python 3.6 does not know, and needs only the standard library.
"""

import mmap
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_ROUNDS = 12_000  # about half a millisecond of work
_REPEATS = 3  # the fastest counts, because an interrupt can slow one
_PATIENCE = 0.01  # seconds of wall clock for all repeats
_COPIED = 32 << 20  # bytes: about three milliseconds
_PRIORITY = 50  # real-time priority, above the pollers that take turns (tester/rotation.c)


class Times(NamedTuple):
    """CPU seconds for a fixed piece of work, and for a copy of memory."""

    work: float
    memory: float


def times_of(cpu: int) -> Times:
    """The times of this CPU now: the shortest of a few for the work, and a single one for the copy.

    The measurement has real-time priority above the pollers, which leave other tasks only 0.5 ms in 9 ms.
    """
    allowed, policy, priority = os.sched_getaffinity(0), os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        with suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
        os.sched_setaffinity(0, {cpu})
        began = time.monotonic()
        best = _work()
        for _ in range(_REPEATS - 1):
            if time.monotonic() - began > _PATIENCE:  # without real-time priority this can take long, and the run waits
                break
            best = min(best, _work())
        return Times(best, _copy(_memory_near(cpu)))
    finally:
        os.sched_setaffinity(0, allowed)
        with suppress(PermissionError):
            os.sched_setscheduler(0, policy, priority)


def _work() -> float:
    began = time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)
    total = 0
    for number in range(_ROUNDS):
        total += number
    return time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) - began


_memory = {}  # type: dict[str, mmap.mmap]


def _memory_near(cpu: int) -> mmap.mmap:
    """Memory for two copies on the NUMA node of this CPU. Linux puts a page on the node of the CPU that touches it."""
    node = ",".join(sorted(each.name for each in Path(f"/sys/devices/system/cpu/cpu{cpu}").glob("node*")))
    if node not in _memory:
        _memory[node] = mmap.mmap(-1, 4 * _COPIED)
        with suppress(OSError, AttributeError):  # a kernel without huge pages, a Python before 3.8
            _memory[node].madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(0, 4 * _COPIED, mmap.PAGESIZE):
            _memory[node][page] = 1
    return _memory[node]


def _copy(memory: mmap.mmap) -> float:
    """CPU seconds of one copy.

    Another copy, which is not timed, comes first. It fills the caches, so that the timed copy always starts from the
    same cache state.
    """
    memory.move(0, _COPIED, _COPIED)
    began = time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)
    memory.move(2 * _COPIED, 3 * _COPIED, _COPIED)
    return time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) - began
