"""Hugepages for data planes: reserved for one set-up, and given back afterwards, also after a killed run."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import ExitStack

from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.hosts.way_back import WayBack

PAGE_MIB = 2
_SIZE = f"hugepages-{PAGE_MIB * 1024}kB"
FOLDER = f"/sys/kernel/mm/hugepages/{_SIZE}"
_NODE_FOLDERS = f"/sys/devices/system/node/node[0-9]*/hugepages/{_SIZE}"
# `sh -c` runs this with pairs of a folder and a number of pages. It goes on if one cannot be written.
_SET_BACK = 'status=0; while [ $# -gt 1 ]; do echo "$2" >"$1/nr_hugepages" || status=1; shift 2; done; exit $status'


def offered(host: Host) -> bool:
    """True if the kernel has hugepages, and podperf can change their number."""
    return host.ask("test", "-w", f"{FOLDER}/nr_hugepages", check=False).exit_code == 0


def nodes(host: Host) -> list[int]:
    """The NUMA nodes on which hugepages are reserved; node 0 if the kernel has no NUMA nodes."""
    return list(_folders(host))


def free(host: Host) -> dict[int, tuple[int, int]]:
    """For each NUMA node, the number of free pages and the number of all pages."""
    return {
        node: (_read(host, folder, "free_hugepages"), _read(host, folder, "nr_hugepages"))
        for node, folder in _folders(host).items()
    }


def reserve(host: Host, mib: int, undo: ExitStack) -> None:
    """Reserve this many MiB of free hugepages on each NUMA node until `undo`. PodperfError if memory is short."""
    wanted = -(-mib // PAGE_MIB)
    before, goals = {}, {}
    for folder in _folders(host).values():
        pages, left = _read(host, folder, "nr_hugepages"), _read(host, folder, "free_hugepages")
        if left < wanted:
            # An earlier set-up gave pages back while the kernel still held them (sockets release theirs later). The
            # kernel counts such pages as surplus until they are free. They did not exist before that set-up.
            before[folder] = pages - _read(host, folder, "surplus_hugepages")
            goals[folder] = pages + wanted - left
    if not goals:
        return
    pairs = [word for folder, pages in before.items() for word in (folder, str(pages))]
    WayBack(host, undo).note("hugepages", "sh", "-c", _SET_BACK, "sh", *pairs)
    for folder, goal in goals.items():
        _write(host, folder, goal)
        if (left := _read(host, folder, "free_hugepages")) < wanted:
            where = "" if folder == FOLDER or len(_folders(host)) == 1 else f" on {folder.split('/')[5]}"
            raise PodperfError(
                f"{host.name} has no {mib} MiB of hugepages left{where}: {left} of {wanted} pages of {PAGE_MIB} MiB "
                "are free; end what holds them or free memory, or measure without hugepages"
            )


def held(host: Host, process: int) -> dict[str, int]:
    """MiB of hugepages that a process has mapped on each NUMA node (proc(5)); empty if the kernel has no numa_maps."""
    try:
        maps = host.get(f"/proc/{process}/numa_maps").decode()
    except FileNotFoundError:
        return {}
    kib: Counter[str] = Counter()
    for line in maps.splitlines():
        if " huge " in line:
            size = int(line.rpartition("kernelpagesize_kB=")[2])
            kib.update({f"node{node}": int(pages) * size for node, pages in re.findall(r" N(\d+)=(\d+)", line)})
    return {node: amount // 1024 for node, amount in sorted(kib.items())}


def _folders(host: Host) -> dict[int, str]:
    """The folder of each NUMA node, ordered by the nodes' numbers, which may have gaps."""
    found = host.ask("sh", "-c", f"ls -d {_NODE_FOLDERS}", check=False).stdout.split()
    by_node = {int(folder.split("/")[5].removeprefix("node")): folder for folder in found}
    return dict(sorted(by_node.items())) or {0: FOLDER}


def _read(host: Host, folder: str, name: str) -> int:
    return int(host.get(f"{folder}/{name}"))


def _write(host: Host, folder: str, pages: int) -> None:
    host.do("tee", f"{folder}/nr_hugepages", stdin=str(pages))
