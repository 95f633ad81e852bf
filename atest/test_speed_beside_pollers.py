"""podperf finds out whether the machine is quiet while other programs poll."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from contextlib import ExitStack

from attempts import first
from podperf.hosts.local import LocalHost
from podperf.kernel.poller_sharing import take_turns
from podperf.quietness.cpu_times import times_of


def test_a_cpu_is_timed_ahead_of_pollers_that_take_turns_on_it() -> None:
    """Pollers leave 0.5 ms in 9 ms to other tasks. A copy that is cut into pieces would be slower than the memory."""
    cpu = max(os.sched_getaffinity(0))
    with ExitStack() as undo:
        loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
        for loop in loops:
            undo.callback(loop.wait)
            undo.callback(loop.kill)
            os.sched_setaffinity(loop.pid, {cpu})
        take_turns(LocalHost(), {cpu: [loop.pid for loop in loops]}, undo)
        # It moves there and back, and is left alone in between. The kernel's own work may spoil some attempts, not all.
        first(lambda preemptions: preemptions <= 2, lambda: preemptions_while_timing(cpu))


def preemptions_while_timing(cpu: int) -> int:
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw
    times_of(cpu)
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw - before
