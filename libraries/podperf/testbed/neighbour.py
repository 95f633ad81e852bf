"""The neighbour: work on the worker that competes with a chain on purpose, on the CPUs that an isolation level leaves.

The work is that of two programs that every Linux host has (GNU coreutils). Each CPU gets one process. The processes are
children of the run like all others, and end with it, also after a kill.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from podperf.cpu_lists import format_cpu_list
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host, Process
from podperf.hosts.host_facts import parse_meminfo
from podperf.hosts.linux import await_success
from podperf.kernel.thread_time import run_times
from podperf.kernel.threads import held_to, scheduling

HOG_MIB = 256  # of one memory hog: more than the caches of a server's CPU
SPARE_MIB = 1024  # that a memory hog leaves to the chain and to everything else
START_TIMEOUT = 30.0  # seconds, on a CPU that a poller keeps busy


class NeighbourKind(StrEnum):
    """What a neighbour does."""

    BUSY = "busy"
    MEMORY_HOG = "memory hog"


# A hash of endless zeros takes all the CPU time that it gets, and little memory. dd fills its block again and again.
COMMANDS: Mapping[NeighbourKind, Sequence[str]] = MappingProxyType(
    {
        NeighbourKind.BUSY: ("sha256sum", "/dev/zero"),
        NeighbourKind.MEMORY_HOG: ("dd", "if=/dev/zero", "of=/dev/null", f"bs={HOG_MIB}M"),
    }
)


@dataclass(frozen=True)
class NeighbourPlan:
    """A neighbour that competes with a chain: what it does, and the CPUs on which its processes may run."""

    kind: NeighbourKind
    cpus: tuple[int, ...]

    def as_record(self) -> dict[str, Any]:
        """The plan, as records have it."""
        return {"kind": self.kind, "cpus": list(self.cpus)}


@dataclass(frozen=True)
class Neighbour:
    """A neighbour that runs. `since` is when it began, in monotonic seconds, and `before` its CPU seconds then."""

    plan: NeighbourPlan
    host: Host
    processes: Sequence[Process]
    since: float
    before: float

    def check(self) -> None:
        """Raises PodperfError if a process of the neighbour has ended. The chain was then alone."""
        for each in self.processes:
            if not each.alive():
                said = each.errors().strip()
                raise PodperfError(f"the neighbour on {self.host.name} has ended{': ' if said else ''}{said}")

    def cpus_taken(self) -> float:
        """The number of CPUs that the neighbour has kept busy since it began: 0.5 is half a CPU, 2 are two CPUs."""
        return (_cpu_seconds(self.host, self.processes) - self.before) / (time.monotonic() - self.since)

    def describe(self) -> Mapping[str, Any]:
        """The program. Read back from the kernel: CPUs and scheduling of its processes."""
        numbers = [each.pid for each in self.processes]
        return {
            "kind": self.plan.kind,
            "program": " ".join(COMMANDS[self.plan.kind]),
            "processes": len(numbers),
            "held_to": held_to(self.host, numbers),
            "scheduling": scheduling(self.host, numbers),
        }


def start_neighbour(host: Host, plan: NeighbourPlan, undo: ExitStack) -> Neighbour:
    """Start a neighbour on the worker, until `undo`. Returns when all of its processes work."""
    command = COMMANDS[plan.kind]
    processes = []
    for _ in plan.cpus:
        process = host.spawn(*command, cpus=plan.cpus)
        undo.callback(process.stop)
        processes.append(process)
    for process in processes:  # until then the process may be taskset, which may still run on any CPU
        if not await_success(host, process, START_TIMEOUT, "grep", "-qx", command[0], f"/proc/{process.pid}/comm"):
            raise PodperfError(f"the neighbour did not start on {host.name}: {process.errors().strip() or command[0]}")
    return Neighbour(plan, host, processes, time.monotonic(), _cpu_seconds(host, processes))


def refuse_too_large(host: Host, plan: NeighbourPlan) -> None:
    """Raises Unavailable if the memory of the worker does not suffice for this neighbour."""
    if plan.kind is not NeighbourKind.MEMORY_HOG:
        return
    wanted = HOG_MIB * len(plan.cpus) + SPARE_MIB
    found = parse_meminfo(host.get("/proc/meminfo").decode()).get("MemAvailable", 0) >> 20
    if found < wanted:
        raise Unavailable(
            f"a memory hog on CPU {format_cpu_list(plan.cpus)} takes {HOG_MIB * len(plan.cpus)} MiB, and "
            f"{SPARE_MIB} MiB must be left; {host.name} has {found} MiB"
        )


def _cpu_seconds(host: Host, processes: Sequence[Process]) -> float:
    times = run_times(host, [each.pid for each in processes])
    return sum(each.nanoseconds for each in times.values()) / 1e9
