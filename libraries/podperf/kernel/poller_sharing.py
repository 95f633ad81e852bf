"""Polling threads that share a CPU take turns. A helper rotates their priority.

The scheduler's own time slices last milliseconds. In that time a ring of a few hundred frames overflows, and the result
describes the scheduler. The helper `podperf-rotation` (tester/rotation.c) gives each poller a slice that is short
enough for its ring. The helper makes regular pauses for other tasks on the CPU, and ends with its parent process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from podperf.errors import PodperfError
from podperf.hosts.base import Host, Process
from podperf.hosts.programs import on_host
from podperf.kernel.thread_time import CpuUser
from podperf.kernel.threads import held_to, preemptions, scheduling

ROTATION_BINARY = Path(__file__).parents[3] / "build" / "tester" / "podperf-rotation"
SLICE = 100  # us; at 1 Mpps, 100 frames arrive in this time, and a veth's ring holds 256
START_TIMEOUT = 5.0  # seconds
REFUSED = "refused"  # the line of the helper if a thread may not have real-time priority
# Section 5 of the draft: "Special capabilities SHOULD NOT exist in the DUT/SUT specifically for benchmarking purposes."
SPECIAL_CAPABILITY = (
    "podperf-rotation runs on CPU {cpu} of the worker and gives {pollers} polling threads turns of {slice} us"
)


@dataclass(frozen=True)
class TurnsOnCpu:
    """The pollers of one CPU. `rotation` is the helper that gives them turns; None for a single poller, and without
    `precedence`."""

    host: Host
    cpu: int
    pollers: Sequence[int]
    rotation: Process | None
    precedence: bool = True

    def check(self) -> None:
        """Raises PodperfError if the helper has ended, because the pollers then no longer take turns."""
        if self.rotation is not None and not self.rotation.alive():
            raise PodperfError(f"podperf-rotation, which gives the pollers on CPU {self.cpu} turns, has ended")

    def describe(self) -> dict[str, Any]:
        """The number of pollers of this CPU, and how they share it. Read back from the kernel: the CPU's NUMA node, the
        CPUs where the pollers may run, and how often each was preempted."""
        how = "alone" if self.precedence else "as the scheduler divides its time among all processes"
        special: dict[str, Any] = {}
        if self.rotation is not None:
            how = f"in turns of {SLICE} us, by rotated real-time priority"
            said = SPECIAL_CAPABILITY.format(cpu=self.cpu, pollers=len(self.pollers), slice=SLICE)
            special = {"special_capability": said}
        else:  # that of threads which take turns changes all the time
            special = {"scheduling": scheduling(self.host, self.pollers)}
        node = self.host.ask("sh", "-c", f"ls -d /sys/devices/system/cpu/cpu{self.cpu}/node*", check=False).stdout
        return {
            "cpu": self.cpu,
            "numa_node": int(node.strip().rpartition("node")[2]) if node else None,
            "pollers": len(self.pollers),
            "held_to": held_to(self.host, self.pollers),
            "shared": how,
            "preemptions": preemptions(self.host, self.pollers),
            **special,
        }


@dataclass(frozen=True)
class Turns:
    """The pollers of all CPUs with pollers."""

    cpus: Sequence[TurnsOnCpu] = ()

    def check(self) -> None:
        for cpu in self.cpus:
            cpu.check()

    def told(self, user: CpuUser) -> CpuUser:
        """The same, without the cycles of a poller that shares its CPU: they also pass in the turns of the others."""
        if user.cycles is None or not any(cpu.rotation for cpu in self.cpus):
            return user
        sharing = {thread for cpu in self.cpus if cpu.rotation is not None for thread in cpu.pollers}
        return replace(user, cycles=None) if sharing & set(user.threads()) else user

    def describe(self) -> list[dict[str, Any]]:
        return [cpu.describe() for cpu in self.cpus]


def take_turns(host: Host, pollers: Mapping[int, Sequence[int]], undo: ExitStack, *, precedence: bool = True) -> Turns:
    """Let the pollers of each CPU (thread numbers by CPU number) take turns. A lone poller gets the nice value -20.

    Without `precedence`, all of them are ordinary processes, and the scheduler divides the CPU's time. So they are if
    the control group of a container allows no real-time priority.
    """
    share = _take_turns if precedence else _share_as_others
    return Turns([share(host, cpu, threads, undo) for cpu, threads in pollers.items()])


def _share_as_others(host: Host, cpu: int, threads: Sequence[int], undo: ExitStack) -> TurnsOnCpu:
    for thread in threads:  # a receive thread has real-time priority from its set-up
        host.do("chrt", "--other", "--pid", "0", str(thread))
    return TurnsOnCpu(host, cpu, threads, None, precedence=False)


def _take_turns(host: Host, cpu: int, threads: Sequence[int], undo: ExitStack) -> TurnsOnCpu:
    if len(threads) < 2:
        for thread in threads:
            host.do("renice", "--priority", "-20", "--pid", str(thread))
        return TurnsOnCpu(host, cpu, threads, None)
    rotation = host.spawn(on_host(host, ROTATION_BINARY), str(cpu), str(SLICE), *map(str, threads))
    undo.callback(rotation.stop)
    try:
        if rotation.receive(START_TIMEOUT, assumed="") == REFUSED:
            return _share_as_others(host, cpu, threads, undo)
    except PodperfError as error:
        raise PodperfError(f"the pollers on CPU {cpu} cannot take turns: {error}") from error
    return TurnsOnCpu(host, cpu, threads, rotation)
