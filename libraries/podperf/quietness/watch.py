"""Reads from /proc which other work runs on the measuring CPUs, so that a disturbed measurement can say so.

A sample is taken just before and just after a trial, and never during the trial, so that it disturbs nothing. The
kernel counts time in ticks of 10 ms (proc(5)). So a window of 0.2 s shows steps of 5 % of a CPU. The sum of several
windows shows finer steps.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.hosts.local import LocalHost
from podperf.hosts.ssh import SshHost
from podperf.noise import Noise, Speed, mean_speed
from podperf.quietness import cpu_times
from podperf.quietness.cpu_speed import CpuSpeeds, remember, remembered
from podperf.quietness.cpu_times import Times

# Process lines start with a digit, the lines of /proc/stat with a letter: one text holds both, on any host.
_COMMAND = "cat /proc/stat /proc/[0-9]*/stat 2>/dev/null; true"
# A user can give a process any name of 15 bytes. The name can have line ends and parentheses, or look like the start of
# a line. It is too short for the 37 fields that follow a name. So these fields tell where the name ends.
_PROCESS = re.compile(
    r"^(?P<pid>[0-9]+) \((?P<name>.{0,64}?)\) (?P<fields>\S(?: -?[0-9]+){36,})$", re.MULTILINE | re.DOTALL
)
_CPU = re.compile(r"^cpu(?P<cpu>[0-9]+)(?P<ticks>(?: [0-9]+)*)$", re.MULTILINE)
_SINGLE = re.compile(r"^(?P<name>ctxt|procs_running) (?P<value>[0-9]+)$", re.MULTILINE)
_INIT = 1
_KERNEL_THREADS = 2  # kthreadd's PID, the parent of every kernel thread
_LONGEST_NAME = 15  # characters of a process's name that the kernel keeps
_FRESH = 0.1  # seconds for which a measured speed counts, so that one reading serves two trials in a row


@dataclass(frozen=True)
class ProcessTimes:
    """One process of a sample.

    A process with several threads counts on the CPU where its first thread ran last. /proc/PID/stat says no more.
    """

    name: str
    parent: int
    started: int  # ticks after boot; tells a process from a later one with the same PID
    cpu: int  # the CPU on which the process ran last
    own: float  # CPU seconds
    children: float  # CPU seconds of its children that have ended, and of their children


@dataclass(frozen=True)
class Sample:
    """/proc/stat and every /proc/PID/stat at one moment."""

    taken: float  # seconds, monotonic
    stolen: Mapping[int, float]  # CPU seconds since boot, per CPU
    context_switches: int
    running: int  # threads that wanted a CPU
    processes: Mapping[int, ProcessTimes]


def parse_sample(text: str, taken: float, ticks_per_second: int) -> Sample:
    """A sample from the text of /proc/stat and /proc/PID/stat, in any order (proc(5)).

    The line of a process that just ended can be cut short, and is skipped. PodperfError if /proc/stat is missing.
    """
    processes = {int(found["pid"]): _process(found, ticks_per_second) for found in _PROCESS.finditer(text)}
    of_machine = _PROCESS.sub("", text)  # without the lines of processes: a name could look like a line of /proc/stat
    stolen = {}
    for found in _CPU.finditer(of_machine):
        ticks = found["ticks"].split()
        stolen[int(found["cpu"])] = int(ticks[7]) / ticks_per_second if len(ticks) > 7 else 0.0
    single = {found["name"]: int(found["value"]) for found in _SINGLE.finditer(of_machine)}
    if not stolen:
        raise PodperfError("cannot tell whether the machine is quiet: /proc/stat lists no CPU; is /proc mounted?")
    return Sample(taken, stolen, single.get("ctxt", 0), single.get("procs_running", 0), processes)


def _process(found: re.Match[str], ticks_per_second: int) -> ProcessTimes:
    name = " ".join(found["name"].split())
    fields = found["fields"].split()  # field 3 of proc(5) comes first
    user, system, children_user, children_system = (int(ticks) / ticks_per_second for ticks in fields[11:15])
    return ProcessTimes(
        name, int(fields[1]), int(fields[19]), int(fields[36]), user + system, children_user + children_system
    )


def compare(
    before: Sample,
    after: Sample,
    cpus: Iterable[int],
    own: Collection[int],
    ticks_per_second: int = 100,
    black_box: Collection[str] = (),
) -> Noise:
    """The noise on `cpus` between two samples.

    Kernel threads, the processes `own`, those with a name in `black_box`, and descendants of them are not foreign.
    """
    measuring = tuple(sorted(set(cpus)))
    processes, names = {**before.processes, **after.processes}, {each[:_LONGEST_NAME] for each in black_box}
    under_test = {pid for pid, process in processes.items() if process.name in names}
    ours = _descendants(processes, {*own, *under_test, _KERNEL_THREADS})
    spent = _spent(before, after)
    foreign = {
        f"{process.name} ({pid})": spent[pid]
        for pid, process in after.processes.items()
        if spent[pid] > 0.5 / ticks_per_second and pid not in ours and process.cpu in measuring
    }
    stolen = sum(after.stolen.get(cpu, 0.0) - before.stolen.get(cpu, 0.0) for cpu in measuring)
    return Noise(
        cpus=measuring,
        window=after.taken - before.taken,
        stolen=max(0.0, stolen),
        foreign=foreign,
        context_switches=after.context_switches - before.context_switches,
        run_queue=max(0, before.running - 1, after.running - 1),
        resolution=1 / ticks_per_second,
    )


def _spent(before: Sample, after: Sample) -> dict[int, float]:
    """CPU seconds between the samples: of each process that still exists, and of its children that have ended."""
    own: dict[int, float] = {}
    children: dict[int, float] = {}
    for pid, process in after.processes.items():
        then = before.processes.get(pid)
        known = then is not None and then.started == process.started
        own[pid] = process.own - (then.own if then is not None and known else 0.0)
        children[pid] = process.children - (then.children if then is not None and known else 0.0)
    for pid, process in before.processes.items():
        if pid in after.processes:
            continue
        # The process ended, and an ancestor inherited its whole CPU time. The time before the window does not count.
        heir = next((ancestor for ancestor in _ancestors(pid, before.processes) if ancestor in children), None)
        if heir is not None:
            children[heir] -= process.own + process.children
    children[_INIT] = 0.0  # init adopts orphans, with the time of their whole lives
    possible = (after.taken - before.taken) * len(after.stolen)
    return {pid: own[pid] + (children[pid] if 0 < children[pid] <= possible else 0.0) for pid in own}


def _descendants(processes: Mapping[int, ProcessTimes], roots: Collection[int]) -> set[int]:
    """The roots, and all processes below them."""
    return {*roots, *(pid for pid in processes if any(ancestor in roots for ancestor in _ancestors(pid, processes)))}


def _ancestors(pid: int, processes: Mapping[int, ProcessTimes]) -> Iterator[int]:
    """Parent, grandparent and so on.

    The kernel does not give a sample of one instant. So a PID that was used twice could close a circle: stop there.
    """
    seen = {pid}
    while (process := processes.get(pid)) is not None and process.parent not in seen:
        pid = process.parent
        seen.add(pid)
        yield pid


def read_local_proc() -> str:
    """The same text as `_COMMAND` prints, without starting a process."""
    proc = Path("/proc")
    texts = [(proc / "stat").read_text()]
    for name in os.listdir(proc):  # noqa: PTH208 - names, not paths: this runs around every trial
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
                    texts.append(file.read())
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended meanwhile
    return "".join(texts)


def read_proc_of(host: Host) -> Callable[[], str]:
    """A reader of another host's /proc."""
    return lambda: host.ask("sh", "-c", _COMMAND).stdout


