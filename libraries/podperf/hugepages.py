"""Hugepages for data planes that want them: reserved for one set-up, and given back, also after a killed run."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import PurePosixPath

from podperf.errors import PodperfError
from podperf.hosts.base import Host

PAGE_MIB = 2
FOLDER = f"/sys/kernel/mm/hugepages/hugepages-{PAGE_MIB * 1024}kB"
BEFORE = "hugepages-before"  # in the run directory: how many there were, for `put_back`


def offered(host: Host) -> bool:
    """True where the kernel has hugepages and lets us change how many."""
    return host.run("test", "-w", f"{FOLDER}/nr_hugepages", check=False).exit_code == 0


def reserve(host: Host, mib: int, run_directory: str, undo: ExitStack) -> None:
    """Have this many MiB of free hugepages until `undo`. PodperfError when memory has none left."""
    wanted = -(-mib // PAGE_MIB)
    pages, free = _read(host, "nr_hugepages"), _read(host, "free_hugepages")
    if free >= wanted:
        return
    # Pages that were given back while the kernel still held them (sockets let go of theirs later) are counted until
    # they are free: as surplus, which nobody had before.
    before = pages - _read(host, "surplus_hugepages")
    host.put(str(before).encode(), f"{run_directory}/{BEFORE}")  # first, so that whoever is killed leaves the trace
    undo.callback(give_back, host, run_directory)
    _write(host, pages + wanted - free)
    if (free := _read(host, "free_hugepages")) < wanted:
        raise PodperfError(
            f"{host.name} has no {mib} MiB of hugepages left: {free} of {wanted} pages of {PAGE_MIB} MiB are free; "
            "end what holds them or free memory, or measure without hugepages"
        )


def give_back(host: Host, run_directory: str) -> bool:
    """Have as many hugepages again as before `reserve`. True when there was something to give back."""
    path = str(PurePosixPath(run_directory) / BEFORE)
    try:
        before = int(host.get(path))
    except FileNotFoundError:
        return False
    _write(host, before)
    host.run("rm", path)
    return True


def _read(host: Host, name: str) -> int:
    return int(host.get(f"{FOLDER}/{name}"))


def _write(host: Host, pages: int) -> None:
    host.run("tee", f"{FOLDER}/nr_hugepages", stdin=str(pages))
