"""How fast a CPU really is at this moment, by a fixed piece of work.

On a virtual machine, or beside a busy SMT sibling, a CPU can lose half of its speed with no stolen time to show for it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping

_ROUNDS = 12_000  # about half a millisecond of work
_REPEATS = 3  # of which the fastest counts: an interrupt spoils one
_PATIENCE = 0.01  # seconds of wall clock


def work_time(cpu: int) -> float:
    """CPU seconds that a fixed piece of work takes on this CPU, the best of a few."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        began = time.monotonic()
        best = _work()
        for _ in range(_REPEATS - 1):
            if time.monotonic() - began > _PATIENCE:  # pollers leave little of this CPU: do not hold up the run
                break
            best = min(best, _work())
        return best
    finally:
        os.sched_setaffinity(0, allowed)


def _work() -> float:
    began = time.thread_time()
    total = 0
    for number in range(_ROUNDS):
        total += number
    return time.thread_time() - began


class CpuSpeeds:
    """Speeds of some CPUs, each as a share of the best that this object has seen of that CPU, or was told of.

    `best` are the shortest times of the work so far, in CPU seconds.
    """

    def __init__(
        self,
        cpus: Collection[int],
        measure: Callable[[int], float] = work_time,
        best: Mapping[int, float] | None = None,
    ) -> None:
        self._cpus, self._measure = tuple(cpus), measure
        self.best = dict(best or {})

    def sample(self) -> Mapping[int, float]:
        """The share, 0 to 1, for each CPU; 1 when it was never faster."""
        shares = {}
        for cpu in self._cpus:
            taken = self._measure(cpu)
            self.best[cpu] = min(taken, self.best.get(cpu, taken))
            shares[cpu] = self.best[cpu] / taken if taken > 0 else 1.0
        return shares
