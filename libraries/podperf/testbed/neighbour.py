"""The neighbour: work on the worker that competes with a chain on purpose, on the CPUs that an isolation level leaves.

The work is that of two programs that every Linux host has (GNU coreutils), or another chain under load. Each CPU gets
one process, or one such chain. The processes end with the run, also after a kill. A control group can limit what all of
them take together.

In a chain under load, a tester sends through one pod, as fast as the two can together. Each frame is received and
forwarded on the CPU that sends it. So the CPU time of the tester is that of the whole chain, except for the work that
the kernel leaves to the thread `ksoftirqd` of the same CPU.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from podperf.allocation import UNLIMITED, PodLimits
from podperf.cpu_lists import format_cpu_list
from podperf.cpu_plan import plan_cpus
from podperf.dataplanes.base import Worker, WorkerPort
from podperf.dataplanes.routed import Routed
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host, Process
from podperf.hosts.host_facts import parse_meminfo
from podperf.hosts.linux import add_veth, await_success, mac_address
from podperf.hosts.namespaces import PREFIX, add_namespace
from podperf.hosts.programs import on_host
from podperf.hosts.run_directory import RUN_DIRECTORY
from podperf.kernel.control_groups import ControlGroup, make_group, missing
from podperf.kernel.thread_time import run_times
from podperf.kernel.threads import held_to, receive_at_once, scheduling
from podperf.model import (
    BOTH_DIRECTIONS,
    AddressedTraffic,
    Chain,
    FrameSize,
    Placement,
    TrafficProfile,
    VirtualFunctionSettings,
)
from podperf.pods import POD_RUNTIMES
from podperf.pods.forwarders.base import ORDINARY_MTU
from podperf.testbed.machines import PodsOfChain
from podperf.testers.base import TesterPort
from podperf.testers.software import TESTER_BINARY, SoftwareTester

PROGRAM = "podperf-tester, through one pod of the data plane routed, in both directions"
START_TIMEOUT = 30.0  # seconds, on a CPU that a poller keeps busy
# A line of /proc/net/dev (proc(5)) about an interface of this name that has sent frames.
_HAS_SENT = r"^ *{}: *([0-9]+ +){{9}}[1-9]"


def start_loaded_chain(
    host: Host, number: int, cpus: Sequence[int], launcher: Sequence[str], undo: ExitStack
) -> Process:
    """Set the chain of this number up until `undo`. Returns its tester when frames have crossed in both directions.

    The tester is an ordinary process on `cpus`, which `launcher` starts. PodperfError if no frames cross.
    """
    name = f"neighbour{number}"
    outside, inside = (add_namespace(host, f"{name}-{part}", undo) for part in ("tester", "worker"))
    ends = {"near_namespace": outside.namespace, "far_namespace": inside.namespace}
    ports = []
    for port in ("left", "right"):
        add_veth(host, near=port, far=f"n-{port}", mtu=ORDINARY_MTU, **ends)
        ports.append(WorkerPort(f"n-{port}", mac_address(inside, f"n-{port}"), mac_address(outside, port)))
    left, right = ports
    receive_at_once(inside, left.interface, right.interface)
    pods = PodsOfChain(POD_RUNTIMES["namespaces"](host, inside), [], prefix=f"{name}-")
    roles = plan_cpus(Placement((), tuple(cpus)), 1, with_switch=False)
    where, sriov = str(RUN_DIRECTORY), VirtualFunctionSettings()
    worker = Worker(inside, inside.namespace, left, right, pods, ORDINARY_MTU, roles, where, sriov)
    entries = Routed().set_up(worker, Chain(Routed.name, 1), undo).entries
    tester = SoftwareTester(
        host,
        *(TesterPort(port, outside.namespace) for port in ("left", "right")),
        binary=on_host(host, TESTER_BINARY),
        cpus=cpus,
        ordinary=True,
        launcher=launcher,
    )
    undo.callback(tester.close)
    process = tester.send_without_end(AddressedTraffic(TrafficProfile(FrameSize.parse(64), BOTH_DIRECTIONS), entries))
    for interface in (left.interface, right.interface):
        crossed = ("grep", "-Eq", _HAS_SENT.format(interface), "/proc/net/dev")
        if not await_success(inside, process, START_TIMEOUT, *crossed):
            said = process.errors().strip() or f"no frame left {interface}"
            raise PodperfError(f"the neighbour did not start on {host.name}: {said}")
    return process


HOG_MIB = 256  # of one memory hog: more than the caches of a server's CPU
SPARE_MIB = 1024  # that a memory hog leaves to the chain and to everything else


class NeighbourKind(StrEnum):
    """What a neighbour does."""

    BUSY = "busy"
    MEMORY_HOG = "memory hog"
    CHAIN = "chain under load"


@dataclass(frozen=True)
class NeighbourPlan:
    """A neighbour that competes with a chain: what it does, and the CPUs on which its processes may run.

    All of its processes together have `limits`.
    """

    kind: NeighbourKind
    cpus: tuple[int, ...]
    limits: PodLimits = UNLIMITED

    @property
    def command(self) -> Sequence[str]:
        """The command line of a neighbour that is a program.

        A hash of endless zeros takes all the CPU time that it gets, and little memory. dd fills its block again and
        again. With a limit of memory, the blocks of all processes are half of the limit, so that the kernel ends none.
        """
        if self.kind is NeighbourKind.BUSY:
            return ("sha256sum", "/dev/zero")
        return ("dd", "if=/dev/zero", "of=/dev/null", f"bs={self.block_mib}M")

    @property
    def block_mib(self) -> int:
        """The MiB that each memory hog fills."""
        limit = self.limits.memory
        return HOG_MIB if limit is None else max(1, min(HOG_MIB, limit // (2 * len(self.cpus))))

    def as_record(self) -> dict[str, Any]:
        """The plan, as records have it."""
        return {"kind": self.kind, "cpus": list(self.cpus), "limits": self.limits.as_record()}


@dataclass(frozen=True)
class Neighbour:
    """A neighbour that runs. `since` is when it began, in monotonic seconds, and `before` its CPU seconds then."""

    plan: NeighbourPlan
    host: Host
    processes: Sequence[Process]
    since: float
    before: float
    group: ControlGroup | None = None

    def check(self) -> None:
        """Raises PodperfError if a process of the neighbour has ended. The chain was then alone."""
        for process in self.processes:
            if not process.alive():
                said = process.errors().strip()
                raise PodperfError(f"the neighbour on {self.host.name} has ended{': ' if said else ''}{said}")

    def cpus_taken(self) -> float:
        """The number of CPUs that the neighbour has kept busy since it began: 0.5 is half a CPU, 2 are two CPUs."""
        return (_cpu_seconds(self.host, self.processes) - self.before) / (time.monotonic() - self.since)

    def read_limits(self) -> Mapping[str, Any]:
        """The limits, and what the neighbour took of them so far, read back from the kernel. Empty without limits.

        Raises PodperfError if the limits do not hold for all of its processes.
        """
        found = {} if self.group is None else self.group.describe()
        if found and found["processes"] < len(self.processes):
            held = f"for {found['processes']} of its {len(self.processes)} processes"
            raise PodperfError(f"the limits of the neighbour on {self.host.name} hold only {held}")
        return found

    def describe(self) -> Mapping[str, Any]:
        """The program. Read back from the kernel: CPUs, scheduling and limits of its processes."""
        numbers = [process.pid for process in self.processes]
        limits = self.read_limits()
        return {
            "kind": self.plan.kind,
            "program": PROGRAM if self.plan.kind is NeighbourKind.CHAIN else " ".join(self.plan.command),
            "processes": len(numbers),
            "held_to": held_to(self.host, numbers),
            "scheduling": scheduling(self.host, numbers),
            **({"limits": limits} if limits else {}),
        }


def start_neighbour(host: Host, plan: NeighbourPlan, undo: ExitStack) -> Neighbour:
    """Start a neighbour on the worker, until `undo`. Returns when all of its processes work."""
    group = make_group(host, f"{PREFIX}neighbour", plan.limits, undo) if plan.limits else None
    launcher = [] if group is None else group.joining([])
    if plan.kind is NeighbourKind.CHAIN:
        numbers = range(1, len(plan.cpus) + 1)
        processes = [start_loaded_chain(host, number, plan.cpus, launcher, undo) for number in numbers]
    else:
        processes = _start_programs(host, plan, launcher, undo)
    return Neighbour(plan, host, processes, time.monotonic(), _cpu_seconds(host, processes), group)


def _start_programs(host: Host, plan: NeighbourPlan, launcher: Sequence[str], undo: ExitStack) -> list[Process]:
    processes = []
    for _ in plan.cpus:
        process = host.spawn(*launcher, *plan.command, cpus=plan.cpus)
        undo.callback(process.stop)
        processes.append(process)
    program = plan.command[0]
    for process in processes:  # until then the process may be taskset, which may still run on any CPU
        if not await_success(host, process, START_TIMEOUT, "grep", "-qx", program, f"/proc/{process.pid}/comm"):
            raise PodperfError(f"the neighbour did not start on {host.name}: {process.errors().strip() or program}")
    return processes


def refuse_neighbour(host: Host, plan: NeighbourPlan) -> None:
    """Raises Unavailable if the worker cannot limit this neighbour, or has too little memory for it."""
    if plan.limits and (reason := missing(host, plan.limits)) is not None:
        raise Unavailable(reason)
    if plan.kind is NeighbourKind.CHAIN and plan.limits.cpu is not None:
        raise Unavailable(
            "a limit of CPU time does not hold for a chain under load: its sender stays in the kernel, which pauses a "
            "process on the way back from there"
        )
    if plan.kind is not NeighbourKind.MEMORY_HOG:
        return
    blocks = plan.block_mib * len(plan.cpus)
    wanted = blocks + SPARE_MIB
    meminfo = parse_meminfo(host.get("/proc/meminfo", b"MemAvailable: 1073741824 kB").decode())
    found = meminfo.get("MemAvailable", 0) >> 20
    if found < wanted:
        raise Unavailable(
            f"a memory hog on CPU {format_cpu_list(plan.cpus)} takes {blocks} MiB, and "
            f"{SPARE_MIB} MiB must be left; {host.name} has {found} MiB"
        )


def _cpu_seconds(host: Host, processes: Sequence[Process]) -> float:
    times = run_times(host, [process.pid for process in processes])
    return sum(each.nanoseconds for each in times.values()) / 1e9
