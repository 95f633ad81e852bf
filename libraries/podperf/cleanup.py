"""Puts the machine back to what it was before a run that could not do so itself."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import end_processes, namespaces_named, remove_namespace
from podperf.hosts.run_directory import RUN_DIRECTORY, free_shared_memory
from podperf.hosts.ssh_login import take_password
from podperf.hosts.way_back import go_back
from podperf.kernel.hugepages import give_back
from podperf.ownership import hand_over_killed
from podperf.printable import printable
from podperf.testbed.access import behind_ssh, lock, machines_of
from podperf.testbed.cabled import TESTER_DIRECTORY
from podperf.testbed.run_lock import CLEAN, RunLock
from podperf.testbed.worker_ports import give_back as give_ports_back
from podperf.testbed.worker_ports import ports_on_record
from podperf.topology import Topology, load_topology
from podperf.virtual_worker.image import forget as forget_images

RESULTS = Path(__file__).resolve().parents[2] / "results"


def put_back(host: Host, *, keep: bool = False) -> list[str]:
    """Remove what killed runs left on a machine; returns what that was. Call it under the run lock.

    Everything that a run makes lies in namespaces of its own prefix or in its run directory, which also says what it
    changed elsewhere: ports that were moved, virtual functions, drivers, hugepages. Its processes die with it, all but
    their shared memory. There is nothing else to look for. PodperfError, once all else is put back, when something
    cannot be; that is off the record then, or no run would ever begin here again, unless it is to be kept for later.
    """
    namespaces = namespaces_named(host)
    for namespace in namespaces:
        end_processes(host, namespace)  # or a program that has a device keeps it from its driver
    directory = str(RUN_DIRECTORY)

    def shared_memory() -> list[str]:
        free_shared_memory(host)
        return []

    def ports() -> list[str]:
        return [f"{port} from the system under test" for port in give_ports_back(host, directory)]

    def ports_at_once() -> list[str]:
        with suppress(PodperfError):  # a port that a program's driver has is there only when its device is handed back
            return ports()
        return []

    def remove_namespaces() -> list[str]:
        if ports_on_record(host, directory):  # some kinds would be gone with the namespace that they are in
            return []
        for namespace in namespaces:
            remove_namespace(host, namespace)
        return namespaces

    try:
        found = _each_of(
            shared_memory,
            lambda: ["the tester's ports"] if go_back(host, str(TESTER_DIRECTORY)) else [],
            ports_at_once,  # as some of what is done to devices needs their names
            lambda: ["virtual functions and drivers of devices"] if go_back(host, directory) else [],
            ports,
            remove_namespaces,
            lambda: ["hugepages"] if give_back(host, directory) else [],
        )
    except PodperfError:
        if not keep:
            host.run("rm", "-rf", directory, str(TESTER_DIRECTORY))
        raise
    if not host.run("test", "-e", directory, check=False).exit_code:
        host.run("rm", "-rf", directory)
        found.append(directory)
    return found


def _each_of(*steps: Callable[[], list[str]]) -> list[str]:
    """What the steps found. One that fails does not keep the others from being done; then PodperfError says so."""
    found, failures = [], []
    for step in steps:
        try:
            found += step()
        except PodperfError as error:
            failures.append(str(error))
    if failures:
        raise PodperfError("; ".join(failures))
    return found


def _put_back_others(topology: Topology, here: Host, undo: ExitStack) -> list[str]:
    def there(host: Host) -> list[str]:
        lock(host, undo, CLEAN, _say)
        return [f"{each} on {host.name}" for each in put_back(host)]

    return _each_of(*(partial(there, host) for host in behind_ssh(machines_of(topology, here, undo))))


def _say(text: str) -> None:
    print(f"podperf: {printable(text)}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str]) -> int:
    """`podperf clean`: exit code 0 when this machine, and those of a topology, are as they were."""
    parser = argparse.ArgumentParser("podperf clean", description="Put the machine back, also after a killed run.")
    parser.add_argument("topology", nargs="?", metavar="TOPOLOGY", help="whose other machines are put back, too")
    parser.add_argument("--all", action="store_true", help="remove the image of the virtual worker, too")
    wanted = parser.parse_args(arguments)
    take_password()
    topology = load_topology(wanted.topology) if wanted.topology else None
    here = LocalHost()
    with RunLock(CLEAN, _say), ExitStack() as undo:
        removed = _each_of(
            partial(put_back, here),
            partial(forget_images, here, wanted.all),
            lambda: _put_back_others(topology, here, undo) if topology is not None else [],
        )
        for results in hand_over_killed(RESULTS):
            print(f"{printable(results)} belongs to the caller of its run now")
    print(f"removed: {printable(', '.join(removed))}" if removed else "nothing was left behind")
    return 0
