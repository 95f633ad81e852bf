"""The CPUs of a host: those that exist, those that may be used, and their cores and NUMA nodes."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from podperf.cpu_lists import format_cpu_list, parse_cpu_list
from podperf.errors import PodperfError
from podperf.hosts.base import Host


@dataclass(frozen=True)
class Cpus:
    """The CPUs of a host.

    `allowed` are the CPUs to which programs may be pinned (taskset, cpuset), isolated CPUs included. A CPU without an
    entry in `siblings` has its physical core to itself. A CPU without an entry in `nodes` is on node 0.
    """

    online: tuple[int, ...]
    allowed: tuple[int, ...]
    siblings: Mapping[int, frozenset[int]] = field(default_factory=dict)  # all CPUs of the same physical core
    nodes: Mapping[int, int] = field(default_factory=dict)  # NUMA node of a CPU
    isolated: frozenset[int] = frozenset()  # by `isolcpus`: the kernel moves no process from one of them to another

    @property
    def usable(self) -> tuple[int, ...]:
        """Online and allowed, ascending."""
        return tuple(sorted(set(self.online) & set(self.allowed)))

    def same_core(self, cpu: int, others: Collection[int]) -> bool:
        """True if this CPU is on the physical core of one of the others."""
        return not self.siblings.get(cpu, frozenset((cpu,))).isdisjoint(others)

    def node(self, cpu: int) -> int:
        return self.nodes.get(cpu, 0)


def read_cpus(host: Host) -> Cpus:
    """The CPUs of a host, from sysfs and from the CPUs that its processes may use."""
    online = parse_cpu_list(host.get("/sys/devices/system/cpu/online").decode())
    siblings = {
        cpu: frozenset(_list(host, f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") or (cpu,))
        for cpu in online
    }
    isolated = _isolated(host)
    allowed = {*allowed_cpus(host.get("/proc/self/status").decode()), *isolated}
    return Cpus(online, tuple(sorted(allowed)), siblings, numa_nodes(host), frozenset(isolated))


def numa_nodes(host: Host) -> dict[int, int]:
    """The NUMA node of each CPU; empty if the kernel has no NUMA nodes."""
    folder = "/sys/devices/system/node"
    return {
        cpu: node for node in _list(host, f"{folder}/online") for cpu in _list(host, f"{folder}/node{node}/cpulist")
    }


def _isolated(host: Host) -> tuple[int, ...]:
    """The CPUs of `isolcpus` that a program can have. A program must ask for them; the kernel does not choose them."""
    isolated = _list(host, "/sys/devices/system/cpu/isolated")
    if not isolated:
        return ()
    asked = host.ask("taskset", "--cpu-list", format_cpu_list(isolated), "cat", "/proc/self/status", check=False)
    return allowed_cpus(asked.stdout) if asked.exit_code == 0 else ()


def allowed_cpus(status: str) -> tuple[int, ...]:
    """The CPUs that a process may use, from the text of its /proc/PID/status."""
    match = re.search(r"^Cpus_allowed_list:\s*(\S+)$", status, re.MULTILINE)
    if match is None:
        raise PodperfError("/proc/self/status has no Cpus_allowed_list; is /proc mounted?")
    return parse_cpu_list(match[1])


def _list(host: Host, path: str) -> tuple[int, ...]:
    """A CPU list of sysfs; empty if the kernel has no such file (no NUMA, no topology)."""
    try:
        return parse_cpu_list(host.get(path, b"").decode())
    except OSError:
        return ()
