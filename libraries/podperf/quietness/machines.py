"""Watches the quietness of a machine of the testbed: of this machine, or of one over SSH."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from podperf.hosts.base import Host
from podperf.hosts.local import LocalHost
from podperf.hosts.ssh import SshHost
from podperf.quietness import cpu_speed
from podperf.quietness.best_times import remember, remembered
from podperf.quietness.cpu_speed import CpuSpeeds, Times
from podperf.quietness.watch import Quietness, read_proc_of


def watch(
    host: Host,
    *,
    sut: Sequence[int] = (),
    tester: Sequence[int] = (),
    workers: Sequence[Quietness] = (),
    undo: ExitStack,
) -> Quietness:
    """Watch the CPUs of the system under test and of the tester on a machine, and those of `workers` as well.

    The speed of the CPUs is watched if the machine has Python 3. After each look, the watching process stays on the
    last CPU of the list. A poller may occupy a CPU of the system under test. So the tester's CPUs stand last.
    """
    cpus = (*sut, *tester)
    if isinstance(host, LocalHost):
        speeds = CpuSpeeds(cpus, best=remembered())
        undo.callback(remember, speeds.best)
        return Quietness(cpus, speeds=speeds, workers=workers)
    ticks = int(host.ask("getconf", "CLK_TCK").stdout)
    own = host.servers if isinstance(host, SshHost) else set[int]()
    measure = _times_on(host, undo)
    there = CpuSpeeds(cpus, measure) if measure is not None else None
    return Quietness(cpus, own, read_proc_of(host), ticks, there, workers)


# This text is appended to cpu_speed.py, and both run on the other machine. They only need Python's standard library.
_ANSWER = """
import sys
for line in sys.stdin:
    print(*times_of(int(line)), flush=True)
"""


def _times_on(host: Host, undo: ExitStack) -> Callable[[int], Times] | None:
    """`cpu_speed.times_of` on that machine, or None if the machine has no Python."""
    if host.ask("sh", "-c", "command -v python3", check=False).exit_code:
        return None
    process = host.spawn("python3", "-I", "-c", Path(cpu_speed.__file__).read_text(encoding="utf-8") + _ANSWER)
    undo.callback(process.stop)

    def times_of(cpu: int) -> Times:
        process.send(str(cpu))
        return Times(*map(float, process.receive(10).split()))

    return times_of
