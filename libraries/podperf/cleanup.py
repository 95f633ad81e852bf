"""Puts the machine back to what it was before a run that could not do so itself."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import end_processes, namespaces_named, remove_namespace
from podperf.hosts.run_directory import RUN_DIRECTORY, free_shared_memory
from podperf.hosts.way_back import go_back
from podperf.kernel.hugepages import give_back
from podperf.testbed.access import behind_ssh, lock, machines_of
from podperf.testbed.cabled import TESTER_DIRECTORY
from podperf.testbed.run_lock import RunLock
from podperf.testbed.worker_ports import forget as forget_ports
from podperf.testbed.worker_ports import give_back as give_ports_back
from podperf.topology import Topology, load_topology
from podperf.virtual_worker.image import forget as forget_images


def put_back(host: Host) -> list[str]:
    """Remove what killed runs left on a machine; returns what that was. Call it under the run lock.

    Everything that a run makes lies in namespaces of its own prefix or in its run directory, which also says what it
    changed elsewhere: ports that were moved, virtual functions, drivers, hugepages. Its processes die with it, all but
    their shared memory. There is nothing else to look for. PodperfError, once all else is put back, when something
    cannot be.
    """
    namespaces = namespaces_named(host)
    for namespace in namespaces:
        end_processes(host, namespace)  # or a program that has a device keeps it from its driver
    free_shared_memory(host)
    found = _each_of(
        lambda: ["the tester's ports"] if go_back(host, str(TESTER_DIRECTORY)) else [],
        partial(_ports_and_namespaces, host, namespaces),
        lambda: ["hugepages"] if give_back(host, str(RUN_DIRECTORY)) else [],
    )
    if not host.run("test", "-e", str(RUN_DIRECTORY), check=False).exit_code:
        host.run("rm", "-rf", str(RUN_DIRECTORY))
        found.append(str(RUN_DIRECTORY))
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


def _ports_and_namespaces(host: Host, namespaces: list[str]) -> list[str]:
    """A port that cannot be taken out of a namespace keeps that: some kinds would be gone with it."""
    found = _ports_and_devices(host)
    for namespace in namespaces:
        remove_namespace(host, namespace)
    return [*found, *namespaces]


def _ports_and_devices(host: Host) -> list[str]:
    """Ports first, as some of what is done to devices needs their names, but for a port that a program's driver has."""
    directory = str(RUN_DIRECTORY)
    try:
        ports = give_ports_back(host, directory)
    except PodperfError:
        devices = go_back(host, directory)
        try:
            ports = give_ports_back(host, directory)
        except PodperfError:
            forget_ports(host, directory)
            raise
    else:
        devices = go_back(host, directory)
    found = [f"{port} from the system under test" for port in ports]
    return [*found, "virtual functions and drivers of devices"] if devices else found


def _put_back_others(topology: Topology, here: Host, undo: ExitStack) -> list[str]:
    def there(host: Host) -> list[str]:
        lock(host, undo)
        return [f"{each} on {host.name}" for each in put_back(host)]

    return _each_of(*(partial(there, host) for host in behind_ssh(machines_of(topology, here, undo))))


def main(arguments: Sequence[str]) -> int:
    """`podperf clean`: exit code 0 when this machine, and those of a topology, are as they were."""
    parser = argparse.ArgumentParser("podperf clean", description="Put the machine back, also after a killed run.")
    parser.add_argument("topology", nargs="?", metavar="TOPOLOGY", help="whose other machines are put back, too")
    parser.add_argument("--all", action="store_true", help="remove the image of the virtual worker, too")
    wanted = parser.parse_args(arguments)
    topology = load_topology(wanted.topology) if wanted.topology else None
    here = LocalHost()
    with RunLock(), ExitStack() as undo:
        removed = _each_of(
            partial(put_back, here),
            partial(forget_images, here, wanted.all),
            lambda: _put_back_others(topology, here, undo) if topology is not None else [],
        )
    print(f"removed: {', '.join(removed)}" if removed else "nothing was left behind")
    return 0
