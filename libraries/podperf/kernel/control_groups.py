"""Control groups: the most CPU time and memory that the processes of a group may take (cgroups(7)).

Both versions work: in version 1 each controller has a hierarchy of its own, in version 2 all are in one. The groups of
a run are at the top of a hierarchy. So the limits of other groups do not hold for them. podperf switches no controller
on, because that would change the machine for everything else that runs there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from podperf.allocation import PodLimits
from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.hosts.shell_script import shell_script
from podperf.hosts.way_back import WayBack
from podperf.kernel.group_readings import CPU, MEMORY, MIB, READERS

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
    if not host.ask("test", "-e", f"{folder}/{with_swap}", check=False).exit_code:
        settings.append((with_swap, memory if controller.version == 1 else "0"))
    return settings


def _controllers(host: Host, limits: PodLimits) -> list[Controller]:
    wanted = [*([CPU] if limits.cpu is not None else []), *([MEMORY] if limits.memory is not None else [])]
    mounts = [line.split() for line in host.get("/proc/mounts").decode().splitlines()]
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
    if host.ask("test", "-w", found.folder, check=False).exit_code:
        raise PodperfError(
            f"podperf cannot make a control group in {found.folder} of {host.name}, which is there for reading only"
        )
    return found


def _words(host: Host, path: str) -> list[str]:
    try:
        return host.get(path).decode().split()
    except OSError:
        return []
