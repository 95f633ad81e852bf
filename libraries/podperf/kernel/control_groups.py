"""Control groups: the most CPU time and memory that the processes of a group may take (cgroups(7)).

Both versions work: in version 1 each controller has a hierarchy of its own, in version 2 all are in one. The groups of
a run are at the top of a hierarchy. So the limits of other groups do not hold for them. podperf switches no controller
on, because that would change the machine for everything else that runs there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from podperf.allocation import PodLimits
from podperf.errors import PodperfError
from podperf.hosts.base import Host, shell_script
from podperf.hosts.way_back import WayBack

CPU, MEMORY = "cpu", "memory"  # the names of the controllers
MIB = 1 << 20
Files = Mapping[str, Sequence[str]]
PERIOD = 100_000  # us in which a group may take its CPU time: the kernel's and Kubernetes' own
_JOIN = shell_script("join_groups.sh", beside=__file__)
_REMOVE = shell_script("remove_groups.sh", beside=__file__)


@dataclass(frozen=True)
class Controller:
    """A controller of a host: the version of control groups that has it, and the folder of its hierarchy."""

    name: str
    version: int
    folder: str


@dataclass(frozen=True)
class ControlGroup:
    """A group of processes with limits. `folders` has its folder by the controller. In version 2 they are the same."""

    host: Host
    folders: Mapping[Controller, str]

    def joining(self, command: Sequence[str]) -> list[str]:
        """The command line that runs `command` in this group."""
        return joining(list(dict.fromkeys(self.folders.values())), command)

    def processes(self) -> int:
        """The number of processes in the group now: the least of all controllers."""
        numbers = [len(self._read(folder, "cgroup.procs")) for folder in dict.fromkeys(self.folders.values())]
        return min(numbers, default=0)

    def describe(self) -> dict[str, Any]:
        """Read back from the kernel: the limits in force, and what the processes of the group took and missed so far.

        A throttled group has used up its time and waits for the next period. `memory_refusals` counts how often the
        group wanted more memory than it may have. The kernel then takes back what it can, or ends a process.
        """
        found: dict[str, Any] = {"processes": self.processes()}
        for controller, folder in self.folders.items():
            names, parse = READERS[controller.name, controller.version]
            files = {name: self._read(folder, name) for name in names}
            found |= {f"{controller.name}_version": controller.version, **parse(files)}
        return found

    def _read(self, folder: str, name: str) -> list[str]:
        return self.host.ask("cat", f"{folder}/{name}", check=False).stdout.splitlines()


def joining(folders: Sequence[str], command: Sequence[str]) -> list[str]:
    """The command line that runs `command` in the groups with these folders."""
    return ["sh", "-c", _JOIN, "sh", str(len(folders)), *folders, *command]


def joined(command: Sequence[str]) -> Sequence[str]:
    """The command that a command line of `joining` runs in its group. Another command line stays as it is.

    So a plan shows which program runs.
    """
    start = ("sh", "-c", _JOIN, "sh")
    return command[5 + int(command[4]) :] if tuple(command[:4]) == start else command


def missing(host: Host, limits: PodLimits) -> str | None:
    """The reason why this host cannot have a group with these limits, with the remedy. None if it can."""
    try:
        _controllers(host, limits)
    except PodperfError as error:
        return str(error)
    return None


def make_group(host: Host, name: str, limits: PodLimits, undo: ExitStack) -> ControlGroup:
    """Make an empty group with these limits until `undo`, also after a kill. PodperfError if the host cannot have it.

    `undo` ends the processes that are in the group then.
    """
    folders = {each: f"{each.folder}/{name}" for each in _controllers(host, limits)}
    way_back = WayBack(host, undo)
    for folder in dict.fromkeys(folders.values()):
        way_back.note(f"the control group {folder}", "sh", "-c", _REMOVE, "sh", folder)
        host.do("mkdir", folder)
    for controller, folder in folders.items():
        for file, value in _settings(host, controller, folder, limits):
            host.do("tee", f"{folder}/{file}", stdin=value)
    return ControlGroup(host, folders)


def group_of(host: Host, process: int, limits: PodLimits) -> ControlGroup:
    """The group of a process, with the controllers of these limits. Somebody else has made the group, and removes it.

    PodperfError if the host has no such controller.
    """
    lines = host.get(f"/proc/{process}/cgroup", f"0::/{process}".encode()).decode().splitlines()
    groups = {name: path for _, names, path in (line.split(":", 2) for line in lines) for name in names.split(",")}
    folders = {}
    for each in _controllers(host, limits):
        path = groups.get(each.name if each.version == 1 else "")
        if path is None:
            raise PodperfError(f"on {host.name}, process {process} is in no control group of {each.folder}")
        folders[each] = each.folder + path
    return ControlGroup(host, folders)


def _settings(host: Host, controller: Controller, folder: str, limits: PodLimits) -> Iterable[tuple[str, str]]:
    """The files of a new group and their contents, in the order in which the kernel takes them."""
    if controller.name == CPU:
        time = round((limits.cpu or 0) * PERIOD)
        if controller.version == 1:
            return [("cpu.cfs_period_us", str(PERIOD)), ("cpu.cfs_quota_us", str(time))]
        return [("cpu.max", f"{time} {PERIOD}")]
    memory = str((limits.memory or 0) * MIB)
    # Without a limit of swap, memory beyond the limit would go to the disk.
    names = {1: ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"), 2: ("memory.max", "memory.swap.max")}
    usual, with_swap = names[controller.version]
    settings = [(usual, memory)]
    if not host.ask("test", "-e", f"{folder}/{with_swap}", check=False, assumed="").exit_code:
        settings.append((with_swap, memory if controller.version == 1 else "0"))
    return settings


def _controllers(host: Host, limits: PodLimits) -> list[Controller]:
    wanted = [*([CPU] if limits.cpu is not None else []), *([MEMORY] if limits.memory is not None else [])]
    mounts = [
        line.split()
        for line in host.get("/proc/mounts", b"cgroup2 /sys/fs/cgroup cgroup2 rw 0 0").decode().splitlines()
    ]
    return [_controller(host, name, mounts) for name in wanted]


def _controller(host: Host, name: str, mounts: Sequence[Sequence[str]]) -> Controller:
    """The controller of this name. PodperfError names what is missing, and the remedy."""
    for _, folder, kind, options, *_ in mounts:
        if kind == "cgroup" and name in options.split(","):
            return _writable(host, Controller(name, 1, folder))
    off = None
    for _, folder, kind, *_ in mounts:
        if kind != "cgroup2" or name not in _words(host, f"{folder}/cgroup.controllers"):
            continue
        if name in _words(host, f"{folder}/cgroup.subtree_control"):
            return _writable(host, Controller(name, 2, folder))
        off = folder
    if off is not None:
        raise PodperfError(
            f"the {name} controller of control groups is switched off on {host.name}: "
            f"echo +{name} > {off}/cgroup.subtree_control"
        )
    raise PodperfError(
        f"{host.name} has no {name} controller of control groups, which limits what a pod may take: mount cgroup2, or "
        f"the {name} hierarchy of version 1"
    )


def _writable(host: Host, found: Controller) -> Controller:
    if host.ask("test", "-w", found.folder, check=False, assumed="").exit_code:
        raise PodperfError(
            f"podperf cannot make a control group in {found.folder} of {host.name}, which is there for reading only"
        )
    return found


def _words(host: Host, path: str) -> list[str]:
    try:
        return host.get(path, f"{CPU} {MEMORY}".encode()).decode().split()
    except OSError:
        return []


# --- what the kernel's files about a group say --------------------------------------------------------------------


def _first(files: Files, name: str, place: int = 0) -> float | None:
    """The number at this place in the first line of a file. None for a file that the kernel does not have."""
    words = " ".join(files.get(name, ())).split()
    return float(words[place]) if len(words) > place and words[place].isdigit() else None


def _counters(files: Files, name: str) -> dict[str, int]:
    rows = [line.split() for line in files.get(name, ())]
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}


def _cpu(quota: float | None, period: float | None, counters: Mapping[str, int], throttled: float) -> dict[str, Any]:
    return {
        "cpu": quota / period if quota is not None and period else None,
        "periods": counters.get("nr_periods"),
        "throttled_periods": counters.get("nr_throttled"),
        "throttled_seconds": throttled,
    }


def cpu_of_version_1(files: Files) -> dict[str, Any]:
    """CPU time in version 1 (kernel doc: scheduler/sched-bwc.rst). Counts nanoseconds."""
    counters = _counters(files, "cpu.stat")
    quota, period = _first(files, "cpu.cfs_quota_us"), _first(files, "cpu.cfs_period_us")
    return _cpu(quota, period, counters, counters.get("throttled_time", 0) / 1e9)


def cpu_of_version_2(files: Files) -> dict[str, Any]:
    """CPU time in version 2 (kernel doc: admin-guide/cgroup-v2.rst). Counts microseconds."""
    counters = _counters(files, "cpu.stat")
    quota, period = _first(files, "cpu.max"), _first(files, "cpu.max", 1)
    return _cpu(quota, period, counters, counters.get("throttled_usec", 0) / 1e6)


def _memory(limit: float | None, peak: float | None, refusals: float | None) -> dict[str, Any]:
    mib = [each / MIB if each is not None else None for each in (limit, peak)]
    counted = None if refusals is None else int(refusals)
    return {"memory_mib": mib[0], "memory_peak_mib": mib[1], "memory_refusals": counted}


def memory_of_version_1(files: Files) -> dict[str, Any]:
    """Memory in version 1 (kernel doc: admin-guide/cgroup-v1/memory.rst)."""
    names = ("memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.failcnt")
    return _memory(*(_first(files, name) for name in names))


def memory_of_version_2(files: Files) -> dict[str, Any]:
    """Memory in version 2. `memory.peak` came with Linux 5.19."""
    refusals = _counters(files, "memory.events").get("max")
    return _memory(_first(files, "memory.max"), _first(files, "memory.peak"), refusals)


READERS: Mapping[tuple[str, int], tuple[Sequence[str], Callable[[Files], dict[str, Any]]]] = MappingProxyType(
    {
        (CPU, 1): (("cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.stat"), cpu_of_version_1),
        (CPU, 2): (("cpu.max", "cpu.stat"), cpu_of_version_2),
        (MEMORY, 1): (("memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.failcnt"), memory_of_version_1),
        (MEMORY, 2): (("memory.max", "memory.peak", "memory.events"), memory_of_version_2),
    }
)
