"""The CPU time of threads, by the scheduler's own accounting: /proc/THREAD/schedstat.

The file has nanoseconds on a CPU, nanoseconds of waiting for one, and the number of runs (kernel doc:
scheduler/sched-stats.rst). The kernel has it with CONFIG_SCHED_INFO, which most distributions switch on. The time of a
thread that sleeps is exact. The time of a thread that runs ends at the last tick.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from podperf.hosts.base import Host
from podperf.kernel.threads import threads_named
from podperf.model import CpuTime

_LINE = re.compile(r"^/proc/(\d+)/schedstat:(\d+) \d+ (\d+)", re.MULTILINE)
# The configuration of a running kernel: in the kernel itself, or where packages install it.
_CONFIGURATION = 'zgrep -hs "^$1=y" /proc/config.gz "/boot/config-$(uname -r)" "/lib/modules/$(uname -r)/config"'


@dataclass(frozen=True)
class Cycles:
    """The cycles of a poller so far, in any unit and since any moment. `busy` were for frames, of all that `passed`."""

    busy: float
    passed: float


@dataclass(frozen=True)
class CpuUser:
    """A part of the system under test that takes CPU time for frames.

    `threads` asks the host for the numbers of its threads. `polls`: the threads never sleep, so that their CPU time
    tells nothing of frames, unless `cycles` tells which share of it is for frames (None: not now). `obstacle` gives the
    reason why the time of the threads is not the time of their work, or None.
    """

    name: str
    host: Host
    threads: Callable[[], Sequence[int]]
    polls: bool = False
    cycles: Callable[[], Cycles | None] | None = None
    obstacle: Callable[[], str | None] = lambda: None


def receiver(host: Host, interface: str) -> CpuUser:
    """The threads of the kernel that receive at an interface (threaded NAPI), and forward what they received."""

    def threads() -> Sequence[int]:
        return threads_named(host, f"napi/{interface}-")

    def obstacle() -> str | None:
        if not threads():
            return (
                f"no thread of the kernel receives on {interface}: its driver does, in interrupts, whose CPU time "
                "belongs to no thread"
            )
        if host.ask("sh", "-c", _CONFIGURATION, "sh", "CONFIG_IRQ_TIME_ACCOUNTING", check=False).stdout:
            return "the kernel takes the time of softirqs off its threads (CONFIG_IRQ_TIME_ACCOUNTING)"
        return None

    return CpuUser(f"receive thread of {interface}", host, threads, obstacle=obstacle)


def softirq_thread(host: Host, cpu: int) -> CpuUser:
    """The thread of the kernel that takes over work for frames if receive threads leave too much of it at once."""

    def threads() -> Sequence[int]:
        name = f"ksoftirqd/{cpu}"
        files = [f"/proc/{each}/comm" for each in threads_named(host, name)]
        found = host.ask("grep", "-lx", name, "/dev/null", *files, check=False).stdout.split()
        return [int(each.split("/")[2]) for each in found]

    return CpuUser(f"softirq thread of CPU {cpu}", host, threads)


def kernel_users(ports: Mapping[str, Host], cpus: Iterable[int]) -> list[CpuUser]:
    """The threads of the kernel that receive at these interfaces on these CPUs. The hosts are of one machine."""
    receivers = [receiver(host, interface) for interface, host in ports.items()]
    machine = next(iter(ports.values()), None)
    return [*receivers, *(softirq_thread(machine, cpu) for cpu in dict.fromkeys(cpus) if machine is not None)]


class ThreadClock:
    """Tells the CPU time that the parts of a system under test take between `start` and `stop`."""

    def __init__(self, users: Sequence[CpuUser], unknown: str = "") -> None:
        """`unknown` is the reason why not all parts are known, or empty."""
        self._users, self._unknown = users, unknown
        self._threads: list[Sequence[int]] = []
        self._before: list[_Reading | None] = []

    def start(self) -> None:
        """The trial begins. Asks for the threads again, because they may be others than before."""
        self._threads = [user.threads() for user in self._users]
        self._before = self._read()

    def stop(self) -> CpuTime:
        found = CpuTime(unread=self._unknown)
        for user, before, now in zip(self._users, self._before, self._read(), strict=True):
            found = _with(found, user, before, now)
        return found

    def _read(self) -> list[_Reading | None]:
        cycles = [each.cycles() if each.cycles is not None else None for each in self._users]
        by_host: dict[int, tuple[Host, list[int]]] = {}
        for user, threads in zip(self._users, self._threads, strict=True):
            by_host.setdefault(id(user.host), (user.host, []))[1].extend(threads)
        times = {key: run_times(host, threads) for key, (host, threads) in by_host.items()}
        found: list[_Reading | None] = []
        for user, threads, each in zip(self._users, self._threads, cycles, strict=True):
            known = times[id(user.host)]
            whole = all(thread in known for thread in threads)
            found.append(_Reading(_sum(known[thread] for thread in threads), each) if whole else None)
        return found


@dataclass(frozen=True)
class RunTime:
    """The nanoseconds that a thread was on a CPU so far, and how often it was put there."""

    nanoseconds: int = 0
    runs: int = 0


def _sum(times: Iterable[RunTime]) -> RunTime:
    found = list(times)
    return RunTime(sum(each.nanoseconds for each in found), sum(each.runs for each in found))


@dataclass(frozen=True)
class _Reading:
    time: RunTime
    cycles: Cycles | None


def run_times(host: Host, threads: Sequence[int]) -> Mapping[int, RunTime]:
    """The time of each of these threads. A thread that has ended is left out."""
    files = [f"/proc/{each}/schedstat" for each in threads]
    said = host.ask("grep", "-H", "", "/dev/null", *files, check=False, assumed="").stdout if files else ""
    return {int(thread): RunTime(int(nanoseconds), int(runs)) for thread, nanoseconds, runs in _LINE.findall(said)}


def _with(found: CpuTime, user: CpuUser, before: _Reading | None, now: _Reading | None) -> CpuTime:
    """The CPU time so far, with that of one more part."""
    if reason := user.obstacle():
        return replace(found, unread=found.unread or reason)
    if before is None or now is None:
        missing = f"a thread of {user.name} has ended, or {user.host.name} has no /proc/THREAD/schedstat"
        return replace(found, unread=found.unread or missing)
    share = _share(before.cycles, now.cycles) if user.polls else 1.0
    if share is None:
        return replace(found, polling=(*found.polling, user.name))
    taken = share * (now.time.nanoseconds - before.time.nanoseconds)
    runs = found.runs + now.time.runs - before.time.runs
    return replace(found, parts={**found.parts, user.name: taken}, runs=runs)


def _share(before: Cycles | None, now: Cycles | None) -> float | None:
    """The share of a poller's cycles that was for frames. None if it does not tell."""
    if before is None or now is None or now.passed <= before.passed:
        return None
    return (now.busy - before.busy) / (now.passed - before.passed)