class Quietness:
    """Watches the measuring CPUs of one host.

    The work of the processes `own`, of those with a name in `black_box`, of those in `pods`, and of their descendants
    is no noise. With `speeds`, the speed of the CPUs is measured just before and just after a window. The CPUs of the
    machines of `workers` are watched as well.

    A window begins with `start()` and ends with `stop()`, which returns its Noise.
    """

    def __init__(
        self,
        cpus: Collection[int],
        own: Collection[int] | None = None,
        read: Callable[[], str] = read_local_proc,
        ticks_per_second: int | None = None,
        speeds: CpuSpeeds | None = None,
        workers: Sequence[Quietness] = (),
        black_box: Collection[str] = (),
        pods: Callable[[], Collection[int]] = tuple,
    ) -> None:
        self.cpus = tuple(sorted(set(cpus)))
        self.own = own if own is not None else {os.getpid()}
        self._read = read
        self._ticks = ticks_per_second or os.sysconf("SC_CLK_TCK")
        self._before: Sample | None = None
        self._speeds, self._workers, self._black_box, self._pods = speeds, workers, black_box, pods
        self._speed_before: Speed | None = None
        self._speed_after: Speed | None = None
        self._speed_known = -math.inf  # when `_speed_after` was read
        self._last: Sample | None = None

    def sample(self) -> Sample:
        """The machine at this moment."""
        return parse_sample(self._read(), time.monotonic(), self._ticks)

    def await_speed(self, patience: float, waiting: Callable[[Speed], None]) -> float:
        """Wait until the CPUs run near their best speed, for at most `patience` seconds.

        Returns the seconds of waiting. The first look at the speed is not included, because every trial needs one.

        The CPUs do not rest between two looks: on some hosts a virtual CPU that has rested is slow for a tenth of a
        second. After each look `waiting` is called with the speed.
        """
        speed, began, waited = self._speed(), time.monotonic(), 0.0
        while speed is not None and speed.shortfalls and waited < patience:
            waiting(speed)
            speed, waited = self._speed(), time.monotonic() - began
        self._speed_after, self._speed_known = speed, time.monotonic()
        for worker in self._workers:
            waited += worker.await_speed(max(0.0, patience - waited), waiting)
        return waited

    def start(self) -> None:
        """Begin a window.

        A sample takes milliseconds. So a window that directly follows another one begins with that one's last sample.
        """
        for worker in reversed(self._workers):
            worker.start()
        now = time.monotonic()
        self._speed_before = self._speed_after if now - self._speed_known < _FRESH else self._speed()
        fresh = self._last is not None and now - self._last.taken < _FRESH
        self._before = self._last if fresh else self.sample()

    def stop(self) -> Noise:
        """End the window that `start` began."""
        if self._before is None:
            raise RuntimeError("Quietness.stop() needs a start()")
        before, self._before = self._before, None
        self._last = self.sample()
        noise = compare(before, self._last, self.cpus, {*self.own, *self._pods()}, self._ticks, self._black_box)
        self._speed_after, self._speed_known = self._speed(), time.monotonic()
        speed = mean_speed((each, 1.0) for each in (self._speed_before, self._speed_after))
        return replace(noise, speed=speed, workers=tuple(worker.stop() for worker in self._workers))

    def _speed(self) -> Speed | None:
        found = list(self._speeds.sample().values()) if self._speeds else []
        return Speed(*map(min, zip(*found, strict=True))) if found else None


