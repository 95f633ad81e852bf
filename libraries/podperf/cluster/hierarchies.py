"""The control groups of the cluster: one for the control plane and one for each node, in every hierarchy of version 1.

They are below the group of the process that starts the cluster. So no other group of the machine changes.
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

_PATIENCE = 20.0  # seconds for killed processes to end
_LOOK_AGAIN = 0.05  # seconds


@dataclass(frozen=True)
class Hierarchy:
    """A hierarchy of control groups, version 1: its place, its controllers, and the own group of this process there."""

    mounted: str
    controllers: str
    own: str

    @property
    def folder(self) -> Path:
        """The folder of this process's own group."""
        return Path(self.mounted + self.own.rstrip("/"))


def hierarchies(mounts: str, groups: str) -> tuple[Hierarchy, ...]:
    """The hierarchies of version 1, from the text of /proc/self/mountinfo and of /proc/self/cgroup (cgroups(7)).

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
        if kind != "cgroup" or root != "/":
            continue
        words = set(options.split(","))
        for names, (controllers, path) in own.items():
            if names <= words:
                found.append(Hierarchy(mounted, controllers, path))
    return tuple({each.controllers: each for each in found}.values())


def of_this_machine() -> tuple[Hierarchy, ...]:
    """The hierarchies of this machine. Unavailable if it has control groups of version 2 only."""
    mounts, groups = (Path(f"/proc/self/{name}").read_text() for name in ("mountinfo", "cgroup"))
    found = hierarchies(mounts, groups)
    wanted = {"cpu", "cpuacct", "cpuset", "devices", "memory", "pids"}
    missing = wanted - {name for each in found for name in each.controllers.split(",")}
    if missing:
        raise Unavailable(
            f"the cluster needs control groups of version 1 ({', '.join(sorted(missing))} missing here): a node would "
            "switch on controllers for the whole machine with version 2; install kind or k3s, and `podperf cluster up` "
            "uses it"
        )
    return found


def make(folders: Iterable[Path], subgroups: Sequence[str]) -> None:
    """Make these groups, with a subgroup for each part of the cluster."""
    for folder in folders:
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
    """The processes in these groups and below them."""
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
    there = [each for each in folders if each.exists()]
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
