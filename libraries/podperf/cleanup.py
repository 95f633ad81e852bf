"""Puts the machine back to what it was before a run that could not do so itself."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import ExitStack

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
from podperf.topology import load_topology
from podperf.virtual_worker.image import forget as forget_images


def put_back(host: Host) -> list[str]:
    """Remove what killed runs left on a machine; returns what that was. Call it under the run lock.

    Everything that a run makes lies in namespaces of its own prefix or in its run directory, which also says what it
    changed elsewhere: ports that were moved, virtual functions, drivers, hugepages. Its processes die with it, all but
    their shared memory. There is nothing else to look for.
    """
    namespaces = namespaces_named(host)
    for namespace in namespaces:
        end_processes(host, namespace)  # or a program that has a device keeps it from its driver
    found = _ports_and_devices(host)
    if go_back(host, str(TESTER_DIRECTORY)):
        found.append("the tester's ports")
    for namespace in namespaces:
        remove_namespace(host, namespace)
    found += namespaces
    if give_back(host, str(RUN_DIRECTORY)):
        found.append("hugepages")
    free_shared_memory(host)
    if not host.run("test", "-e", str(RUN_DIRECTORY), check=False).exit_code:
        host.run("rm", "-rf", str(RUN_DIRECTORY))
        found.append(str(RUN_DIRECTORY))
    return found


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


def main(arguments: Sequence[str]) -> int:
    """`podperf clean`: exit code 0 when this machine, and those of a topology, are as they were."""
    parser = argparse.ArgumentParser("podperf clean", description="Put the machine back, also after a killed run.")
    parser.add_argument("topology", nargs="?", metavar="TOPOLOGY", help="whose other machines are put back, too")
    parser.add_argument("--all", action="store_true", help="remove the image of the virtual worker, too")
    wanted = parser.parse_args(arguments)
    topology = load_topology(wanted.topology) if wanted.topology else None
    here = LocalHost()
    with RunLock(), ExitStack() as undo:
        removed = [*put_back(here), *forget_images(here, wanted.all)]
        machines = machines_of(topology, here, undo) if topology is not None else ()
        for there in behind_ssh(machines):
            lock(there, undo)
            removed += [f"{each} on {there.name}" for each in put_back(there)]
    print(f"removed: {', '.join(removed)}" if removed else "nothing was left behind")
    return 0
