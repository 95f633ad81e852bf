"""Makes the control groups of the cluster: one for the control plane and one for each node.

Every hierarchy (cgroups(7)) has them. Version 1 has several hierarchies. The groups are below that of the process that
starts the cluster, so no other group of the machine changes. Version 2 has one hierarchy, in which a group with
processes gives no controllers to the groups below it. So the groups are at its top, and the controllers that the
cluster needs are switched on there.

A machine with version 1 often has the hierarchy of version 2, too, with few controllers. The groups are also there,
because BPF programs of a node hang on its group of version 2. Without a group of its own, they would hang on the
machine's.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from podperf.errors import PodperfError, Unavailable

_NEEDED = {"cpu", "cpuset", "memory", "pids"}
_ALSO_IN_VERSION_1 = {"cpuacct", "devices"}
_PROGRAMS = "programs"  # version 2: the group of a node's own programs, beside those of pods
_PATIENCE = 20.0  # seconds for killed processes to end
_LOOK_AGAIN = 0.05  # seconds


@dataclass(frozen=True)
class Hierarchy:
    """A hierarchy of control groups: its place, its controllers, and the group there below which the cluster's is.

    The hierarchy of version 2 has all controllers, and none is named.
    """

    mounted: str
    controllers: str
    own: str

    @property
    def folder(self) -> Path:
        return Path(self.mounted + self.own.rstrip("/"))


def hierarchies(mounts: str, groups: str) -> tuple[Hierarchy, ...]:
    """The hierarchies, from the text of /proc/self/mountinfo and of /proc/self/cgroup.

    A hierarchy counts only if all of it is mounted.
    """
    own = {}
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        own[frozenset(controllers.split(","))] = (controllers, path)
    found = []
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        root, mounted = before.split()[3:5]
        kind, _, options = [*after.split(), "", "", ""][:3]
        if root != "/":
            continue
        if kind == "cgroup2":
            found.append(Hierarchy(mounted, "", "/"))
        if kind != "cgroup":
            continue
        words = set(options.split(","))
        for names, (controllers, path) in own.items():
            if names <= words:
                found.append(Hierarchy(mounted, controllers, path))
    return tuple({each.controllers: each for each in found}.values())


def of_this_machine() -> tuple[Hierarchy, ...]:
    """The hierarchies of this machine that the cluster uses: those of version 1 with that of version 2 beside them, if
    there is one, or that of version 2 alone.

    Unavailable if neither version has the controllers that a cluster needs.
    """
    mounts, groups = (Path(f"/proc/self/{name}").read_text() for name in ("mountinfo", "cgroup"))
    found = hierarchies(mounts, groups)
    first = tuple(each for each in found if each.controllers)
    missing = (_NEEDED | _ALSO_IN_VERSION_1) - {name for each in first for name in each.controllers.split(",")}
    if not missing:
        return found
    for each in found:
        if not each.controllers and not (missing := _NEEDED - set(_offered(each.folder))):
            return (each,)
    raise Unavailable(
        f"the cluster needs control groups, and there is no {', '.join(sorted(missing))} here: run podperf on the "
        "machine itself, not in a container, and look for cgroup_disable in the kernel's command line (/proc/cmdline)"
    )


def _offered(group: Path) -> list[str]:
    """The controllers that a group of version 2 can give to the groups below it.

    Empty for version 1, and for version 2 beside version 1, which has the controllers that a cluster needs.
    """
    with suppress(FileNotFoundError):
        offered = (group / "cgroup.controllers").read_text().split()
        return offered if _NEEDED & set(offered) else []
    return []


def switched_off(group: Path) -> list[str]:
    """The controllers that a cluster needs, and that this group does not yet give to the groups below it.

    Empty for version 1.
    """
    on = (group / "cgroup.subtree_control").read_text().split() if (offered := _offered(group)) else []
    return [each for each in offered if each in {*_NEEDED, "hugetlb"} and each not in on]


def switch(group: Path, controllers: Sequence[str], *, on: bool) -> None:
    """Switch controllers on for the groups below this one, or off. PodperfError if the kernel refuses to switch on.

    A controller that others use meanwhile stays on.
    """
    for controller in controllers:
        try:
            (group / "cgroup.subtree_control").write_text(f"{'+' if on else '-'}{controller}")
        except OSError as error:
            if on:
                raise PodperfError(
                    f"the kernel does not switch on the controller {controller} for groups below {group} "
                    f"({error.strerror})"
                ) from error


def group_of_programs(node: Path) -> Path:
    """The group for a node's own programs once its first process has made it (node.sh). `node` is the node's group."""
    return node / _PROGRAMS if _offered(node) else node


def make(folders: Iterable[Path], subgroups: Sequence[str]) -> None:
    for folder in folders:
        folder.mkdir(exist_ok=True)
        switch(folder, switched_off(folder), on=True)
        for each in (folder, *(folder / name for name in subgroups)):
            each.mkdir(exist_ok=True)
            for setting in ("cpuset.mems", "cpuset.cpus"):  # an empty cpuset takes no process
                with suppress(FileNotFoundError):
                    (each / setting).write_text((each.parent / setting).read_text())


def enter(folders: Iterable[Path], subgroup: str) -> None:
    """Put this process into a subgroup of each of these groups."""
    for folder in folders:
        (folder / subgroup / "cgroup.procs").write_text("0")


def processes(folders: Iterable[Path]) -> set[int]:
    return set(_processes(folders))


def _processes(folders: Iterable[Path]) -> Iterator[int]:
    for folder in folders:
        for parent, _, _ in os.walk(folder):
            with suppress(FileNotFoundError):
                yield from map(int, (Path(parent) / "cgroup.procs").read_text().split())


def end(folders: Sequence[Path]) -> bool:
    """Kill all processes in these groups, and remove the groups. False if there were none.

    PodperfError if a group is still there after 20 s.
    """
    there = [folder for folder in folders if folder.exists()]
    deadline = time.monotonic() + _PATIENCE
    while left := [each for each in there if not _removed(each)]:
        for number in processes(left):
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise PodperfError(f"the control group {left[0]} cannot be removed: processes {sorted(processes(left))}")
        time.sleep(_LOOK_AGAIN)
    return bool(there)


def _removed(folder: Path) -> bool:
    """Remove a group with all groups below it. False if one has processes."""
    for parent, _, _ in os.walk(folder, topdown=False):
        try:
            Path(parent).rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            return False
    return True
