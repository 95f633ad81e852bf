"""Threads of a host: found by their names, and the kernel's account of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podperf.hosts.base import Host
from podperf.hosts.shell_script import shell_script

_POLICIES = {0: "SCHED_OTHER", 1: "SCHED_FIFO", 2: "SCHED_RR", 3: "SCHED_BATCH", 5: "SCHED_IDLE", 6: "SCHED_DEADLINE"}
_THREADS_NAMED = shell_script("threads_named.sh", beside=__file__)


def threads_named(host: Host, prefix: str, of: int | None = None) -> list[int]:
    """The threads of the process `of` whose names start with `prefix`. Without `of`, threads of the kernel."""
    folder = f"/proc/{of}/task" if of is not None else "/proc"
    return [int(each) for each in host.ask("sh", "-c", _THREADS_NAMED, "sh", prefix, folder).stdout.split()]


def held_to(host: Host, threads: Iterable[int]) -> list[str]:
    """The CPU lists on which these threads may run, read from the kernel. A thread that has ended is left out."""
    return sorted(set(_status(host, threads, "Cpus_allowed_list")))


def scheduling(host: Host, threads: Iterable[int]) -> list[str]:
    """The scheduling of these threads (sched(7)), read from the kernel: `SCHED_OTHER, nice 0`, `SCHED_RR, priority 1`.

    A thread that has ended is left out.
    """
    files = [f"/proc/{thread}/stat" for thread in threads]
    lines = host.ask("grep", "-h", "", "/dev/null", *files, check=False).stdout.splitlines()
    return sorted({_scheduling(line.rpartition(")")[2].split()) for line in lines})


def _scheduling(fields: Sequence[str]) -> str:
    """In words. `fields` are those of /proc/PID/stat behind the name, the third of proc(5) first."""
    nice, priority, policy = (int(fields[number - 3]) for number in (19, 40, 41))
    name = _POLICIES.get(policy, f"policy {policy}")
    return f"{name}, priority {priority}" if priority else f"{name}, nice {nice}"


def preemptions(host: Host, threads: Iterable[int]) -> list[int]:
    """The number of preemptions of each of these threads so far. A thread that has ended is left out."""
    return [int(count) for count in _status(host, threads, "nonvoluntary_ctxt_switches")]


def _status(host: Host, threads: Iterable[int], field: str) -> list[str]:
    """The value of this field of /proc/PID/status (proc(5)) for each thread."""
    files = [f"/proc/{thread}/status" for thread in threads]
    lines = host.ask("grep", "-h", f"^{field}:", "/dev/null", *files, check=False).stdout.splitlines()
    return [line.split()[1] for line in lines]
