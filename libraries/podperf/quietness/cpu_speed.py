"""How fast a CPU really is at this moment, by a fixed piece of work, and how fast it copies memory.

On a virtual machine, or beside a busy SMT sibling, a CPU can lose half of its speed with no stolen time to show for it.
Neighbours that share its cache and memory slow what it forwards, though not what it computes.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_ROUNDS = 12_000  # about half a millisecond of work
_REPEATS = 3  # of which the fastest counts: an interrupt spoils one
_PATIENCE = 0.01  # seconds of wall clock
_COPIED = 32 << 20  # bytes: about three milliseconds
_PRIORITY = 50  # of real time, above that of pollers which take turns (tester/rotation.c)


class Times(NamedTuple):
    """CPU seconds that a fixed piece of work takes, and a copy of memory."""

    work: float
    memory: float


def times_of(cpu: int) -> Times:
    """What this CPU takes now: for the work the best of a few, for the copy one.

    In real time, ahead of pollers, which leave half a millisecond in nine.
    """
    allowed, policy, priority = os.sched_getaffinity(0), os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        with suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
        os.sched_setaffinity(0, {cpu})
        began = time.monotonic()
        best = _work()
        for _ in range(_REPEATS - 1):
            if time.monotonic() - began > _PATIENCE:  # where real time is not permitted: do not hold up the run
                break
            best = min(best, _work())
        return Times(best, _copy(_memory_near(cpu)))
    finally:
        os.sched_setaffinity(0, allowed)
        with suppress(PermissionError):
            os.sched_setscheduler(0, policy, priority)


def _work() -> float:
    began = time.thread_time()
    total = 0
    for number in range(_ROUNDS):
        total += number
    return time.thread_time() - began


_memory: dict[str, mmap.mmap] = {}


def _memory_near(cpu: int) -> mmap.mmap:
    """Room for two copies on this CPU's NUMA node, where the pages are that the CPU itself touches first."""
    node = ",".join(sorted(each.name for each in Path(f"/sys/devices/system/cpu/cpu{cpu}").glob("node*")))
    if node not in _memory:
        _memory[node] = mmap.mmap(-1, 4 * _COPIED)
        with suppress(OSError, AttributeError):  # a kernel without huge pages, a Python before 3.8
            _memory[node].madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(0, 4 * _COPIED, mmap.PAGESIZE):
            _memory[node][page] = 1
    return _memory[node]


def _copy(memory: mmap.mmap) -> float:
    """The first copy, not timed, takes the place in the caches that the second had: just after another look the second
    would take two thirds of what it takes after a trial, and that best would make every trial a noisy one."""
    memory.move(0, _COPIED, _COPIED)
    began = time.thread_time()
    memory.move(2 * _COPIED, 3 * _COPIED, _COPIED)
    return time.thread_time() - began


class CpuSpeeds:
    """Speeds of some CPUs, each as a share of the best that this object has seen of that CPU, or was told of.

    `best` are the shortest times so far.
    """

    def __init__(
        self,
        cpus: Collection[int],
        measure: Callable[[int], Times] = times_of,
        best: Mapping[int, Times] | None = None,
    ) -> None:
        self._cpus, self._measure = tuple(cpus), measure
        self.best = dict(best or {})

    def sample(self) -> Mapping[int, tuple[float, float]]:
        """For each CPU the speed of its work and of its memory, 0 to 1; 1 when it was never faster."""
        shares = {}
        for cpu in self._cpus:
            taken = self._measure(cpu)
            self.best[cpu] = Times(*map(min, taken, self.best.get(cpu, taken)))
            shares[cpu] = _share(self.best[cpu].work, taken.work), _share(self.best[cpu].memory, taken.memory)
        return shares


def _share(best: float, taken: float) -> float:
    return best / taken if taken > 0 else 1.0