def watch(
    host: Host,
    *,
    sut: Sequence[int] = (),
    tester: Sequence[int] = (),
    workers: Sequence[Quietness] = (),
    black_box: Collection[str] = (),
    pods: Callable[[], Collection[int]] = tuple,
    undo: ExitStack,
) -> Quietness:
    """Watch the CPUs of the system under test and of the tester on a machine, and those of `workers` as well.

    Processes with a name in `black_box` belong to the system under test, and so do those of pods that a cluster runs.
    `pods` tells those that now run in them.

    The speed of the CPUs is watched if the machine has Python 3.6 or later. After each look, the watching process stays
    on the last CPU of the list. A poller may occupy a CPU of the system under test. So the tester's CPUs stand last.
    """
    cpus = (*sut, *tester)
    if isinstance(host, LocalHost):
        speeds = CpuSpeeds(cpus, best=remembered())
        undo.callback(remember, speeds.best)
        return Quietness(cpus, speeds=speeds, workers=workers, black_box=black_box, pods=pods)
    ticks = int(host.ask("getconf", "CLK_TCK").stdout)
    own = host.servers if isinstance(host, SshHost) else set[int]()
    measure = _times_on(host, undo)
    there = CpuSpeeds(cpus, measure) if measure is not None else None
    return Quietness(cpus, own, read_proc_of(host), ticks, there, workers, black_box, pods)


# This text is appended to cpu_times.py, and both run on the other machine. They only need Python's standard library.
_ANSWER = """
import sys
for line in sys.stdin:
    print(*times_of(int(line)), flush=True)
"""


_HAS_PYTHON = "python3 -I -c 'import sys; sys.exit(sys.version_info < (3, 6))' 2>/dev/null"


def _times_on(host: Host, undo: ExitStack) -> Callable[[int], Times] | None:
    """`cpu_times.times_of` on that machine, or None if the machine has no Python 3.6 or later."""
    if host.ask("sh", "-c", _HAS_PYTHON, check=False).exit_code:
        return None
    process = host.spawn("python3", "-I", "-c", Path(cpu_times.__file__).read_text(encoding="utf-8") + _ANSWER)
    undo.callback(process.stop)

    def times_of(cpu: int) -> Times:
        process.send(str(cpu))
        return Times(*map(float, process.receive(10).split()))

    return times_of
