"""Threads of a host: found by their names, and the kernel's account of each."""

from __future__ import annotations

from collections.abc import Iterable

from podperf.hosts.base import Host
from podperf.hosts.shell_script import shell_script

_THREADS_NAMED = shell_script("threads_named.sh", beside=__file__)


def threads_named(host: Host, prefix: str, of: int | None = None) -> list[int]:
    """The threads of the process `of` whose names start with `prefix`. Without `of`, threads of the kernel."""
    folder = f"/proc/{of}/task" if of is not None else "/proc"
    return [int(each) for each in host.ask("sh", "-c", _THREADS_NAMED, "sh", prefix, folder).stdout.split()]


def held_to(host: Host, threads: Iterable[int]) -> list[str]:
    """The CPU lists on which these threads may run, read from the kernel. A thread that has ended is left out."""
    return sorted(set(_status(host, threads, "Cpus_allowed_list")))


def scheduling(host: Host, threads: Iterable[int]) -> list[str]:
    """The scheduling policies and nice values of these threads, as ps(1) tells them: `TS, nice 0`."""
    numbers = ",".join(map(str, threads))
    said = host.ask("ps", "-L", "-o", "cls=,ni=", "-p", numbers, check=False).stdout if numbers else ""
    return sorted({f"{policy}, nice {nice}" for policy, nice in map(str.split, said.splitlines())})


def preemptions(host: Host, threads: Iterable[int]) -> list[int]:
    """The number of preemptions of each of these threads so far. A thread that has ended is left out."""
    return [int(count) for count in _status(host, threads, "nonvoluntary_ctxt_switches")]


def _status(host: Host, threads: Iterable[int], field: str) -> list[str]:
    """The value of this field of /proc/PID/status (proc(5)) for each thread."""
    files = [f"/proc/{thread}/status" for thread in threads]
    lines = host.ask("grep", "-h", f"^{field}:", "/dev/null", *files, check=False).stdout.splitlines()
    return [line.split()[1] for line in lines]
