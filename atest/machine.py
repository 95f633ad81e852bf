"""The state of this machine, as data that tests compare. It contains all that a run could leave changed."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 30.0  # seconds: the kernel takes namespaces, BPF programs and large processes down in the background

VOLATILE_SETTINGS = (
    "kernel.random.",
    "kernel.ns_last_pid",
    "kernel.pty.nr",
    "fs.aio-nr",
    "fs.dentry-state",
    "fs.file-nr",
    "fs.inode-",
    "fs.quota.",
    "net.netfilter.nf_conntrack_count",
    "kernel.perf_event_max_sample_rate",
    "kernel.perf_cpu_time_max_percent",
    "kernel.tainted",
    "kernel.hung_task_detect_count",
)
# As the kernel names them: at most 15 characters. Kernel threads of veths are among them.
PROCESSES = ("podperf", "napi/", "ovs", "dpdk-", "vpp", "qemu-system", "_t-rex", "tcpdump", "robot")
FOLDERS = (
    "/run/podperf",
    "/run/podperf-journal",
    "/run/netns",
    "/run/dpdk",
    "/var/lib/cni",
    "/var/lib/podperf",
    "/var/lib/podperf-cluster",
    "/dev/shm",
    "/sys/fs/bpf",
)


def once_as(before: T, read: Callable[[], T]) -> T:
    """The value of `read` when it is equal to `before`, or its value after 30 s."""
    deadline = time.monotonic() + PATIENCE
    while (now := read()) != before and time.monotonic() < deadline:
        time.sleep(0.1)
    return now


def at_rest(known: dict[str, object] | None = None) -> dict[str, object]:
    """The machine's state when it no longer changes. Parts of the previous test's run may still be ending.

    A state that is equal to `known`, the previous state at rest, is read only once.
    """
    deadline = time.monotonic() + PATIENCE
    last, alike = snapshot(), 1
    while last != known and alike < 3 and time.monotonic() < deadline:
        time.sleep(0.3)
        now = snapshot()
        last, alike = now, alike + 1 if now == last else 1
    return last


@contextmanager
def left_as_before(last: list[dict[str, object]]) -> Iterator[None]:
    """Check that the machine is the same before and after. `last` has its previous state at rest, and gets this one."""
    before = last[0] = at_rest(last[0])
    yield
    after = once_as(before, snapshot)
    for what, value in before.items():
        assert after[what] == value, f"{what} changed"


def program_in(process: int) -> str:
    """The name of the program that a process runs. Empty if the process has just ended."""
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def snapshot() -> dict[str, object]:
    """Namespaces, links, processes, hugepages, cgroups, BPF programs, settings, packet filters, mounts, files."""
    return {
        "namespaces": sorted(line.split()[0] for line in _lines("ip", "netns", "list")),
        "links": sorted(_links()),
        "processes": sorted(_processes()),
        "hugepages": {each.name: _hugepages(each) for each in Path("/sys/kernel/mm/hugepages").iterdir()},
        # Other control groups come and go: of logins, of systemd's timers, of the caller's session.
        "cgroups": sorted(each for each in _below("/sys/fs/cgroup", files=False) if "podperf" in Path(each).name),
        "bpf programs": sorted(_bpf_programs()),
        "settings": [line for line in _lines("sysctl", "-a") if not line.startswith(VOLATILE_SETTINGS)],
        "packet filter": _lines("nft", "--stateless", "list", "ruleset"),
        "mounts": sorted(_mounts() - {"/run/netns"}),  # iproute2 mounts this at its first use, and does not unmount it
        "queueing disciplines": _lines("tc", "qdisc", "show"),  # also tc filters: they need the discipline clsact
        "files": sorted(_files() - {"/sys/fs/bpf/xdp"}),  # libxdp makes this folder at its first use, and it stays
    }


def _hugepages(folder: Path) -> int:
    """Hugepages that stay. Closed sockets may use some pages for another minute; the kernel counts these as surplus."""
    pages, surplus = (int((folder / name).read_text()) for name in ("nr_hugepages", "surplus_hugepages"))
    return pages - surplus


def _lines(*command: str) -> list[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()


def _files() -> set[str]:
    return {path for folder in FOLDERS for path in _below(folder)}


def _below(folder: str, *, files: bool = True) -> Iterator[str]:
    """The paths of all folders below this one, and of all files. Other processes may remove some of them meanwhile:
    Path.rglob would raise FileNotFoundError then.
    """
    for parent, names, others in os.walk(folder):
        yield from (f"{parent}/{each}" for each in (*names, *(others if files else ())))


def _mounts() -> set[str]:
    return {line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()}


def _links() -> list[str]:
    links = json.loads("".join(_lines("ip", "-json", "link", "show")))
    return [f"{link['ifname']} {link['address']} {link['flags']} {link.get('xdp')}" for link in links]


def _processes() -> list[str]:
    """Ours that could outlive a run: by name, since numbers change. Not those that ended and wait for init."""
    names = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            before, _, after = path.read_text(errors="replace").rpartition(")")  # pid (name) state ...
        except OSError:  # the process ended meanwhile
            continue
        name, state = before.partition("(")[2], after.split()[0]
        if name.startswith(PROCESSES) and state != "Z":
            names.append(name)
    return names


def _bpf_programs() -> list[str]:
    """The names of the processes that hold BPF programs, if these are podperf's."""
    owners = []
    for folder in Path("/proc").glob("[0-9]*/fdinfo"):
        try:
            kinds = [entry for entry in folder.iterdir() if "prog_id" in entry.read_text()]
            owners += [(folder.parent / "comm").read_text().strip()] * len(kinds)
        except OSError:  # the process ended meanwhile
            continue
    return [name for name in owners if name.startswith("podperf")]
