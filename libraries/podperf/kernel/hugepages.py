"""Hugepages for data planes: reserved for one set-up, and given back afterwards, also after a killed run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack

from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host
from podperf.hosts.way_back import WayBack
from podperf.kernel.cpus import numa_nodes
from podperf.model import PageSize

# `sh -c` runs this with pairs of a folder and a number of pages. It goes on if one cannot be written.
_SET_BACK = 'status=0; while [ $# -gt 1 ]; do echo "$2" >"$1/nr_hugepages" || status=1; shift 2; done; exit $status'


def folder(size: PageSize) -> str:
    """The folder of the kernel's files about pages of this size on all NUMA nodes."""
    return f"/sys/kernel/mm/hugepages/{_name(size)}"


def offered(host: Host, size: PageSize = PageSize.TWO_MIB) -> bool:
    """True if the kernel has hugepages of this size, and podperf can change their number."""
    return host.ask("test", "-w", f"{folder(size)}/nr_hugepages", check=False, assumed="").exit_code == 0


def nodes(host: Host, size: PageSize = PageSize.TWO_MIB) -> list[int]:
    """The NUMA nodes on which hugepages are reserved; node 0 if the kernel has no NUMA nodes."""
    return list(_folders(host, size))


def free(host: Host, size: PageSize = PageSize.TWO_MIB) -> dict[int, tuple[int, int]]:
    """For each NUMA node, the number of free pages and the number of all pages."""
    return {
        node: (_read(host, each, "free_hugepages"), _read(host, each, "nr_hugepages"))
        for node, each in _folders(host, size).items()
    }


def whole_pages(memories: Iterable[int], size: PageSize) -> int:
    """The number of pages of this size for processes with these MiB of memory. Two processes share no page."""
    return sum(-(-mib // size) for mib in memories)


def reserve(host: Host, size: PageSize, memories: Iterable[int], undo: ExitStack) -> None:
    """Reserve free hugepages of this size on each NUMA node until `undo`, for processes with these MiB of memory.

    PodperfError with the remedy if memory is short.
    """
    wanted = whole_pages(memories, size)
    before, goals = {}, {}
    folders = _folders(host, size)
    for each in folders.values():
        pages, left = _read(host, each, "nr_hugepages"), _read(host, each, "free_hugepages")
        if left < wanted:
            # An earlier set-up gave pages back while the kernel still held them (sockets release theirs later). The
            # kernel counts such pages as surplus until they are free. They did not exist before that set-up.
            before[each] = pages - _read(host, each, "surplus_hugepages")
            goals[each] = pages + wanted - left
    if not goals:
        return
    pairs = [word for each, pages in before.items() for word in (each, str(pages))]
    WayBack(host, undo).note("hugepages", "sh", "-c", _SET_BACK, "sh", *pairs)
    for each, goal in goals.items():
        _write(host, each, goal)
        if (left := _read(host, each, "free_hugepages", assumed=wanted)) < wanted:
            where = "" if len(folders) == 1 else f" on {each.split('/')[5]}"
            raise PodperfError(
                f"{host.name} has no {wanted * size} MiB of hugepages left{where}: {left} of {wanted} {size.words} are "
                f"free; end what holds them or free memory, {_at_boot(size, wanted)}, or measure without hugepages"
            )


def try_to_reserve(host: Host, size: PageSize, memories: Iterable[int]) -> None:
    """Raises Unavailable with the remedy unless this host can give pages of this size now, as `reserve` takes them."""
    wanted = list(memories)
    if not offered(host, size):
        raise Unavailable(
            f"{host.name} has no {size.words}, or lets nobody reserve them: "
            f"{_at_boot(size, whole_pages(wanted, size))}, on a machine whose CPU has them (flag "
            f"{'pdpe1gb' if size is PageSize.ONE_GIB else 'pse'} in /proc/cpuinfo)"
        )
    try:
        with ExitStack() as undo:
            reserve(host, size, wanted, undo)
    except PodperfError as error:
        raise Unavailable(str(error)) from error


def _at_boot(size: PageSize, pages: int) -> str:
    unit = "1G" if size is PageSize.ONE_GIB else "2M"
    return f"reserve them at boot (`hugepagesz={unit} hugepages={pages}` on the kernel's command line)"


def held(host: Host, process: int) -> dict[str, int]:
    """MiB of hugepages that a process has mapped on each NUMA node (proc(5)); empty if the kernel has no numa_maps."""
    try:
        maps = host.get(f"/proc/{process}/numa_maps").decode()
    except (FileNotFoundError, ProcessLookupError):  # no numa_maps in this kernel, or the process has ended
        return {}
    kib: Counter[str] = Counter()
    for line in maps.splitlines():
        if " huge " in line:
            size = int(line.rpartition("kernelpagesize_kB=")[2])
            kib.update({f"node{node}": int(pages) * size for node, pages in re.findall(r" N(\d+)=(\d+)", line)})
    return {node: amount // 1024 for node, amount in sorted(kib.items())}


def _name(size: PageSize) -> str:
    return f"hugepages-{size * 1024}kB"


def _folders(host: Host, size: PageSize) -> dict[int, str]:
    """The folder of each NUMA node, ordered by the nodes' numbers, which may have gaps."""
    pattern = f"/sys/devices/system/node/node[0-9]*/hugepages/{_name(size)}"

    def assumed() -> str:
        return "\n".join(pattern.replace("[0-9]*", str(node)) for node in sorted({*numa_nodes(host).values()}))

    found = host.ask("sh", "-c", f"ls -d {pattern}", check=False, assumed=assumed).stdout.split()
    by_node = {int(each.split("/")[5].removeprefix("node")): each for each in found}
    return dict(sorted(by_node.items())) or {0: folder(size)}


def _read(host: Host, where: str, name: str, assumed: int = 0) -> int:
    return int(host.get(f"{where}/{name}", str(assumed).encode()))


def _write(host: Host, where: str, pages: int) -> None:
    host.do("tee", f"{where}/nr_hugepages", stdin=str(pages))
