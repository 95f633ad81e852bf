"""Puts a machine back to its state before a run, if the run was killed before it could do so."""

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
    """Remove the leftovers of killed runs from a machine, and return their names. Call this under the run lock.

    A run makes everything in namespaces with podperf's prefix, or in its run directory. The run directory also has the
    changes in other places: moved ports, virtual functions, drivers, hugepages. The processes of a run die with the
    run, but their shared memory stays. A run leaves nothing else.

    PodperfError if a change cannot be undone; all others are undone first. A change that cannot be undone is then
    deleted from the run directory; otherwise every later run would stop here. `keep` leaves it there.
    """
    namespaces = namespaces_named(host)
    for namespace in namespaces:
        end_processes(host, namespace)  # a program that uses a device keeps the device from its driver
    directory = str(RUN_DIRECTORY)

    def shared_memory() -> list[str]:
        free_shared_memory(host)
        return []

    def ports() -> list[str]:
        return [f"{port} from the system under test" for port in give_ports_back(host, directory)]

    def ports_at_once() -> list[str]:
        with suppress(PodperfError):  # a port of vfio-pci appears only after its device is back at the kernel's driver
            return ports()
        return []

    def remove_namespaces() -> list[str]:
        if ports_on_record(host, directory):  # some kinds of ports end with their namespace
            return []
        for namespace in namespaces:
            remove_namespace(host, namespace)
        return namespaces

    try:
        found = _each_of(
            shared_memory,
            lambda: ["the tester's ports"] if go_back(host, str(TESTER_DIRECTORY)) else [],
            ports_at_once,  # because some steps for devices need the names of their ports
            lambda: ["virtual functions and drivers of devices"] if go_back(host, directory) else [],
            ports,
            remove_namespaces,
            lambda: ["hugepages"] if give_back(host, directory) else [],
        )
    except PodperfError:
        if not keep:
            host.do("rm", "-rf", directory, str(TESTER_DIRECTORY))
        raise
    if not host.ask("test", "-e", directory, check=False).exit_code:
        host.do("rm", "-rf", directory)
        found.append(directory)
    return found


def _each_of(*steps: Callable[[], list[str]]) -> list[str]:
    """The findings of all steps. After a step that fails, the other steps run, and then PodperfError is raised."""
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
    """`podperf clean`: exit code 0 if this machine, and the machines of a topology, are as they were."""
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
